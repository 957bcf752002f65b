/* claims.cuh - blocks that claim their work piece by piece.
 *
 * Some multiprocessors are nearer to the memory than others: with equal shares a fifth of
 * them end when a fifth of the time is left. So where there are many pieces, blocks take
 * them from a counter in the workspace, those beyond the first ones, which are shared
 * out.
 */
#ifndef PS_CUDA_CLAIMS_CUH
#define PS_CUDA_CLAIMS_CUH

#include "launch.cuh"

/* Whether so many pieces are to be claimed by so many takers. */
inline bool
are_claimed(int64_t pieces, int64_t takers)
{
    return pieces >= 16 * takers && pieces <= INT32_MAX;
}

/* From one counter to the next: so far that they are not counted in one place. */
static constexpr int claims_pitch = 64;

inline size_t
claims_bytes(int counters)
{
    return counters * claims_pitch * sizeof(uint32_t);
}

static __global__ void
clear_claims_kernel(uint32_t *claims)
{
    wait_for_last_kernel();
    let_next_kernel_in();
    claims[threadIdx.x * claims_pitch] = 0;
}

/* Before a kernel that claims, which is launched closely: it finds all there that was
 * written before, but calls wait_for_last_kernel() before it claims for the first time.
 */
inline ps_status
clear_claims(uint32_t *claims, int counters, cudaStream_t stream)
{
    return launch_closely(clear_claims_kernel, 1, counters, 0, stream, claims);
}

#endif
