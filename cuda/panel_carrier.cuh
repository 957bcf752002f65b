/* panel_carrier.cuh - what the blocks of a team tell each other, and how the chunks of a
 * panel are joined.
 *
 * Every block tells the two sums of its group, and weighs those of all to find what comes
 * into it: no block waits for what another has to work out first. Sums carry the number
 * of their round, so that no fence is needed.
 */
#ifndef PS_CUDA_PANEL_CARRIER_CUH
#define PS_CUDA_PANEL_CARRIER_CUH

#include <cstring>

#include "panel_table.cuh"

enum {
    PANEL_LANES = 32,
    PANEL_WORKERS = PANEL_CHUNKS * PANEL_LANES,
    PANEL_CARRIERS = 4, /* warps */
    PANEL_THREADS = PANEL_WORKERS + PANEL_CARRIERS * PANEL_LANES
};

/* A word of a message and the round it belongs to, stored and loaded at once. */
struct alignas(16) PanelWord {
    uint64_t word, round;
};

__device__ __forceinline__ void
tell_word(PanelWord *to, const PanelWord &w)
{
    asm volatile("{\n\t.reg .b128 both;\n\t"
                 "mov.b128 both, {%1, %2};\n\t"
                 "st.relaxed.gpu.global.b128 [%0], both;\n\t}" ::"l"(to),
                 "l"(w.word), "l"(w.round)
                 : "memory");
}

__device__ __forceinline__ PanelWord
hear_word(const PanelWord *from)
{
    PanelWord w;

    asm volatile("{\n\t.reg .b128 both;\n\t"
                 "ld.relaxed.gpu.global.b128 both, [%2];\n\t"
                 "mov.b128 {%0, %1}, both;\n\t}"
                 : "=l"(w.word), "=l"(w.round)
                 : "l"(from)
                 : "memory");
    return w;
}

/* Where a thread is: the workers of a block are its first warps, the carriers the rest.
 */
struct PanelPlace {
    int64_t team;
    int group, warp, lane;

    __device__ __forceinline__ explicit PanelPlace(int groups)
        : team(blockIdx.x / groups), group(blockIdx.x % groups), warp(threadIdx.x / 32),
          lane(threadIdx.x % 32)
    {
    }
};

/* How panels are shared out: round after round one to a team. */
template <typename Number> struct PanelTeams {
    static constexpr int words = sizeof(PanelSums<Number>) / sizeof(uint64_t);
    PanelTable<Number> table;
    int32_t rows, groups;
    bool periodic, conjugated;
    int64_t teams;
    PanelWord *told; /* [teams][round & 1][groups][words][PANEL_LANES], zeros before */

    __device__ __forceinline__ PanelWord *message(const PanelPlace &at, uint32_t round,
                                                  int group) const
    {
        return told +
               ((at.team * 2 + (round & 1)) * groups + group) * words * PANEL_LANES;
    }
};

/* What a block keeps in shared memory beside the rows. */
template <typename Number, int PLACES> struct PanelShared {
    PanelRow<Number> row[PANEL_CHUNKS][PLACES];
    PanelSums<Number> count[PANEL_CHUNKS][PLACES];
    Number u[PANEL_CHUNKS][PLACES];
    PanelUnit<Number> chunk[PANEL_CHUNKS];
    PanelShare<Number> share[PANEL_CHUNKS];
    Number m[PANEL_CHUNKS], back[PANEL_CHUNKS]; /* m and u of the chunks */
    PanelSums<Number> weight[2][PANEL_GROUPS]; /* in y before the group, and in its own */
    PanelSums<Number> sums[2][PANEL_CHUNKS + 1][PANEL_LANES]; /* the last are zeros */
    Number c[PANEL_CHUNKS][PANEL_LANES];
    Number y[2][PANEL_CHUNKS + 1][PANEL_LANES]; /* of the chunk before, of the chunk */
};

/* Numbers of a table, and their conjugates if asked for. */
template <typename Number, typename Part>
__device__ __forceinline__ void
load_words(Part *to, const Part *from, int count, bool conjugated)
{
    Number *const word = reinterpret_cast<Number *>(to);
    const Number *const kept = reinterpret_cast<const Number *>(from);

    count *= static_cast<int>(sizeof(Part) / sizeof(Number));
    for (int k = threadIdx.x; k < count; k += PANEL_THREADS) {
        word[k] = conjugated ? conjugate(kept[k]) : kept[k];
    }
}

/* The table of the block's group. */
template <typename Number, int PLACES>
__device__ __forceinline__ void
load_panel_table(const PanelTeams<Number> &t, int group,
                 PanelShared<Number, PLACES> &shared)
{
    const PanelTable<Number> &table = t.table;
    const int chunk = group * PANEL_CHUNKS, row = chunk * PLACES, thread = threadIdx.x;
    constexpr int rows = PANEL_CHUNKS * PLACES;

    load_words<Number>(&shared.row[0][0], table.rows + row, rows, t.conjugated);
    load_words<Number>(&shared.count[0][0], table.counts + row, rows, t.conjugated);
    load_words<Number>(&shared.u[0][0], table.u + row, rows, t.conjugated);
    load_words<Number>(shared.chunk, table.chunks + chunk, PANEL_CHUNKS, t.conjugated);
    load_words<Number>(shared.share, table.shares + chunk, PANEL_CHUNKS, t.conjugated);
    for (int k = 0; k < 2; k++) {
        load_words<Number>(shared.weight[k], table.weights + (group + k) * t.groups,
                           t.groups, t.conjugated);
        for (int g = t.groups + thread; g < PANEL_GROUPS; g += PANEL_THREADS) {
            shared.weight[k][g] = {Number(0), Number(0)};
        }
        if (thread < PANEL_LANES) {
            shared.sums[k][PANEL_CHUNKS][thread] = {Number(0), Number(0)};
        }
    }
    if (thread < PANEL_CHUNKS) {
        const PanelUnit<Number> unit = table.chunks[chunk + thread];

        shared.m[thread] = t.conjugated ? conjugate(unit.m) : unit.m;
        shared.back[thread] = t.conjugated ? conjugate(unit.u) : unit.u;
    }
}

/* Joins the chunks of a panel: a carrier has some of its columns, and lanes that are
 * `columns` apart share one, each for some of the chunks and groups. What a carrier waits
 * for in shared memory comes after whatever the workers have asked for: so it asks
 * seldom, and for much at once. */
template <typename Number, int PLACES> struct PanelCarrier {
    static constexpr int columns = PANEL_LANES / PANEL_CARRIERS;
    static constexpr int own_chunks = PANEL_CHUNKS / PANEL_CARRIERS;
    static constexpr int own_groups = PANEL_GROUPS / PANEL_CARRIERS;
    const PanelTeams<Number> &t;
    PanelShared<Number, PLACES> &shared;
    const PanelPlace &at;
    const int part = at.lane / columns;
    const int column = (at.warp - PANEL_CHUNKS) * columns + at.lane % columns;

    /* The sums of the block's group, once its chunks are reduced; others are told. */
    __device__ __forceinline__ PanelSums<Number> gather(uint32_t round) const
    {
        const PanelSums<Number> own = together(sum_up(round & 1));

        if (t.groups > 1 && part == 0) {
            tell(round, own);
        }
        return own;
    }

    /* y of all chunks, and of the row before. */
    __device__ __forceinline__ void hand_down(uint32_t round,
                                              const PanelSums<Number> &own) const
    {
        hand_down_from(t.groups > 1 ? together(hear(round)) : weigh(own, 0), round & 1);
    }

  private:
    /* The sum of the parts of a column, the same in all its lanes. */
    static __device__ __forceinline__ PanelSums<Number> together(PanelSums<Number> s)
    {
#pragma unroll
        for (int reach = columns; reach < PANEL_LANES; reach *= 2) {
            const int other = static_cast<int>(threadIdx.x % 32) ^ reach;

            s.first = s.first + shuffle(all_lanes, s.first, other);
            s.d = s.d + shuffle(all_lanes, s.d, other);
        }
        return s;
    }

    /* The lane's chunks: their part of the block's sums, and c. */
    __device__ __forceinline__ PanelSums<Number> sum_up(int turn) const
    {
        const int first = part * own_chunks;
        PanelSums<Number> s[own_chunks + 1], all = {Number(0), Number(0)};

#pragma unroll
        for (int i = 0; i <= own_chunks; i++) {
            s[i] = shared.sums[turn][first + i][column];
        }
#pragma unroll
        for (int i = 0; i < own_chunks; i++) {
            const PanelShare<Number> by = shared.share[first + i];
            const PanelUnit<Number> unit = shared.chunk[first + i];

            all.first = all.first + by.first.first * s[i].first + by.d.first * s[i].d;
            all.d = all.d + by.first.d * s[i].first + by.d.d * s[i].d;
            shared.c[first + i][column] = unit.p * (s[i].d - unit.next * s[i + 1].first);
        }
        return all;
    }

    /* What the sums of a group count in y before the own group, and in its own. */
    __device__ __forceinline__ PanelSums<Number> weigh(const PanelSums<Number> &s,
                                                       int g) const
    {
        const PanelSums<Number> left = shared.weight[0][g], own = shared.weight[1][g];

        return {left.first * s.first + left.d * s.d, own.first * s.first + own.d * s.d};
    }

    __device__ __forceinline__ void tell(uint32_t round,
                                         const PanelSums<Number> &own) const
    {
        constexpr int words = PanelTeams<Number>::words;
        PanelWord *const to = t.message(at, round, at.group) + column;
        uint64_t word[words];

        memcpy(word, &own, sizeof own);
#pragma unroll
        for (int k = 0; k < words; k++) {
            tell_word(to + k * PANEL_LANES, {word[k], round + 1});
        }
    }

    /* What the lane's groups tell, weighed. All is asked for at once: each time takes as
     * long as the workers' copies ahead of it. */
    __device__ __forceinline__ PanelSums<Number> hear(uint32_t round) const
    {
        constexpr int words = PanelTeams<Number>::words;
        const PanelWord *const from = t.message(at, round, 0) + column;
        PanelSums<Number> all = {Number(0), Number(0)};
        uint64_t word[own_groups][words] = {};
        bool is_told;

        do {
            PanelWord w[own_groups][words] = {};

            is_told = true;
#pragma unroll
            for (int i = 0; i < own_groups; i++) {
                const int g = min(part + i * PANEL_CARRIERS, t.groups - 1);

#pragma unroll
                for (int k = 0; k < words && i * PANEL_CARRIERS < t.groups; k++) {
                    w[i][k] = hear_word(from + (g * words + k) * PANEL_LANES);
                }
            }
#pragma unroll
            for (int i = 0; i < own_groups; i++) {
#pragma unroll
                for (int k = 0; k < words && i * PANEL_CARRIERS < t.groups; k++) {
                    is_told = is_told && w[i][k].round == round + 1;
                    word[i][k] = w[i][k].word;
                }
            }
        } while (!__all_sync(all_lanes, is_told));
#pragma unroll
        for (int i = 0; i < own_groups; i++) {
            const int g = part + i * PANEL_CARRIERS;
            PanelSums<Number> s;

            memcpy(&s, word[i], sizeof s);
            const PanelSums<Number> y = weigh(s, g);

            all.first = g < t.groups ? all.first + y.first : all.first;
            all.d = g < t.groups ? all.d + y.d : all.d;
        }
        return all;
    }

    /* From y before the group, and of its last row. */
    __device__ __forceinline__ void hand_down_from(const PanelSums<Number> &ends,
                                                   int turn) const
    {
        Number g = ends.first, y[PANEL_CHUNKS];

        __syncwarp(); /* c is there */
#pragma unroll
        for (int i = 0; i < PANEL_CHUNKS - 1; i++) {
            y[i] = shared.c[i][column];
        }
#pragma unroll
        for (int i = 0; i < PANEL_CHUNKS - 1; i++) {
            g = y[i] - shared.m[i] * g;
            y[i] = g;
        }
        y[PANEL_CHUNKS - 1] = ends.d;
#pragma unroll
        for (int i = PANEL_CHUNKS - 2; i >= 0; i--) {
            y[i] = y[i] - shared.back[i] * y[i + 1];
        }
        if (part == 0) {
            shared.y[turn][0][column] = ends.first;
        }
#pragma unroll
        for (int i = 0; i < PANEL_CHUNKS; i++) {
            if (i / own_chunks == part) {
                shared.y[turn][i + 1][column] = y[i];
            }
        }
    }
};

#endif
