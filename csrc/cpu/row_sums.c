/* row_sums.c - systems whose matrices are given by off-diagonals and row sums.
 *
 * The matrices are factored in row-sum form (eliminate.inc), and the factors solve the
 * systems. An axis along which the matrices do not change has one matrix. The workspace
 * holds the factors, the info of the matrices, and the workspace of the larger of the two
 * steps. 3 words per unknown are written and read in addition to the 5 of a direct solve,
 * 5 if the systems are periodic.
 */
#include "row_sums.h"

#include "lines/factor/factor.h"
#include "runtime/workspace.h"

/* A call: the factor without the address of its store, and the parts of the workspace. */
typedef struct {
    ps_factor factor;
    ps_factor_rhs rhs;
    size_t info, inner, bytes; /* where info and the workspace of the steps begin */
} plan;

static plan
plan_of(const ps_tridiag *t, const ps_exec *exec)
{
    const ps_input *const matrix[] = {&t->lower, &t->diag, &t->upper};
    size_t store, make, solve;
    int outer = 0, inner = 0;

    for (int w = 0; w < 3; w++) {
        outer |= matrix[w]->stride.outer != 0;
        inner |= matrix[w]->stride.inner != 0;
    }
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

ps_status
ps_row_sums_work(const ps_tridiag *t, const ps_exec *exec, size_t *bytes)
{
    *bytes = plan_of(t, exec).bytes;
    return PS_OK;
}

ps_status
ps_row_sums_solve(const ps_tridiag *t, const ps_exec *exec, ps_report *report)
{
    plan p = plan_of(t, exec);
    char *const work = exec->work;
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
    for (int64_t k = 0; status == PS_OK && t->info != NULL && k < t->outer * t->inner;
         k++) {
        const int64_t of_outer = p.rhs.outer_step ? k / t->inner : 0;
        const int64_t of_inner = p.rhs.inner_step ? k % t->inner : 0;

        t->info[k] = info[of_outer * p.factor.inner + of_inner];
    }
    return status;
}
