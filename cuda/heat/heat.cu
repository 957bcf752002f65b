/* heat.cu - time steps of heat conduction on the GPU.
 *
 * Steps follow each other on the stream. Sweeps along lines of one constant matrix read
 * and write one word per node (heat_sweeps.h); others read a conductivity too, or use
 * arrays of rows (heat_varied.h). A step moves 4 words per node with Peaceman-Rachford, and
 * with Douglas-Gunn 7 in 2-D and 9 in 3-D, or 5 in 3-D with the kernels of heat_volume.h.
 * The host does not wait, except to time the stages.
 */
#include <algorithm>

#include "device/number.cuh"
#include "heat/heat_paper.h"
#include "heat/heat_run.h"
#include "runtime/backend.h"

namespace pysolvers::heat {

namespace {

/* Steps between two calls of exec->poll, at most; of heat_resident.h, of a kernel. */
constexpr int64_t most_steps = 64;

template <typename Real>
int64_t
group_size(const HeatRun<Real> &run)
{
    const int64_t size = (int64_t{1} << 24) / heat_nodes(run.h);

    return run.forms.resident.is_used ? most_steps
           : size < 1                 ? 1
                                      : std::min(size, most_steps);
}

template <typename Real>
ps_status
sweep(HeatRun<Real> &run, int axis, int64_t s, void *w, ps_cuda_heat_sink sink, bool last)
{
    const ps_status status = heat_sweep(run, axis, s, static_cast<Real *>(w), sink);

    return status == PS_OK
               ? run.clock.made(static_cast<ps_heat_stage>(PS_HEAT_STAGE_X + axis), last)
               : status;
}

/* A step of heat_plane.h. */
template <typename Real>
ps_status
step_plane(HeatRun<Real> &run, int64_t s, bool last)
{
    ps_status status = heat_plane_step(run.h, run.forms.plane, s, run.stream);

    if (status == PS_OK) {
        status = run.clock.made(PS_HEAT_STAGE_X, last);
    }
    if (status == PS_OK && last) {
        status = heat_plane_end(run.h, run.forms.plane, s, run.stream);
    }
    return status == PS_OK ? run.clock.made(PS_HEAT_STAGE_Y, last) : status;
}

template <typename Real>
ps_status
step_peaceman_rachford(HeatRun<Real> &run, int64_t s, bool last)
{
    if (run.forms.plane.is_used) {
        return step_plane(run, s, last);
    }
    const ps_status status = sweep(run, 0, s, run.w, HEAT_EXTRAPOLATE, last);

    return status == PS_OK ? sweep(run, 1, s, run.w,
                                   last ? HEAT_EXTRAPOLATE_BOTH : HEAT_EXTRAPOLATE, last)
                           : status;
}

/* A step of heat_volume.h: one kernel along x and the first half of the lines along y,
 * one for the second half and along z. */
template <typename Real>
ps_status
step_volume(HeatRun<Real> &run, int64_t s, bool last)
{
    ps_status status = heat_volume_forward(run.h, run.forms.volume, s, run.stream);

    if (status == PS_OK) {
        status = run.clock.made(PS_HEAT_STAGE_X, last);
    }
    if (status == PS_OK) {
        status = heat_volume_backward(run.h, run.forms.volume, s, run.stream);
    }
    return status == PS_OK ? run.clock.made(PS_HEAT_STAGE_Z, last) : status;
}

template <typename Real>
ps_status
step_stages(HeatRun<Real> &run, int64_t s, bool last)
{
    ps_status status = heat_make_change<Real>(run.h, s, run.stream);

    if (status == PS_OK) {
        status = run.clock.made(PS_HEAT_STAGE_RHS, last);
    }
    for (int axis = 0; status == PS_OK && axis < run.h->axes; axis++) {
        const ps_cuda_heat_sink sink = axis < run.h->axes - 1 ? HEAT_PLAIN : HEAT_ADD;

        status = sweep(run, axis, s, run.h->w, sink, last);
    }
    return status;
}

template <typename Real>
ps_status
step_douglas_gunn(HeatRun<Real> &run, int64_t s, bool last)
{
    const ps_status status =
        run.forms.volume.is_used ? step_volume(run, s, last) : step_stages(run, s, last);

    return status == PS_OK ? heat_set_sides<Real>(run.h, s + 1, true, run.stream)
                           : status;
}

/* A step of wei2013: two sweeps. T* is in w, whose boundary nodes have been set, and T
 * in t. */
template <typename Real>
ps_status
step_wei(HeatRun<Real> &run, int64_t s, bool last)
{
    void *const field[2] = {run.h->w, run.h->t};
    ps_status status = PS_OK;

    for (int axis = 0; status == PS_OK && axis < 2; axis++) {
        status = heat_make_neighbours(run.h, 1 - axis,
                                      static_cast<const Real *>(field[1 - axis]),
                                      static_cast<Real *>(field[axis]), run.stream);
        if (status == PS_OK) {
            status = run.clock.made(PS_HEAT_STAGE_RHS, last);
        }
        if (status == PS_OK) {
            status = sweep(run, axis, s, field[axis], HEAT_PLAIN, last);
        }
    }
    return status;
}

/* `count` steps of heat_resident.h. */
template <typename Real>
ps_status
step_resident(HeatRun<Real> &run, int64_t s, int64_t count, bool last)
{
    const ps_status status =
        heat_resident_steps(run.h, run.forms.resident, s, count, last, run.stream);

    return status == PS_OK ? run.clock.made(PS_HEAT_STAGE_X, last) : status;
}

template <typename Real>
ps_status
make_step(HeatRun<Real> &run, int64_t s, bool last)
{
    if (run.h->kernels == PS_HEAT_KERNELS_PAPER) {
        return heat_paper_step(run, last);
    }
    switch (run.h->scheme) {
    case PS_HEAT_PR:
        return step_peaceman_rachford(run, s, last);
    case PS_HEAT_DOUGLAS_GUNN:
        return step_douglas_gunn(run, s, last);
    default:
        return step_wei(run, s, last);
    }
}

/* Work before the first step. */
template <typename Real>
ps_status
prepare(HeatRun<Real> &run)
{
    const ps_heat *const h = run.h;
    ps_status status = run.clock.begin();

    if (status == PS_OK && h->kernels == PS_HEAT_KERNELS_PAPER) {
        status = heat_paper_prepare(run);
    }
    else if (status == PS_OK) {
        status = heat_plan(&run);
    }
    if (status == PS_OK && h->scheme == PS_HEAT_PR && h->fresh != 0 &&
        h->kernels == PS_HEAT_KERNELS_FUSED) {
        status = heat_make_half(h, 1, static_cast<const Real *>(h->t),
                                static_cast<Real *>(h->w), run.stream);
    }
    if (status == PS_OK) {
        status = heat_move_w(run, false);
    }
    if (status == PS_OK && h->scheme == PS_HEAT_WEI2013 &&
        h->kernels == PS_HEAT_KERNELS_FUSED) {
        status = ps_cuda_status(
            cudaMemcpyAsync(h->w, h->t, static_cast<size_t>(heat_nodes(h)) * sizeof(Real),
                            cudaMemcpyDeviceToDevice, run.stream));
    }
    return status == PS_OK ? run.clock.made(PS_HEAT_STAGE_RHS, true) : status;
}

/* `count` steps, or fewer when interrupted; `last` is true in the last one. */
template <typename Real>
ps_status
make_steps(HeatRun<Real> &run, int64_t count, ps_heat_report *report)
{
    const int64_t group = group_size(run);
    ps_status status = run.clock.begin_steps();
    bool last = false;

    for (int64_t s = 0; status == PS_OK && s < count && !last;) {
        const bool is_interrupted = s % group == 0 && run.exec.poll != nullptr &&
                                    run.exec.poll(run.exec.poll_self) != 0;
        const int64_t steps = run.forms.resident.is_used && !is_interrupted
                                  ? std::min(group, count - s)
                                  : 1;

        last = is_interrupted || s + steps == count;
        if (last) {
            status = run.clock.begin_last();
        }
        if (status == PS_OK) {
            status = run.forms.resident.is_used ? step_resident(run, s, steps, last)
                                                : make_step(run, s, last);
        }
        s += steps;
        report->steps += status == PS_OK ? steps : 0;
    }
    run.clock.end_steps();
    return status == PS_OK && report->steps < count ? PS_INTERRUPTED : status;
}

template <typename Real>
ps_status
run_steps(const ps_heat *h, int64_t count, const ps_exec *exec, ps_heat_report *report)
{
    const cudaStream_t stream = ps_cuda_stream(exec);
    HeatRun<Real> run = {h, stream, *exec, HeatClock(h->timed != 0, stream)};

    run.steps = count;

    ps_status status = prepare(run);

    if (status == PS_OK) {
        status = make_steps(run, count, report);
    }
    const bool is_whole = status == PS_OK || status == PS_INTERRUPTED;
    ps_status end = is_whole ? heat_move_w(run, true) : status;

    if (end == PS_OK && is_whole && h->goes_on == 0) {
        end = heat_set_sides<Real>(h, report->steps, false, stream);
    }

    if (end == PS_OK) {
        end = heat_find_largest<Real>(h, stream);
    }
    if (end == PS_OK) {
        end = run.clock.made(PS_HEAT_STAGE_END, true);
    }
    if (end == PS_OK && h->timed != 0) {
        end = ps_cuda_status(cudaStreamSynchronize(stream));
        run.clock.write(report->seconds);
    }
    return end != PS_OK ? end : status;
}

const char *
kernel_of(const ps_heat *h)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    bool on_chip = device != nullptr;

    if (h->kernels == PS_HEAT_KERNELS_PAPER) {
        return heat_paper_kernel(h);
    }
    const HeatForm form = on_chip ? heat_form(h, device) : HeatForm{};

    if (form.name != nullptr) {
        return form.name;
    }
    for (int axis = 0; on_chip && axis < h->axes; axis++) {
        on_chip = heat_is_on_chip(h, axis, device);
    }
    return on_chip ? "fused" : "partition";
}

} // namespace

ps_status
ps_cuda_heat_work(const ps_heat *h, const ps_exec *exec, size_t *bytes)
{
    const ps_status status = ps_heat_check(h, 0);
    (void)exec;

    if (status != PS_OK) {
        return status;
    }
    return h->kernels == PS_HEAT_KERNELS_PAPER ? heat_paper_work(h, bytes)
                                               : heat_sweeps_work(h, bytes);
}

ps_status
ps_cuda_heat_kept(const ps_heat *h, size_t *bytes)
{
    const ps_status status = ps_heat_check(h, 0);

    *bytes =
        status == PS_OK && h->kernels == PS_HEAT_KERNELS_FUSED ? heat_sweeps_kept(h) : 0;
    return status;
}

ps_status
ps_cuda_heat_step(const ps_heat *h, int64_t count, const ps_exec *exec,
                  ps_heat_report *report)
{
    size_t bytes = 0;
    ps_status status = ps_heat_check(h, count);

    if (status == PS_OK) {
        status = ps_cuda_heat_work(h, exec, &bytes);
    }
    if (status != PS_OK) {
        return status;
    }
    if (exec->work_bytes < bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *report = {};
    report->kernel = kernel_of(h);
    if (count == 0) {
        return PS_OK;
    }
    return with_real(h->dtype, [&](auto zero) {
        return run_steps<decltype(zero)>(h, count, exec, report);
    });
}

} // namespace pysolvers::heat
