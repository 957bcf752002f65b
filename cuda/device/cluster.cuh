/* cluster.cuh - thread block clusters: rank, barrier, and messages through distributed
 * shared memory.
 *
 * Clusters exist from sm_90 on. On other architectures a cluster is one block, and the
 * functions below for other blocks are not used for them. The bytes of a message are
 * counted by a transaction barrier (Arrivals) of the receiver. The receiver therefore
 * waits for these bytes only, and needs no cluster barrier, whose fence would also wait
 * for the copies in flight.
 */
#ifndef PS_CUDA_DEVICE_CLUSTER_CUH
#define PS_CUDA_DEVICE_CLUSTER_CUH

#include "runtime/copy.cuh"

namespace pysolvers::device {

using namespace runtime;

/* The rank of this block in its cluster. */
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

/* Barrier of all threads of all blocks of a cluster; memory written before it is
 * visible after it. */
__device__ __forceinline__ void
cluster_sync()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;\n\t"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
#endif
}

/* The same barrier in two parts, each called by all threads. A thread does not wait
 * between the parts. */
__device__ __forceinline__ void
cluster_arrive()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

/* The first part without a release of memory: for threads that have only read what
 * other threads overwrite after the second part. */
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

/* The address in block `rank` that corresponds to `shared` in this block, for messages. */
__device__ __forceinline__ unsigned
address_in_block(const void *shared, unsigned rank)
{
    unsigned address = shared_address(shared);
#if __CUDA_ARCH__ >= 900
    asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(rank));
#endif
    return address;
}

/* `shared` in block `rank`, for loads and stores between two calls of cluster_sync(). The address is
 * generic: compilers take a pointer from address_in_block() for one to the shared memory of this block. */
template <typename T>
__device__ __forceinline__ T &
in_block(T &shared, unsigned rank)
{
    T *there = &shared;
#if __CUDA_ARCH__ >= 900
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(&shared), "r"(rank));
#endif
    return *there;
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

/* Send `message`, sizeof(Message) bytes, to the address of `*to` in block `rank`. Each
 * word is one store; wide words need fewer of them. */
template <typename Message>
__device__ __forceinline__ void
send(const Message *to, const Message &message, const Arrivals &arrivals, unsigned rank)
{
    using Word = typename Message::word;
    constexpr int words = sizeof(Message) / sizeof(Word);
    static_assert(words * sizeof(Word) == sizeof(Message), "a message has whole words");
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
