/* step.c - products and implicit steps: which kernels and which workspace.
 *
 * A step whose rows fit in lanes is one pass (lines/step_groups.inc). One matrix that all
 * systems share is made and factored once, and the batch makes the step with the factor.
 * The rows of long systems are written to the workspace, with the 5 words of a solve,
 * and solved there as ps_cpu_tridiag_solve() does. */
#include "step.h"

#include "lines/factor/factor.h"
#include "lines/factor/factor_partition.h"
#include "lines/kernels.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"
#include "tridiag.h"

enum { MATRIX_OPERANDS = 3 };

typedef enum { IN_LANES, BY_FACTOR, IN_MEMORY } route;

static const ps_type_kernels *
kernels_of(const ps_tridiag *t)
{
    return ps_isa_for(t->dtype, t->rows, t->outer * t->inner, ps_wide_rows(t, 0))
        ->type[t->dtype];
}

/* The kernels that read and write rows without a recurrence: lanes hold adjacent rows of real
 * numbers, or systems. Contiguous rows are bound by memory, and what vectors of AVX-512 leave
 * over takes longer: 75 rows of float32 1.35, 500 rows of complex64 1.28 of the time of AVX2. */
static const ps_type_kernels *
row_kernels_of(const ps_tridiag *t)
{
    const int is_real = ps_is_real(t->dtype);
    const ps_type_kernels *const kernels = kernels_of(t);
    const ps_type_kernels *const widest = ps_isa_get()->type[t->dtype];

    return t->rhs.stride.row == 1 && (is_real || kernels == widest)
               ? PS_ISA_NARROW(ps_isa)->type[t->dtype]
               : kernels;
}

static int
is_turned(int64_t outer, int64_t inner)
{
    return inner == 1 && outer > 1;
}

ps_status
ps_cpu_product(const ps_product *p, const ps_exec *exec)
{
    const ps_status status = ps_product_check(p);

    if (status != PS_OK || p->outer == 0 || p->inner == 0) {
        return status;
    }
    const ps_tridiag t = {.dtype = p->dtype,
                          .flags = p->flags,
                          .rows = p->rows,
                          .outer = p->outer,
                          .inner = p->inner,
                          .lower = p->lower,
                          .diag = p->diag,
                          .upper = p->upper,
                          .rhs = p->x,
                          .x = p->out};
    const ps_type_kernels *const kernels = row_kernels_of(&t);
    ps_product its = *p;
    ps_plan plan = ps_plan_of(kernels, &t, PS_THOMAS, PS_PIVOT_NEVER,
                              ps_thread_count_for(exec, t.rows * t.outer * t.inner));
    int64_t pivoted;

    if (is_turned(p->outer, p->inner)) {
        its.b.stride = ps_turned(p->b.stride);
    }
    plan.job.product = &its;
    if (p->b.data == p->out.data) { /* b has brought the lines of out to the caches */
        plan.job.stream = 0;
    }
    ps_plan_kernel(&plan, kernels->product_scratch, kernels->product);
    return ps_plan_run(&plan, exec, exec->work, &pivoted);
}

/* The step with the axes of a job for its batch. */
static ps_step
turned_step(const ps_step *s)
{
    ps_step its = *s;

    if (is_turned(s->t.outer, s->t.inner)) {
        its.source.stride = ps_turned(s->source.stride);
        its.least.stride = ps_turned(s->least.stride);
        its.where.stride = ps_turned(s->where.stride);
        for (int end = 0; end < 2; end++) {
            its.flux[end].stride = ps_turned(s->flux[end].stride);
            its.value[end].stride = ps_turned(s->value[end].stride);
        }
    }
    return its;
}

/* Whether all systems have one matrix and one mask. */
static int
has_one_matrix(const ps_step *s)
{
    const int64_t outer = s->t.outer, inner = s->t.inner;

    return ps_has_one_matrix(&s->t, outer, inner) &&
           (s->where.data == NULL || ps_is_one(s->where.stride, outer, inner));
}

static route
route_of(const ps_step *s, ps_pivot pivot)
{
    const ps_type_kernels *const kernels = kernels_of(&s->t);
    const int is_long = s->t.rows * (int64_t)kernels->element > PS_LANE_BYTES;

    if (s->least.data != NULL) {
        return IN_LANES;
    }
    if (s->kind != PS_STEP_FLUX && has_one_matrix(s) &&
        s->t.outer * s->t.inner > kernels->lanes && !is_long) {
        return BY_FACTOR;
    }
    return is_long && pivot != PS_PIVOT_COUNT ? IN_MEMORY : IN_LANES;
}

/* The pivoting and the flags of the rows that are made. */
static ps_pivot
pivot_of(const ps_step *s, ps_pivot pivot)
{
    return s->kind == PS_STEP_FLUX || s->least.data != NULL ? PS_PIVOT_NEVER : pivot;
}

static uint32_t
flags_of(const ps_step *s)
{
    return s->t.flags | (s->kind == PS_STEP_FLUX ? PS_ROW_SUMS : 0);
}

static ps_plan
plan_of(const ps_type_kernels *kernels, const ps_step *s, ps_pivot pivot,
        const ps_exec *exec, const ps_tridiag *t)
{
    ps_plan plan = ps_plan_of(kernels, t, PS_THOMAS, pivot_of(s, pivot),
                              ps_thread_count_for(exec, t->rows * t->outer * t->inner));

    plan.job.step = s;
    return plan;
}

/* Write rows or unknowns of a step to the operands of `t`. made: the diagonals, or y; or
 * null. */
static ps_status
write_all(const ps_step *s, const ps_tridiag *t, const ps_output *made, int unknowns,
          const ps_exec *exec)
{
    const ps_type_kernels *const kernels = row_kernels_of(t);
    ps_step of = *s;

    of.t = *t;
    const ps_step its = turned_step(&of);
    ps_plan plan = plan_of(kernels, &its, PS_PIVOT_NEVER, exec, t);
    int64_t pivoted;

    for (int w = 0; w < MATRIX_OPERANDS && made != NULL; w++) {
        plan.job.made[w] = made[w];
        if (is_turned(t->outer, t->inner)) {
            plan.job.made[w].stride = ps_turned(made[w].stride);
        }
    }
    plan.job.stream = 0;
    ps_plan_kernel(&plan, kernels->write_scratch,
                   unknowns ? kernels->write_unknowns : kernels->write_rows);
    return ps_plan_run(&plan, exec, exec->work, &pivoted);
}

/* Parts of the workspace: operands of some systems in memory, rows adjacent or systems
 * adjacent as they are in x. */
static ps_stride
stride_like(ps_stride x, const ps_tridiag *t)
{
    const int lines = x.row == 1 || x.inner != 1;

    return lines ? (ps_stride){1, t->inner * t->rows, t->rows}
                 : (ps_stride){t->inner, t->rows * t->inner, 1};
}

static size_t
operand_bytes(const ps_tridiag *t, int64_t systems)
{
    return ps_aligned((size_t)(t->rows * systems) * (size_t)ps_dtype_size(t->dtype));
}

/* The exec with the workspace from `used` bytes on. */
static ps_exec
after(const ps_exec *exec, size_t used)
{
    ps_exec rest = *exec;

    rest.work = exec->work == NULL ? NULL : (char *)exec->work + used;
    rest.work_bytes = exec->work_bytes > used ? exec->work_bytes - used : 0;
    return rest;
}

/* The operands of BY_FACTOR: the matrix in the workspace, its factor. */
typedef struct {
    ps_tridiag matrix;
    ps_output made[MATRIX_OPERANDS];
    ps_factor f;
    ps_factor_rhs b;
    ps_step step; /* of the right-hand sides */
    size_t used;  /* bytes before the workspace of the calls */
    size_t bytes;
} factor_plan;

static factor_plan
plan_factor(const ps_step *s, ps_pivot pivot, const ps_exec *exec)
{
    const ps_tridiag *const t = &s->t;
    const size_t operand = operand_bytes(t, 1);
    factor_plan p = {.matrix = *t, .step = *s};
    ps_input *const inputs[] = {&p.matrix.lower, &p.matrix.diag, &p.matrix.upper};
    size_t store, make;

    p.matrix.outer = p.matrix.inner = 1;
    p.matrix.flags &= PS_PERIODIC | PS_ROW_SUMS;
    for (int w = 0; w < MATRIX_OPERANDS; w++) {
        p.made[w] = (ps_output){
            exec->work == NULL ? NULL : (char *)exec->work + (size_t)w * operand,
            {.row = 1}};
        *inputs[w] = (ps_input){p.made[w].data, p.made[w].stride};
    }
    p.f = (ps_factor){.dtype = t->dtype,
                      .flags = p.matrix.flags,
                      .rows = t->rows,
                      .outer = 1,
                      .inner = 1,
                      .pivot = pivot};
    ps_cpu_factor_store(&p.f, exec, &store);
    ps_cpu_factor_make_work(&p.f, exec, &make);
    p.f.store =
        exec->work == NULL ? NULL : (char *)exec->work + MATRIX_OPERANDS * operand;
    p.f.store_bytes = store;
    p.b = (ps_factor_rhs){.outer = t->outer, .inner = t->inner, .rhs = t->rhs, .x = t->x};
    p.used = MATRIX_OPERANDS * operand + ps_aligned(store);
    const size_t solve = ps_factor_step_bytes(&p.f, &p.b, &p.step, exec);

    p.bytes = p.used + (make > solve ? make : solve);
    return p;
}

static ps_status
run_factor(const ps_step *s, ps_pivot pivot, const ps_exec *exec, ps_report *report)
{
    const factor_plan p = plan_factor(s, pivot, exec);
    const ps_exec rest = after(exec, p.used);
    const int64_t systems = s->t.outer * s->t.inner;
    int32_t bad = 0;
    ps_tridiag source = s->t, matrix = p.matrix;

    source.outer = source.inner = 1;
    source.rhs.data = NULL;
    source.x = p.made[0]; /* not written */
    matrix.info = &bad;
    ps_step rows = *s;

    rows.source.data = NULL;
    ps_status status = write_all(&rows, &source, p.made, 0, exec);

    if (status == PS_OK) {
        status = ps_cpu_factor_make(&p.f, &matrix, &rest, report);
    }
    if (status == PS_OK) {
        status = ps_factor_step_short(&p.f, &p.b, &p.step, &rest);
    }
    report->pivoted *= systems;
    report->threads = ps_thread_count_for(exec, s->t.rows * systems);
    for (int64_t k = 0; k < systems && s->t.info != NULL; k++) {
        s->t.info[k] = bad;
    }
    return status;
}

/* The systems of IN_MEMORY: their rows in the workspace. */
typedef struct {
    ps_tridiag t; /* in the workspace, and solved there */
    ps_options options;
    ps_output made[MATRIX_OPERANDS];
    size_t used, bytes;
} memory_plan;

static memory_plan
plan_memory(const ps_step *s, ps_pivot pivot, const ps_exec *exec)
{
    const size_t operand = operand_bytes(&s->t, s->t.outer * s->t.inner);
    const ps_stride stride = stride_like(s->t.x.stride, &s->t);
    memory_plan p = {.t = s->t,
                     .options = {.method = PS_AUTO, .pivot = pivot_of(s, pivot)}};
    ps_input *const inputs[] = {&p.t.lower, &p.t.diag, &p.t.upper, &p.t.rhs};
    size_t bytes = 0;

    p.t.flags = flags_of(s) & (PS_PERIODIC | PS_ROW_SUMS);
    for (int w = 0; w < 4; w++) {
        void *const at =
            exec->work == NULL ? NULL : (char *)exec->work + (size_t)w * operand;

        *inputs[w] = (ps_input){at, stride};
        if (w < MATRIX_OPERANDS) {
            p.made[w] = (ps_output){at, stride};
        }
        else {
            p.t.x = (ps_output){at, stride};
        }
    }
    p.used = 4 * operand;
    ps_tridiag sizes = p.t;

    if (exec->work == NULL) { /* addresses do not matter, but are checked */
        for (int w = 0; w < 4; w++) {
            inputs[w]->data = (void *)(uintptr_t)(64 + (size_t)w * operand);
        }
        p.t.x.data = (void *)(uintptr_t)(64 + 3 * operand);
        sizes = p.t;
    }
    ps_cpu_tridiag_work(&sizes, &p.options, exec, &bytes);
    p.bytes = p.used + bytes;
    return p;
}

static ps_status
run_memory(const ps_step *s, ps_pivot pivot, const ps_exec *exec, ps_report *report)
{
    const memory_plan p = plan_memory(s, pivot, exec);
    const ps_exec rest = after(exec, p.used);
    const ps_output y[MATRIX_OPERANDS] = {p.t.x};
    ps_tridiag rows = s->t;

    rows.x = p.t.x;
    ps_status status = write_all(s, &rows, p.made, 0, exec);

    if (status == PS_OK) {
        status = ps_cpu_tridiag_solve(&p.t, &p.options, &rest, report);
    }
    return status == PS_OK ? write_all(s, &s->t, y, 1, exec) : status;
}

static ps_plan
plan_lanes(const ps_step *turned, const ps_tridiag *given, ps_pivot pivot,
           const ps_exec *exec)
{
    const ps_type_kernels *const kernels = kernels_of(given);
    ps_tridiag t = *given;

    t.flags = flags_of(turned);
    ps_plan plan = plan_of(kernels, turned, pivot, exec, &t);

    ps_plan_kernel(&plan, kernels->direct_scratch, kernels->step);
    return plan;
}

static size_t
work_of(const ps_step *s, ps_pivot pivot, const ps_exec *exec)
{
    const ps_step its = turned_step(s);
    ps_exec sizes = *exec;

    sizes.work = NULL;
    switch (route_of(s, pivot)) {
    case BY_FACTOR:
        return plan_factor(s, pivot, &sizes).bytes;
    case IN_MEMORY:
        return plan_memory(s, pivot, &sizes).bytes;
    default: {
        const ps_plan plan = plan_lanes(&its, &s->t, pivot, exec);

        return plan.scratch * (size_t)plan.threads;
    }
    }
}

ps_status
ps_cpu_step_work(const ps_step *s, ps_pivot pivot, const ps_exec *exec, size_t *bytes)
{
    const ps_status status = ps_step_check(s, pivot);

    *bytes = 0;
    if (status == PS_OK && s->t.outer > 0 && s->t.inner > 0) {
        *bytes = work_of(s, pivot, exec);
    }
    return status;
}

ps_status
ps_cpu_step_solve(const ps_step *s, ps_pivot pivot, const ps_exec *exec,
                  ps_report *report)
{
    const ps_status status = ps_step_check(s, pivot);

    if (status != PS_OK) {
        return status;
    }
    *report = (ps_report){.method = PS_THOMAS, .kernel = ps_isa_get()->name};
    if (s->t.outer == 0 || s->t.inner == 0) {
        return PS_OK;
    }
    if (work_of(s, pivot, exec) > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    switch (route_of(s, pivot)) {
    case BY_FACTOR:
        return run_factor(s, pivot, exec, report);
    case IN_MEMORY:
        return run_memory(s, pivot, exec, report);
    default: {
        const ps_step its = turned_step(s);
        const ps_plan plan = plan_lanes(&its, &s->t, pivot, exec);

        report->threads = plan.threads;
        report->method = plan.job.pivot == PS_PIVOT_ALWAYS ? PS_PIVOTED : plan.job.method;
        return ps_plan_run(&plan, exec, exec->work, &report->pivoted);
    }
    }
}

/* A ps_step of what a step with a factor has. */
static ps_step
step_of(const ps_factor *f, const ps_factor_step *s)
{
    return (ps_step){.t = {.dtype = f->dtype,
                           .rows = f->rows,
                           .outer = s->b.outer,
                           .inner = s->b.inner,
                           .rhs = s->b.rhs,
                           .x = s->b.x},
                     .kind = PS_STEP_THETA,
                     .step = s->step,
                     .gain = s->gain == 0 ? 1 : s->gain,
                     .source = s->source,
                     .where = s->where};
}

/* Bytes of the right-hand sides of long matrices, which are solved in the workspace. */
static size_t
sides_bytes(const ps_step *s)
{
    return operand_bytes(&s->t, s->t.outer * s->t.inner);
}

ps_status
ps_cpu_factor_step_work(const ps_factor *f, const ps_factor_step *s, const ps_exec *exec,
                        size_t *bytes)
{
    const ps_status status = ps_factor_step_check(f, s);

    *bytes = 0;
    if (status != PS_OK || f->rows == 0 || s->b.outer == 0 || s->b.inner == 0) {
        return status;
    }
    const ps_step its = step_of(f, s);

    if (!ps_factor_is_long(f)) {
        *bytes = ps_factor_step_bytes(f, &s->b, &its, exec);
        return PS_OK;
    }
    ps_cpu_factor_work(f, &s->b, exec, bytes);
    *bytes += sides_bytes(&its);
    return PS_OK;
}

ps_status
ps_cpu_factor_step(const ps_factor *f, const ps_factor_step *s, const ps_exec *exec)
{
    size_t bytes;
    ps_status status = ps_cpu_factor_step_work(f, s, exec, &bytes);

    if (status != PS_OK || bytes == 0) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    const ps_step its = step_of(f, s);

    if (!ps_factor_is_long(f)) {
        return ps_factor_step_short(f, &s->b, &its, exec);
    }
    const ps_exec rest = after(exec, sides_bytes(&its));
    const ps_output y[MATRIX_OPERANDS] = {
        {exec->work, stride_like(s->b.x.stride, &its.t)}};
    ps_tridiag rows = its.t;
    ps_factor_rhs b = s->b;

    rows.x = y[0];
    b.rhs = (ps_input){y[0].data, y[0].stride};
    b.x = y[0];
    status = write_all(&its, &rows, NULL, 0, exec);
    if (status == PS_OK) {
        status = ps_cpu_factor_solve(f, &b, &rest);
    }
    return status == PS_OK ? write_all(&its, &its.t, y, 1, exec) : status;
}
