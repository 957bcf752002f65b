/* shared_tile.cuh - copies of tiles of right-hand sides and solutions between global
 * and shared memory.
 *
 * A tile contains some neighbouring systems, one after the other in shared memory for
 * every layout of global memory. Copies use units of 16 bytes if everything is aligned,
 * otherwise elements.
 */
#ifndef PS_CUDA_LINES_SHARED_SHARED_TILE_CUH
#define PS_CUDA_LINES_SHARED_SHARED_TILE_CUH

#include "device/run_copy.cuh"
#include "runtime/copy.cuh"

namespace pysolvers::shared {

using namespace runtime;

/* How copies traverse one operand. Steps are bytes in global memory, pitches bytes in
 * the tile. */
typedef struct {
    char *data;
    /* to the next system of a line of systems; to the next line */
    int64_t lane_step, line_step;
    int64_t unit_step; /* to the next unit of a system */
    int32_t lane_pitch, unit_pitch;
    int32_t unit;   /* bytes: 16, or an element */
    int32_t across; /* neighbouring threads copy neighbouring systems, otherwise units */
    int32_t shift;  /* log2 of the number of neighbouring threads along this axis */
} ps_cuda_route;

/* The part of the batch that a tile contains: lines of systems are divided into tiles. */
struct SharedTileRange {
    int64_t line, first; /* the line, and the first system in it */
    int32_t systems;
};

/* Rows of neighbouring systems of a tile, and the threads that copy them. */
struct TilePart {
    int32_t first, systems, begin, rows, thread, threads;
};

/* The number of units that a call of Move copies. */
template <int COUNT> struct Count {};

/* move(outside, inside, step, pitch, Count) for the units of a part that belong to this
 * thread: four at a time, then one by one. */
template <typename Unit, typename Number, typename Move>
__device__ __forceinline__ void
walk(const ps_cuda_route &route, const SharedTileRange &range, const TilePart &part,
     char *tile, const Move &move)
{
    constexpr int elements = sizeof(Unit) / sizeof(Number);
    const int32_t wide = 1 << route.shift;
    const int32_t side = part.thread & (wide - 1), behind = part.thread >> route.shift;
    const int32_t high = part.threads >> route.shift;
    const int32_t unit = route.across ? behind : side;
    const int32_t skip = route.across ? high : wide;
    const int32_t lanes = route.across ? wide : high;
    const int32_t begin = part.begin / elements + unit;
    const int32_t units = part.rows / elements - unit;
    const int64_t step = skip * route.unit_step;
    const int32_t pitch = skip * route.unit_pitch;
    const int32_t end = min(part.first + part.systems, range.systems);
    char *const from = route.data + range.line * route.line_step +
                       range.first * route.lane_step + begin * route.unit_step;

    tile += begin * route.unit_pitch;
    for (int32_t s = part.first + (route.across ? side : behind); s < end; s += lanes) {
        char *outside = from + s * route.lane_step;
        char *inside = tile + s * route.lane_pitch;
        int32_t left = units;

        for (; left > 3 * skip; left -= 4 * skip) {
            move(outside, inside, step, pitch, Count<4>());
            outside += 4 * step;
            inside += 4 * pitch;
        }
        for (; left > 0; left -= skip) {
            move(outside, inside, step, pitch, Count<1>());
            outside += step;
            inside += pitch;
        }
    }
}

template <typename Unit> struct LoadUnits {
    template <int COUNT>
    __device__ __forceinline__ void operator()(const char *from, char *to, int64_t step,
                                               int32_t pitch, Count<COUNT>) const
    {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            copy_async_of_line<sizeof(Unit)>(to + k * pitch, from + k * step);
        }
    }
};

template <typename Unit> struct StoreUnits {
    template <int COUNT>
    __device__ __forceinline__ void operator()(char *to, const char *from, int64_t step,
                                               int32_t pitch, Count<COUNT>) const
    {
        Unit units[COUNT];

#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            units[k] = *reinterpret_cast<const Unit *>(from + k * pitch);
        }
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            *reinterpret_cast<Unit *>(to + k * step) = units[k];
        }
    }
};

/* Start the loads of the right-hand sides of a part. */
template <typename Number>
__device__ __forceinline__ void
load_part(const ps_cuda_route &route, const SharedTileRange &range, const TilePart &part,
          char *tile)
{
    if (route.unit == 16) {
        walk<int4, Number>(route, range, part, tile, LoadUnits<int4>());
    }
    else {
        walk<Number, Number>(route, range, part, tile, LoadUnits<Number>());
    }
}

/* Store the solutions of a part. */
template <typename Number>
__device__ __forceinline__ void
store_part(const ps_cuda_route &route, const SharedTileRange &range, const TilePart &part,
           char *tile)
{
    if (route.unit == 16) {
        walk<int4, Number>(route, range, part, tile, StoreUnits<int4>());
    }
    else {
        walk<Number, Number>(route, range, part, tile, StoreUnits<Number>());
    }
}

/* Wait until at most `left` groups of copies are in flight. */
__device__ __forceinline__ void
wait_for_group(int left)
{
    switch (left) {
    case 0:
        copies_done_but<0>();
        break;
    case 1:
        copies_done_but<1>();
        break;
    case 2:
        copies_done_but<2>();
        break;
    default:
        copies_done_but<3>();
    }
}

} // namespace pysolvers::shared

#endif
