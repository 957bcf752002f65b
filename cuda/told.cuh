/* told.cuh - words that blocks tell each other through memory.
 *
 * A word comes with the number of the round it belongs to, stored and loaded at once: who
 * finds the number has the word, and no fence is needed.
 */
#ifndef PS_CUDA_TOLD_CUH
#define PS_CUDA_TOLD_CUH

#include <cstdint>

struct alignas(16) ToldWord {
    uint64_t word, round;
};

/* Where a thread is: teams are `groups` blocks each, one behind the other in the grid. */
struct TeamPlace {
    int64_t team;
    int group, warp, lane;

    __device__ __forceinline__ explicit TeamPlace(int groups)
        : team(blockIdx.x / groups), group(blockIdx.x % groups), warp(threadIdx.x / 32),
          lane(threadIdx.x % 32)
    {
    }
};

__device__ __forceinline__ void
tell_word(ToldWord *to, const ToldWord &w)
{
#if __CUDA_ARCH__ >= 700
    asm volatile("{\n\t.reg .b128 both;\n\t"
                 "mov.b128 both, {%1, %2};\n\t"
                 "st.relaxed.gpu.global.b128 [%0], both;\n\t}" ::"l"(to),
                 "l"(w.word), "l"(w.round)
                 : "memory");
#endif
}

__device__ __forceinline__ ToldWord
hear_word(const ToldWord *from)
{
    ToldWord w = {};

#if __CUDA_ARCH__ >= 700
    asm volatile("{\n\t.reg .b128 both;\n\t"
                 "ld.relaxed.gpu.global.b128 both, [%2];\n\t"
                 "mov.b128 {%0, %1}, both;\n\t}"
                 : "=l"(w.word), "=l"(w.round)
                 : "l"(from)
                 : "memory");
#endif
    return w;
}

#endif
