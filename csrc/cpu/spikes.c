/* spikes.c - workspace and kernels of a batch of ps_spikes. */
#include "spikes.h"

#include "lines/kernels.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

typedef struct {
    const ps_type_kernels *kernels;
    ps_job job;
    int threads;
    size_t scratch; /* bytes per thread */
} plan;

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

static plan
plan_of(const ps_spikes *s, const ps_options *options, const ps_exec *exec)
{
    const ps_tridiag *const t = &s->t;
    plan p = {.kernels = ps_isa_get()->type[t->dtype],
              .threads = ps_thread_count_for(exec, t->rows * t->outer * t->inner)};
    const int lanes = p.kernels->lanes;

    ps_job_init(&p.job, t, lanes);
    p.job.method = PS_THOMAS;
    p.job.pivot = ps_options_pivot(options);
    p.job.left = output_of(s, &s->left, lanes);
    p.job.right = output_of(s, &s->right, lanes);
    ps_job_group(&p.job, p.kernels->spikes_scratch(&p.job), p.threads);
    p.scratch = ps_aligned(p.kernels->spikes_scratch(&p.job));
    return p;
}

ps_status
ps_cpu_spikes_work(const ps_spikes *s, const ps_options *options, const ps_exec *exec,
                   size_t *bytes)
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
    const plan p = plan_of(s, options, exec);
    *bytes = p.scratch * (size_t)p.threads;
    return PS_OK;
}

static int64_t
solve_group(void *self, const ps_job *job, int64_t index, void *work)
{
    const plan *const p = self;

    return p->kernels->spikes(job, index, work);
}

ps_status
ps_cpu_spikes_solve(const ps_spikes *s, const ps_options *options, const ps_exec *exec,
                    ps_report *report)
{
    size_t bytes;
    const ps_status status = ps_cpu_spikes_work(s, options, exec, &bytes);

    if (status != PS_OK) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    plan p = plan_of(s, options, exec);
    *report = (ps_report){
        .method = PS_THOMAS, .threads = p.threads, .kernel = ps_isa_get()->name};
    if (s->t.outer == 0 || s->t.inner == 0) {
        return PS_OK;
    }
    const ps_tiles tiles = {
        .job = &p.job,
        .exec = exec,
        .threads = p.threads,
        .bytes = p.scratch,
        .work = exec->work,
        .self = &p,
        .solve = solve_group,
    };
    return ps_tiles_run(&tiles, &report->pivoted);
}
