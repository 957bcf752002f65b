/* system_tiles.cuh - the loop of a block of threads over tiles of whole systems: frame of five_lines.cuh
 * and blocks_in_place.cuh.
 *
 * A block has tile blockIdx.x, that plus gridDim.x, and so on, of job.lines.systems systems each.
 * A system has the lanes of a part of a warp, of a warp, or of some warps, each with one chunk of
 * its rows.
 */
#ifndef PS_CUDA_LINES_SYSTEM_TILES_CUH
#define PS_CUDA_LINES_SYSTEM_TILES_CUH

#include "lines/blocks.h"
#include "lines/join/levels.cuh"

namespace pysolvers::lines {

/* A tile, and what this thread has of it. */
template <int ROWS> struct SystemTile {
    const join::Shape &shape;
    int64_t first;                /* system */
    int count;                    /* systems */
    join::ThreadPlace<ROWS> self; /* rows of a chunk, or pads only */
    bool is_used;                 /* the thread has a chunk */

    /* Wait for the threads that have the same systems. */
    __device__ __forceinline__ void wait() const
    {
        if (shape.warps > 1) {
            __syncthreads();
        }
        else {
            __syncwarp();
        }
    }

    /* The chunk in its system; 0 without one. */
    __device__ __forceinline__ int chunk() const
    {
        return is_used ? self.warp * shape.lanes + self.lane : 0;
    }
};

/* solve(tile) for the tiles of this block. */
template <int ROWS, typename Job, typename Solve>
__device__ __forceinline__ void
for_system_tiles(const Job &job, const Solve &solve)
{
    const join::Shape &shape = job.lines.shape;
    const join::ThreadPlace<ROWS> own(shape, 0);
    const int64_t systems = job.outer * job.inner, step = job.lines.systems;

#pragma unroll 1
    for (int64_t first = blockIdx.x * step; first < systems; first += gridDim.x * step) {
        const int count = static_cast<int>(min(step, systems - first));
        SystemTile<ROWS> tile = {shape, first, count, own,
                                 own.slot < count && own.lane < shape.lanes};

        if (!tile.is_used) {
            tile.self.clear();
        }
        solve(tile);
    }
}

} // namespace pysolvers::lines

#endif
