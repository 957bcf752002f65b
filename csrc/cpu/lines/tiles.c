/* tiles.c - division of a batch into tiles, and the parallel loop over the tiles. */
#include <stdatomic.h>

#include "lines/kernels.h"
#include "lines/streams.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"
#include "runtime/tuning.h"

const ps_isa *
ps_isa_for(ps_dtype dtype, int64_t rows, int64_t systems, int64_t most)
{
    const int64_t bytes = rows * (int64_t)ps_dtype_size(dtype);
    const ps_isa *const narrow = PS_ISA_NARROW(ps_isa);
    const int few = systems <= narrow->type[dtype]->lanes;
    const int in_memory = !ps_is_real(dtype) || bytes * systems > PS_PAIR_BYTES;
    const ps_isa *const widest =
        few || (rows > most && in_memory) ? narrow : ps_isa_get();
    const ps_isa *const sets[] = {&ps_isa_baseline,
#ifdef PS_HAVE_AVX2
                                  &ps_isa_avx2,
#endif
                                  widest};
    const ps_isa *const *set = sets;

    if (bytes <= PS_LANE_BYTES) {
        return widest;
    }
    while (*set != widest && (*set)->type[dtype]->lanes < systems) {
        set++;
    }
    return *set;
}

int64_t
ps_wide_rows(const ps_tridiag *t, int exchanges)
{
    const int lines = t->rhs.stride.row == 1 && t->x.stride.row == 1;

    if (!ps_is_real(t->dtype)) {
        const int alone = t->outer * t->inner <= ps_isa_get()->type[t->dtype]->lanes;

        return !exchanges || !alone ? INT64_MAX
               : lines              ? PS_WIDE_COMPLEX_ROWS
                                    : PS_WIDE_COMPLEX_COLUMNS;
    }
    return t->dtype != PS_F32 || !lines ? INT64_MAX
           : exchanges                  ? PS_WIDE_PIVOTED_ROWS
                                        : PS_WIDE_ROWS;
}

ps_stride
ps_turned(ps_stride stride)
{
    return (ps_stride){stride.row, 0, stride.outer};
}

ps_stride
ps_exchanged(ps_stride stride)
{
    return (ps_stride){stride.row, stride.inner, stride.outer};
}

int
ps_is_one(ps_stride stride, int64_t outer, int64_t inner)
{
    return (outer < 2 || stride.outer == 0) && (inner < 2 || stride.inner == 0);
}

int
ps_has_one_matrix(const ps_tridiag *t, int64_t outer, int64_t inner)
{
    return ps_is_one(t->lower.stride, outer, inner) &&
           ps_is_one(t->diag.stride, outer, inner) &&
           ps_is_one(t->upper.stride, outer, inner);
}

/* Number of lanes that the first tile of each run lacks, so that the later tiles start at
 * aligned vectors of x. */
static int64_t
shift_of(const ps_job *job, int lanes, size_t element)
{
    const ps_stride s = job->t.x.stride;

    if (job->t.x.data == NULL || s.inner != 1 || s.row % lanes != 0 ||
        (job->t.outer > 1 && s.outer % lanes != 0)) {
        return 0;
    }
    return (int64_t)((uintptr_t)job->t.x.data / element) % lanes;
}

/* Whether each of several systems has a matrix of its own. */
static int
has_own_matrices(const ps_tridiag *t)
{
    const ps_stride s = t->diag.stride;

    return t->diag.data != NULL && t->outer * t->inner > 1 &&
           (t->outer == 1 || s.outer != 0) && (t->inner == 1 || s.inner != 0);
}

static int
is_large(const ps_tridiag *t, int own)
{
    return t->rows * t->outer * t->inner * (int64_t)ps_dtype_size(t->dtype) >
           (own ? PS_STREAM_OWN_BYTES : PS_STREAM_BYTES);
}

/* Whether the rows of x are adjacent systems. */
static int
has_adjacent_rows(const ps_tridiag *t)
{
    return t->x.data != NULL && t->x.stride.inner == 1 && t->rows > 1 &&
           t->x.stride.row != 1;
}

/* Whether no line of a cache is stored in parts by two tiles. */
static int
can_stream(const ps_tridiag *t, int lanes, int64_t shift, int joined)
{
    const ps_stride s = t->x.stride;
    const int64_t first =
        (int64_t)((uintptr_t)t->x.data / (size_t)ps_dtype_size(t->dtype)) - shift;
    const int aligned =
        first % lanes == 0 && s.row % lanes == 0 &&
        (t->outer == 1 || (s.outer % lanes == 0 && (!joined || t->inner % lanes == 0)));

    return aligned || !has_adjacent_rows(t);
}

int
ps_is_streamed(const ps_tridiag *t, int lanes, int64_t shift, int joined)
{
    return is_large(t, has_own_matrices(t)) && can_stream(t, lanes, shift, joined);
}

/* The same for a job. */
static int
is_streamed(const ps_job *job, int lanes, int own)
{
    return is_large(&job->t, own) &&
           can_stream(&job->t, lanes, job->shift, job->runs < job->t.outer);
}

void
ps_job_init(ps_job *job, const ps_tridiag *t, int lanes)
{
    const size_t element = ps_isa_get()->type[t->dtype]->element;

    *job = (ps_job){.t = *t, .group = 1};
    if (t->inner == 1 && t->outer > 1) {
        job->t.outer = 1;
        job->t.inner = t->outer;
        job->t.lower.stride = ps_turned(t->lower.stride);
        job->t.diag.stride = ps_turned(t->diag.stride);
        job->t.upper.stride = ps_turned(t->upper.stride);
        job->t.rhs.stride = ps_turned(t->rhs.stride);
        job->t.x.stride = ps_turned(t->x.stride);
    }
    if (job->t.inner >= PS_RUN_TILES * lanes) {
        job->runs = job->t.outer;
        job->run = job->t.inner;
        job->shift =
            job->run < PS_LONG_RUN_TILES * lanes ? 0 : shift_of(job, lanes, element);
    }
    else {
        job->runs = 1;
        job->run = job->t.outer * job->t.inner;
    }
    job->tiles = job->runs * ((job->run + job->shift + lanes - 1) / lanes);
    job->strided = has_adjacent_rows(&job->t);
    job->stream = is_streamed(job, lanes, has_own_matrices(&job->t));
}

int64_t
ps_job_tile(const ps_job *job, int lanes, int64_t index, int64_t *first)
{
    const int64_t a_run = job->tiles / job->runs, j = index / a_run;
    const int64_t wished = index % a_run * lanes - job->shift;
    const int64_t k = wished > 0 ? wished : 0;
    const int64_t end = wished + lanes < job->run ? wished + lanes : job->run;

    *first = j * job->run + k;
    return end > k ? end - k : 0;
}

/* Whether contiguous systems are eliminated one tile of `lanes` at a time. */
static int
goes_alone(const ps_job *job, int lanes)
{
    const ps_tridiag *const t = &job->t;
    const int contiguous = t->lower.stride.row == 1 && t->diag.stride.row == 1 &&
                           t->upper.stride.row == 1 && t->rhs.stride.row == 1;
    const int64_t bytes = t->rows * (int64_t)ps_dtype_size(t->dtype);
    const int far = bytes * t->outer * t->inner > PS_PAIR_BYTES;
    const int ring = (t->flags & PS_PERIODIC) != 0;
    const int64_t pair = ring && t->dtype == PS_F64 ? PS_PAIR_PERIODIC_ROWS
                         : far && lanes > 8         ? PS_PAIR_ROWS / 2
                                                    : PS_PAIR_ROWS;

    return contiguous && !job->strided && (t->flags & ~(uint32_t)PS_PERIODIC) == 0 &&
           (far || !ring) && t->rows > pair && ps_is_real(t->dtype) &&
           bytes <= PS_LANE_BYTES && job->pivot != PS_PIVOT_ALWAYS;
}

/* Whether groups of adjacent systems have PS_FAR_TILES tiles: periodic systems or such with row
 * exchanges, of which more than 2 words a row are kept, if they are too many for a cache. */
static int
has_far_groups(const ps_job *job)
{
    const ps_tridiag *const t = &job->t;
    const int ring = (t->flags & PS_PERIODIC) != 0;

    return job->strided && job->product == NULL && ps_is_real(t->dtype) &&
           ring != (job->pivot == PS_PIVOT_ALWAYS) && t->rows >= PS_FAR_TILES_ROWS &&
           t->rows * t->outer * t->inner * (int64_t)ps_dtype_size(t->dtype) >
               PS_PAIR_BYTES;
}

void
ps_job_group(ps_job *job, const ps_type_kernels *kernels, size_t bytes, int threads)
{
    const int64_t room = PS_GROUP_BYTES / (int64_t)(bytes + 1);
    const int64_t far_room = PS_FAR_BYTES / (int64_t)(bytes + 1);
    const int64_t a_run = job->tiles / job->runs;
    const int far =
        PS_FAR_TILES <= PS_FAR_GROUP_BYTES / (int64_t)(bytes + 1) && has_far_groups(job);
    const int64_t most = far                               ? PS_FAR_TILES
                         : job->strided                    ? PS_GROUP_TILES
                         : goes_alone(job, kernels->lanes) ? 1
                                                           : kernels->pair;
    const int64_t whole = a_run <= far_room && a_run <= most ? a_run
                          : far                              ? most
                                                             : PS_STRIDED_TILES;
    const int64_t least = job->strided ? whole : room < 1 ? 1 : most;
    const int64_t wished = room < least ? least : room < most ? room : most;
    const int64_t share = job->tiles / (4 * threads) + 1;

    job->group = wished < share ? wished : share;
}

void
ps_job_band(ps_job *job, const ps_type_kernels *kernels, int shared, int threads)
{
    const int lanes = kernels->lanes;
    const int64_t bytes = job->t.rows * lanes * (int64_t)kernels->element;
    const int64_t room =
        (job->strided ? PS_STRIDED_BAND_BYTES : PS_CONTIGUOUS_BAND_BYTES) / (bytes + 1);
    /* The words of matrices of their own are read as one stream, tile by tile. */
    const int64_t lines = shared ? PS_CONTIGUOUS_TILES : 1;
    const int64_t least = job->strided ? PS_BAND_TILES / 2 : lines;
    const int64_t wished = room < PS_BAND_TILES ? room : PS_BAND_TILES;
    const int64_t most = wished > least ? wished : least;

    /* If a row of x is one whole run and rows are adjacent in memory, the rows are stored
     * as one stream, regardless of alignment. Otherwise tiles start at aligned x. */
    if (job->t.x.stride.row == job->run && job->run % lanes == 0 &&
        job->run / lanes <= most && job->runs >= 4 * threads) {
        job->shift = 0;
        job->stream = is_large(&job->t, !shared);
    }
    else {
        if (shared && job->run == job->t.inner && job->run >= PS_RUN_TILES * lanes) {
            job->shift = shift_of(job, lanes, kernels->element);
        }
        job->stream = is_streamed(job, lanes, !shared);
    }
    const int64_t a_run = (job->run + job->shift + lanes - 1) / lanes;
    int64_t bands = (a_run + most - 1) / most;

    if (bands * job->runs < 4 * threads) { /* the same number for each thread */
        const int64_t all = (bands * job->runs + threads - 1) / threads * threads;

        bands = (all + job->runs - 1) / job->runs;
    }
    job->group = (a_run + bands - 1) / bands;
    job->tiles = job->runs * ((a_run + job->group - 1) / job->group) * job->group;
}

ps_plan
ps_plan_of(const ps_type_kernels *kernels, const ps_tridiag *t, ps_method method,
           ps_pivot pivot, int threads)
{
    ps_plan plan = {.kernels = kernels, .threads = threads};

    ps_job_init(&plan.job, t, kernels->lanes);
    plan.job.method = method;
    plan.job.pivot = pivot;
    return plan;
}

void
ps_plan_kernel(ps_plan *plan, size_t (*scratch)(const ps_job *job),
               int64_t (*solve)(const ps_job *job, int64_t index, void *scratch))
{
    if (solve != plan->kernels->reduction) {
        ps_job_group(&plan->job, plan->kernels, scratch(&plan->job), plan->threads);
    }
    plan->scratch = ps_aligned(scratch(&plan->job));
    plan->solve = solve;
}

void
ps_plan_method(ps_plan *plan)
{
    const ps_type_kernels *const kernels = plan->kernels;
    const ps_method method = plan->job.method;

    if (method == PS_AUTO || method == PS_THOMAS || method == PS_PIVOTED) {
        ps_plan_kernel(plan, kernels->direct_scratch, kernels->direct);
    }
    else {
        ps_plan_kernel(plan, kernels->reduction_scratch, kernels->reduction);
    }
}

ps_sides
ps_sides_of(const ps_tridiag *t, const ps_type_kernels *kernels, ps_tridiag *first)
{
    const int lanes = kernels->lanes;
    const int64_t least = t->x.stride.row == 1 ? PS_CONTIGUOUS_SIDES : PS_STRIDED_SIDES;
    int along_outer =
        t->outer >= least && t->inner >= lanes && ps_has_one_matrix(t, t->outer, 1);
    int along_inner =
        t->inner >= least && t->outer >= lanes && ps_has_one_matrix(t, 1, t->inner);

    if (t->flags & (PS_PERIODIC | PS_ROW_SUMS) || !ps_is_real(t->dtype) ||
        kernels->pair < 2) {
        along_outer = along_inner = 0;
    }
    *first = *t;
    if (along_inner && !along_outer) {
        ps_stride *const strides[] = {&first->lower.stride, &first->diag.stride,
                                      &first->upper.stride, &first->rhs.stride,
                                      &first->x.stride};

        first->inner = t->outer;
        for (int k = 0; k < 5; k++) {
            *strides[k] = ps_exchanged(*strides[k]);
        }
    }
    first->outer = 1;
    return along_outer   ? (ps_sides){t->outer, 0}
           : along_inner ? (ps_sides){t->inner, 1}
                         : (ps_sides){0, 0};
}

void
ps_plan_sides(ps_plan *plan, ps_sides sides)
{
    ps_job *const job = &plan->job;
    ps_tridiag all = job->t;

    job->sides = sides.count;
    job->sides_inside = sides.inside;
    all.outer = sides.count;
    job->stream = ps_is_streamed(&all, plan->kernels->lanes, job->shift, 0);
}

int64_t
ps_job_cost(const ps_job *job)
{
    return job->t.rows * job->group * (job->sides > 0 ? job->sides : 1) * 8;
}

typedef struct {
    const ps_plan *plan;
    char *work;
    atomic_llong pivoted;
} run;

static void
run_groups(void *self, int64_t begin, int64_t end, int thread)
{
    run *const r = self;
    void *const scratch = r->work + (size_t)thread * r->plan->scratch;
    int64_t pivoted = 0;

    for (int64_t k = begin; k < end; k++) {
        pivoted += r->plan->solve(&r->plan->job, k, scratch);
    }
    atomic_fetch_add(&r->pivoted, pivoted);
}

ps_status
ps_plan_run(const ps_plan *plan, const ps_exec *exec, void *work, int64_t *pivoted)
{
    const ps_job *const job = &plan->job;
    run r = {.plan = plan, .work = work};

    atomic_init(&r.pivoted, 0);
    const ps_status status =
        ps_run(exec, plan->threads, (job->tiles + job->group - 1) / job->group,
               ps_job_cost(job), run_groups, &r);
    *pivoted = atomic_load(&r.pivoted);
    return status;
}
