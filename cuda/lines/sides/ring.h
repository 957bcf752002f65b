/* ring.h - several right-hand sides of each matrix along a strided axis: the shape and the kernel.
 *
 * ring.cu chooses the shape; ring.cuh has the kernel, which ring_reals.cu compiles once per dtype.
 */
#ifndef PS_CUDA_LINES_SIDES_RING_H
#define PS_CUDA_LINES_SIDES_RING_H

#include <cuda.h>

#include "device/operand.cuh"
#include "device/shared_arrays.h"
#include "lines/join/exchange.cuh"
#include "lines/join/factor.cuh"
#include "lines/sides/loader.h"

namespace pysolvers::sides {

using namespace device;
using namespace join;

/* The most rows of a block, which a tensor map limits; the most blocks of a cluster. */
static constexpr int ring_block_rows = 256, ring_blocks = 16;

/* The rows of a thread, if those of a tile have so many bytes. In tiles of 128 bytes 10 sides of 2000
 * rows take 0.97 (float64) and 1.00 (float32) of the time with 16 in place of 32, of 1000 rows of
 * float32 in eight blocks 1.07. */
__host__ __device__ constexpr int
ring_rows(int number_bytes, int row_bytes)
{
    return number_bytes == 4 && row_bytes == 128 ? 32 : 16;
}

/* The most chunks of a block. */
__host__ __device__ constexpr int
ring_chunks(int number_bytes, int row_bytes)
{
    return row_bytes == 128 ? ring_block_rows / ring_rows(number_bytes, row_bytes) : 10;
}

/* The most threads of a block, limited by the registers. */
__host__ __device__ constexpr int
ring_threads(int number_bytes, int row_bytes)
{
    return number_bytes == 4 && row_bytes == 256 ? 640 : 352;
}

/* The distribution of systems over blocks. A block has `chunks` chunks of `width` neighbouring
 * systems; chunks are aligned to the end of the system. */
struct SideRing {
    int32_t rows;  /* of a system */
    int32_t width; /* systems of a tile */
    int32_t chunk_rows;
    int32_t chunks;  /* per block */
    int32_t blocks;  /* per cluster */
    int32_t slots;   /* of the ring */
    int32_t before;  /* rows of pads before row 0 */
    int32_t numbers; /* of a slot */
    bool by_threads; /* threads of chunks copy their rows; otherwise a warp, tiles */

    __host__ __device__ __forceinline__ int32_t block_rows() const
    {
        return chunks * chunk_rows;
    }
    /* Threads of chunks, rounded up to warps; those of one set that joins chunks, one for each system;
     * and of a block, which has two such sets in a cluster, and perhaps a warp that copies. */
    __host__ __device__ __forceinline__ int32_t workers() const
    {
        return (chunks * width + 31) / 32 * 32;
    }
    __host__ __device__ __forceinline__ int32_t joiners() const
    {
        return (width + 31) / 32 * 32;
    }
    /* All threads but those of the warp that copies. */
    __host__ __device__ __forceinline__ int32_t solvers() const
    {
        return workers() + (blocks > 1 ? 2 : 1) * joiners();
    }
    __host__ __device__ __forceinline__ int32_t threads() const
    {
        return solvers() + (by_threads ? 0 : 32);
    }
    int64_t tiles(const ps_tridiag &t) const
    {
        return divided_up(t.inner, width);
    }
};

/* An array over the units of the systems of a tile: the distance of units, and its size. */
struct UnitArray {
    int32_t along, all;

    __host__ __device__ __forceinline__ UnitArray(const SideRing &s, int32_t units)
        : along(s.width), all(units * s.width)
    {
    }
    __host__ __device__ __forceinline__ int32_t at(int32_t unit, int32_t system) const
    {
        return unit * along + system;
    }
};

/* The matrix of a block as it is sent to the other blocks of the cluster, and the load of its
 * right-hand side. */
template <typename Number> struct alignas(16) RingFrame {
    using word = uint4;
    Frame<Number> frame;
    PackedNote note;
};
template <typename Number> struct alignas(2 * sizeof(Number)) RingLoad {
    using word = std::conditional_t<sizeof(Number) == 4, uint64_t, uint4>;
    Load<Number> load;
};

/* The shared memory of a block apart from the slots: arrays over the chunks and the blocks.
 *
 * `load`, the loads of the chunks, has three turns. Side s of a tile has turn (base + s) % 3; if a
 * tile has k sides, the next tile begins with the turn of base + k + 1. What is known of the matrices
 * of a tile is kept in turns that no side before uses any more, and is read before the sides are
 * reduced whose loads replace it: the notes of the chunks are in the turn of side 1; the frames of
 * the blocks, if a turn has room for them, in that of side 2. The latter was the turn of side k - 3
 * of the tile before: all threads of a block have read its loads before the block sends its load of
 * side k - 1, and without this load no block ends that tile. */
template <typename Number> struct RingArrays {
    Number *unit;  /* 5 arrays: the frames of the chunks, then their multipliers */
    Number *load;  /* three turns of 2 arrays */
    Number *y;     /* two turns, of one row more: y before the block, y of the chunks */
    Number *block; /* 4 arrays over the blocks: their multipliers */
    RingFrame<Number>
        *frames; /* of the blocks; null: they are kept in a turn of the loads */
    RingLoad<Number> *loads; /* four turns */
    uint8_t *skip;           /* two turns: systems that are not solved */
    void *end;
    int32_t turn; /* numbers of a turn of the loads */

    RingArrays() = default;
    __host__ __device__ __forceinline__ RingArrays(const SideRing &s, void *memory)
    {
        const int32_t all = UnitArray(s, s.chunks).all;
        const int32_t sent = s.blocks > 1 ? s.blocks * s.width : 0;
        RingFrame<Number> *const begin = static_cast<RingFrame<Number> *>(memory);

        turn = 2 * all;
        const bool shares = sent * sizeof(RingFrame<Number>) <= turn * sizeof(Number);

        frames = shares ? nullptr : begin;
        loads = reinterpret_cast<RingLoad<Number> *>(begin + (shares ? 0 : sent));
        unit = reinterpret_cast<Number *>(loads + 4 * sent);
        load = unit + 5 * all;
        y = load + 3 * turn;
        block = y + 2 * UnitArray(s, s.chunks + 1).all;
        skip = reinterpret_cast<uint8_t *>(block + 4 * sent);
        end = skip + 2 * s.width;
    }

    /* The loads of a side of the tile that begins with turn `base`, and that of the next tile. */
    __device__ __forceinline__ Number *loads_of(int32_t base, int32_t side) const
    {
        return load + (base + side) % 3 * turn;
    }
    static __device__ __forceinline__ int32_t next_base(int32_t base, int32_t sides)
    {
        return (base + sides + 1) % 3;
    }
    __device__ __forceinline__ uint32_t *notes_of_chunks(int32_t base) const
    {
        return reinterpret_cast<uint32_t *>(loads_of(base, 1));
    }
    __device__ __forceinline__ RingFrame<Number> *frames_of_blocks(int32_t base) const
    {
        return frames != nullptr
                   ? frames
                   : reinterpret_cast<RingFrame<Number> *>(loads_of(base, 2));
    }
};

template <typename Of> struct SideRingJob : SideTiles<Of, SideRing> {
    /* for tiles that a warp copies */
    CUtensorMap inputs[4];  /* lower, diag, upper, rhs */
    CUtensorMap x, first_x; /* the latter in tiles of the rows of the block with row 0 */
    int32_t absent[4];      /* rows that an input does not have before its first one */
};

/* For several right-hand sides of each matrix on the outer axis. */
extern const ShapedKernels<SideRing> ps_cuda_side_ring;

/* ring.cuh: enqueue the kernel of a job. */
template <typename Number>
ps_status launch_side_ring(const SideRingJob<Number> &job, cudaStream_t stream);

} // namespace pysolvers::sides

#endif
