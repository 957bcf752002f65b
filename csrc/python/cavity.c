/* cavity.c - cavity_iterate(): parse, iterate without the GIL, report. */
#include "cavity.h"

#include "call.h"
#include "codes.h"
#include "operand.h"
#include "ps_cavity.h"

#define PS_TEXT_(name, text) text,
static const char *const schemes[] = {PS_SCHEME_LIST(PS_TEXT_)};
static const char *const walls[] = {PS_WALL_LIST(PS_TEXT_)};
static const char *const directions[] = {PS_DIRECTION_LIST(PS_TEXT_)};
static const char *const stages[] = {PS_STAGE_LIST(PS_TEXT_)};
#undef PS_TEXT_

/* Set *data to a square field of float64, writeable and in C order. Its side is *nodes,
 * or is stored there if *nodes is 0; 0, or -1 with an exception. */
static int
borrow_field(PyObject *object, const char *name, int64_t *nodes, double **data)
{
    PyArrayObject *const array = operand_block(object, name, NPY_DOUBLE, 1);

    if (array == NULL) {
        return -1;
    }
    if (PyArray_NDIM(array) != 2 || PyArray_DIM(array, 0) != PyArray_DIM(array, 1) ||
        (*nodes != 0 && PyArray_DIM(array, 0) != *nodes)) {
        PyErr_Format(PyExc_ValueError, "%s: need one square shape for all fields", name);
        return -1;
    }
    *nodes = PyArray_DIM(array, 0);
    *data = PyArray_DATA(array);
    return 0;
}

static PyObject *
cavity_report(ps_status status, const ps_cavity_report *report)
{
    if (status != PS_OK) {
        Py_RETURN_NONE;
    }
    PyObject *const seconds = call_seconds(stages, report->seconds, PS_STAGE_COUNT);

    if (seconds == NULL) {
        return NULL;
    }
    return Py_BuildValue("{s:d,s:d,s:N,s:N}", "psi_residual", report->psi_residual,
                         "omega_residual", report->omega_residual, "seconds", seconds,
                         "lines", call_report(status, &report->lines));
}

static PyObject *
iterate(const ps_cavity *c, int64_t count, const ps_options *options, call *in,
        int64_t *made)
{
    const ps_backend *const backend = ps_backend_get();
    ps_cavity_report report = {0};
    ps_status status = PS_UNSUPPORTED;
    size_t bytes = 0;

    if (backend->cavity_work != NULL) {
        status = backend->cavity_work(c, options, &in->exec, &bytes);
    }
    int started = call_start(in, status, bytes);

    if (started > 0) {
        status = backend->cavity_iterate(c, count, options, &in->exec, &report);
        started = call_finish(in);
    }
    *made = report.iterations;
    return started < 0
               ? NULL
               : Py_BuildValue("(iN)", (int)status, cavity_report(status, &report));
}

PyObject *
cavity_iterate(PyObject *Py_UNUSED(module), PyObject *args)
{
    int scheme, wall, direction, method, variant, threads, device = 0;
    long long iteration, count;
    unsigned long long stream = 0;
    PyObject *psi, *omega, *made_array;
    int64_t *made;
    ps_cavity c = {0};
    call in;

    if (!PyArg_ParseTuple(args, "iiiIdddiLOOLiiiO|iK:cavity_iterate", &scheme, &wall,
                          &direction, &c.stages, &c.viscosity, &c.lid, &c.step,
                          &c.psi_sweeps, &iteration, &psi, &omega, &count, &method,
                          &variant, &threads, &made_array, &device, &stream)) {
        return NULL;
    }
    if (borrow_field(psi, "psi", &c.nodes, &c.psi) < 0 ||
        borrow_field(omega, "omega", &c.nodes, &c.omega) < 0 ||
        operand_made(made_array, &made) < 0) {
        return NULL;
    }
    c.scheme = (ps_scheme)scheme;
    c.wall = (ps_wall)wall;
    c.direction = (ps_direction)direction;
    c.iteration = iteration;

    const ps_pivot pivot = method == PS_PIVOTED ? PS_PIVOT_ALWAYS : PS_PIVOT_NEVER;
    const ps_options options = {(ps_method)method, pivot, variant};
    if (call_begin(&in, threads, device, stream) < 0) {
        return NULL;
    }
    return iterate(&c, count, &options, &in, made);
}

int
cavity_add_constants(PyObject *module)
{
    if (add_codes(module, "SCHEMES", schemes, PS_SCHEME_COUNT) < 0 ||
        add_codes(module, "WALLS", walls, PS_WALL_COUNT) < 0 ||
        add_codes(module, "DIRECTIONS", directions, PS_DIRECTION_COUNT) < 0) {
        return -1;
    }
    return add_codes(module, "STAGES", stages, PS_STAGE_COUNT);
}
