/* copy.cuh - asynchronous copies between global and shared memory.
 *
 * Element by element or 16 bytes a thread from sm_80 on; in bulk by the copy engine from
 * sm_90 on, where one thread starts what may be many kilobytes. Elsewhere the first are
 * plain copies, and the second do not exist: has_bulk is false.
 */
#ifndef PS_CUDA_RUNTIME_COPY_CUH
#define PS_CUDA_RUNTIME_COPY_CUH

#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

namespace pysolvers::runtime {

#if __CUDA_ARCH__ >= 900 /* device code asks; the host does not know */
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

/* The same of what lies in a line of memory whose rest is wanted soon as well, by this
 * block or by another: the cache then asks the memory for all of it at once. */
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

/* 16 bytes by way of the first-level cache: a sector of 32 bytes comes once even where
 * the two sides differ in their place in it. */
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

/* 8 or 16 bytes, or zeros. */
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
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to),
                     "l"(global), "r"(bytes)
                     : "memory");
    }
#else
    using Words = std::conditional_t<BYTES == 16, int4, int2>;
    *static_cast<Words *>(shared) =
        copies ? *static_cast<const Words *>(global) : Words{};
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

/* All copies that this thread has started so far, since the last time, are a group. */
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

/* Where bulk copies to shared memory are counted, phase after phase. */
struct Arrivals {
    uint64_t state;

    /* By one thread; __syncthreads() before any use. */
    __device__ __forceinline__ void init(int threads)
    {
#if __CUDA_ARCH__ >= 900
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n\t"
                     "fence.mbarrier_init.release.cluster;" ::"r"(shared_address(&state)),
                     "r"(threads)
                     : "memory");
#endif
    }
    /* Of each phase by as many threads as init said. */
    __device__ __forceinline__ void arrive()
    {
#if __CUDA_ARCH__ >= 900
        asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(
                         shared_address(&state))
                     : "memory");
#endif
    }
    /* The same: `bytes` more are to come. */
    __device__ __forceinline__ void expect(uint32_t bytes)
    {
#if __CUDA_ARCH__ >= 900
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                         shared_address(&state)),
                     "r"(bytes)
                     : "memory");
#endif
    }
    /* The same by a thread without a transfer in bulk, when all the other copies that it
     * has started are there. */
    __device__ __forceinline__ void expect_copies()
    {
#if __CUDA_ARCH__ >= 900
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(
                         shared_address(&state))
                     : "memory");
#endif
    }
    /* Wait for the end of a phase; the phases' parities are 0, 1, 0, ... */
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

/* Copy 16-byte aligned bytes, a multiple of 16, by one thread. */
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

/* The same way back; bulk_fence() by the writers of `shared` and a barrier before. */
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

/* Before bulk copies touch shared memory that threads have read or written. */
__device__ __forceinline__ void
bulk_fence()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* End of this thread's bulk stores of a tile. */
__device__ __forceinline__ void
commit_stores()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}

/* The shared memory that this thread's bulk stores read may be written again. */
__device__ __forceinline__ void
stores_read()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

/* This thread's bulk stores are in memory. */
__device__ __forceinline__ void
stores_written()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}

} // namespace pysolvers::runtime

#endif
