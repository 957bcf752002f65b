/* heat_volume.cu - the plan and the launches of heat_volume.h.
 */
#include "heat/heat_volume.h"

#include <algorithm>
#include <type_traits>

#include "heat/heat_backward.cuh"
#include "heat/heat_forward.cuh"
#include "heat/heat_table.cuh"
#include "runtime/math.cuh"

namespace pysolvers::heat {

namespace {

/* Rows of a chunk along x of lines of one group and of two, in increasing order. Lines of 200
 * nodes leave 20 of 32 lanes idle with 17 rows: 200 million nodes in float64 take 3.95 ms, and
 * 3.23 with 9 rows (H200). */
template <typename Real> struct Chunks {
    static constexpr int most_groups = 2;
    static constexpr int of_group[] = {7, 9, 13, 17, 25, 33},
                         kinds = sizeof(Real) == 4 ? 6 : 4;
    static constexpr int of_two[] = {9, 11, 17, 33},
                         kinds_of_two = sizeof(Real) == 4 ? 4 : 3;
};

/* The distribution of a line along x: rows of a chunk, groups of chunks. */
struct Cut {
    int chunk, groups;
};

/* call(rows, groups) with a distribution as integral constants. */
template <typename Real, int KIND = 0, typename Call>
auto
with_cut(const Cut &cut, const Call &call)
{
    using Of = Chunks<Real>;
    constexpr std::integral_constant<int, 1> one;
    constexpr std::integral_constant<int, 2> two;
    constexpr int of_two = KIND < Of::kinds_of_two ? KIND : Of::kinds_of_two - 1;

    if constexpr (KIND + 1 < Of::kinds) {
        if (cut.groups == 1 ? cut.chunk != Of::of_group[KIND]
                            : cut.chunk != Of::of_two[of_two]) {
            return with_cut<Real, KIND + 1>(cut, call);
        }
    }
    return cut.groups == 1 ? call(std::integral_constant<int, Of::of_group[KIND]>(), one)
                           : call(std::integral_constant<int, Of::of_two[of_two]>(), two);
}

/* The blocks along z: by clusters of one group per block, with few rows in a chunk or more; and
 * whole lines in a block, with few columns or many rows. */
enum { SIDE_FEW, SIDE_MORE, SIDE_WHOLE };

/* call(side) with the blocks as a type. */
template <typename Real, typename Call>
auto
with_side(int side, const Call &call)
{
    constexpr bool is_single = sizeof(Real) == 4;
    using Few =
        std::conditional_t<is_single, HeatSide<8, 16, 1, 3>, HeatSide<6, 16, 1, 3>>;
    using Whole =
        std::conditional_t<is_single, HeatSide<24, 16, 1, 2>, HeatSide<6, 8, 2, 3>>;

    return side == SIDE_FEW    ? call(Few())
           : side == SIDE_MORE ? call(HeatSide<8, 16, 1, 3>())
                               : call(Whole());
}

/* Two numbers whose sum is 1, also in floating point. */
template <typename Real>
__device__ void
set_shares(double x, double y, Real *of_x, Real *of_y)
{
    if (x >= y) {
        *of_x = static_cast<Real>(x);
        *of_y = Real(1) - *of_x;
    }
    else {
        *of_y = static_cast<Real>(y);
        *of_x = Real(1) - *of_y;
    }
}

/* By two threads, one per half. Rows repeat from where g is the same in two of them: after
 * some tens of rows, unless a is large. */
template <typename Real> struct MakeTwoSided {
    double a;
    ps_cuda_heat_end lower;
    ps_cuda_heat_end upper;
    int rows;
    TwoSidedFactor<Real> *two_sided;

    __device__ __forceinline__ void operator()() const
    {
        const int half = static_cast<int>(threadIdx.x), middle = rows / 2;
        const int count = half == 0 ? middle : rows - middle;
        const int row = half == 0 ? 0 : rows - 1, step = half == 0 ? 1 : -1;
        const ps_cuda_heat_end end = half == 0 ? lower : upper;
        double lead = 1 - end.theta_by_a + a * (1 - end.theta), g = 0, before = 0;
        TwoSidedRow<Real> made;

        wait_for_last_kernel();
        for (int n = 0; n < count; n++) {
            if (n < 2 || g != before) {
                before = g;
                if (n == 0) {
                    made.rhs = static_cast<Real>(end.weight / lead);
                    made.before =
                        static_cast<Real>((end.weight * end.add + a * end.take) / lead);
                }
                else {
                    lead = 1 + a * g;
                    set_shares(a * g / lead, 1 / lead, &made.before, &made.rhs);
                }
                g = lead / (a + lead);
                set_shares(a / (a + lead), g, &made.next, &made.own);
            }
            two_sided->factor_row[row + n * step] = made;
        }
        const double other = __shfl_xor_sync(3u, g, 1), whole = g + other - g * other;
        const double near = (1 - other) * g / whole, far = other / whole;

        two_sided->rows = rows;
        two_sided->half = middle;
        two_sided->middle[half][half] = static_cast<Real>(near);
        two_sided->middle[half][1 - half] = static_cast<Real>(far);
    }
};

template <typename Real>
size_t
forward_bytes(int64_t nodes, const Cut &cut, int planes, int ring, int32_t *pitch)
{
    const int lead =
        with_cut<Real>(cut, [](auto rows, auto) { return heat_lead<rows.value>(); });

    *pitch = static_cast<int32_t>(lead + (nodes + 3) / 4 * 4 + 4);
    return sizeof(Real) * static_cast<size_t>(*pitch) *
           static_cast<size_t>(ring * (planes + 2) + planes);
}

/* Whether the second kernel takes two rows of nodes at a time: 0.90 of a step of 300 x 400 x 500
 * nodes in float32, 0.94 of 700^3, in float64 0.98 of 200 x 1000 x 1000 and 1.00 of 512^3; where a block
 * of float64 has whole lines, it takes 1.05 of a step of 500 x 400 x 300 (H200). */
template <typename Real, typename Side>
constexpr bool by_pairs = sizeof(Real) == 4 || Side::groups == 1;

template <typename Real, typename Side>
constexpr size_t backward_bytes =
    by_pairs<Real, Side> ? heat_pair_bytes<Real, Side>
                         : sizeof(Real) * Side::ahead * 2 * Side::threads *
                               static_cast<size_t>(Side::rows);

template <typename Real, typename Side>
auto
backward_kernel()
{
    if constexpr (by_pairs<Real, Side>) {
        return heat_backward_pair_kernel<Real, Side>;
    }
    else {
        return heat_backward_kernel<Real, Side>;
    }
}

/* The shortest of some chunks with which `groups` groups hold a line; 0: none. */
int
shortest(const int *chunks, int count, int64_t rows, int groups)
{
    for (int k = 0; k < count; k++) {
        if (rows <= int64_t{HEAT_CHUNKS} * groups * chunks[k]) {
            return chunks[k];
        }
    }
    return 0;
}

/* The distribution of lines along x; 0 rows: none. Two groups for long chunks, and where a
 * multiprocessor would have few warps: they take the time of the chain of a row. */
template <typename Real>
Cut
cut_of(const ps_heat *h, const ps_cuda_device *device)
{
    using Of = Chunks<Real>;
    const int64_t rows = heat_unknowns(h, 0).count();
    const int64_t planes = heat_unknowns(h, 2).count();
    const int alone = shortest(Of::of_group, Of::kinds, rows, 1);
    const Cut two = {shortest(Of::of_two, Of::kinds_of_two, rows, 2), 2};
    return alone == 0 || (alone > Of::of_two[0] && 2 * planes < 6 * device->processors)
               ? two
               : Cut{alone, 1};
}

/* Whether `count` blocks fit a multiprocessor. */
bool
fit_together(const ps_cuda_device *device, size_t bytes, int count)
{
    constexpr size_t reserved = 2048; /* of a block, with static memory */

    return count * (bytes + reserved) <=
           static_cast<size_t>(device->shared_bytes_processor);
}

/* Parts of a field, in both halves. */
int64_t
parts_of(int64_t nodes, int width)
{
    return 2 * divided_up(nodes, width);
}

/* Planes of a block of the first kernel, as many as shared memory holds and the rounds of
 * blocks need, but fewer if all blocks are resident at once with planes to spare; 0 if a line
 * is too long. On an H200, lines of 768 nodes in two groups take 2.98 ms for 201 million nodes
 * in float64, and 4.32 ms by separate sweeps; a box of 512^2 nodes and 548 planes takes 2.2 ms
 * with blocks of 9 planes, and 3.1 ms with blocks of 8, of which not all are resident at once;
 * one of 700^3 nodes in float32 3.61 ms with 11 planes and 4.17 with 8; one of 500 x 400 x 300
 * nodes in float64 1.13 ms with 5 planes and 1.66 by separate sweeps, as 8 planes leave too few
 * blocks. */
template <typename Real>
int
planes_for(const ps_heat *h, const ps_cuda_device *device)
{
    const Cut cut = cut_of<Real>(h, device);
    const size_t most = static_cast<size_t>(device->shared_bytes);
    const int usual = cut.groups == 1 ? static_cast<int>(HEAT_PLANES) : 2;
    int32_t pitch = 0;

    if (cut.chunk == 0) {
        return 0;
    }
    const auto bytes = [&](int n) {
        return forward_bytes<Real>(h->nodes[0], cut, n, HEAT_RING, &pitch);
    };
    const int blocks = with_cut<Real>(cut, [](auto rows, auto groups) {
        return heat_planes_blocks<rows.value, groups.value>;
    });
    int planes = with_cut<Real>(cut, [](auto rows, auto groups) {
        return heat_plane_warps<Real, rows.value, groups.value> / groups.value;
    });

    while (bytes(planes) + 2 * sizeof(Arrivals) * HEAT_MOST_RING +
               sizeof(HeatPair<Real>) * HEAT_MOST_PLANES * Chunks<Real>::most_groups >
           most) {
        if (--planes < usual) {
            return 0;
        }
    }
    const auto rounds = [&](int n) {
        const int resident = fit_together(device, bytes(n), blocks) ? blocks : 1;

        return divided_up(parts_of(heat_unknowns(h, 2).count(), n),
                          static_cast<int64_t>(device->processors) * resident);
    };
    const int least =
        rounds(planes) == 1 ? std::min(static_cast<int>(HEAT_FEW_PLANES), usual) : usual;

    for (int few = planes - 1; few >= least && rounds(few) == rounds(planes); few--) {
        planes = few; /* as many blocks as fill the last round */
    }
    return planes;
}

/* Lines of each plane in shared memory: as many as it holds with the same number of blocks. The
 * first kernel takes 1.23 ms in place of 1.25 for 200 million nodes in float64 with 8 lines in
 * place of 4, and 0.80 in place of 0.83 for 700^3 nodes in float32 (H200). */
template <typename Real>
int
ring_for(const ps_heat *h, const ps_cuda_device *device, const Cut &cut, int planes)
{
    const size_t other =
        2 * sizeof(Arrivals) * HEAT_MOST_RING +
        sizeof(HeatPair<Real>) * HEAT_MOST_PLANES * Chunks<Real>::most_groups;
    const int blocks = with_cut<Real>(cut, [](auto rows, auto groups) {
        return heat_planes_blocks<rows.value, groups.value>;
    });
    const auto resident = [&](int ring) {
        int32_t pitch = 0;
        const size_t bytes = forward_bytes<Real>(h->nodes[0], cut, planes, ring, &pitch);

        return bytes + other > static_cast<size_t>(device->shared_bytes) ? 0
               : fit_together(device, bytes, blocks)                     ? blocks
                                                                         : 1;
    };
    int ring = HEAT_RING;

    while (ring < HEAT_MOST_RING && resident(ring + 1) == resident(HEAT_RING)) {
        ring++;
    }
    return ring;
}

/* Groups of a line along z. */
template <typename Side>
int64_t
side_groups(const ps_heat *h)
{
    return divided_up(heat_unknowns(h, 2).count(), int64_t{HEAT_CHUNKS} * Side::rows);
}

/* Blocks along z. */
template <typename Side>
int64_t
side_blocks(const ps_heat *h)
{
    return parts_of(h->nodes[0], Side::width) *
           (Side::groups == 1 ? side_groups<Side>(h) : 1);
}

/* Blocks for less than two thirds of the multiprocessors: separate sweeps are faster. */
bool
are_few(int64_t blocks, const ps_cuda_device *device)
{
    return 3 * blocks < 2 * device->processors;
}

/* The blocks along z. Few rows in a chunk, if as many blocks then hold a line: a step of
 * 500 x 400 x 300 nodes in float64 takes 1.01 ms with 6 rows, and 1.13 with 8. Whole lines, if
 * all of these blocks are resident at once: the second kernel takes 0.55 ms in place of 0.63,
 * and for 700^3 nodes in float32, of which there are three rounds of clusters, 2.1 in place of
 * 3.1. Where clusters are resident at once and have 8 rows in a chunk, they are faster: 1.07 ms
 * for 512^3 nodes in float64, and 1.43 with as many rows in blocks of 8 columns (H200). */
template <typename Real>
int
side_of(const ps_heat *h, const ps_cuda_device *device)
{
    const auto groups = [&](int side) {
        return with_side<Real>(side, [&](auto s) { return side_groups<decltype(s)>(h); });
    };
    const bool is_whole = with_side<Real>(SIDE_WHOLE, [&](auto s) {
        using Side = decltype(s);
        const int64_t blocks = side_blocks<Side>(h);

        return side_groups<Side>(h) == Side::groups && blocks <= device->processors &&
               !are_few(blocks, device);
    });
    const int side = groups(SIDE_FEW) == groups(SIDE_MORE) ? SIDE_FEW : SIDE_MORE;
    const int64_t blocks =
        with_side<Real>(side, [&](auto s) { return side_blocks<decltype(s)>(h); });

    /* float64: half the columns, without clusters; float32: fewer rounds of blocks */
    return is_whole && groups(side) > 1 &&
                   (sizeof(Real) == 8 || blocks > device->processors)
               ? SIDE_WHOLE
               : side;
}

template <typename Real>
bool
fits(const ps_heat *h, const ps_cuda_device *device)
{
    const uintptr_t places = reinterpret_cast<uintptr_t>(h->t) |
                             reinterpret_cast<uintptr_t>(h->w) |
                             static_cast<uintptr_t>(h->nodes[0]) * sizeof(Real);
    const int planes = planes_for<Real>(h, device);
    const bool has_sides = with_side<Real>(side_of<Real>(h, device), [&](auto s) {
        using Side = decltype(s);
        const int64_t blocks =
            Side::groups == 1 ? side_groups<Side>(h) : 1; /* of a cluster */

        return !are_few(side_blocks<Side>(h), device) && blocks <= HEAT_CLUSTER &&
               blocks <= device->cluster_blocks &&
               backward_bytes<Real, Side> +
                       2 * sizeof(HeatExchange<Real, Side::width, Side::groups>) <=
                   static_cast<size_t>(device->shared_bytes);
    });

    return places % 16 == 0 && planes > 0 && has_sides &&
           !are_few(parts_of(heat_unknowns(h, 2).count(), planes), device);
}

template <typename Real>
auto
forward_kernel(const HeatVolume<Real> &plan)
{
    return with_cut<Real>({plan.chunk, plan.line[0].groups}, [](auto rows, auto groups) {
        return heat_forward_kernel<Real, rows.value, groups.value>;
    });
}

template <typename Real>
ps_status
make_line(const ps_heat *h, int axis, int chunk, void *table, cudaStream_t stream,
          HeatLine<Real> *line)
{
    const HeatMatrix m = heat_matrix(h, axis);

    return heat_make_line(ps_cuda_heat_line_of(m.a, m.end, m.is_periodic,
                                               heat_unknowns(h, axis).count(), chunk,
                                               sizeof(Real) == 4),
                          table, stream, line);
}

} // namespace

bool
heat_is_volume(const ps_heat *h, const ps_cuda_device *device)
{
    if (h->axes != PS_HEAT_AXES || h->k != nullptr || device->capability < 90 ||
        h->side[1][0].kind == PS_HEAT_PERIODIC || heat_unknowns(h, 1).count() < 2 ||
        heat_pitch(h, 2) > UINT32_MAX / 8) {
        return false;
    }
    return with_real(h->dtype,
                     [&](auto zero) { return fits<decltype(zero)>(h, device); });
}

size_t
heat_volume_bytes(const ps_heat *h)
{
    return 2 * heat_table_bytes<double>() +
           two_sided_bytes<double>(heat_unknowns(h, 1).count());
}

template <typename Real>
ps_status
heat_plan_volume(const ps_heat *h, void *memory, cudaStream_t stream,
                 HeatVolume<Real> *plan)
{
    char *const tables = static_cast<char *>(memory);
    const size_t table = heat_table_bytes<double>();
    const HeatMatrix y = heat_matrix(h, 1);

    const Cut cut = cut_of<Real>(h, ps_cuda_device_get());

    plan->chunk = cut.chunk;
    plan->planes = planes_for<Real>(h, ps_cuda_device_get());
    plan->side = side_of<Real>(h, ps_cuda_device_get());
    plan->ring = ring_for<Real>(h, ps_cuda_device_get(), cut, plan->planes);
    plan->shared =
        forward_bytes<Real>(h->nodes[0], cut, plan->planes, plan->ring, &plan->pitch);
    plan->two_sided = reinterpret_cast<TwoSidedFactor<Real> *>(tables + 2 * table);
    ps_status status = make_line(h, 0, plan->chunk, tables, stream, &plan->line[0]);

    if (status == PS_OK) {
        status = ps_cuda_status(allow_shared(forward_kernel(*plan)));
    }
    if (status == PS_OK) {
        status = with_side<Real>(plan->side, [&](auto s) {
            using Side = decltype(s);
            const ps_status allowed =
                ps_cuda_status(allow_shared(backward_kernel<Real, Side>()));

            return allowed == PS_OK ? make_line(h, 2, Side::rows, tables + table, stream,
                                                &plan->line[1])
                                    : allowed;
        });
    }
    return status == PS_OK
               ? for_threads<2>(
                     1, stream,
                     MakeTwoSided<Real>{y.a, y.end[0], y.end[1],
                                        static_cast<int>(heat_unknowns(h, 1).count()),
                                        plan->two_sided})
               : status;
}

template <typename Real>
ps_status
heat_volume_forward(const HeatRun<Real> &run, int64_t s)
{
    const ps_heat *const h = run.h;
    const HeatVolume<Real> &plan = run.volume;
    const int64_t parts = parts_of(heat_unknowns(h, 2).count(), plan.planes);
    HeatForward<Real> f = {};

    f.stencil = heat_change_stencil<Real>(h, s);
    for (int end = 0; end < 2; end++) {
        f.end[end] = heat_values<Real>(h->side[0][end].sweep, s, 0);
        f.side[end] = heat_values<Real>(h->side[1][end].sweep, s, 0);
    }
    f.two_sided = plan.two_sided;
    f.pitch = plan.pitch;
    f.tiles = parts / 2;
    f.planes = plan.planes;
    f.ring = plan.ring;
    return launch_closely(forward_kernel(plan), parts,
                          32 * (plan.planes * plan.line[0].groups + 1), plan.shared,
                          run.stream, plan.line[0], f);
}

template <typename Real>
ps_status
heat_volume_backward(const HeatRun<Real> &run, int64_t s)
{
    const ps_heat *const h = run.h;
    const HeatLine<Real> &line = run.volume.line[1];
    const int64_t j = heat_unknowns(h, 1).begin;
    const int64_t first =
        heat_unknowns(h, 2).begin * heat_pitch(h, 2) + j * heat_pitch(h, 1);
    HeatBackward<Real> b = {};

    b.w = static_cast<const Real *>(h->w) + first;
    b.t = static_cast<Real *>(h->t) + first;
    b.plane = heat_pitch(h, 2);
    b.pitch = heat_pitch(h, 1);
    b.nodes = h->nodes[0];
    b.begin = heat_unknowns(h, 0).begin;
    b.end = heat_unknowns(h, 0).end;
    for (int end = 0; end < 2; end++) {
        b.side[end] = heat_values<Real>(h->side[2][end].sweep, s, j * heat_pitch(h, 1));
    }
    b.two_sided = run.volume.two_sided;

    return with_side<Real>(run.volume.side, [&](auto of) {
        using Side = decltype(of);

        b.tiles = parts_of(h->nodes[0], Side::width) / 2;
        return Launch(side_blocks<Side>(h), Side::threads, backward_bytes<Real, Side>,
                      run.stream)
            .closely()
            .in_clusters(Side::groups == 1 ? line.groups : 1)
            .run(backward_kernel<Real, Side>(), line, b);
    });
}

#define PS_INSTANTIATE(real)                                                   \
    template ps_status heat_plan_volume(const ps_heat *, void *, cudaStream_t, \
                                        HeatVolume<real> *);                   \
    template ps_status heat_volume_forward(const HeatRun<real> &, int64_t);    \
    template ps_status heat_volume_backward(const HeatRun<real> &, int64_t);
PS_INSTANTIATE(float)
PS_INSTANTIATE(double)
#undef PS_INSTANTIATE

} // namespace pysolvers::heat
