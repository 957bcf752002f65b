/* cylinder.cu - steps of the flow around a cylinder on the GPU.
 *
 * Steps follow each other on the stream (cylinder.h), and no field leaves the device.
 * Each step exchanges the fields and those one step before. The host is at most two
 * groups of steps ahead of the device, so that a call can be interrupted.
 */
#include <utility>

#include "flow/cylinder.h"
#include "flow/cylinder_pta.cuh"
#include "runtime/backend.h"
#include "runtime/events.cuh"

namespace pysolvers::flow {

using namespace runtime;

namespace {

/* Events: the start, the stages of the last step, the end. */
enum { MARK_BEGIN, MARK_LAST, MARK_END = MARK_LAST + PS_CYLINDER_STAGES, MARK_COUNT };
using Marks = Events<MARK_COUNT>;

/* The parts of the workspace, in the order of CylinderRun. */
struct Parts {
    size_t half, waves, outlet, lines, psi_0, boxed, charged, numbers, sums, arrived, pta,
        all;
};

Parts
parts_of(const ps_cylinder *c)
{
    const size_t real = static_cast<size_t>(ps_dtype_size(c->dtype)),
                 word = sizeof(double);
    const size_t ny = static_cast<size_t>(c->ny), nx = static_cast<size_t>(c->nx);
    const size_t width = static_cast<size_t>(c->columns.last - c->columns.first + 1);
    const size_t box_rows = static_cast<size_t>(c->box_rows.last - c->box_rows.first + 1);
    size_t end = 0;
    const auto part = [&](size_t bytes) {
        const size_t begin = end;

        end += ps_cuda_padded(bytes);
        return begin;
    };
    Parts p = {};

    p.half = part(ny * nx * real);
    p.waves = part(ny * nx * real);
    p.outlet = part(ny * real);
    p.lines = part(width * ny * word);
    p.psi_0 = part(static_cast<size_t>(c->surface_nodes) * word);
    p.boxed = part(box_rows * word);
    p.charged = part((2 * ny + 2 * width) * word);
    p.numbers = part(STEP_NUMBERS * word);
    p.sums = part(force_blocks * PS_FORCE_RESULTS * word);
    p.arrived = part(sizeof(unsigned));
    p.pta = part(c->thomas != 0 ? pta_bytes(c->ny * c->nx, real) : 0);
    p.all = end;
    return p;
}

CylinderRun
start(const ps_cylinder *c, const ps_exec *exec)
{
    const Parts p = parts_of(c);
    char *const base = static_cast<char *>(exec->work);
    const auto words = [&](size_t at) { return reinterpret_cast<double *>(base + at); };
    CylinderRun r = {};

    r.c = c;
    r.stream = ps_cuda_stream(exec);
    r.psi = c->psi;
    r.psi_old = c->psi_old;
    r.omega = c->omega;
    r.omega_old = c->omega_old;
    r.half = base + p.half;
    r.waves = base + p.waves;
    r.outlet = base + p.outlet;
    r.lines = words(p.lines);
    r.psi_0 = words(p.psi_0);
    r.boxed = words(p.boxed);
    r.charged = words(p.charged);
    r.numbers = words(p.numbers);
    r.sums = words(p.sums);
    r.arrived = reinterpret_cast<unsigned *>(base + p.arrived);
    r.pta = base + p.pta;
    r.dt_old = c->dt_old;
    r.history = c->history;
    r.step = c->steps + 1;
    return r;
}

/* Set to zero what the kernels of the call only raise or count, and the rate of change of
 * the circulation, which a steady step does not compute. */
ps_status
clear(const CylinderRun &r, int64_t count)
{
    const size_t columns = static_cast<size_t>(PS_CYLINDER_COLUMNS + 2 * r.c->probes);
    const size_t bytes = static_cast<size_t>(count) * columns * sizeof(double);
    cudaError_t error = cudaMemsetAsync(r.history, 0, bytes, r.stream);

    if (error == cudaSuccess) {
        error = cudaMemsetAsync(r.arrived, 0, sizeof(unsigned), r.stream);
    }
    if (error == cudaSuccess) {
        error = cudaMemsetAsync(r.numbers, 0, STEP_NUMBERS * sizeof(double), r.stream);
    }
    return ps_cuda_status(error);
}

ps_status
solve_psi(const CylinderRun &r)
{
    if (r.c->psi_tol > 0) {
        return ps_cuda_cylinder_psi_lines(r);
    }
    ps_status status = ps_cuda_cylinder_to_waves(r);

    status = status == PS_OK ? ps_cuda_cylinder_lines(r, false) : status;
    status = status == PS_OK ? ps_cuda_cylinder_charges(r) : status;
    status = status == PS_OK ? ps_cuda_cylinder_lines(r, true) : status;
    return status == PS_OK ? ps_cuda_cylinder_from_waves(r) : status;
}

ps_status
make_stage(const CylinderRun &r, int stage)
{
    switch (stage) {
    case PS_CYLINDER_STAGE_OMEGA:
        return ps_cuda_cylinder_omega(r);
    case PS_CYLINDER_STAGE_PSI:
        return solve_psi(r);
    case PS_CYLINDER_STAGE_WALLS:
        return ps_cuda_cylinder_walls(r);
    default:
        return r.step % PS_FORCES_EVERY == 0 ? ps_cuda_cylinder_forces(r) : PS_OK;
    }
}

/* Enqueue a step. `marks` is null except for the last one. */
ps_status
make_step(CylinderRun &r, const Marks *marks)
{
    ps_status status = marks != nullptr ? marks->record(MARK_LAST, r.stream) : PS_OK;

    for (int stage = 0; status == PS_OK && stage < PS_CYLINDER_STAGES; stage++) {
        status = make_stage(r, stage);
        if (marks != nullptr && status == PS_OK) {
            status = marks->record(MARK_LAST + stage + 1, r.stream);
        }
    }
    std::swap(r.psi, r.psi_old);
    std::swap(r.omega, r.omega_old);
    r.dt_old = r.c->dt;
    r.history += PS_CYLINDER_COLUMNS + 2 * r.c->probes;
    r.step++;
    return status;
}

/* Steps of a group of make_in_groups(). */
int64_t
group_size(const ps_cylinder *c)
{
    const int64_t size = (int64_t(1) << 25) / (c->nx * c->ny);

    return size < 1 ? 1 : size > 100 ? 100 : size;
}

/* Distribute the time of all steps over the stages in the proportions of the last step.
 */
void
report_seconds(const Marks &marks, ps_cylinder_report *report)
{
    const double last = marks.seconds(MARK_LAST, MARK_END);
    const double all = marks.seconds(MARK_BEGIN, MARK_END);

    for (int stage = 0; stage < PS_CYLINDER_STAGES && last > 0; stage++) {
        report->seconds[stage] =
            all * marks.seconds(MARK_LAST + stage, MARK_LAST + stage + 1) / last;
    }
}

} // namespace

ps_status
ps_cuda_cylinder_work(const ps_cylinder *c, const ps_exec *exec, size_t *bytes)
{
    const ps_status status = ps_cylinder_check(c);
    (void)exec;

    if (status != PS_OK) {
        return status;
    }
    if (!ps_cuda_cylinder_fits(c)) {
        return PS_UNSUPPORTED;
    }
    *bytes = parts_of(c).all;
    return PS_OK;
}

ps_status
ps_cuda_cylinder_step(const ps_cylinder *c, int64_t count, const ps_exec *exec,
                      ps_cylinder_report *report)
{
    size_t bytes = 0;
    ps_status status = ps_cuda_cylinder_work(c, exec, &bytes);

    if (status != PS_OK) {
        return status;
    }
    if (exec->work_bytes < bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *report = {};
    const Marks marks(cudaEventDefault);
    CylinderRun r = start(c, exec);

    status = ps_cuda_cylinder_prepare(c);
    status = status == PS_OK ? ps_cuda_cylinder_prepare_body(c) : status;
    if (status == PS_OK && c->psi_tol > 0) {
        status = ps_cuda_cylinder_prepare_lines(c);
    }
    else if (status == PS_OK) {
        status = ps_cuda_cylinder_prepare_transform(c);
        status = status == PS_OK ? ps_cuda_cylinder_prepare_waves(c) : status;
    }
    status = status == PS_OK ? clear(r, count) : status;
    status = status == PS_OK ? marks.record(MARK_BEGIN, r.stream) : status;
    if (status == PS_OK) {
        status =
            make_in_groups(count, group_size(c), *exec, &report->steps, [&](int64_t k) {
                return make_step(r, k == count - 1 ? &marks : nullptr);
            });
    }
    const ps_status ended = ps_cuda_status(cudaStreamSynchronize(r.stream));

    status = status == PS_OK ? ended : status;
    if (status == PS_OK && report->steps > 0) {
        report_seconds(marks, report);
    }
    return status;
}

} // namespace pysolvers::flow
