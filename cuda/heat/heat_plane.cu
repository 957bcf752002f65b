/* heat_plane.cu - the plan and the launches of heat_plane.h.
 */
#include <algorithm>
#include <type_traits>

#include "device/number.cuh"
#include "heat/heat_plane.cuh"
#include "heat/heat_plane_order.cuh"
#include "heat/heat_table.cuh"
#include "runtime/math.cuh"

namespace pysolvers::heat {

namespace {

/* The smallest p for which right-hand sides follow from u: r up to 24. */
constexpr double least_p = 0.25;

/* The division of a row and of y, and the rows in shared memory. */
struct PlaneShape {
    int chunk, groups, parts, warps, sections, reach, reads, ring, pitch;
    size_t shared;
};

/* Bytes of shared memory apart from that of the launch. */
constexpr size_t static_shared = 2048;

/* The shape of a row in chunks of some nodes; no groups: it does not fit. */
template <typename Real, int ROWS>
PlaneShape
row_shape(const ps_heat *h, const ps_cuda_device *device)
{
    constexpr bool is_cluster = heat_plane_in_cluster<Real, ROWS>;
    constexpr int most = is_cluster ? int{HEAT_MOST_GROUPS} : int{HEAT_PLANE_WARPS};
    constexpr int per_copy = 16 / sizeof(Real);
    const int64_t groups =
        divided_up(heat_unknowns(h, 0).count(), int64_t{HEAT_CHUNKS} * ROWS);
    const int parts = is_cluster ? static_cast<int>(HEAT_PLANE_PARTS) : 1;
    PlaneShape shape = {};

    if (groups > most || device->cluster_blocks < parts) {
        return shape;
    }
    shape.chunk = ROWS;
    shape.groups = static_cast<int>(groups);
    shape.parts = parts;
    shape.warps = static_cast<int>(divided_up(groups, int64_t{parts}));
    if (parts * shape.warps - shape.groups >= shape.warps) { /* blocks without nodes */
        return {};
    }
    shape.pitch = static_cast<int>(rounded_up(
        is_cluster ? HEAT_CHUNKS * shape.warps * ROWS + 2 * per_copy : h->nodes[0],
        int64_t{per_copy}));
    const auto bytes = [&](int ring) {
        return sizeof(Real) *
               (static_cast<size_t>(shape.pitch) * (ring + 1) +
                heat_plane_kept<Real, ROWS> * 32 * heat_row_warps<Real, ROWS>);
    };
    const auto fit = [&](int ring) {
        return static_cast<int64_t>(device->shared_bytes_processor /
                                    (bytes(ring) + static_shared));
    };

    shape.ring = HEAT_PLANE_RING;
    if (bytes(shape.ring) + static_shared > static_cast<size_t>(device->shared_bytes)) {
        return {};
    }
    const int64_t blocks =
        std::min<int64_t>(heat_row_warps<Real, ROWS> / shape.warps, fit(shape.ring));

    while (shape.ring < HEAT_PLANE_MOST_RING &&
           bytes(shape.ring + 1) + static_shared <=
               static_cast<size_t>(device->shared_bytes) &&
           fit(shape.ring + 1) >= blocks) {
        shape.ring++;
    }
    shape.shared = bytes(shape.ring);
    /* clusters are in one of about 8 parts of the device */
    shape.sections =
        static_cast<int>(blocks * (is_cluster ? 8 * (device->processors / 8 / parts)
                                              : device->processors));
    return shape;
}

/* call(rows) with the nodes of a chunk as an integral constant. */
template <typename Real, typename Call>
auto
with_chunk(int chunk, const Call &call)
{
    if constexpr (sizeof(Real) == 8) {
        if (chunk == heat_plane_more) {
            return call(std::integral_constant<int, heat_plane_more>());
        }
        if (chunk == heat_plane_most) {
            return call(std::integral_constant<int, heat_plane_most>());
        }
    }
    return call(std::integral_constant<int, heat_plane_few<Real>>());
}

/* Whether steps of one kernel are faster than two sweeps, which take 4 words at 3.5 TB/s. A row of
 * nodes takes a block 1.3 us and 0.06 us per KiB in float64, 0.075 in float32, of all blocks of a
 * multiprocessor, and a kernel 16 us more. On an H200, planes of 3000 x 5000 nodes in float64 take
 * 107 us in place of 138, of 4096^2 102 of 146, of 3200 x 3000 70 of 85, of 20000 x 1000 108 of 205, in
 * float32 of 8192^2 230 of 283, of 6000^2 148 of 169; but of 2048^2 71 of 39, and in float32 of
 * 4096^2 79 of 71. The cache holds a part of smaller fields between two sweeps: 2000 x 4000 nodes in
 * float64 took 64 us of 73 in one run, 65 of 49 in another one. */
template <typename Real>
bool
is_faster(const ps_heat *h, const ps_cuda_device *device, const PlaneShape &shape)
{
    constexpr double least_bytes = 72 << 20;
    const double size = sizeof(Real), nodes = static_cast<double>(heat_nodes(h));
    const double rows = static_cast<double>(heat_unknowns(h, 1).count()) / shape.sections;
    const double blocks = static_cast<double>(shape.sections) /
                          std::min(shape.sections, device->processors);
    const double row = 1.3 + (sizeof(Real) == 4 ? 0.075 : 0.06) / 1024 * size * blocks *
                                 static_cast<double>(h->nodes[0]);

    return size * nodes >= least_bytes &&
           16 + rows * row < 0.95 * 4 * size * nodes / 3.5e6;
}

/* Rows that the sweeps of heat_sweeps.h hold have blocks of their own, others clusters. Where these
 * sweeps hold no lines along an axis, those through arrays take longer: 1.49 ms a step of
 * 2048 x 20000 nodes in float64, 0.52 here; 245 and 151 us of 300 x 20000; 68 and 56 of 60 x 20000;
 * 1514 and 201 of 100000 x 200; 262 and 82 of 40000 x 64 (H200). */
template <typename Real>
PlaneShape
shape_of(const ps_heat *h, const ps_cuda_device *device)
{
    constexpr int rows_of_section = 8;
    if (!heat_is_uniform_plane(h, device)) {
        return {};
    }
    const int64_t y = heat_unknowns(h, 1).count();
    const ps_cuda_heat_line l = heat_plane_line(h, false);
    const bool is_long = !heat_is_on_chip(h, 0, device),
               is_high = !heat_is_on_chip(h, 1, device);
    PlaneShape shape = {};

    if (l.p < least_p) {
        return shape;
    }
    if (!is_long) {
        shape = row_shape<Real, heat_plane_few<Real>>(h, device);
    }
    if constexpr (sizeof(Real) == 8) {
        if (is_long) {
            shape = row_shape<Real, heat_plane_most>(h, device);
        }
        else if (shape.groups == 0) {
            shape = row_shape<Real, heat_plane_more>(h, device);
        }
    }
    shape.sections =
        static_cast<int>(std::min<int64_t>(shape.sections, y / rows_of_section));
    if (shape.groups == 0 || shape.sections < 2 ||
        (!is_long && !is_high && !is_faster<Real>(h, device, shape))) {
        return {};
    }
    const HeatPlaneSections sections =
        heat_plane_sections(l, shape.sections, double{heat_plane_negligible<Real>});

    shape.reach = sections.reach;
    shape.reads = sections.reads;
    return shape;
}

/* Whether the rows of w do not begin at 16 bytes, and the distance of rows that do. */
bool
is_moved(const ps_heat *h)
{
    return (reinterpret_cast<uintptr_t>(h->w) |
            static_cast<uintptr_t>(h->nodes[0] * ps_dtype_size(h->dtype))) %
               16 !=
           0;
}

template <typename Real>
int64_t
wide_pitch(const ps_heat *h)
{
    return rounded_up(h->nodes[0], int64_t{128 / sizeof(Real)});
}

template <typename Real>
size_t
wide_bytes(const ps_heat *h)
{
    return is_moved(h) ? ps_cuda_padded(sizeof(Real) *
                                        static_cast<size_t>(wide_pitch<Real>(h) *
                                                            heat_unknowns(h, 1).count()))
                       : 0;
}

template <typename Real>
size_t
weight_bytes(const PlaneShape &shape)
{
    return ps_cuda_padded(sizeof(HeatWeights<Real>) *
                          static_cast<size_t>(shape.sections * (shape.reads + 2)));
}

template <typename Real>
size_t
power_bytes(const ps_heat *h)
{
    return ps_cuda_padded(sizeof(Real) * static_cast<size_t>(h->nodes[1] + 1));
}

template <typename Real>
size_t
sum_bytes(const ps_heat *h, const PlaneShape &shape)
{
    return ps_cuda_padded(sizeof(HeatPair<Real>) *
                          static_cast<size_t>(shape.sections * h->nodes[0]));
}

/* The kernel of step s. */
template <int PART, typename Real>
ps_status
launch(const ps_heat *h, const HeatPlanePlan<Real> &plan, int64_t s, cudaStream_t stream)
{
    const int own = static_cast<int>((s + h->before) & 1);
    HeatPlane<Real> p = plan.plane;

    p.is_downward = own == 1;
    p.order = plan.order[1 - own];
    p.sums = plan.sums[own];
    p.last_sums = plan.sums[1 - own];
    p.ring -= PART == HEAT_PLANE_LAST;
    for (int end = 0; end < 2; end++) {
        if (PART != HEAT_PLANE_LAST) {
            p.x_side[end] =
                heat_values<Real>(h->side[0][end].sweep, s, heat_unknowns(h, 1).begin);
            p.side[end] = heat_values<Real>(h->side[1][end].sweep, s, 0);
        }
        if (PART != HEAT_PLANE_FIRST) {
            p.last_side[end] = heat_values<Real>(h->side[1][end].sweep, s - 1, 0);
        }
    }
    return with_chunk<Real>(plan.chunk, [&](auto rows) {
        const auto kernel = heat_plane_kernel<Real, PART, rows.value>;
        const cudaError_t error = allow_shared(kernel);

        return error != cudaSuccess
                   ? ps_cuda_status(error)
                   : Launch(p.sections * p.parts, HEAT_CHUNKS * plan.warps, plan.shared,
                            stream)
                         .closely()
                         .in_clusters(p.parts)
                         .run(kernel, plan.line, p);
    });
}

} // namespace

template <typename Real>
size_t
HeatPlanePlan<Real>::bytes(const ps_heat *h, const ps_cuda_device *device)
{
    const PlaneShape shape = shape_of<Real>(h, device);

    return shape.sections == 0
               ? size_t{0}
               : heat_table_bytes<double>() + power_bytes<Real>(h) + wide_bytes<Real>(h) +
                     2 * (weight_bytes<Real>(shape) + sum_bytes<Real>(h, shape));
}

template <typename Real>
ps_status
HeatPlanePlan<Real>::make(const ps_heat *h, const ps_cuda_device *device, void *memory,
                          cudaStream_t stream)
{
    const PlaneShape shape = shape_of<Real>(h, device);
    const HeatMatrix y = heat_matrix(h, 1);
    HeatPlane<Real> &p = plane;
    char *at = static_cast<char *>(memory);
    const auto take = [&](size_t bytes) {
        char *const own = at;

        at += bytes;
        return own;
    };

    if (shape.sections == 0) {
        return PS_OK;
    }
    ps_status status = heat_make_line(heat_axis_line(h, 0, shape.chunk),
                                      take(heat_table_bytes<double>()), stream, &line);
    Real *const power = reinterpret_cast<Real *>(take(power_bytes<Real>(h)));
    const ps_cuda_heat_line upward = heat_plane_line(h, false);

    is_used = true;
    shared = shape.shared;
    chunk = shape.chunk;
    p.nodes = h->nodes[0];
    p.own = static_cast<Real *>(h->w) + heat_unknowns(h, 1).begin * p.nodes;
    p.w = is_moved(h) ? reinterpret_cast<Real *>(take(wide_bytes<Real>(h))) : p.own;
    p.w_pitch = is_moved(h) ? wide_pitch<Real>(h) : p.nodes;
    p.parts = shape.parts;
    p.idle = shape.parts * shape.warps - shape.groups;
    warps = shape.warps;
    p.t = static_cast<Real *>(h->t) + heat_unknowns(h, 1).begin * p.nodes;
    p.begin = static_cast<int32_t>(heat_unknowns(h, 0).begin);
    p.end = static_cast<int32_t>(heat_unknowns(h, 0).end);
    p.rows = static_cast<int32_t>(upward.rows);
    p.sections = shape.sections;
    p.reach = shape.reach;
    p.reads = shape.reads;
    p.pitch = shape.pitch;
    p.is_near = line.group_power < heat_plane_negligible<Real>;
    p.ring = shape.ring;
    p.q = static_cast<Real>(upward.q);
    p.p = static_cast<Real>(upward.p);
    p.inverse = static_cast<Real>(1 / upward.p);
    for (int end = 0; end < 2; end++) {
        p.weight[end] = static_cast<Real>(y.end[end].weight);
        p.end_inverse[end] = static_cast<Real>(1 / (upward.p * y.end[end].weight));
        p.add[end] = static_cast<Real>(y.end[end].add);
    }
    p.power = power;
    for (int k = 0; k < 2; k++) {
        auto *const weight =
            reinterpret_cast<HeatWeights<Real> *>(take(weight_bytes<Real>(shape)));

        order[k] = {weight, weight + shape.sections * shape.reads};
        sums[k] = reinterpret_cast<HeatPair<Real> *>(take(sum_bytes<Real>(h, shape)));
    }
    return status == PS_OK ? for_threads<128>(2 * shape.sections, stream,
                                              MakePlaneOrders<Real, 2>{
                                                  {upward, heat_plane_line(h, true)},
                                                  p,
                                                  {order[0], order[1]},
                                                  power})
                           : status;
}

template <typename Real>
ps_status
heat_plane_step(const ps_heat *h, const HeatPlanePlan<Real> &plan, int64_t s,
                cudaStream_t stream)
{
    return s == 0 ? launch<HEAT_PLANE_FIRST>(h, plan, s, stream)
                  : launch<HEAT_PLANE_NEXT>(h, plan, s, stream);
}

template <typename Real>
ps_status
heat_plane_end(const ps_heat *h, const HeatPlanePlan<Real> &plan, int64_t s,
               cudaStream_t stream)
{
    return launch<HEAT_PLANE_LAST>(h, plan, s + 1, stream);
}

#define PS_INSTANTIATE(real)                                                         \
    template struct HeatPlanePlan<real>;                                             \
    template ps_status heat_plane_step(const ps_heat *, const HeatPlanePlan<real> &, \
                                       int64_t, cudaStream_t);                       \
    template ps_status heat_plane_end(const ps_heat *, const HeatPlanePlan<real> &,  \
                                      int64_t, cudaStream_t);
PS_INSTANTIATE(float)
PS_INSTANTIATE(double)
#undef PS_INSTANTIATE

} // namespace pysolvers::heat
