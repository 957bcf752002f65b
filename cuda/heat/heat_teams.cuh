/* heat_teams.cuh - how the chunks of a panel of columns and the blocks of a team meet.
 *
 * Every block tells the two sums of its group of rows, and weighs those of all to find
 * what comes into it: no block waits for what another has to work out first. All weights
 * are positive. Sums carry the number of their round, so that no fence is needed.
 */
#ifndef PS_CUDA_HEAT_HEAT_TEAMS_CUH
#define PS_CUDA_HEAT_HEAT_TEAMS_CUH

#include <cstring>

#include "device/mailbox.cuh"
#include "device/operand.cuh"
#include "device/tile_copy.cuh"
#include "heat/heat_line.cuh"
#include "heat/heat_teams.h"
#include "runtime/launch.cuh"

namespace pysolvers::heat {

/* The warps of a block: a solver a chunk, then reducers, then the mover. */
enum {
    HEAT_TEAM_STAGES = 3,
    HEAT_TEAM_PLACES = 16, /* rows of a chunk, at most */
    HEAT_REDUCERS = 4,
    HEAT_MOVER = HEAT_TEAM_CHUNKS + HEAT_REDUCERS,
    HEAT_TEAM_THREADS = 32 * (HEAT_MOVER + 1)
};

/* What a lane has of a row. */
template <typename Real> struct alignas(8) HeatLane {
    static constexpr int count = 8 / sizeof(Real);
    Real of[count];
};

/* Lanes of a reducer that share a column. */
template <typename Real>
static constexpr int heat_parts = HEAT_REDUCERS / HeatLane<Real>::count;

/* The pairs of a lane's columns. */
template <typename Real> struct alignas(16) HeatLanePairs {
    HeatPair<Real> of[HeatLane<Real>::count];
};

/* Rows first <= i < end of a group, the chunks of which have `chunk_rows` each as long as
 * there are some. */
struct HeatCut {
    int32_t first, end, chunk_rows;

    __device__ __forceinline__ HeatCut(int32_t rows, int32_t size, int group)
        : first(min(group * size * HEAT_TEAM_CHUNKS, rows)),
          end(min(first + size * HEAT_TEAM_CHUNKS, rows)), chunk_rows(size)
    {
    }

    __device__ __forceinline__ int32_t chunk(int number) const
    {
        return min(first + number * chunk_rows, end);
    }
};

/* What comes in from a group with these sums, and `more`. */
template <typename Real>
__device__ __forceinline__ HeatPair<Real>
weigh(const HeatWeights<Real> &w, const HeatPair<Real> &sums, const HeatPair<Real> &more)
{
    return {fma(w.uu, sums.u, fma(w.ux, sums.x, more.u)),
            fma(w.xu, sums.u, fma(w.xx, sums.x, more.x))};
}

/* What a block keeps in shared memory beside the rows. */
template <typename Real> struct alignas(128) HeatTeamShared {
    static constexpr int width = 32 * HeatLane<Real>::count;
    static constexpr int parts = heat_parts<Real>;
    static constexpr int turns = 2;
    HeatPair<Real> sums[turns][HEAT_TEAM_CHUNKS][width]; /* and then what comes in */
    HeatWeights<Real> weight[HEAT_TEAM_GROUPS], end[2];
    HeatUnit<Real> chunk[HEAT_TEAM_CHUNKS], part[parts];
    Arrivals rows[HEAT_TEAM_STAGES][2];     /* of half a stage are there */
    Arrivals done[HEAT_TEAM_STAGES][2];     /* and may leave */
    Arrivals reduced[turns], joined[turns]; /* sums are there; and what comes in */

    static __device__ __forceinline__ int turn(int round)
    {
        return round % turns;
    }
    static __device__ __forceinline__ int phase(int round)
    {
        return round / turns & 1;
    }

    /* By one thread. */
    __device__ __forceinline__ void init()
    {
        for (int k = 0; k < HEAT_TEAM_STAGES; k++) {
            for (int half = 0; half < 2; half++) {
                rows[k][half].init(1);
                done[k][half].init(32 * HEAT_TEAM_CHUNKS / 2);
            }
        }
        for (int k = 0; k < turns; k++) {
            reduced[k].init(32 * HEAT_TEAM_CHUNKS);
            joined[k].init(32 * HEAT_REDUCERS);
        }
    }

    /* The table of the block's group. */
    __device__ __forceinline__ void take(const HeatTeamTable<Real> &table, int group,
                                         int groups)
    {
        const int thread = threadIdx.x;

        if (thread < groups) {
            weight[thread] = table.weight[group][thread];
        }
        if (thread < 2) {
            end[thread] = table.end[group][thread];
        }
        if (thread < HEAT_TEAM_CHUNKS) {
            chunk[thread] = table.chunk[group][thread];
        }
        if (thread < parts) {
            part[thread] = table.part[group][thread];
        }
    }
};

/* Joins the chunks of a panel: a reducer has some of its columns, and lanes that are
 * `columns` apart share one, each for a part of its chunks and for some of the groups. */
template <typename Real> struct HeatReducer {
    using Shared = HeatTeamShared<Real>;
    using Pair = HeatPair<Real>;
    static constexpr int width = Shared::width, parts = Shared::parts;
    static constexpr int words = sizeof(Pair) / sizeof(uint64_t);
    static constexpr int columns = width / HEAT_REDUCERS; /* of a warp */
    static constexpr int own_chunks = HEAT_TEAM_CHUNKS / parts;
    static constexpr int at_once = 4 / words; /* groups that are heard */
    const HeatTeams<Real> &t;
    const HeatColumns<Real> &s;
    Shared &shared;
    const TeamPlace &at;
    const int part = at.lane / columns;
    const int column = (at.warp - HEAT_TEAM_CHUNKS) * columns + at.lane % columns;

    /* All rounds. */
    __device__ __forceinline__ void carry(int rounds) const
    {
        for (int round = 0; round < rounds; round++) {
            shared.reduced[Shared::turn(round)].wait(Shared::phase(round));
            if (t.groups > 1) {
                post(round, sum_of<parts>(shared.part, Sums(*this, round).part));
            }
            hand_down(round);
        }
    }

  private:
    __device__ __forceinline__ Pair (*sums(int round) const)[width]
    {
        return shared.sums[Shared::turn(round)] + part * own_chunks;
    }

    /* The sums of the part's chunks, and of all parts. */
    struct Sums {
        Pair chunk[own_chunks], part[parts];

        __device__ __forceinline__ Sums(const HeatReducer &c, int round)
        {
#pragma unroll
            for (int i = 0; i < own_chunks; i++) {
                chunk[i] = c.sums(round)[i][c.column];
            }
            const Pair own =
                sum_of<own_chunks>(c.shared.chunk + c.part * own_chunks, chunk);
#pragma unroll
            for (int i = 0; i < parts; i++) {
                const int lane = c.at.lane % columns + i * columns;

                part[i] = {__shfl_sync(all_lanes, own.u, lane),
                           __shfl_sync(all_lanes, own.x, lane)};
            }
        }
    };

    /* What comes into the part's chunks takes the place of their sums. */
    __device__ __forceinline__ void hand_down(int round) const
    {
        Pair in = from_ends(round);

        if (t.groups > 1) {
            const Pair others = together(poll(round));

            in = {in.u + others.u, in.x + others.x};
        }
        Sums own(*this, round);

        if (t.groups == 1) {
            in = weigh(shared.weight[0], sum_of<parts>(shared.part, own.part), in);
        }
        in = share_out<parts>(shared.part, own.part, in, part);
        share_out<own_chunks>(shared.chunk + part * own_chunks, own.chunk, in, 0);
#pragma unroll
        for (int i = 0; i < own_chunks; i++) {
            sums(round)[i][column] = own.chunk[i];
        }
        shared.joined[Shared::turn(round)].arrive();
    }

    /* The sums of COUNT units as one. */
    template <int COUNT>
    static __device__ __forceinline__ Pair sum_of(const HeatUnit<Real> *unit,
                                                  const Pair (&of)[COUNT])
    {
        Pair all = {Real(0), Real(0)};

#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            all.x = fma(unit[i].lead, fma(unit[i].spread, all.u, of[i].x), all.x);
            all.u = fma(unit[i].power, all.u, of[i].u);
        }
        return all;
    }

    /* What comes into the units of what `in` comes into takes the place of their sums;
     * returns that of one. */
    template <int COUNT>
    static __device__ __forceinline__ Pair share_out(const HeatUnit<Real> *unit,
                                                     Pair (&of)[COUNT], Pair in,
                                                     int which)
    {
        Pair own = in;

#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const Real u = in.u;

            in.u = fma(unit[i].power, u, of[i].u);
            of[i] = {u, fma(unit[i].spread, u, of[i].x)};
        }
#pragma unroll
        for (int i = COUNT - 1; i >= 0; i--) {
            const Real x = in.x;

            in.x = fma(unit[i].power, x, of[i].x);
            of[i].x = x;
            if (i == which) {
                own = of[i];
            }
        }
        return own;
    }

    /* What comes into the block's group from the values of the ends. */
    __device__ __forceinline__ Pair from_ends(int round) const
    {
        const int64_t panel = at.team + round * t.teams;
        const int64_t plane = quotient(panel, t.plane_panels);
        const int64_t here = s.c0 + (panel - plane * t.plane_panels) * width + column;
        const int64_t node = min(here, s.c1 - 1) + plane * s.side;
        Pair in = {Real(0), Real(0)};

#pragma unroll
        for (int k = 0; k < 2; k++) {
            in = weigh(shared.end[k], {Real(0), s.end[k].at(node)}, in);
        }
        return in;
    }

    /* The sum of the parts of a column, the same in all its lanes. */
    static __device__ __forceinline__ Pair together(Pair sum)
    {
#pragma unroll
        for (int reach = columns; reach < 32; reach *= 2) {
            sum.u += __shfl_xor_sync(all_lanes, sum.u, reach);
            sum.x += __shfl_xor_sync(all_lanes, sum.x, reach);
        }
        return sum;
    }

    __device__ __forceinline__ MailboxSlot *message(int round) const
    {
        return t.mailbox + (at.team * 2 + (round & 1)) * t.groups * words * width +
               column;
    }

    __device__ __forceinline__ void post(int round, const Pair &own) const
    {
        MailboxSlot *const to = message(round) + at.group * words * width;
        uint64_t word[words];

        memcpy(word, &own, sizeof own);
#pragma unroll
        for (int k = 0; k < words && part == 0; k++) {
            post_word(to + k * width, {word[k], t.posted_before + round + 1});
        }
    }

    /* What the groups around the own one tell, weighed: some of them a lane. */
    __device__ __forceinline__ Pair poll(int round) const
    {
        const int count = min(2 * t.reach + 1, t.groups);
        const int first = at.group - t.reach + t.groups;
        Pair all = {Real(0), Real(0)};

        for (int k = part; k < count + part; k += at_once * parts) {
            all = poll_some(round, first + k, count - k, all);
        }
        return all;
    }

    /* Of groups `first`, first + parts, ... modulo their number, `count` at most in all;
     * all asked for at once, and again what is not told yet. */
    __device__ __forceinline__ Pair poll_some(int round, int first, int count,
                                              Pair all) const
    {
        const uint64_t number = t.posted_before + round + 1;
        const MailboxSlot *const from = message(round);
        MailboxSlot mailbox[at_once][words] = {};
        bool is_posted;

        do {
            is_posted = true;
#pragma unroll
            for (int i = 0; i < at_once; i++) {
#pragma unroll
                for (int k = 0; k < words; k++) {
                    const int group = (first + i * parts) % t.groups;

                    if (i * parts < count && mailbox[i][k].round != number) {
                        mailbox[i][k] = poll_word(from + (group * words + k) * width);
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < at_once; i++) {
#pragma unroll
                for (int k = 0; k < words; k++) {
                    is_posted = is_posted &&
                                (i * parts >= count || mailbox[i][k].round == number);
                }
            }
        } while (!__all_sync(all_lanes, is_posted));
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            uint64_t word[words];
            Pair sums;

#pragma unroll
            for (int k = 0; k < words; k++) {
                word[k] = mailbox[i][k].word;
            }
            memcpy(&sums, word, sizeof sums);
            if (i * parts < count) {
                all = weigh(shared.weight[(first + i * parts) % t.groups], sums, all);
            }
        }
        return all;
    }
};

} // namespace pysolvers::heat

#endif
