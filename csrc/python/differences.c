/* differences.c - compact differences: parse, borrow, compute without the GIL. */
#include "differences.h"

#include "binding.h"
#include "borrowed.h"
#include "call.h"
#include "operand.h"
#include "plain.h"
#include "ps_numbers.h"

/* Read the weights of an end: 0, or -1 with an exception. */
static int
read_end(PyObject *weights, int32_t *points, double *end)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(weights);

    if (count > PS_DIFFERENCE_POINTS) {
        PyErr_Format(PyExc_ValueError, "ends: need at most %d weights, got %zd",
                     PS_DIFFERENCE_POINTS, count);
        return -1;
    }
    *points = (int32_t)count;
    for (Py_ssize_t k = 0; k < count; k++) {
        end[k] = PyFloat_AsDouble(PyTuple_GET_ITEM(weights, k));
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Read (flags, is_even, near, far, off_diagonal, the same of the second factor, (end, end)): 0, or -1
 * with an exception. */
static int
read_weights(PyObject *by, ps_differences *d)
{
    PyObject *ends[PS_DIFFERENCE_ENDS];

    if (!PyArg_ParseTuple(by, "Ipdddd(O!O!):differences", &d->flags, &d->is_even,
                          &d->near, &d->far, &d->off_diagonal[0], &d->off_diagonal[1],
                          &PyTuple_Type, &ends[0], &PyTuple_Type, &ends[1])) {
        return -1;
    }
    for (int k = 0; k < PS_DIFFERENCE_ENDS; k++) {
        if (read_end(ends[k], &d->points[k], d->end[k]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Read a tuple of at most two factors: 0, or -1 with an exception. */
static int
read_factors(PyObject *factors, PyObject *type, ps_difference_factors *f)
{
    const ps_factor **const both[] = {&f->first, &f->second};
    const Py_ssize_t count = PyTuple_Check(factors) ? PyTuple_GET_SIZE(factors) : -1;

    if (count < 0 || count > 2) {
        PyErr_Format(PyExc_TypeError, "factors: need a tuple of at most two, got %R",
                     factors);
        return -1;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        *both[k] = factor_of(PyTuple_GET_ITEM(factors, k), type);
        if (*both[k] == NULL) {
            return -1;
        }
    }
    return 0;
}

/* Compute with factors, or without if there is none: 0, or -1 with an exception. */
static int
run(ps_difference_factors f, const ps_differences *d, call *c, ps_status *status)
{
    const ps_number_entries *const entries = ps_number_entries_get();
    size_t bytes = 0;

    *status = f.first == NULL ? ps_differences_check(d, f)
                              : entries->difference_solve_work(f, d, &c->exec, &bytes);
    const int started = call_start(c, *status, bytes);

    if (started <= 0) {
        return started;
    }
    *status = f.first == NULL ? entries->differences(d, &c->exec)
                              : entries->difference_solve(f, d, &c->exec);
    return call_finish(c);
}

static PyObject *
differences(PyObject *module, PyObject *args)
{
    const module_state *const state = PyModule_GetState(module);
    int threads, device = 0;
    unsigned long long stream = 0;
    PyObject *by, *factors, *f, *x;
    ps_difference_factors made = {NULL, NULL};
    ps_differences d = {0};
    ps_status status;
    operand in, out;
    call c;

    if (!PyArg_ParseTuple(args, "O!OOOi|iK:differences", &PyTuple_Type, &by, &factors, &f,
                          &x, &threads, &device, &stream) ||
        read_weights(by, &d) < 0 ||
        read_factors(factors, state->factor_type, &made) < 0 ||
        operand_read(f, "f", &in) < 0 || operand_write(x, "x", &out) < 0 ||
        operand_match(&out, &in, in.rows) < 0) {
        return NULL;
    }
    d.dtype = in.dtype;
    d.rows = in.rows;
    d.outer = in.outer;
    d.inner = in.inner;
    d.f = operand_input(&in);
    d.x = operand_output(&out);
    if (call_begin(&c, threads, device, stream) < 0 || run(made, &d, &c, &status) < 0) {
        return NULL;
    }
    return PyLong_FromLong(status);
}

/* differences_direct(): solves with a factor that need no planning, as those of direct.c. */
enum { BY, FACTORS, VALUES, AXIS, OUT, THREADS, ARGUMENTS };

/* Compute for the arguments of differences_direct() on this device and stream. */
static PyObject *
compute_plain(PyObject *module, PyObject *const *args, int device,
              unsigned long long stream)
{
    const module_state *const state = PyModule_GetState(module);
    plain p = {.on_device = ps_backend_get()->memory == PS_DEVICE};
    ps_differences d = {0};
    ps_status status;
    int threads;
    call c;
    ps_difference_factors made = {NULL, NULL};

    if (read_factors(args[FACTORS], state->factor_type, &made) < 0 ||
        read_weights(args[BY], &d) < 0) {
        return NULL;
    }
    if (made.first == NULL) {
        PyErr_SetString(PyExc_ValueError, "factors: need one or two, got ()");
        return NULL;
    }
    const PyArrayObject *const f = plain_sides(&p, args[VALUES], args[AXIS]);

    if (f == NULL || !operand_dtype(p.type, &d.dtype) || d.dtype != made.first->dtype ||
        p.rows != made.first->rows || !plain_stride(&p, f, &d.f.stride) ||
        !plain_threads(args[THREADS], &threads)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    PyArrayObject *const x = plain_result(&p, args[OUT], &args[VALUES], 1);

    if (x == NULL || !plain_stride(&p, x, &d.x.stride) ||
        PyArray_DATA(x) == PyArray_DATA((PyArrayObject *)args[VALUES])) {
        Py_XDECREF(x);
        if (PyErr_Occurred()) {
            return NULL;
        }
        Py_RETURN_NOTIMPLEMENTED;
    }
    d.f.data = PyArray_DATA((PyArrayObject *)args[VALUES]);
    d.x.data = PyArray_DATA(x);
    d.rows = p.rows;
    d.outer = p.outer;
    d.inner = p.inner;
    const int raised =
        call_begin(&c, threads, device, stream) < 0 || run(made, &d, &c, &status) < 0;

    if (raised || status != PS_OK) {
        Py_DECREF(x);
        return raised ? NULL : PyLong_FromLong(status);
    }
    return (PyObject *)x;
}

/* Refuse another number of arguments, and weights that are no tuple. */
static int
require_arguments(const char *name, PyObject *const *args, Py_ssize_t found, int wanted)
{
    if (found != wanted || !PyTuple_Check(args[BY])) {
        PyErr_Format(PyExc_TypeError, "%s: need %d arguments, the first one a tuple",
                     name, wanted);
        return -1;
    }
    return 0;
}

static PyObject *
differences_direct(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (require_arguments("differences_direct", args, count, ARGUMENTS) < 0) {
        return NULL;
    }
    if (ps_backend_get()->memory != PS_HOST) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return compute_plain(module, args, 0, 0);
}

static PyObject *
differences_borrowed(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    borrowed l;

    if (require_arguments("differences_borrowed", args, count, ARGUMENTS + 2) < 0) {
        return NULL;
    }
    const int device = (int)PyLong_AsLong(args[ARGUMENTS]);

    if (PyErr_Occurred()) {
        return NULL;
    }
    const int taken =
        borrowed_begin(&l, &args[VALUES], 1, args[OUT], device, args[ARGUMENTS + 1]);
    PyObject *answer = NULL;

    if (taken > 0) {
        PyObject *const given[ARGUMENTS] = {args[BY],   args[FACTORS], l.arrays[0],
                                            args[AXIS], l.arrays[1],   args[THREADS]};

        answer = borrowed_answer(&l, compute_plain(module, given, l.device, l.stream));
    }
    else if (taken == 0) {
        answer = Py_NewRef(Py_NotImplemented);
    }
    borrowed_end(&l);
    return answer;
}

PyDoc_STRVAR(
    differences_doc,
    "differences($module, by, factors, f, x, threads, device=0, stream=0, /)\n--\n\n"
    "Write the differences of f, or solve for them with one or two Factors; by: (flags, "
    "is_even, near, far, off_diagonal, second off_diagonal, (end, end)); return status.");
PyDoc_STRVAR(differences_direct_doc,
             "differences_direct($module, by, factors, f, axis, out, threads, /)\n--\n\n"
             "Return the solution for the differences of f, a status that is not OK, or "
             "NotImplemented if the call needs planning.");
PyDoc_STRVAR(differences_borrowed_doc,
             "differences_borrowed($module, by, factors, f, axis, out, threads, device, "
             "library, /)\n--\n\n"
             "differences_direct() for arrays of a library.");

static PyMethodDef methods[] = {
    {"differences", differences, METH_VARARGS, differences_doc},
    {"differences_direct", (PyCFunction)(void (*)(void))differences_direct, METH_FASTCALL,
     differences_direct_doc},
    {"differences_borrowed", (PyCFunction)(void (*)(void))differences_borrowed,
     METH_FASTCALL, differences_borrowed_doc},
    {NULL, NULL, 0, NULL},
};

int
differences_add(PyObject *module)
{
    return PyModule_AddFunctions(module, methods);
}
