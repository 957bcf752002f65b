/* spikes.c - spikes_solve(): parse, call the backend without the GIL, report. */
#include "spikes.h"

#include "call.h"
#include "operand.h"

/* An output of the shape of diag, or none. */
static int
read_spike(PyObject *array, const char *name, const operand *like, ps_output *output)
{
    operand op;

    if (array == Py_None) {
        *output = (ps_output){0};
        return 0;
    }
    if (operand_write(array, name, &op) < 0 || operand_match(&op, like, like->rows) < 0) {
        return -1;
    }
    *output = operand_output(&op);
    return 0;
}

static int
run(const ps_spikes *s, const ps_options *options, call *c, ps_status *status,
    ps_report *report)
{
    const ps_backend *const backend = ps_backend_get();
    size_t bytes = 0;

    *status = backend->spikes_work(s, options, &c->exec, &bytes);
    const int started = call_start(c, *status, bytes);

    if (started <= 0) {
        return started;
    }
    *status = backend->spikes_solve(s, options, &c->exec, report);
    return call_finish(c);
}

static PyObject *
spikes_solve(PyObject *Py_UNUSED(module), PyObject *args)
{
    int method, pivot, threads;
    unsigned flags;
    PyObject *lower, *diag, *upper, *rhs, *x, *left, *right, *info;
    operand d, r, out;
    ps_spikes s = {0};
    ps_tridiag *const t = &s.t;
    ps_report report = {0};
    ps_status status;
    call c;

    if (!PyArg_ParseTuple(args, "iiIOOOOOOOOi:spikes_solve", &method, &pivot, &flags,
                          &lower, &diag, &upper, &rhs, &x, &left, &right, &info,
                          &threads) ||
        operand_matrix(flags, lower, diag, upper, t) < 0 ||
        operand_read(diag, "diag", &d) < 0 || operand_read(rhs, "rhs", &r) < 0 ||
        operand_write(x, "x", &out) < 0 || operand_match(&r, &d, d.rows) < 0 ||
        operand_match(&out, &d, d.rows) < 0 ||
        read_spike(left, "left", &d, &s.left) < 0 ||
        read_spike(right, "right", &d, &s.right) < 0 ||
        operand_info(info, t->outer * t->inner, &t->info) < 0) {
        return NULL;
    }
    const ps_options options = {(ps_method)method, (ps_pivot)pivot, 0};
    t->rhs = operand_input(&r);
    t->x = operand_output(&out);
    if (call_begin(&c, threads, 0, 0) < 0 ||
        run(&s, &options, &c, &status, &report) < 0) {
        return NULL;
    }
    return Py_BuildValue("(iN)", (int)status, call_report(status, &report));
}

PyDoc_STRVAR(
    spikes_solve_doc,
    "spikes_solve($module, method, pivot, flags, lower, diag, upper, rhs, x, "
    "left, right, info, threads, /)\n--\n\n"
    "Solve a batch of systems of shape (outer, inner, rows), also for the first "
    "entry of lower (left) and the last one of upper (right) as the only right-hand "
    "side; return status and report.");

static PyMethodDef methods[] = {
    {"spikes_solve", spikes_solve, METH_VARARGS, spikes_solve_doc},
    {NULL, NULL, 0, NULL},
};

int
spikes_add(PyObject *module)
{
    return PyModule_AddFunctions(module, methods);
}
