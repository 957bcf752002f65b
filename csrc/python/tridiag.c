/* tridiag.c - tridiag_solve(): parse, call the backend without the GIL, report. */
#include "binding.h"
#include "call.h"
#include "operand.h"
#include "tridiag.h"

int
tridiag_run(const ps_tridiag *t, const ps_options *options, int count, call *c,
            ps_status *status, ps_report *report)
{
    const ps_backend *const backend = ps_backend_get();
    size_t bytes = 0;

    *status = backend->tridiag_work == NULL
                  ? PS_UNSUPPORTED
                  : backend->tridiag_work(t, options, &c->exec, &bytes);
    const int started = call_start(c, *status, bytes);

    if (started <= 0) {
        return started;
    }
    *status = backend->tridiag_solve(t, options, &c->exec, report);
    if (*status == PS_OK && count) {
        *status = call_count_pivoted(c, t->outer * t->inner, report);
    }
    return call_finish(c);
}

PyObject *
tridiag_solve(PyObject *Py_UNUSED(module), PyObject *args)
{
    int method, pivot, threads, variant = 0, device = 0, count = 0;
    unsigned flags;
    unsigned long long stream = 0;
    PyObject *lower, *diag, *upper, *rhs, *x, *info;

    if (!PyArg_ParseTuple(args, "iiIOOOOOOi|iiKi:tridiag_solve", &method, &pivot, &flags,
                          &lower, &diag, &upper, &rhs, &x, &info, &threads, &variant,
                          &device, &stream, &count)) {
        return NULL;
    }

    const ps_options options = {(ps_method)method, (ps_pivot)pivot, variant};
    ps_tridiag t = {0};
    operand d, r, out;
    if (operand_matrix(flags, lower, diag, upper, &t) < 0 ||
        operand_read(diag, "diag", &d) < 0 || operand_read(rhs, "rhs", &r) < 0 ||
        operand_write(x, "x", &out) < 0 || operand_match(&r, &d, d.rows) < 0 ||
        operand_match(&out, &d, d.rows) < 0 ||
        operand_info(info, t.outer * t.inner, &t.info) < 0) {
        return NULL;
    }
    t.rhs = operand_input(&r);
    t.x = operand_output(&out);
    ps_report report = {0};
    ps_status status;
    call c;
    if (call_begin(&c, threads, device, stream) < 0 ||
        tridiag_run(&t, &options, count, &c, &status, &report) < 0) {
        return NULL;
    }
    return Py_BuildValue("(iN)", (int)status, call_report(status, &report));
}
