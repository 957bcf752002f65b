/* rates.c - rates of equations on boxes: parse, borrow, compute without the GIL. */
#include "rates.h"

#include "call.h"
#include "operand.h"
#include "ps_numbers.h"

/* Borrow a field of the shape of u; null for None. */
static int
read_field(PyObject *object, const char *name, const PyArrayObject *like, int writes,
           void **data)
{
    *data = NULL;
    if (object == Py_None) {
        return 0;
    }
    PyArrayObject *const array =
        operand_block(object, name, PyArray_TYPE((PyArrayObject *)like), writes);

    if (array == NULL) {
        return -1;
    }
    if (PyArray_NDIM(array) != PS_RATES_AXES ||
        !PyArray_CompareLists(PyArray_DIMS(array), PyArray_DIMS((PyArrayObject *)like),
                              PS_RATES_AXES)) {
        PyErr_Format(PyExc_ValueError, "%s: need the shape of u", name);
        return -1;
    }
    *data = PyArray_DATA(array);
    return 0;
}

/* Borrow values that broadcast to the box; none for None. */
static int
read_values(PyObject *object, const char *name, const ps_rates *r, int type,
            ps_rates_input *in)
{
    *in = (ps_rates_input){0};
    if (object == Py_None) {
        return 0;
    }
    if (!PyArray_Check(object) || PyArray_TYPE((PyArrayObject *)object) != type ||
        PyArray_NDIM((PyArrayObject *)object) != PS_RATES_AXES ||
        !PyArray_ISBEHAVED_RO((PyArrayObject *)object)) {
        PyErr_Format(PyExc_TypeError,
                     "%s: need an ndarray (batch, z, y, x) of the dtype of u", name);
        return -1;
    }
    PyArrayObject *const array = (PyArrayObject *)object;

    for (int k = 0; k < PS_RATES_AXES; k++) {
        const npy_intp n = PyArray_DIM(array, k);

        if ((n != 1 && n != r->count[k]) || !operand_stride(array, k, &in->stride[k])) {
            PyErr_Format(PyExc_ValueError, "%s: need 1 or %lld along axis %d, got %lld",
                         name, (long long)r->count[k], k, (long long)n);
            return -1;
        }
    }
    if (in->stride[PS_RATES_AXES - 1] != 0 && in->stride[PS_RATES_AXES - 1] != 1) {
        PyErr_Format(PyExc_ValueError, "%s: need a contiguous last axis", name);
        return -1;
    }
    in->data = PyArray_DATA(array);
    return 0;
}

/* The same for a tuple of `count`; each may be None if `may_be_none`. */
static int
read_tuple(PyObject *tuple, const char *name, const ps_rates *r, int type, int count,
           int may_be_none, ps_rates_input *in)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) {
        PyErr_Format(PyExc_TypeError, "%s: need a tuple of %d", name, count);
        return -1;
    }
    for (int k = 0; k < count; k++) {
        if (read_values(PyTuple_GET_ITEM(tuple, k), name, r, type, &in[k]) < 0) {
            return -1;
        }
        if (in[k].data == NULL && !may_be_none) {
            PyErr_Format(PyExc_TypeError, "%s: need arrays", name);
            return -1;
        }
    }
    return 0;
}

/* Slopes are numbers along all axes but their own: along x they are an array, along the
 * other axes not. */
static int
check_slopes(const ps_rates *r)
{
    for (int axis = 0; axis < r->space; axis++) {
        for (int w = 0; w < 3; w++) {
            if (axis > 0 && r->slope[axis][w].stride[PS_RATES_AXES - 1] != 0) {
                PyErr_SetString(PyExc_ValueError, "slopes: need one number along x");
                return -1;
            }
        }
    }
    return 0;
}

static int
read_all(ps_rates *r, PyObject *const *fields, PyObject *rows, PyObject *slopes,
         PyObject *mixed, PyObject *source, PyObject *extra)
{
    static const char *const names[] = {"u", "d", "out", "second out"};
    const int has_slopes = PyTuple_Check(slopes) && PyTuple_GET_SIZE(slopes) > 0;
    void *data[4];

    if (!PyArray_Check(fields[0]) ||
        PyArray_NDIM((PyArrayObject *)fields[0]) != PS_RATES_AXES ||
        !operand_dtype(PyArray_TYPE((PyArrayObject *)fields[0]), &r->dtype)) {
        PyErr_SetString(PyExc_TypeError, "u: need an ndarray (batch, z, y, x)");
        return -1;
    }
    const PyArrayObject *const u = (const PyArrayObject *)fields[0];
    const int type = PyArray_TYPE(u);

    for (int k = 0; k < 4; k++) {
        if (read_field(fields[k], names[k], u, k >= 2, &data[k]) < 0) {
            return -1;
        }
    }
    r->u = data[0];
    r->d = data[1];
    r->out[0] = data[2];
    r->out[1] = data[3];
    for (int k = 0; k < PS_RATES_AXES; k++) {
        r->size[k] = PyArray_DIM(u, k);
    }
    r->begin[0] = 0;
    r->count[0] = r->size[0];
    if (read_tuple(rows, "rows", r, type, 3 * r->space, 0, r->rows[0]) < 0 ||
        (has_slopes &&
         (read_tuple(slopes, "slopes", r, type, 3 * r->space, 0, r->slope[0]) < 0 ||
          check_slopes(r) < 0)) ||
        read_tuple(mixed, "mixed", r, type, PS_RATES_PAIRS, 1, r->mixed) < 0 ||
        read_values(source, "source", r, type, &r->source) < 0 ||
        read_values(extra, "extra", r, type, &r->extra) < 0) {
        return -1;
    }
    for (int k = 0; k < PS_RATES_PAIRS; k++) {
        const int axes = k == 0 ? 2 : 3;

        if (r->mixed[k].data != NULL && (!has_slopes || r->space < axes)) {
            PyErr_SetString(PyExc_ValueError, "mixed: need slopes of both axes");
            return -1;
        }
    }
    return 0;
}

/* Whether the box lies in the field; its end is off the field, never beyond. */
static int
check_box(const ps_rates *r)
{
    for (int k = 0; k < PS_RATES_AXES; k++) {
        if (r->begin[k] < 0 || r->count[k] < 0 ||
            r->count[k] > r->size[k] - r->begin[k]) {
            PyErr_SetString(PyExc_ValueError, "box: need nodes of the field");
            return -1;
        }
    }
    return 0;
}

static PyObject *
rates(PyObject *Py_UNUSED(module), PyObject *args)
{
    const ps_number_entries *const entries = ps_number_entries_get();
    int threads, device = 0;
    unsigned long long stream = 0;
    long long begin[PS_RATES_SPACE], count[PS_RATES_SPACE];
    PyObject *fields[4], *rows, *slopes, *mixed, *source, *extra;
    ps_rates r = {0};
    call c;

    if (!PyArg_ParseTuple(args, "((ppp)(LLL)(LLL)iOOO)OOOOOO(ddddd)(ddddd)i|iK:rates",
                          &r.periodic[0], &r.periodic[1], &r.periodic[2], &begin[0],
                          &begin[1], &begin[2], &count[0], &count[1], &count[2], &r.space,
                          &rows, &slopes, &mixed, &source, &extra, &fields[0], &fields[1],
                          &fields[2], &fields[3], &r.line[0], &r.part[0], &r.own[0],
                          &r.change[0], &r.base[0], &r.line[1], &r.part[1], &r.own[1],
                          &r.change[1], &r.base[1], &threads, &device, &stream)) {
        return NULL;
    }
    if (r.space < 1 || r.space > PS_RATES_SPACE) {
        PyErr_SetString(PyExc_ValueError, "space: need 1 to 3 axes");
        return NULL;
    }
    for (int k = 0; k < PS_RATES_SPACE; k++) {
        r.begin[k + 1] = begin[k];
        r.count[k + 1] = count[k];
    }
    if (read_all(&r, fields, rows, slopes, mixed, source, extra) < 0 ||
        check_box(&r) < 0) {
        return NULL;
    }
    if (entries->rates == NULL) {
        return PyLong_FromLong(PS_UNSUPPORTED);
    }
    if (call_begin(&c, threads, device, stream) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status = entries->rates(&r, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

PyDoc_STRVAR(rates_doc,
             "rates($module, level, source, extra, u, d, out, second, factors, "
             "second_factors, threads, device=0, stream=0, /)\n--\n\n"
             "Write linear combinations of rates and fields; return status. level: "
             "periodic, begin, count, space, rows, slopes, mixed.");

static PyMethodDef methods[] = {
    {"rates", rates, METH_VARARGS, rates_doc},
    {NULL, NULL, 0, NULL},
};

int
rates_add(PyObject *module)
{
    return PyModule_AddFunctions(module, methods);
}
