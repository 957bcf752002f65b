/* heat_volume.cu - the plan and the launches of heat_volume.h.
 */
#include "heat/heat_volume.h"

#include <algorithm>
#include <type_traits>

#include "heat/heat_backward.cuh"
#include "heat/heat_forward.cuh"
#include "heat/heat_plane_order.cuh"
#include "heat/heat_table.cuh"
#include "heat/heat_team_table.cuh"
#include "runtime/math.cuh"

namespace pysolvers::heat {

namespace {

/* Rows of a chunk along x of lines of one group and of two, in increasing order. Lines of 200
 * nodes leave 20 of 32 lanes idle with 17 rows: 200 million nodes in float64 take 3.95 ms, and
 * 3.23 with 9 rows (H200). */
template <typename Real> struct Chunks {
    static constexpr int most_groups = 2;
    static constexpr int of_group[] = {5, 7, 9, 13, 17, 25, 33},
                         kinds = sizeof(Real) == 4 ? 7 : 5;
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

/* Kinds of blocks along z, by the rows of a chunk. With 24 rows in float32, a block would have a whole line of
 * 700 nodes: the second kernel takes 2.1 to 2.8 ms for 700^3 nodes, and 1.9 in clusters with 12 rows (H200). */
constexpr int side_kinds = 3;

/* call(side) with the blocks of a kind as a type. */
template <typename Real, typename Call>
auto
with_side(int side, const Call &call)
{
    constexpr int rows = sizeof(Real) == 4 ? 12 : 6;

    return side == 0   ? call(HeatSide<4, 16>())
           : side == 1 ? call(HeatSide<rows, 16>())
                       : call(HeatSide<8, 16>());
}

constexpr int section_threads = 32;
static_assert(section_threads >= HEAT_MOST_SECTIONS);

/* Makes the table of a line; one block per section. */
template <typename Real> struct MakeHeatSections {
    ps_cuda_heat_line l;
    HeatSections<Real> s;

    __device__ __forceinline__ void operator()() const
    {
        const int section = static_cast<int>(blockIdx.x);
        const int thread = static_cast<int>(threadIdx.x);
        const HeatSectionRows own = s.section(section);
        const HeatReach reach = {l};

        wait_for_last_kernel();
        if (thread < s.count) {
            const HeatSectionRows other = s.section(thread);

            const HeatWeights<Real> weight = reach.weights<Real>(
                own.first, own.first + own.count, other.first, other.first + other.count);
            const Real most = max(max(fabs(weight.uu), fabs(weight.ux)),
                                  max(fabs(weight.xu), fabs(weight.xx)));

            s.table->weight[section][thread] =
                most < heat_plane_negligible<Real> ? HeatWeights<Real>{} : weight;
        }
        if (thread < 2) {
            s.table->end[section][thread] =
                reach.end_weights<Real>(own.first, own.first + own.count, thread);
        }
        for (int n = section + thread * s.count; n <= s.size;
             n += section_threads * s.count) {
            const double power = pow(l.q, n);

            s.table->power[n] =
                static_cast<Real>(power < heat_negligible<Real> ? 0 : power);
        }
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

/* How a step is distributed: planes of a block of the first kernel, 0 if the lines are too
 * long, and its lines in shared memory, the blocks of the second one, the sections of y. */
struct Shape {
    Cut cut;
    int planes, ring, side, sections, size;
};

/* Shared memory of the first kernel apart from the lines. */
template <typename Real>
constexpr size_t forward_static =
    2 * sizeof(Arrivals) * HEAT_MOST_RING +
    sizeof(HeatPair<Real>) * HEAT_MOST_PLANES * Chunks<Real>::most_groups;

/* Blocks of a line along z, which are a cluster. */
template <typename Side>
int64_t
side_cluster(const ps_heat *h)
{
    return divided_up(heat_unknowns(h, 2).count(), int64_t{HEAT_CHUNKS} * Side::rows);
}

/* Blocks along z of a section. */
template <typename Side>
int64_t
side_blocks(const ps_heat *h)
{
    return divided_up(h->nodes[0], int64_t{Side::width}) * side_cluster<Side>(h);
}

/* Clusters that are resident at once: those of a GPC, of which a device has about 8, lie in it. */
int64_t
resident_clusters(const ps_cuda_device *device, int64_t blocks)
{
    constexpr int64_t parts = 8;

    return blocks == 1 ? device->processors
                       : parts * (device->processors / parts / blocks);
}

/* Blocks for less than two thirds of the multiprocessors: separate sweeps are faster. */
bool
are_few(int64_t blocks, const ps_cuda_device *device)
{
    return 3 * blocks < 2 * device->processors;
}

/* The least time of a kernel, in microseconds, and the kind of its blocks that takes it. */
struct Fastest {
    double time = 1e30;
    int kind = 0;

    void take(double other, int other_kind)
    {
        if (other < time) {
            time = other;
            kind = other_kind;
        }
    }
};

/* Blocks of the first kernel that a multiprocessor holds. */
template <typename Real>
int
resident_planes(const ps_cuda_device *device, const Cut &cut, size_t bytes)
{
    constexpr size_t reserved = 2048; /* of a block, with static memory */
    const int most = with_cut<Real>(cut, [](auto rows, auto groups) {
        return heat_planes_blocks<rows.value, groups.value>;
    });

    return most * (bytes + reserved) <=
                   static_cast<size_t>(device->shared_bytes_processor)
               ? most
               : 1;
}

/* Times of the first kernel by the planes of its blocks, if sections have `size` rows: rounds of
 * blocks, each with a row of nodes after the other, of 1 us and 0.04 us per KiB that a multiprocessor has. On
 * an H200: 1.9 us for 5 planes of 500 nodes in float64, 2.3 for 11 of 700 in float32. */
template <typename Real>
Fastest
fastest_planes(const ps_heat *h, const ps_cuda_device *device, const Cut &cut,
               int sections, int size)
{
    const int64_t planes = heat_unknowns(h, 2).count();
    const int most = with_cut<Real>(cut, [](auto rows, auto groups) {
        return heat_plane_warps<Real, rows.value, groups.value> / groups.value;
    });
    Fastest best;

    for (int n = 1; n <= most; n++) {
        int32_t pitch = 0;
        const size_t bytes = forward_bytes<Real>(h->nodes[0], cut, n, HEAT_RING, &pitch);
        const int64_t blocks = divided_up(planes, int64_t{n}) * sections;
        const int64_t resident = resident_planes<Real>(device, cut, bytes);
        const double row = 1.0 + 0.04 / 1024 * sizeof(Real) *
                                     static_cast<double>(resident * n * h->nodes[0]);

        if (bytes + forward_static<Real> <= static_cast<size_t>(device->shared_bytes)) {
            best.take(
                divided_up(blocks, resident * device->processors) * (size + 4) * row, n);
        }
    }
    return best;
}

/* The same of the second kernel, by the kind of its blocks: rounds of a row of nodes after the other, of
 * 2.8 us with 6 rows a thread in float64, 2.9 with 8 and 3.6 with 12 in float32; but not less than the time of
 * 3 words at 2.6 TB/s in pieces of 128 bytes, 1.9 in pieces of 64, somewhat more in more sections and if
 * not all multiprocessors have a block. On an H200, two sections of 1000 x 1000 x 200 nodes in float64 take 1.87
 * ms, seven and twelve 2.14 and 2.21. */
template <typename Real>
Fastest
fastest_side(const ps_heat *h, const ps_cuda_device *device, int sections, int size)
{
    constexpr bool is_single = sizeof(Real) == 4;
    const double words = 3.0 * sizeof(Real) * static_cast<double>(heat_nodes(h));
    const double least = words / (is_single ? 1.9e6 : 2.6e6);
    Fastest best;

    for (int kind = 0; kind < side_kinds; kind++) {
        with_side<Real>(kind, [&](auto s) {
            using Side = decltype(s);
            const int64_t cluster = side_cluster<Side>(h);
            const int64_t blocks = side_blocks<Side>(h) * sections;

            if (cluster > HEAT_CLUSTER || cluster > device->cluster_blocks ||
                are_few(blocks, device) ||
                heat_pair_bytes<Real, Side> +
                        2 * sizeof(HeatExchange<Real, Side::width>) >
                    static_cast<size_t>(device->shared_bytes)) {
                return;
            }
            const double row =
                (is_single ? 1.5 + 0.18 * Side::rows : 0.65 + 0.36 * Side::rows) +
                (!is_single && cluster > 1 ? 0.35 : 0.0);
            const int64_t rounds =
                divided_up(blocks / cluster, resident_clusters(device, cluster));
            const double used =
                std::min(1.0, static_cast<double>(blocks) / device->processors);

            best.take(std::max(rounds * (size + 3) * row, least / (0.8 + 0.2 * used)) *
                          (1 + 0.01 * sections + 0.02 * (cluster - 1)),
                      kind);
        });
    }
    return best;
}

/* Lines of each plane in shared memory: as many as it holds with the same number of blocks. The
 * first kernel takes 1.23 ms in place of 1.25 for 200 million nodes in float64 with 8 lines in
 * place of 4, and 0.80 in place of 0.83 for 700^3 nodes in float32 (H200). */
template <typename Real>
int
ring_for(const ps_heat *h, const ps_cuda_device *device, const Cut &cut, int planes)
{
    int32_t pitch = 0;
    int ring = HEAT_RING;
    const auto bytes = [&](int lines) {
        return forward_bytes<Real>(h->nodes[0], cut, planes, lines, &pitch);
    };
    const int resident = resident_planes<Real>(device, cut, bytes(ring));

    while (ring < HEAT_MOST_RING &&
           bytes(ring + 1) + forward_static<Real> <=
               static_cast<size_t>(device->shared_bytes) &&
           resident_planes<Real>(device, cut, bytes(ring + 1)) == resident) {
        ring++;
    }
    return ring;
}

/* The distribution with the least time of both kernels. */
template <typename Real>
Shape
shape_of(const ps_heat *h, const ps_cuda_device *device)
{
    if (device == nullptr || h->axes != PS_HEAT_AXES || h->k != nullptr ||
        device->capability < 90 || heat_unknowns(h, 1).count() < 2 ||
        heat_pitch(h, 2) > UINT32_MAX / 8) {
        return {};
    }
    const Cut cut = cut_of<Real>(h, device);
    const uintptr_t places = reinterpret_cast<uintptr_t>(h->t) |
                             reinterpret_cast<uintptr_t>(h->w) |
                             static_cast<uintptr_t>(h->nodes[0]) * sizeof(Real);
    const int rows = static_cast<int>(heat_unknowns(h, 1).count());
    constexpr int fewest_rows = 4;
    double least = 1e30;
    Shape shape = {};

    if (places % 16 != 0 || cut.chunk == 0) {
        return shape;
    }
    for (int count = 1; count <= HEAT_MOST_SECTIONS && count * fewest_rows <= rows;
         count++) {
        const int size = divided_up(rows, count), sections = divided_up(rows, size);
        const Fastest first = fastest_planes<Real>(h, device, cut, sections, size);
        const Fastest second = fastest_side<Real>(h, device, sections, size);

        if (first.time + second.time < least) {
            least = first.time + second.time;
            shape = {cut, first.kind, 0, second.kind, sections, size};
        }
    }
    if (shape.planes > 0) {
        shape.ring = ring_for<Real>(h, device, cut, shape.planes);
    }
    return shape;
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
size_t
section_table_bytes(const Shape &shape)
{
    return ps_cuda_padded(sizeof(HeatSectionTable<Real>) +
                          static_cast<size_t>(shape.size) * sizeof(Real));
}

/* Bytes of a number, or a pair, for each column of all sections. */
template <typename Number>
size_t
section_sums_bytes(const ps_heat *h, const Shape &shape)
{
    return ps_cuda_padded(
        static_cast<size_t>(h->nodes[0] * h->nodes[2] * shape.sections) * sizeof(Number));
}

} // namespace

template <typename Real>
size_t
HeatVolume<Real>::bytes(const ps_heat *h, const ps_cuda_device *device)
{
    const Shape shape = shape_of<Real>(h, device);

    return shape.planes == 0
               ? size_t{0}
               : 2 * heat_table_bytes<double>() + section_table_bytes<Real>(shape) +
                     section_sums_bytes<HeatPair<Real>>(h, shape) +
                     section_sums_bytes<Real>(h, shape);
}

template <typename Real>
ps_status
HeatVolume<Real>::make(const ps_heat *h, const ps_cuda_device *device, void *memory,
                       cudaStream_t stream)
{
    char *const tables = static_cast<char *>(memory);
    const size_t table = heat_table_bytes<double>();
    const Shape shape = shape_of<Real>(h, device);
    const HeatMatrix y = heat_matrix(h, 1);
    const ps_cuda_heat_line l = heat_plane_line(h, false);

    if (shape.planes == 0) {
        return PS_OK;
    }
    is_used = true;
    chunk = shape.cut.chunk;
    planes = shape.planes;
    side = shape.side;
    ring = shape.ring;
    shared = forward_bytes<Real>(h->nodes[0], shape.cut, planes, ring, &pitch);
    sections.q = static_cast<Real>(l.q);
    sections.p = static_cast<Real>(l.p);
    for (int end = 0; end < 2; end++) {
        sections.weight[end] = static_cast<Real>(y.end[end].weight);
        sections.add[end] = static_cast<Real>(y.end[end].add);
    }
    sections.rows = static_cast<int32_t>(l.rows);
    sections.count = shape.sections;
    sections.size = shape.size;
    sections.columns = h->nodes[0] * h->nodes[2];
    sections.table = reinterpret_cast<HeatSectionTable<Real> *>(tables + 2 * table);
    char *const sums = tables + 2 * table + section_table_bytes<Real>(shape);

    sections.sums = reinterpret_cast<HeatPair<Real> *>(sums);
    sections.before =
        reinterpret_cast<Real *>(sums + section_sums_bytes<HeatPair<Real>>(h, shape));
    ps_status status =
        heat_make_line(heat_axis_line(h, 0, chunk), tables, stream, &line[0]);

    if (status == PS_OK) {
        status = ps_cuda_status(allow_shared(forward_kernel(*this)));
    }
    if (status == PS_OK) {
        status = with_side<Real>(side, [&](auto s) {
            using Side = decltype(s);
            const ps_status allowed =
                ps_cuda_status(allow_shared(heat_backward_kernel<Real, Side>));

            return allowed == PS_OK ? heat_make_line(heat_axis_line(h, 2, Side::rows),
                                                     tables + table, stream, &line[1])
                                    : allowed;
        });
    }
    return status == PS_OK
               ? for_threads<section_threads>(sections.count, stream,
                                              MakeHeatSections<Real>{l, sections})
               : status;
}

template <typename Real>
ps_status
heat_volume_forward(const ps_heat *h, const HeatVolume<Real> &plan, int64_t s,
                    cudaStream_t stream)
{
    const int64_t tiles = divided_up(heat_unknowns(h, 2).count(), int64_t{plan.planes});
    HeatForward<Real> f = {};

    f.stencil = heat_change_stencil<Real>(h, s);
    for (int end = 0; end < 2; end++) {
        f.end[end] = heat_values<Real>(h->side[0][end].sweep, s, 0);
        f.side[end] = heat_values<Real>(h->side[1][end].sweep, s, 0);
    }
    f.y = plan.sections;
    f.pitch = plan.pitch;
    f.tiles = tiles;
    f.planes = plan.planes;
    f.ring = plan.ring;
    return launch_closely(forward_kernel(plan), tiles * plan.sections.count,
                          32 * (plan.planes * plan.line[0].groups + 1), plan.shared,
                          stream, plan.line[0], f);
}

template <typename Real>
ps_status
heat_volume_backward(const ps_heat *h, const HeatVolume<Real> &plan, int64_t s,
                     cudaStream_t stream)
{
    const HeatLine<Real> &line = plan.line[1];
    const int64_t j = heat_unknowns(h, 1).begin;
    const int64_t first =
        heat_unknowns(h, 2).begin * heat_pitch(h, 2) + j * heat_pitch(h, 1);
    const int64_t column = heat_unknowns(h, 2).begin * h->nodes[0];
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
        b.y_side[end] = heat_values<Real>(h->side[1][end].sweep, s, column);
    }
    b.y = plan.sections;
    b.y.sums += column;
    b.y.before += column;

    return with_side<Real>(plan.side, [&](auto of) {
        using Side = decltype(of);

        b.tiles = divided_up(h->nodes[0], int64_t{Side::width});
        return Launch(side_blocks<Side>(h) * b.y.count, Side::threads,
                      heat_pair_bytes<Real, Side>, stream)
            .closely()
            .in_clusters(line.groups)
            .run(heat_backward_kernel<Real, Side>, line, b);
    });
}

#define PS_INSTANTIATE(real)                                                           \
    template struct HeatVolume<real>;                                                  \
    template ps_status heat_volume_forward(const ps_heat *, const HeatVolume<real> &,  \
                                           int64_t, cudaStream_t);                     \
    template ps_status heat_volume_backward(const ps_heat *, const HeatVolume<real> &, \
                                            int64_t, cudaStream_t);
PS_INSTANTIATE(float)
PS_INSTANTIATE(double)
#undef PS_INSTANTIATE

} // namespace pysolvers::heat
