/* lines.c - the line engine for a row source and a row sink. */
#include "lines/lines.h"

#include <string.h>

#include "lines/kernels.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

static int
is_direct(ps_method method)
{
    return method == PS_AUTO || method == PS_THOMAS || method == PS_PIVOTED;
}

static ps_status
check(const ps_lines *lines, const ps_options *options)
{
    if (lines == NULL || options == NULL || lines->rows < 1 || lines->systems < 0 ||
        lines->rows >= INT32_MAX || lines->source.rows == NULL ||
        lines->sink.put == NULL || (unsigned)options->method >= PS_METHOD_COUNT) {
        return PS_BAD_ARGUMENT;
    }
    return options->method == PS_PARTITION ||
                   (lines->dtype != PS_F32 && lines->dtype != PS_F64)
               ? PS_UNSUPPORTED
               : PS_OK;
}

static ps_job
job_of(const ps_lines *lines, const ps_options *options, int threads)
{
    const ps_type_kernels *const kernels = ps_isa_get()->type[lines->dtype];
    const ps_tridiag t = {.dtype = lines->dtype,
                          .rows = lines->rows,
                          .outer = 1,
                          .inner = lines->systems,
                          .info = lines->info};
    ps_job job;

    ps_job_init(&job, &t, kernels->lanes);
    job.lines = lines;
    job.method = options->method;
    job.pivot = ps_options_pivot(options);
    if (is_direct(job.method)) {
        ps_job_group(&job, kernels->direct_scratch(&job), threads);
    }
    return job;
}

static size_t
scratch_of(const ps_job *job)
{
    const ps_type_kernels *const kernels = ps_isa_get()->type[job->t.dtype];

    return ps_aligned(is_direct(job->method) ? kernels->direct_scratch(job)
                                             : kernels->reduction_scratch(job));
}

ps_status
ps_lines_work(const ps_lines *lines, const ps_options *options, const ps_exec *exec,
              size_t *bytes)
{
    const ps_status status = check(lines, options);

    if (status != PS_OK) {
        return status;
    }
    const int threads = ps_thread_count_for(exec, lines->rows * lines->systems);
    const ps_job job = job_of(lines, options, threads);

    *bytes = scratch_of(&job) * (size_t)threads;
    return PS_OK;
}

static int64_t
solve_tile(void *self, const ps_job *job, int64_t tile, void *work)
{
    const ps_type_kernels *const kernels = self;

    return is_direct(job->method) ? kernels->direct(job, tile, work)
                                  : kernels->reduction(job, tile, work);
}

ps_status
ps_lines_solve(const ps_lines *lines, const ps_options *options, const ps_exec *exec,
               ps_report *report)
{
    size_t bytes;
    const ps_status status = ps_lines_work(lines, options, exec, &bytes);

    if (status != PS_OK) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    const int threads = ps_thread_count_for(exec, lines->rows * lines->systems);
    const ps_job job = job_of(lines, options, threads);
    const ps_isa *const isa = ps_isa_get();
    const ps_tiles tiles = {
        .job = &job,
        .exec = exec,
        .threads = threads,
        .bytes = bytes / (size_t)threads,
        .work = exec->work,
        .self = (void *)isa->type[lines->dtype],
        .solve = solve_tile,
    };

    *report = (ps_report){
        .method = options->method != PS_AUTO     ? options->method
                  : job.pivot == PS_PIVOT_ALWAYS ? PS_PIVOTED
                                                 : PS_THOMAS,
        .threads = threads,
        .kernel = isa->name,
    };
    return ps_tiles_run(&tiles, &report->pivoted);
}
