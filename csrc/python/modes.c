/* modes.c - products with eigenvectors: parse, borrow, compute without the GIL. */
#include "modes.h"

#include "call.h"
#include "operand.h"
#include "ps_numbers.h"

/* Borrow an array of four axes, and set its strides. */
static PyArrayObject *
read_field(PyObject *object, const char *name, int type, int64_t *stride)
{
    if (!PyArray_Check(object) ||
        PyArray_NDIM((PyArrayObject *)object) != PS_MODES_AXES ||
        (type >= 0 && PyArray_TYPE((PyArrayObject *)object) != type) ||
        !PyArray_ISBEHAVED_RO((PyArrayObject *)object)) {
        PyErr_Format(PyExc_TypeError, "%s: need an ndarray of four axes and one dtype",
                     name);
        return NULL;
    }
    PyArrayObject *const array = (PyArrayObject *)object;

    for (int k = 0; k < PS_MODES_AXES; k++) {
        if (!operand_stride(array, k, &stride[k])) {
            PyErr_Format(PyExc_ValueError, "%s: need strides of whole elements", name);
            return NULL;
        }
    }
    return array;
}

/* Borrow a square matrix; null without an exception for None, if `size` may be missing. */
static int
read_matrix(PyObject *object, const char *name, int type, int64_t size, const void **data)
{
    *data = NULL;
    if (object == Py_None) {
        return 0;
    }
    PyArrayObject *const array = operand_block(object, name, type, 0);

    if (array == NULL) {
        return -1;
    }
    if (PyArray_NDIM(array) != 2 || PyArray_DIM(array, 0) != size ||
        PyArray_DIM(array, 1) != size) {
        PyErr_Format(PyExc_ValueError, "%s: need %lld x %lld entries", name,
                     (long long)size, (long long)size);
        return -1;
    }
    *data = PyArray_DATA(array);
    return 0;
}

static int
read_all(ps_modes *p, PyObject *even, PyObject *odd, PyObject *source, PyObject *target)
{
    PyArrayObject *const from = read_field(source, "source", -1, p->source_stride);

    if (from == NULL) {
        return -1;
    }
    const int type = PyArray_TYPE(from);
    PyArrayObject *const to = read_field(target, "target", type, p->target_stride);

    if (to == NULL) {
        return -1;
    }
    if (!operand_dtype(type, &p->dtype) || !ps_is_real(p->dtype)) {
        PyErr_SetString(PyExc_TypeError, "source: need float32 or float64");
        return -1;
    }
    if (!PyArray_ISWRITEABLE(to) ||
        !PyArray_CompareLists(PyArray_DIMS(from), PyArray_DIMS(to), PS_MODES_AXES)) {
        PyErr_SetString(PyExc_ValueError, "target: need the shape of source, writeable");
        return -1;
    }
    for (int k = 0; k < PS_MODES_AXES; k++) {
        p->size[k] = PyArray_DIM(from, k);
    }
    const int64_t rows = p->size[PS_MODES_ROW];

    if (rows < 1 || rows > PS_MODES_MOST) {
        PyErr_Format(PyExc_ValueError,
                     "source: need 1 to %d values along axis %d, got %lld", PS_MODES_MOST,
                     PS_MODES_ROW, (long long)rows);
        return -1;
    }
    p->source = PyArray_DATA(from);
    p->target = PyArray_DATA(to);
    return read_matrix(even, "even", type, odd == Py_None ? rows : (rows + 1) / 2,
                       &p->even) < 0
               ? -1
               : read_matrix(odd, "odd", type, rows / 2, &p->odd);
}

static PyObject *
modes(PyObject *Py_UNUSED(module), PyObject *args)
{
    const ps_number_entries *const entries = ps_number_entries_get();
    PyObject *even, *odd, *source, *target;
    ps_modes p = {0};
    int threads;
    call c;

    if (!PyArg_ParseTuple(args, "pOOOOi:modes", &p.is_backward, &even, &odd, &source,
                          &target, &threads) ||
        read_all(&p, even, odd, source, target) < 0) {
        return NULL;
    }
    if (entries->modes == NULL) {
        return PyLong_FromLong(PS_UNSUPPORTED);
    }
    if (call_begin(&c, threads, 0, 0) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status = entries->modes(&p, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

PyDoc_STRVAR(
    modes_doc,
    "modes($module, is_backward, even, odd, source, target, threads, /)\n--\n\n"
    "Multiply the vectors along axis 2 of a field of four axes by matrices; return "
    "the status.");

static PyMethodDef methods[] = {
    {"modes", modes, METH_VARARGS, modes_doc},
    {NULL, NULL, 0, NULL},
};

int
modes_add(PyObject *module)
{
    return PyModule_AddFunctions(module, methods);
}
