/* direct.c - tridiag_direct(): the calls of solve_tridiagonal that need no planning.
 *
 * Python converts, broadcasts and plans the operands of a call, which takes 50 us and
 * more. Most calls with small systems have operands that are used as they are: arrays of
 * one dtype and shape, vectors along the last axis, and numbers. These are checked here,
 * in about 1 us. Every other call, also every call with an error in its arguments, is
 * left to Python, which has the rules and the messages. Operands on a device are arrays
 * from borrow(); none of them can be a number, and `out` must be given.
 */
#include "binding.h"
#include "call.h"
#include "operand.h"
#include "tridiag.h"

#include <float.h>
#include <math.h>

enum { LOWER, DIAG, UPPER, RHS, INPUTS };

/* Systems whose info needs no allocation. */
enum { FEW_SYSTEMS = 256 };

/* How the dtypes of a call are used. A real matrix with complex right-hand sides (PAIRS)
 * solves for real and imaginary parts: the two form the inner batch axis, over which the
 * matrix is shared. If all systems share the matrix and have contiguous rows (WIDENED),
 * complex copies of the diagonals cost less than access to every second element. */
typedef enum { ONE_TYPE, PAIRS, WIDENED } type_use;

typedef struct {
    int type, axis, axes; /* type number of NumPy, axis of the systems, number of axes */
    int matrix_type;      /* type number of the diagonals that are arrays */
    int on_device; /* the elements of arrays cannot be read here, and numbers not there */
    type_use use;
    npy_intp rows, systems;
    uint32_t flags;
    ps_tridiag t;
    double numbers[INPUTS][2];      /* operands that are numbers, in their dtype */
    PyArrayObject *widened[INPUTS]; /* complex copies of diagonals; owned */
} direct;

static int
is_number(PyObject *object)
{
    return PyFloat_Check(object) || PyLong_CheckExact(object);
}

/* An exact ndarray of the type that can be read as it is; null if it is not. */
static PyArrayObject *
plain_array(PyObject *object, int type)
{
    if (!PyArray_CheckExact(object) || PyArray_TYPE((PyArrayObject *)object) != type ||
        !PyArray_ISBEHAVED_RO((PyArrayObject *)object)) {
        return NULL;
    }
    return (PyArrayObject *)object;
}

/* Strides of an array with all axes: up to two axes of any strides, or more in C order
 * with the systems along the first or the last one. */
static int
strides_of(const direct *d, const PyArrayObject *array, ps_stride *stride)
{
    *stride = (ps_stride){0, 0, 0};
    if (d->axes <= 2) {
        return operand_stride(array, d->axis, &stride->row) &&
               (d->axes == 1 || operand_stride(array, 1 - d->axis, &stride->inner));
    }
    if (!PyArray_IS_C_CONTIGUOUS(array)) {
        return 0;
    }
    const int last = d->axis == d->axes - 1;

    stride->row = last ? 1 : d->systems;
    stride->inner = last ? PyArray_DIM(array, d->axis) : 1;
    return last || d->axis == 0;
}

/* Whether the array has the shape of the right-hand side, but for `rows` along the axis
 * of the systems. */
static int
has_shape(const direct *d, const PyArrayObject *array, const PyArrayObject *rhs,
          npy_intp rows)
{
    int same = PyArray_NDIM(array) == d->axes && PyArray_DIM(array, d->axis) == rows;

    for (int k = 0; same && k < d->axes; k++) {
        same = k == d->axis || PyArray_DIM(array, k) == PyArray_DIM(rhs, k);
    }
    return same;
}

/* A number as the only element of an operand; 0 if the dtype cannot represent it, or if
 * the number, a float64 of NumPy, has a say in the dtype. */
static int
read_number(direct *d, PyObject *object, int which, ps_input *input)
{
    const double value =
        PyFloat_Check(object) ? PyFloat_AS_DOUBLE(object) : (double)PyLong_AsLong(object);
    const int is_single = d->type == NPY_FLOAT || d->type == NPY_CFLOAT;

    if (is_single && PyFloat_Check(object) && !PyFloat_CheckExact(object)) {
        return 0;
    }
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    if (!isfinite(value) || (is_single && fabs(value) > (double)FLT_MAX)) {
        return 0;
    }
    if (is_single) {
        const float single[2] = {(float)value, 0};

        memcpy(d->numbers[which], single, sizeof single);
    }
    else {
        d->numbers[which][0] = value;
        d->numbers[which][1] = 0;
    }
    *input = (ps_input){d->numbers[which], {0, 0, 0}};
    return 1;
}

/* One diagonal. Returns 0 if it is not a plain case. */
static int
read_diagonal(direct *d, PyObject *object, const PyArrayObject *rhs, int which,
              ps_input *input)
{
    if (is_number(object)) {
        return !d->on_device && read_number(d, object, which, input);
    }
    PyArrayObject *array = plain_array(object, d->matrix_type);

    if (array == NULL || PyArray_NDIM(array) == 0) {
        return 0;
    }
    const int is_vector = PyArray_NDIM(array) == 1;
    const npy_intp length = is_vector                        ? PyArray_DIM(array, 0)
                            : PyArray_NDIM(array) == d->axes ? PyArray_DIM(array, d->axis)
                                                             : -1;
    const int is_short =
        which != DIAG && !(d->flags & PS_PERIODIC) && length == d->rows - 1 && length > 1;

    if (length != d->rows && !is_short) {
        return 0;
    }
    if (is_short) {
        d->flags |= which == LOWER ? PS_SHORT_LOWER : PS_SHORT_UPPER;
    }
    if (d->use == WIDENED) {
        if (d->on_device) {
            return 0;
        }
        array = (PyArrayObject *)PyArray_Cast(array, d->type);
        if (array == NULL) {
            return 0;
        }
        d->widened[which] = array;
    }
    input->data = PyArray_DATA(array);
    if (has_shape(d, array, rhs, length)) {
        return strides_of(d, array, &input->stride);
    }
    input->stride = (ps_stride){0, 0, 0};
    return is_vector && operand_stride(array, 0, &input->stride.row);
}

/* First byte and end of the memory of an array. */
static void
extent_of(const PyArrayObject *array, const char **begin, const char **end)
{
    *begin = *end = PyArray_DATA(array);
    for (int k = 0; k < PyArray_NDIM(array); k++) {
        const npy_intp span = (PyArray_DIM(array, k) - 1) * PyArray_STRIDE(array, k);

        *(span < 0 ? begin : end) += span;
    }
    *end += PyArray_ITEMSIZE(array);
}

static int
may_overlap(const PyArrayObject *a, const PyArrayObject *b)
{
    const char *first, *first_end, *second, *second_end;

    extent_of(a, &first, &first_end);
    extent_of(b, &second, &second_end);
    return first < second_end && second < first_end;
}

/* The array for the result, a new reference: `out`, or a new array for None; null without
 * an exception if `out` is not a plain case. */
static PyArrayObject *
result_of(const direct *d, PyObject *out, PyObject *const *inputs)
{
    PyArrayObject *const rhs = (PyArrayObject *)inputs[RHS];

    if (out == Py_None) {
        if (d->on_device) {
            return NULL;
        }
        return (PyArrayObject *)PyArray_NewLikeArray(rhs, NPY_KEEPORDER, NULL, 0);
    }
    PyArrayObject *const array = plain_array(out, d->type);

    if (array == NULL || !PyArray_ISWRITEABLE(array) ||
        !(PyArray_IS_C_CONTIGUOUS(array) || PyArray_IS_F_CONTIGUOUS(array)) ||
        !has_shape(d, array, rhs, d->rows)) {
        return NULL;
    }
    for (int k = 0; k < INPUTS; k++) {
        if (inputs[k] != (k == RHS ? out : NULL) && PyArray_Check(inputs[k]) &&
            may_overlap(array, (PyArrayObject *)inputs[k])) {
            return NULL;
        }
    }
    Py_INCREF(out);
    return array;
}

/* The type number of the real and imaginary parts of a dtype. */
static int
real_type(int type)
{
    return type == NPY_CFLOAT ? NPY_FLOAT : type == NPY_CDOUBLE ? NPY_DOUBLE : type;
}

/* Set the types, from the right-hand side, whose strides have been read, and the
 * diagonals. */
static void
choose_types(direct *d, PyObject *const *inputs)
{
    const int real = real_type(d->type);
    int is_shared = d->systems > 1;

    d->use = ONE_TYPE;
    d->matrix_type = d->type;
    if (real == d->type) {
        return;
    }
    for (int k = LOWER; k <= UPPER; k++) {
        if (is_number(inputs[k])) {
            continue;
        }
        if (!PyArray_CheckExact(inputs[k]) ||
            PyArray_TYPE((PyArrayObject *)inputs[k]) != real) {
            return;
        }
        is_shared = is_shared && PyArray_NDIM((PyArrayObject *)inputs[k]) == 1;
    }
    d->matrix_type = real;
    d->use = is_shared && d->t.rhs.stride.row == 1 ? WIDENED : PAIRS;
}

/* Turn a batch of complex systems, which the right-hand sides and solutions describe,
 * into one of real systems. */
static void
divide_into_pairs(ps_tridiag *t)
{
    ps_stride *const sides[] = {&t->rhs.stride, &t->x.stride};
    ps_stride *const matrix[] = {&t->lower.stride, &t->diag.stride, &t->upper.stride};

    for (int k = 0; k < 2; k++) {
        *sides[k] = (ps_stride){2 * sides[k]->row, 2 * sides[k]->inner, 1};
    }
    for (int k = 0; k < 3; k++) {
        *matrix[k] = (ps_stride){matrix[k]->row, matrix[k]->inner, 0};
    }
    t->dtype = t->dtype == PS_C64 ? PS_F32 : PS_F64;
    t->outer = t->inner;
    t->inner = 2;
}

/* Read the operands. Returns 0 if the call is not a plain case. */
static int
read_operands(direct *d, PyObject *const *inputs, PyObject *axis)
{
    PyObject *const object = inputs[RHS];

    if (!PyArray_CheckExact(object) ||
        !operand_dtype(PyArray_TYPE((PyArrayObject *)object), &d->t.dtype)) {
        return 0;
    }
    d->type = PyArray_TYPE((PyArrayObject *)object);
    PyArrayObject *const rhs = plain_array(object, d->type);

    if (rhs == NULL || PyArray_NDIM(rhs) == 0 || PyArray_SIZE(rhs) == 0 ||
        !PyLong_CheckExact(axis)) {
        return 0;
    }
    const long number = PyLong_AsLong(axis);

    d->axes = PyArray_NDIM(rhs);
    if (PyErr_Occurred() || number < -d->axes || number >= d->axes) {
        PyErr_Clear();
        return 0;
    }
    d->axis = (int)(number < 0 ? number + d->axes : number);
    d->rows = PyArray_DIM(rhs, d->axis);
    d->systems = PyArray_SIZE(rhs) / d->rows;
    if (d->rows >= INT32_MAX) {
        return 0;
    }
    d->t.rhs.data = PyArray_DATA(rhs);
    if (!strides_of(d, rhs, &d->t.rhs.stride)) {
        return 0;
    }
    choose_types(d, inputs);
    return read_diagonal(d, inputs[LOWER], rhs, LOWER, &d->t.lower) &&
           read_diagonal(d, inputs[DIAG], rhs, DIAG, &d->t.diag) &&
           read_diagonal(d, inputs[UPPER], rhs, UPPER, &d->t.upper);
}

/* The options; 0 if one of them is not what Python allows. */
static int
read_options(PyObject *pivot, PyObject *periodic, PyObject *threads, direct *d,
             ps_options *options, int *count)
{
    const long number = threads == Py_None ? 0 : PyLong_AsLong(threads);
    const int is_count = threads == Py_None ||
                         (PyLong_CheckExact(threads) && number >= 1 && number <= 1 << 15);

    PyErr_Clear();
    *options = (ps_options){.method = PS_AUTO,
                            .pivot = pivot == Py_None   ? PS_PIVOT_AUTO
                                     : pivot == Py_True ? PS_PIVOT_ALWAYS
                                                        : PS_PIVOT_NEVER};
    *count = (int)number;
    d->flags = periodic == Py_True ? PS_PERIODIC : 0;
    return is_count && (periodic == Py_True || periodic == Py_False) &&
           (pivot == Py_None || pivot == Py_True || pivot == Py_False);
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

/* Where a call runs, and whether it reports singular systems. */
typedef struct {
    int device, asks;
    unsigned long long stream;
} place;

/* Solve, the numbers of `count` systems in `info`, in the memory of the backend, or in
 * no memory if it is null; 0, or -1 with an exception. */
static int
run(direct *d, const ps_options *options, int threads, const place *where, int32_t *info,
    ps_status *status)
{
    ps_report report = {0};
    call c;

    d->t.info = info;
    return call_begin(&c, threads, where->device, where->stream) < 0
               ? -1
               : tridiag_run(&d->t, options, 0, &c, status, &report);
}

/* The same with `info` in host memory: waits for a device. */
static int
run_and_read(direct *d, const ps_options *options, int threads, const place *where,
             int32_t *info, npy_intp count, ps_status *status)
{
    const ps_backend *const backend = ps_backend_get();
    const size_t bytes = (size_t)count * sizeof *info;
    block there;
    call c;

    if (backend->memory == PS_HOST) {
        return run(d, options, threads, where, info, status);
    }
    if (call_begin(&c, threads, where->device, where->stream) < 0 ||
        block_allocate(bytes, FOR_STREAM, &c.exec, &there) < 0) {
        return -1;
    }
    int raised = run(d, options, threads, where, there.data, status);

    if (raised == 0 && *status == PS_OK) {
        call_enter(&c);
        *status = backend->download(info, there.data, bytes, &c.exec);
        raised = call_leave(&c);
    }
    block_free(&there);
    return raised;
}

static PyObject *
solve(direct *d, const ps_options *options, int threads, const place *where,
      PyArrayObject *x)
{
    const npy_intp parts = d->use == PAIRS ? 2 : 1, count = d->systems * parts;
    int32_t few[FEW_SYSTEMS] = {0}, *info = few;
    ps_status status = PS_OK;
    PyObject *answer = NULL;
    npy_intp failed = 0;

    if (!where->asks) {
        return run(d, options, threads, where, NULL, &status) < 0 ? NULL
               : status != PS_OK ? PyLong_FromLong((long)status)
                                 : Py_NewRef((PyObject *)x);
    }
    if (count > FEW_SYSTEMS) {
        info = PyMem_RawCalloc((size_t)count, sizeof *info);
        if (info == NULL) {
            return PyErr_NoMemory();
        }
    }
    if (run_and_read(d, options, threads, where, info, count, &status) == 0) {
        for (npy_intp k = 0; k < count; k++) {
            failed += info[k] != 0;
        }
        answer = status != PS_OK ? PyLong_FromLong((long)status)
                 : failed > 0    ? Py_BuildValue("(ON)", (PyObject *)x,
                                                 info_array(info, d->systems, parts))
                                 : Py_NewRef((PyObject *)x);
    }
    if (info != few) {
        PyMem_RawFree(info);
    }
    return answer;
}

/* Solve, or return NotImplemented. */
static PyObject *
solve_plain(direct *d, PyObject *const *args, const place *where)
{
    ps_options options;
    int threads;

    if (!read_options(args[6], args[7], args[8], d, &options, &threads) ||
        !read_operands(d, args, args[4])) {
        if (PyErr_Occurred()) {
            return NULL;
        }
        Py_RETURN_NOTIMPLEMENTED;
    }
    PyArrayObject *const x = result_of(d, args[5], args);

    if (x == NULL || !strides_of(d, x, &d->t.x.stride)) {
        Py_XDECREF((PyObject *)x);
        if (PyErr_Occurred()) {
            return NULL;
        }
        Py_RETURN_NOTIMPLEMENTED;
    }
    d->t.x.data = PyArray_DATA(x);
    d->t.flags = d->flags;
    d->t.rows = d->rows;
    d->t.outer = 1;
    d->t.inner = d->systems;
    if (d->use == PAIRS) {
        divide_into_pairs(&d->t);
    }
    PyObject *const answer = solve(d, &options, threads, where, x);
    Py_DECREF((PyObject *)x);
    return answer;
}

PyObject *
tridiag_direct(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    direct d = {0};

    place where = {.asks = 1};

    if (count != 9 && count != 12) {
        return PyErr_Format(PyExc_TypeError,
                            "tridiag_direct: need 9 or 12 arguments, got %zd", count);
    }
    if (count == 12) {
        where = (place){(int)PyLong_AsLong(args[9]), PyObject_IsTrue(args[11]),
                        PyLong_AsUnsignedLongLong(args[10])};
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    PyObject *const answer = solve_plain(&d, args, &where);

    for (int k = LOWER; k <= UPPER; k++) {
        Py_XDECREF((PyObject *)d.widened[k]);
    }
    return answer;
}
