/* shared_copier.cuh - the locations of tiles and their copies.
 *
 * Either all threads of a block copy a tile, or each warp copies the rows on which it
 * works, element by element or in bulk. In the second case warps wait for each other only
 * if they share a system. Systems that begin anywhere lie at the same distance from a
 * boundary of 16 bytes in shared memory as in global memory; a bulk copy moves what lies
 * between two boundaries, and eight lanes the numbers before and after them.
 */
#ifndef PS_CUDA_LINES_SHARED_SHARED_COPIER_CUH
#define PS_CUDA_LINES_SHARED_SHARED_COPIER_CUH

#include "lines/shared/shared_factor.cuh"

namespace pysolvers::shared {

/* The location of tile `at` of all lines, from the last one on: what was written last is
 * still in the cache. */
template <typename Number>
__device__ __forceinline__ SharedTileRange
range_of(const SharedJob<Number> &job, uint32_t at)
{
    int64_t line = 0, tile = job.tiles - 1 - at;

    if (job.lines > 1) {
        tile = job.tiles * job.lines - 1 - at;
        line = quotient(tile, job.tiles);
        tile -= line * job.tiles;
    }
    const int64_t first = static_cast<int64_t>(static_cast<uint32_t>(tile)) *
                          static_cast<uint32_t>(job.slots);
    const int64_t left = job.lanes - first;

    return {line, first, left < job.slots ? static_cast<int32_t>(left) : job.slots};
}

/* Numbers between the systems of a tile and the 16-byte boundaries before them: as many in shared
 * as in global memory. */
template <typename Number, bool SKEWED> struct SystemSkews {
    static constexpr int vector = 16 / sizeof(Number);
    uint32_t first, step;

    __device__ __forceinline__ int32_t of(uint32_t index) const
    {
        if (!SKEWED) {
            return 0;
        }
        return static_cast<int32_t>((first + index * step) & (vector - 1));
    }
};

/* Loads and stores tiles; each thread copies its part. With bulk copies, a crew has its
 * own tiles. SKEWED: bulk copies of systems that begin anywhere. */
template <typename Number, bool SKEWED> struct TileCopier {
    using Skews = SystemSkews<Number, SKEWED>;
    static constexpr int most_warps = 16, most_stages = 5;
    const SharedJob<Number> &job;
    char *tiles;
    /* for bulk copies: of this warp, one per stage, most_warps apart */
    Arrivals *barriers;
    TilePart part;

    __device__ __forceinline__ TileCopier(const SharedJob<Number> &of,
                                          const SharedThreadPlace &self, char *memory,
                                          Arrivals *all_barriers)
        : job(of), tiles(memory), barriers(all_barriers + threadIdx.x / 32)
    {
        const ps_cuda_shared_shape &shape = of.shape;
        const int32_t lane = threadIdx.x % 32, threads = blockDim.x;
        const int32_t reach = 32 * shape.chunk;
        const int32_t begin = shape.rows - (shape.warps - self.warp) * reach;

        part = {0,          shape.teams * shape.rounds,        0,
                shape.rows, static_cast<int32_t>(threadIdx.x), threads};
        if (shape.copies != COPY_BY_BLOCK) {
            part = {self.first, self.count, 0, shape.rows, lane, 32};
            if (shape.warps > 1) {
                part.begin = max(begin, 0);
                part.rows = begin + reach - part.begin;
            }
        }
        /* Each system of a crew arrives, or one lane for all of them. */
        if (shape.copies == COPY_IN_BULK && lane == 0) {
            for (int k = 0; k < shape.stages; k++) {
                barriers[k * most_warps].init(SKEWED ? self.count : 1);
            }
        }
        __syncwarp();
    }

    __device__ __forceinline__ void load(const SharedTileRange &range, int stage) const
    {
        char *const to = tiles + stage * job.shape.tile_bytes;

        if (!SKEWED && job.shape.copies != COPY_IN_BULK) {
            load_part<Number>(job.rhs, range, part, to);
            return;
        }
        const int32_t count = systems(range);
        Arrivals &barrier = barriers[stage * most_warps];

        if constexpr (SKEWED) {
            load_skewed(range, count, to, barrier);
            return;
        }
        if (part.thread == 0) {
            barrier.expect(max(count, 0) * bytes());
        }
        if (part.thread < count) {
            copy_bulk(to + inside(part.thread), outside(job.rhs, range, part.thread),
                      bytes(), barrier);
        }
    }

    __device__ __forceinline__ Skews skews(const SharedTileRange &range) const
    {
        if (!SKEWED) {
            return {};
        }
        const char *const first = job.rhs.data + range.line * job.rhs.line_step +
                                  range.first * job.rhs.lane_step;

        return {static_cast<uint32_t>(skew_of(reinterpret_cast<const Number *>(first))),
                static_cast<uint32_t>(job.rhs.lane_step /
                                      static_cast<int64_t>(sizeof(Number)))};
    }

    /* Wait until the tile is loaded; called together by the threads that share a part. */
    __device__ __forceinline__ void wait(int stage, int phase, int left) const
    {
        if (SKEWED || job.shape.copies == COPY_IN_BULK) {
            if (SKEWED) {
                wait_for_group(left);
            }
            barriers[stage * most_warps].wait(phase);
            if (SKEWED) {
                __syncwarp();
            }
            return;
        }
        wait_for_group(left);
        synchronize();
    }

    /* Barrier of all threads that share a part. */
    __device__ __forceinline__ void synchronize() const
    {
        if (job.shape.copies == COPY_BY_BLOCK) {
            __syncthreads();
        }
        else {
            __syncwarp();
        }
    }

    __device__ __forceinline__ void store(const SharedTileRange &range, int stage) const
    {
        char *const from = tiles + stage * job.shape.tile_bytes;

        if (!SKEWED && job.shape.copies != COPY_IN_BULK) {
            synchronize(); /* x is complete */
            store_part<Number>(job.x, range, part, from);
            return;
        }
        bulk_fence();
        __syncwarp();
        if constexpr (SKEWED) {
            each_run(
                range, systems(range), job.x, from,
                [&](const Run<Number> &run, int lane, Number *to, Number *x, int, int) {
                    if (lane == 7) {
                        run.store(to, x);
                    }
                    visit_rest(run, lane, [&](int i) { to[i] = x[i]; });
                });
            commit_stores();
        }
        else if (part.thread < systems(range)) {
            store_bulk(outside(job.x, range, part.thread), from + inside(part.thread),
                       bytes());
            commit_stores();
        }
    }

  private:
    /* visit(run, lane, in global memory, in the tile, skew of the system, system) for the parts of
     * the first `count` systems, by eight lanes each. */
    template <typename Visit>
    __device__ __forceinline__ void each_run(const SharedTileRange &range, int32_t count,
                                             const ps_cuda_route &route, char *tile,
                                             const Visit &visit) const
    {
        const Skews skew = skews(range);

        for (int32_t s = part.thread / 8; s < count; s += 4) {
            Number *const global = reinterpret_cast<Number *>(outside(route, range, s));
            Number *const shared =
                reinterpret_cast<Number *>(tile + inside(s)) + skew.of(s);

            visit(Run<Number>(skew_of(global), part.rows), part.thread % 8, global,
                  shared, skew.of(s), s);
        }
    }

    /* What lies between a boundary and a system are zeros, which pads read. */
    __device__ __forceinline__ void load_skewed(const SharedTileRange &range,
                                                int32_t count, char *to,
                                                Arrivals &barrier) const
    {
        __syncwarp(); /* what was here before has been stored */
        bulk_fence();
        each_run(range, part.systems, job.rhs, to,
                 [&](const Run<Number> &run, int lane, const Number *rhs, Number *x,
                     int32_t before, int32_t system) {
                     const bool there = system < count;

                     if (lane == 7) {
                         barrier.expect(there ? run.bytes() : 0);
                         if (there) {
                             run.load(x, rhs, barrier);
                         }
                     }
                     if (part.begin == 0 && lane < before) {
                         x[-1 - lane] = Number(0);
                     }
                     if (there) {
                         visit_rest(run, lane, [&](int i) {
                             copy_async<sizeof(Number)>(x + i, rhs + i);
                         });
                     }
                 });
    }

    __device__ __forceinline__ int32_t systems(const SharedTileRange &range) const
    {
        return min(range.systems, part.systems);
    }

    __device__ __forceinline__ unsigned bytes() const
    {
        return static_cast<unsigned>(part.rows * sizeof(Number));
    }

    __device__ __forceinline__ int32_t inside(int32_t system) const
    {
        const int32_t at = (part.first + system) * job.shape.pitch + part.begin;
        return static_cast<int32_t>(at * sizeof(Number));
    }

    __device__ __forceinline__ char *outside(const ps_cuda_route &route,
                                             const SharedTileRange &range,
                                             int32_t system) const
    {
        return route.data + range.line * route.line_step +
               (range.first + system) * route.lane_step +
               part.begin * static_cast<int64_t>(sizeof(Number));
    }
};

} // namespace pysolvers::shared

#endif
