/* exchange.cuh - what units send to each other, one record for all algebras, and the rounds
 * of the messages of a cluster.
 *
 * A unit (a segment, a frame, a pair, the two rows of pivoting) is sent with a mark: the
 * flags that are joined with it. Four exchanges carry units from level to level:
 *
 *   block    BlockExchange: the warps of a block, through shared memory
 *   cluster  ClusterRounds: the blocks of a cluster, by messages to their shared memory
 *   team     TeamMailbox of device/mailbox.cuh: blocks that are resident together
 *   devices  DeviceExchange of partition/device_exchange.cuh: parts on several devices
 */
#ifndef PS_CUDA_LINES_JOIN_EXCHANGE_CUH
#define PS_CUDA_LINES_JOIN_EXCHANGE_CUH

#include <cstdint>

#include "device/cluster.cuh"

namespace pysolvers::join {

using namespace device;

/* Flags of a unit, which are joined together with it. */
struct Note {
    int32_t bad_pivot;    /* row of its first bad pivot */
    int32_t not_dominant; /* whether a row is not dominant */
};

/* A Note in one word. */
struct PackedNote {
    uint32_t word; /* bad_pivot; in the highest bit, not_dominant */

    __device__ __forceinline__ explicit PackedNote(const Note &note)
        : word(static_cast<uint32_t>(note.bad_pivot) |
               (note.not_dominant != 0 ? 1u << 31 : 0))
    {
    }
    __device__ __forceinline__ Note note() const
    {
        return {static_cast<int32_t>(word & INT32_MAX), static_cast<int32_t>(word >> 31)};
    }
};

/* A unit and its mark as they are sent, in words of the type WORD: wide words need fewer
 * stores. */
template <typename Unit, typename Mark, typename Word = uint4>
struct alignas(alignof(Word) > alignof(Unit) ? alignof(Word) : alignof(Unit)) Message {
    using word = Word;
    Unit unit;
    Mark mark;
};

/* The units of the warps of a block and their marks, in shared memory. */
template <typename Unit, int ENTRIES, typename Mark = Note> struct BlockExchange {
    Unit unit[ENTRIES];
    Mark note[ENTRIES];
};

/* The rounds of the messages of a cluster. Buffers alternate, so that writers need not
 * wait for readers: a block that is one round ahead has received the messages of all other
 * blocks, which have read those of the round before. */
template <int LOG> struct RoundsOf {
    static constexpr int buffers = 1 << LOG;
    Arrivals *arrivals; /* one for each buffer, in shared memory */
    int32_t round;

    /* Called by one thread; other blocks may send after a barrier of the cluster. */
    __device__ __forceinline__ void init() const
    {
        for (int k = 0; k < buffers; k++) {
            arrivals[k].init(1);
        }
    }
    /* The buffer of this round. */
    __device__ __forceinline__ int32_t turn() const
    {
        return round & (buffers - 1);
    }
    __device__ __forceinline__ Arrivals &now() const
    {
        return arrivals[turn()];
    }
    /* Called by one thread: `bytes` arrive in this round. */
    __device__ __forceinline__ void expect(uint32_t bytes) const
    {
        now().expect(bytes);
    }
    __device__ __forceinline__ void wait() const
    {
        now().wait(round >> LOG & 1);
    }
};

using ClusterRounds = RoundsOf<1>;

} // namespace pysolvers::join

#endif
