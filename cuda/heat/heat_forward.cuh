/* heat_forward.cuh - the first half of a step in three dimensions: 2 words per node.
 *
 * Computes the right-hand side q + the sum of (level - K t), its solution along x, and
 * the elimination along y of heat_sections.h. A block processes some planes of nodes, each by
 * GROUPS warps, and advances along y through a section. The warps of a plane solve its line along
 * x, each a group of chunks, and keep u of the previous line and the sum for x of the first
 * one. The lines of t, including one plane
 * more on each side, are loaded by bulk copies in advance and stay in shared memory as long
 * as a neighbour reads them.
 */
#ifndef PS_CUDA_HEAT_HEAT_FORWARD_CUH
#define PS_CUDA_HEAT_HEAT_FORWARD_CUH

#include "heat/heat_line.cuh"
#include "heat/heat_sections.h"
#include "heat/heat_stencil.cuh"
#include "runtime/copy.cuh"
#include "runtime/launch.cuh"

namespace pysolvers::heat {

/* Planes of a block, at most. Lines of each plane in shared memory: HEAT_RING at least, three
 * that are read and one that is loaded, HEAT_MOST_RING at most. */
enum { HEAT_MOST_PLANES = 15, HEAT_RING = 4, HEAT_MOST_RING = 8 };

/* Blocks that a multiprocessor holds. */
template <int ROWS, int GROUPS>
constexpr int heat_planes_blocks = ROWS <= 7 && GROUPS == 1 ? 2 : 1;

/* The largest number of planes of a block times that of groups: short chunks leave registers
 * for more warps. One warp more loads. */
template <typename Real, int ROWS, int GROUPS>
constexpr int heat_plane_warps = heat_planes_blocks<ROWS, GROUPS> > 1 ? 8
                                 : GROUPS == 1 && ROWS <= 9           ? HEAT_MOST_PLANES
                                 : sizeof(Real) == 8                  ? 11
                                 : GROUPS == 2 && ROWS <= 11          ? 22
                                 : GROUPS == 2 && ROWS <= 17          ? 14
                                                                      : 11;

template <typename Real, int ROWS, int GROUPS>
constexpr int heat_planes_threads =
    32 * (heat_plane_warps<Real, ROWS, GROUPS> / GROUPS * GROUPS + 1);

/* `end` are the values at the ends of x, with node j + k nodes[1]; `side` those at the
 * ends of y, with node i + k nodes[0]. */
template <typename Real> struct HeatForward {
    HeatStencil<Real> stencil;
    HeatValues<Real> end[2], side[2];
    HeatSections<Real> y;
    int64_t tiles;  /* tiles of planes */
    int32_t pitch;  /* elements between lines in shared memory */
    int32_t planes; /* of a block */
    int32_t ring;   /* lines of each plane in shared memory */
};

/* Barrier of the warps of a plane. */
template <int GROUPS>
__device__ __forceinline__ void
plane_sync(int plane)
{
    asm volatile("bar.sync %0, %1;" ::"r"(1 + plane), "r"(32 * GROUPS) : "memory");
}

/* Elements before the nodes of a line in shared memory: the pads of its first chunk. */
template <int ROWS>
__host__ __device__ constexpr int
heat_lead()
{
    return (ROWS + 1 + 3) / 4 * 4;
}

/* Node i of an axis; beyond an end, the node that replaces it: for a flux the node
 * inside. */
template <typename Real>
__device__ __forceinline__ int64_t
node_for(const HeatAxis<Real> &a, int64_t i)
{
    if (i < 0) {
        return a.kind[0] == PS_HEAT_FLUX ? 1 : a.nodes - 1;
    }
    if (i >= a.nodes) {
        return a.kind[1] == PS_HEAT_FLUX ? a.nodes - 2 : 0;
    }
    return i;
}

/* The sum of the terms of the nodes from here[0] on. `before` and `after` are the same
 * nodes in the adjacent lines along y, `plane_stride` is the distance to the adjacent
 * lines along z. */
template <typename Real, int ROWS>
__device__ __forceinline__ void
sum_terms(const HeatStencil<Real> &s, const Real *here, const Real *before,
          const Real *after, int plane_stride, Real (&sum)[ROWS])
{
    const Real rx = s.axis[0].ratio, ry = s.axis[1].ratio, rz = s.axis[2].ratio;
    Real left = here[-1], own = here[0];

#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const Real right = here[i + 1];

        sum[i] = rx * ((left - own) + (right - own)) +
                 ry * ((before[i] - own) + (after[i] - own)) +
                 rz * ((here[i - plane_stride] - own) + (here[i + plane_stride] - own));
        left = own;
        own = right;
    }
}

/* The ring of lines of a block, line after line along y; line 0 precedes the first line
 * with unknowns. One warp loads the lines, the others release them. */
template <typename Real, int ROWS, int GROUPS> struct HeatRing {
    const HeatForward<Real> &f;
    Real *lines;
    Arrivals *full, *empty;
    HeatSectionRows rows; /* with unknowns: lines 1 to rows.count */
    int64_t first_plane;  /* first plane */
    int planes;

    /* Node 0 of a line in plane `first_plane` + p - 1. */
    __device__ __forceinline__ Real *line(const RingPlace &place, int p) const
    {
        return lines + (place.slot * (f.planes + 2) + p) * f.pitch + heat_lead<ROWS>();
    }

    /* Node 0 of the line that a plane stores. */
    __device__ __forceinline__ Real *out(int plane) const
    {
        return lines + (f.ring * (f.planes + 2) + plane) * f.pitch + heat_lead<ROWS>();
    }

    __device__ __forceinline__ void wait(const RingPlace &place) const
    {
        full[place.slot].wait(place.parity);
    }

    /* Each place has two transaction barriers: the loading warp completes `full`, the warps
     * that read a line complete `empty` after they have read it, and the loading warp waits
     * for that before it loads the line that replaces it. */
    __device__ __forceinline__ void release(const RingPlace &place, int lane) const
    {
        __syncwarp();
        if (lane == 0) {
            empty[place.slot].arrive();
        }
    }

    /* Release all lines that are read, by a warp without a plane. */
    __device__ __forceinline__ void pass(int lane) const
    {
        RingPlace place = {0, 0};

        for (int n = 0; n < rows.count; n++) {
            wait(place);
            release(place, lane);
            place.advance(f.ring);
        }
    }

    /* Load all lines, by the loading warp. */
    __device__ __forceinline__ void load_lines(int lane) const
    {
        RingPlace place = {0, 0};

        for (int m = 0; m < rows.count + 2; m++) {
            if (m >= f.ring) {
                empty[place.slot].wait(place.parity ^ 1);
            }
            load(m, place, lane);
            place.advance(f.ring);
        }
    }

  private:
    /* Load line m. Beyond the ends of a line it stores the replacements of the nodes,
     * element by element. */
    __device__ __forceinline__ void load(int m, const RingPlace &place, int lane) const
    {
        const HeatStencil<Real> &s = f.stencil;
        const HeatAxis<Real> &x = s.axis[0];
        const uint32_t bytes = static_cast<uint32_t>(x.nodes * sizeof(Real));
        const int64_t j = node_for(s.axis[1], s.axis[1].begin + rows.row(m - 1));
        Arrivals &arrivals = full[place.slot];

        if (lane == 0) {
            arrivals.expect((planes + 2) * bytes);
        }
        __syncwarp();
        if (lane < planes + 2) {
            const int64_t k = node_for(s.axis[2], first_plane + lane - 1);

            copy_bulk(line(place, lane), s.t + (k * s.axis[1].nodes + j) * x.nodes, bytes,
                      arrivals);
        }
        if (lane / 2 < planes && x.kind[lane % 2] != PS_HEAT_VALUE) {
            const int64_t k = first_plane + lane / 2, at = lane % 2 == 0 ? -1 : x.nodes;

            copy_async<sizeof(Real)>(line(place, 1 + lane / 2) + at,
                                     s.t + (k * s.axis[1].nodes + j) * x.nodes +
                                         node_for(x, at));
        }
        arrivals.expect_copies();
    }
};

/* Whether node i lies on an end of an axis that is a flux. */
template <typename Real>
__device__ __forceinline__ bool
is_on_flux(const HeatAxis<Real> &a, int end, int64_t i)
{
    return a.kind[end] == PS_HEAT_FLUX && i == (end == 0 ? 0 : a.nodes - 1);
}

/* Add the source and the sides with fluxes to the right-hand sides of a chunk in line
 * t. Its first place is node `node` of x; the places from `pads` on are unknowns. */
template <typename Real, int ROWS>
__device__ __forceinline__ void
add_sources(const HeatStencil<Real> &s, const HeatChunk<Real, ROWS> &chunk, const Real *t,
            int64_t node, int64_t j, int64_t k, Real (&sum)[ROWS])
{
    const HeatAxis<Real> &x = s.axis[0];
    const int64_t nx = x.nodes, ny = s.axis[1].nodes;

    if (chunk.has_first && x.kind[0] == PS_HEAT_FLUX) {
        const Real more = x.level[0].at(k * ny + j) - x.exchange[0] * t[0];

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            sum[i] = i == chunk.pads ? sum[i] + more : sum[i];
        }
    }
    if (chunk.has_last && x.kind[1] == PS_HEAT_FLUX) {
        sum[ROWS - 1] += x.level[1].at(k * ny + j) - x.exchange[1] * t[nx - 1];
    }
#pragma unroll 1
    /* two sides of y, two of z, and the source */
    for (int source = 0; source < 5; source++) {
        const int axis = 1 + source / 2 % 2, end = source % 2;
        const HeatAxis<Real> &a = s.axis[axis];
        const bool is_source = source == 4;
        const HeatValues<Real> values = is_source ? s.added : a.level[end];
        const Real exchange = is_source ? Real(0) : a.exchange[end];
        const int64_t line = is_source ? k * ny + j : axis == 1 ? k : j;

        if (is_source ? s.added.data == nullptr
                      : !is_on_flux(a, end, axis == 1 ? j : k)) {
            continue;
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (i >= chunk.pads) {
                sum[i] += values.at(line * nx + node + i) - exchange * t[node + i];
            }
        }
    }
}

/* The boundary values of a group of the line of a plane, from its sums; `total` has place
 * for those of all groups. */
template <int GROUPS, typename Real>
__device__ __forceinline__ HeatInflow<Real>
join_groups(const HeatGroup<Real> &chunks, const HeatShare<Real> &share,
            const HeatPair<Real> &whole, const Real end[2], int plane,
            HeatPair<Real> *total)
{
    if constexpr (GROUPS == 1) {
        return heat_inflow_alone(chunks.line, share, whole, end);
    }
    if (chunks.lane == 0) {
        total[chunks.group] = whole;
    }
    plane_sync<GROUPS>(plane);
    return heat_inflow(
        chunks.line, share, chunks.group, [&](int g) { return total[g]; }, end);
}

/* Solve a line along x by the warps of a plane: call(i, x) for all places of a chunk, from
 * the last to the first. */
template <int GROUPS, typename Real, int ROWS, typename Put>
__device__ __forceinline__ void
solve_in_warps(HeatChunk<Real, ROWS> &chunk, const HeatShare<Real> &share,
               const Real (&rhs)[ROWS], const Real end[2], int lane, int group, int plane,
               HeatPair<Real> *total, const Put &put)
{
    HeatGroup<Real> chunks = {chunk.line, lane, group};
    const HeatPair<Real> whole =
        chunks.scan(chunk.template eliminate<true>([&](int i) { return rhs[i]; }, end));
    const HeatInflow<Real> from =
        join_groups<GROUPS>(chunks, share, whole, end, plane, total);
    HeatPair<Real> in = share.into_chunk(chunks.in, from.group);

    if (chunk.has_first && chunk.pads > 0) {
        in.u = from.first;
    }
    chunk.template substitute<true>(in, put);
}

/* The plane of a warp, line after line. `node` is the first place of its chunk. */
template <typename Real, int ROWS, int GROUPS>
__device__ __forceinline__ void
sweep_plane(const HeatForward<Real> &f, const HeatLine<Real> &line,
            const HeatRing<Real, ROWS, GROUPS> &ring, int section, int plane, int group,
            int lane, HeatPair<Real> *total)
{
    const HeatStencil<Real> &s = f.stencil;
    const HeatSections<Real> &y = f.y;
    const int64_t nx = s.axis[0].nodes, ny = s.axis[1].nodes,
                  k = ring.first_plane + plane;
    const int start = (group * HEAT_CHUNKS + lane) * ROWS - line.pads;
    const int node = static_cast<int>(s.axis[0].begin) + max(start, -ROWS);
    const bool has_sources = s.added.data != nullptr ||
                             s.axis[0].kind[0] == PS_HEAT_FLUX ||
                             s.axis[0].kind[1] == PS_HEAT_FLUX ||
                             is_on_flux(s.axis[2], 0, k) || is_on_flux(s.axis[2], 1, k);
    const HeatShare<Real> share(*line.table, lane, group);
    HeatChunk<Real, ROWS> chunk = {line, min(max(-start, 0), ROWS),
                                   group == 0 && lane == line.first_chunk,
                                   group == GROUPS - 1 && lane == HEAT_CHUNKS - 1};
    const bool is_storer = group == 0 && lane == 0;
    Real *const out = ring.out(plane);
    RingPlace before = {0, 0}, here = {1, 0}, after = {2, 0};
    Real next_power = y.table->power[0];
    Real u[ROWS], first[ROWS];

    ring.wait(before);
    ring.wait(here);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        u[i] = first[i] = Real(0);
    }
    for (int n = 0; n < ring.rows.count; n++) {
        const int row = ring.rows.row(n);
        const int64_t j = s.axis[1].begin + row;
        const Real power = y.p * next_power;
        const Real *const t = ring.line(here, plane + 1);
        const Real end[2] = {f.end[0].at(k * ny + j), f.end[1].at(k * ny + j)};
        const bool is_end = row == 0 || row == y.rows - 1;
        Real decay = y.q, take = y.p;
        Real sum[ROWS];

        next_power = y.table->power[n + 1];
        ring.wait(after);
        sum_terms(s, t + node, ring.line(before, plane + 1) + node,
                  ring.line(after, plane + 1) + node, f.pitch, sum);
        ring.release(before, lane);
        before = here;
        here = after;
        after.advance(f.ring);
        if (has_sources || is_end) {
            add_sources(s, chunk, t, node, j, k, sum);
        }
        if (is_end) {
            const int side = row == 0 ? 0 : 1;
            const Real by = y.p * y.weight[side] * y.add[side];

#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const Real value =
                    i < chunk.pads ? Real(0) : f.side[side].at(k * nx + node + i);

                u[i] = fma(y.q, u[i], by * value);
            }
            decay = Real(1);
            take = y.p * y.weight[side];
        }
        if (is_storer) {
            stores_read();
        }
        __syncwarp();
        solve_in_warps<GROUPS>(chunk, share, sum, end, lane, group, plane, total,
                               [&](int i, Real x) {
                                   u[i] = fma(decay, u[i], take * x);
                                   first[i] = fma(power, u[i], first[i]);
                                   if (i >= chunk.pads) {
                                       out[node + i] = u[i];
                                   }
                               });
        bulk_fence();
        if constexpr (GROUPS == 1) {
            __syncwarp();
        }
        else {
            plane_sync<GROUPS>(plane);
        }
        if (is_storer) {
            store_bulk(s.w + (k * ny + j) * nx, out,
                       static_cast<uint32_t>(nx * sizeof(Real)));
            commit_stores();
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (i >= chunk.pads) {
            y.sums[section * y.columns + k * nx + node + i] = {u[i], first[i]};
        }
    }
    if (is_storer) {
        stores_written();
    }
}

/* The kernel. The last warp of a block loads the lines. */
template <typename Real, int ROWS, int GROUPS>
__global__ void
__launch_bounds__(heat_planes_threads<Real, ROWS, GROUPS>,
                  heat_planes_blocks<ROWS, GROUPS>)
    heat_forward_kernel(const __grid_constant__ HeatLine<Real> line,
                        const __grid_constant__ HeatForward<Real> f)
{
    extern __shared__ __align__(16) char memory[];
    __shared__ Arrivals full[HEAT_MOST_RING], empty[HEAT_MOST_RING];
    __shared__ HeatPair<Real> total[HEAT_MOST_PLANES * GROUPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int plane = warp / GROUPS, of_block = f.planes;
    const int section = static_cast<int>(blockIdx.x / static_cast<unsigned>(f.tiles));
    const HeatAxis<Real> &z = f.stencil.axis[2];
    const int64_t first_plane = z.begin + (blockIdx.x - section * f.tiles) * of_block;
    const int planes = static_cast<int>(min(z.end - first_plane, int64_t{of_block}));

    if (threadIdx.x < f.ring) {
        /* the lanes of a warp, and the arrival of the bulk copy */
        full[threadIdx.x].init(33);
        empty[threadIdx.x].init(of_block * GROUPS);
    }
    __syncthreads();
    wait_for_last_kernel();
    const HeatRing<Real, ROWS, GROUPS> ring = {f,
                                               reinterpret_cast<Real *>(memory),
                                               full,
                                               empty,
                                               f.y.section(section),
                                               first_plane,
                                               planes};

    if (plane == of_block) {
        ring.load_lines(lane);
        let_next_kernel_in();
    }
    else if (plane < planes) {
        sweep_plane(f, line, ring, section, plane, warp % GROUPS, lane,
                    total + plane * GROUPS);
    }
    else {
        ring.pass(lane);
    }
}

} // namespace pysolvers::heat

#endif
