/* panel_exchange.cuh - the shared memory of a block for its panels, and the exchange of
 * the sums of groups between the blocks of a team.
 *
 * The blocks of a cluster send their sums to the shared memory of each other. Through
 * global memory, where accesses are queued behind the copies, a word takes about as
 * long as a panel; this path is used for teams of more blocks than a cluster can have.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_EXCHANGE_CUH
#define PS_CUDA_LINES_PANELS_PANEL_EXCHANGE_CUH

#include <cstring>

#include "device/cluster.cuh"
#include "device/mailbox.cuh"
#include "lines/panels/panel_copy.cuh"

namespace pysolvers::panels {

/* The distribution of panels: in each round, one panel per team. */
template <typename Number> struct PanelTeams {
    static constexpr int words = sizeof(PanelSums<Number>) / sizeof(uint64_t);
    static constexpr int columns = panel_columns<Number> / PANEL_CHUNKS; /* per warp */
    PanelTable<Number> table;
    int32_t rows, groups;
    bool periodic, conjugated;
    int64_t teams;
    MailboxSlot *mailbox; /* null for clusters; otherwise [teams][round &
                             1][warp][groups][words][columns], initially zeros */

    /* Of the columns of a warp. */
    __device__ __forceinline__ TeamMailbox<PanelSums<Number>>
    mailbox_of(const TeamPlace &at, uint32_t round) const
    {
        const int64_t warp = (at.team * 2 + (round & 1)) * PANEL_CHUNKS + at.warp;

        return {mailbox + warp * groups * words * columns + at.lane % columns, columns};
    }
};

/* The coefficients of y before a group, and of y at its end, in y of a chunk. */
template <typename Number> struct alignas(panel_alignment<Number>) PanelSpike {
    Number l, u;
};

/* The shared memory of a block apart from the rows. The pitch of the data of a column
 * avoids bank conflicts of the lanes of a PanelReducer. */
template <typename Number> struct PanelShared {
    static constexpr int pitch = panel_columns<Number> + 16 / sizeof(Number);
    PanelGroup<Number> group;
    /* of the unknown before the group, then of the chunks */
    PanelSpike<Number> spike[PANEL_CHUNKS + 1];
    /* of the sums of each group in y before and at the end of this group */
    PanelSums<Number> weight[2][panel_groups<Number>];
    /* first sum of each chunk; the last row is 0 */
    alignas(16) Number first[PANEL_CHUNKS + 1][pitch];
    /* y before each chunk; during the reduction d */
    alignas(16) Number y[2][PANEL_CHUNKS + 1][pitch];
    alignas(16) Number ends[2][pitch]; /* y before the group, and at its end */
    alignas(16) PanelSums<Number> mailbox[PANEL_CLUSTER][panel_columns<Number>];

    /* A temporary object in the memory of the columns, before the first panel. */
    template <typename Scratch> __device__ __forceinline__ Scratch &scratch()
    {
        static_assert(sizeof(Scratch) <= sizeof first + sizeof y, "no place");
        return reinterpret_cast<Scratch &>(first);
    }

    /* The parts of the matrix that the groups send before they send sums. */
    __device__ __forceinline__ PanelPart<Number> *parts()
    {
        static_assert(PANEL_CLUSTER * sizeof(PanelPart<Number>) <= sizeof mailbox,
                      "no place");
        return reinterpret_cast<PanelPart<Number> *>(&mailbox[0][0]);
    }
};

/* The distribution of the sums of a column over the lanes that share the column, in the
 * order of coalesced loads: a lane has word k of the groups first, first + groups, and
 * so on. */
template <typename Number> struct PanelLanes {
    static constexpr int columns = PanelTeams<Number>::columns;
    static constexpr int words = PanelTeams<Number>::words;
    static constexpr int of_group = words * columns, groups = 32 / of_group;
    const PanelShared<Number> &shared;
    const int first, k;

    __device__ __forceinline__ PanelLanes(const PanelShared<Number> &place, int lane)
        : shared(place), first(lane / of_group), k(lane % of_group / columns)
    {
    }

    /* Add the contribution of one word of the sums of group g to y at both ends. */
    __device__ __forceinline__ void weigh(int g, uint64_t word,
                                          PanelSums<Number> &all) const
    {
        const PanelSums<Number> left = shared.weight[0][g], own = shared.weight[1][g];
        PanelSums<Number> s;
        uint64_t sums[words];

#pragma unroll
        for (int i = 0; i < words; i++) {
            sums[i] = i == k ? word : 0;
        }
        memcpy(&s, sums, sizeof s);
        all.first = all.first + left.first * s.first + left.d * s.d;
        all.d = all.d + own.first * s.first + own.d * s.d;
    }
};

/* The exchange in a cluster. A warp has some columns; lanes whose distance is a
 * multiple of `columns` share a column, and each sends its sums to some of the groups.
 * There is one buffer: the sums of a panel have been read by all blocks before the next
 * ones are sent. */
template <typename Number> struct PanelCluster {
    static constexpr bool is_cluster = true;
    static constexpr int columns = PanelTeams<Number>::columns, parts = 32 / columns;
    const PanelTeams<Number> &t;
    PanelShared<Number> &shared;
    const TeamPlace &at;
    Arrivals &received;
    const int part = at.lane / columns;
    const int column = at.warp * columns + at.lane % columns;

    /* Called by all threads when the block has read the sums. */
    __device__ __forceinline__ void release_buffer() const
    {
        if (threadIdx.x == 0) {
            received.expect(t.groups * static_cast<int>(sizeof shared.mailbox[0]));
        }
        cluster_arrive_read();
    }

    __device__ __forceinline__ void post_to_memory(uint32_t,
                                                   const PanelSums<Number> &) const
    {
    }

    __device__ __forceinline__ void post_to_cluster(const PanelSums<Number> &own) const
    {
        cluster_wait();
        for (int group = part; group < t.groups; group += parts) {
            send(&shared.mailbox[at.group][column], own, received, group);
        }
    }

    /* The contribution of the words of this lane to y at both ends of its group. */
    __device__ __forceinline__ PanelSums<Number> poll(uint32_t round) const
    {
        const PanelLanes<Number> lanes(shared, at.lane);
        PanelSums<Number> all = {Number(0), Number(0)};

        received.wait(round & 1);
        for (int g = lanes.first; g < t.groups; g += lanes.groups) {
            uint64_t sums[PanelTeams<Number>::words];

            memcpy(sums, &shared.mailbox[g][column], sizeof sums);
            lanes.weigh(g, sums[lanes.k], all);
        }
        return all;
    }
};

/* The exchange through global memory. */
template <typename Number> struct PanelMemory {
    static constexpr bool is_cluster = false;
    static constexpr int columns = PanelTeams<Number>::columns, parts = 32 / columns;
    const PanelTeams<Number> &t;
    PanelShared<Number> &shared;
    const TeamPlace &at;
    Arrivals &received; /* not used */
    const int part = at.lane / columns;
    const int column = at.warp * columns + at.lane % columns;

    __device__ __forceinline__ void release_buffer() const
    {
    }

    __device__ __forceinline__ void post_to_memory(uint32_t round,
                                                   const PanelSums<Number> &own) const
    {
        if (part == 0) {
            t.mailbox_of(at, round).post(at.group, own, round + 1);
        }
    }

    __device__ __forceinline__ void post_to_cluster(const PanelSums<Number> &) const
    {
    }

    /* All words are requested at once, one word per lane, in the order of memory. */
    __device__ __forceinline__ PanelSums<Number> poll(uint32_t round) const
    {
        constexpr int step = PanelLanes<Number>::groups;
        constexpr int times = (panel_groups<Number> + step - 1) / step;
        const PanelLanes<Number> lanes(shared, at.lane);
        const TeamMailbox<PanelSums<Number>> mailbox = t.mailbox_of(at, round);
        PanelSums<Number> all = {Number(0), Number(0)};
        MailboxSlot w[times];

        poll_words<false>(
            w, round + 1, [&](int i) { return i * step < t.groups; },
            [&](int i) {
                return mailbox.slot(min(lanes.first + i * step, t.groups - 1), lanes.k);
            });
#pragma unroll
        for (int i = 0; i < times && i * step < t.groups; i++) {
            const int g = lanes.first + i * step;

            if (g < t.groups) {
                lanes.weigh(g, w[i].word, all);
            }
        }
        return all;
    }
};

} // namespace pysolvers::panels

#endif
