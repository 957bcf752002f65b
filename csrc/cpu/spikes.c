/* spikes.c - workspace and kernels of a batch of ps_spikes. */
#include "spikes.h"

#include "lines/kernels.h"
#include "runtime/isa.h"
#include "runtime/threads.h"

/* The output as a job for x has it. */
static ps_output
output_of(const ps_spikes *s, const ps_output *output, int lanes)
{
    ps_tridiag t = s->t;
    ps_job job;

    t.x = *output;
    ps_job_init(&job, &t, lanes);
    return job.t.x;
}

static ps_plan
plan_of(const ps_spikes *s, const ps_options *options, const ps_exec *exec)
{
    const ps_tridiag *const t = &s->t;
    const ps_type_kernels *const kernels = ps_isa_get()->type[t->dtype];
    ps_plan plan = ps_plan_of(kernels, t, PS_THOMAS, ps_options_pivot(options),
                              ps_thread_count_for(exec, t->rows * t->outer * t->inner));

    plan.job.left = output_of(s, &s->left, kernels->lanes);
    plan.job.right = output_of(s, &s->right, kernels->lanes);
    ps_plan_kernel(&plan, kernels->spikes_scratch, kernels->spikes);
    return plan;
}

/* Check a call, and set *plan and the bytes of its workspace. */
static ps_status
make_plan(const ps_spikes *s, const ps_options *options, const ps_exec *exec,
          ps_plan *plan, size_t *bytes)
{
    const ps_status status = ps_spikes_check(s, options);

    if (status != PS_OK) {
        return status;
    }
    const ps_tridiag *const t = &s->t;
    const int64_t element = (int64_t)ps_isa_get()->type[t->dtype]->element;

    if (options->method == PS_AUTO && t->rows * element > PS_LANE_BYTES) {
        return PS_UNSUPPORTED;
    }
    *plan = plan_of(s, options, exec);
    *bytes = plan->scratch * (size_t)plan->threads;
    return PS_OK;
}

ps_status
ps_cpu_spikes_work(const ps_spikes *s, const ps_options *options, const ps_exec *exec,
                   size_t *bytes)
{
    ps_plan plan;

    return make_plan(s, options, exec, &plan, bytes);
}

ps_status
ps_cpu_spikes_solve(const ps_spikes *s, const ps_options *options, const ps_exec *exec,
                    ps_report *report)
{
    size_t bytes;
    ps_plan plan;
    const ps_status status = make_plan(s, options, exec, &plan, &bytes);

    if (status != PS_OK) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *report = (ps_report){
        .method = PS_THOMAS, .threads = plan.threads, .kernel = ps_isa_get()->name};
    if (s->t.outer == 0 || s->t.inner == 0) {
        return PS_OK;
    }
    return ps_plan_run(&plan, exec, exec->work, &report->pivoted);
}
