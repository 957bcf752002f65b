/* mailbox.cuh - messages between blocks through global memory.
 *
 * A slot holds a word and the number of its round. Both are stored and loaded as one
 * atomic access of 128 bits, so that a reader that finds the expected number also has
 * the word. No fence is needed.
 */
#ifndef PS_CUDA_DEVICE_MAILBOX_CUH
#define PS_CUDA_DEVICE_MAILBOX_CUH

#include <cstdint>

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

/* The same between devices. */
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
