/* heat_line.cuh - the recurrences of heat_line.h on a chunk, a group and a line.
 *
 * A chunk with boundary values 0 gives two sums: u of its last row and x of its first.
 * A warp scans the sums of 32 chunks; the sums of the groups of a line are added one
 * after the other; the boundary values are then passed back to the groups and chunks. 7
 * operations per row.
 */
#ifndef PS_CUDA_HEAT_HEAT_LINE_CUH
#define PS_CUDA_HEAT_HEAT_LINE_CUH

#include "heat/heat_line.h"
#include "lines/join/scan.cuh"

namespace pysolvers::heat {

using namespace device;

/* The sums of a chunk or group: u of its last row and x of its first row. Or its
 * boundary values: u of the row before it and x of the row after it. */
template <typename Real> struct alignas(2 * sizeof(Real)) HeatPair {
    using word = std::conditional_t<sizeof(Real) == 4, uint32_t, uint64_t>;
    Real u, x;
};

/* Row i of a column whose pitch is in bytes: one instruction. */
template <typename Real>
__device__ __forceinline__ Real *
row_at(Real *first, int i, uint32_t pitch)
{
    return reinterpret_cast<Real *>(reinterpret_cast<uintptr_t>(first) +
                                    static_cast<uint64_t>(pitch) *
                                        static_cast<uint32_t>(i));
}

/* The rows of a thread, in registers. An EDGE chunk may contain the first row of the
 * line, and `pads` places before it, at most ROWS, that are no rows. */
template <typename Real, int ROWS> struct HeatChunk {
    const HeatLine<Real> &line;
    int pads;
    bool has_first, has_last;
    Real u[ROWS];

    /* b(i) is the right-hand side of row i; end[] are the values of the sides. */
    template <bool EDGE, typename Rhs>
    __device__ __forceinline__ HeatPair<Real> eliminate(const Rhs &b, const Real end[2])
    {
        Real above = Real(0), below = Real(0);

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            u[i] = EDGE && i < pads ? Real(0) : b(i);
        }
        if (has_last) {
            u[ROWS - 1] = (u[ROWS - 1] + line.add[1] * end[1]) * line.weight[1];
        }
        if (EDGE && has_first && line.weight[0] != Real(1)) {
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                u[i] = i == pads ? (u[i] + line.add[0] * end[0]) * line.weight[0] : u[i];
            }
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            above = fma(line.q, above, line.p * u[i]);
            u[i] = above;
        }
#pragma unroll
        for (int i = ROWS - 1; i >= 0; i--) {
            below = EDGE && i < pads ? below : fma(line.q, below, u[i]);
        }
        return {above, line.p * below};
    }

    /* x of all places, from the last to the first: put(i, x). The x of a pad is
     * undefined. */
    template <bool EDGE, typename Put>
    __device__ __forceinline__ void substitute(const HeatPair<Real> &in, const Put &put)
    {
        Real below = in.x;

        if (EDGE) {
            Real above = in.u;

#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                above = i < pads ? above : line.q * above;
                u[i] += above;
            }
        }
#pragma unroll
        for (int i = ROWS - 1; i >= 0; i--) {
            const Real own = EDGE ? u[i] : fma(line.powers[i], in.u, u[i]);

            below = fma(line.q, below, line.p * own);
            put(i, below);
        }
    }
};

/* The chunks of a group, one per lane. */
template <typename Real> struct HeatGroup {
    const HeatLine<Real> &line;
    int lane, group;
    /* boundary values of the chunk of this lane if those of the group are 0 */
    HeatPair<Real> in;

    /* Returns the sums of the group. Called by all lanes together. */
    __device__ __forceinline__ HeatPair<Real> scan(HeatPair<Real> own)
    {
        const join::LaneScan<true> down = {lane};
        const join::LaneScan<false> up = {lane};
        const auto decay = [&](int k) { return line.reach[k]; };
        const Real x = own.x;

        own.u = down.leaving(own.u, decay);
        in.u = down.entering(own.u);
        own.x = up.leaving(fma(line.spread, in.u, own.x), decay);
        in.x = up.entering(own.x);
        own.x = group > 0 ? own.x : fma(line.first_reach, in.x, x);
        return {__shfl_sync(all_lanes, own.u, 31),
                __shfl_sync(all_lanes, own.x, group > 0 ? 0 : line.first_chunk)};
    }
};

/* The boundary values of a group, and U. */
template <typename Real> struct HeatInflow {
    HeatPair<Real> group;
    Real first;
};

/* The constants of a lane: those of its chunk and of its group. */
template <typename Real> struct HeatShare {
    Real u, x, both, group_u, group_x, group_both;

    __device__ __forceinline__ HeatShare(const HeatTable<Real> &t, int lane, int group)
        : u(t.u[group > 0][lane]), x(t.x[lane]), both(t.both[group > 0][lane]),
          group_u(t.group_u[group]), group_x(t.group_x[group]),
          group_both(t.group_both[group])
    {
    }

    /* The boundary values of the chunk of the lane: `from` are those of its group, `in`
     * comes from within the group. */
    __device__ __forceinline__ HeatPair<Real> into_chunk(const HeatPair<Real> &in,
                                                         const HeatPair<Real> &from) const
    {
        return {fma(u, from.u, in.u), in.x + (x * from.x + both * from.u)};
    }
};

/* U, and x after the last row. */
template <typename Real> struct HeatEnds {
    Real first, behind;
};

/* Close a line: from its sums and the values of the ends. */
template <typename Real>
__device__ __forceinline__ HeatEnds<Real>
heat_ends(const HeatLine<Real> &line, const HeatPair<Real> &whole, const Real end[2])
{
    return {line.u[0] * whole.x + line.u[1] * whole.u + line.u[2] * end[0] +
                line.u[3] * end[1],
            line.y[0] * whole.x + line.y[1] * whole.u + line.y[2] * end[0] +
                line.y[3] * end[1]};
}

/* Boundary values from total(g) of all groups and the values of the ends. */
template <typename Real, typename Total>
__device__ __forceinline__ HeatInflow<Real>
heat_inflow(const HeatLine<Real> &line, const HeatShare<Real> &share, int group,
            const Total &total, const Real end[2])
{
    Real u = Real(0), x = Real(0), weight = Real(1), own_weight = Real(1);
    HeatPair<Real> own = {Real(0), Real(0)};

    for (int g = 0; g < line.groups; g++) {
        const HeatPair<Real> t = total(g);
        const Real whole = fma(line.group_spread, u, t.x);

        own.u = g == group ? u : own.u;
        if (g > group) {
            own.x = fma(own_weight, whole, own.x);
            own_weight *= line.group_power;
        }
        x = fma(weight, whole, x);
        weight *= g == 0 ? line.first_power : line.group_power;
        u = fma(line.group_power, u, t.u);
    }
    const HeatEnds<Real> ends = heat_ends(line, {u, x}, end);

    own.u = fma(share.group_u, ends.first, own.u);
    own.x += share.group_x * ends.behind + share.group_both * ends.first;
    return {own, ends.first};
}

/* The same where q^rows of a group does not count: only the adjacent groups do. */
template <typename Real, typename Total>
__device__ __forceinline__ HeatInflow<Real>
heat_inflow_near(const HeatLine<Real> &line, const HeatShare<Real> &share, int group,
                 const Total &total, const Real end[2])
{
    const int last = line.groups - 1;
    const HeatPair<Real> first = total(0), second = total(min(1, last));
    const HeatPair<Real> here = total(group), before = total(max(group - 1, 0)),
                         behind = total(min(group + 1, last));
    const Real x = last == 0 ? first.x
                             : fma(line.first_power,
                                   fma(line.group_spread, first.u, second.x), first.x);
    const HeatEnds<Real> ends = heat_ends(line, {total(last).u, x}, end);
    HeatPair<Real> own = {group > 0 ? before.u : Real(0),
                          group < last ? fma(line.group_spread, here.u, behind.x)
                                       : Real(0)};

    own.u = fma(share.group_u, ends.first, own.u);
    own.x += share.group_x * ends.behind + share.group_both * ends.first;
    return {own, ends.first};
}

/* The same for a line that is one group. */
template <typename Real>
__device__ __forceinline__ HeatInflow<Real>
heat_inflow_alone(const HeatLine<Real> &line, const HeatShare<Real> &share,
                  const HeatPair<Real> &whole, const Real end[2])
{
    const HeatEnds<Real> ends = heat_ends(line, whole, end);

    return {{share.group_u * ends.first,
             share.group_x * ends.behind + share.group_both * ends.first},
            ends.first};
}

} // namespace pysolvers::heat

#endif
