/* panel_join.cuh - how the chunks of a panel are joined, and what the blocks of a team
 * tell each other.
 *
 * Every block tells the two sums of its group, and weighs those of all to find what comes
 * into it: no block waits for what another has to work out first. What stands in the
 * chunks but for that is worked out meanwhile.
 */
#ifndef PS_CUDA_PANEL_JOIN_CUH
#define PS_CUDA_PANEL_JOIN_CUH

#include <cstring>

#include "panel_copy.cuh"
#include "told.cuh"

/* How panels are shared out: round after round one to a team. */
template <typename Number> struct PanelTeams {
    static constexpr int words = sizeof(PanelSums<Number>) / sizeof(uint64_t);
    static constexpr int columns = panel_columns<Number> / PANEL_CHUNKS; /* of a warp */
    PanelTable<Number> table;
    int32_t rows, groups;
    bool periodic, conjugated;
    int64_t teams;
    ToldWord *told; /* [teams][round & 1][warp][groups][words][columns], zeros before */

    __device__ __forceinline__ ToldWord *message(const PanelPlace &at, uint32_t round,
                                                 int group) const
    {
        const int64_t warp = (at.team * 2 + (round & 1)) * PANEL_CHUNKS + at.warp;

        return told + (warp * groups + group) * words * columns + at.lane % columns;
    }
};

/* What y before a group and at its end count in y of a chunk. */
template <typename Number> struct alignas(panel_alignment<Number>) PanelSpike {
    Number l, u;
};

/* What a block keeps in shared memory beside the rows. The pitch of what a column has
 * keeps the lanes of a Joiner in banks of their own. */
template <typename Number> struct PanelShared {
    static constexpr int pitch = panel_columns<Number> + 16 / sizeof(Number);
    PanelRow<Number> row[PANEL_CHUNKS][panel_places<Number>];
    PanelSums<Number> count[PANEL_CHUNKS][panel_places<Number>];
    Number u[PANEL_CHUNKS][panel_places<Number>];
    PanelUnit<Number> chunk[PANEL_CHUNKS];
    PanelShare<Number> share[PANEL_CHUNKS];
    PanelSpike<Number> spike[PANEL_CHUNKS + 1]; /* of the row before, of the chunks */
    PanelSums<Number> weight[2][panel_groups<Number>]; /* in both ends */
    alignas(16) Number first[PANEL_CHUNKS + 1][pitch]; /* of chunks; the last are 0 */
    alignas(16) Number y[2][PANEL_CHUNKS + 1][pitch];  /* of the chunk before; d before */
    alignas(16) Number ends[2][pitch]; /* y before the group, at its end */
};

/* Numbers of a table, and their conjugates if asked for. */
template <typename Number>
__device__ __forceinline__ Number
kept(Number value, bool conjugated)
{
    return conjugated ? conjugate(value) : value;
}

template <typename Number, typename Part>
__device__ __forceinline__ void
load_words(Part *to, const Part *from, int count, bool conjugated)
{
    Number *const word = reinterpret_cast<Number *>(to);
    const Number *const words = reinterpret_cast<const Number *>(from);

    count *= static_cast<int>(sizeof(Part) / sizeof(Number));
    for (int k = threadIdx.x; k < count; k += PANEL_THREADS) {
        word[k] = kept(words[k], conjugated);
    }
}

/* The table of the block's group. All threads meet behind. */
template <typename Number>
__device__ __forceinline__ void
load_panel_table(const PanelTeams<Number> &t, int group, PanelShared<Number> &shared)
{
    const PanelTable<Number> &table = t.table;
    constexpr int rows = panel_group_rows<Number>;
    const int thread = threadIdx.x;
    const bool conjugated = t.conjugated;

    load_words<Number>(&shared.row[0][0], table.rows + group * rows, rows, conjugated);
    load_words<Number>(&shared.count[0][0], table.counts + group * rows, rows,
                       conjugated);
    load_words<Number>(&shared.u[0][0], table.u + group * rows, rows, conjugated);
    load_words<Number>(shared.chunk, table.chunks + group * PANEL_CHUNKS, PANEL_CHUNKS,
                       conjugated);
    load_words<Number>(shared.share, table.shares + group * PANEL_CHUNKS, PANEL_CHUNKS,
                       conjugated);
    for (int k = 0; k < 2; k++) {
        load_words<Number>(shared.weight[k], table.weights + (group + k) * t.groups,
                           t.groups, conjugated);
    }
    if (thread < panel_columns<Number>) {
        shared.first[PANEL_CHUNKS][thread] = Number(0);
        shared.y[0][0][thread] = Number(0);
        shared.y[1][0][thread] = Number(0);
    }
    __syncthreads();
    if (thread < 2) { /* y of the chunks where only one end is not zero */
        Number *const spike = &shared.spike[0].l + thread;
        Number g = Number(1 - thread), y = Number(thread);

        spike[0] = -g;
        for (int i = 0; i < PANEL_CHUNKS - 1; i++) {
            g = -(shared.chunk[i].m * g);
            spike[2 * (i + 1)] = g;
        }
        spike[2 * PANEL_CHUNKS] = -y;
        for (int i = PANEL_CHUNKS - 2; i >= 0; i--) {
            y = spike[2 * (i + 1)] - shared.chunk[i].u * y;
            spike[2 * (i + 1)] = -y;
        }
    }
    __syncthreads();
}

/* Joins the chunks of a panel: a warp has some of its columns, and lanes that are
 * `columns` apart share one, each for some of the chunks and groups. */
template <typename Number> struct PanelJoiner {
    static constexpr int columns = PanelTeams<Number>::columns;
    static constexpr int parts = 32 / columns;
    static constexpr int own_chunks = PANEL_CHUNKS / parts;
    static constexpr int words = PanelTeams<Number>::words;
    const PanelTeams<Number> &t;
    PanelShared<Number> &shared;
    const PanelPlace &at;
    const int part = at.lane / columns;
    const int column = at.warp * columns + at.lane % columns;

    /* Once the chunks are reduced: tell the sums of the group. */
    __device__ __forceinline__ void tell(uint32_t round) const
    {
        const PanelSums<Number> own = together(sum_up(round & 1));
        ToldWord *const to = t.message(at, round, at.group);
        uint64_t word[words];

        if (part == 0) {
            memcpy(word, &own, sizeof own);
#pragma unroll
            for (int k = 0; k < words; k++) {
                tell_word(to + k * columns, {word[k], round + 1});
            }
        }
    }

    /* y of the chunks, but for what the ends count in them, by the first warps, a column
     * a lane, when all have told. */
    __device__ __forceinline__ void join(uint32_t round) const
    {
        constexpr int pitch = PanelShared<Number>::pitch;
        Number *const chunk = &shared.y[round & 1][1][threadIdx.x];
        Number g(0), y[PANEL_CHUNKS - 1];

        if (threadIdx.x >= panel_columns<Number>) {
            return;
        }
#pragma unroll
        for (int i = 0; i < PANEL_CHUNKS - 1; i++) {
            y[i] = chunk[i * pitch];
        }
#pragma unroll
        for (int i = 0; i < PANEL_CHUNKS - 1; i++) {
            g = y[i] - shared.chunk[i].m * g;
            y[i] = g;
        }
        g = Number(0);
#pragma unroll
        for (int i = PANEL_CHUNKS - 2; i >= 0; i--) {
            g = y[i] - shared.chunk[i].u * g;
            chunk[i * pitch] = g;
        }
    }

    /* The ends of the group, from what all groups tell. All is asked for at once, a word
     * a lane, in the order of memory. */
    __device__ __forceinline__ void hear(uint32_t round) const
    {
        constexpr int of_group = words * columns, groups = 32 / of_group;
        constexpr int times = (panel_groups<Number> + groups - 1) / groups;
        const ToldWord *const from = t.message(at, round, 0);
        const int first = at.lane / of_group, k = at.lane % of_group / columns;
        PanelSums<Number> all = {Number(0), Number(0)};
        ToldWord w[times];
        bool is_told;

        do {
            is_told = true;
#pragma unroll
            for (int i = 0; i < times && i * groups < t.groups; i++) {
                const int g = min(first + i * groups, t.groups - 1);

                w[i] = hear_word(from + (g * words + k) * columns);
            }
#pragma unroll
            for (int i = 0; i < times && i * groups < t.groups; i++) {
                is_told = is_told && w[i].round == round + 1;
            }
        } while (!__all_sync(all_lanes, is_told));
#pragma unroll
        for (int i = 0; i < times && i * groups < t.groups; i++) {
            const int g = first + i * groups;

            if (g < t.groups) {
                weigh(g, k, w[i].word, all);
            }
        }
        all = together(all);
        if (part == 0) {
            shared.ends[0][column] = all.first;
            shared.ends[1][column] = all.d;
        }
    }

  private:
    /* Add what word k of the sums of a group counts in the ends. */
    __device__ __forceinline__ void weigh(int g, int k, uint64_t word,
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

    /* The sum of the parts of a column, the same in all its lanes. */
    static __device__ __forceinline__ PanelSums<Number> together(PanelSums<Number> s)
    {
#pragma unroll
        for (int reach = columns; reach < 32; reach *= 2) {
            const int other = static_cast<int>(threadIdx.x % 32) ^ reach;

            s.first = s.first + shuffle(all_lanes, s.first, other);
            s.d = s.d + shuffle(all_lanes, s.d, other);
        }
        return s;
    }

    /* The lane's chunks: their part of the group's sums, and c in the place of d.
     */
    __device__ __forceinline__ PanelSums<Number> sum_up(int turn) const
    {
        PanelSums<Number> all = {Number(0), Number(0)};

#pragma unroll
        for (int k = 0; k < own_chunks; k++) {
            const int i = part + k * parts;
            const Number first = shared.first[i][column],
                         d = shared.y[turn][i + 1][column];
            const PanelShare<Number> by = shared.share[i];
            const PanelUnit<Number> unit = shared.chunk[i];

            all.first = all.first + by.first.first * first + by.d.first * d;
            all.d = all.d + by.first.d * first + by.d.d * d;
            shared.y[turn][i + 1][column] =
                unit.p * (d - unit.next * shared.first[i + 1][column]);
        }
        return all;
    }
};

#endif
