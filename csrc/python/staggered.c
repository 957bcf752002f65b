/* staggered.c - staggered_step(): parse, step without the GIL, report. */
#include "staggered.h"

#include "call.h"
#include "codes.h"
#include "operand.h"
#include "ps_staggered.h"

#define PS_TEXT_(name, text) text,
static const char *const kernels[] = {PS_STAGGERED_KERNEL_LIST(PS_TEXT_)};
static const char *const pressures[] = {PS_PRESSURE_LIST(PS_TEXT_)};
static const char *const stages[] = {PS_STAGGERED_STAGE_LIST(PS_TEXT_)};
static const char *const ends[] = {PS_STAGGERED_END_LIST(PS_TEXT_)};
static const char *const entries[] = {PS_CLOCK_LIST(PS_TEXT_)};
#undef PS_TEXT_

/* Set *data to a square field of float64 with *side rows, in C order. If
 * *side is 0, the number of rows is stored there. 0, or -1 with an exception. */
static int
borrow_square(PyObject *object, const char *name, int writes, int64_t *side,
              double **data)
{
    PyArrayObject *const array = operand_block(object, name, NPY_DOUBLE, writes);

    if (array == NULL) {
        return -1;
    }
    if (PyArray_NDIM(array) != 2 || PyArray_DIM(array, 0) != PyArray_DIM(array, 1) ||
        (*side != 0 && PyArray_DIM(array, 0) != *side)) {
        PyErr_Format(
            PyExc_ValueError,
            "%s: need a square shape, (N + 2, N + 2) for u, v, f, g and the force, "
            "(N, N) for p and q",
            name);
        return -1;
    }
    *side = PyArray_DIM(array, 0);
    *data = PyArray_DATA(array);
    return 0;
}

static int
borrow_force(PyObject *pair, int64_t side, ps_staggered *s)
{
    double *x, *y;

    if (pair == Py_None) {
        return 0;
    }
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
        PyErr_SetString(PyExc_TypeError, "force: need a tuple of two ndarrays or None");
        return -1;
    }
    if (borrow_square(PyTuple_GET_ITEM(pair, 0), "force_x", 0, &side, &x) < 0 ||
        borrow_square(PyTuple_GET_ITEM(pair, 1), "force_y", 0, &side, &y) < 0) {
        return -1;
    }
    s->force_x = x;
    s->force_y = y;
    return 0;
}

static int
borrow_fields(PyObject *const objects[7], PyObject *force, ps_staggered *s)
{
    int64_t side = 0;

    if (borrow_square(objects[0], "u", 1, &side, &s->u) < 0 ||
        borrow_square(objects[1], "v", 1, &side, &s->v) < 0 ||
        borrow_square(objects[3], "f", 1, &side, &s->f) < 0 ||
        borrow_square(objects[4], "g", 1, &side, &s->g) < 0 ||
        borrow_force(force, side, s) < 0) {
        return -1;
    }
    s->cells = side - 2;
    if (s->cells < 1) {
        PyErr_SetString(PyExc_ValueError, "u: need at least 3 rows");
        return -1;
    }
    if (borrow_square(objects[2], "p", 1, &s->cells, &s->p) < 0 ||
        borrow_square(objects[5], "q", 1, &s->cells, &s->q) < 0) {
        return -1;
    }
    PyArrayObject *const clock = operand_block(objects[6], "clock", NPY_DOUBLE, 1);

    if (clock == NULL) {
        return -1;
    }
    if (PyArray_SIZE(clock) != PS_CLOCK_COUNT) {
        PyErr_Format(PyExc_ValueError, "clock: need %d elements", PS_CLOCK_COUNT);
        return -1;
    }
    s->clock = PyArray_DATA(clock);
    return 0;
}

static PyObject *
step_report(ps_status status, const ps_staggered_report *report)
{
    if (status != PS_OK) {
        Py_RETURN_NONE;
    }
    PyObject *const seconds = call_seconds(stages, report->seconds, PS_STAGGERED_STAGES);

    if (seconds == NULL) {
        return NULL;
    }
    return Py_BuildValue("{s:L,s:s,s:N,s:i,s:s}", "steps", (long long)report->steps,
                         "end", ends[report->end], "seconds", seconds, "threads",
                         (int)report->threads, "kernel",
                         report->kernel ? report->kernel : "");
}

static PyObject *
make_steps(const ps_staggered *s, int64_t count, call *in, int64_t *made)
{
    const ps_backend *const backend = ps_backend_get();
    ps_staggered_report report = {0};
    ps_status status = PS_UNSUPPORTED;
    size_t bytes = 0;

    if (backend->staggered_work != NULL) {
        status = backend->staggered_work(s, &in->exec, &bytes);
    }
    int started = call_start(in, status, bytes);

    if (started > 0) {
        status = backend->staggered_step(s, count, &in->exec, &report);
        started = call_finish(in);
    }
    *made = report.steps;
    return started < 0 ? NULL
                       : Py_BuildValue("(iN)", (int)status, step_report(status, &report));
}

PyObject *
staggered_step(PyObject *Py_UNUSED(module), PyObject *args)
{
    int kernel, pressure, threads, device = 0;
    long long most_sweeps, count;
    unsigned long long stream = 0;
    PyObject *objects[7], *force, *made_array;
    int64_t *made;
    ps_staggered s = {0};
    call in;

    if (!PyArg_ParseTuple(args, "(iiI)(ddddddddddd)LOOOOOOOOLiO|iK:staggered_step",
                          &kernel, &pressure, &s.stages, &s.reynolds, &s.tau, &s.gamma,
                          &s.dt, &s.until, &s.steady, &s.tolerance, &s.omega, &s.lid,
                          &s.push, &s.bound, &most_sweeps, &objects[0], &objects[1],
                          &objects[2], &objects[3], &objects[4], &objects[5], &objects[6],
                          &force, &count, &threads, &made_array, &device, &stream)) {
        return NULL;
    }
    s.kernel = (ps_staggered_kernel)kernel;
    s.pressure = (ps_pressure)pressure;
    s.most_sweeps = most_sweeps;
    if (borrow_fields(objects, force, &s) < 0 || operand_made(made_array, &made) < 0 ||
        call_begin(&in, threads, device, stream) < 0) {
        return NULL;
    }
    return make_steps(&s, count, &in, made);
}

int
staggered_add_constants(PyObject *module)
{
    if (add_codes(module, "STAGGERED_KERNELS", kernels, PS_STAGGERED_KERNELS) < 0 ||
        add_codes(module, "PRESSURES", pressures, PS_PRESSURES) < 0 ||
        add_codes(module, "STAGGERED_STAGES", stages, PS_STAGGERED_STAGES) < 0) {
        return -1;
    }
    if (add_codes(module, "STAGGERED_ENDS", ends, PS_STAGGERED_ENDS) < 0) {
        return -1;
    }
    return add_codes(module, "CLOCK", entries, PS_CLOCK_COUNT);
}
