/* barrier.cu - a barrier of streams of several devices, one thread for each of the others.
 *
 * A kernel of one warp posts the number of the round to all other devices and polls for theirs.
 * What the kernels before it wrote, also to the memory of other devices, precedes its messages
 * (__threadfence_system()), and what it received precedes the kernels after it.
 *
 * Why a kernel of its own: messages of cudaMemcpy() and of kernels of any solver travel between two
 * kernels, without a host that waits for its device. FastPoisson of 512^3 cells on two H200 takes
 * 2.50 ms in place of 3.14, and HeatADI of 768^3 nodes a GPU makes the steps of a call without a
 * wait. The loop that polls is not poll_words() of device/mailbox.cuh: a thread waits for one
 * word, and gives up.
 */
#include "device/barrier.h"

#include "device/mailbox.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::device {

using namespace runtime;

static_assert(sizeof(MailboxSlot) == PS_PART_SLOT_BYTES);

namespace {

struct Barrier {
    MailboxSlot
        *mailbox[PS_MOST_PARTS]; /* of each device, a slot for each other device */
    int32_t part, count;
    bool fails;
    uint64_t round;
    int64_t patience; /* nanoseconds */
    ps_part_clock *clock;

    __device__ __forceinline__ void operator()() const
    {
        const int other = static_cast<int>(threadIdx.x);

        wait_for_last_kernel();
        if (other < count && other != part) {
            __threadfence_system();
            post_word_to_device(mailbox[other] + part, {fails ? 1u : 0u, round});
            if (!fails) {
                wait_for(other);
                __threadfence_system();
            }
        }
        __syncwarp();
        if (other == 0) {
            answer();
        }
    }

  private:
    static constexpr int polls = 64; /* between two looks at the time */

    __device__ __forceinline__ void wait_for(int other) const
    {
        const MailboxSlot *const from = mailbox[part] + other;
        const uint64_t begin = nanoseconds();

        while (*const_cast<const volatile uint32_t *>(&clock->late) == 0) {
            for (int i = 0; i < polls; i++) {
                const MailboxSlot w = poll_word_of_device(from);

                if (w.round >= round) {
                    if (w.word != 0) {
                        note(PS_PART_ELSEWHERE + 1 + other);
                    }
                    return;
                }
            }
            if (static_cast<int64_t>(nanoseconds() - begin) > patience) {
                note(1 + other);
            }
        }
    }

    __device__ __forceinline__ void note(int reason) const
    {
        atomicCAS(&clock->late, 0u, static_cast<uint32_t>(reason));
    }

    /* Write the outcome of the rounds so far to the memory of the host. */
    __device__ __forceinline__ void answer() const
    {
        const volatile ps_part_clock *const now = clock;
        auto *const to = static_cast<volatile ps_part_clock *>(clock->answer);

        if (to != nullptr) {
            to->late = now->late;
            __threadfence_system();
            to->calls = round;
        }
    }
};

} // namespace

ps_status
ps_cuda_barrier(const ps_part *p, const ps_exec *exec)
{
    Barrier b = {};

    if (p->count < 2 || p->count > PS_MOST_PARTS || p->part < 0 || p->part >= p->count) {
        return PS_BAD_ARGUMENT;
    }
    for (int k = 0; k < p->count; k++) {
        b.mailbox[k] = static_cast<MailboxSlot *>(p->mailbox[k]);
    }
    b.part = p->part;
    b.count = p->count;
    b.fails = p->step == PS_PART_FAIL;
    b.round = p->key;
    b.patience = p->patience;
    b.clock = static_cast<ps_part_clock *>(p->clock);
    return for_threads<32>(1, ps_cuda_stream(exec), b);
}

} // namespace pysolvers::device
