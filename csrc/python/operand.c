/* operand.c - NumPy arrays as operands of the contract. */
#include "operand.h"

enum { OUTER, INNER, ROWS, AXES };

int
operand_dtype(int type, ps_dtype *dtype)
{
    switch (type) {
    case NPY_FLOAT:
        *dtype = PS_F32;
        return 1;
    case NPY_DOUBLE:
        *dtype = PS_F64;
        return 1;
    case NPY_CFLOAT:
        *dtype = PS_C64;
        return 1;
    case NPY_CDOUBLE:
        *dtype = PS_C128;
        return 1;
    default:
        return 0;
    }
}

int
operand_stride(const PyArrayObject *array, int axis, int64_t *stride)
{
    const npy_intp size = PyArray_ITEMSIZE(array);
    const npy_intp bytes = PyArray_DIM(array, axis) > 1 ? PyArray_STRIDE(array, axis) : 0;

    *stride = bytes / size;
    return bytes % size == 0;
}

static int
dtype_of(const PyArrayObject *array, const char *name, ps_dtype *dtype)
{
    if (operand_dtype(PyArray_TYPE(array), dtype)) {
        return 0;
    }
    PyErr_Format(PyExc_TypeError,
                 "%s: need float32, float64, complex64 or complex128, got %R", name,
                 (PyObject *)PyArray_DESCR(array));
    return -1;
}

static int
stride_of(const PyArrayObject *array, const char *name, int axis, int64_t *stride)
{
    if (operand_stride(array, axis, stride)) {
        return 0;
    }
    PyErr_Format(PyExc_ValueError,
                 "%s: the stride of axis %d must be a multiple of %zd bytes, got %zd",
                 name, axis, (Py_ssize_t)PyArray_ITEMSIZE(array),
                 (Py_ssize_t)PyArray_STRIDE(array, axis));
    return -1;
}

int
operand_read(PyObject *object, const char *name, operand *op)
{
    if (!PyArray_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s: need an ndarray, got %s", name,
                     Py_TYPE(object)->tp_name);
        return -1;
    }

    PyArrayObject *const array = (PyArrayObject *)object;
    if (PyArray_NDIM(array) != AXES) {
        PyErr_Format(PyExc_ValueError, "%s: need %d axes (outer, inner, rows), got %d",
                     name, AXES, PyArray_NDIM(array));
        return -1;
    }
    if (dtype_of(array, name, &op->dtype) < 0) {
        return -1;
    }
    if (!PyArray_ISBEHAVED_RO(array)) {
        PyErr_Format(PyExc_ValueError, "%s: need aligned values in native byte order",
                     name);
        return -1;
    }
    if (ps_backend_get()->memory == PS_DEVICE && PyArray_SIZE(array) > 0 &&
        (uintptr_t)PyArray_DATA(array) % (size_t)PyArray_ITEMSIZE(array) != 0) {
        PyErr_Format(PyExc_ValueError, "%s: a device needs values aligned to their size",
                     name);
        return -1;
    }
    op->name = name;
    op->data = PyArray_DATA(array);
    op->outer = PyArray_DIM(array, OUTER);
    op->inner = PyArray_DIM(array, INNER);
    op->rows = PyArray_DIM(array, ROWS);
    if (stride_of(array, name, OUTER, &op->stride.outer) < 0 ||
        stride_of(array, name, INNER, &op->stride.inner) < 0) {
        return -1;
    }
    return stride_of(array, name, ROWS, &op->stride.row);
}

int
operand_write(PyObject *object, const char *name, operand *op)
{
    if (operand_read(object, name, op) < 0) {
        return -1;
    }
    if (!PyArray_ISWRITEABLE((PyArrayObject *)object)) {
        PyErr_Format(PyExc_ValueError, "%s: the array is read-only", name);
        return -1;
    }
    return 0;
}

int
operand_match(const operand *op, const operand *like, int64_t rows)
{
    if (op->dtype != like->dtype) {
        PyErr_Format(PyExc_TypeError, "%s: the dtype is not the dtype of %s", op->name,
                     like->name);
        return -1;
    }
    if (op->outer != like->outer || op->inner != like->inner || op->rows != rows) {
        PyErr_Format(
            PyExc_ValueError, "%s: need shape (%lld, %lld, %lld), got (%lld, %lld, %lld)",
            op->name, (long long)like->outer, (long long)like->inner, (long long)rows,
            (long long)op->outer, (long long)op->inner, (long long)op->rows);
        return -1;
    }
    return 0;
}

int
operand_optional(PyObject *array, const char *name, const operand *like, int64_t rows,
                 ps_input *in)
{
    operand op;

    *in = (ps_input){0};
    if (array == Py_None) {
        return 0;
    }
    if (operand_read(array, name, &op) < 0 || operand_match(&op, like, rows) < 0) {
        return -1;
    }
    *in = operand_input(&op);
    return 0;
}

int
operand_matrix(uint32_t flags, PyObject *lower, PyObject *diag, PyObject *upper,
               ps_tridiag *t)
{
    operand l, d, u;

    if (operand_read(diag, "diag", &d) < 0 || operand_read(lower, "lower", &l) < 0 ||
        operand_read(upper, "upper", &u) < 0 ||
        operand_match(&l, &d, d.rows - !!(flags & PS_SHORT_LOWER)) < 0 ||
        operand_match(&u, &d, d.rows - !!(flags & PS_SHORT_UPPER)) < 0) {
        return -1;
    }
    t->dtype = d.dtype;
    t->flags = flags;
    t->rows = d.rows;
    t->outer = d.outer;
    t->inner = d.inner;
    t->lower = operand_input(&l);
    t->diag = operand_input(&d);
    t->upper = operand_input(&u);
    return 0;
}

PyArrayObject *
operand_block(PyObject *object, const char *name, int type, int writes)
{
    if (!PyArray_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s: need an ndarray, got %s", name,
                     Py_TYPE(object)->tp_name);
        return NULL;
    }

    PyArrayObject *const array = (PyArrayObject *)object;
    if (PyArray_TYPE(array) != type || !PyArray_ISCARRAY_RO(array) ||
        (writes && !PyArray_ISWRITEABLE(array))) {
        PyArray_Descr *const wanted = PyArray_DescrFromType(type);

        PyErr_Format(PyExc_TypeError, "%s: need %S in C order and native bytes%s", name,
                     (PyObject *)wanted, writes ? ", writeable" : "");
        Py_XDECREF(wanted);
        return NULL;
    }
    return array;
}

int
operand_info(PyObject *object, int64_t systems, int32_t **info)
{
    if (object == Py_None) {
        *info = NULL;
        return 0;
    }
    if (!PyArray_Check(object)) {
        PyErr_Format(PyExc_TypeError, "info: need an ndarray or None, got %s",
                     Py_TYPE(object)->tp_name);
        return -1;
    }

    PyArrayObject *const array = (PyArrayObject *)object;
    if (PyArray_TYPE(array) != NPY_INT32 || !PyArray_ISCARRAY(array) ||
        PyArray_SIZE(array) != systems) {
        PyErr_Format(PyExc_ValueError,
                     "info: need %lld contiguous, writeable values of int32",
                     (long long)systems);
        return -1;
    }
    *info = PyArray_DATA(array);
    return 0;
}

int
operand_made(PyObject *object, int64_t **made)
{
    if (!PyArray_Check(object) || PyArray_TYPE((PyArrayObject *)object) != NPY_INT64 ||
        !PyArray_ISCARRAY((PyArrayObject *)object) ||
        PyArray_SIZE((PyArrayObject *)object) != 1) {
        PyErr_SetString(PyExc_TypeError, "made: need one writeable int64");
        return -1;
    }
    *made = PyArray_DATA((PyArrayObject *)object);
    return 0;
}
