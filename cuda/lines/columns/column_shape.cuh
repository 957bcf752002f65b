/* column_shape.cuh - the distribution of the rows of systems along a strided axis over
 * threads, and the buffers of their exchange.
 */
#ifndef PS_CUDA_LINES_COLUMNS_COLUMN_SHAPE_CUH
#define PS_CUDA_LINES_COLUMNS_COLUMN_SHAPE_CUH

#include "device/shared_arrays.h"
#include "device/sides.cuh"
#include "lines/join/levels.cuh"

namespace pysolvers::columns {

using namespace device;
using namespace join;

/* The distribution of systems, chosen by the host. A block has `1 << width` systems, a
 * warp 32 >> width chunks of each: width is at most 5. */
struct ColumnShape {
    int32_t rows;  /* of a system */
    int32_t chunk; /* rows of a chunk */
    int32_t width;
    int32_t warps;  /* per block */
    int32_t lanes;  /* log2 of the lanes of a system in an exchange, each for up to
                       ColumnTuning::span warps or two blocks; 1 << (width + lanes) threads take part */
    int32_t blocks; /* per cluster */
    int32_t first_part, first_warp, first_block; /* the place of row 0: set_first() */

    /* To be called when all other fields are set. */
    void set_first()
    {
        const int32_t first = chunks() - (rows + chunk - 1) / chunk;

        first_part = first % parts();
        first_warp = first / parts() % warps;
        first_block = first / parts() / warps;
    }
    __host__ __device__ __forceinline__ int32_t parts() const
    {
        return 32 >> width;
    }
    __host__ __device__ __forceinline__ int32_t chunks() const
    {
        return parts() * warps * blocks;
    }
    /* First row of chunk k; negative for the pads before row 0. */
    template <int ROWS>
    __host__ __device__ __forceinline__ int32_t start_of(int32_t k) const
    {
        return rows - (chunks() - k) * ROWS;
    }
};

/* The place of a thread: system `column` of the block, chunk `part` of warp `warp`. */
template <int ROWS> struct ColumnThreadPlace {
    int32_t column, part, warp, block;
    int32_t start; /* first row of the chunk; negative if it begins with pads */
    int32_t pads;  /* number of pads at the begin of the chunk */

    __device__ __forceinline__ ColumnThreadPlace(const ColumnShape &shape, int32_t rank)
    {
        const int32_t lane = threadIdx.x % 32;

        warp = __shfl_sync(all_lanes, threadIdx.x / 32, 0);
        column = lane & ((1 << shape.width) - 1);
        part = lane >> shape.width;
        block = rank;

        start = shape.template start_of<ROWS>(
            (block * shape.warps + warp) * shape.parts() + part);
        pads = min(max(-start, 0), ROWS);
    }
};

/* The segment of a block for a system, as it is sent to the other blocks of the
 * cluster. */
template <typename Number> using ColumnMessage = Message<Segment<Number>, PackedNote>;

/* What the warps of a block exchange, in shared memory: messages [turn][system][block
 * of the cluster]; segments, one array per field, and unknowns, each [warp][system];
 * notes likewise; one mark per system. */
template <typename Number> struct ColumnArrays {
    static constexpr int fields = sizeof(Segment<Number>) / sizeof(Number);
    ColumnMessage<Number> *messages;
    Number *field;
    ValueOf<Number> *y; /* one row more: the unknown before the first row of the block */
    Note *note;
    uint8_t *not_dominant;
    void *end;
    int32_t pitch, entries;

    __host__ __device__ __forceinline__ ColumnArrays(const ColumnShape &shape,
                                                     void *memory)
    {
        const int32_t sent = shape.blocks > 1 ? 2 * shape.blocks << shape.width : 0;

        pitch = (1 << shape.width) + 1;
        entries = shape.warps * pitch;
        messages = static_cast<ColumnMessage<Number> *>(memory);
        field = reinterpret_cast<Number *>(messages + sent);
        y = reinterpret_cast<ValueOf<Number> *>(field + fields * entries);
        note = reinterpret_cast<Note *>(y + entries + pitch);
        not_dominant = reinterpret_cast<uint8_t *>(note + entries);
        end = not_dominant + pitch;
    }
    __device__ __forceinline__ void put(int32_t at, const Segment<Number> &s) const
    {
        Number value[fields];

        memcpy(value, &s, sizeof s);
#pragma unroll
        for (int f = 0; f < fields; f++) {
            field[f * entries + at] = value[f];
        }
    }
    __device__ __forceinline__ Segment<Number> get(int32_t at) const
    {
        Number value[fields];
        Segment<Number> s;

#pragma unroll
        for (int f = 0; f < fields; f++) {
            value[f] = field[f * entries + at];
        }
        memcpy(&s, value, sizeof s);
        return s;
    }
};

} // namespace pysolvers::columns

#endif
