/* copy.c - copy(): copy an array to another one, for measurements of bandwidth. */
#include "binding.h"
#include "call.h"
#include "operand.h"

static int
is_dense(const operand *op)
{
    return op->outer == 1 && op->inner == 1 && (op->stride.row == 1 || op->rows <= 1);
}

PyObject *
copy(PyObject *Py_UNUSED(module), PyObject *args)
{
    const ps_backend *const backend = ps_backend_get();
    PyObject *source, *target;
    operand from, to;
    ps_status status;
    int threads, device = 0;
    unsigned long long stream = 0;
    call c;

    if (!PyArg_ParseTuple(args, "OOi|iK:copy", &source, &target, &threads, &device,
                          &stream) ||
        operand_read(source, "source", &from) < 0 ||
        operand_write(target, "target", &to) < 0 ||
        operand_match(&from, &to, to.rows) < 0) {
        return NULL;
    }
    if (!is_dense(&from) || !is_dense(&to)) {
        PyErr_SetString(PyExc_ValueError, "source and target must be one contiguous row");
        return NULL;
    }
    if (call_begin(&c, threads, device, stream) < 0) {
        return NULL;
    }
    call_enter(&c);
    status = backend->copy == NULL
                 ? PS_UNSUPPORTED
                 : backend->copy(to.data, from.data,
                                 (size_t)(to.rows * ps_dtype_size(to.dtype)), &c.exec);
    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}
