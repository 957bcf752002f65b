/* copy.cuh - asynchronous copies between global and shared memory.
 *
 * From sm_80 on, each thread copies elements or 16 bytes. From sm_90 on, one thread can
 * also start a bulk copy of many kilobytes, which the copy engine performs. On older
 * architectures the former are synchronous copies and the latter do not exist: has_bulk
 * is false.
 */
#ifndef PS_CUDA_RUNTIME_COPY_CUH
#define PS_CUDA_RUNTIME_COPY_CUH

#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

namespace pysolvers::runtime {

/* for device code only: the host pass does not know the architecture */
#if __CUDA_ARCH__ >= 900
static constexpr bool has_bulk = true;
#else
static constexpr bool has_bulk = false;
#endif

__device__ __forceinline__ unsigned
shared_address(const void *shared)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

template <int BYTES>
__device__ __forceinline__ void
copy_async(void *shared, const void *global)
{
#if __CUDA_ARCH__ >= 800
    const unsigned to = shared_address(shared);

    if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global)
                     : "memory");
    }
    else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global),
                     "n"(BYTES)
                     : "memory");
    }
#else
    if (BYTES == 16) {
        *static_cast<int4 *>(shared) = *static_cast<const int4 *>(global);
    }
    else if (BYTES == 8) {
        *static_cast<int2 *>(shared) = *static_cast<const int2 *>(global);
    }
    else {
        *static_cast<int *>(shared) = *static_cast<const int *>(global);
    }
#endif
}

/* copy_async() of bytes from a cache line whose other bytes are needed soon as well, by
 * this block or another one: the cache then loads the whole line at once. */
template <int BYTES>
__device__ __forceinline__ void
copy_async_of_line(void *shared, const void *global)
{
#if __CUDA_ARCH__ >= 800
    const unsigned to = shared_address(shared);

    if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to),
                     "l"(global)
                     : "memory");
    }
    else {
        asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2;" ::"r"(to),
                     "l"(global), "n"(BYTES)
                     : "memory");
    }
#else
    copy_async<BYTES>(shared, global);
#endif
}

/* Copy 4, 8 or 16 bytes, or write zeros. */
template <int BYTES>
__device__ __forceinline__ void
copy_async_or_clear(void *shared, const void *global, bool copies)
{
#if __CUDA_ARCH__ >= 800
    const unsigned to = shared_address(shared);
    const int bytes = copies ? BYTES : 0;

    if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                     "l"(global), "r"(bytes)
                     : "memory");
    }
    else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to),
                     "l"(global), "n"(BYTES), "r"(bytes)
                     : "memory");
    }
#else
    using Words =
        std::conditional_t<BYTES == 16, int4, std::conditional_t<BYTES == 8, int2, int>>;
    *static_cast<Words *>(shared) =
        copies ? *static_cast<const Words *>(global) : Words{};
#endif
}

/* Copy 16 bytes through the L1 cache, so that a sector of 32 bytes is loaded once even
 * if source and target differ in their alignment to sectors. */
__device__ __forceinline__ void
copy_async_cached(void *shared, const void *global)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 16;" ::"r"(
                     shared_address(shared)),
                 "l"(global)
                 : "memory");
#else
    copy_async<16>(shared, global);
#endif
}

/* Start the load of a line of memory to the L2 cache. */
__device__ __forceinline__ void
prefetch_line(const void *global)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

/* copy_async_of_line(), or zeros instead of the copy. */
template <int BYTES>
__device__ __forceinline__ void
copy_async_of_line_or_clear(void *shared, const void *global, bool copies)
{
#if __CUDA_ARCH__ >= 800
    const unsigned to = shared_address(shared), skips = copies ? 0 : 1;

    if (BYTES == 16) {
        asm volatile(
            "{ .reg .pred skips; setp.ne.u32 skips, %2, 0;\n\t"
            "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, skips; }" ::"r"(to),
            "l"(global), "r"(skips)
            : "memory");
    }
    else {
        asm volatile(
            "{ .reg .pred skips; setp.ne.u32 skips, %3, 0;\n\t"
            "cp.async.ca.shared.global.L2::128B [%0], [%1], %2, skips; }" ::"r"(to),
            "l"(global), "n"(BYTES), "r"(skips)
            : "memory");
    }
#else
    copy_async_or_clear<BYTES>(shared, global, copies);
#endif
}

/* copy_async_cached(), or zeros instead of the copy. */
__device__ __forceinline__ void
copy_async_cached_or_clear(void *shared, const void *global, bool copies)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("{ .reg .pred skips; setp.ne.u32 skips, %2, 0;\n\t"
                 "cp.async.ca.shared.global.L2::128B [%0], [%1], 16, skips; }" ::"r"(
                     shared_address(shared)),
                 "l"(global), "r"(copies ? 0 : 1)
                 : "memory");
#else
    copy_async_or_clear<16>(shared, global, copies);
#endif
}

/* Wait for the copies that this thread has started. */
__device__ __forceinline__ void
copies_done()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* Make a group of the copies that this thread has started since its last group. */
__device__ __forceinline__ void
copies_committed()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Wait for all groups of this thread but the last COUNT. */
template <int COUNT>
__device__ __forceinline__ void
copies_done_but()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(COUNT) : "memory");
#endif
}

/* A transaction barrier (mbarrier) in shared memory. It counts threads and the bytes of
 * copies, phase after phase. */
struct Arrivals {
    uint64_t state;

    /* Called by one thread; __syncthreads() before any other call. */
    __device__ __forceinline__ void init(int threads)
    {
#if __CUDA_ARCH__ >= 900
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n\t"
                     "fence.mbarrier_init.release.cluster;" ::"r"(shared_address(&state)),
                     "r"(threads)
                     : "memory");
#endif
    }
    /* Arrive at the current phase; each phase needs as many arrivals as init() was
     * given. */
    __device__ __forceinline__ void arrive()
    {
#if __CUDA_ARCH__ >= 900
        asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(
                         shared_address(&state))
                     : "memory");
#endif
    }
    /* Arrive, and let the phase also wait for `bytes` more bytes. */
    __device__ __forceinline__ void expect(uint32_t bytes)
    {
#if __CUDA_ARCH__ >= 900
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                         shared_address(&state)),
                     "r"(bytes)
                     : "memory");
#endif
    }
    /* Arrive, by a thread that started no bulk copy, when all its other copies are
     * complete. */
    __device__ __forceinline__ void expect_copies()
    {
#if __CUDA_ARCH__ >= 900
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(
                         shared_address(&state))
                     : "memory");
#endif
    }
    /* Wait for the end of a phase; the parities of the phases are 0, 1, 0, and so on. */
    __device__ __forceinline__ void wait(int parity)
    {
#if __CUDA_ARCH__ >= 900
        asm volatile("{\n\t.reg .pred done;\n"
                     "again:\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
                     "@!done bra again;\n\t}" ::"r"(shared_address(&state)),
                     "r"(parity)
                     : "memory");
#endif
    }
};

/* A slot of a ring that a loader fills in turn, and the parity of the uses of its barriers. */
struct RingPlace {
    int32_t slot, parity;

    __device__ __forceinline__ void advance(int32_t slots)
    {
        if (++slot == slots) {
            slot = 0;
            parity ^= 1;
        }
    }
    /* Wait for the barrier of the slot, of so many slots, and advance; returns the slot. */
    __device__ __forceinline__ int32_t wait(Arrivals *barriers, int32_t slots)
    {
        const int32_t now = slot;

        barriers[now].wait(parity);
        advance(slots);
        return now;
    }
};

/* Copy to shared memory, by one thread. Addresses and size are multiples of 16 bytes. */
__device__ __forceinline__ void
copy_bulk(void *shared, const void *global, uint32_t bytes, Arrivals &arrivals)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared_address(shared)),
                 "l"(global), "r"(bytes), "r"(shared_address(&arrivals.state))
                 : "memory");
#endif
}

/* Copy to global memory, by one thread. The threads that wrote `shared` call
 * bulk_fence(), and a barrier follows, before this call. */
__device__ __forceinline__ void
store_bulk(void *global, const void *shared, uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
        "r"(shared_address(shared)), "r"(bytes)
        : "memory");
#endif
}

/* Order reads and writes of shared memory by threads before later bulk copies. */
__device__ __forceinline__ void
bulk_fence()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* Make a group of the bulk stores that this thread has started since its last group. */
__device__ __forceinline__ void
commit_stores()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}

/* Wait until the bulk stores of this thread have read shared memory, which may then be
 * overwritten. */
__device__ __forceinline__ void
stores_read()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

/* Wait until the bulk stores of this thread are complete in global memory. */
__device__ __forceinline__ void
stores_written()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}

} // namespace pysolvers::runtime

#endif
