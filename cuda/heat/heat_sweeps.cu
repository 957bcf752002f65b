/* heat_sweeps.cu - the sweeps of the heat solver along an axis.
 */
#include "device/number.cuh"
#include "heat/heat_factor.h"
#include "heat/heat_run.h"
#include "heat/heat_varied.h"
#include "runtime/math.cuh"

namespace pysolvers::heat {

namespace {

ps_cuda_heat_end
end_of(const ps_heat_side &side)
{
    /* half the row (1 + r + exchange/2) T - r T_inner, r = 2 a */
    if (side.kind == PS_HEAT_FLUX) {
        return {1, 0.5 - side.exchange / 4, 0, 0.5, 1};
    }
    return {0, 0, 1, 1, 0};
}

template <typename Real>
HeatRows<Real>
rows_of(const ps_heat *h, int64_t pitch)
{
    HeatRows<Real> s = {};

    s.rows = heat_unknowns(h, 0).count();
    for (int k = 0; k < 2; k++) {
        s.lines[k] = heat_unknowns(h, k + 1).count();
        s.pitch[k] = k == 0 ? pitch : heat_pitch(h, 2);
    }
    s.side = h->nodes[1];
    return s;
}

/* The columns along y in each plane, whose rows have the distance `pitch` in w; along z the columns
 * of all planes at once. */
template <typename Real>
HeatColumns<Real>
columns_of(const ps_heat *h, int axis, void *own, int64_t pitch)
{
    const HeatRange x = heat_unknowns(h, 0), y = heat_unknowns(h, 1);
    const int64_t plane = axis == 1 ? heat_unknowns(h, 2).begin : 0;
    const int64_t begin = heat_unknowns(h, axis).begin, before = plane * heat_pitch(h, 2);
    void *const w = h->scheme == PS_HEAT_WEI2013 ? h->t : own;
    HeatColumns<Real> s = {};

    s.pitch = axis == 1 ? pitch : heat_pitch(h, axis);
    s.t_pitch = heat_pitch(h, axis);
    s.w = static_cast<Real *>(w) + begin * s.pitch + before;
    s.t = static_cast<Real *>(h->t) + begin * s.t_pitch + before;
    s.rows = heat_unknowns(h, axis).count();
    s.planes = axis == 1 ? heat_unknowns(h, 2).count() : 1;
    s.plane = heat_pitch(h, 2);
    s.c0 = axis == 1 ? 0 : y.begin * h->nodes[0];
    s.c1 = axis == 1 ? h->nodes[0] : y.end * h->nodes[0];
    s.width = h->nodes[0];
    s.inner[0] = x.begin;
    s.inner[1] = x.end;
    s.side = h->nodes[0];
    return s;
}

template <typename Real>
ps_status
sweep_rows(const HeatRun<Real> &run, int64_t s, Real *w, ps_cuda_heat_sink sink)
{
    const ps_heat *const h = run.h;
    const int64_t j = heat_unknowns(h, 1).begin, k = heat_unknowns(h, 2).begin;
    const int64_t first =
        heat_unknowns(h, 0).begin + j * run.pitch + k * heat_pitch(h, 2);
    HeatRows<Real> rows = run.rows;

    rows.w = w + first;
    if (s == 0 && run.pitch != h->nodes[0]) {
        rows.from_pitch = h->nodes[0];
        rows.from = static_cast<const Real *>(h->w) + heat_unknowns(h, 0).begin +
                    j * rows.from_pitch;
    }
    rows.sink = sink;
    if (sink == HEAT_EXTRAPOLATE && run.by_teams[1]) {
        rows.kept = heat_kept_bytes / static_cast<int64_t>(rows.rows * sizeof(Real));
    }
    for (int end = 0; end < 2; end++) {
        rows.end[end] = heat_values<Real>(h->side[0][end].sweep, s, k * h->nodes[1] + j);
    }
    if (h->scheme == PS_HEAT_PR) {
        rows.added = heat_values<Real>(h->source, s, first);
    }
    return heat_sweep_rows(rows, run.plan[0], run.stream);
}

template <typename Real>
ps_status
sweep_columns(const HeatRun<Real> &run, int axis, int64_t s, ps_cuda_heat_sink sink)
{
    const ps_heat *const h = run.h;
    const int64_t plane = axis == 1 ? heat_unknowns(h, 2).begin : 0;
    HeatColumns<Real> columns = run.columns[axis];

    columns.sink = sink;
    if (sink == HEAT_EXTRAPOLATE_BOTH && run.pitch != h->nodes[0]) {
        columns.out = static_cast<Real *>(h->w) + heat_unknowns(h, 1).begin * h->nodes[0];
    }
    for (int end = 0; end < 2; end++) {
        columns.end[end] =
            heat_values<Real>(h->side[axis][end].sweep, s, plane * h->nodes[0]);
    }
    return run.by_teams[axis] ? heat_sweep_teams(columns, run.teams[axis], s, run.stream)
                              : heat_sweep_columns(columns, run.plan[axis], run.stream);
}

/* The last sweep of Douglas-Gunn adds the solution to t. */
template <typename Real>
bool
is_by_teams(const ps_heat *h, int axis, void *w, int64_t pitch,
            const ps_cuda_device *device)
{
    return axis > 0 && h->k == nullptr &&
           !(h->scheme == PS_HEAT_DOUGLAS_GUNN && axis == h->axes - 1) &&
           heat_teams_accept(columns_of<Real>(h, axis, w, pitch), device);
}

/* The distance of the rows of w between the sweeps of planes of many nodes. Rows that begin between 16
 * bytes are copied number by number along y. With constant k, the first sweep of a call reads
 * them, the last one stores them, and the sweeps between have longer ones: of 777 x 12345 nodes a
 * step takes 0.76 of the time in float64. With variable k, w is copied before the steps and back, which
 * takes as long as one or two of them; the kernels and the bits are those of calls without copies: of
 * 1500 x 3333 nodes a step takes 0.89 of the time in float32, 0.91 in float64. */
constexpr int64_t least_steps_of_copies = 32;

int64_t
wide_pitch(const ps_heat *h, const ps_cuda_device *device)
{
    constexpr int64_t sector = 128, large = int64_t{1} << 22;
    const int64_t size = ps_dtype_size(h->dtype), own = h->nodes[0];
    const int64_t wide = rounded_up(own, sector / size);

    if (device == nullptr || device->capability < 90 || h->axes != 2 ||
        h->scheme != PS_HEAT_PR || h->kernels != PS_HEAT_KERNELS_FUSED ||
        own * size % 16 == 0 || heat_nodes(h) * size < large) {
        return own;
    }
    const bool is_there = with_real(h->dtype, [&](auto zero) {
        using Real = decltype(zero);

        return h->k != nullptr
                   ? heat_factor_fits(h, 0) && heat_factor_fits(h, 1)
                   : h->source.data == nullptr && heat_is_on_chip(h, 0, device) &&
                         heat_is_on_chip(h, 1, device) &&
                         is_by_teams<Real>(h, 1, nullptr, wide, device);
    });

    return is_there ? wide : own;
}

/* Bytes of a w with rows of its own. */
size_t
wide_bytes(const ps_heat *h, int64_t pitch)
{
    return pitch == h->nodes[0] ? 0
                                : ps_cuda_padded(static_cast<size_t>(
                                      pitch * h->nodes[1] * ps_dtype_size(h->dtype)));
}

/* Bytes of the plan of an axis, of any kind. */
size_t
plan_bytes(const ps_heat *h, const ps_cuda_device *device)
{
    size_t bytes = heat_table_bytes<double>();

    for (int axis = 0; axis < h->axes; axis++) {
        const bool by_teams = with_real(h->dtype, [&](auto zero) {
            return is_by_teams<decltype(zero)>(h, axis, h->w, heat_pitch(h, 1), device) ||
                   (axis == 1 && wide_pitch(h, device) != h->nodes[0]);
        });

        if (by_teams && bytes < heat_team_bytes<double>(device)) {
            bytes = heat_team_bytes<double>(device);
        }
    }
    return bytes;
}

template <typename Real>
ps_status
plan_axis(HeatRun<Real> *run, int axis, const ps_cuda_device *device, void *own)
{
    const HeatMatrix m = heat_matrix(run->h, axis);

    if (axis == 0) {
        return heat_plan_rows(run->rows, m, own, run->stream, &run->plan[axis]);
    }
    run->by_teams[axis] = is_by_teams<Real>(run->h, axis, run->w, run->pitch, device);
    return run->by_teams[axis] ? heat_plan_teams(run->columns[axis], m, own, run->stream,
                                                 &run->teams[axis])
                               : heat_plan_columns(run->columns[axis], m, own,
                                                   run->stream, &run->plan[axis]);
}

} // namespace

double
heat_ratio(const ps_heat *h, int axis)
{
    return h->scheme == PS_HEAT_WEI2013
               ? 2 * h->ratio[axis] / (1 + 2 * h->ratio[1 - axis])
               : h->ratio[axis];
}

HeatMatrix
heat_matrix(const ps_heat *h, int axis)
{
    return {heat_ratio(h, axis) / 2,
            {end_of(h->side[axis][0]), end_of(h->side[axis][1])},
            h->side[axis][0].kind == PS_HEAT_PERIODIC};
}

bool
heat_is_on_chip(const ps_heat *h, int axis, const ps_cuda_device *device)
{
    const int64_t rows = heat_unknowns(h, axis).count();

    /* offsets in bytes have 32 bits */
    if (h->k != nullptr || heat_pitch(h, axis) > UINT32_MAX / 8) {
        return false;
    }
    return with_real(h->dtype, [&](auto zero) {
        using Real = decltype(zero);

        return axis == 0 ? heat_rows_fit<Real>(rows, device)
                         : heat_columns_fit<Real>(rows, device) ||
                               is_by_teams<Real>(h, axis, h->w, heat_pitch(h, 1), device);
    });
}

HeatForm
heat_form(const ps_heat *h, const ps_cuda_device *device)
{
    return with_real(h->dtype, [&](auto zero) {
        HeatForms<decltype(zero)> forms;
        HeatForm found = {};
        const auto is_form = [&](const auto &plan) {
            found = {plan.name, plan.bytes(h, device)};
            return found.bytes > 0;
        };

        return forms.any(is_form) ? found : HeatForm{};
    });
}

ps_status
heat_sweeps_work(const ps_heat *h, size_t *bytes)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    ps_status status = device == nullptr ? PS_DEVICE_FAILURE : PS_OK;
    bool is_varied = false;
    size_t arrays = 0;

    *bytes = status == PS_OK ? heat_form(h, device).bytes : 0;
    if (*bytes > 0) {
        return PS_OK;
    }
    for (int axis = 0; status == PS_OK && axis < h->axes; axis++) {
        is_varied = is_varied || !heat_is_on_chip(h, axis, device);
    }
    const int64_t pitch = status == PS_OK ? wide_pitch(h, device) : 0;

    if (status == PS_OK && is_varied) {
        status = heat_varied_work(h, pitch, &arrays);
    }
    *bytes = status == PS_OK
                 ? PS_HEAT_AXES * plan_bytes(h, device) + arrays + wide_bytes(h, pitch)
                 : 0;
    return status;
}

size_t
heat_sweeps_kept(const ps_heat *h)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    size_t bytes = 0;

    for (int axis = 0; device != nullptr && axis < h->axes; axis++) {
        if (heat_factor_fits(h, axis)) {
            bytes += heat_factor_bytes(h, wide_pitch(h, device), axis);
        }
    }
    return bytes;
}

template <typename Real>
ps_status
heat_plan(HeatRun<Real> *run)
{
    const ps_heat *const h = run->h;
    const ps_cuda_device *const device = ps_cuda_device_get();
    ps_status status = PS_OK;

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    run->w = static_cast<Real *>(h->w);
    run->pitch = h->nodes[0];
    const bool has_form = run->forms.any([&](auto &plan) {
        status = plan.make(h, device, run->exec.work, run->stream);
        return status != PS_OK || plan.is_used;
    });

    if (has_form) {
        return status;
    }
    const size_t bytes = plan_bytes(h, device),
                 wide = wide_bytes(h, wide_pitch(h, device));

    if (wide > 0 && (h->k == nullptr || run->steps >= least_steps_of_copies)) {
        run->w = static_cast<Real *>(run->exec.work);
        run->pitch = wide_pitch(h, device);
    }
    run->exec.work = static_cast<char *>(run->exec.work) + wide;
    run->exec.work_bytes -= wide;
    run->rows = rows_of<Real>(h, run->pitch);
    for (int axis = 0; status == PS_OK && axis < h->axes; axis++) {
        run->columns[axis] = columns_of<Real>(h, axis, run->w, run->pitch);
        run->on_chip[axis] = heat_is_on_chip(h, axis, device);
        if (run->on_chip[axis]) {
            status = plan_axis(run, axis, device,
                               static_cast<char *>(run->exec.work) + axis * bytes);
        }
    }
    run->exec.work = static_cast<char *>(run->exec.work) + PS_HEAT_AXES * bytes;
    run->exec.work_bytes -= PS_HEAT_AXES * bytes;
    return status == PS_OK ? heat_varied_begin<Real>(h, run->pitch, &run->exec) : status;
}

template <typename Real>
ps_status
heat_move_w(const HeatRun<Real> &run, bool back)
{
    const size_t row = static_cast<size_t>(run.h->nodes[0]) * sizeof(Real);
    const size_t wide = static_cast<size_t>(run.pitch) * sizeof(Real);
    void *const own = run.h->w;

    if (run.w == nullptr || run.w == own || run.h->k == nullptr) {
        return PS_OK;
    }
    return ps_cuda_status(cudaMemcpy2DAsync(
        back ? own : run.w, back ? row : wide, back ? run.w : own, back ? wide : row, row,
        static_cast<size_t>(run.h->nodes[1]), cudaMemcpyDeviceToDevice, run.stream));
}

template <typename Real>
ps_status
heat_sweep(const HeatRun<Real> &run, int axis, int64_t s, Real *w, ps_cuda_heat_sink sink)
{
    if (!run.on_chip[axis]) {
        ps_heat h = *run.h;

        h.w = w;
        h.ratio[axis] = heat_ratio(run.h, axis);
        return heat_varied_sweep<Real>(&h, run.pitch, axis, s, sink, &run.exec);
    }
    return axis == 0 ? sweep_rows(run, s, w, sink) : sweep_columns(run, axis, s, sink);
}

template ps_status heat_plan<float>(HeatRun<float> *);
template ps_status heat_plan<double>(HeatRun<double> *);
template ps_status heat_move_w<float>(const HeatRun<float> &, bool);
template ps_status heat_move_w<double>(const HeatRun<double> &, bool);
template ps_status heat_sweep<float>(const HeatRun<float> &, int, int64_t, float *,
                                     ps_cuda_heat_sink);
template ps_status heat_sweep<double>(const HeatRun<double> &, int, int64_t, double *,
                                      ps_cuda_heat_sink);

} // namespace pysolvers::heat
