/* tridiag.c - choice of kernels and workspace for a batch of systems. */
#include <string.h>

#include "lines/kernels.h"
#include "lines/partition/partition.h"
#include "lines/partition/pivoted_partition.h"
#include "row_sums.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"
#include "tridiag.h"

/* The choices for a call. */
typedef struct {
    ps_method method;
    ps_pivot pivot;
    int spans;  /* long systems with row exchanges, divided into spans */
    int shared; /* all systems have one matrix; each thread factors it once */
    int threads;
    const char *isa;
    const ps_type_kernels *kernels;
    ps_job job;
    ps_factor factor;
    size_t store, scratch; /* bytes per thread: factor, and other workspace */
} plan;

static int
is_empty(const ps_tridiag *t)
{
    return t->outer == 0 || t->inner == 0;
}

static int
has_row_sums(const ps_tridiag *t)
{
    return (t->flags & PS_ROW_SUMS) != 0 && !is_empty(t);
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

static int
is_shared(const ps_tridiag *t)
{
    const ps_input *const matrix[] = {&t->lower, &t->diag, &t->upper};

    for (int w = 0; w < 3; w++) {
        if ((t->outer > 1 && matrix[w]->stride.outer != 0) ||
            (t->inner > 1 && matrix[w]->stride.inner != 0)) {
            return 0;
        }
    }
    return 1;
}

/* The narrow kernels solve a few long systems, for which full vectors would take much
 * memory. */
static const ps_isa *
isa_of(const ps_tridiag *t, size_t element)
{
    const ps_isa *const isa = ps_isa_get();
    const int few = t->outer * t->inner <= isa->type[t->dtype]->lanes / 4;

    return few && t->rows * (int64_t)element > PS_LANE_BYTES ? &ps_isa_narrow : isa;
}

static void
make_plan(plan *p, const ps_tridiag *t, const ps_options *options, const ps_exec *exec)
{
    const size_t element = ps_isa_get()->type[t->dtype]->element;
    const ps_isa *const isa = isa_of(t, element);

    memset(p, 0, sizeof *p);
    p->method = method_of(t, options, element);
    p->pivot = ps_options_pivot(options);
    p->threads = ps_thread_count_for(exec, t->rows * t->outer * t->inner);
    p->spans = p->method == PS_PIVOTED && p->pivot == PS_PIVOT_ALWAYS && ps_span_fits(t);
    p->isa = p->method == PS_PARTITION || p->spans ? ps_isa_get()->name : isa->name;
    p->kernels = isa->type[t->dtype];
    ps_job_init(&p->job, t, p->kernels->lanes);
    p->job.method = p->method;
    p->job.pivot = p->pivot;
    p->shared = !p->spans && (p->method == PS_THOMAS || p->method == PS_PIVOTED) &&
                is_shared(t) && t->outer * t->inner > p->kernels->lanes;
    if (p->shared) {
        p->factor = (ps_factor){.dtype = t->dtype,
                                .flags = t->flags & PS_PERIODIC,
                                .rows = t->rows,
                                .outer = 1,
                                .inner = 1,
                                .pivot = p->pivot};
        ps_job_band(&p->job, p->kernels, 1, p->threads);
        const size_t make = p->kernels->factor_make_scratch(&p->factor);
        const size_t solve = p->kernels->factor_scratch(&p->factor, &p->job);

        p->store = ps_aligned(p->kernels->factor_store(&p->factor) + sizeof(int32_t) * 2);
        p->scratch = ps_aligned(make > solve ? make : solve);
    }
    else if (!p->spans && (p->method == PS_THOMAS || p->method == PS_PIVOTED)) {
        ps_job_group(&p->job, p->kernels->direct_scratch(&p->job), p->threads);
        p->scratch = ps_aligned(p->kernels->direct_scratch(&p->job));
    }
    else if (!p->spans && p->method != PS_PARTITION) {
        p->scratch = ps_aligned(p->kernels->reduction_scratch(&p->job));
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
    if (has_row_sums(t)) {
        return ps_row_sums_work(t, exec, bytes);
    }
    make_plan(&p, t, options, exec);
    *bytes = p.spans                    ? ps_span_work(t, p.threads)
             : p.method == PS_PARTITION ? ps_partition_work(t, p.pivot, p.threads)
                                        : (p.store + p.scratch) * (size_t)p.threads;
    return PS_OK;
}

static int64_t
solve_direct(void *self, const ps_job *job, int64_t tile, void *work)
{
    const plan *const p = self;

    return p->kernels->direct(job, tile, work);
}

static int64_t
solve_reduction(void *self, const ps_job *job, int64_t tile, void *work)
{
    const plan *const p = self;

    return p->kernels->reduction(job, tile, work);
}

/* The factor in the workspace of a thread; the last two int32 of its store hold the info
 * of the matrix and whether rows were exchanged. */
typedef struct {
    ps_factor factor;
    int32_t *info;
    int32_t *pivoted;
} shared_factor;

static shared_factor
shared_at(const plan *p, void *work)
{
    shared_factor s = {.factor = p->factor};

    s.factor.store = work;
    s.info = (int32_t *)((char *)work + p->store) - 2;
    s.pivoted = s.info + 1;
    return s;
}

static void
prepare_shared(void *self, const ps_job *job, void *work)
{
    const plan *const p = self;
    const shared_factor s = shared_at(p, work);
    ps_job matrix = *job;

    matrix.t.rhs.data = NULL;
    matrix.t.x.data = NULL;
    matrix.t.info = s.info;
    matrix.t.outer = matrix.t.inner = 1;
    matrix.run = matrix.runs = matrix.tiles = 1;
    matrix.shift = 0;
    matrix.group = 1;
    *s.pivoted =
        (int32_t)p->kernels->factor_make(&s.factor, &matrix, 0, (char *)work + p->store);
}

static int64_t
solve_shared(void *self, const ps_job *job, int64_t index, void *work)
{
    const plan *const p = self;
    const shared_factor s = shared_at(p, work);
    const ps_factor_rhs b = {.outer = job->t.outer, .inner = job->t.inner};
    ps_job rhs = *job;

    rhs.t.lower.data = rhs.t.diag.data = rhs.t.upper.data = NULL;
    rhs.t.flags &= PS_PERIODIC;
    p->kernels->factor_solve(&s.factor, &b, &rhs, index, (char *)work + p->store);

    int64_t systems = 0;
    for (int64_t k = 0; k < job->group && index * job->group + k < job->tiles; k++) {
        int64_t first;
        const int64_t count =
            ps_job_tile(job, p->kernels->lanes, index * job->group + k, &first);

        for (int64_t v = 0; v < count && job->t.info != NULL; v++) {
            job->t.info[first + v] = *s.info;
        }
        systems += count;
    }
    return *s.pivoted ? systems : 0;
}

ps_status
ps_cpu_tridiag_solve(const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
                     ps_report *report)
{
    size_t bytes;
    ps_status status = ps_cpu_tridiag_work(t, options, exec, &bytes);
    plan p;

    if (status != PS_OK) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    if (has_row_sums(t)) {
        return ps_row_sums_solve(t, exec, report);
    }
    make_plan(&p, t, options, exec);
    *report = (ps_report){.method = p.method, .threads = p.threads, .kernel = p.isa};
    if (is_empty(t)) {
        return PS_OK;
    }
    if (p.spans) {
        report->pivoted = t->outer * t->inner;
        return ps_span_solve(t, exec, p.threads, exec->work);
    }
    if (p.method == PS_PARTITION) {
        return ps_partition_solve(t, p.pivot, exec, p.threads, &report->pivoted);
    }
    const ps_tiles tiles = {
        .job = &p.job,
        .exec = exec,
        .threads = p.threads,
        .bytes = p.store + p.scratch,
        .work = exec->work,
        .self = &p,
        .prepare = p.shared ? prepare_shared : NULL,
        .solve = p.shared                                          ? solve_shared
                 : p.method == PS_THOMAS || p.method == PS_PIVOTED ? solve_direct
                                                                   : solve_reduction,
    };
    status = ps_tiles_run(&tiles, &report->pivoted);
    return status;
}
