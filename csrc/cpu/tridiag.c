/* tridiag.c - choice of kernels and workspace for a batch of systems. */
#include <stdatomic.h>
#include <string.h>

#include "lines/kernels.h"
#include "lines/partition/layout.h"
#include "lines/partition/partition.h"
#include "lines/partition/pieces.h"
#include "lines/partition/pivoted_partition.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"
#include "tridiag.h"

/* The choices for a call. */
typedef struct {
    ps_plan lines; /* the whole plan unless spans, shared or the partition method */
    int spans;     /* long systems with row exchanges, divided into spans */
    int tested;    /* shorter ones: ps_pieces_fit() tells whether in order, in spans, or
                      one after the other */
    int few;       /* tested ones that are solved one after the other in any case */
    int together; /* tested ones are adjacent in memory: those in spans are solved at once,
                      which takes 0.2 to 0.7 of the time; others 1.25 to 1.5 */
    int shared;   /* all systems have one matrix; each thread factors it once */
    const char *isa;
    ps_factor factor;
    size_t store; /* bytes of the factor of a thread, before the other workspace */
    size_t bytes; /* workspace of the call */
} plan;

static int
is_empty(const ps_tridiag *t)
{
    return t->outer == 0 || t->inner == 0;
}

static ps_method
method_of(const ps_tridiag *t, const ps_options *options, size_t element)
{
    if (options->method != PS_AUTO) {
        return options->method;
    }
    if (options->pivot == PS_PIVOT_ALWAYS) {
        return PS_PIVOTED;
    }
    return t->rows * (int64_t)element <= PS_LANE_BYTES ? PS_THOMAS : PS_PARTITION;
}

/* Whether the systems are long ones that fill at most a quarter of the lanes: pieces of one
 * of them fill all. */
static int
is_few(const ps_tridiag *t, size_t element)
{
    return t->outer * t->inner <= ps_isa_get()->type[t->dtype]->lanes / 4 &&
           t->rows * (int64_t)element > PS_LANE_BYTES;
}

/* The plan for one matrix that each thread factors. */
static void
plan_shared(plan *p)
{
    ps_job *const job = &p->lines.job;
    const ps_type_kernels *const kernels = p->lines.kernels;

    p->factor = (ps_factor){.dtype = job->t.dtype,
                            .flags = job->t.flags & (PS_PERIODIC | PS_ROW_SUMS),
                            .rows = job->t.rows,
                            .outer = 1,
                            .inner = 1,
                            .pivot = job->pivot};
    ps_job_band(job, kernels, 1, p->lines.threads);
    const size_t make = kernels->factor_make_scratch(&p->factor);
    const size_t solve = kernels->factor_scratch(&p->factor, job);

    p->store = ps_aligned(kernels->factor_store(&p->factor) + sizeof(int32_t) * 3);
    p->lines.scratch = p->store + ps_aligned(make > solve ? make : solve);
}

/* Make the plan one for several right-hand sides of each matrix, if there are. */
static void
plan_sides(plan *p, const ps_tridiag *t, ps_pivot pivot)
{
    const ps_type_kernels *const kernels = p->lines.kernels;
    ps_tridiag first;
    const ps_sides sides = ps_sides_of(t, kernels, &first);

    if (sides.count > 0 && pivot != PS_PIVOT_ALWAYS) {
        p->lines = ps_plan_of(kernels, &first, PS_THOMAS, pivot, p->lines.threads);
        ps_plan_sides(&p->lines, sides);
    }
}

static void
make_plan(plan *p, const ps_tridiag *t, const ps_options *options, const ps_exec *exec)
{
    const size_t element = ps_isa_get()->type[t->dtype]->element;
    const ps_method method = method_of(t, options, element);
    const ps_pivot pivot = ps_options_pivot(options);
    const int threads = ps_thread_count_for(exec, t->rows * t->outer * t->inner);
    const int direct = method == PS_THOMAS || method == PS_PIVOTED;
    const int single = !direct && t->outer * t->inner == 1; /* its rows fill the lanes */
    const ps_isa *const isa = single
                                  ? ps_isa_get()
                                  : ps_isa_for(t->dtype, t->rows, t->outer * t->inner,
                                               ps_wide_rows(t, pivot == PS_PIVOT_ALWAYS));

    memset(p, 0, sizeof *p);
    p->lines = ps_plan_of(isa->type[t->dtype], t, method, pivot, threads);
    p->spans = method == PS_PIVOTED && pivot == PS_PIVOT_ALWAYS && ps_span_fits(t);
    p->few = t->outer * t->inner == 1 || is_few(t, element);
    p->tested = method == PS_PIVOTED && pivot == PS_PIVOT_ALWAYS && !p->spans &&
                t->rows >= (p->few ? PS_PIECES_ROWS : PS_SPANS_ROWS) &&
                !(t->flags & PS_PERIODIC);
    p->few = p->few && p->tested;
    p->isa =
        method == PS_PARTITION || p->spans || p->tested ? ps_isa_get()->name : isa->name;
    p->shared = !p->spans && direct && ps_has_one_matrix(t, t->outer, t->inner) &&
                t->outer * t->inner > p->lines.kernels->lanes;
    if (p->spans) {
        p->bytes = ps_span_work(t, threads);
        return;
    }
    if (p->few) {
        p->bytes = ps_pieces_work(t, threads);
        return;
    }
    if (method == PS_PARTITION) {
        p->bytes = ps_partition_work(t, pivot, threads);
        return;
    }
    if (p->shared) {
        plan_shared(p);
    }
    else {
        if (method == PS_THOMAS) {
            plan_sides(p, t, pivot);
        }
        ps_plan_method(&p->lines);
    }
    p->bytes = p->lines.scratch * (size_t)threads;
    if (p->tested) {
        const ps_tridiag line = ps_partition_in_line(t);
        const size_t one = ps_pieces_work(t, threads);

        p->bytes = one > p->bytes ? one : p->bytes;
        p->together = ps_partition_side(&line) > 1;
        if (p->together) {
            const size_t all = ps_span_work(t, threads);

            p->bytes = all > p->bytes ? all : p->bytes;
        }
    }
}

ps_status
ps_cpu_tridiag_work(const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
                    size_t *bytes)
{
    const ps_status status = ps_tridiag_check(t, options);
    plan p;

    if (status != PS_OK) {
        return status;
    }
    make_plan(&p, t, options, exec);
    *bytes = p.bytes;
    return PS_OK;
}

/* Solution with one matrix that each thread factors. */
typedef struct {
    const plan *p;
    char *work;
    atomic_llong pivoted;
} shared_run;

/* The factor in the workspace of a thread; the last three int32 of its store hold whether
 * it has been made, the info of the matrix and whether rows were exchanged. */
typedef struct {
    ps_factor factor;
    int32_t *made, *info, *pivoted;
    void *scratch;
} shared_factor;

static shared_factor
shared_at(const plan *p, void *work)
{
    shared_factor s = {.factor = p->factor};
    int32_t *const end = (int32_t *)((char *)work + p->store);

    s.factor.store = work;
    s.made = end - 3;
    s.info = end - 2;
    s.pivoted = end - 1;
    s.scratch = end;
    return s;
}

static void
make_shared(const plan *p, const shared_factor *s)
{
    ps_job matrix = p->lines.job;

    matrix.t.rhs.data = NULL;
    matrix.t.x.data = NULL;
    matrix.t.info = s->info;
    matrix.t.outer = matrix.t.inner = 1;
    matrix.run = matrix.runs = matrix.tiles = 1;
    matrix.shift = 0;
    matrix.group = 1;
    *s->pivoted =
        (int32_t)p->lines.kernels->factor_make(&s->factor, &matrix, 0, s->scratch);
    *s->made = 1;
}

/* Number of systems of group `index`, and their info. */
static int64_t
note_group(const plan *p, int64_t index, int32_t info)
{
    const ps_job *const job = &p->lines.job;
    int64_t systems = 0;

    for (int64_t k = 0; k < job->group && index * job->group + k < job->tiles; k++) {
        int64_t first;
        const int64_t count =
            ps_job_tile(job, p->lines.kernels->lanes, index * job->group + k, &first);

        for (int64_t v = 0; v < count && job->t.info != NULL; v++) {
            job->t.info[first + v] = info;
        }
        systems += count;
    }
    return systems;
}

static void
solve_shared(void *self, int64_t begin, int64_t end, int thread)
{
    shared_run *const r = self;
    const plan *const p = r->p;
    const shared_factor s = shared_at(p, r->work + (size_t)thread * p->lines.scratch);
    const ps_factor_rhs b = {.outer = p->lines.job.t.outer,
                             .inner = p->lines.job.t.inner};
    ps_job rhs = p->lines.job;
    int64_t pivoted = 0;

    rhs.t.lower.data = rhs.t.diag.data = rhs.t.upper.data = NULL;
    rhs.t.flags &= PS_PERIODIC;
    if (!*s.made) {
        make_shared(p, &s);
    }
    for (int64_t k = begin; k < end; k++) {
        p->lines.kernels->factor_solve(&s.factor, &b, &rhs, k, s.scratch);
        pivoted += note_group(p, k, *s.info);
    }
    if (*s.pivoted) {
        atomic_fetch_add(&r->pivoted, pivoted);
    }
}

static ps_status
run_shared(const plan *p, const ps_exec *exec, int64_t *pivoted)
{
    const ps_job *const job = &p->lines.job;
    shared_run r = {.p = p, .work = exec->work};

    atomic_init(&r.pivoted, 0);
    for (int thread = 0; thread < p->lines.threads; thread++) {
        *shared_at(p, r.work + (size_t)thread * p->lines.scratch).made = 0;
    }
    const ps_status status =
        ps_run(exec, p->lines.threads, (job->tiles + job->group - 1) / job->group,
               ps_job_cost(job), solve_shared, &r);
    *pivoted = atomic_load(&r.pivoted);
    return status;
}

/* Solve long systems with row exchanges, one after the other. */
static ps_status
solve_each(const ps_tridiag *t, const ps_exec *exec, int threads)
{
    ps_status status = PS_OK;

    for (int64_t k = 0; k < t->outer * t->inner && status == PS_OK; k++) {
        const ps_tridiag one = ps_partition_system(t, k / t->inner, k % t->inner,
                                                   t->info == NULL ? NULL : t->info + k);

        status = ps_pieces_solve(&one, exec, threads, exec->work);
    }
    return status;
}

ps_status
ps_cpu_tridiag_solve(const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
                     ps_report *report)
{
    ps_status status = ps_tridiag_check(t, options);
    int fit = 1;
    plan p;

    if (status != PS_OK) {
        return status;
    }
    make_plan(&p, t, options, exec);
    if (p.bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *report = (ps_report){
        .method = p.lines.job.method, .threads = p.lines.threads, .kernel = p.isa};
    if (is_empty(t)) {
        return PS_OK;
    }
    if (p.spans) {
        report->pivoted = t->outer * t->inner;
        return ps_span_solve(t, exec, p.lines.threads, exec->work);
    }
    if (p.tested && !p.few) {
        status = ps_pieces_fit(t, exec, p.lines.threads, &fit);
        if (status != PS_OK) {
            return status;
        }
    }
    if (fit < 0 && p.together) {
        report->pivoted = t->outer * t->inner;
        return ps_span_solve(t, exec, p.lines.threads, exec->work);
    }
    if (p.few || fit <= 0) {
        report->pivoted = t->outer * t->inner;
        return solve_each(t, exec, p.lines.threads);
    }
    if (p.lines.job.method == PS_PARTITION) {
        return ps_partition_solve(t, p.lines.job.pivot, exec, p.lines.threads,
                                  &report->pivoted);
    }
    return p.shared ? run_shared(&p, exec, &report->pivoted)
                    : ps_plan_run(&p.lines, exec, exec->work, &report->pivoted);
}
