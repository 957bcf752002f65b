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

static PyObject *
waves_fit(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long stream = 0;
    int is_float32, device = 0;
    int32_t fit = 0;
    long long planes;
    call c;

    if (!PyArg_ParseTuple(args, "pL|iK:waves_fit", &is_float32, &planes, &device,
                          &stream) ||
        call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status =
        ps_backend_get()->waves_fit(is_float32 ? PS_F32 : PS_F64, planes, &c.exec, &fit);

    if (call_leave(&c) < 0) {
        return NULL;
    }
    return PyBool_FromLong(status == PS_OK && fit != 0);
}

/* Call load() or store(): the field has the shape (planes, rows, values), of which lines
 * have `size`, and `bytes` of the waves are available. */
static PyObject *
move_waves(PyObject *args, int loads)
{
    const ps_backend *const backend = ps_backend_get();
    unsigned long long waves, bytes, edge, stream = 0;
    int kind, row_kind, halvings, device = 0;
    long long size, pitch, edge_place;
    double scale;
    PyObject *array;
    operand field;
    call c;

    if (!PyArg_ParseTuple(args, "iiiOLLKKd(KL)|iK", &row_kind, &kind, &halvings, &array,
                          &size, &pitch, &waves, &bytes, &scale, &edge, &edge_place,
                          &device, &stream) ||
        (loads ? operand_read(array, "field", &field)
               : operand_write(array, "field", &field)) < 0) {
        return NULL;
    }
    const ps_waves w = {.dtype = field.dtype,
                        .kind = (ps_transform_kind)kind,
                        .row_kind = (ps_transform_kind)row_kind,
                        .halvings = halvings,
                        .planes = field.outer,
                        .rows = field.inner,
                        .size = size,
                        .pitch = pitch,
                        .given = field.rows,
                        .field = operand_output(&field),
                        .waves = (void *)(uintptr_t)waves,
                        .scale = scale,
                        .edge_place = edge_place,
                        .edge = (void *)(uintptr_t)edge};

    if ((uint64_t)(w.planes * w.rows * pitch * ps_dtype_size(w.dtype)) > bytes) {
        PyErr_SetString(PyExc_ValueError, "field: there are fewer waves");
        return NULL;
    }
    if (call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status =
        loads ? backend->waves_load(&w, &c.exec) : backend->waves_store(&w, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

static PyObject *
waves_load(PyObject *Py_UNUSED(module), PyObject *args)
{
    return move_waves(args, 1);
}

static PyObject *
waves_store(PyObject *Py_UNUSED(module), PyObject *args)
{
    return move_waves(args, 0);
}

static PyObject *
wave_lines(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long waves, tables[3], part[4], stream = 0;
    int is_float32, device = 0;
    long long planes, rows, length, pitch;
    ps_wave_lines l = {0};
    call c;

    if (!PyArg_ParseTuple(args, "pLLLLK(KKK)(ddd)(ddd)(ddd)dp(KKKK)|iK:wave_lines",
                          &is_float32, &planes, &rows, &length, &pitch, &waves,
                          &tables[0], &tables[1], &tables[2], &l.first[0], &l.first[1],
                          &l.first[2], &l.inner[0], &l.inner[1], &l.inner[2], &l.last[0],
                          &l.last[1], &l.last[2], &l.null_sum, &l.periodic, &part[0],
                          &part[1], &part[2], &part[3], &device, &stream) ||
        call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    l.dtype = is_float32 ? PS_F32 : PS_F64;
    l.planes = planes;
    l.rows = rows;
    l.length = length;
    l.pitch = pitch;
    l.waves = (void *)(uintptr_t)waves;
    l.shifts = (const void *)(uintptr_t)tables[0];
    l.turns = (const void *)(uintptr_t)tables[1];
    l.row_turns = (const void *)(uintptr_t)tables[2];
    l.ends = (void *)(uintptr_t)part[0];
    l.couplings = (void *)(uintptr_t)part[1];
    l.y_left = (const void *)(uintptr_t)part[2];
    l.y = (const void *)(uintptr_t)part[3];
    call_enter(&c);
    const ps_status status = ps_backend_get()->wave_lines(&l, &c.exec);

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
PyDoc_STRVAR(waves_fit_doc,
             "waves_fit($module, is_float32, planes, device=0, stream=0, /)\n--\n\n"
             "Return whether wave_lines() can solve systems of so many rows.");
PyDoc_STRVAR(waves_load_doc,
             "waves_load($module, row_kind, kind, halvings, field, size, pitch, waves, "
             "nbytes, scale, edge, device=0, stream=0, /)\n--\n\n"
             "Write the lines of waves from a field (planes, rows, values).");
PyDoc_STRVAR(
    waves_store_doc,
    "waves_store($module, row_kind, kind, halvings, field, size, pitch, waves, "
    "nbytes, scale, edge, device=0, stream=0, /)\n--\n\n"
    "Write a field (planes, rows, values) from the lines of waves; `edge`: address and "
    "place of a further value of each line.");
PyDoc_STRVAR(
    wave_lines_doc,
    "wave_lines($module, is_float32, planes, rows, length, pitch, waves, tables, "
    "first, inner, last, null_sum, periodic, part, device=0, stream=0, /)\n--\n\n"
    "Solve the tridiagonal systems of waves along the planes; `tables` are the "
    "addresses of shifts, turns and turns of rows, `part` those of ends, couplings, "
    "y_left and y of a part of the systems, or zeros.");
PyDoc_STRVAR(centre_doc, "centre($module, line, weights, device=0, stream=0, /)\n--\n\n"
                         "Subtract the mean, weighted by float64 on the device, from a "
                         "line (1, 1, n).");

static PyMethodDef methods[] = {
    {"transform_shape", transform_shape, METH_VARARGS, transform_shape_doc},
    {"transform_load", transform_load, METH_VARARGS, transform_load_doc},
    {"transform_store", transform_store, METH_VARARGS, transform_store_doc},
    {"centre", centre, METH_VARARGS, centre_doc},
    {"waves_fit", waves_fit, METH_VARARGS, waves_fit_doc},
    {"waves_load", waves_load, METH_VARARGS, waves_load_doc},
    {"waves_store", waves_store, METH_VARARGS, waves_store_doc},
    {"wave_lines", wave_lines, METH_VARARGS, wave_lines_doc},
    {NULL, NULL, 0, NULL},
};

int
transform_add(PyObject *module)
{
    return add_codes(module, "TRANSFORMS", kinds, PS_TRANSFORM_COUNT) < 0
               ? -1
               : PyModule_AddFunctions(module, methods);
}
