/* heat_resident.cu - the plan and the launches of heat_resident.h.
 */
#include "device/number.cuh"
#include "heat/heat_plane_order.cuh"
#include "heat/heat_resident.cuh"
#include "heat/heat_table.cuh"
#include "runtime/math.cuh"

namespace pysolvers::heat {

namespace {

/* The division of a plane. */
struct ResidentShape {
    int warps, chunk, most_rows, pitch;
    HeatPlaneSections sections; /* none: it does not fit */
    size_t shared;
};

/* Nodes of a chunk, odd numbers, and the rows of a section in registers. */
constexpr int few_nodes = 5, more_nodes = 9, most_nodes = 17;
constexpr int few_rows = 8;

/* Bytes of shared memory, without those of the rows, at most. */
constexpr size_t static_shared = 4096;

/* Cycles of the rows of a block: those of the instructions of all groups of chunks, of 4 schedulers, or of
 * the chains of the passes of the warps. */
template <typename Real>
int64_t
time_of_rows(int64_t columns, int64_t rows, int warps, int chunk)
{
    constexpr int64_t issue = sizeof(Real) == 4 ? 25 : 40,
                      chain = sizeof(Real) == 4 ? 45 : 60;
    const int64_t groups = divided_up(columns, int64_t{HEAT_CHUNKS} * chunk);

    return groups > warps
               ? INT64_MAX
               : std::max(rows * groups * (250 + issue * chunk) / 4,
                          divided_up(rows, warps / groups) * (900 + chain * chunk));
}

/* Whether the kernel is faster than two sweeps, which take 6.4 us and the time of 4 words per node at 3.7 TB/s; in
 * float64 4.5 us and this time, but not less than 8.5 us. A step takes the cycles of its rows, and along y 4500
 * cycles for each exchange of the sums of the columns of all threads, in float64 400 more for each other section that
 * is read, and 0.3 or 0.4 per node of a block. On an H200, r = 0.5, 1024^2 nodes take 6.0 us by this model, 512^2
 * 4.8; in float64 12.3 and 6.2. */
template <typename Real>
bool
is_faster(const ps_heat *h, int64_t columns, int64_t rows, int others,
          int64_t cycles_of_rows)
{
    constexpr bool is_single = sizeof(Real) == 4;
    const int64_t exchanges = divided_up(columns, int64_t{is_single ? 1024 : 512});
    const double nodes = static_cast<double>(columns * rows);
    const int64_t exchange = 4500 + (is_single ? 0 : 400 * others);
    const double cycles = 900 +
                          static_cast<double>(cycles_of_rows + exchange * exchanges) +
                          (exchanges > 1 ? 0.4 : 0.3) * nodes;
    const double words = 4.0 * sizeof(Real) * static_cast<double>(heat_nodes(h)) / 3.7e6;

    return is_single ? 1.08 * cycles / 1900 < 0.9 * (6.4 + words)
                     : cycles / 1900 < 0.92 * std::max(8.5, 4.5 + words);
}

/* Smaller weights do not count. They change a step as rounded coefficients do whose errors are 1/64 of a unit of
 * rounding, 2^-24 (1/128 of 2^-53 in float64); in heat_plane.h rounding errors of q^m would grow by 1/p. */
template <typename Real>
constexpr double negligible = sizeof(Real) == 4 ? 0x1p-30 : 0x1p-60;

template <typename Real>
ResidentShape
shape_of(const ps_heat *h, const ps_cuda_device *device)
{
    if (!heat_is_uniform_plane(h, device)) {
        return {};
    }
    const int64_t columns = heat_unknowns(h, 0).count(), y = heat_unknowns(h, 1).count();
    const int64_t sections =
        std::min<int64_t>(divided_up(y, int64_t{few_rows}), device->processors);
    const int64_t rows = divided_up(y, sections);
    const int64_t pitch = rounded_up(columns, int64_t{HeatHeldSums<Real>::columns});
    const size_t shared = sizeof(Real) * static_cast<size_t>(pitch * rows);
    int64_t least = INT64_MAX;
    ResidentShape shape = {};

    /* more warps where each has a column of a thread; in float64 they have too few registers */
    shape.warps = columns <= 512 || sizeof(Real) == 8 ? 16 : 32;
    for (const int chunk : {few_nodes, more_nodes, most_nodes}) {
        const int64_t time = time_of_rows<Real>(columns, rows, shape.warps, chunk);

        /* longer chunks where they save an eighth of the time of the model: 512^2 nodes of float32 take 3.9 us with 9 nodes and
         * 4.2 with 17, 1500 x 900 nodes 8.8 and 7.8 */
        if ((shape.warps == 32 || chunk > few_nodes) && time < INT64_MAX &&
            (shape.chunk == 0 || 8 * time < 7 * least)) {
            least = time;
            shape.chunk = chunk;
        }
    }
    shape.most_rows = rows <= few_rows ? few_rows : int{HEAT_RESIDENT_ROWS};
    shape.pitch = static_cast<int>(pitch);
    shape.shared = shared;
    if (rows > HEAT_RESIDENT_ROWS || shape.chunk == 0 ||
        shared + static_shared > static_cast<size_t>(device->shared_bytes)) {
        return {};
    }
    shape.sections = heat_plane_sections(heat_plane_line(h, false),
                                         static_cast<int>(sections), negligible<Real>);
    return shape.sections.reads <= HEAT_RESIDENT_READS &&
                   is_faster<Real>(h, columns, rows, shape.sections.reads - 1, least)
               ? shape
               : ResidentShape{};
}

template <typename Real>
size_t
weight_bytes(const ResidentShape &shape)
{
    return ps_cuda_padded(
        sizeof(HeatWeights<Real>) *
        static_cast<size_t>(shape.sections.sections * (shape.sections.reads + 2)));
}

template <typename Real>
size_t
mailbox_bytes(const ps_heat *h, const ResidentShape &shape)
{
    return sizeof(HeatHeldSums<Real>) * 2 *
           static_cast<size_t>(shape.sections.sections *
                               divided_up(heat_unknowns(h, 0).count(),
                                          int64_t{HeatHeldSums<Real>::columns}));
}

/* call(warps, nodes, rows) of the kernel of a plan as integral constants. */
template <typename Real, typename Call>
auto
with_kernel(int warps, int chunk, int most_rows, const Call &call)
{
    const auto with_rows = [&](auto w, auto rows) {
        constexpr std::integral_constant<int, more_nodes> more;
        constexpr std::integral_constant<int, most_nodes> most;

        if constexpr (w.value == 32) {
            if (chunk == few_nodes) {
                return call(w, std::integral_constant<int, few_nodes>(), rows);
            }
        }
        return chunk == more_nodes ? call(w, more, rows) : call(w, most, rows);
    };
    const auto with_warps = [&](auto w) {
        return most_rows == few_rows
                   ? with_rows(w, std::integral_constant<int, few_rows>())
                   : with_rows(w, std::integral_constant<int, HEAT_RESIDENT_ROWS>());
    };

    if constexpr (sizeof(Real) == 8) {
        (void)warps;
        return with_warps(std::integral_constant<int, 16>());
    }
    else {
        return warps == 16 ? with_warps(std::integral_constant<int, 16>())
                           : with_warps(std::integral_constant<int, 32>());
    }
}

} // namespace

template <typename Real>
size_t
HeatResidentPlan<Real>::bytes(const ps_heat *h, const ps_cuda_device *device)
{
    const ResidentShape shape = shape_of<Real>(h, device);

    return shape.sections.sections == 0
               ? size_t{0}
               : heat_table_bytes<double>() + weight_bytes<Real>(shape) +
                     mailbox_bytes<Real>(h, shape);
}

template <typename Real>
ps_status
HeatResidentPlan<Real>::make(const ps_heat *h, const ps_cuda_device *device, void *memory,
                             cudaStream_t stream)
{
    const ResidentShape shape = shape_of<Real>(h, device);

    if (shape.sections.sections == 0) {
        return PS_OK;
    }
    const HeatRange columns = heat_unknowns(h, 0);
    const HeatMatrix y = heat_matrix(h, 1);
    const ps_cuda_heat_line l = heat_plane_line(h, false);
    const int64_t first = heat_unknowns(h, 1).begin * h->nodes[0] + columns.begin;
    HeatResident<Real> &s = resident;
    char *const tables = static_cast<char *>(memory) + heat_table_bytes<double>();
    auto *const weight = reinterpret_cast<HeatWeights<Real> *>(tables);
    HeatWeights<Real> *const end =
        weight + shape.sections.sections * shape.sections.reads;
    ps_status status =
        heat_make_line(heat_axis_line(h, 0, shape.chunk), memory, stream, &line);

    is_used = true;
    warps = shape.warps;
    chunk = shape.chunk;
    most_rows = shape.most_rows;
    shared = shape.shared;
    static_cast<HeatPlaneSections &>(s) = shape.sections;
    s.w = static_cast<Real *>(h->w) + first;
    s.t = static_cast<Real *>(h->t) + first;
    s.nodes = h->nodes[0];
    s.columns = static_cast<int32_t>(columns.count());
    s.pitch = shape.pitch;
    s.is_near = line.group_power < heat_plane_negligible<Real>;
    s.q = static_cast<Real>(l.q);
    s.p = static_cast<Real>(l.p);
    for (int n = 0; n <= HEAT_RESIDENT_ROWS; n++) {
        s.power[n] = static_cast<Real>(std::pow(l.q, n));
    }
    for (int e = 0; e < 2; e++) {
        s.weight[e] = static_cast<Real>(y.end[e].weight);
        s.add[e] = static_cast<Real>(y.end[e].add);
        s.x_side_step[e] = h->side[0][e].sweep.level_step;
        s.y_side_step[e] = h->side[1][e].sweep.level_step;
    }
    s.of_section = weight;
    s.of_end = end;
    s.mailbox = reinterpret_cast<MailboxSlot *>(tables + weight_bytes<Real>(shape));
    if (status == PS_OK) {
        status = ps_cuda_status(
            cudaMemsetAsync(s.mailbox, 0, mailbox_bytes<Real>(h, shape), stream));
    }
    return status == PS_OK
               ? for_threads<64>(s.sections, stream,
                                 MakePlaneOrders<Real, 1>{
                                     {l}, shape.sections, {{weight, end}}, nullptr})
               : status;
}

template <typename Real>
ps_status
heat_resident_steps(const ps_heat *h, const HeatResidentPlan<Real> &plan, int64_t s,
                    int64_t count, bool last, cudaStream_t stream)
{
    HeatResident<Real> r = plan.resident;

    r.t = last ? r.t : nullptr;
    r.steps = static_cast<int32_t>(count);
    r.posted_before = static_cast<uint64_t>(s);
    for (int e = 0; e < 2; e++) {
        r.x_side[e] =
            heat_values<Real>(h->side[0][e].sweep, s, heat_unknowns(h, 1).begin);
        r.y_side[e] =
            heat_values<Real>(h->side[1][e].sweep, s, heat_unknowns(h, 0).begin);
    }
    return with_kernel<Real>(
        plan.warps, plan.chunk, plan.most_rows, [&](auto warps, auto nodes, auto rows) {
            const auto kernel =
                heat_resident_kernel<Real, warps.value, nodes.value, rows.value>;
            const cudaError_t error = allow_shared(kernel);

            return error != cudaSuccess
                       ? ps_cuda_status(error)
                       : Launch(r.sections, 32 * plan.warps, plan.shared, stream)
                             .closely()
                             .together()
                             .run(kernel, plan.line, r);
        });
}

#define PS_INSTANTIATE(real)                                                        \
    template struct HeatResidentPlan<real>;                                         \
    template ps_status heat_resident_steps(const ps_heat *,                         \
                                           const HeatResidentPlan<real> &, int64_t, \
                                           int64_t, bool, cudaStream_t);
PS_INSTANTIATE(float)
PS_INSTANTIATE(double)
#undef PS_INSTANTIATE

} // namespace pysolvers::heat
