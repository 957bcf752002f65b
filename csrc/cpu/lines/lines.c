/* lines.c - the line engine for a row source and a row sink. */
#include "lines/lines.h"

#include <string.h>

#include "lines/kernels.h"
#include "runtime/isa.h"
#include "runtime/threads.h"

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

static ps_plan
plan_of(const ps_lines *lines, const ps_options *options, const ps_exec *exec)
{
    const ps_tridiag t = {.dtype = lines->dtype,
                          .rows = lines->rows,
                          .outer = 1,
                          .inner = lines->systems,
                          .info = lines->info};
    ps_plan plan = ps_plan_of(ps_isa_get()->type[lines->dtype], &t, options->method,
                              ps_options_pivot(options),
                              ps_thread_count_for(exec, lines->rows * lines->systems));

    plan.job.lines = lines;
    ps_plan_method(&plan);
    return plan;
}

ps_status
ps_lines_work(const ps_lines *lines, const ps_options *options, const ps_exec *exec,
              size_t *bytes)
{
    const ps_status status = check(lines, options);

    if (status != PS_OK) {
        return status;
    }
    const ps_plan plan = plan_of(lines, options, exec);

    *bytes = plan.scratch * (size_t)plan.threads;
    return PS_OK;
}

ps_status
ps_lines_solve(const ps_lines *lines, const ps_options *options, const ps_exec *exec,
               ps_report *report)
{
    const ps_status status = check(lines, options);

    if (status != PS_OK) {
        return status;
    }
    const ps_plan plan = plan_of(lines, options, exec);
    const ps_pivot pivot = plan.job.pivot;

    if (plan.scratch * (size_t)plan.threads > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *report = (ps_report){
        .method = options->method != PS_AUTO ? options->method
                  : pivot == PS_PIVOT_ALWAYS ? PS_PIVOTED
                                             : PS_THOMAS,
        .threads = plan.threads,
        .kernel = ps_isa_get()->name,
    };
    return ps_plan_run(&plan, exec, exec->work, &report->pivoted);
}
