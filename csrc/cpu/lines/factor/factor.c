/* factor.c - factors kept and solved again: stores, tiles, threads. */
#include <stdatomic.h>
#include <string.h>

#include "lines/factor/factor.h"
#include "lines/factor/factor_partition.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

/* A factor that is made or used, tile by tile. */
typedef struct {
    const ps_factor *f;
    const ps_factor_rhs *b;
    const ps_type_kernels *kernels;
    const ps_job *job; /* with a step or not */
    char *work;
    size_t bytes;         /* of the workspace of a thread */
    atomic_llong pivoted; /* number of matrices factored with row exchanges */
} task;

/* The kernels that make a factor. */
static const ps_type_kernels *
kernels_of(const ps_factor *f)
{
    const int64_t most = f->dtype == PS_F32 ? PS_WIDE_FACTOR_ROWS : INT64_MAX;

    return ps_isa_for(f->dtype, f->rows, f->outer * f->inner, most)->type[f->dtype];
}

/* The kernels that solve right-hand sides, which are normalised: those that made the
 * factor if lanes have matrices of their own, as these lie in the store by lanes. */
static const ps_type_kernels *
kernels_for(const ps_factor *f, const ps_factor_rhs *b)
{
    const int64_t matrices = f->outer * f->inner;

    return matrices > 1 && b->inner_step
               ? kernels_of(f)
               : ps_isa_for(f->dtype, f->rows, (matrices == 1 ? b->outer : 1) * b->inner,
                            INT64_MAX)
                     ->type[f->dtype];
}

static int
make_threads(const ps_factor *f, const ps_exec *exec)
{
    return ps_thread_count_for(exec, f->rows * f->outer * f->inner);
}

/* Workspace of a thread that factors without chunks; so many threads do. */
static size_t
whole_bytes(const ps_factor *f)
{
    return ps_aligned(kernels_of(f)->factor_make_scratch(f));
}

static int
whole_threads(const ps_factor *f, int threads)
{
    return f->outer * f->inner == 1 ? 1 : threads;
}

static int
solve_threads(const ps_factor *f, const ps_factor_rhs *b, const ps_exec *exec)
{
    return ps_thread_count_for(exec, f->rows * b->outer * b->inner);
}

/* What a store begins with: whether the chunks of factor_partition.c follow. */
typedef struct {
    int64_t is_partitioned;
    int64_t unused[7];
} store_head;

/* The same factor without the head of its store. */
static ps_factor
below_head(const ps_factor *f)
{
    ps_factor below = *f;

    below.store = (char *)f->store + sizeof(store_head);
    below.store_bytes = f->store_bytes - sizeof(store_head);
    return below;
}

static int
is_partitioned(const ps_factor *f)
{
    return ps_factor_is_long(f) && ((const store_head *)f->store)->is_partitioned;
}

static size_t
larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Long matrices are factored and solved one by one, for any number of them alike: the
 * chunks of one keep all threads busy. Others are one part. */
static int64_t
parts_of(const ps_factor *f)
{
    return ps_factor_is_long(f) ? f->outer * f->inner : 1;
}

static size_t
store_of_part(const ps_factor *part, const ps_exec *exec)
{
    const size_t whole = ps_aligned(kernels_of(part)->factor_store(part));
    const int is_long = ps_factor_is_long(part);

    return sizeof(store_head) +
           (is_long ? larger(whole, ps_factor_partition_store(part, exec)) : whole);
}

/* Part i, whose store is the i-th of f. */
static ps_factor
part_of(const ps_factor *f, const ps_exec *exec, int64_t i)
{
    ps_factor part = *f;

    if (!ps_factor_is_long(f)) {
        return part;
    }
    part.outer = part.inner = 1;
    part.store_bytes = store_of_part(&part, exec);
    if (f->store != NULL) {
        part.store = (char *)f->store + (size_t)i * part.store_bytes;
    }
    return part;
}

ps_status
ps_cpu_factor_store(const ps_factor *f, const ps_exec *exec, size_t *bytes)
{
    const ps_factor part = part_of(f, exec, 0);

    *bytes = (size_t)parts_of(f) * store_of_part(&part, exec);
    return PS_OK;
}

ps_status
ps_cpu_factor_make_work(const ps_factor *f, const ps_exec *exec, size_t *bytes)
{
    const ps_factor part = part_of(f, exec, 0);
    const size_t whole =
        whole_bytes(&part) * (size_t)whole_threads(&part, make_threads(&part, exec));
    const int is_long = ps_factor_is_long(f);

    *bytes = is_long ? larger(whole, ps_factor_partition_make_work(&part, exec)) : whole;
    return PS_OK;
}

static void
make_tiles(void *self, int64_t begin, int64_t end, int thread)
{
    task *const a = self;
    int64_t pivoted = 0;

    for (int64_t k = begin; k < end; k++) {
        pivoted +=
            a->kernels->factor_make(a->f, a->job, k, a->work + (size_t)thread * a->bytes);
    }
    atomic_fetch_add(&a->pivoted, pivoted);
}

/* Without chunks, all of it in lanes. */
static ps_status
make_whole(const ps_factor *f, const ps_tridiag *t, const ps_exec *exec, int threads,
           int64_t *pivoted)
{
    ps_job job;
    task a = {.f = f,
              .kernels = kernels_of(f),
              .job = &job,
              .work = exec->work,
              .bytes = whole_bytes(f)};

    /* Tile k of the store holds matrices k lanes .. of the whole batch. */
    job = (ps_job){
        .t = *t, .pivot = f->pivot, .runs = 1, .run = t->outer * t->inner, .group = 1};
    job.t.rhs.data = NULL;
    job.t.x.data = NULL;
    job.tiles = a.kernels->factor_tiles(f);
    atomic_init(&a.pivoted, 0);
    const ps_status status = ps_run(exec, whole_threads(f, threads), job.tiles,
                                    ps_job_cost(&job), make_tiles, &a);

    *pivoted = atomic_load(&a.pivoted);
    return status;
}

static ps_status
make_part(const ps_factor *f, const ps_tridiag *t, const ps_exec *exec, int threads,
          ps_report *report)
{
    const ps_factor below = below_head(f);
    int partition = 0;

    if (ps_factor_is_long(f)) {
        const ps_status status =
            ps_factor_partition_make(&below, t, exec, threads, &partition);

        if (status != PS_OK) {
            return status;
        }
    }
    ((store_head *)f->store)->is_partitioned = partition;
    if (!partition) {
        int64_t pivoted = 0;
        const ps_status status = make_whole(&below, t, exec, threads, &pivoted);

        report->pivoted += pivoted;
        return status;
    }
    report->method = PS_PARTITION;
    if (t->info != NULL) {
        t->info[0] = 0;
    }
    return PS_OK;
}

ps_status
ps_cpu_factor_make(const ps_factor *f, const ps_tridiag *t, const ps_exec *exec,
                   ps_report *report)
{
    const ps_factor first = part_of(f, exec, 0);
    const int threads = make_threads(&first, exec);
    size_t bytes, store;
    ps_status status = PS_OK;

    ps_cpu_factor_make_work(f, exec, &bytes);
    ps_cpu_factor_store(f, exec, &store);
    if (bytes > exec->work_bytes || f->store_bytes < store) {
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
    for (int64_t i = 0; i < parts_of(f) && status == PS_OK; i++) {
        const ps_factor part = part_of(f, exec, i);
        const ps_tridiag matrix = ps_factor_matrix_of(f, t, i);

        status = make_part(&part, &matrix, exec, threads, report);
    }
    return status;
}

/* Whether lanes that hold systems of several matrices are faster than lanes that hold the
 * right-hand sides of one: these fill at most half of the lanes. The entries of a row in
 * more than 8 systems a multiple of 4096 bytes apart displace one another in a first-level
 * cache before the next row is read. */
static int
takes_several_matrices(const ps_factor *f, const ps_factor_rhs *b)
{
    const int lanes = kernels_of(f)->lanes;
    const int64_t apart = b->rhs.stride.outer * (int64_t)ps_dtype_size(f->dtype);

    return b->outer_step && !b->inner_step && f->inner == 1 && b->outer > b->inner &&
           2 * b->inner <= lanes && !(lanes > 8 && apart % 4096 == 0);
}

/* The right-hand sides as the kernels take them. Whether an axis of length 1 has a step
 * makes no difference: say that it has. Lanes lie along the inner axis. */
static ps_factor_rhs
normalised(const ps_factor *f, const ps_factor_rhs *b)
{
    ps_factor_rhs same = *b;

    same.outer_step = b->outer_step || (b->outer == 1 && f->outer == 1);
    same.inner_step = b->inner_step || (b->inner == 1 && f->inner == 1);
    if (takes_several_matrices(f, &same)) {
        same.outer = b->inner;
        same.inner = b->outer;
        same.outer_step = 0;
        same.inner_step = 1;
        same.rhs.stride = ps_exchanged(same.rhs.stride);
        same.x.stride = ps_exchanged(same.x.stride);
    }
    return same;
}

/* The tiles of the right-hand sides: lanes side by side in the store where each
 * system has its matrix, else runs of systems that share one. */
static ps_job
job_of(const ps_factor *f, const ps_factor_rhs *b, int threads)
{
    const ps_type_kernels *const kernels = kernels_for(f, b);
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

/* Workspace of a thread. */
static size_t
group_bytes(const ps_factor *f, const ps_factor_rhs *b, const ps_job *job)
{
    const ps_type_kernels *const kernels = kernels_for(f, b);

    return ps_aligned(job->step != NULL ? kernels->factor_step_scratch(f, job)
                                        : kernels->factor_scratch(f, job));
}

/* The step of a factor that is not long, in the order of the axes of a job for `same`,
 * which is normalised from `b`. */
static ps_step
step_for(const ps_factor_rhs *b, const ps_factor_rhs *same, const ps_step *step,
         const ps_job *job)
{
    const int is_swapped = b->rhs.stride.outer != same->rhs.stride.outer ||
                           b->x.stride.outer != same->x.stride.outer ||
                           b->outer != same->outer;
    ps_step its = *step;

    if (is_swapped) {
        its.source.stride = ps_exchanged(its.source.stride);
        its.where.stride = ps_exchanged(its.where.stride);
    }
    if (job->t.inner != same->inner || job->t.outer != same->outer) {
        its.source.stride = ps_turned(its.source.stride);
        its.where.stride = ps_turned(its.where.stride);
    }
    return its;
}

static size_t
work_of_part(const ps_factor *f, const ps_factor_rhs *b, const ps_step *step,
             const ps_exec *exec)
{
    const int threads = solve_threads(f, b, exec);
    const ps_factor_rhs same = normalised(f, b);
    ps_job job = job_of(f, &same, threads);

    job.step = step;
    const size_t whole = group_bytes(f, &same, &job) * (size_t)threads;

    return ps_factor_is_long(f) && b->outer * b->inner > 0
               ? larger(whole, ps_factor_partition_work(f, b, exec, threads))
               : whole;
}

ps_status
ps_cpu_factor_work(const ps_factor *f, const ps_factor_rhs *b, const ps_exec *exec,
                   size_t *bytes)
{
    *bytes = 0;
    if (b->outer > 0 && b->inner > 0) {
        const ps_factor part = part_of(f, exec, 0);
        const ps_factor_rhs its = ps_factor_rhs_of(f, b, 0);

        *bytes = work_of_part(&part, &its, NULL, exec);
    }
    return PS_OK;
}

size_t
ps_factor_step_bytes(const ps_factor *f, const ps_factor_rhs *b, const ps_step *step,
                     const ps_exec *exec)
{
    return work_of_part(f, b, step, exec);
}

static void
solve_bands(void *self, int64_t begin, int64_t end, int thread)
{
    const task *const a = self;

    for (int64_t k = begin; k < end; k++) {
        (a->job->step != NULL ? a->kernels->factor_step : a->kernels->factor_solve)(
            a->f, a->b, a->job, k, a->work + (size_t)thread * a->bytes);
    }
}

static ps_status
solve_part(const ps_factor *f, const ps_factor_rhs *b, const ps_step *step,
           const ps_exec *exec)
{
    const ps_factor below = below_head(f);
    const ps_factor_rhs same = normalised(f, b);
    const int threads = solve_threads(f, b, exec);

    if (is_partitioned(f)) {
        return ps_factor_partition_solve(&below, b, exec, threads);
    }
    ps_job job = job_of(f, &same, threads);
    ps_step its;

    if (step != NULL) {
        its = step_for(b, &same, step, &job);
        job.step = &its;
    }
    task a = {.f = &below,
              .b = &same,
              .kernels = kernels_for(f, &same),
              .job = &job,
              .work = exec->work,
              .bytes = group_bytes(f, &same, &job)};

    if (a.bytes * (size_t)threads > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    return ps_run(exec, threads, (job.tiles + job.group - 1) / job.group,
                  ps_job_cost(&job), solve_bands, &a);
}

ps_status
ps_cpu_factor_solve(const ps_factor *f, const ps_factor_rhs *b, const ps_exec *exec)
{
    ps_status status = ps_factor_check(f, b);

    if (status != PS_OK) {
        return status;
    }
    if (f->rows == 0 || b->outer == 0 || b->inner == 0) {
        return PS_OK;
    }
    if (ps_factor_is_long(f)) {
        size_t bytes;

        ps_cpu_factor_work(f, b, exec, &bytes);
        if (bytes > exec->work_bytes) {
            return PS_WORK_TOO_SMALL;
        }
    }
    for (int64_t i = 0; i < parts_of(f) && status == PS_OK; i++) {
        const ps_factor part = part_of(f, exec, i);
        const ps_factor_rhs its = ps_factor_rhs_of(f, b, i);

        status = solve_part(&part, &its, NULL, exec);
    }
    return status;
}

ps_status
ps_factor_step_short(const ps_factor *f, const ps_factor_rhs *b, const ps_step *step,
                     const ps_exec *exec)
{
    return solve_part(f, b, step, exec);
}
