/* device_exchange.cuh - the segments of systems whose rows are divided over devices.
 *
 * Each part posts its segment of a system into the mailboxes of all other parts, and
 * polls its own mailbox for theirs. Every call has a round, one more than the call
 * before, and uses one of two halves of the mailboxes in turn: a part that posts into a
 * half has finished the round before, in which it received what the others posted
 * after they had read this half.
 *
 * Parts wait for each other. Each block must take its systems in ascending order, and post
 * them before it waits; systems that it draws come after those that it has anyway, and all
 * blocks must be resident. Then the first system that a part has not posted belongs to a
 * block that waits for nothing. Parts that share a device have so few blocks that all of them
 * are resident (part.cu).
 *
 * PS_PART_SEND and PS_PART_RECEIVE wait for nothing: their mailboxes hold the words of
 * one part alone, without rounds.
 *
 * The tag of a message has the lower bits of the round, by which a message differs from
 * that of two rounds before, and the upper bits of the key. A kernel begins with its key and
 * the number of its call in the logs of the other parts. A part that waits in a call
 * looks there from time to time: a later call, or another key, of the part for which it
 * waits means that the message never comes.
 *
 * Why messages of a kind of their own: with them one kernel solves cut systems, in half the
 * time or less of two kernels with NCCL between them; docs/ranks.md has the times of both on
 * two H200, from their record. There the messages of another GPU cost up to 2 % more than the
 * own ones. The loop that polls is not poll_words() of device/mailbox.cuh: a thread waits for
 * one word, and gives up.
 */
#ifndef PS_CUDA_LINES_PARTITION_DEVICE_EXCHANGE_CUH
#define PS_CUDA_LINES_PARTITION_DEVICE_EXCHANGE_CUH

#include <type_traits>

#include "device/mailbox.cuh"
#include "lines/join/levels.cuh"
#include "lines/partition/tile.cuh"
#include "ps_part.h"

namespace pysolvers::partition {

using namespace join;

/* The segment of a block for a system, as it is sent to the other blocks of the cluster,
 * and that of a device. */
template <typename Number>
using TileMessage = Message<Segment<Number>, Note,
                            std::conditional_t<sizeof(Number) == 4, uint32_t, uint64_t>>;
template <typename Number> using DeviceMessage = Message<Segment<Number>, Note, uint64_t>;

static_assert(sizeof(ps_part_clock) <= PS_PART_CLOCK_BYTES);
static_assert(sizeof(ps_part_log) <= PS_PART_LOG_BYTES);
static_assert(sizeof(ps_part_log::of_part[0]) == sizeof(MailboxSlot));

/* Where part `part` writes its calls in the log of another part. */
__device__ __forceinline__ MailboxSlot *
entry_of(ps_part_log *log, int part)
{
    return reinterpret_cast<MailboxSlot *>(&log->of_part[part]);
}

/* Kernel parameters of a part. */
template <typename Number> struct DeviceExchange {
    using Sent = DeviceMessage<Number>;
    static constexpr int words = sizeof(Sent) / sizeof(uint64_t);
    static constexpr int polls = 64; /* between two looks at the time and the log */
    static constexpr uint64_t round_bits = 0xffff; /* of a tag */
    int32_t part, count;
    uint32_t divisor; /* 2^16 / count, rounded up */
    ps_part_step step;
    int32_t first_row; /* of the part, in the whole system */
    int32_t last_row[PS_MOST_PARTS];
    MailboxSlot *mailbox[PS_MOST_PARTS];
    ps_part_log *log[PS_MOST_PARTS];
    uint64_t key;
    ps_part_clock *clock;
    int64_t patience; /* nanoseconds */

    /* The current round; no block completes it before all have called this. */
    __device__ __forceinline__ uint64_t round() const
    {
        return clock->calls + 1;
    }

    /* 1 + the part that did not answer; 0 if all have. */
    __device__ __forceinline__ int32_t late() const
    {
        return static_cast<int32_t>(*const_cast<const volatile uint32_t *>(&clock->late) %
                                    PS_PART_ELSEWHERE);
    }

    /* Write the call into the logs of the other parts. Called by all threads of one block. */
    __device__ __forceinline__ void announce() const
    {
        const int to = static_cast<int>(threadIdx.x);

        if (log[part] != nullptr && to < count && to != part) {
            post_word_to_device(entry_of(log[to], part), {key, log[part]->calls + 1});
        }
    }

    /* Note that a system failed. */
    __device__ __forceinline__ void fail(uint64_t round) const
    {
        clock->failed = static_cast<uint32_t>(round);
    }

    /* Called by one thread of each block after its last exchange and a __syncthreads(). */
    __device__ __forceinline__ void complete(uint64_t round) const
    {
        auto *const answer = static_cast<volatile ps_part_clock *>(clock->answer);

        if (answer != nullptr) {
            __threadfence(); /* what the block has noted precedes its end */
        }
        if (atomicInc(&clock->blocks, gridDim.x - 1) != gridDim.x - 1) {
            return;
        }
        clock->calls = round;
        clock->tickets = 0;
        if (log[part] != nullptr) {
            log[part]->calls++;
        }
        if (answer != nullptr) {
            const volatile ps_part_clock *const now = clock;

            __threadfence();
            answer->late = now->late;
            answer->failed = now->failed;
            __threadfence_system(); /* the host waits for `calls` */
            answer->calls = round;
        }
    }

    /* Write the messages of this part, messages[slot * count + part], for the other
     * parts. Called by all threads, after a __syncthreads(). */
    __device__ __forceinline__ void send(const TileRange &range,
                                         const Sent *messages) const
    {
        const uint64_t *const staged = reinterpret_cast<const uint64_t *>(messages);

        for (int k = static_cast<int>(threadIdx.x); k < range.systems * words;
             k += blockDim.x) {
            const int slot = k / words, w = k % words;

            *sent(part, range.system + slot, w) =
                staged[(slot * count + part) * words + w];
        }
    }

    /* Post the message of this part about a system, from the registers of lane `lane` of
     * `lanes` that have it. */
    __device__ __forceinline__ void post(const Sent &message, int64_t system, int lane,
                                         int lanes, uint64_t round) const
    {
        uint64_t word[words];

        memcpy(word, &message, sizeof message);
        for (int own = lane; lane < lanes && own < words; own += lanes) {
            uint64_t mine = word[0];

#pragma unroll
            for (int w = 1; w < words; w++) {
                mine = w == own ? word[w] : mine;
            }
            for (int to = 0; to < count; to++) {
                if (to != part) {
                    post_word_to_device(slot_of(to, system, part, own, round),
                                        {mine, tag_of(round)});
                }
            }
        }
    }

    /* Receive the messages of the other parts. Called by all threads, before a
     * __syncthreads(). */
    __device__ __forceinline__ void collect(const TileRange &range, Sent *messages,
                                            uint64_t round) const
    {
        uint64_t *const staged = reinterpret_cast<uint64_t *>(messages);
        const int all = range.systems * count * words;

        for (int k = static_cast<int>(threadIdx.x); k < all; k += blockDim.x) {
            const int slot = slot_of_message(k / words), w = k % words;
            const int from = k / words - slot * count;

            if (from != part) {
                staged[k] =
                    step == PS_PART_RECEIVE
                        ? *sent(from, range.system + slot, w)
                        : receive(slot_of(part, range.system + slot, from, w, round),
                                  from, tag_of(round));
            }
        }
    }

  private:
    __device__ __forceinline__ uint64_t tag_of(uint64_t round) const
    {
        return (key & ~round_bits) | (round & round_bits);
    }

    /* The system of a message in shared memory, of fewer than 2^12. */
    __device__ __forceinline__ int slot_of_message(uint32_t message) const
    {
        return static_cast<int>(message * divisor >> 16);
    }

    __device__ __forceinline__ MailboxSlot *slot_of(int owner, int64_t system, int sender,
                                                    int word, uint64_t round) const
    {
        const int64_t half = static_cast<int64_t>(round & 1);

        return mailbox[owner] + ((system * 2 + half) * count + sender) * words + word;
    }

    /* The place of a word of a part, of PS_PART_SEND and PS_PART_RECEIVE. */
    __device__ __forceinline__ uint64_t *sent(int sender, int64_t system, int word) const
    {
        return reinterpret_cast<uint64_t *>(mailbox[sender]) + system * words + word;
    }

    __device__ __forceinline__ uint64_t receive(const MailboxSlot *from, int sender,
                                                uint64_t tag) const
    {
        const uint64_t begin = nanoseconds();

        for (bool is_first = true;; is_first = false) {
            for (int i = 0; i < polls; i++) {
                const MailboxSlot w = poll_word_of_device(from);

                if (w.round == tag) {
                    return w.word;
                }
                if (!is_first) {
                    pause();
                }
            }
            if (late() != 0) {
                return ~uint64_t(0); /* numbers that are NaN, a bad pivot below row 0 */
            }
            if (is_elsewhere(sender)) {
                __threadfence_system(); /* its messages of this call precede the next one */
                const MailboxSlot w = poll_word_of_device(from);

                if (w.round == tag) {
                    return w.word;
                }
                give_up(PS_PART_ELSEWHERE + 1 + sender);
            }
            else if (static_cast<int64_t>(nanoseconds() - begin) > patience) {
                give_up(1 + sender);
            }
        }
    }

    /* Whether a part has begun a later call, or another one in place of this call. */
    __device__ __forceinline__ bool is_elsewhere(int sender) const
    {
        if (log[part] == nullptr) {
            return false;
        }
        const uint64_t call = log[part]->calls + 1;
        const MailboxSlot last = poll_word_of_device(entry_of(log[part], sender));

        return last.round > call || (last.round == call && last.word != key);
    }

    /* Note why this part gives up, and end the wait of the others for it. */
    __device__ __forceinline__ void give_up(int32_t reason) const
    {
        if (atomicCAS(&clock->late, 0u, static_cast<uint32_t>(reason)) != 0 ||
            log[part] == nullptr) {
            return;
        }
        for (int to = 0; to < count; to++) {
            if (to != part) {
                post_word_to_device(entry_of(log[to], part), {0, log[part]->calls + 1});
            }
        }
    }

    /* While another device is late. Messages that arrive in time are found earlier
     * without pauses: 1 to 2 % of a solve on two H100. */
    static __device__ __forceinline__ void pause()
    {
#if __CUDA_ARCH__ >= 700
        __nanosleep(200);
#endif
    }
};

} // namespace pysolvers::partition

#endif
