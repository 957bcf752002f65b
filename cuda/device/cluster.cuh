/* cluster.cuh - the blocks of a cluster: their barrier, and words sent to one another.
 *
 * From sm_90 on. Elsewhere a cluster is one block, and nothing here is ever reached. What
 * is sent counts itself at the receiver's Arrivals: so nobody waits for more than he
 * needs, and no fence holds up the copies in flight, as a cluster barrier's would.
 */
#ifndef PS_CUDA_DEVICE_CLUSTER_CUH
#define PS_CUDA_DEVICE_CLUSTER_CUH

#include "runtime/copy.cuh"

namespace pysolvers::device {

using namespace runtime;

/* Which block of its cluster this is, and which cluster of the grid. */
__device__ __forceinline__ unsigned
rank_in_cluster()
{
    unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return rank;
}

__device__ __forceinline__ unsigned
cluster_of_grid()
{
    unsigned cluster = blockIdx.x;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(cluster));
#endif
    return cluster;
}

/* All threads of all blocks meet; what they wrote before is visible after. */
__device__ __forceinline__ void
cluster_sync()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;\n\t"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
#endif
}

/* The same in two steps, by all threads: what is there between them is not waited for. */
__device__ __forceinline__ void
cluster_arrive()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

/* The first step, by threads that have read what others overwrite behind the second. */
__device__ __forceinline__ void
cluster_arrive_read()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void
cluster_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

/* Where `shared`, of this block, lies in block `rank`. */
__device__ __forceinline__ unsigned
address_in_block(const void *shared, unsigned rank)
{
    unsigned address = shared_address(shared);
#if __CUDA_ARCH__ >= 900
    asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(rank));
#endif
    return address;
}

/* What `*shared` is in block `rank`; cluster_sync() before and after. */
__device__ __forceinline__ int
read_from_block(const int *shared, unsigned rank)
{
    int value = *shared;
#if __CUDA_ARCH__ >= 900
    asm volatile("ld.shared::cluster.s32 %0, [%1];"
                 : "=r"(value)
                 : "r"(address_in_block(shared, rank))
                 : "memory");
#endif
    return value;
}

__device__ __forceinline__ void
send_word(unsigned to, uint32_t word, unsigned arrivals)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 "
                 "[%0], %1, [%2];" ::"r"(to),
                 "r"(word), "r"(arrivals)
                 : "memory");
#endif
}

__device__ __forceinline__ void
send_word(unsigned to, uint64_t word, unsigned arrivals)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 "
                 "[%0], %1, [%2];" ::"r"(to),
                 "l"(word), "r"(arrivals)
                 : "memory");
#endif
}

__device__ __forceinline__ void
send_word(unsigned to, uint4 words, unsigned arrivals)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
                 "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w), "r"(arrivals)
                 : "memory");
#endif
}

/* Send `message` to the place of `*to` in block `rank`: sizeof(Message) bytes. Each word
 * travels alone: the wider, the sooner all are there. */
template <typename Message>
__device__ __forceinline__ void
send(const Message *to, const Message &message, const Arrivals &arrivals, unsigned rank)
{
    using Word = typename Message::word;
    constexpr int words = sizeof(Message) / sizeof(Word);
    const unsigned place = address_in_block(to, rank);
    const unsigned counter = address_in_block(&arrivals, rank);
    Word word[words];

    memcpy(word, &message, sizeof message);
#pragma unroll
    for (int i = 0; i < words; i++) {
        send_word(place + i * static_cast<unsigned>(sizeof(Word)), word[i], counter);
    }
}

} // namespace pysolvers::device

#endif
