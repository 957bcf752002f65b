/* differences.c - compact differences: parse, borrow, compute without the GIL. */
#include "differences.h"

#include "binding.h"
#include "call.h"
#include "operand.h"
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

/* Read (flags, is_even, near, far, (end, end)): 0, or -1 with an exception. */
static int
read_weights(PyObject *by, ps_differences *d)
{
    PyObject *ends[PS_DIFFERENCE_ENDS];

    if (!PyArg_ParseTuple(by, "Ipdd(O!O!):differences", &d->flags, &d->is_even, &d->near,
                          &d->far, &PyTuple_Type, &ends[0], &PyTuple_Type, &ends[1])) {
        return -1;
    }
    for (int k = 0; k < PS_DIFFERENCE_ENDS; k++) {
        if (read_end(ends[k], &d->points[k], d->end[k]) < 0) {
            return -1;
        }
    }
    return 0;
}

static ps_status
compute(const ps_factor *f, const ps_differences *d, const ps_exec *exec)
{
    const ps_number_entries *const entries = ps_number_entries_get();

    return f == NULL ? entries->differences(d, exec)
                     : entries->difference_solve(f, d, exec);
}

static PyObject *
differences(PyObject *module, PyObject *args)
{
    const module_state *const state = PyModule_GetState(module);
    const ps_number_entries *const entries = ps_number_entries_get();
    int threads, device = 0;
    unsigned long long stream = 0;
    PyObject *by, *factor, *f, *x;
    const ps_factor *made = NULL;
    ps_differences d = {0};
    ps_status status;
    size_t bytes = 0;
    operand in, out;
    call c;

    if (!PyArg_ParseTuple(args, "O!OOOi|iK:differences", &PyTuple_Type, &by, &factor, &f,
                          &x, &threads, &device, &stream) ||
        read_weights(by, &d) < 0 || operand_read(f, "f", &in) < 0 ||
        operand_write(x, "x", &out) < 0 || operand_match(&out, &in, in.rows) < 0) {
        return NULL;
    }
    if (factor != Py_None) {
        made = factor_of(factor, state->factor_type);
        if (made == NULL) {
            return NULL;
        }
    }
    d.dtype = in.dtype;
    d.rows = in.rows;
    d.outer = in.outer;
    d.inner = in.inner;
    d.f = operand_input(&in);
    d.x = operand_output(&out);
    if (call_begin(&c, threads, device, stream) < 0) {
        return NULL;
    }
    status = made == NULL ? ps_differences_check(&d, NULL)
                          : entries->difference_solve_work(made, &d, &c.exec, &bytes);
    int started = call_start(&c, status, bytes);

    if (started > 0) {
        status = compute(made, &d, &c.exec);
        started = call_finish(&c);
    }
    return started < 0 ? NULL : PyLong_FromLong(status);
}

PyDoc_STRVAR(
    differences_doc,
    "differences($module, by, factor, f, x, threads, device=0, stream=0, /)\n--\n\n"
    "Write the differences of f, or solve for them with a Factor; by: (flags, "
    "is_even, near, far, (end, end)); return status.");

static PyMethodDef methods[] = {
    {"differences", differences, METH_VARARGS, differences_doc},
    {NULL, NULL, 0, NULL},
};

int
differences_add(PyObject *module)
{
    return PyModule_AddFunctions(module, methods);
}
