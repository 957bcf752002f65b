/* mailbox.cuh - messages between blocks through global memory.
 *
 * A slot holds a word and the number of its round. Both are stored and loaded as one
 * atomic access of 128 bits, so that a reader that finds the expected number also has
 * the word. No fence is needed.
 */
#ifndef PS_CUDA_DEVICE_MAILBOX_CUH
#define PS_CUDA_DEVICE_MAILBOX_CUH

#include <cstdint>
#include <cstring>

namespace pysolvers::device {

struct alignas(16) MailboxSlot {
    uint64_t word, round;
};

/* The place of a thread. A team has `groups` blocks, which follow each other in the
 * grid. */
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
post_word(MailboxSlot *to, const MailboxSlot &w)
{
#if __CUDA_ARCH__ >= 700
    asm volatile("{\n\t.reg .b128 both;\n\t"
                 "mov.b128 both, {%1, %2};\n\t"
                 "st.relaxed.gpu.global.b128 [%0], both;\n\t}" ::"l"(to),
                 "l"(w.word), "l"(w.round)
                 : "memory");
#endif
}

__device__ __forceinline__ MailboxSlot
poll_word(const MailboxSlot *from)
{
    MailboxSlot w = {};

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

/* Load the words of slot(i), 0 <= i < COUNT, for which is_asked(i), until all lanes of the
 * warp have found the number of the round in each of theirs. All words are requested at
 * once. With ONLY_MISSING, those that have arrived are not requested again. */
template <bool ONLY_MISSING, int COUNT, typename IsAsked, typename Slot>
__device__ __forceinline__ void
poll_words(MailboxSlot (&w)[COUNT], uint64_t round, const IsAsked &is_asked,
           const Slot &slot)
{
    bool is_posted;

    do {
        is_posted = true;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            if (is_asked(i) && !(ONLY_MISSING && w[i].round == round)) {
                w[i] = poll_word(slot(i));
            }
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            is_posted = is_posted && (!is_asked(i) || w[i].round == round);
        }
    } while (!__all_sync(~0u, is_posted));
}

/* The exchange of the blocks of a team in one round, for one of its columns: each block posts
 * a unit. The words of a unit are `pitch` slots apart, so that the lanes of a warp, which have
 * neighbouring columns, post and poll neighbouring slots. */
template <typename Unit> struct TeamMailbox {
    static constexpr int words = sizeof(Unit) / sizeof(uint64_t);
    MailboxSlot *first;
    int pitch;

    __device__ __forceinline__ MailboxSlot *slot(int group, int word) const
    {
        return first + (group * words + word) * pitch;
    }
    __device__ __forceinline__ void post(int group, const Unit &unit,
                                         uint64_t number) const
    {
        uint64_t word[words];

        memcpy(word, &unit, sizeof unit);
#pragma unroll
        for (int k = 0; k < words; k++) {
            post_word(slot(group, k), {word[k], number});
        }
    }
};

/* The time, for waits that are bounded. */
__device__ __forceinline__ uint64_t
nanoseconds()
{
    uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

/* Messages between devices. */
__device__ __forceinline__ void
post_word_to_device(MailboxSlot *to, const MailboxSlot &w)
{
#if __CUDA_ARCH__ >= 700
    asm volatile("{\n\t.reg .b128 both;\n\t"
                 "mov.b128 both, {%1, %2};\n\t"
                 "st.relaxed.sys.global.b128 [%0], both;\n\t}" ::"l"(to),
                 "l"(w.word), "l"(w.round)
                 : "memory");
#endif
}

__device__ __forceinline__ MailboxSlot
poll_word_of_device(const MailboxSlot *from)
{
    MailboxSlot w = {};

#if __CUDA_ARCH__ >= 700
    asm volatile("{\n\t.reg .b128 both;\n\t"
                 "ld.relaxed.sys.global.b128 both, [%2];\n\t"
                 "mov.b128 {%0, %1}, both;\n\t}"
                 : "=l"(w.word), "=l"(w.round)
                 : "l"(from)
                 : "memory");
#endif
    return w;
}

} // namespace pysolvers::device

#endif
