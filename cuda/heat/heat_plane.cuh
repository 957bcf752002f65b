/* heat_plane.cuh - the kernels of heat_plane.h, which has the formula and the measured gain.
 *
 * The threads of a block have a chunk of a row of nodes each; the blocks of a cluster exchange the
 * sums of its groups of chunks. Rows are in a ring in shared memory, loaded in advance and stored
 * by bulk copies; a row is solved in its place. A thread keeps in registers, for the nodes of its
 * chunk, x of the last row along y, u of the last row, and the sum for x of the first row of the
 * section.
 */
#ifndef PS_CUDA_HEAT_HEAT_PLANE_CUH
#define PS_CUDA_HEAT_HEAT_PLANE_CUH

#include <type_traits>

#include "heat/heat_line.cuh"
#include "heat/heat_plane.h"
#include "heat/heat_teams.cuh"
#include "lines/join/exchange.cuh"
#include "runtime/copy.cuh"
#include "runtime/launch.cuh"

namespace pysolvers::heat {

/* The warps of a block, at most, as many as have registers, and those of a block of a cluster. Rows in
 * shared memory apart from the ring: u before the section, and in the last kernel x. */
enum {
    HEAT_PLANE_WARPS = 16,
    HEAT_PLANE_FEW_WARPS = 8,
    HEAT_PLANE_RING = 4,
    HEAT_PLANE_MOST_RING = 6,
    HEAT_PLANE_PARTS = HEAT_MOST_GROUPS / HEAT_PLANE_FEW_WARPS
};

/* The first kernel of a call, those of the other steps, and the one after the last step. */
enum { HEAT_PLANE_FIRST, HEAT_PLANE_NEXT, HEAT_PLANE_LAST };

/* Nodes of a chunk, odd numbers, of a block with whole rows, of one with longer rows and of a
 * cluster, both of float64. */
template <typename Real> constexpr int heat_plane_few = sizeof(Real) == 4 ? 17 : 9;
constexpr int heat_plane_more = 11, heat_plane_most = 21;

template <typename Real, int ROWS>
constexpr bool heat_plane_in_cluster = sizeof(Real) == 8 && ROWS == heat_plane_most;
template <typename Real, int ROWS>
constexpr int heat_row_warps =
    heat_plane_in_cluster<Real, ROWS> ? HEAT_PLANE_FEW_WARPS : HEAT_PLANE_WARPS;

/* Sums of a chunk that are in shared memory, for want of registers. */
template <typename Real, int ROWS>
constexpr int heat_plane_kept = sizeof(Real) == 8 && ROWS == heat_plane_more ? 6 : 0;

/* The nodes of a row that a block has, lo <= i < hi, of which node `base` is the first one in shared
 * memory. Number `first` of the chunks is that of its first thread. */
struct HeatPlanePart {
    int section, first, lo, hi, base;

    template <typename Real>
    __device__ __forceinline__ HeatPlanePart(const HeatPlane<Real> &s, int pads, int rows)
    {
        constexpr int per_copy = 16 / sizeof(Real);
        const int block = static_cast<int>(blockIdx.x), warps = blockDim.x / 32;
        const int part = block % s.parts;
        const auto bound = [&](int k) {
            return s.begin + (k * warps - s.idle) * HEAT_CHUNKS * rows - pads;
        };

        section = block / s.parts;
        first = (part * warps - s.idle) * HEAT_CHUNKS;
        lo = part == 0 ? 0 : bound(part);
        hi = part == s.parts - 1 ? static_cast<int>(s.nodes) : bound(part + 1);
        base = lo / per_copy * per_copy;
    }
};

/* The ring of rows of a section, in the order in which the block advances. */
template <typename Real> struct HeatPlaneRing {
    static constexpr int per_copy = 16 / sizeof(Real);
    const HeatPlane<Real> &s;
    const HeatPlanePart &part;
    Real *memory;
    Arrivals *full;
    int first, count;

    __device__ __forceinline__ HeatPlaneRing(const HeatPlane<Real> &of,
                                             const HeatPlanePart &own, Real *at,
                                             Arrivals *arrivals)
        : s(of), part(own), memory(at), full(arrivals), first(of.bound(own.section)),
          count(of.bound(own.section + 1) - first)
    {
    }

    /* The n-th row. */
    __device__ __forceinline__ int row(int n) const
    {
        return s.is_downward ? first + count - 1 - n : first + n;
    }

    __device__ __forceinline__ Real *place(int slot) const
    {
        return memory + slot * s.pitch;
    }

    /* By one thread. */
    __device__ __forceinline__ void load(int n, int slot) const
    {
        const uint32_t bytes =
            static_cast<uint32_t>((part.hi - part.base + per_copy - 1) / per_copy * 16);

        if (n < count) {
            full[slot].expect(bytes);
            copy_bulk(place(slot), s.w + row(n) * s.w_pitch + part.base, bytes,
                      full[slot]);
        }
    }

    /* By all threads: in bulk, and by some of them what shares 16 bytes with other blocks. */
    __device__ __forceinline__ void store(int n, int slot) const
    {
        Real *const to = s.w + row(n) * s.w_pitch;
        const Real *const from = place(slot) - part.base;
        const int thread = static_cast<int>(threadIdx.x);
        const int head = (part.lo + per_copy - 1) / per_copy * per_copy;
        const int tail = part.hi / per_copy * per_copy;

        if (thread == 0) {
            store_bulk(to + head, from + head,
                       static_cast<uint32_t>((tail - head) * sizeof(Real)));
            commit_stores();
        }
        if (part.lo + thread < head) {
            to[part.lo + thread] = from[part.lo + thread];
        }
        if (tail + thread < part.hi) {
            to[tail + thread] = from[tail + thread];
        }
    }

    /* By all threads: call(i, place) for the nodes of the block. */
    template <typename Call>
    __device__ __forceinline__ void each(int slot, const Call &call) const
    {
        for (int i = part.lo + static_cast<int>(threadIdx.x); i < part.hi;
             i += static_cast<int>(blockDim.x)) {
            call(i, place(slot)[i - part.base]);
        }
    }
};

/* The boundary values of the section in all columns, from the sums of the last step: u before it and x
 * after it, in its order. */
template <typename Real>
__device__ __forceinline__ void
begin_plane_section(const HeatPlane<Real> &s, const HeatPlanePart &part, Real *before,
                    Real *after)
{
    constexpr int at_once = 4; /* columns */
    const int section = part.section, step = static_cast<int>(blockDim.x);
    const int end = min(s.end, part.hi);

    /* The number of rounds comes from the host, and is unrolled by a power of two: nvcc 13.0 makes
     * a loop of min(a, b) rounds that is unrolled by 3 longer, so that sections counted twice. */
    for (int c = max(s.begin, part.lo) + static_cast<int>(threadIdx.x); c < end;
         c += at_once * step) {
        HeatPair<Real> in[at_once];
        int column[at_once];

#pragma unroll
        for (int i = 0; i < at_once; i++) {
            in[i] = {Real(0), Real(0)};
            column[i] = min(c + i * step, end - 1);
        }
        for (int side = 0; side < 2; side++) {
            const HeatWeights<Real> weight = s.order.end[2 * section + side];

            if (weight.ux != Real(0) || weight.xx != Real(0)) {
#pragma unroll
                for (int i = 0; i < at_once; i++) {
                    in[i] =
                        weigh(weight, {Real(0), s.last_side[side].at(column[i])}, in[i]);
                }
            }
        }
#pragma unroll 4
        for (int k = 0; k < s.reads; k++) {
            const int from = s.read(section, k);
            const HeatWeights<Real> weight = s.order.weight[section * s.reads + k];

#pragma unroll
            for (int i = 0; i < at_once; i++) {
                in[i] = weigh(weight, s.last_sums[from * s.nodes + column[i]], in[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            if (c + i * step < end) {
                before[column[i] - part.base] = in[i].u;
                after[column[i] - part.base] = in[i].x;
            }
        }
    }
}

/* Substitute row n along y: w contains its u, and then the right-hand sides b along x. Places before
 * `pads` are no nodes if EDGE. */
template <bool EDGE, typename Real, int ROWS>
__device__ __forceinline__ void
substitute_plane_row(const HeatPlane<Real> &s, const HeatPlaneRing<Real> &ring, int n,
                     const Real *behind, const Real *before, int column, int pads,
                     Real *w, Real (&y)[ROWS])
{
    const int row = ring.row(n), side = row == 0 ? 0 : 1;
    const bool is_end = row == 0 || row == s.rows - 1;
    const Real power = s.power[ring.count - n];
    const Real by = is_end ? s.end_inverse[side] : s.inverse;

#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (!EDGE || i >= pads) {
            const Real u = w[i], last = n + 1 < ring.count ? behind[i] : Real(0);

            y[i] = fma(s.q, y[i], s.p * fma(power, before[i], u));
            w[i] = fma(Real(2), y[i], -by * fma(-s.q, last, u));
        }
    }
    if (is_end && s.add[side] != Real(0)) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (!EDGE || i >= pads) {
                w[i] = fma(s.add[side], s.last_side[side].at(column + i), w[i]);
            }
        }
    }
}

template <typename Real, int PART, int ROWS>
__global__ void __launch_bounds__(32 * heat_row_warps<Real, ROWS>, 1)
    heat_plane_kernel(const __grid_constant__ HeatLine<Real> line,
                      const __grid_constant__ HeatPlane<Real> s)
{
    extern __shared__ __align__(16) char memory[];
    constexpr bool is_cluster = heat_plane_in_cluster<Real, ROWS>;
    constexpr int kept = PART == HEAT_PLANE_LAST ? 0 : heat_plane_kept<Real, ROWS>;
    constexpr int threads = 32 * heat_row_warps<Real, ROWS>;
    /* whether a row is substituted along y while the one before is solved along x */
    constexpr bool is_ahead =
        PART == HEAT_PLANE_NEXT &&
        (is_cluster || (sizeof(Real) == 4 && ROWS == heat_plane_few<Real>));
    __shared__ Arrivals full[HEAT_PLANE_MOST_RING], arrivals[2];
    __shared__ HeatPair<Real> total[2][HEAT_MOST_GROUPS];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
    const HeatPlanePart part(s, line.pads, ROWS);
    const int number = part.first + thread, group = max(number / 32, 0);
    const int start = number * ROWS - line.pads, pads = min(max(-start, 0), ROWS);
    const int column = s.begin + start, node = column - part.base;
    HeatChunk<Real, ROWS> chunk = {line, pads, number == line.first_chunk,
                                   number == HEAT_CHUNKS * line.groups - 1};
    const HeatPlaneRing<Real> ring(s, part, reinterpret_cast<Real *>(memory), full);
    const bool is_moved = s.own != s.w;
    Real *const before = ring.place(s.ring), *const x_row = before + s.pitch;
    Real *const kept_first = x_row + thread;
    RingPlace here = {0, 0}, next = {1, 0};
    Real y[ROWS], u[ROWS], own_first[ROWS];
    const auto first = [&](int i) -> Real & {
        return i < kept ? kept_first[i * threads] : own_first[i];
    };

    if (thread < s.ring) {
        full[thread].init(1);
    }
    if (is_cluster) {
        if (thread == 0) {
            join::ClusterRounds{arrivals, 0}.init();
        }
        cluster_arrive();
    }
    __syncthreads();
    wait_for_last_kernel();
    if (thread == 0 && !(PART == HEAT_PLANE_FIRST && is_moved)) {
        for (int n = 0; n < s.ring - 1; n++) {
            ring.load(n, n);
        }
    }
    const HeatShare<Real> share(*line.table, lane, group);

    if (PART != HEAT_PLANE_FIRST) {
        begin_plane_section(s, part, before, ring.place(s.ring - 1));
        __syncthreads();
        full[0].wait(0);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        u[i] = first(i) = Real(0);
        y[i] = PART != HEAT_PLANE_FIRST && i >= pads ? ring.place(s.ring - 1)[node + i]
                                                     : Real(0);
    }
    __syncthreads();
    bulk_fence();
    if (is_cluster) {
        cluster_wait();
    }
    const bool is_near = heat_plane_kept<Real, ROWS> == 0 && s.is_near;
    const bool is_edge = group == 0;
    /* row n, in a slot, with row n + 1 in the slot behind */
    const auto substitute = [&](int n, int slot, int behind) {
        const auto make = [&](auto edge) {
            substitute_plane_row<decltype(edge)::value>(
                s, ring, n, ring.place(behind) + node, before + node, column, pads,
                ring.place(slot) + node, y);
        };

        if (is_edge) {
            make(std::true_type());
        }
        else {
            make(std::false_type());
        }
    };

    if (is_ahead) {
        if (ring.count > 1) {
            full[next.slot].wait(next.parity);
        }
        substitute(0, here.slot, next.slot);
    }
    for (int n = 0; n < ring.count; n++) {
        const int row = ring.row(n),
                  slot_before = here.slot == 0 ? s.ring - 1 : here.slot - 1;
        Real *const w = ring.place(here.slot) + node;
        RingPlace after = next;
        const auto load_next = [&]() {
            if (thread == 0) {
                stores_read();
                if (!(PART == HEAT_PLANE_FIRST && is_moved)) {
                    ring.load(n + s.ring - 1, slot_before);
                }
            }
        };

        after.advance(s.ring);
        if (PART == HEAT_PLANE_FIRST && is_moved) {
            ring.each(here.slot,
                      [&](int i, Real &own) { own = s.own[row * s.nodes + i]; });
            __syncthreads();
        }
        else if (PART == HEAT_PLANE_FIRST) {
            full[here.slot].wait(here.parity);
        }
        else if (!is_ahead) {
            if (n + 1 < ring.count) {
                full[next.slot].wait(next.parity);
            }
            substitute(n, here.slot, next.slot);
        }
        if (PART == HEAT_PLANE_LAST) {
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                if (i >= pads) {
                    x_row[node + i] = y[i];
                }
            }
        }
        else {
            const Real end[2] = {s.x_side[0].at(row), s.x_side[1].at(row)};
            const Real lead = s.p * s.power[n];
            const join::ClusterRounds rounds = {arrivals, n};
            HeatPair<Real> *const totals = total[is_cluster ? rounds.turn() : 0];
            const auto total_of = [&](int g) { return totals[g]; };
            const auto rhs = [&](int i) { return w[i]; };
            HeatGroup<Real> chunks = {line, lane, group};

            if (is_cluster && thread == 0) {
                rounds.expect(line.groups *
                              static_cast<uint32_t>(sizeof(HeatPair<Real>)));
            }
            const HeatPair<Real> whole =
                chunks.scan(is_edge ? chunk.template eliminate<true>(rhs, end)
                                    : chunk.template eliminate<false>(rhs, end));

            if (is_cluster) {
                if (number >= 0 && lane < s.parts) {
                    send(&totals[group], whole, rounds.now(),
                         static_cast<unsigned>(lane));
                }
            }
            else if (lane == 0) {
                totals[group] = whole;
            }
            if (is_ahead && n + 1 < ring.count) {
                /* while other warps and blocks have not sent their sums */
                if (n + 2 < ring.count) {
                    full[after.slot].wait(after.parity);
                }
                substitute(n + 1, next.slot, after.slot);
            }
            if (is_cluster) {
                rounds.wait();
            }
            else {
                __syncthreads();
            }
            load_next();
            const HeatInflow<Real> from =
                is_near ? heat_inflow_near(line, share, group, total_of, end)
                        : heat_inflow(line, share, group, total_of, end);
            HeatPair<Real> in = share.into_chunk(chunks.in, from.group);
            Real decay = s.q, take = s.p;

            if (chunk.has_first && pads > 0) {
                in.u = from.first;
            }
            if (row == 0 || row == s.rows - 1) {
                const int side = row == 0 ? 0 : 1;
                const Real by = s.p * s.weight[side] * s.add[side];

#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    const Real value = i < pads ? Real(0) : s.side[side].at(column + i);

                    u[i] = fma(s.q, u[i], by * value);
                }
                decay = Real(1);
                take = s.p * s.weight[side];
            }
            const auto put = [&](auto edge) {
                constexpr bool EDGE = decltype(edge)::value;

                chunk.template substitute<EDGE>(in, [&](int i, Real x) {
                    if (!EDGE || i >= pads) {
                        u[i] = fma(decay, u[i], take * fma(Real(2), x, -w[i]));
                        first(i) = fma(lead, u[i], first(i));
                        w[i] = u[i];
                    }
                });
            };

            if (is_edge) {
                put(std::true_type());
            }
            else {
                put(std::false_type());
            }
        }
        if (n == ring.count - 1) {
            let_next_kernel_in();
        }
        bulk_fence();
        __syncthreads();
        if (!(PART == HEAT_PLANE_LAST && is_moved)) {
            ring.store(n, here.slot);
        }
        if (PART == HEAT_PLANE_LAST) {
            ring.each(here.slot, [&](int i, Real own) {
                if (i >= s.begin && i < s.end) {
                    s.t[row * s.nodes + i] = x_row[i - part.base];
                    if (is_moved) {
                        s.own[row * s.nodes + i] = own;
                    }
                }
            });
            __syncthreads();
            load_next();
        }
        here = next;
        next.advance(s.ring);
    }
    if (PART != HEAT_PLANE_LAST) {
        HeatPair<Real> *const sums = s.sums + part.section * s.nodes + column;

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (i >= pads) {
                sums[i] = {u[i], first(i)};
            }
        }
    }
    if (thread == 0) {
        stores_written();
    }
    if (is_cluster) { /* messages to this block */
        cluster_arrive();
        cluster_wait();
    }
}

} // namespace pysolvers::heat

#endif
