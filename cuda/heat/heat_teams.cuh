/* heat_teams.cuh - the reduction of the chunks of a panel of columns and of the blocks
 * of a team.
 *
 * Every block posts the two sums of its group of rows and computes its boundary values
 * as a weighted sum of those of all groups: no block waits for a result that another
 * block computes from received data. All weights are positive. A sum is stored with the
 * number of its round, so that no fence is needed.
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

/* The warps of a block: one solver per chunk, then the reducers, then the copy warp. */
enum {
    HEAT_TEAM_STAGES = 3,
    HEAT_TEAM_PLACES = 16, /* rows of a chunk, at most */
    HEAT_TEAM_MORE_PLACES =
        17, /* the same, where more blocks would be needed otherwise */
    HEAT_REDUCERS = 4,
    HEAT_COPY_WARP = HEAT_TEAM_CHUNKS + HEAT_REDUCERS,
    HEAT_TEAM_THREADS = 32 * (HEAT_COPY_WARP + 1)
};

/* The columns of a lane in a row. */
template <typename Real> struct alignas(8) HeatLane {
    static constexpr int count = 8 / sizeof(Real);
    Real of[count];
};

/* Lanes of a reducer that share a column. */
template <typename Real>
static constexpr int heat_parts = HEAT_REDUCERS / HeatLane<Real>::count;

/* The pairs of the columns of a lane. */
template <typename Real> struct alignas(16) HeatLanePairs {
    HeatPair<Real> of[HeatLane<Real>::count];
};

/* Rows first <= i < end of a group. Its chunks have `chunk_rows` rows each, the last
 * ones fewer or none. */
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

/* `more` plus the contribution of a group with these sums to the boundary values. */
template <typename Real>
__device__ __forceinline__ HeatPair<Real>
weigh(const HeatWeights<Real> &w, const HeatPair<Real> &sums, const HeatPair<Real> &more)
{
    return {fma(w.uu, sums.u, fma(w.ux, sums.x, more.u)),
            fma(w.xu, sums.u, fma(w.xx, sums.x, more.x))};
}

/* The shared memory of a block apart from the rows. */
template <typename Real> struct alignas(128) HeatTeamShared {
    static constexpr int width = 32 * HeatLane<Real>::count;
    static constexpr int parts = heat_parts<Real>;
    static constexpr int turns = 2;
    /* the sums of the chunks, replaced by their boundary values */
    HeatPair<Real> sums[turns][HEAT_TEAM_CHUNKS][width];
    HeatWeights<Real> weight[HEAT_TEAM_GROUPS], end[2];
    HeatUnit<Real> chunk[HEAT_TEAM_CHUNKS], part[parts];
    Arrivals rows[HEAT_TEAM_STAGES][2];     /* half a stage has been loaded */
    Arrivals done[HEAT_TEAM_STAGES][2];     /* half a stage may be stored */
    Arrivals reduced[turns], joined[turns]; /* sums, or boundary values, are available */

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

    /* Load the part of the table for the group of the block. */
    __device__ __forceinline__ void load_table(const HeatTeamTable<Real> &table,
                                               int group, int groups)
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

/* Joins the chunks of a panel. A reducer has some of its columns; lanes whose distance
 * is a multiple of `columns` share a column, and each has a part of its chunks and of
 * the groups. */
template <typename Real> struct HeatReducer {
    using Shared = HeatTeamShared<Real>;
    using Pair = HeatPair<Real>;
    static constexpr int width = Shared::width, parts = Shared::parts;
    static constexpr int words = sizeof(Pair) / sizeof(uint64_t);
    static constexpr int columns = width / HEAT_REDUCERS; /* of a warp */
    static constexpr int own_chunks = HEAT_TEAM_CHUNKS / parts;
    static constexpr int at_once = 4 / words; /* groups that are polled at once */
    const HeatTeams<Real> &t;
    const HeatColumns<Real> &s;
    Shared &shared;
    const TeamPlace &at;
    const int part = at.lane / columns;
    const int column = (at.warp - HEAT_TEAM_CHUNKS) * columns + at.lane % columns;

    /* All rounds. */
    __device__ __forceinline__ void run(int rounds) const
    {
        for (int round = 0; round < rounds; round++) {
            shared.reduced[Shared::turn(round)].wait(Shared::phase(round));
            if (t.groups > 1) {
                const Pair own = sum_of<parts>(shared.part, Sums(*this, round).part);

                if (part == 0) {
                    mailbox(round).post(at.group, own, t.posted_before + round + 1);
                }
            }
            distribute(round);
        }
    }

  private:
    __device__ __forceinline__ Pair (*sums(int round) const)[width]
    {
        return shared.sums[Shared::turn(round)] + part * own_chunks;
    }

    /* The sums of the chunks of the part of this lane, and of all parts. */
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

    /* Replace the sums of the chunks of this part by their boundary values. */
    __device__ __forceinline__ void distribute(int round) const
    {
        Pair in = from_ends(round);

        if (t.groups > 1) {
            const Pair others = sum_over_parts(poll(round));

            in = {in.u + others.u, in.x + others.x};
        }
        Sums own(*this, round);

        if (t.groups == 1) {
            in = weigh(shared.weight[0], sum_of<parts>(shared.part, own.part), in);
        }
        in = distribute_units<parts>(shared.part, own.part, in, part);
        distribute_units<own_chunks>(shared.chunk + part * own_chunks, own.chunk, in, 0);
#pragma unroll
        for (int i = 0; i < own_chunks; i++) {
            sums(round)[i][column] = own.chunk[i];
        }
        shared.joined[Shared::turn(round)].arrive();
    }

    /* The sums of COUNT units as one unit. */
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

    /* Replace the sums of COUNT units by their boundary values, if `in` are those of
     * all of them; returns the boundary values of unit `which`. */
    template <int COUNT>
    static __device__ __forceinline__ Pair distribute_units(const HeatUnit<Real> *unit,
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

    /* The contribution of the values of the ends to the boundary values of the group of
     * the block. */
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

    /* The sum over the parts of a column, the same in all its lanes. */
    static __device__ __forceinline__ Pair sum_over_parts(Pair sum)
    {
#pragma unroll
        for (int reach = columns; reach < 32; reach *= 2) {
            sum.u += __shfl_xor_sync(all_lanes, sum.u, reach);
            sum.x += __shfl_xor_sync(all_lanes, sum.x, reach);
        }
        return sum;
    }

    __device__ __forceinline__ TeamMailbox<Pair> mailbox(int round) const
    {
        return {t.mailbox + (at.team * 2 + (round & 1)) * t.groups * words * width +
                    column,
                width};
    }

    /* The weighted sum over the neighbouring groups that belong to this lane. */
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

    /* The same for groups `first`, first + parts, ..., modulo their number, at most
     * `count`. All are requested at once; those without the number of the round are
     * requested until they have it. */
    __device__ __forceinline__ Pair poll_some(int round, int first, int count,
                                              Pair all) const
    {
        const uint64_t number = t.posted_before + round + 1;
        const TeamMailbox<Pair> from = mailbox(round);
        MailboxSlot posted[at_once * words] = {};

        poll_words<true>(
            posted, number, [&](int i) { return i / words * parts < count; },
            [&](int i) {
                return from.slot((first + i / words * parts) % t.groups, i % words);
            });
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            uint64_t word[words];
            Pair sums;

#pragma unroll
            for (int k = 0; k < words; k++) {
                word[k] = posted[i * words + k].word;
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
