/* direct.c - tridiag_direct(): the calls of solve_tridiagonal, theta_step and
 * implicit_diffusion that need no planning.
 *
 * Python converts, broadcasts and plans the operands of a call, which takes 50 us and
 * more, on a device 200 us. Most calls have operands that are used as they are: arrays of
 * one dtype and shape, those of the matrices perhaps without the first axes of the
 * right-hand sides, vectors along the axis of the systems, and numbers. These are checked
 * here, in about 1 us. Every other call, also every call with an error in its arguments,
 * is left to Python, which has the rules and the messages. Operands on a device are
 * numbers and arrays from borrow(), and `out` must be given.
 */
#include "binding.h"
#include "call.h"
#include "borrowed.h"
#include "operand.h"
#include "plain.h"
#include "step.h"
#include "tridiag.h"

#include <float.h>
#include <math.h>

enum { LOWER, DIAG, UPPER, RHS, INPUTS };

/* The operands of a step after its numbers, of which the last ones are for its products; and
 * how many operands can be numbers. */
enum { SOURCE, WHERE, ENDS, OF_PRODUCTS = ENDS + 4, NUMBERS = 8 };

/* x and u of the other step, and where the products are written. */
enum { OTHER_X, OTHER_U, FIRST_PRODUCT, ARRAYS = FIRST_PRODUCT + 3 };
enum { EXTRAS = OF_PRODUCTS + ARRAYS };

/* Numbers of an upload. */
enum { PIECE = PS_SMALL_BYTES / (2 * (int)sizeof(double)) };

/* Systems whose info needs no allocation. */
enum { FEW_SYSTEMS = 256 };

/* Numbers whose signs are checked faster than NumPy is called. */
enum { FEW_SIGNS = 1 << 17 };

/* What `diag` holds: diagonals, row sums whose signs are known, or row sums whose signs
 * are checked here. */
typedef enum { DIAGONALS, ROW_SUMS, SIGNED_ROW_SUMS } matrix_form;

/* How the dtypes of a call are used. A real matrix with complex right-hand sides (PAIRS)
 * solves for real and imaginary parts: the two form the inner batch axis, over which the
 * matrix is shared. If all systems share the matrix and have contiguous rows (WIDENED),
 * complex copies of the diagonals cost less than access to every second element. If the
 * batch has two axes and the matrices vary, the parts are solved one after the other
 * (PARTS). */
typedef enum { ONE_TYPE, PAIRS, WIDENED, PARTS } type_use;

typedef struct {
    plain p, matrices;
    int matrix_type; /* type number of the diagonals that are arrays */
    type_use use;
    matrix_form form;
    uint32_t flags;
    ps_tridiag t;
    ps_step s; /* without t; gain 0 for a solve */
    ps_products products;
    ps_report *report; /* of the solve; null: none is made */
    PyObject *extras[EXTRAS];
    double numbers[NUMBERS][2];     /* operands that are numbers, in their dtype */
    PyArrayObject *widened[INPUTS]; /* complex copies of diagonals; owned */
} direct;

static npy_intp
systems_of(const plain *p)
{
    return p->outer * p->inner;
}

/* One diagonal. Returns 0 if it is not a plain case. */
static int
read_diagonal(direct *d, PyObject *object, const PyArrayObject *rhs, int which,
              ps_input *input)
{
    if (plain_is_number(object)) {
        return plain_number(&d->p, object, d->numbers[which], input);
    }
    PyArrayObject *array = plain_array(object, d->matrix_type);

    if (array == NULL || PyArray_NDIM(array) == 0) {
        return 0;
    }
    const int is_vector = PyArray_NDIM(array) == 1;
    const npy_intp length = is_vector ? PyArray_DIM(array, 0)
                            : PyArray_NDIM(array) == d->matrices.axes
                                ? PyArray_DIM(array, d->matrices.axis)
                                : -1;
    const int is_short = which != DIAG && !(d->flags & PS_PERIODIC) &&
                         length == d->p.rows - 1 && length > 1;

    if (length != d->p.rows && !is_short) {
        return 0;
    }
    if (is_short) {
        d->flags |= which == LOWER ? PS_SHORT_LOWER : PS_SHORT_UPPER;
    }
    if (d->use == WIDENED) {
        if (d->p.on_device) {
            return 0;
        }
        array = (PyArrayObject *)PyArray_Cast(array, d->p.type);
        if (array == NULL) {
            return 0;
        }
        d->widened[which] = array;
    }
    input->data = PyArray_DATA(array);
    if (plain_shape(&d->matrices, array, rhs, length)) {
        return plain_stride(&d->matrices, array, &input->stride);
    }
    input->stride = (ps_stride){0, 0, 0};
    return is_vector && operand_stride(array, 0, &input->stride.row);
}

/* Set the types, from the right-hand side, whose strides have been read, and the
 * diagonals; 0 if the batch axes of real and imaginary parts do not merge to two, and
 * there are too many of them for two passes, or if all systems share one matrix that is
 * no vector. */
static int
choose_types(direct *d, PyObject *const *inputs)
{
    const int real = plain_real(d->p.type);
    int is_shared = 1;

    d->use = ONE_TYPE;
    d->matrix_type = d->p.type;
    if (real == d->p.type) {
        return 1;
    }
    for (int k = LOWER; k <= UPPER; k++) {
        if (plain_is_number(inputs[k])) {
            continue;
        }
        if (!PyArray_CheckExact(inputs[k]) ||
            PyArray_TYPE((PyArrayObject *)inputs[k]) != real) {
            return 1;
        }
        is_shared = is_shared && PyArray_NDIM((PyArrayObject *)inputs[k]) == 1;
    }
    d->matrix_type = real;
    d->use =
        is_shared && systems_of(&d->p) > 1 && d->t.rhs.stride.row == 1 ? WIDENED : PAIRS;
    if (d->use == PAIRS && !is_shared && d->p.outer > 1) {
        const int is_one = d->matrices.axes < d->p.axes && d->matrices.inner == 1;

        d->use = PARTS;
        return !is_one && plain_is_small((PyArrayObject *)inputs[RHS]);
    }
    return 1;
}

/* Turn a batch of complex systems, which the right-hand sides and solutions describe,
 * into one of real systems. If it has two batch axes, all systems share the matrix. */
static void
divide_into_pairs(const plain *p, ps_tridiag *t)
{
    ps_stride *const matrix[] = {&t->lower.stride, &t->diag.stride, &t->upper.stride};

    plain_divide(p, &t->rhs.stride);
    plain_divide(p, &t->x.stride);
    for (int k = 0; k < 3; k++) {
        *matrix[k] = (ps_stride){.row = matrix[k]->row, .outer = matrix[k]->inner};
    }
    t->dtype = t->dtype == PS_C64 ? PS_F32 : PS_F64;
    t->outer = p->outer > 1 ? p->outer : p->inner;
    t->inner = p->outer > 1 ? 2 * p->inner : 2;
}

/* Describe the diagonals that are arrays of more than one axis, all of the same number, and
 * the batch accordingly: the systems that share a matrix lie along its outer axis. Returns
 * 0 if they are not plain. */
static int
find_matrices(direct *d, PyObject *const *inputs, const PyArrayObject *rhs)
{
    int axes = 0;

    for (int k = LOWER; k <= UPPER; k++) {
        const int own =
            PyArray_Check(inputs[k]) ? PyArray_NDIM((PyArrayObject *)inputs[k]) : 0;

        if (own > 1 && axes > 1 && own != axes) {
            return 0;
        }
        axes = own > 1 ? own : axes;
    }
    if (!plain_matrices(&d->p, rhs, axes == 0 ? d->p.axes : axes, &d->matrices)) {
        return 0;
    }
    if (d->matrices.axes < d->p.axes) {
        d->p.outer = systems_of(&d->p) / d->matrices.inner;
        d->p.inner = d->matrices.inner;
    }
    return 1;
}

/* What a step has apart from its matrix and `rhs`. Returns 0 if it is not a plain case. */
static int
read_extras(direct *d, const PyArrayObject *rhs)
{
    ps_input *const ends[] = {&d->s.flux[0], &d->s.flux[1], &d->s.value[0],
                              &d->s.value[1]};
    int lacks;

    if (d->s.kind == PS_STEP_FLUX && plain_real(d->p.type) != d->p.type) {
        return 0;
    }
    for (int k = 0; k < 4; k++) {
        if (!plain_column(&d->p, d->extras[ENDS + k], rhs, d->numbers[RHS + 1 + k],
                          ends[k])) {
            return 0;
        }
    }
    return (d->extras[SOURCE] == Py_None ||
            plain_input(&d->p, d->extras[SOURCE], rhs, 0, d->numbers[RHS], &d->s.source,
                        &lacks)) &&
           plain_mask(&d->p, d->extras[WHERE], rhs, &d->s.where);
}

/* Read the operands. Returns 0 if the call is not a plain case. */
static int
read_operands(direct *d, PyObject *const *inputs, PyObject *axis)
{
    PyArrayObject *const rhs = plain_sides(&d->p, inputs[RHS], axis);

    if (rhs == NULL || !operand_dtype(d->p.type, &d->t.dtype) ||
        !find_matrices(d, inputs, rhs) || !plain_stride(&d->p, rhs, &d->t.rhs.stride)) {
        return 0;
    }
    d->t.rhs.data = PyArray_DATA(rhs);
    if (!choose_types(d, inputs)) {
        return 0;
    }
    return read_diagonal(d, inputs[LOWER], rhs, LOWER, &d->t.lower) &&
           read_diagonal(d, inputs[DIAG], rhs, DIAG, &d->t.diag) &&
           read_diagonal(d, inputs[UPPER], rhs, UPPER, &d->t.upper) &&
           (d->s.gain == 0 || (d->use == ONE_TYPE && read_extras(d, rhs)));
}

/* The options; 0 if one of them is not what Python allows. */
static int
read_options(PyObject *pivot, PyObject *periodic, PyObject *threads, ps_method method,
             direct *d, ps_options *options, int *count)
{
    const int is_count = plain_threads(threads, count);

    *options = (ps_options){.method = method,
                            .pivot = pivot == Py_None   ? PS_PIVOT_AUTO
                                     : pivot == Py_True ? PS_PIVOT_ALWAYS
                                                        : PS_PIVOT_NEVER};
    d->flags = periodic == Py_True ? PS_PERIODIC : 0;
    return is_count && (periodic == Py_True || periodic == Py_False) &&
           (pivot == Py_None || pivot == Py_True || pivot == Py_False);
}

/* Whether no number has the other sign than `sign` or is NaN: 16 bytes at a time. */
#define HAVE_SIGN(name, real, integer)                             \
    static int name(const real *a, npy_intp count, real sign)      \
    {                                                              \
        typedef real vec __attribute__((vector_size(16)));         \
        typedef integer mask __attribute__((vector_size(16)));     \
        enum { LANES = sizeof(vec) / sizeof(real), TEAM = 4 };     \
        mask have[TEAM];                                           \
        npy_intp k = 0;                                            \
        int all = 1;                                               \
                                                                   \
        memset(have, -1, sizeof have);                             \
        for (; k + TEAM * LANES <= count; k += TEAM * LANES) {     \
            _Pragma("GCC unroll 4") for (int q = 0; q < TEAM; q++) \
            {                                                      \
                vec v;                                             \
                                                                   \
                memcpy(&v, a + k + q * LANES, sizeof v);           \
                have[q] &= (mask)(sign * v >= 0);                  \
            }                                                      \
        }                                                          \
        for (; k < count; k++) {                                   \
            all &= sign * a[k] >= 0;                               \
        }                                                          \
        for (int q = 0; q < TEAM; q++) {                           \
            for (int v = 0; v < LANES; v++) {                      \
                all &= have[q][v] != 0;                            \
            }                                                      \
        }                                                          \
        return all;                                                \
    }

HAVE_SIGN(have_sign_f32, float, int32_t)
HAVE_SIGN(have_sign_f64, double, int64_t)
#undef HAVE_SIGN

/* The same for a diagonal, its ignored entries included; -1 with an exception. NumPy
 * reduces long arrays faster, and those with gaps. */
static int
has_sign(const direct *d, PyObject *object, const ps_input *input, int sign)
{
    const int is_array = !plain_is_number(object);
    const npy_intp count = is_array ? PyArray_SIZE((PyArrayObject *)object) : 1;

    if (is_array &&
        (count > FEW_SIGNS || !PyArray_ISONESEGMENT((PyArrayObject *)object))) {
        PyObject *const extreme =
            PyObject_CallMethod(object, sign > 0 ? "min" : "max", NULL);
        const double value = extreme == NULL ? 0 : PyFloat_AsDouble(extreme);

        Py_XDECREF(extreme);
        return PyErr_Occurred() ? -1 : sign * value >= 0;
    }
    return plain_real(d->p.type) == NPY_FLOAT
               ? have_sign_f32(input->data, count, (float)sign)
               : have_sign_f64(input->data, count, (double)sign);
}

/* Whether the solve can take `diag` as it is: diagonals, or row sums with the signs that
 * solve_tridiagonal() requires; 0, perhaps with an exception, if not. */
static int
accepts_form(const direct *d, PyObject *const *inputs, ps_pivot pivot)
{
    if (d->form == DIAGONALS) {
        return 1;
    }
    if (d->use == WIDENED || d->p.on_device || pivot != PS_PIVOT_NEVER ||
        (d->use == ONE_TYPE && plain_real(d->p.type) != d->p.type)) {
        return 0;
    }
    if (d->form == ROW_SUMS) {
        return 1;
    }
    const ps_input *const given[] = {&d->t.lower, &d->t.diag, &d->t.upper};
    int has = 0;

    for (int sign = 1; sign >= -1 && has == 0; sign -= 2) {
        has = 1;
        for (int k = LOWER; k <= UPPER && has > 0; k++) {
            has = has_sign(d, inputs[k], given[k], k == DIAG ? sign : -sign);
        }
    }
    return has > 0;
}

/* Every `step`-th of the numbers of `info` as an array. */
static PyObject *
info_array(const int32_t *info, npy_intp systems, npy_intp step)
{
    PyObject *const array = PyArray_SimpleNew(1, &systems, NPY_INT32);

    if (array != NULL) {
        int32_t *const to = PyArray_DATA((PyArrayObject *)array);

        for (npy_intp k = 0; k < systems; k++) {
            to[k] = info[k * step];
        }
    }
    return array;
}

/* What is done about singular systems: nothing; the numbers in `info` are reported; or,
 * on a device, their solutions become NaN without waiting. */
enum { IGNORED, REPORTED, FILLED };

/* Where a call runs, by which method, what it does about singular systems, and whether it
 * reports what it did. */
typedef struct {
    int device, singular;
    unsigned long long stream;
    ps_method method;
    int reports;
} place;

/* The operands that can be numbers, in the order of d->numbers. */
static void
numbers_of(direct *d, ps_input **inputs)
{
    ps_input *const all[NUMBERS] = {&d->t.lower,    &d->t.diag,    &d->t.upper,
                                    &d->s.source,   &d->s.flux[0], &d->s.flux[1],
                                    &d->s.value[0], &d->s.value[1]};

    memcpy(inputs, all, sizeof all);
}

/* Let the operands that are numbers refer to copies in *there; 0, or -1 with an
 * exception. */
static int
upload_numbers(direct *d, call *c, block *there, ps_status *status)
{
    ps_input *inputs[NUMBERS];
    int count = 0;

    numbers_of(d, inputs);
    for (int k = 0; k < NUMBERS; k++) {
        count += inputs[k]->data == d->numbers[k];
    }
    if (!d->p.on_device || count == 0) {
        return 0;
    }
    if (block_allocate(sizeof d->numbers, FOR_STREAM, &c->exec, there) < 0) {
        return -1;
    }
    call_enter(c);
    /* in pieces that a captured stream takes, of which a solve has one */
    for (int k = 0; k < NUMBERS && *status == PS_OK; k++) {
        const int first = k / PIECE * PIECE;

        if (inputs[k]->data == d->numbers[k]) {
            *status = ps_backend_get()->upload(
                (char *)there->data + (size_t)first * sizeof *d->numbers,
                d->numbers[first], PIECE * sizeof *d->numbers, &c->exec);
            k = first + PIECE - 1;
        }
    }
    for (int k = 0; k < NUMBERS; k++) {
        if (inputs[k]->data == d->numbers[k]) {
            inputs[k]->data = (char *)there->data + (size_t)k * sizeof d->numbers[k];
        }
    }
    return call_leave(c);
}

/* Solve, the numbers of the systems in `info`, in the memory of the backend, or in no
 * memory if it is null; `marks` as in ps_exec; 0, or -1 with an exception. */
static int
run(const direct *given, const ps_options *options, int threads, const place *where,
    int32_t *info, uint8_t *marks, ps_status *status)
{
    direct d = *given;
    ps_input *inputs[NUMBERS];
    ps_report own = {0}, *const report = d.report != NULL ? d.report : &own;
    block numbers = {0};
    call c;

    d.t.info = info;
    numbers_of(&d, inputs);
    for (int k = 0; k < NUMBERS; k++) { /* numbers are in the copy, too */
        if (inputs[k]->data == given->numbers[k]) {
            inputs[k]->data = d.numbers[k];
        }
    }
    if (call_begin(&c, threads, where->device, where->stream) < 0) {
        return -1;
    }
    c.exec.marks = marks;
    int raised = upload_numbers(&d, &c, &numbers, status);

    if (raised == 0 && *status == PS_OK && d.s.gain != 0) {
        d.s.t = d.t;
        d.s.products = d.products.x != NULL ? &d.products : NULL;
        raised = step_run(&d.s, options->pivot, 0, &c, status, report);
    }
    else if (raised == 0 && *status == PS_OK) {
        raised = tridiag_run(&d.t, options, 0, &c, status, report);
    }
    block_free(&numbers);
    return raised;
}

/* run() for a device, and wait for it; 0, or -1 with an exception. *is_complete: whether
 * the stream has nothing left to do, also if the call failed. */
static int
run_and_wait(const direct *d, const ps_options *options, int threads, const place *where,
             int32_t *info, uint8_t *marks, call *c, ps_status *status, int *is_complete)
{
    int raised = run(d, options, threads, where, info, marks, status);

    call_enter(c);
    const ps_status waited = ps_backend_get()->wait(&c->exec);

    *is_complete = waited == PS_OK;
    if (*status == PS_OK) {
        *status = waited;
    }
    return call_leave(c) < 0 ? -1 : raised;
}

/* run() with `info` in memory of the host that the device writes; 1 if there is none.
 * Systems that need row exchanges are rare: the device marks them in this memory, and
 * they are solved by a second call if there are any. */
static int
run_and_answer(const direct *d, const ps_options *options, int threads,
               const place *where, call *c, int32_t *info, npy_intp count,
               ps_status *status)
{
    const ps_backend *const backend = ps_backend_get();
    const ps_options exchanges = {.method = PS_AUTO, .pivot = PS_PIVOT_ALWAYS};
    const size_t bytes = (size_t)count * sizeof *info, offset = (bytes + 63) / 64 * 64;
    void *data = NULL;
    int is_complete = 0, marked = 0;

    if (offset + (size_t)count > PS_ANSWER_BYTES ||
        backend->answer(&c->exec, &data) != PS_OK) {
        return 1;
    }
    uint8_t *const marks = options->pivot == PS_PIVOT_AUTO && d->s.gain == 0
                               ? (uint8_t *)data + offset
                               : NULL;
    int raised =
        run_and_wait(d, options, threads, where, data, marks, c, status, &is_complete);

    for (npy_intp k = 0; marks != NULL && is_complete && k < count; k++) {
        marked |= marks[k];
    }
    if (raised == 0 && *status == PS_OK && marked) {
        raised = run_and_wait(d, &exchanges, threads, where, data, marks, c, status,
                              &is_complete);
    }
    if (is_complete) {
        memcpy(info, data, bytes);
    }
    backend->answer_end(data, is_complete);
    return raised;
}

/* run() with `info` in host memory, which is 0: waits for a device. *is_clear: whether the
 * numbers of all systems are known to be 0. */
static int
run_and_read(const direct *d, const ps_options *options, int threads, const place *where,
             int32_t *info, npy_intp count, ps_status *status, int *is_clear)
{
    const ps_backend *const backend = ps_backend_get();
    const size_t bytes = (size_t)count * sizeof *info;
    block there;
    call c;

    if (backend->memory == PS_HOST) {
        return run(d, options, threads, where, info, NULL, status);
    }
    if (call_begin(&c, threads, where->device, where->stream) < 0) {
        return -1;
    }
    const int answered =
        run_and_answer(d, options, threads, where, &c, info, count, status);

    if (answered <= 0) {
        return answered;
    }
    if (block_allocate(bytes + sizeof(float), FOR_STREAM, &c.exec, &there) < 0) {
        return -1;
    }
    int raised = run(d, options, threads, where, there.data, NULL, status);

    if (raised == 0 && *status == PS_OK) {
        float *const flag = (float *)((char *)there.data + bytes);

        call_enter(&c);
        *status = call_download_info(&c, info, there.data, count, flag, is_clear);
        raised = call_leave(&c);
    }
    block_free(&there);
    return raised;
}

/* Solve, and enqueue that the solutions of singular systems become NaN; 0, or -1 with an
 * exception. */
static int
run_and_fill(const direct *d, const ps_options *options, int threads, const place *where,
             ps_status *status)
{
    const ps_tridiag *const t = &d->t;
    const size_t bytes = (size_t)(t->outer * t->inner) * sizeof(int32_t);
    block there;
    call c;

    if (ps_backend_get()->blank == NULL) {
        *status = PS_UNSUPPORTED;
        return 0;
    }
    if (call_begin(&c, threads, where->device, where->stream) < 0 ||
        block_allocate(bytes, FOR_STREAM, &c.exec, &there) < 0) {
        return -1;
    }
    int raised = run(d, options, threads, where, there.data, NULL, status);

    if (raised == 0 && *status == PS_OK) {
        const ps_blank b = {
            .dtype = t->dtype,
            .rows = t->rows,
            .outer = t->outer,
            .inner = t->inner,
            .x = t->x,
            .more = {d->products.lower, d->products.diag, d->products.upper},
            .info = there.data,
            .info_outer = t->inner,
            .info_inner = 1};

        call_enter(&c);
        *status = ps_backend_get()->blank(&b, &c.exec);
        raised = call_leave(&c);
    }
    block_free(&there);
    return raised;
}

/* (x, numbers of the systems or None, report) of a solve that reports what it did. */
static PyObject *
report_of(const direct *d, PyArrayObject *x, const int32_t *info, npy_intp parts)
{
    ps_report report = *d->report;

    if (parts == 2) { /* every matrix is counted twice */
        report.pivoted = (report.pivoted + 1) / 2;
        report.repeated = (report.repeated + 1) / 2;
    }
    return Py_BuildValue("(ONN)", (PyObject *)x,
                         info == NULL ? Py_NewRef(Py_None)
                                      : info_array(info, systems_of(&d->p), parts),
                         call_report(PS_OK, &report));
}

static PyObject *
solve(const direct *d, const ps_options *options, int threads, const place *where,
      PyArrayObject *x)
{
    const npy_intp parts = d->use == PAIRS ? 2 : 1, count = systems_of(&d->p) * parts;
    int32_t few[FEW_SYSTEMS] = {0}, *info = few;
    ps_status status = PS_OK;
    PyObject *answer = NULL;
    npy_intp failed = 0;
    int is_clear = 0;

    if (where->singular != REPORTED) {
        const int raised = where->singular == FILLED
                               ? run_and_fill(d, options, threads, where, &status)
                               : run(d, options, threads, where, NULL, NULL, &status);

        return raised < 0        ? NULL
               : status != PS_OK ? PyLong_FromLong((long)status)
                                 : Py_NewRef((PyObject *)x);
    }
    if (count > FEW_SYSTEMS) {
        info = PyMem_RawCalloc((size_t)count, sizeof *info);
        if (info == NULL) {
            return PyErr_NoMemory();
        }
    }
    if (run_and_read(d, options, threads, where, info, count, &status, &is_clear) == 0) {
        /* not read if clear: the pages of many numbers are not in memory yet */
        for (npy_intp k = 0; !is_clear && k < count; k++) {
            failed += info[k] != 0;
        }
        answer = status != PS_OK     ? PyLong_FromLong((long)status)
                 : d->report != NULL ? report_of(d, x, failed > 0 ? info : NULL, parts)
                 : failed > 0        ? Py_BuildValue("(ON)", (PyObject *)x,
                                                     info_array(info, systems_of(&d->p), parts))
                                     : Py_NewRef((PyObject *)x);
    }
    if (info != few) {
        PyMem_RawFree(info);
    }
    return answer;
}

/* Solve for the real parts and then for the imaginary parts, with the same matrices, of
 * which the same are singular. */
static PyObject *
solve_parts(direct *d, const ps_options *options, int threads, const place *where,
            PyArrayObject *x)
{
    d->t.dtype = d->t.dtype == PS_C64 ? PS_F32 : PS_F64;
    plain_split(&d->t.rhs.stride);
    plain_split(&d->t.x.stride);
    PyObject *const first = solve(d, options, threads, where, x);

    if (first == NULL || PyLong_Check(first)) {
        return first;
    }
    Py_DECREF(first);
    d->t.rhs.data = (const char *)d->t.rhs.data + PyArray_ITEMSIZE(x) / 2;
    d->t.x.data = (char *)d->t.x.data + PyArray_ITEMSIZE(x) / 2;
    return solve(d, options, threads, where, x);
}

/* Whether an array has the type, the shape and the strides of another one. */
static int
is_alike(PyObject *object, PyArrayObject *other)
{
    PyArrayObject *const array = (PyArrayObject *)object;
    const size_t bytes = (size_t)PyArray_NDIM(other) * sizeof(npy_intp);

    return PyArray_CheckExact(object) && PyArray_TYPE(array) == PyArray_TYPE(other) &&
           PyArray_NDIM(array) == PyArray_NDIM(other) &&
           memcmp(PyArray_DIMS(array), PyArray_DIMS(other), bytes) == 0 &&
           memcmp(PyArray_STRIDES(array), PyArray_STRIDES(other), bytes) == 0;
}

/* Read the operands of the products, if there are some; 0 if a device cannot write the products
 * with x. It can if these operands and the right-hand sides have the strides of x, which has no
 * gaps. */
static int
read_products(direct *d, PyObject *rhs, PyArrayObject *x)
{
    PyObject *const *const arrays = d->extras + OF_PRODUCTS;
    const npy_intp size = PyArray_ITEMSIZE(x);
    npy_intp end = size;

    if (d->s.gain == 0 || arrays[0] == Py_None) {
        return 1;
    }
    for (int k = 0; k < PyArray_NDIM(x); k++) {
        if (PyArray_STRIDE(x, k) < 0) {
            return 0;
        }
        end += (PyArray_DIM(x, k) - 1) * PyArray_STRIDE(x, k);
    }
    for (int k = 0; k < ARRAYS; k++) {
        if (!is_alike(arrays[k], x)) {
            return 0;
        }
    }
    if (!d->p.on_device || d->t.dtype > PS_F64 || end != PyArray_NBYTES(x) ||
        !is_alike(rhs, x) || d->t.rhs.data == d->t.x.data) {
        return 0;
    }
    void *data[ARRAYS];

    for (int k = 0; k < ARRAYS; k++) {
        data[k] = PyArray_DATA((PyArrayObject *)arrays[k]);
    }
    ps_products *const p = &d->products;

    p->dtype = d->t.dtype;
    p->flags = d->flags & PS_PERIODIC;
    p->rows = d->p.rows;
    p->inner = p->rows > 1 ? PyArray_STRIDE(x, d->p.axis) / size : 1;
    p->outer = PyArray_SIZE(x) / p->rows / p->inner;
    p->g = PyArray_DATA(x);
    p->of = PyArray_DATA((PyArrayObject *)rhs);
    p->x = data[OTHER_X];
    p->u = data[OTHER_U];
    p->lower = data[FIRST_PRODUCT];
    p->diag = data[FIRST_PRODUCT + 1];
    p->upper = data[FIRST_PRODUCT + 2];
    p->share = d->s.gain - 1;
    p->theta = 1 / d->s.gain;
    return 1;
}

/* Solve, or return NotImplemented. */
static PyObject *
solve_plain(direct *d, PyObject *const *args, const place *where)
{
    ps_options options;
    int threads;

    if (!read_options(args[6], args[7], args[8], where->method, d, &options, &threads) ||
        !read_operands(d, args, args[4]) || !accepts_form(d, args, options.pivot) ||
        (where->reports && (d->use == WIDENED || d->use == PARTS))) {
        if (PyErr_Occurred()) {
            return NULL;
        }
        Py_RETURN_NOTIMPLEMENTED;
    }
    PyObject *inputs[EXTRAS + INPUTS];
    const int extras = d->s.gain != 0 ? OF_PRODUCTS : 0;

    memcpy(inputs, d->extras, (size_t)extras * sizeof *inputs);
    memcpy(inputs + extras, args, INPUTS * sizeof *inputs);
    PyArrayObject *const x = plain_result(&d->p, args[5], inputs, extras + INPUTS);

    if (x == NULL || !plain_stride(&d->p, x, &d->t.x.stride)) {
        Py_XDECREF((PyObject *)x);
        if (PyErr_Occurred()) {
            return NULL;
        }
        Py_RETURN_NOTIMPLEMENTED;
    }
    d->t.x.data = PyArray_DATA(x);
    if (!read_products(d, args[RHS], x)) {
        Py_DECREF((PyObject *)x);
        Py_RETURN_NOTIMPLEMENTED;
    }
    d->t.flags = d->flags | (d->form == DIAGONALS ? 0 : PS_ROW_SUMS);
    d->t.rows = d->p.rows;
    d->t.outer = d->p.outer;
    d->t.inner = d->p.inner;
    if (d->use == PAIRS) {
        divide_into_pairs(&d->p, &d->t);
    }
    PyObject *const answer = d->use == PARTS ? solve_parts(d, &options, threads, where, x)
                                             : solve(d, &options, threads, where, x);
    Py_DECREF((PyObject *)x);
    return answer;
}

/* Read kind, step and gain, the operands of a step, and those and the scale of its products; 0, or
 * -1 with an exception. */
static int
read_step(PyObject *step, ps_step *s, double *scale, PyObject **extras)
{
    for (int k = 0; k < EXTRAS; k++) {
        extras[k] = Py_None;
    }
    *scale = 0;
    return PyArg_ParseTuple(step, "idd|OOOOOO(OOOOO)d:step", &s->kind, &s->step, &s->gain,
                            &extras[SOURCE], &extras[WHERE], &extras[ENDS],
                            &extras[ENDS + 1], &extras[ENDS + 2], &extras[ENDS + 3],
                            &extras[OF_PRODUCTS], &extras[OF_PRODUCTS + 1],
                            &extras[OF_PRODUCTS + 2], &extras[OF_PRODUCTS + 3],
                            &extras[OF_PRODUCTS + 4], scale)
               ? 0
               : -1;
}

/* Solve, or make the step *s, for arguments as those of tridiag_direct(). */
static PyObject *
solve_arguments(PyObject *const *args, const place *where, matrix_form form,
                const ps_step *s, double scale, PyObject *const *extras)
{
    ps_report report = {0};
    direct d = {.p.on_device = ps_backend_get()->memory == PS_DEVICE,
                .form = form,
                .s = *s,
                .products.scale = scale,
                .report = where->reports ? &report : NULL};

    memcpy(d.extras, extras, sizeof d.extras);
    PyObject *const answer = solve_plain(&d, args, where);

    for (int k = LOWER; k <= UPPER; k++) {
        Py_XDECREF((PyObject *)d.widened[k]);
    }
    return answer;
}

PyObject *
tridiag_direct(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    place where = {.singular = REPORTED};
    matrix_form form = DIAGONALS;
    PyObject *extras[EXTRAS] = {NULL};
    double scale = 0;
    ps_step s = {0};

    if (count != 9 && count != 16 && (count < 12 || count > 14)) {
        return PyErr_Format(PyExc_TypeError,
                            "tridiag_direct: need 9, 12, 13, 14 or 16 arguments, got %zd",
                            count);
    }
    if (count >= 14 && args[13] != Py_None &&
        read_step(args[13], &s, &scale, extras) < 0) {
        return NULL;
    }
    if (count >= 13) {
        form = (matrix_form)PyLong_AsLong(args[12]);
    }
    if (count >= 12) {
        where = (place){.device = (int)PyLong_AsLong(args[9]),
                        .singular = (int)PyLong_AsLong(args[11]),
                        .stream = PyLong_AsUnsignedLongLong(args[10])};
    }
    if (count == 16) {
        where.method = (ps_method)PyLong_AsLong(args[14]);
        where.reports = PyObject_IsTrue(args[15]);
    }
    if (PyErr_Occurred()) {
        return NULL;
    }
    return solve_arguments(args, &where, form, &s, scale, extras);
}

PyObject *
tridiag_borrowed(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    PyObject *operands[EXTRAS + INPUTS];
    double scale = 0;
    ps_step s = {0};
    borrowed l;

    if (count != 12 && count != 13) {
        return PyErr_Format(PyExc_TypeError,
                            "tridiag_borrowed: need 12 or 13 arguments, got %zd", count);
    }
    if (count == 13 && read_step(args[12], &s, &scale, operands) < 0) {
        return NULL;
    }
    const int extras = count == 13 ? EXTRAS : 0, all = extras + INPUTS;

    memcpy(operands + extras, args, INPUTS * sizeof *operands);
    const int device = (int)PyLong_AsLong(args[9]);
    const int singular = (int)PyLong_AsLong(args[10]);

    if (PyErr_Occurred()) {
        return NULL;
    }
    const int taken = borrowed_begin(&l, operands, all, args[5], device, args[11]);
    PyObject *answer = NULL;

    if (taken > 0) {
        PyObject *const *const own = l.arrays + extras;
        PyObject *const given[] = {own[LOWER],  own[DIAG], own[UPPER], own[RHS], args[4],
                                   own[INPUTS], args[6],   args[7],    args[8]};
        const place where = {
            .device = l.device, .singular = singular, .stream = l.stream};

        answer = borrowed_answer(
            &l, solve_arguments(given, &where, DIAGONALS, &s, scale, l.arrays));
    }
    else if (taken == 0) {
        answer = Py_NewRef(Py_NotImplemented);
    }
    borrowed_end(&l);
    return answer;
}
