/* reduction_chunks.cuh - pcr of long systems, one block for each.
 *
 * The mapping of Wei et al. (2013) in which the block of a system iterates over its
 * chunks: as long as the rows that are still coupled are more than the block holds, a step
 * of pcr reads the system from memory and writes it to the workspace, as many rows at a
 * time as the block has threads. After `steps` steps, 2^steps systems are left, whose rows
 * are interleaved; the block solves them in shared memory, one after the other. The
 * arithmetic is that of several blocks, and so are the bits of the solution. Words per
 * row: 8 in each step through the workspace, 5 in the last part. No gain asked for this
 * kernel: it is a mapping of the paper, which the experiment of its Table 2 compares.
 */
#ifndef PS_CUDA_LINES_REDUCTION_REDUCTION_CHUNKS_CUH
#define PS_CUDA_LINES_REDUCTION_REDUCTION_CHUNKS_CUH

#include "lines/reduction/reduction_block.cuh"
#include "lines/reduction/reduction_global.cuh"

namespace pysolvers::reduction {

/* A step of pcr on the system of this block, chunk after chunk. */
template <typename Batch>
__device__ __forceinline__ void
reduce_chunks(const Batch &e, int32_t reach, typename Batch::Number *to)
{
    const Part<Batch> part(e, blockIdx.x);
    const int32_t chunk = static_cast<int32_t>(blockDim.x);

    for (int32_t first = 0; first < e.rows; first += chunk) {
        const int32_t i = first + static_cast<int32_t>(threadIdx.x);

        if (i < e.rows) {
            reduce_row(part, i, 1, reach, to, e.rows);
        }
    }
    __syncthreads(); /* the next step reads these rows */
}

/* Grid: a block for each system. Block: p.lanes threads. Shared memory: p.pitch numbers.
 * `to` and `other` have the rows of all systems; steps >= 1. */
template <typename Batch>
__global__ void
__launch_bounds__(block_threads<typename Batch::Number>)
    chunk_kernel(const __grid_constant__ Batch e, typename Batch::Number *to,
                 typename Batch::Number *other, const __grid_constant__ ps_cuda_on_chip p,
                 int32_t steps)
{
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    auto *const mine = reinterpret_cast<typename Batch::Number *>(shared_bytes);
    using Kept = Equations<typename Batch::Number, Batch::sides>;

    reduce_chunks(e, 1, to);
    Kept left = kept_equations<typename Batch::Number, Batch::sides>(e, to, e.rows);
    for (int32_t step = 1; step < steps; step++) {
        typename Batch::Number *const next = step % 2 == 1 ? other : to;

        reduce_chunks(left, 1 << step, next);
        left = kept_equations(left, next, e.rows);
    }
    left.classes = 1 << steps;
    for (int32_t q = 0; q < left.classes; q++) {
        solve_part(left, p, static_cast<int64_t>(blockIdx.x) * left.classes + q, mine);
        __syncthreads(); /* the next one takes the shared memory */
    }
}

} // namespace pysolvers::reduction

#endif
