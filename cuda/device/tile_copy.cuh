/* tile_copy.cuh - copies of tiles of three-dimensional arrays by tensor maps.
 *
 * A tensor map describes the layout of the array and the size of a tile (tensor_map.h).
 * One thread starts the copy of a whole tile, which the copy engine performs; loads and
 * stores of the warps are not queued behind it. From sm_90 on.
 */
#ifndef PS_CUDA_DEVICE_TILE_COPY_CUH
#define PS_CUDA_DEVICE_TILE_COPY_CUH

#include <cuda.h>

#include "runtime/copy.cuh"

namespace pysolvers::device {

using namespace runtime;

/* Policies of the L2 cache: the lines of a copy are evicted first, or last. */
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
PS_POLICY(evict_first_policy, "evict_first")
PS_POLICY(evict_last_policy, "evict_last")
PS_POLICY(usual_policy, "evict_normal")
#undef PS_POLICY

/* Load the tile that begins at (i, j, k). The barrier counts the bytes of a whole tile;
 * elements outside of the array become 0. */
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

/* Store a tile, asynchronously like store_bulk(); elements outside of the array are not
 * stored. */
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

/* copy_bulk() with a policy. */
__device__ __forceinline__ void
copy_bulk(void *shared, const void *global, uint32_t bytes, Arrivals &arrivals,
          uint64_t policy)
{
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(shared)),
        "l"(global), "r"(bytes), "r"(shared_address(&arrivals.state)), "l"(policy)
        : "memory");
#endif
}

/* copy_async_of_line_or_clear() with a policy. */
template <int BYTES>
__device__ __forceinline__ void
copy_async_of_line_or_clear(void *shared, const void *global, bool copies,
                            uint64_t policy)
{
#if __CUDA_ARCH__ >= 900
    const unsigned to = shared_address(shared), skips = copies ? 0 : 1;

    if (BYTES == 16) {
        asm volatile("{ .reg .pred skips; setp.ne.u32 skips, %2, 0;\n\t"
                     "cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, "
                     "skips, %3; }" ::"r"(to),
                     "l"(global), "r"(skips), "l"(policy)
                     : "memory");
    }
    else {
        asm volatile("{ .reg .pred skips; setp.ne.u32 skips, %3, 0;\n\t"
                     "cp.async.ca.shared.global.L2::cache_hint.L2::128B [%0], [%1], %2, "
                     "skips, %4; }" ::"r"(to),
                     "l"(global), "n"(BYTES), "r"(skips), "l"(policy)
                     : "memory");
    }
#else
    copy_async_of_line_or_clear<BYTES>(shared, global, copies);
#endif
}

/* store_bulk() with the policy that its lines are evicted last. */
__device__ __forceinline__ void
store_bulk_evict_last(void *global, const void *shared, uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint "
                 "[%0], [%1], %2, %3;" ::"l"(global),
                 "r"(shared_address(shared)), "r"(bytes), "l"(evict_last_policy())
                 : "memory");
#endif
}

/* stores_read() for all committed tiles but the last COUNT. */
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
