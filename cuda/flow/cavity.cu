/* cavity.cu - iterations of the steady lid-driven cavity on the GPU.
 *
 * Iterations follow each other on the stream (cavity_stages.cu), and no field leaves
 * the device. PS_AUTO and PS_PARTITION solve the lines in fused sweeps of one kernel
 * each (cavity_fused.cu), on grids of up to 4098 nodes per side. Other methods and
 * larger grids write the rows to arrays (cavity_unfused.cu). The host is at most two
 * groups of iterations ahead of the device, so that a call can be interrupted.
 */
#include <math.h>

#include "flow/cavity_run.h"
#include "runtime/backend.h"
#include "runtime/events.cuh"

namespace pysolvers::flow {

using namespace runtime;

namespace {

/* Events: the start, the stages of the last iteration, the end, the residuals. */
enum { MARK_BEGIN, MARK_LAST, MARK_END = MARK_LAST + 3, MARK_RESIDUAL, MARK_COUNT };
using Marks = Events<MARK_COUNT>;

bool
is_fused(const ps_cavity *c, const ps_options *options)
{
    return (options->method == PS_AUTO || options->method == PS_PARTITION) &&
           ps_cuda_fused_fits(c->nodes);
}

size_t
field_bytes(const ps_cavity *c)
{
    return ps_cuda_padded(static_cast<size_t>(c->nodes * c->nodes) * sizeof(double));
}

size_t
rows_bytes(const ps_cavity *c)
{
    return ps_cuda_padded(static_cast<size_t>(2 * c->nodes + 2) * sizeof(double));
}

CavityRun
start(const ps_cavity *c, const ps_options *options, const ps_exec *exec,
      ps_cavity_report *report)
{
    const size_t field = field_bytes(c), used = 2 * field + rows_bytes(c);
    char *const base = static_cast<char *>(exec->work);
    CavityRun r = {};

    r.c = c;
    r.options = options;
    r.report = report;
    r.fused = is_fused(c, options);
    r.exec = *exec;
    r.exec.work = base + used;
    r.exec.work_bytes = exec->work_bytes - used;
    r.stream = ps_cuda_stream(exec);
    r.psi = c->psi;
    r.omega = c->omega;
    r.half = reinterpret_cast<double *>(base);
    r.other = reinterpret_cast<double *>(base + field);
    r.sums = reinterpret_cast<double *>(base + 2 * field);
    r.rows = r.sums + 2;
    return r;
}

/* Enqueue an iteration. `marks` is null except for the last one. */
ps_status
make_iteration(CavityRun &r, const Marks *marks)
{
    ps_status status = marks != nullptr ? marks->record(MARK_LAST, r.stream) : PS_OK;

    for (int k = 0; status == PS_OK && k < 3; k++) {
        status = ps_cuda_make_stage(r, ps_cuda_stage_at(r, k));
        if (marks != nullptr && status == PS_OK) {
            status = k == 2 ? ps_cuda_relax_walls(r) : PS_OK;
            status =
                status == PS_OK ? marks->record(MARK_LAST + k + 1, r.stream) : status;
        }
    }
    return status;
}

/* Iterations of a group of make_in_groups(). */
int64_t
group_size(int64_t nodes)
{
    const int64_t size = (int64_t(1) << 24) / (nodes * nodes);

    return size < 1 ? 1 : size > 64 ? 64 : size;
}

ps_status
make_iterations(CavityRun &r, int64_t count, const Marks &marks)
{
    return make_in_groups(
        count, group_size(r.c->nodes), r.exec, &r.report->iterations,
        [&](int64_t k) { return make_iteration(r, k == count - 1 ? &marks : nullptr); });
}

/* Copy the state back to the fields of the caller if the sweeps left it in the
 * workspace. */
ps_status
copy_back(const CavityRun &r)
{
    const size_t bytes = static_cast<size_t>(r.c->nodes * r.c->nodes) * sizeof(double);
    cudaError_t error = cudaSuccess;

    if (r.psi != r.c->psi) {
        error =
            cudaMemcpyAsync(r.c->psi, r.psi, bytes, cudaMemcpyDeviceToDevice, r.stream);
    }
    if (error == cudaSuccess && r.omega != r.c->omega) {
        error = cudaMemcpyAsync(r.c->omega, r.omega, bytes, cudaMemcpyDeviceToDevice,
                                r.stream);
    }
    return ps_cuda_status(error);
}

/* Distribute the time of all iterations over the stages in the proportions of the last
 * iteration. */
void
report_seconds(const CavityRun &r, const Marks &marks)
{
    const double last = marks.seconds(MARK_LAST, MARK_END);
    const double all = marks.seconds(MARK_BEGIN, MARK_END);

    for (int k = 0; k < 3 && last > 0; k++) {
        r.report->seconds[ps_cuda_stage_at(r, k)] =
            all * marks.seconds(MARK_LAST + k, MARK_LAST + k + 1) / last;
    }
    r.report->seconds[PS_STAGE_RESIDUAL] = marks.seconds(MARK_END, MARK_RESIDUAL);
}

ps_status
measure_residuals(CavityRun &r, double *sums)
{
    const ps_status status =
        ps_cuda_cavity_residuals(r.c, r.psi, r.omega, r.rows, r.sums, r.stream);

    return status != PS_OK
               ? status
               : ps_cuda_status(cudaMemcpyAsync(sums, r.sums, 2 * sizeof(double),
                                                cudaMemcpyDeviceToHost, r.stream));
}

/* After iterations that ended with `status`: compute the residuals if they are
 * requested, copy the fields to the host, and wait for the device in any case. */
ps_status
finish(CavityRun &r, ps_status status, const Marks &marks)
{
    const double interior = static_cast<double>((r.c->nodes - 2) * (r.c->nodes - 2));
    double sums[2] = {NAN, NAN};
    const ps_status walls = ps_cuda_relax_walls(r);

    status = status == PS_OK ? walls : status;
    if (status == PS_OK && (r.c->stages & 1u << PS_STAGE_RESIDUAL) != 0) {
        status = measure_residuals(r, sums);
    }
    if (status == PS_OK) {
        status = marks.record(MARK_RESIDUAL, r.stream);
    }
    const ps_status copied = copy_back(r);
    const ps_status ended = ps_cuda_status(cudaStreamSynchronize(r.stream));

    status = status == PS_OK ? copied : status;
    status = status == PS_OK ? ended : status;
    if (status == PS_OK && r.report->iterations > 0) {
        report_seconds(r, marks);
    }
    r.report->psi_residual = sqrt(sums[0] / interior);
    r.report->omega_residual = sqrt(sums[1] / interior);
    return status;
}

} // namespace

ps_status
ps_cuda_cavity_work(const ps_cavity *c, const ps_options *options, const ps_exec *exec,
                    size_t *bytes)
{
    ps_status status = ps_cavity_check(c);
    size_t rows = 0;
    (void)exec;

    if (status == PS_OK && !is_fused(c, options)) {
        status = ps_cuda_unfused_work(c->nodes, options, &rows);
    }
    if (status == PS_OK) {
        *bytes = 2 * field_bytes(c) + rows_bytes(c) + rows;
    }
    return status;
}

ps_status
ps_cuda_cavity_iterate(const ps_cavity *c, int64_t count, const ps_options *options,
                       const ps_exec *exec, ps_cavity_report *report)
{
    size_t bytes = 0;
    ps_status status = ps_cuda_cavity_work(c, options, exec, &bytes);

    if (status != PS_OK) {
        return status;
    }
    if (exec->work_bytes < bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *report = {};
    const Marks marks(cudaEventDefault);
    CavityRun r = start(c, options, exec, report);

    if (r.fused) {
        status = ps_cuda_fused_prepare();
    }
    if (status == PS_OK) {
        status = marks.record(MARK_BEGIN, r.stream);
    }
    if (status == PS_OK) {
        status = make_iterations(r, count, marks);
    }
    return finish(r, status, marks);
}

} // namespace pysolvers::flow
