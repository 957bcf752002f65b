/* api.c - the functions of pysolvers_api.h: calls of C, C++ and Fortran without Python.
 *
 * The library and the module contain this file. It translates the public structs, which
 * stay as they are when the contract of the backends changes, allocates what the caller of
 * a backend provides, and counts singular systems. The lines are solved by the entries of
 * the CPU backend; they are called directly, because the table of the backend refers to
 * every solver, and the library holds the line solves only.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../pysolvers/include/pysolvers_api.h"
#include "lines/factor/factor.h"
#include "ps_api.h"
#include "runtime/fp_mode.h"
#include "runtime/workspace.h"
#include "tridiag.h"

/* Infos and bytes of workspace that need no allocation and no question for their number. */
enum { FEW_SYSTEMS = 256, FEW_BYTES = 8192 };

/* The factors, the infos of the matrices after them, and the store. */
struct pysolvers_factors {
    ps_factor factor;
    int64_t singular;
    int32_t *info;
};

static pysolvers_status
status_of(ps_status status)
{
    switch (status) {
    case PS_OK:
        return PYSOLVERS_OK;
    case PS_BAD_LAYOUT:
        return PYSOLVERS_BAD_LAYOUT;
    case PS_UNSUPPORTED:
        return PYSOLVERS_UNSUPPORTED;
    case PS_NO_MEMORY:
        return PYSOLVERS_NO_MEMORY;
    default:
        return PYSOLVERS_BAD_ARGUMENT;
    }
}

const char *
pysolvers_status_text(pysolvers_status status)
{
    switch (status) {
    case PYSOLVERS_OK:
        return "success";
    case PYSOLVERS_SINGULAR:
        return "matrices of the batch are singular";
    case PYSOLVERS_BAD_ARGUMENT:
        return "an argument is null or out of its range";
    case PYSOLVERS_BAD_LAYOUT:
        return "operands overlap, or x repeats an element";
    case PYSOLVERS_NO_MEMORY:
        return "there is no memory for the workspace";
    case PYSOLVERS_UNSUPPORTED:
        return "these flags and options do not go together";
    }
    return "unknown status";
}

static ps_input
input_of(const pysolvers_input *in)
{
    return (ps_input){in->data, {in->row, in->outer, in->inner}};
}

static ps_output
output_of(const pysolvers_output *out)
{
    return (ps_output){out->data, {out->row, out->outer, out->inner}};
}

/* A batch as the backend takes it. The numbers of dtypes and flags are the same. */
static ps_tridiag
tridiag_of(const pysolvers_systems *s)
{
    _Static_assert((int)PYSOLVERS_C128 == (int)PS_C128,
                   "the dtypes are those of the backends");
    _Static_assert((int)PYSOLVERS_PIVOT_ALWAYS == (int)PS_PIVOT_ALWAYS,
                   "and the pivoting");
    _Static_assert((int)PYSOLVERS_PERIODIC == (int)PS_PERIODIC &&
                       (int)PYSOLVERS_SHORT_LOWER == (int)PS_SHORT_LOWER &&
                       (int)PYSOLVERS_SHORT_UPPER == (int)PS_SHORT_UPPER &&
                       (int)PYSOLVERS_ROW_SUMS == (int)PS_ROW_SUMS,
                   "and the flags");
    return (ps_tridiag){.dtype = (ps_dtype)s->dtype,
                        .flags = s->flags,
                        .rows = s->rows,
                        .outer = s->outer,
                        .inner = s->inner,
                        .lower = input_of(&s->lower),
                        .diag = input_of(&s->diag),
                        .upper = input_of(&s->upper),
                        .rhs = input_of(&s->rhs),
                        .x = output_of(&s->x),
                        .info = s->info};
}

/* Row sums are for elimination without row exchanges, which AUTO stands for. */
static ps_options
options_of(const pysolvers_options *options, uint32_t flags)
{
    const ps_pivot asked = options == NULL ? PS_PIVOT_AUTO : (ps_pivot)options->pivot;
    const bool has_sums = (flags & PS_ROW_SUMS) != 0;

    return (ps_options){PS_AUTO,
                        asked == PS_PIVOT_AUTO && has_sums ? PS_PIVOT_NEVER : asked, 0};
}

/* What flags and options say together: row sums are real numbers, and no row of them is
 * exchanged. */
static pysolvers_status
check_request(const pysolvers_systems *systems, const pysolvers_options *options)
{
    if (systems == NULL || (options != NULL && options->threads < 0)) {
        return PYSOLVERS_BAD_ARGUMENT;
    }
    const bool is_complex =
        systems->dtype == PYSOLVERS_C64 || systems->dtype == PYSOLVERS_C128;
    const bool exchanges = options != NULL && options->pivot == PYSOLVERS_PIVOT_ALWAYS;

    return (systems->flags & PYSOLVERS_ROW_SUMS) && (is_complex || exchanges)
               ? PYSOLVERS_UNSUPPORTED
               : PYSOLVERS_OK;
}

/* Number of systems, or -1 if that of their infos in bytes overflows. */
static int64_t
systems_of(int64_t outer, int64_t inner)
{
    if (outer < 0 || inner < 0 || (inner > 0 && outer > INT64_MAX / 64 / inner)) {
        return -1;
    }
    return outer * inner;
}

/* Fill the x of singular systems with NaN, in which all bits are 1; return their number.
 * The info of system (j, k) is info[j*outer_step + k*inner_step]. */
static int64_t
fill_singular(ps_dtype dtype, int64_t rows, int64_t outer, int64_t inner, ps_output x,
              const int32_t *info, int64_t outer_step, int64_t inner_step)
{
    const int64_t size = ps_dtype_size(dtype);
    int64_t count = 0;

    for (int64_t j = 0; j < outer; j++) {
        for (int64_t k = 0; k < inner; k++) {
            if (info[j * outer_step + k * inner_step] == 0) {
                continue;
            }
            const int64_t at = j * x.stride.outer + k * x.stride.inner;

            for (int64_t i = 0; i < rows; i++) {
                memset((char *)x.data + (at + i * x.stride.row) * size, 0xff,
                       (size_t)size);
            }
            count++;
        }
    }
    return count;
}

/* Solve with a workspace of the stack, or of the heap where it is too small: the backend
 * then says so before it has written anything. */
static ps_status
solve_with_work(const ps_tridiag *t, const ps_options *options, ps_exec *exec)
{
    _Alignas(64) char small[FEW_BYTES];
    ps_report report;

    exec->work = small;
    exec->work_bytes = sizeof small;
    ps_status status = ps_cpu_tridiag_solve(t, options, exec, &report);

    if (status == PS_WORK_TOO_SMALL) {
        status = ps_cpu_tridiag_work(t, options, exec, &exec->work_bytes);
        if (status == PS_OK && posix_memalign(&exec->work, 64, exec->work_bytes) != 0) {
            return PS_NO_MEMORY;
        }
        if (status == PS_OK) {
            status = ps_cpu_tridiag_solve(t, options, exec, &report);
            free(exec->work);
        }
    }
    return status;
}

static pysolvers_status
solve(ps_tridiag *t, const ps_options *options, int32_t threads)
{
    int32_t few[FEW_SYSTEMS];
    int32_t *owned = NULL;
    ps_exec exec = {.threads = threads};
    const int64_t systems = systems_of(t->outer, t->inner);

    if (systems < 0) {
        return PYSOLVERS_BAD_ARGUMENT;
    }
    if (t->info == NULL) {
        if (systems > FEW_SYSTEMS) {
            const ps_status checked = ps_tridiag_check(t, options);

            if (checked != PS_OK) {
                return status_of(checked);
            }
            owned = malloc((size_t)systems * sizeof *owned);
            if (owned == NULL) {
                return PYSOLVERS_NO_MEMORY;
            }
        }
        t->info = owned == NULL ? few : owned;
    }
    const ps_fp_mode mode = ps_fp_mode_enter();
    const ps_status status = solve_with_work(t, options, &exec);
    const int64_t singular = status != PS_OK
                                 ? 0
                                 : fill_singular(t->dtype, t->rows, t->outer, t->inner,
                                                 t->x, t->info, t->inner, 1);

    ps_fp_mode_leave(mode);
    free(owned);
    return singular > 0 ? PYSOLVERS_SINGULAR : status_of(status);
}

pysolvers_status
pysolvers_solve(const pysolvers_systems *systems, const pysolvers_options *options)
{
    const pysolvers_status request = check_request(systems, options);

    if (request != PYSOLVERS_OK) {
        return request;
    }
    ps_tridiag t = tridiag_of(systems);
    const ps_options how = options_of(options, systems->flags);

    return solve(&t, &how, options == NULL ? 0 : options->threads);
}

static pysolvers_status
solve_contiguous(ps_dtype dtype, int64_t rows, int64_t systems, const void *lower,
                 const void *diag, const void *upper, const void *rhs, void *x)
{
    const ps_stride stride = {1, 0, rows};
    const ps_options options = {PS_AUTO, PS_PIVOT_AUTO, 0};
    ps_tridiag t = {.dtype = dtype,
                    .rows = rows,
                    .outer = 1,
                    .inner = systems,
                    .lower = {lower, stride},
                    .diag = {diag, stride},
                    .upper = {upper, stride},
                    .rhs = {rhs, stride},
                    .x = {x, stride}};

    return solve(&t, &options, 0);
}

pysolvers_status
pysolvers_ssolve(int64_t rows, int64_t systems, const float *lower, const float *diag,
                 const float *upper, const float *rhs, float *x)
{
    return solve_contiguous(PS_F32, rows, systems, lower, diag, upper, rhs, x);
}

pysolvers_status
pysolvers_dsolve(int64_t rows, int64_t systems, const double *lower, const double *diag,
                 const double *upper, const double *rhs, double *x)
{
    return solve_contiguous(PS_F64, rows, systems, lower, diag, upper, rhs, x);
}

pysolvers_status
pysolvers_csolve(int64_t rows, int64_t systems, const void *lower, const void *diag,
                 const void *upper, const void *rhs, void *x)
{
    return solve_contiguous(PS_C64, rows, systems, lower, diag, upper, rhs, x);
}

pysolvers_status
pysolvers_zsolve(int64_t rows, int64_t systems, const void *lower, const void *diag,
                 const void *upper, const void *rhs, void *x)
{
    return solve_contiguous(PS_C128, rows, systems, lower, diag, upper, rhs, x);
}

/* Factor the matrices of `t`, whose rhs and x are not read. */
static pysolvers_status
make_factors(ps_tridiag *t, const ps_options *options, int32_t threads,
             pysolvers_factors **found)
{
    const ps_factor shape = {.dtype = t->dtype,
                             .flags = t->flags & (PS_PERIODIC | PS_ROW_SUMS),
                             .rows = t->rows,
                             .outer = t->outer,
                             .inner = t->inner,
                             .pivot = options->pivot};
    const int64_t systems = systems_of(t->outer, t->inner);
    ps_exec exec = {.threads = threads};
    ps_report report;
    size_t store;
    void *room = NULL;
    ps_status status = systems < 0 ? PS_BAD_ARGUMENT : ps_matrix_check(&shape, t);

    if (status == PS_OK) {
        status = ps_cpu_factor_store(&shape, &exec, &store);
    }
    if (status == PS_OK) {
        status = ps_cpu_factor_make_work(&shape, &exec, &exec.work_bytes);
    }
    if (status != PS_OK) {
        return status_of(status);
    }
    const size_t head = ps_aligned(sizeof **found);
    const size_t infos = ps_aligned((size_t)systems * sizeof(int32_t));

    if (posix_memalign(&room, 64, head + infos + store) != 0) {
        return PYSOLVERS_NO_MEMORY;
    }
    if (posix_memalign(&exec.work, 64, exec.work_bytes + !exec.work_bytes) != 0) {
        free(room);
        return PYSOLVERS_NO_MEMORY;
    }
    pysolvers_factors *const f = room;

    *f = (pysolvers_factors){shape, 0, (int32_t *)((char *)room + head)};
    f->factor.store = (char *)room + head + infos;
    f->factor.store_bytes = store;
    t->info = f->info;
    status = ps_cpu_factor_make(&f->factor, t, &exec, &report);
    free(exec.work);
    if (status != PS_OK) {
        free(room);
        return status_of(status);
    }
    for (int64_t s = 0; s < systems; s++) {
        f->singular += f->info[s] != 0;
    }
    *found = f;
    return f->singular > 0 ? PYSOLVERS_SINGULAR : PYSOLVERS_OK;
}

pysolvers_status
pysolvers_factor(const pysolvers_systems *systems, const pysolvers_options *options,
                 pysolvers_factors **factors)
{
    if (factors == NULL) {
        return PYSOLVERS_BAD_ARGUMENT;
    }
    *factors = NULL;

    const pysolvers_status request = check_request(systems, options);

    if (request != PYSOLVERS_OK) {
        return request;
    }
    ps_tridiag t = tridiag_of(systems);
    int32_t *const asked = t.info;
    const ps_options how = options_of(options, systems->flags);
    const ps_fp_mode mode = ps_fp_mode_enter();
    const pysolvers_status status =
        make_factors(&t, &how, options == NULL ? 0 : options->threads, factors);

    ps_fp_mode_leave(mode);
    if (*factors != NULL && asked != NULL) {
        memcpy(asked, (*factors)->info, (size_t)(t.outer * t.inner) * sizeof *asked);
    }
    return status;
}

static pysolvers_status
solve_with_factors(const pysolvers_factors *f, const ps_factor_rhs *b, int32_t threads)
{
    _Alignas(64) char small[FEW_BYTES];
    void *owned = NULL;
    ps_exec exec = {.threads = threads, .work = small};
    ps_status status = ps_factor_check(&f->factor, b);

    if (status == PS_OK) {
        status = ps_cpu_factor_work(&f->factor, b, &exec, &exec.work_bytes);
    }
    if (status == PS_OK && exec.work_bytes > sizeof small) {
        if (posix_memalign(&owned, 64, exec.work_bytes) != 0) {
            return PYSOLVERS_NO_MEMORY;
        }
        exec.work = owned;
    }
    if (status == PS_OK) {
        status = ps_cpu_factor_solve(&f->factor, b, &exec);
    }
    free(owned);
    if (status != PS_OK || f->singular == 0) {
        return status_of(status);
    }
    const int64_t singular =
        fill_singular(f->factor.dtype, f->factor.rows, b->outer, b->inner, b->x, f->info,
                      b->outer_step * f->factor.inner, b->inner_step);

    return singular > 0 ? PYSOLVERS_SINGULAR : PYSOLVERS_OK;
}

pysolvers_status
pysolvers_factor_solve(const pysolvers_factors *factors, char trans, int64_t outer,
                       int64_t inner, const pysolvers_input *rhs,
                       const pysolvers_output *x, int32_t threads)
{
    static const char letters[PS_TRANS_COUNT] = {'N', 'T', 'H'};
    int which = 0;

    while (which < PS_TRANS_COUNT && letters[which] != trans) {
        which++;
    }
    if (factors == NULL || rhs == NULL || x == NULL || which == PS_TRANS_COUNT ||
        threads < 0) {
        return PYSOLVERS_BAD_ARGUMENT;
    }
    const ps_factor_rhs b = {.trans = (ps_trans)which,
                             .outer = outer,
                             .inner = inner,
                             .outer_step = factors->factor.outer != 1,
                             .inner_step = factors->factor.inner != 1,
                             .rhs = input_of(rhs),
                             .x = output_of(x)};
    const ps_fp_mode mode = ps_fp_mode_enter();
    const pysolvers_status status = solve_with_factors(factors, &b, threads);

    ps_fp_mode_leave(mode);
    return status;
}

void
pysolvers_factor_free(pysolvers_factors *factors)
{
    free(factors);
}

static const pysolvers_functions functions = {
    .version = PYSOLVERS_API_VERSION,
    .solve = pysolvers_solve,
    .factor = pysolvers_factor,
    .factor_solve = pysolvers_factor_solve,
    .factor_free = pysolvers_factor_free,
    .ssolve = pysolvers_ssolve,
    .dsolve = pysolvers_dsolve,
    .csolve = pysolvers_csolve,
    .zsolve = pysolvers_zsolve,
    .status_text = pysolvers_status_text,
};

const void *
ps_c_api(void)
{
    return &functions;
}
