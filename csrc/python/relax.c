/* relax.c - lmsor_iterate() and laplace_iterate(): parse, iterate without the GIL,
 * report.
 */
#include "relax.h"

#include "call.h"
#include "codes.h"
#include "operand.h"
#include "ps_laplace.h"
#include "ps_lmsor.h"

#define PS_TEXT_(name, text) text,
static const char *const kernels[] = {PS_LMSOR_KERNEL_LIST(PS_TEXT_)};
static const char *const relaxations[] = {PS_RELAXATION_LIST(PS_TEXT_)};
static const char *const variants[] = {PS_LAPLACE_VARIANT_LIST(PS_TEXT_)};
static const char *const coefficients[] = {PS_LAPLACE_COEFFICIENT_LIST(PS_TEXT_)};
static const char *const criteria[] = {PS_CRITERION_LIST(PS_TEXT_)};
static const char *const norms[] = {PS_NORM_LIST(PS_TEXT_)};
static const char *const ends[] = {PS_END_LIST(PS_TEXT_)};
#undef PS_TEXT_

/* A contiguous array of `count` elements of a NumPy type. */
typedef struct {
    const char *name;
    int type;
    int64_t count;
    int writeable;
} expected;

/* Set *data to such an array; 0, or -1 with an exception. */
static int
borrow(PyObject *object, const expected *e, void *data)
{
    PyArrayObject *const array = operand_block(object, e->name, e->type, e->writeable);

    if (array == NULL) {
        return -1;
    }
    if (PyArray_SIZE(array) < e->count) {
        PyErr_Format(PyExc_ValueError, "%s: need %lld elements, got %lld", e->name,
                     (long long)e->count, (long long)PyArray_SIZE(array));
        return -1;
    }
    *(void **)data = PyArray_DATA(array);
    return 0;
}

/* The same, with a null pointer for None. */
static int
borrow_optional(PyObject *object, const expected *e, void *data)
{
    if (object == Py_None) {
        *(void **)data = NULL;
        return 0;
    }
    return borrow(object, e, data);
}

/* dtype and NumPy type of the field to be relaxed; 0, or -1 with an exception. */
static int
read_dtype(PyObject *field, const char *name, ps_dtype *dtype, int *type)
{
    if (!PyArray_Check(field)) {
        PyErr_Format(PyExc_TypeError, "%s: need an ndarray, got %s", name,
                     Py_TYPE(field)->tp_name);
        return -1;
    }
    *type = PyArray_TYPE((PyArrayObject *)field);
    if (*type != NPY_FLOAT && *type != NPY_DOUBLE) {
        PyErr_Format(PyExc_TypeError, "%s: need float32 or float64", name);
        return -1;
    }
    *dtype = *type == NPY_FLOAT ? PS_F32 : PS_F64;
    return 0;
}

/* Elements of a field; 0 for a shape that the check of the struct refuses. */
static int64_t
elements(int64_t ny, int64_t pitch)
{
    return ny < 1 || pitch < 1 || pitch > INT64_MAX / 4 / (ny + 2) ? 0
                                                                   : 2 * (ny + 2) * pitch;
}

static int
read_stop(PyObject *tuple, long long count, ps_stop *stop)
{
    int criterion, norm;
    long long every, first_row, rows;
    PyObject *history;

    if (!PyArg_ParseTuple(tuple, "iiLdOLL:stop", &criterion, &norm, &every,
                          &stop->tolerance, &history, &first_row, &rows)) {
        return -1;
    }
    stop->criterion = (ps_criterion)criterion;
    stop->norm = (ps_norm)norm;
    stop->every = every;
    stop->first_row = first_row;
    stop->rows = rows;
    const expected e = {"history", NPY_DOUBLE, every > 0 ? (count - 1) / every + 1 : 0,
                        1};
    return borrow_optional(history, &e, &stop->history);
}

static PyObject *
relax_report(ps_status status, const ps_relax_report *r)
{
    if (status != PS_OK) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("{s:L,s:L,s:d,s:s,s:i,s:s}", "iterations",
                         (long long)r->iterations, "measures", (long long)r->measures,
                         "measure", r->measure, "end", ends[r->end], "threads",
                         (int)r->threads, "kernel", r->kernel ? r->kernel : "");
}

/* The answer of a call of which call_start() or call_finish() returned `started`. */
static PyObject *
answer(int started, ps_status status, const ps_relax_report *report, int64_t *made)
{
    *made = report->iterations;
    return started < 0 ? NULL
                       : Py_BuildValue("(iN)", (int)status, relax_report(status, report));
}

static int
read_lmsor_operands(PyObject *u, PyObject *fields, PyObject *tables, ps_lmsor *l)
{
    const char *const names[] = {"omega", "west",   "east",   "north",
                                 "south", "skew_x", "skew_y", "source"};
    const void **const places[] = {&l->omega, &l->west,   &l->east,   &l->north,
                                   &l->south, &l->skew_x, &l->skew_y, &l->source};
    expected e = {"u", 0, elements(l->ny, l->pitch), 1};
    PyObject *object[8], *x, *y;

    if (read_dtype(u, "u", &l->dtype, &e.type) < 0 || borrow(u, &e, &l->u) < 0 ||
        !PyArg_ParseTuple(fields, "OOOOOOOO:fields", &object[0], &object[1], &object[2],
                          &object[3], &object[4], &object[5], &object[6], &object[7]) ||
        !PyArg_ParseTuple(tables, "OO:tables", &x, &y)) {
        return -1;
    }
    e.writeable = 0;
    for (int k = 0; k < 8; k++) {
        e.name = names[k];
        if (borrow_optional(object[k], &e, places[k]) < 0) {
            return -1;
        }
    }
    const expected of_x = {"x table", NPY_DOUBLE, PS_TABLE_ROWS * 2 * l->pitch, 0};
    const expected of_y = {"y table", NPY_DOUBLE, PS_TABLE_ROWS * (l->ny + 2), 0};
    return borrow_optional(x, &of_x, &l->x_table) < 0
               ? -1
               : borrow_optional(y, &of_y, &l->y_table);
}

PyObject *
lmsor_iterate(PyObject *Py_UNUSED(module), PyObject *args)
{
    const ps_backend *const backend = ps_backend_get();
    int kernel, relaxation, threads, device = 0;
    long long nx, ny, pitch, count;
    unsigned long long stream = 0;
    PyObject *u, *fields, *tables, *stop, *made_array;
    int64_t *made;
    ps_lmsor l = {0};
    ps_lmsor_report report = {0};
    call in;

    if (!PyArg_ParseTuple(args, "iidLLLIddOO!O!O!LiO|iK:lmsor_iterate", &kernel,
                          &relaxation, &l.omega_constant, &nx, &ny, &pitch, &l.periodic,
                          &l.cx, &l.cy, &u, &PyTuple_Type, &fields, &PyTuple_Type,
                          &tables, &PyTuple_Type, &stop, &count, &threads, &made_array,
                          &device, &stream)) {
        return NULL;
    }
    l.kernel = (ps_lmsor_kernel)kernel;
    l.relaxation = (ps_relaxation)relaxation;
    l.nx = nx;
    l.ny = ny;
    l.pitch = pitch;
    if (read_lmsor_operands(u, fields, tables, &l) < 0 ||
        read_stop(stop, count, &l.stop) < 0 || operand_made(made_array, &made) < 0 ||
        call_begin(&in, threads, device, stream) < 0) {
        return NULL;
    }
    size_t bytes = 0;
    ps_status status = backend->lmsor_work == NULL
                           ? PS_UNSUPPORTED
                           : backend->lmsor_work(&l, &in.exec, &bytes);
    int started = call_start(&in, status, bytes);

    if (started > 0) {
        status = backend->lmsor_iterate(&l, count, &in.exec, &report);
        started = call_finish(&in);
    }
    return answer(started, status, &report.relax, made);
}

static int
read_laplace_operands(PyObject *t, PyObject *diag, PyObject *gain, PyObject *source,
                      ps_laplace *l)
{
    expected e = {"t", 0, elements(l->ny, l->pitch), 1};

    if (read_dtype(t, "t", &l->dtype, &e.type) < 0 || borrow(t, &e, &l->t) < 0) {
        return -1;
    }
    const expected of_source = {"source", e.type, e.count, 0};
    const expected of_diag = {"diag", e.type, 6 * l->pitch, 0};
    const expected of_gain = {"gain", e.type, 6 * l->pitch, 0};
    return borrow(diag, &of_diag, &l->diag) < 0 || borrow(gain, &of_gain, &l->gain) < 0
               ? -1
               : borrow_optional(source, &of_source, &l->source);
}

PyObject *
laplace_iterate(PyObject *Py_UNUSED(module), PyObject *args)
{
    const ps_backend *const backend = ps_backend_get();
    int variant, coefficients_of, threads, device = 0;
    long long nx, ny, pitch, count;
    unsigned long long stream = 0;
    PyObject *t, *diag, *gain, *source, *stop, *made_array;
    int64_t *made;
    ps_laplace l = {0};
    ps_laplace_report report = {0};
    call in;

    if (!PyArg_ParseTuple(args, "iiLLLIddOOOOO!LiO|iK:laplace_iterate", &variant,
                          &coefficients_of, &nx, &ny, &pitch, &l.periodic, &l.ax, &l.ay,
                          &t, &diag, &gain, &source, &PyTuple_Type, &stop, &count,
                          &threads, &made_array, &device, &stream)) {
        return NULL;
    }
    l.variant = (ps_laplace_variant)variant;
    l.coefficients = (ps_laplace_coefficients)coefficients_of;
    l.nx = nx;
    l.ny = ny;
    l.pitch = pitch;
    if (read_laplace_operands(t, diag, gain, source, &l) < 0 ||
        read_stop(stop, count, &l.stop) < 0 || operand_made(made_array, &made) < 0 ||
        call_begin(&in, threads, device, stream) < 0) {
        return NULL;
    }
    size_t bytes = 0;
    ps_status status = backend->laplace_work == NULL
                           ? PS_UNSUPPORTED
                           : backend->laplace_work(&l, &in.exec, &bytes);
    int started = call_start(&in, status, bytes);

    if (started > 0) {
        status = backend->laplace_iterate(&l, count, &in.exec, &report);
        started = call_finish(&in);
    }
    return answer(started, status, &report.relax, made);
}

int
relax_add_constants(PyObject *module)
{
    if (add_codes(module, "LMSOR_KERNELS", kernels, PS_LMSOR_KERNELS) < 0 ||
        add_codes(module, "RELAXATIONS", relaxations, PS_RELAXATIONS) < 0 ||
        add_codes(module, "LAPLACE_VARIANTS", variants, PS_LAPLACE_VARIANTS) < 0 ||
        add_codes(module, "LAPLACE_COEFFICIENTS", coefficients,
                  PS_LAPLACE_COEFFICIENT_COUNT) < 0 ||
        add_codes(module, "CRITERIA", criteria, PS_CRITERION_COUNT) < 0 ||
        add_codes(module, "NORMS", norms, PS_NORM_COUNT) < 0) {
        return -1;
    }
    return PyModule_AddIntConstant(module, "TABLE_ROWS", PS_TABLE_ROWS);
}
