/* transform.c - the steps of a transform around the one of a library, on a device. */
#include "transform.h"

#include "call.h"
#include "codes.h"
#include "operand.h"
#include "ps_transform.h"

#define PS_TEXT_(name, text) text,
static const char *const kinds[] = {PS_TRANSFORM_LIST(PS_TEXT_)};
#undef PS_TEXT_

static int
read_kind(int kind, long long size)
{
    if (kind < 0 || kind >= PS_TRANSFORM_COUNT || size < 1 || size > INT32_MAX / 8 ||
        (kind == PS_DCT1 && size < 2)) {
        PyErr_Format(PyExc_ValueError, "there is no transform %d of %lld values", kind,
                     size);
        return -1;
    }
    return 0;
}

static PyObject *
transform_shape(PyObject *Py_UNUSED(module), PyObject *args)
{
    int kind;
    long long size;

    if (!PyArg_ParseTuple(args, "iL:transform_shape", &kind, &size) ||
        read_kind(kind, size) < 0) {
        return NULL;
    }
    const ps_transform_shape s = ps_transform_shape_of((ps_transform_kind)kind, size);

    return Py_BuildValue("(iLLLL)", (int)s.form, (long long)s.in, (long long)s.out,
                         (long long)s.length, (long long)s.pitch);
}

/* Call load() or store(): the field has the shape (outer, inner, values), and `bytes` of
 * the lines are available. */
static PyObject *
step(PyObject *args, int loads)
{
    const ps_backend *const backend = ps_backend_get();
    unsigned long long lines, bytes, stream = 0;
    int kind, device = 0;
    long long size;
    double scale;
    PyObject *array;
    operand field;
    call c;

    if (!PyArg_ParseTuple(args, "iLOKKd|iK", &kind, &size, &array, &lines, &bytes, &scale,
                          &device, &stream) ||
        read_kind(kind, size) < 0 ||
        (loads ? operand_read(array, "field", &field)
               : operand_write(array, "field", &field)) < 0) {
        return NULL;
    }
    const ps_transform_shape s = ps_transform_shape_of((ps_transform_kind)kind, size);
    const ps_transform t = {.dtype = field.dtype,
                            .kind = (ps_transform_kind)kind,
                            .size = size,
                            .outer = field.outer,
                            .inner = field.inner,
                            .field = operand_output(&field),
                            .lines = (void *)(uintptr_t)lines,
                            .scale = scale};

    if (field.rows != (loads ? s.in : s.out) ||
        (uint64_t)(field.outer * field.inner * s.pitch * ps_dtype_size(field.dtype)) >
            bytes) {
        PyErr_SetString(PyExc_ValueError, "field: the lines have another length");
        return NULL;
    }
    if (call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status = loads ? backend->transform_load(&t, &c.exec)
                                   : backend->transform_store(&t, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

static PyObject *
transform_load(PyObject *Py_UNUSED(module), PyObject *args)
{
    return step(args, 1);
}

static PyObject *
transform_store(PyObject *Py_UNUSED(module), PyObject *args)
{
    return step(args, 0);
}

static PyObject *
centre(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long weights, stream = 0;
    int device = 0;
    PyObject *array;
    operand line;
    call c;

    if (!PyArg_ParseTuple(args, "OK|iK:centre", &array, &weights, &device, &stream) ||
        operand_write(array, "line", &line) < 0) {
        return NULL;
    }
    if (line.outer != 1 || line.inner != 1) {
        PyErr_SetString(PyExc_ValueError, "line: need the shape (1, 1, n)");
        return NULL;
    }
    const ps_centre p = {.dtype = line.dtype,
                         .size = line.rows,
                         .stride = line.stride.row,
                         .data = line.data,
                         .weights = (const double *)(uintptr_t)weights};

    if (call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status = ps_backend_get()->centre(&p, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

PyDoc_STRVAR(transform_shape_doc,
             "transform_shape($module, kind, size, /)\n--\n\n"
             "Return form, values before and after, length and pitch of the lines.");
PyDoc_STRVAR(transform_load_doc,
             "transform_load($module, kind, size, field, lines, nbytes, scale, device=0, "
             "stream=0, /)\n--\n\n"
             "Write the lines of a transform from a field (outer, inner, values).");
PyDoc_STRVAR(
    transform_store_doc,
    "transform_store($module, kind, size, field, lines, nbytes, scale, device=0, "
    "stream=0, /)\n--\n\n"
    "Write a field (outer, inner, values) from the lines of a transform.");
PyDoc_STRVAR(centre_doc, "centre($module, line, weights, device=0, stream=0, /)\n--\n\n"
                         "Subtract the mean, weighted by float64 on the device, from a "
                         "line (1, 1, n).");

static PyMethodDef methods[] = {
    {"transform_shape", transform_shape, METH_VARARGS, transform_shape_doc},
    {"transform_load", transform_load, METH_VARARGS, transform_load_doc},
    {"transform_store", transform_store, METH_VARARGS, transform_store_doc},
    {"centre", centre, METH_VARARGS, centre_doc},
    {NULL, NULL, 0, NULL},
};

int
transform_add(PyObject *module)
{
    return add_codes(module, "TRANSFORMS", kinds, PS_TRANSFORM_COUNT) < 0
               ? -1
               : PyModule_AddFunctions(module, methods);
}
