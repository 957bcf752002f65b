/* cavity_lines.c - line solves of the half-sweeps of the cavity. */
#include "flow/cavity_lines.h"

#include "flow/cavity_sweep.h"
#include "lines/kernels.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/tuning.h"
#include "runtime/workspace.h"

/* A sweep in progress. A thread has `bytes` of `memory`: eliminated rows or, after stored
 * rows of `stored` bytes, the workspace of the method that solves them. */
typedef struct {
    const ps_sweep *s;
    const ps_options *options;
    const ps_cavity_kernels *kernels;
    int64_t tiles, group; /* tiles that are solved together */
    char *memory;
    size_t stored, bytes;
} run;

ps_sweep
ps_sweep_along(int axis, int64_t nodes, double viscosity)
{
    return (ps_sweep){
        .rows = nodes - 2,
        .along = axis == 0 ? 1 : nodes,
        .across = axis == 0 ? nodes : 1,
        .swirl = axis == 0 ? 1.0 : -1.0,
        .spacing = 1.0 / (double)(nodes - 1),
        .viscosity = viscosity,
    };
}

/* Whether the rows are eliminated as they are computed. */
static int
is_fused(const ps_options *options)
{
    return (options->method == PS_AUTO || options->method == PS_THOMAS) &&
           ps_options_pivot(options) == PS_PIVOT_NEVER;
}

/* The plan of `count` lines with the rows `words`; the solution replaces the right-hand
 * sides. */
static ps_plan
plan_stored(const ps_sweep *s, const ps_options *options, int64_t count, double *words)
{
    const int64_t size = s->rows * PS_CAVITY_STORED_LINES;
    const ps_stride stride = {PS_CAVITY_STORED_LINES, 0, 1};
    const ps_tridiag t = {
        .dtype = PS_F64,
        .rows = s->rows,
        .outer = 1,
        .inner = count,
        .lower = {words + PS_LOWER * size, stride},
        .diag = {words + PS_DIAG * size, stride},
        .upper = {words + PS_UPPER * size, stride},
        .rhs = {words + PS_RHS * size, stride},
        .x = {words + PS_RHS * size, stride},
    };
    ps_plan plan = ps_plan_of(ps_isa_get()->type[PS_F64], &t, options->method,
                              ps_options_pivot(options), 1);

    ps_plan_method(&plan);
    return plan;
}

static run
make_run(const ps_sweep *s, const ps_options *options, void *memory)
{
    const ps_cavity_kernels *const kernels = PS_ISA_OF(ps_cavity_f64);
    run r = {
        .s = s,
        .options = options,
        .kernels = kernels,
        .tiles = (s->rows + kernels->lanes - 1) / kernels->lanes,
        .group = s->along == 1 ? 1 : kernels->team,
        .memory = memory,
    };

    if (is_fused(options)) {
        r.bytes = ps_aligned((size_t)kernels->kept(s) * sizeof(double));
        return r;
    }
    r.group = PS_CAVITY_STORED_LINES / kernels->lanes;
    r.stored = ps_aligned((size_t)(PS_WORDS * s->rows * PS_CAVITY_STORED_LINES) *
                          sizeof(double));
    /* The size does not depend on the address. The last lines can be fewer. */
    for (int64_t left = s->rows; left > 0;
         left = left > PS_CAVITY_STORED_LINES ? left % PS_CAVITY_STORED_LINES : 0) {
        const int64_t count =
            left < PS_CAVITY_STORED_LINES ? left : PS_CAVITY_STORED_LINES;
        const size_t scratch = plan_stored(s, options, count, s->x).scratch;

        r.bytes = r.stored + scratch > r.bytes ? r.stored + scratch : r.bytes;
    }
    return r;
}

ps_status
ps_sweep_work(const ps_sweep *s, const ps_options *options, const ps_exec *exec,
              size_t *bytes)
{
    if ((unsigned)options->method >= PS_METHOD_COUNT) {
        return PS_BAD_ARGUMENT;
    }
    if (options->method == PS_PARTITION) {
        return PS_UNSUPPORTED;
    }
    *bytes = make_run(s, options, NULL).bytes * (size_t)exec->threads;
    return PS_OK;
}

static void
solve_groups(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    const int64_t last = end * r->group;
    void *const kept = r->memory + (size_t)thread * r->bytes;

    r->kernels->solve(r->s, begin * r->group, last < r->tiles ? last : r->tiles, kept);
}

/* Store the rows of PS_CAVITY_STORED_LINES lines after the other, and solve them. */
static void
solve_stored(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    char *const memory = r->memory + (size_t)thread * r->bytes;
    double *const words = (double *)memory;

    for (int64_t k = begin; k < end; k++) {
        const int64_t left = r->s->rows - k * PS_CAVITY_STORED_LINES;
        const int64_t first = k * r->group, last = first + r->group;
        const int64_t stop = last < r->tiles ? last : r->tiles;
        const ps_plan plan = plan_stored(
            r->s, r->options,
            left < PS_CAVITY_STORED_LINES ? left : PS_CAVITY_STORED_LINES, words);
        const ps_exec alone = {.threads = 1};
        int64_t pivoted;

        r->kernels->store(r->s, first, stop, PS_CAVITY_STORED_LINES, words);
        (void)ps_plan_run(&plan, &alone, memory + r->stored, &pivoted);
        r->kernels->take(r->s, first, stop, PS_CAVITY_STORED_LINES, plan.job.t.x.data);
    }
}

ps_status
ps_sweep_solve(const ps_sweep *s, const ps_options *options, const ps_exec *exec,
               ps_report *report)
{
    run r = make_run(s, options, exec->work);
    const int fused = is_fused(options);

    *report = (ps_report){
        .method = fused                        ? PS_THOMAS
                  : options->method == PS_AUTO ? PS_PIVOTED
                                               : options->method,
        .threads = exec->threads,
        .kernel = ps_isa_get()->name,
    };
    ps_parallel_for(exec->threads, (r.tiles + r.group - 1) / r.group,
                    fused ? solve_groups : solve_stored, &r);
    return PS_OK;
}
