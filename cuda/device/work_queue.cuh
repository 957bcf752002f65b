/* work_queue.cuh - tiles that blocks take from an atomic counter.
 *
 * Multiprocessors differ in their distance to the memory: with equal shares, 20 % of
 * them finish after 80 % of the time. If there are many tiles, the first ones are
 * therefore distributed equally, and blocks draw the others from an atomic counter in
 * the workspace. The value that a block draws is its ticket.
 *
 * A ticket is drawn where its latency costs no time and used as late as the loads allow, which
 * is another place in each of three kernels: partition.cuh draws after the loads of the next
 * tile, or with several devices just before them (95 instead of 76 % of a copy);
 * ColumnTileScheduler draws before the elimination, because its ring loads two tiles ahead,
 * and sends the ticket with the messages of the cluster; SharedTileScheduler draws for each
 * team of threads that shares no barrier with the others.
 */
#ifndef PS_CUDA_DEVICE_WORK_QUEUE_CUH
#define PS_CUDA_DEVICE_WORK_QUEUE_CUH

#include "runtime/elements.cuh"

namespace pysolvers::device {

using namespace runtime;

/* Whether a work queue saves time for `pieces` tiles and `takers` blocks that draw
 * them. */
inline bool
pays_for_work_queue(int64_t pieces, int64_t takers)
{
    return pieces >= 16 * takers && pieces <= INT32_MAX;
}

/* Elements between two counters, so that each has cache lines of its own. */
static constexpr int work_queue_pitch = 64;

inline size_t
work_queue_bytes(int counters)
{
    return counters * work_queue_pitch * sizeof(uint32_t);
}

/* Elements: the counters. */
struct ClearCounter {
    uint32_t *work_queue;

    __device__ __forceinline__ void operator()(int64_t i) const
    {
        let_next_kernel_in();
        work_queue[i * work_queue_pitch] = 0;
    }
};

/* Clear the counters before a kernel that draws tickets and is launched with
 * programmatic dependent launch. Memory that was written before the call is complete
 * when that kernel starts, but the kernel must call wait_for_last_kernel() before it
 * draws its first ticket. */
inline ps_status
clear_work_queue(uint32_t *work_queue, int counters, cudaStream_t stream)
{
    return for_elements<32>(counters, stream, ClearCounter{work_queue});
}

} // namespace pysolvers::device

#endif
