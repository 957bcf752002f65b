/* heat_resident.cuh - the kernel of heat_resident.h, which has the formula and the measured gain.
 *
 * A warp has a group of chunks of a row along x, and a thread a column along y. The sums of neighbouring
 * columns are one word of 128 bits in a mailbox, posted and read by the same warp in all blocks, so that a
 * warp never waits for other columns. Two places of each word suffice, in turn: who posts round n + 2 has
 * read round n + 1 of all sections that read it, which have read its round n before they posted that.
 */
#ifndef PS_CUDA_HEAT_HEAT_RESIDENT_CUH
#define PS_CUDA_HEAT_HEAT_RESIDENT_CUH

#include <type_traits>

#include "device/mailbox.cuh"
#include "heat/heat_line.cuh"
#include "heat/heat_resident.h"
#include "heat/heat_teams.cuh"
#include "runtime/launch.cuh"

namespace pysolvers::heat {

/* The sums of neighbouring columns in one word of 128 bits. The last bit of one of the numbers is no part of
 * it: it alternates from use to use of its place, so that a reader knows of which round the word is. */
template <typename Real> struct HeatHeldSums {
    static constexpr int columns = 8 / sizeof(Real);
    HeatPair<Real> of[columns];

    __device__ __forceinline__ void post(MailboxSlot *to, uint64_t mark) const
    {
        MailboxSlot word;

        memcpy(&word, of, sizeof word);
        word.round = (word.round & ~uint64_t{1}) | mark;
        post_word(to, word);
    }
    __device__ __forceinline__ void take(const MailboxSlot &word)
    {
        const MailboxSlot without_mark = {word.word, word.round & ~uint64_t{1}};

        memcpy(of, &without_mark, sizeof of);
    }
};

/* Words that a thread polls at once. */
template <typename Real> constexpr int heat_resident_words = sizeof(Real) == 4 ? 4 : 8;

/* The rows of a block in shared memory. */
template <typename Real> struct HeatHeldRows {
    const HeatLine<Real> &line;
    const HeatResident<Real> &s;
    Real *memory;
    int first, count; /* rows of the section */

    __device__ __forceinline__ Real *row(int n) const
    {
        return memory + n * s.pitch;
    }
};

/* Solve the rows along x in step `step`: w = 2 x - w. `total` are the sums of the groups of the rows that
 * the warps have at the same time. */
template <int WARPS, int ROWS, typename Real>
__device__ __forceinline__ void
solve_held_rows(const HeatHeldRows<Real> &of, int step, HeatPair<Real> (&total)[2][WARPS])
{
    const HeatLine<Real> &line = of.line;
    const HeatResident<Real> &s = of.s;
    const int lane = static_cast<int>(threadIdx.x) % 32,
              warp = static_cast<int>(threadIdx.x) / 32;
    const int own = warp / line.groups, group = warp - own * line.groups;
    const int at_once = WARPS / line.groups;
    const HeatShare<Real> share(*line.table, lane, group);
    const int number = group * HEAT_CHUNKS + lane;
    const int start = number * ROWS - line.pads, pads = min(max(-start, 0), ROWS);

    for (int pass = 0; pass * at_once < of.count; pass++) {
        const int n = pass * at_once + own;
        const bool is_here = own < at_once && n < of.count;
        Real *const w = of.row(n) + start;
        Real end[2] = {Real(0), Real(0)};
        HeatChunk<Real, ROWS> chunk = {line, pads, number == line.first_chunk,
                                       number == HEAT_CHUNKS * line.groups - 1};
        HeatGroup<Real> chunks = {line, lane, group};
        HeatPair<Real> whole = {Real(0), Real(0)};

        if (is_here) {
            const auto rhs = [&](int i) { return w[i]; };

#pragma unroll
            for (int e = 0; e < 2; e++) {
                HeatValues<Real> side = s.x_side[e];

                side.data += side.data != nullptr ? step * s.x_side_step[e] : 0;
                end[e] = side.at(of.first + n);
            }
            whole = chunks.scan(group == 0 ? chunk.template eliminate<true>(rhs, end)
                                           : chunk.template eliminate<false>(rhs, end));
            if (lane == 0) {
                total[pass & 1][warp] = whole;
            }
        }
        if (line.groups > 1) {
            __syncthreads();
        }
        if (is_here) {
            const HeatPair<Real> *const totals = total[pass & 1] + warp - group;
            const auto total_of = [&](int g) { return totals[g]; };
            const HeatInflow<Real> from =
                line.groups == 1 ? heat_inflow_alone(line, share, whole, end)
                : s.is_near      ? heat_inflow_near(line, share, group, total_of, end)
                                 : heat_inflow(line, share, group, total_of, end);
            HeatPair<Real> in = share.into_chunk(chunks.in, from.group);

            if (chunk.has_first && pads > 0) {
                in.u = from.first;
            }
            const auto put = [&](auto edge) {
                constexpr bool EDGE = decltype(edge)::value;

                chunk.template substitute<EDGE>(in, [&](int i, Real x) {
                    if (!EDGE || i >= pads) {
                        w[i] = fma(Real(2), x, -w[i]);
                    }
                });
            };

            if (group == 0) {
                put(std::true_type());
            }
            else {
                put(std::false_type());
            }
        }
    }
}

/* What a section reads: the weights of its own sums, of those of the other sections, and of the values of
 * the ends; and the places of the other sections in the mailbox. */
template <typename Real> struct HeatHeldReads {
    HeatWeights<Real> own, end[2], other[HEAT_RESIDENT_READS];
    int32_t place[HEAT_RESIDENT_READS];

    /* By all threads. */
    template <int WARPS>
    __device__ __forceinline__ void set(const HeatResident<Real> &s, int section)
    {
        constexpr int columns = HeatHeldSums<Real>::columns;
        const int slots = (s.columns + columns - 1) / columns,
                  self = s.reach % s.sections;
        const int thread = static_cast<int>(threadIdx.x);

        for (int k = thread; k < s.reads; k += (32 * WARPS)) {
            const HeatWeights<Real> weight = s.of_section[section * s.reads + k];

            if (k == self) {
                own = weight;
            }
            else {
                other[k - (k > self)] = weight;
                place[k - (k > self)] = s.read(section, k) * slots;
            }
        }
        if (thread < 2) {
            const HeatWeights<Real> weight = s.of_end[2 * section + thread];

            end[thread] = max(fabs(weight.ux), fabs(weight.xx)) < Real(1e-30)
                              ? HeatWeights<Real>{}
                              : weight;
        }
    }
};

/* A column of a section along y. */
template <typename Real, int DEPTH> struct HeatHeldColumn {
    const HeatHeldRows<Real> &of;
    Real u[DEPTH];

    /* Eliminate from 0 before the section; returns its sums. EDGE: it has the first or the last row. */
    template <bool EDGE>
    __device__ __forceinline__ HeatPair<Real> eliminate(int step, int c)
    {
        const HeatResident<Real> &s = of.s;
        Real above = Real(0), x = Real(0);

#pragma unroll
        for (int n = 0; n < DEPTH; n++) {
            if (n < of.count) {
                Real b = of.row(n)[c];

                if (EDGE && of.first + n == s.rows - 1) {
                    b = at_end(step, 1, c, b);
                }
                if (EDGE && of.first + n == 0) {
                    b = at_end(step, 0, c, b);
                }
                above = fma(s.q, above, s.p * b);
                x = fma(s.power[n], above, x);
            }
            u[n] = above;
        }
        return {above, s.p * x};
    }

    /* x from the boundary values: w = 2 x - w, and t = x if t is there. */
    __device__ __forceinline__ void substitute(const HeatPair<Real> &in, int c, Real *t)
    {
        const HeatResident<Real> &s = of.s;
        Real x = in.x;

#pragma unroll
        for (int n = DEPTH - 1; n >= 0; n--) {
            if (n < of.count) {
                Real &w = of.row(n)[c];

                x = fma(s.q, x, s.p * fma(s.power[n + 1], in.u, u[n]));
                w = fma(Real(2), x, -w);
                if (t != nullptr) {
                    t[(of.first + n) * s.nodes + c] = x;
                }
            }
        }
    }

    /* The value of an end. */
    __device__ __forceinline__ Real side(int step, int e, int c) const
    {
        HeatValues<Real> values = of.s.y_side[e];

        values.data += values.data != nullptr ? step * of.s.y_side_step[e] : 0;
        return values.at(min(c, of.s.columns - 1));
    }

  private:
    __device__ __forceinline__ Real at_end(int step, int e, int c, Real b) const
    {
        const HeatResident<Real> &s = of.s;

        return s.weight[e] *
               (s.add[e] != Real(0) ? fma(s.add[e], side(step, e, c), b) : b);
    }
};

/* What the other sections add to the boundary values of a column, called by whole warps. The lanes of the
 * columns of a word read every so many of the sections, for all of these columns. */
template <typename Real>
__device__ __forceinline__ HeatPair<Real>
sum_other_sections(const HeatHeldReads<Real> &reads, int count, const MailboxSlot *from,
                   uint64_t mark, bool is_there)
{
    constexpr int words = heat_resident_words<Real>,
                  columns = HeatHeldSums<Real>::columns;
    const int part = static_cast<int>(threadIdx.x) % columns;
    HeatHeldSums<Real> in = {};

    for (int first = 0; first < count; first += words * columns) {
        MailboxSlot posted[words];
        bool is_posted;
        const auto number = [&](int j) { return first + j * columns + part; };

#pragma unroll
        for (int j = 0; j < words; j++) {
            posted[j] = {0, mark ^ 1};
        }
        do {
            is_posted = true;
#pragma unroll
            for (int j = 0; j < words; j++) {
                if (is_there && number(j) < count && (posted[j].round & 1) != mark) {
                    posted[j] = poll_word(from + reads.place[number(j)]);
                }
            }
#pragma unroll
            for (int j = 0; j < words; j++) {
                is_posted = is_posted && (!is_there || number(j) >= count ||
                                          (posted[j].round & 1) == mark);
            }
        } while (!__all_sync(all_lanes, is_posted));
#pragma unroll
        for (int j = 0; j < words; j++) {
            if (number(j) < count) {
                const HeatWeights<Real> weight = reads.other[number(j)];
                HeatHeldSums<Real> sums;

                sums.take(posted[j]);
#pragma unroll
                for (int i = 0; i < columns; i++) {
                    in.of[i] = weigh(weight, sums.of[i], in.of[i]);
                }
            }
        }
    }
    if constexpr (columns == 2) {
        const HeatPair<Real> own = part == 0 ? in.of[0] : in.of[1];
        const HeatPair<Real> other = part == 0 ? in.of[1] : in.of[0];

        return {own.u + __shfl_xor_sync(all_lanes, other.u, 1),
                own.x + __shfl_xor_sync(all_lanes, other.x, 1)};
    }
    else {
        return in.of[0];
    }
}

/* Solve the columns along y. EDGE: the section has the first or the last row. */
template <int WARPS, bool EDGE, int DEPTH, typename Real>
__device__ __forceinline__ void
solve_held_columns(const HeatHeldRows<Real> &of, int step,
                   const HeatHeldReads<Real> &reads, Real *t)
{
    using Sums = HeatHeldSums<Real>;
    constexpr int columns = Sums::columns;
    const HeatResident<Real> &s = of.s;
    const uint64_t round = s.posted_before + static_cast<uint64_t>(step);
    const uint64_t mark = (round >> 1 & 1) ^ 1;
    const int slots = (s.columns + columns - 1) / columns, others = s.reads - 1;
    MailboxSlot *const mailbox =
        s.mailbox + static_cast<int64_t>(round & 1) * s.sections * slots;
    MailboxSlot *const own_place = mailbox + blockIdx.x * slots;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
    const int last = columns * slots - 1; /* column in shared memory */
    HeatHeldColumn<Real, DEPTH> column = {of, {}};
    HeatPair<Real> own = {Real(0), Real(0)};

    for (int c = thread; c - lane < s.columns; c += (32 * WARPS)) {
        own = column.template eliminate<EDGE>(step, min(c, last));
        if (others > 0) {
            Sums sums = {{own}};

            if constexpr (columns == 2) {
                sums.of[1] = {__shfl_xor_sync(all_lanes, own.u, 1),
                              __shfl_xor_sync(all_lanes, own.x, 1)};
            }
            if (c <= last && c % columns == 0) {
                sums.post(own_place + c / columns, mark);
            }
        }
    }
    for (int c = thread; c - lane < s.columns; c += (32 * WARPS)) {
        if (s.columns > (32 * WARPS)) {
            own = column.template eliminate<EDGE>(step, min(c, last));
        }
        HeatPair<Real> in = weigh(reads.own, own, {Real(0), Real(0)});

#pragma unroll
        for (int e = 0; e < 2; e++) {
            const HeatWeights<Real> &weight = reads.end[e];

            if (weight.ux != Real(0) || weight.xx != Real(0)) {
                in = weigh(weight, {Real(0), column.side(step, e, c)}, in);
            }
        }
        if (others > 0) {
            /* of its own columns only: who posts the next but one round waits for these */
            const HeatPair<Real> more =
                sum_other_sections(reads, others, mailbox + c / columns, mark, c <= last);

            in = {in.u + more.u, in.x + more.x};
        }
        if (c < s.columns) {
            column.substitute(in, c, t);
        }
    }
}

/* The kernel of some steps; a block per section. */
template <typename Real, int WARPS, int ROWS, int DEPTH>
__global__ void __launch_bounds__((32 * WARPS), 1)
    heat_resident_kernel(const __grid_constant__ HeatLine<Real> line,
                         const __grid_constant__ HeatResident<Real> s)
{
    extern __shared__ __align__(16) char memory[];
    __shared__ HeatPair<Real> total[2][WARPS];
    __shared__ HeatHeldReads<Real> reads;
    const int section = static_cast<int>(blockIdx.x),
              thread = static_cast<int>(threadIdx.x);
    const int first = s.bound(section), end = s.bound(section + 1);
    const HeatHeldRows<Real> of = {line, s, reinterpret_cast<Real *>(memory), first,
                                   end - first};
    const bool is_edge = first == 0 || end == s.rows;

    wait_for_last_kernel();
    reads.template set<WARPS>(s, section);
    for (int n = 0; n < of.count; n++) {
        for (int c = thread; c < s.columns; c += (32 * WARPS)) {
            of.row(n)[c] = s.w[(first + n) * s.nodes + c];
        }
    }
    __syncthreads();
    for (int step = 0; step < s.steps; step++) {
        Real *const t = step == s.steps - 1 ? s.t : nullptr;

        solve_held_rows<WARPS, ROWS>(of, step, total);
        __syncthreads();
        if (is_edge) {
            solve_held_columns<WARPS, true, DEPTH>(of, step, reads, t);
        }
        else {
            solve_held_columns<WARPS, false, DEPTH>(of, step, reads, t);
        }
        __syncthreads();
    }
    let_next_kernel_in();
    for (int n = 0; n < of.count; n++) {
        for (int c = thread; c < s.columns; c += (32 * WARPS)) {
            s.w[(first + n) * s.nodes + c] = of.row(n)[c];
        }
    }
}

} // namespace pysolvers::heat

#endif
