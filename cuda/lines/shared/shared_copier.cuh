/* shared_copier.cuh - the locations of tiles and their copies.
 *
 * Either all threads of a block copy a tile, or each warp copies the rows on which it
 * works. In the second case warps wait for each other only if they share a system.
 */
#ifndef PS_CUDA_LINES_SHARED_SHARED_COPIER_CUH
#define PS_CUDA_LINES_SHARED_SHARED_COPIER_CUH

#include "lines/shared/shared_factor.cuh"

namespace pysolvers::shared {

/* The location of tile `at` of all lines, from the last one on: what was written last is
 * still in the cache. */
template <typename Number>
__device__ __forceinline__ SharedTileRange
range_of(const SharedJob<Number> &job, int64_t at)
{
    at = job.tiles * job.lines - 1 - at;
    const int64_t line = job.lines > 1 ? quotient(at, job.tiles) : 0;
    const int64_t first = (at - line * job.tiles) * job.slots, left = job.lanes - first;

    return {line, first, left < job.slots ? static_cast<int32_t>(left) : job.slots};
}

/* Loads and stores tiles; each thread copies its part. With bulk copies, a team has its
 * own tiles. */
template <typename Number> struct TileCopier {
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
        const int32_t reach = 32 * SharedLimits<Number>::rows;
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
        if (shape.copies == COPY_IN_BULK && lane == 0) {
            for (int k = 0; k < shape.stages; k++) {
                barriers[k * most_warps].init(1);
            }
        }
        __syncwarp();
    }

    __device__ __forceinline__ void load(const SharedTileRange &range, int stage) const
    {
        char *const to = tiles + stage * job.shape.tile_bytes;

        if (job.shape.copies != COPY_IN_BULK) {
            load_part<Number>(job.rhs, range, part, to);
            return;
        }
        const int32_t count = systems(range);
        Arrivals &barrier = barriers[stage * most_warps];

        if (part.thread == 0) {
            barrier.expect(max(count, 0) * bytes());
        }
        if (part.thread < count) {
            copy_bulk(to + inside(), outside(job.rhs, range), bytes(), barrier);
        }
    }

    /* Wait until the tile is loaded; called together by the threads that share a part. */
    __device__ __forceinline__ void wait(int stage, int phase, int left) const
    {
        if (job.shape.copies == COPY_IN_BULK) {
            barriers[stage * most_warps].wait(phase);
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

        if (job.shape.copies != COPY_IN_BULK) {
            synchronize(); /* x is complete */
            store_part<Number>(job.x, range, part, from);
            return;
        }
        bulk_fence();
        __syncwarp();
        if (part.thread < systems(range)) {
            store_bulk(outside(job.x, range), from + inside(), bytes());
            commit_stores();
        }
    }

  private:
    __device__ __forceinline__ int32_t systems(const SharedTileRange &range) const
    {
        return min(range.systems, part.systems);
    }

    __device__ __forceinline__ unsigned bytes() const
    {
        return static_cast<unsigned>(part.rows * sizeof(Number));
    }

    __device__ __forceinline__ int32_t inside() const
    {
        const int32_t at = (part.first + part.thread) * job.shape.pitch + part.begin;
        return static_cast<int32_t>(at * sizeof(Number));
    }

    __device__ __forceinline__ char *outside(const ps_cuda_route &route,
                                             const SharedTileRange &range) const
    {
        return route.data + range.line * route.line_step +
               (range.first + part.thread) * route.lane_step +
               part.begin * static_cast<int64_t>(sizeof(Number));
    }
};

} // namespace pysolvers::shared

#endif
