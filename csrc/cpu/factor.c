/* factor.c - factors kept and solved again: stores, tiles, threads. */
#include <string.h>

#include "kernels.h"
#include "threads.h"

/* A factor and what is done with it. */
typedef struct {
    const ps_factor *f;
    const ps_factor_rhs *b;
    const ps_type_kernels *kernels;
} task;

static const ps_type_kernels *
kernels_of(const ps_factor *f)
{
    return ps_isa_get()->type[f->dtype];
}

static int
make_threads(const ps_factor *f, const ps_exec *exec)
{
    return ps_thread_count_for(exec, f->rows * f->outer * f->inner);
}

static int
solve_threads(const ps_factor *f, const ps_factor_rhs *b, const ps_exec *exec)
{
    return ps_thread_count_for(exec, f->rows * b->outer * b->inner);
}

ps_status
ps_cpu_factor_store(const ps_factor *f, const ps_exec *exec, size_t *bytes)
{
    (void)exec;
    *bytes = ps_aligned(kernels_of(f)->factor_store(f));
    return PS_OK;
}

ps_status
ps_cpu_factor_make_work(const ps_factor *f, const ps_exec *exec, size_t *bytes)
{
    *bytes =
        ps_aligned(kernels_of(f)->factor_make_scratch(f)) * (size_t)make_threads(f, exec);
    return PS_OK;
}

static int64_t
make_tile(void *self, const ps_job *job, int64_t tile, void *work)
{
    const task *const do_this = self;

    return do_this->kernels->factor_make(do_this->f, job, tile, work);
}

ps_status
ps_cpu_factor_make(const ps_factor *f, const ps_tridiag *t, const ps_exec *exec,
                   ps_report *report)
{
    const task do_this = {.f = f, .kernels = kernels_of(f)};
    const int threads = make_threads(f, exec);
    size_t bytes;
    ps_job job;

    ps_cpu_factor_make_work(f, exec, &bytes);
    if (bytes > exec->work_bytes || f->store_bytes < do_this.kernels->factor_store(f)) {
        return PS_WORK_TOO_SMALL;
    }
    *report = (ps_report){
        .method = f->pivot == PS_PIVOT_ALWAYS ? PS_PIVOTED : PS_THOMAS,
        .threads = threads,
        .kernel = ps_isa_get()->name,
    };
    if (t->rows == 0 || t->outer == 0 || t->inner == 0) {
        return PS_OK;
    }

    /* Tile k of the store holds matrices k lanes .. of the whole batch. */
    job = (ps_job){
        .t = *t, .pivot = f->pivot, .runs = 1, .run = t->outer * t->inner, .group = 1};
    job.t.rhs.data = NULL;
    job.t.x.data = NULL;
    job.tiles = do_this.kernels->factor_tiles(f);
    const ps_tiles tiles = {
        .job = &job,
        .exec = exec,
        .threads = threads,
        .bytes = bytes / (size_t)threads,
        .work = exec->work,
        .self = (void *)&do_this,
        .solve = make_tile,
    };
    return ps_tiles_run(&tiles, &report->pivoted);
}

/* Whether an axis of length 1 has a step makes no difference: say that it has. */
static ps_factor_rhs
normalised(const ps_factor *f, const ps_factor_rhs *b)
{
    ps_factor_rhs same = *b;

    same.outer_step = b->outer_step || (b->outer == 1 && f->outer == 1);
    same.inner_step = b->inner_step || (b->inner == 1 && f->inner == 1);
    return same;
}

/* The tiles of the right-hand sides: lanes side by side in the store where each
 * system has its matrix, else runs of systems that share one. */
static ps_job
job_of(const ps_factor *f, const ps_factor_rhs *b, int threads)
{
    const ps_type_kernels *const kernels = kernels_of(f);
    const int lanes = kernels->lanes;
    const ps_tridiag t = {.dtype = f->dtype,
                          .flags = f->flags & PS_PERIODIC,
                          .rows = f->rows,
                          .outer = b->outer,
                          .inner = b->inner,
                          .rhs = b->rhs,
                          .x = b->x};
    ps_job job;

    ps_job_init(&job, &t, lanes);
    if (f->outer * f->inner > 1) {
        const int whole = b->outer_step && b->inner_step;

        job.t = t;
        job.shift = 0;
        job.runs = whole ? 1 : b->outer;
        job.run = whole ? b->outer * b->inner : b->inner;
        job.tiles = job.runs * ((job.run + lanes - 1) / lanes);
    }
    ps_job_band(&job, kernels, f->outer * f->inner == 1, threads);
    return job;
}

static size_t
group_bytes(const ps_factor *f, const ps_factor_rhs *b, int threads)
{
    const ps_job job = job_of(f, b, threads);

    return ps_aligned(kernels_of(f)->factor_scratch(f, &job));
}

ps_status
ps_cpu_factor_work(const ps_factor *f, const ps_factor_rhs *b, const ps_exec *exec,
                   size_t *bytes)
{
    const int threads = solve_threads(f, b, exec);
    const ps_factor_rhs same = normalised(f, b);

    *bytes = group_bytes(f, &same, threads) * (size_t)threads;
    return PS_OK;
}

static int64_t
solve_tile(void *self, const ps_job *job, int64_t tile, void *work)
{
    const task *const do_this = self;

    do_this->kernels->factor_solve(do_this->f, do_this->b, job, tile, work);
    return 0;
}

ps_status
ps_cpu_factor_solve(const ps_factor *f, const ps_factor_rhs *b, const ps_exec *exec)
{
    ps_status status = ps_factor_check(f, b);
    const ps_factor_rhs same = normalised(f, b);
    size_t bytes;
    int64_t pivoted;

    if (status != PS_OK) {
        return status;
    }
    ps_cpu_factor_work(f, b, exec, &bytes);
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    if (f->rows == 0 || b->outer == 0 || b->inner == 0) {
        return PS_OK;
    }
    const task do_this = {.f = f, .b = &same, .kernels = kernels_of(f)};
    const int threads = solve_threads(f, b, exec);
    const ps_job job = job_of(f, &same, threads);
    const ps_tiles tiles = {
        .job = &job,
        .exec = exec,
        .threads = threads,
        .bytes = bytes / (size_t)threads,
        .work = exec->work,
        .self = (void *)&do_this,
        .solve = solve_tile,
    };

    status = ps_tiles_run(&tiles, &pivoted);
    return status;
}
