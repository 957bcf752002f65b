/* tile_copy.cuh - tiles of arrays of three axes, brought and stored by the copy engine.
 *
 * A tensor map tells it how the array lies in memory and how large a tile is: one thread
 * starts a whole one, that no warp's own accesses wait behind. From sm_90 on.
 */
#ifndef PS_CUDA_DEVICE_TILE_COPY_CUH
#define PS_CUDA_DEVICE_TILE_COPY_CUH

#include <cuda.h>

#include "runtime/copy.cuh"

namespace pysolvers::device {

using namespace runtime;

/* What becomes of lines in the second-level cache: they are the first, or the last, to
 * leave it. */
#if __CUDA_ARCH__ >= 900
#define PS_POLICY(name, priority)                                                    \
    __device__ __forceinline__ uint64_t name()                                       \
    {                                                                                \
        uint64_t policy;                                                             \
        asm("createpolicy.fractional.L2::" priority ".b64 %0, 1.0;" : "=l"(policy)); \
        return policy;                                                               \
    }
#else
#define PS_POLICY(name, priority)              \
    __device__ __forceinline__ uint64_t name() \
    {                                          \
        return 0;                              \
    }
#endif
PS_POLICY(first_to_leave, "evict_first")
PS_POLICY(last_to_leave, "evict_last")
#undef PS_POLICY

/* The tile that begins at (i, j, k). The bytes of a whole one count: what lies outside of
 * the array is zeros. */
__device__ __forceinline__ void
copy_tile(void *shared, const CUtensorMap &map, int i, int j, int k, Arrivals &arrivals)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier"
                 "::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
                     shared_address(shared)),
                 "l"(&map), "r"(i), "r"(j), "r"(k), "r"(shared_address(&arrivals.state))
                 : "memory");
#endif
}

__device__ __forceinline__ void
copy_tile(void *shared, const CUtensorMap &map, int i, int j, int k, Arrivals &arrivals,
          uint64_t policy)
{
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier"
        "::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(
            shared_address(shared)),
        "l"(&map), "r"(i), "r"(j), "r"(k), "r"(shared_address(&arrivals.state)),
        "l"(policy)
        : "memory");
#endif
}

/* The same way back, as store_bulk(); what lies outside is not stored. */
__device__ __forceinline__ void
store_tile(const CUtensorMap &map, int i, int j, int k, const void *shared)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group "
                 "[%0, {%1, %2, %3}], [%4];" ::"l"(&map),
                 "r"(i), "r"(j), "r"(k), "r"(shared_address(shared))
                 : "memory");
#endif
}

__device__ __forceinline__ void
store_tile(const CUtensorMap &map, int i, int j, int k, const void *shared,
           uint64_t policy)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group"
                 ".L2::cache_hint [%0, {%1, %2, %3}], [%4], %5;" ::"l"(&map),
                 "r"(i), "r"(j), "r"(k), "r"(shared_address(shared)), "l"(policy)
                 : "memory");
#endif
}

/* store_bulk() of what is to be the last to leave. */
__device__ __forceinline__ void
store_bulk_to_stay(void *global, const void *shared, uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint "
                 "[%0], [%1], %2, %3;" ::"l"(global),
                 "r"(shared_address(shared)), "r"(bytes), "l"(last_to_leave())
                 : "memory");
#endif
}

/* stores_read() of all tiles that were committed but the last COUNT. */
template <int COUNT>
__device__ __forceinline__ void
stores_read_but()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(COUNT) : "memory");
#endif
}

} // namespace pysolvers::device

#endif
