/* plain.c - arrays that a call can use as they are, without planning in Python. */
#include "plain.h"

#include "operand.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Bytes of right-hand sides up to which two passes over every second number cost less
 * than contiguous copies of both parts: with systems of 64 complex128 along the middle
 * axis, 34 and 171 us for 8 x 16 of them (128 KB), 267 and 422 us for 32 x 32 (1 MB), 765
 * and 747 us for 32 x 62. */
enum { SMALL_BYTES = 1 << 20 };

PyArrayObject *
plain_array(PyObject *object, int type)
{
    if (!PyArray_CheckExact(object) || PyArray_TYPE((PyArrayObject *)object) != type ||
        !PyArray_ISBEHAVED_RO((PyArrayObject *)object)) {
        return NULL;
    }
    return (PyArrayObject *)object;
}

PyArrayObject *
plain_sides(plain *p, PyObject *object, PyObject *axis)
{
    ps_dtype dtype;

    if (!PyArray_CheckExact(object) || !PyLong_CheckExact(axis) ||
        !operand_dtype(PyArray_TYPE((PyArrayObject *)object), &dtype)) {
        return NULL;
    }
    p->type = PyArray_TYPE((PyArrayObject *)object);
    PyArrayObject *const rhs = plain_array(object, p->type);

    if (rhs == NULL || PyArray_NDIM(rhs) == 0 || PyArray_SIZE(rhs) == 0) {
        return NULL;
    }
    const long number = PyLong_AsLong(axis);

    p->axes = PyArray_NDIM(rhs);
    if (PyErr_Occurred() || number < -p->axes || number >= p->axes) {
        PyErr_Clear();
        return NULL;
    }
    p->axis = (int)(number < 0 ? number + p->axes : number);
    p->rows = PyArray_DIM(rhs, p->axis);
    p->outer = p->inner = 1;
    for (int k = 0; k < p->axes; k++) {
        *(k < p->axis ? &p->outer : &p->inner) *= k == p->axis ? 1 : PyArray_DIM(rhs, k);
    }
    if (p->axis == p->axes - 1) {
        p->inner = p->outer;
        p->outer = 1;
    }
    return p->rows < INT32_MAX ? rhs : NULL;
}

int
plain_is_number(PyObject *object)
{
    return PyFloat_Check(object) || PyLong_CheckExact(object);
}

typedef struct {
    double from;
    float to;
} rounding;

static void
round_to_single(void *self)
{
    rounding *const r = self;

    r->to = (float)r->from;
}

/* The nearest float, whatever the floating-point mode of the thread is. */
static float
to_single(const plain *p, double value)
{
    rounding r = {.from = value, .to = (float)value};
    const int is_exact = (double)r.to == value && fabs(value) >= (double)FLT_MIN;

    if (!is_exact && !p->on_device) {
        ps_backend_get()->in_default_fp_mode(round_to_single, &r);
    }
    return r.to;
}

int
plain_number(const plain *p, PyObject *object, double number[2], ps_input *in)
{
    const double value =
        PyFloat_Check(object) ? PyFloat_AS_DOUBLE(object) : (double)PyLong_AsLong(object);
    const int is_single = p->type == NPY_FLOAT || p->type == NPY_CFLOAT;

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
        const float single[2] = {to_single(p, value), 0};

        memcpy(number, single, sizeof single);
    }
    else {
        number[0] = value;
        number[1] = 0;
    }
    *in = (ps_input){number, {0, 0, 0}};
    return 1;
}

int
plain_input(const plain *p, PyObject *object, const PyArrayObject *rhs, int least,
            double number[2], ps_input *in, int *lacks)
{
    *lacks = 0;
    if (plain_is_number(object)) {
        return plain_number(p, object, number, in);
    }
    PyArrayObject *const array = plain_array(object, p->type);

    if (array == NULL || PyArray_NDIM(array) == 0) {
        return 0;
    }
    const int is_vector = PyArray_NDIM(array) == 1;
    const npy_intp length = is_vector                        ? PyArray_DIM(array, 0)
                            : PyArray_NDIM(array) == p->axes ? PyArray_DIM(array, p->axis)
                                                             : -1;

    *lacks = least > 0 && length > 1 && length == p->rows - least ? least : 0;
    if (length != p->rows - *lacks) {
        return 0;
    }
    in->data = PyArray_DATA(array);
    if (plain_shape(p, array, rhs, length)) {
        return plain_stride(p, array, &in->stride);
    }
    in->stride = (ps_stride){0, 0, 0};
    return is_vector && operand_stride(array, 0, &in->stride.row);
}

int
plain_column(const plain *p, PyObject *object, const PyArrayObject *rhs, double number[2],
             ps_input *in)
{
    *in = (ps_input){0};
    if (object == Py_None) {
        return 1;
    }
    if (plain_is_number(object)) {
        return plain_number(p, object, number, in);
    }
    PyArrayObject *const array = plain_array(object, p->type);

    if (array == NULL || p->axes < 2 || PyArray_NDIM(array) != p->axes - 1) {
        return 0;
    }
    for (int k = 0; k < p->axes - 1; k++) {
        if (PyArray_DIM(array, k) != PyArray_DIM(rhs, k + (k >= p->axis))) {
            return 0;
        }
    }
    in->data = PyArray_DATA(array);
    if (p->axes == 2) {
        return operand_stride(array, 0, &in->stride.inner);
    }
    in->stride = (ps_stride){.outer = p->outer > 1 ? p->inner : 0, .inner = 1};
    return PyArray_IS_C_CONTIGUOUS(array);
}

int
plain_mask(const plain *p, PyObject *object, const PyArrayObject *rhs, ps_mask *mask)
{
    *mask = (ps_mask){0};
    if (object == Py_None) {
        return 1;
    }
    PyArrayObject *const array = plain_array(object, NPY_BOOL);

    if (array == NULL) {
        return 0;
    }
    mask->data = PyArray_DATA(array);
    if (plain_shape(p, array, rhs, p->rows)) {
        return plain_stride(p, array, &mask->stride);
    }
    return PyArray_NDIM(array) == 1 && PyArray_DIM(array, 0) == p->rows &&
           operand_stride(array, 0, &mask->stride.row);
}

int
plain_threads(PyObject *threads, int *count)
{
    const long number = threads == Py_None ? 0 : PyLong_AsLong(threads);

    PyErr_Clear();
    *count = (int)number;
    return threads == Py_None ||
           (PyLong_CheckExact(threads) && number >= 1 && number <= 1 << 15);
}

int
plain_stride(const plain *p, const PyArrayObject *array, ps_stride *stride)
{
    *stride = (ps_stride){0, 0, 0};
    if (p->axes <= 2) {
        return operand_stride(array, p->axis, &stride->row) &&
               (p->axes == 1 || operand_stride(array, 1 - p->axis, &stride->inner));
    }
    if (!PyArray_IS_C_CONTIGUOUS(array)) {
        return 0;
    }
    const npy_intp rows = PyArray_DIM(array, p->axis);

    *stride = p->axis == p->axes - 1 ? (ps_stride){.row = 1, .inner = rows}
                                     : (ps_stride){.row = p->inner, .inner = 1};
    stride->outer = p->outer > 1 ? rows * p->inner : 0;
    return 1;
}

int
plain_shape(const plain *p, const PyArrayObject *array, const PyArrayObject *rhs,
            npy_intp rows)
{
    const int lacks = PyArray_NDIM(rhs) - p->axes;
    int same = PyArray_NDIM(array) == p->axes && PyArray_DIM(array, p->axis) == rows;

    for (int k = 0; same && k < p->axes; k++) {
        same = k == p->axis || PyArray_DIM(array, k) == PyArray_DIM(rhs, lacks + k);
    }
    return same;
}

int
plain_matrices(const plain *p, const PyArrayObject *rhs, int axes, plain *matrices)
{
    const int lacks = p->axes - axes;

    *matrices = *p;
    if (lacks == 0) {
        return 1;
    }
    if (axes < 2 || lacks < 0 || (p->axis != lacks && p->axis != p->axes - 1)) {
        return 0;
    }
    matrices->axes = axes;
    matrices->axis = p->axis - lacks;
    matrices->inner = p->outer * p->inner;
    matrices->outer = 1;
    for (int k = 0; k < lacks; k++) {
        matrices->inner /= PyArray_DIM(rhs, k);
    }
    return 1;
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

/* Whether two arrays of one dtype have the same elements at the same indices. */
static int
is_same(const PyArrayObject *a, const PyArrayObject *b)
{
    int same = PyArray_DATA(a) == PyArray_DATA(b) && PyArray_NDIM(a) == PyArray_NDIM(b);

    for (int k = 0; same && k < PyArray_NDIM(a); k++) {
        same = PyArray_DIM(a, k) == PyArray_DIM(b, k) &&
               (PyArray_DIM(a, k) == 1 || PyArray_STRIDE(a, k) == PyArray_STRIDE(b, k));
    }
    return same;
}

PyArrayObject *
plain_result(const plain *p, PyObject *out, PyObject *const *inputs, int count)
{
    PyArrayObject *const rhs = (PyArrayObject *)inputs[count - 1];

    if (out == Py_None) {
        return p->on_device
                   ? NULL
                   : (PyArrayObject *)PyArray_NewLikeArray(rhs, NPY_KEEPORDER, NULL, 0);
    }
    PyArrayObject *const array = plain_array(out, p->type);

    if (array == NULL || !PyArray_ISWRITEABLE(array) ||
        !(PyArray_IS_C_CONTIGUOUS(array) || PyArray_IS_F_CONTIGUOUS(array)) ||
        !plain_shape(p, array, rhs, p->rows)) {
        return NULL;
    }
    for (int k = 0; k < count; k++) {
        if (PyArray_Check(inputs[k]) && may_overlap(array, (PyArrayObject *)inputs[k]) &&
            !(k == count - 1 && is_same(array, rhs))) {
            return NULL;
        }
    }
    Py_INCREF(out);
    return array;
}

int
plain_real(int type)
{
    return type == NPY_CFLOAT ? NPY_FLOAT : type == NPY_CDOUBLE ? NPY_DOUBLE : type;
}

void
plain_divide(const plain *p, ps_stride *s)
{
    *s = p->outer > 1 ? (ps_stride){.row = 2 * s->row, .outer = 2 * s->outer, .inner = 1}
                      : (ps_stride){.row = 2 * s->row, .outer = 2 * s->inner, .inner = 1};
}

void
plain_split(ps_stride *s)
{
    *s = (ps_stride){.row = 2 * s->row, .outer = 2 * s->outer, .inner = 2 * s->inner};
}

int
plain_is_small(const PyArrayObject *sides)
{
    return PyArray_NBYTES(sides) <= SMALL_BYTES;
}
