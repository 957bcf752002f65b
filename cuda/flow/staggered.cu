/* staggered.cu - steps of the cavity on a staggered grid on the GPU.
 *
 * A step is the stages predict and correct (staggered_stages.cu) and the solution for the
 * pressure between them. No field leaves the device.
 *
 * With the pressure "given" a call enqueues its stages and returns, so that a step can be
 * captured in a graph with the direct solver between the stages. The device decides
 * whether a step is made. A call without stages waits, and says why the steps ended.
 *
 * With SOR the pressure is relaxed by the kernels for the plate (relaxation/laplace.cu)
 * in the layout and with the coefficients of csrc/cpu/flow/staggered.c: 4 or 8 iterations
 * in a pass over the field. With a tolerance the device decides when the iteration ends;
 * the host waits for each group of passes, and for the clock at the end of a step. With a
 * fixed number of iterations the host waits at the end of the call only.
 */
#include <math.h>

#include "flow/staggered_stages.h"
#include "ps_staggered_clock.h"
#include "runtime/backend.h"
#include "runtime/events.cuh"

namespace pysolvers::flow {

using namespace runtime;

namespace {

constexpr int table_rows = 3;

int64_t
pitch_of(const ps_staggered *s)
{
    return ((s->cells + 3) / 2 + 15) / 16 * 16;
}

size_t
coloured_bytes(const ps_staggered *s)
{
    return ps_cuda_padded(static_cast<size_t>(2 * (s->cells + 2) * pitch_of(s)) *
                          sizeof(double));
}

size_t
table_bytes(const ps_staggered *s)
{
    return ps_cuda_padded(static_cast<size_t>(table_rows * 2 * pitch_of(s)) *
                          sizeof(double));
}

size_t
parts_bytes(const ps_staggered *s)
{
    return ps_cuda_padded(static_cast<size_t>(3 * ps_cuda_staggered_parts(s->cells)) *
                          sizeof(uint64_t));
}

/* The relaxation of the pressure; `base` are the two coloured fields and the two tables.
 */
ps_laplace
laplace_of(const ps_staggered *s, char *base)
{
    const size_t field = coloured_bytes(s), table = table_bytes(s);
    ps_laplace l = {};

    l.dtype = PS_F64;
    l.variant = PS_LAPLACE_AUTO;
    l.nx = l.ny = s->cells;
    l.pitch = pitch_of(s);
    l.ax = l.ay = static_cast<double>(s->cells * s->cells);
    l.t = base;
    l.source = base + field;
    l.diag = base + 2 * field;
    l.gain = base + 2 * field + table;
    l.stop.criterion = PS_CRITERION_RESIDUAL;
    l.stop.norm = PS_NORM_L2;
    l.stop.every = s->tolerance < 0 ? 0 : 1;
    l.stop.tolerance = s->tolerance;
    return l;
}

size_t
fields_bytes(const ps_staggered *s)
{
    return 2 * coloured_bytes(s) + 2 * table_bytes(s);
}

ps_status
check(const ps_staggered *s)
{
    const uint32_t all = (1u << PS_STAGGERED_STAGES) - 1;
    const ps_status status = ps_staggered_check(s);

    if (status != PS_OK) {
        return status;
    }
    if (s->kernel != PS_STAGGERED_AUTO) {
        return PS_UNSUPPORTED;
    }
    return s->pressure == PS_PRESSURE_SOR && s->stages != all && s->stages != 0
               ? PS_UNSUPPORTED
               : PS_OK;
}

ps_status
enqueue_given(const ps_staggered *s, const ps_exec *exec)
{
    cudaStream_t const stream = ps_cuda_stream(exec);
    ps_status status = PS_OK;

    if (s->stages & 1u << PS_STAGGERED_PREDICT) {
        status = ps_cuda_staggered_predict(s, nullptr, stream);
    }
    if (status == PS_OK && (s->stages & 1u << PS_STAGGERED_CORRECT)) {
        status = ps_cuda_staggered_correct(s, nullptr, {0, 0, false},
                                           static_cast<uint64_t *>(exec->work), stream);
    }
    return status;
}

/* Wait, and read from the clock why the steps ended and the number of all steps. */
ps_status
wait_for_end(const ps_staggered *s, cudaStream_t stream, ps_staggered_end *end,
             int64_t *steps)
{
    double clock[PS_CLOCK_COUNT];
    ps_staggered here = *s;
    ps_status status = ps_cuda_status(
        cudaMemcpyAsync(clock, s->clock, sizeof clock, cudaMemcpyDeviceToHost, stream));

    if (status == PS_OK) {
        status = ps_cuda_status(cudaStreamSynchronize(stream));
    }
    if (status == PS_OK) {
        here.clock = clock;
        *end = ps_staggered_judge(&here);
        *steps = static_cast<int64_t>(clock[PS_CLOCK_STEPS]);
    }
    return status;
}

/* The same; u and v are then the current velocity. */
ps_status
settle(const ps_staggered *s, cudaStream_t stream, ps_staggered_end *end, int64_t *steps)
{
    const ps_status settled = ps_cuda_staggered_settle(s, stream);
    const ps_status ended = wait_for_end(s, stream, end, steps);

    return settled == PS_OK ? ended : settled;
}

enum { MARK_BEGIN, MARK_PREDICT, MARK_PRESSURE, MARK_CORRECT, MARK_END, MARK_COUNT };

/* Steps with SOR. */
class Run {
  public:
    Run(const ps_staggered *s, const ps_exec *exec, ps_staggered_report *report)
        : s_(s), exec_(exec), stream_(ps_cuda_stream(exec)), report_(report),
          marks_(cudaEventDefault)
    {
        char *const fields = static_cast<char *>(exec->work) + parts_bytes(s);

        parts_ = static_cast<uint64_t *>(exec->work);
        laplace_ = laplace_of(s, fields);
        relax_ = *exec;
        relax_.work = fields + fields_bytes(s);
        relax_.work_bytes = exec->work_bytes - parts_bytes(s) - fields_bytes(s);
    }

    ps_status run(int64_t count)
    {
        int64_t last = 0;
        ps_staggered_end end = PS_STAGGERED_COUNT;
        ps_status status = wait_for_end(s_, stream_, &end, &first_);

        if (status == PS_OK && end == PS_STAGGERED_UNTIL) {
            report_->end = end;
            return PS_OK;
        }
        if (status == PS_OK) {
            status = s_->tolerance < 0 ? make_fixed_steps(count) : make_steps(count);
        }
        const ps_status ended = settle(s_, stream_, &end, &last);

        report_->steps = last - first_;
        if (report_->end == PS_STAGGERED_COUNT && report_->steps > 0) {
            report_->end = end;
        }
        if (status == PS_OK && ended == PS_OK && s_->tolerance < 0) {
            share_seconds();
        }
        return status == PS_OK ? ended : status;
    }

  private:
    ps_status make_steps(int64_t count)
    {
        ps_status status = prepare();

        while (status == PS_OK && report_->steps < count &&
               report_->end == PS_STAGGERED_COUNT) {
            status = make_step();
            if (status == PS_OK && exec_->poll != nullptr &&
                exec_->poll(exec_->poll_self) != 0) {
                status = PS_INTERRUPTED;
            }
        }
        return status;
    }

    ps_status prepare()
    {
        ps_status status =
            ps_cuda_status(cudaMemsetAsync(laplace_.t, 0, fields_bytes(s_), stream_));

        if (status == PS_OK) {
            status = ps_cuda_staggered_colour(s_, &laplace_, stream_);
        }
        return status;
    }

    /* Steps with exactly most_sweeps iterations each. The device decides on their end:
     * the iterations after it change the coloured field only, which is not used again. */
    ps_status make_fixed_steps(int64_t count)
    {
        const int64_t work = s_->cells * s_->cells * (s_->most_sweeps + 8);
        const int64_t size = (int64_t(1) << 27) / work;
        int64_t enqueued = 0;
        ps_status status = prepare();

        if (status == PS_OK) {
            status = marks_.record(MARK_BEGIN, stream_);
        }
        return status == PS_OK
                   ? make_in_groups(count, size < 1 ? 1 : size, *exec_, &enqueued,
                                    [&](int64_t) { return enqueue_step(); })
                   : status;
    }

    ps_status enqueue_step()
    {
        const Swept swept = {static_cast<double>(s_->most_sweeps), NAN, true};
        ps_status status = marks_.record(MARK_PREDICT, stream_);

        if (status == PS_OK) {
            status = ps_cuda_staggered_predict(s_, &laplace_, stream_);
        }
        if (status == PS_OK) {
            status = marks_.record(MARK_PRESSURE, stream_);
        }
        if (status == PS_OK) {
            status = relaxation::ps_cuda_laplace_enqueue(&laplace_, s_->most_sweeps,
                                                         &relax_, &report_->kernel);
        }
        if (status == PS_OK) {
            status = marks_.record(MARK_CORRECT, stream_);
        }
        if (status == PS_OK) {
            status = ps_cuda_staggered_correct(s_, &laplace_, swept, parts_, stream_);
        }
        return status == PS_OK ? marks_.record(MARK_END, stream_) : status;
    }

    /* Distribute the time of all steps over the stages in the proportions of the last
     * step. */
    void share_seconds()
    {
        const double last = marks_.seconds(MARK_PREDICT, MARK_END);
        const double all = marks_.seconds(MARK_BEGIN, MARK_END);

        for (int k = 0; k < PS_STAGGERED_STAGES && report_->steps > 0 && last > 0; k++) {
            report_->seconds[k] =
                all * marks_.seconds(MARK_PREDICT + k, MARK_PREDICT + k + 1) / last;
        }
    }

    ps_status make_step()
    {
        Swept swept = {};
        ps_status status = marks_.record(MARK_PREDICT, stream_);

        if (status == PS_OK) {
            status = ps_cuda_staggered_predict(s_, &laplace_, stream_);
        }
        if (status == PS_OK) {
            status = marks_.record(MARK_PRESSURE, stream_);
        }
        if (status == PS_OK) {
            status = solve_pressure(&swept);
        }
        if (status != PS_OK || report_->end != PS_STAGGERED_COUNT) {
            return status;
        }
        status = marks_.record(MARK_CORRECT, stream_);
        if (status == PS_OK) {
            status = ps_cuda_staggered_correct(s_, &laplace_, swept, parts_, stream_);
        }
        if (status == PS_OK) {
            status = marks_.record(MARK_END, stream_);
        }
        return status == PS_OK ? complete() : status;
    }

    ps_status solve_pressure(Swept *swept)
    {
        ps_laplace_report report = {};
        ps_status status = relaxation::ps_cuda_laplace_iterate(&laplace_, s_->most_sweeps,
                                                               &relax_, &report);

        if (status != PS_OK) {
            return status;
        }
        report_->kernel = report.relax.kernel;
        *swept = {static_cast<double>(report.relax.iterations), report.relax.measure,
                  true};
        if (report.relax.end == PS_END_NOT_FINITE) {
            report_->end = PS_STAGGERED_GROWN;
        }
        else if (report.relax.end == PS_END_COUNT && s_->tolerance >= 0) {
            report_->end = PS_STAGGERED_SWEEPS;
        }
        if (report_->end != PS_STAGGERED_COUNT) { /* for the message */
            status = ps_cuda_status(
                cudaMemcpyAsync(s_->clock + PS_CLOCK_RESIDUAL, &swept->residual,
                                sizeof swept->residual, cudaMemcpyHostToDevice, stream_));
        }
        return status;
    }

    /* Wait for a step. */
    ps_status complete()
    {
        const ps_status status =
            wait_for_end(s_, stream_, &report_->end, &report_->steps);

        if (status == PS_OK) {
            report_->steps -= first_;
            for (int k = 0; k < PS_STAGGERED_STAGES; k++) {
                report_->seconds[k] +=
                    marks_.seconds(MARK_PREDICT + k, MARK_PREDICT + k + 1);
            }
        }
        return status;
    }

    const ps_staggered *const s_;
    const ps_exec *const exec_;
    const cudaStream_t stream_;
    ps_staggered_report *const report_;
    const Events<MARK_COUNT> marks_;
    uint64_t *parts_;
    ps_laplace laplace_;
    ps_exec relax_;
    int64_t first_ = 0; /* steps before the call */
};

} // namespace

ps_status
ps_cuda_staggered_work(const ps_staggered *s, const ps_exec *exec, size_t *bytes)
{
    ps_status status = check(s);
    size_t sweeps = 0;
    (void)exec;

    if (status == PS_OK && s->pressure == PS_PRESSURE_SOR && s->stages != 0) {
        /* The size does not depend on the addresses, which are compared and not read. */
        const ps_laplace l = laplace_of(s, reinterpret_cast<char *>(s->u));

        status = relaxation::ps_cuda_laplace_work(&l, &sweeps);
        sweeps += fields_bytes(s);
    }
    if (status == PS_OK) {
        *bytes = s->stages & 1u << PS_STAGGERED_CORRECT ? parts_bytes(s) + sweeps : 0;
    }
    return status;
}

ps_status
ps_cuda_staggered_step(const ps_staggered *s, int64_t count, const ps_exec *exec,
                       ps_staggered_report *report)
{
    cudaStream_t const stream = ps_cuda_stream(exec);
    size_t bytes;
    ps_status status = ps_cuda_staggered_work(s, exec, &bytes);

    if (status != PS_OK) {
        return status;
    }
    if (exec->work_bytes < bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *report = {};
    report->end = PS_STAGGERED_COUNT;
    report->kernel = "direct";
    if (s->pressure == PS_PRESSURE_GIVEN && s->stages != 0) {
        return count > 0 ? enqueue_given(s, exec) : PS_OK;
    }
    if (s->stages != 0) {
        return Run(s, exec, report).run(count);
    }
    int64_t steps = 0;

    return settle(s, stream, &report->end, &steps);
}

} // namespace pysolvers::flow
