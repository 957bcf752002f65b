/* panel_exchange.cuh - what a block keeps of its panels, and how the blocks of a team
 * tell each other the sums of their groups.
 *
 * Blocks of a cluster send them into each other's shared memory: by way of memory, where
 * all waits behind the copies, a word takes about as long as a panel. Teams of more
 * blocks than a cluster has go that way.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_EXCHANGE_CUH
#define PS_CUDA_LINES_PANELS_PANEL_EXCHANGE_CUH

#include <cstring>

#include "device/cluster.cuh"
#include "device/mailbox.cuh"
#include "lines/panels/panel_copy.cuh"

namespace pysolvers::panels {

/* How panels are shared out: round after round one to a team. */
template <typename Number> struct PanelTeams {
    static constexpr int words = sizeof(PanelSums<Number>) / sizeof(uint64_t);
    static constexpr int columns = panel_columns<Number> / PANEL_CHUNKS; /* of a warp */
    PanelTable<Number> table;
    int32_t rows, groups;
    bool periodic, conjugated;
    int64_t teams;
    MailboxSlot *mailbox; /* null for clusters, or [teams][round & 1][warp][groups][words]
                       [columns], zeros before */

    __device__ __forceinline__ MailboxSlot *message(const TeamPlace &at, uint32_t round,
                                                    int group) const
    {
        const int64_t warp = (at.team * 2 + (round & 1)) * PANEL_CHUNKS + at.warp;

        return mailbox + (warp * groups + group) * words * columns + at.lane % columns;
    }
};

/* What y before a group and at its end count in y of a chunk. */
template <typename Number> struct alignas(panel_alignment<Number>) PanelSpike {
    Number l, u;
};

/* What a block keeps in shared memory beside the rows. The pitch of what a column has
 * keeps the lanes of a PanelReducer in banks of their own. */
template <typename Number> struct PanelShared {
    static constexpr int pitch = panel_columns<Number> + 16 / sizeof(Number);
    PanelGroup<Number> group;
    PanelSpike<Number> spike[PANEL_CHUNKS + 1]; /* of the row before, of the chunks */
    PanelSums<Number> weight[2][panel_groups<Number>]; /* in both ends */
    alignas(16) Number first[PANEL_CHUNKS + 1][pitch]; /* of chunks; the last are 0 */
    alignas(16) Number y[2][PANEL_CHUNKS + 1][pitch];  /* of the chunk before; d before */
    alignas(16) Number ends[2][pitch]; /* y before the group, at its end */
    alignas(16) PanelSums<Number> mailbox[PANEL_CLUSTER][panel_columns<Number>];

    /* What takes the places of columns until there are some. */
    template <typename Draft> __device__ __forceinline__ Draft &draft()
    {
        static_assert(sizeof(Draft) <= sizeof first + sizeof y, "no place");
        return reinterpret_cast<Draft &>(first);
    }

    /* What groups tell of the matrix, before they tell of columns. */
    __device__ __forceinline__ PanelPart<Number> *parts()
    {
        static_assert(PANEL_CLUSTER * sizeof(PanelPart<Number>) <= sizeof mailbox,
                      "no place");
        return reinterpret_cast<PanelPart<Number> *>(&mailbox[0][0]);
    }
};

/* How the lanes of a warp that share a column share out what the groups tell of it: word
 * k of every so many groups from `first` on is a lane's, as lanes ask memory for them. */
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

    /* Add what the word, of what group g tells, counts in the ends. */
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

/* In a cluster. A warp has some columns, and lanes that are `columns` apart share one,
 * each to tell some of the groups. There is room for one panel: all have read what was
 * told of one before the next is. */
template <typename Number> struct PanelCluster {
    static constexpr bool is_cluster = true;
    static constexpr int columns = PanelTeams<Number>::columns, parts = 32 / columns;
    const PanelTeams<Number> &t;
    PanelShared<Number> &shared;
    const TeamPlace &at;
    Arrivals &received;
    const int part = at.lane / columns;
    const int column = at.warp * columns + at.lane % columns;

    /* Of all threads, when the block has read what was told. */
    __device__ __forceinline__ void make_room() const
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

    /* What a lane's words count in the ends of its group. */
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

/* The same by way of memory. */
template <typename Number> struct PanelMemory {
    static constexpr bool is_cluster = false;
    static constexpr int columns = PanelTeams<Number>::columns, parts = 32 / columns;
    static constexpr int words = PanelTeams<Number>::words;
    const PanelTeams<Number> &t;
    PanelShared<Number> &shared;
    const TeamPlace &at;
    Arrivals &received; /* of nothing */
    const int part = at.lane / columns;
    const int column = at.warp * columns + at.lane % columns;

    __device__ __forceinline__ void make_room() const
    {
    }

    __device__ __forceinline__ void post_to_memory(uint32_t round,
                                                   const PanelSums<Number> &own) const
    {
        MailboxSlot *const to = t.message(at, round, at.group);
        uint64_t word[words];

        if (part == 0) {
            memcpy(word, &own, sizeof own);
#pragma unroll
            for (int k = 0; k < words; k++) {
                post_word(to + k * columns, {word[k], round + 1});
            }
        }
    }

    __device__ __forceinline__ void post_to_cluster(const PanelSums<Number> &) const
    {
    }

    /* All is asked for at once, a word a lane, in the order of memory. */
    __device__ __forceinline__ PanelSums<Number> poll(uint32_t round) const
    {
        constexpr int step = PanelLanes<Number>::groups;
        constexpr int times = (panel_groups<Number> + step - 1) / step;
        const PanelLanes<Number> lanes(shared, at.lane);
        const MailboxSlot *const from = t.message(at, round, 0);
        PanelSums<Number> all = {Number(0), Number(0)};
        MailboxSlot w[times];
        bool is_posted;

        do {
            is_posted = true;
#pragma unroll
            for (int i = 0; i < times && i * step < t.groups; i++) {
                const int g = min(lanes.first + i * step, t.groups - 1);

                w[i] = poll_word(from + (g * words + lanes.k) * columns);
            }
#pragma unroll
            for (int i = 0; i < times && i * step < t.groups; i++) {
                is_posted = is_posted && w[i].round == round + 1;
            }
        } while (!__all_sync(all_lanes, is_posted));
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
