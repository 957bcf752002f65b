/* row_sums.c - systems whose matrices are given by off-diagonals and row sums.
 *
 * The matrices are factored in row-sum form (eliminate.inc), and the factors solve the
 * systems. An axis along which the matrices do not change has one matrix. The batch is
 * divided into blocks of systems, whose factors stay in a second-level cache of the
 * thread that makes them and solves with them: 5 words per unknown, as in a direct solve,
 * and 3 words, or 5 if the systems are periodic, that are written and read in the cache.
 * The factors of long systems do not fit in that cache.
 */
#include "row_sums.h"

#include "lines/factor/factor.h"
#include "lines/factor/factor_partition.h"
#include "lines/kernels.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/tuning.h"
#include "runtime/workspace.h"

/* The factor of some systems without the address of its store, and the parts of the
 * workspace. */
typedef struct {
    ps_factor factor;
    ps_factor_rhs rhs;
    size_t info, inner, bytes; /* where info and the workspace of the steps begin */
} plan;

/* A batch divided into blocks of `outer` times `inner` systems, `across` of them along the
 * inner axis. */
typedef struct {
    const ps_tridiag *t;
    int64_t outer, inner, across, blocks;
    int threads;
    size_t bytes; /* per thread */
} division;

/* Whether the matrices change along the outer or along the inner axis. */
static void
changes_of(const ps_tridiag *t, int *outer, int *inner)
{
    const ps_input *const matrix[] = {&t->lower, &t->diag, &t->upper};

    *outer = *inner = 0;
    for (int w = 0; w < 3; w++) {
        *outer |= matrix[w]->stride.outer != 0;
        *inner |= matrix[w]->stride.inner != 0;
    }
}

static plan
plan_of(const ps_tridiag *t, const ps_exec *exec)
{
    size_t store, make, solve;
    int outer, inner;

    changes_of(t, &outer, &inner);
    plan p = {
        .factor = {.dtype = t->dtype,
                   .flags = t->flags,
                   .rows = t->rows,
                   .outer = outer ? t->outer : 1,
                   .inner = inner ? t->inner : 1,
                   .pivot = PS_PIVOT_NEVER},
        .rhs = {.trans = PS_TRANS_NONE,
                .outer = t->outer,
                .inner = t->inner,
                .outer_step = outer,
                .inner_step = inner,
                .rhs = t->rhs,
                .x = t->x},
    };
    ps_cpu_factor_store(&p.factor, exec, &store);
    ps_cpu_factor_make_work(&p.factor, exec, &make);
    ps_cpu_factor_work(&p.factor, &p.rhs, exec, &solve);
    p.factor.store_bytes = store;
    p.info = ps_aligned(store);
    p.inner =
        p.info + ps_aligned((size_t)(p.factor.outer * p.factor.inner) * sizeof(int32_t));
    p.bytes = p.inner + (make > solve ? make : solve);
    return p;
}

/* One thread factors and solves a block. */
static ps_exec
alone(const ps_exec *exec, void *work, size_t bytes)
{
    return (ps_exec){
        .device = exec->device, .threads = 1, .work = work, .work_bytes = bytes};
}

static const void *
moved(const void *data, ps_stride s, int64_t j, int64_t k, ps_dtype dtype)
{
    return (const char *)data + (j * s.outer + k * s.inner) * ps_dtype_size(dtype);
}

/* The systems of block `index`. */
static ps_tridiag
block_of(const division *d, int64_t index)
{
    const int64_t j = index / d->across * d->outer, k = index % d->across * d->inner;
    ps_tridiag t = *d->t;
    ps_input *const inputs[] = {&t.lower, &t.diag, &t.upper, &t.rhs};

    for (int w = 0; w < 4; w++) {
        inputs[w]->data = moved(inputs[w]->data, inputs[w]->stride, j, k, t.dtype);
    }
    t.x.data = (void *)moved(t.x.data, t.x.stride, j, k, t.dtype);
    t.outer = t.outer - j < d->outer ? t.outer - j : d->outer;
    t.inner = t.inner - k < d->inner ? t.inner - k : d->inner;
    t.info = t.info == NULL ? NULL : t.info + j * d->t->inner + k;
    return t;
}

/* Divide a batch. All threads together solve a single matrix, and long systems, whose
 * chunks keep all threads busy: these are one block. */
static division
divide(const ps_tridiag *t, const ps_exec *exec)
{
    const int64_t words = t->flags & PS_PERIODIC ? 5 : 3;
    const int64_t room =
        PS_SUMS_BLOCK_BYTES / (words * t->rows * ps_dtype_size(t->dtype));
    const int64_t most = room / PS_SUMS_SYSTEMS * PS_SUMS_SYSTEMS;
    const int64_t systems = most < PS_SUMS_SYSTEMS ? PS_SUMS_SYSTEMS : most;
    const ps_factor factor = {.rows = t->rows, .pivot = PS_PIVOT_NEVER};
    division d = {.t = t, .outer = t->outer, .inner = t->inner, .across = 1, .blocks = 1};
    int outer, inner;

    changes_of(t, &outer, &inner);
    if (ps_factor_is_long(&factor) || (!outer && !inner)) {
        return d;
    }
    if (inner && d.inner > systems) {
        d.inner = systems;
        d.across = (t->inner + systems - 1) / systems;
    }
    if (outer) {
        const int64_t lines = systems / (inner ? d.inner : 1);

        d.outer = lines < t->outer ? lines : t->outer;
    }
    d.blocks = d.across * ((t->outer + d.outer - 1) / d.outer);
    if (d.blocks > 1) {
        d.threads = ps_thread_count_for(exec, t->rows * t->outer * t->inner);
    }
    for (int64_t k = 0; k < d.blocks && d.blocks > 1; k++) {
        const ps_exec one = alone(exec, NULL, 0);
        const ps_tridiag block = block_of(&d, k);
        const size_t bytes = plan_of(&block, &one).bytes;

        d.bytes = bytes > d.bytes ? ps_aligned(bytes) : d.bytes;
    }
    return d;
}

ps_status
ps_row_sums_work(const ps_tridiag *t, const ps_exec *exec, size_t *bytes)
{
    const division d = divide(t, exec);

    *bytes = d.blocks == 1 ? plan_of(t, exec).bytes : d.bytes * (size_t)d.threads;
    return PS_OK;
}

/* Factor and solve systems. The entries of info for adjacent systems along outer are
 * `info_outer` apart. */
static ps_status
solve_systems(const ps_tridiag *t, const ps_exec *exec, int64_t info_outer,
              ps_report *report)
{
    plan p = plan_of(t, exec);
    char *const work = exec->work;

    if (p.bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    int32_t *const info = (int32_t *)(void *)(work + p.info);
    ps_tridiag matrices = *t;
    ps_exec inner = *exec;

    p.factor.store = work;
    matrices.outer = p.factor.outer;
    matrices.inner = p.factor.inner;
    matrices.info = info;
    inner.work = work + p.inner;
    inner.work_bytes = exec->work_bytes - p.inner;

    ps_status status = ps_cpu_factor_make(&p.factor, &matrices, &inner, report);
    if (status == PS_OK) {
        status = ps_cpu_factor_solve(&p.factor, &p.rhs, &inner);
    }
    for (int64_t j = 0; status == PS_OK && t->info != NULL && j < t->outer; j++) {
        for (int64_t k = 0; k < t->inner; k++) {
            const int64_t of_outer = p.rhs.outer_step ? j : 0;
            const int64_t of_inner = p.rhs.inner_step ? k : 0;

            t->info[j * info_outer + k] = info[of_outer * p.factor.inner + of_inner];
        }
    }
    return status;
}

/* The blocks of a batch, and the workspace of the threads that solve them. */
typedef struct {
    const division *d;
    char *work;
} block_run;

/* One thread solves a block; it cannot fail, since its workspace is large enough. */
static void
solve_blocks(void *self, int64_t begin, int64_t end, int thread)
{
    const block_run *const r = self;
    void *const work = r->work + (size_t)thread * r->d->bytes;

    for (int64_t k = begin; k < end; k++) {
        const ps_tridiag block = block_of(r->d, k);
        const ps_exec one = alone(&(ps_exec){0}, work, r->d->bytes);
        ps_report report;

        (void)solve_systems(&block, &one, r->d->t->inner, &report);
    }
}

ps_status
ps_row_sums_solve(const ps_tridiag *t, const ps_exec *exec, ps_report *report)
{
    const division d = divide(t, exec);
    block_run r = {.d = &d, .work = exec->work};

    if (d.blocks == 1) {
        return solve_systems(t, exec, t->inner, report);
    }
    if (d.bytes * (size_t)d.threads > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *report = (ps_report){
        .method = PS_THOMAS, .threads = d.threads, .kernel = ps_isa_get()->name};
    return ps_run(exec, d.threads, d.blocks, t->rows * d.outer * d.inner, solve_blocks,
                  &r);
}
