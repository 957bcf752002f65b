/* recurrence.c - linear recurrences: parse, borrow, compute without the GIL. */
#include "recurrence.h"

#include "borrowed.h"
#include "call.h"
#include "operand.h"
#include "plain.h"
#include "ps_numbers.h"

static int
run(const ps_recurrence *r, call *c, ps_status *status)
{
    const ps_number_entries *const entries = ps_number_entries_get();
    size_t bytes = 0;

    *status = entries->recurrence_work == NULL
                  ? PS_UNSUPPORTED
                  : entries->recurrence_work(r, &c->exec, &bytes);
    const int started = call_start(c, *status, bytes);

    if (started <= 0) {
        return started;
    }
    *status = entries->recurrence(r, &c->exec);
    return call_finish(c);
}

static PyObject *
recurrence(PyObject *Py_UNUSED(module), PyObject *args)
{
    int threads, device = 0;
    unsigned flags;
    unsigned long long stream = 0;
    PyObject *first, *second, *b, *initial, *x;
    ps_recurrence r = {0};
    ps_status status;
    operand out;
    call c;

    if (!PyArg_ParseTuple(args, "IOOOOOi|iK:recurrence", &flags, &first, &second, &b,
                          &initial, &x, &threads, &device, &stream) ||
        operand_write(x, "x", &out) < 0 ||
        operand_optional(first, "first", &out, out.rows, &r.first) < 0 ||
        operand_optional(second, "second", &out, out.rows, &r.second) < 0 ||
        operand_optional(b, "b", &out, out.rows, &r.b) < 0 ||
        operand_optional(initial, "initial", &out, second == Py_None ? 1 : 2,
                         &r.initial) < 0) {
        return NULL;
    }
    r.dtype = out.dtype;
    r.flags = flags;
    r.rows = out.rows;
    r.outer = out.outer;
    r.inner = out.inner;
    r.x = operand_output(&out);
    if (call_begin(&c, threads, device, stream) < 0 || run(&r, &c, &status) < 0) {
        return NULL;
    }
    return PyLong_FromLong(status);
}

/* recurrence_direct(): calls that need no planning, as those of direct.c, for which
 * planning in Python takes 70 us. */
enum { FIRST, SECOND, B, INPUTS, AXIS = INPUTS, OUT, FLAGS, THREADS, ARGUMENTS };

/* Let the coefficients that are numbers refer to copies in *there; 0, or -1 with an
 * exception. */
static int
upload_numbers(ps_input *const inputs[2], double numbers[2][2], call *c, block *there,
               ps_status *status)
{
    if (inputs[0]->data != numbers[0] && inputs[1]->data != numbers[1]) {
        return 0;
    }
    if (block_allocate(2 * sizeof *numbers, FOR_STREAM, &c->exec, there) < 0) {
        return -1;
    }
    call_enter(c);
    *status =
        ps_backend_get()->upload(there->data, numbers, 2 * sizeof *numbers, &c->exec);
    for (int k = 0; k < 2; k++) {
        if (inputs[k]->data == numbers[k]) {
            inputs[k]->data = (char *)there->data + (size_t)k * sizeof *numbers;
        }
    }
    return call_leave(c);
}

/* Compute for the arguments of recurrence_direct() on this device and stream. */
static PyObject *
compute_plain(PyObject *const *args, int device, unsigned long long stream)
{
    plain p = {.on_device = ps_backend_get()->memory == PS_DEVICE};
    ps_recurrence r = {0};
    ps_input *const inputs[] = {&r.first, &r.second};
    double numbers[2][2];
    int threads, lacks;
    ps_status status = PS_OK;
    block there = {0};
    call c;

    const PyArrayObject *const b = plain_sides(&p, args[B], args[AXIS]);

    if (b == NULL || !operand_dtype(p.type, &r.dtype) ||
        !plain_stride(&p, b, &r.b.stride) || !plain_threads(args[THREADS], &threads)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    for (int k = FIRST; k <= SECOND; k++) {
        if ((k == FIRST || args[k] != Py_None) &&
            !plain_input(&p, args[k], b, 0, numbers[k], inputs[k], &lacks)) {
            Py_RETURN_NOTIMPLEMENTED;
        }
    }
    PyArrayObject *const x = plain_result(&p, args[OUT], args, INPUTS);

    if (x == NULL || !plain_stride(&p, x, &r.x.stride)) {
        Py_XDECREF(x);
        if (PyErr_Occurred()) {
            return NULL;
        }
        Py_RETURN_NOTIMPLEMENTED;
    }
    r.b.data = PyArray_DATA(b);
    r.x.data = PyArray_DATA(x);
    r.flags = (uint32_t)PyLong_AsLong(args[FLAGS]);
    r.rows = p.rows;
    r.outer = p.outer;
    r.inner = p.inner;
    int raised = PyErr_Occurred() || call_begin(&c, threads, device, stream) < 0 ? -1 : 0;

    if (raised == 0 && p.on_device) {
        raised = upload_numbers(inputs, numbers, &c, &there, &status);
    }
    if (raised == 0 && status == PS_OK) {
        raised = run(&r, &c, &status);
    }
    block_free(&there);
    if (raised != 0 || status != PS_OK) {
        Py_DECREF(x);
        return raised != 0 ? NULL : PyLong_FromLong(status);
    }
    return (PyObject *)x;
}

static PyObject *
recurrence_direct(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != ARGUMENTS) {
        return PyErr_Format(PyExc_TypeError,
                            "recurrence_direct: need %d arguments, got %zd",
                            (int)ARGUMENTS, count);
    }
    if (ps_backend_get()->memory != PS_HOST) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return compute_plain(args, 0, 0);
}

static PyObject *
recurrence_borrowed(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    borrowed l;

    if (count != ARGUMENTS + 2) {
        return PyErr_Format(PyExc_TypeError,
                            "recurrence_borrowed: need %d arguments, got %zd",
                            (int)ARGUMENTS + 2, count);
    }
    const int device = (int)PyLong_AsLong(args[ARGUMENTS]);

    if (PyErr_Occurred()) {
        return NULL;
    }
    const int taken =
        borrowed_begin(&l, args, INPUTS, args[OUT], device, args[ARGUMENTS + 1]);
    PyObject *answer = NULL;

    if (taken > 0) {
        PyObject *const given[ARGUMENTS] = {
            l.arrays[FIRST],  l.arrays[SECOND], l.arrays[B],  args[AXIS],
            l.arrays[INPUTS], args[FLAGS],      args[THREADS]};

        answer = borrowed_answer(&l, compute_plain(given, l.device, l.stream));
    }
    else if (taken == 0) {
        answer = Py_NewRef(Py_NotImplemented);
    }
    borrowed_end(&l);
    return answer;
}

PyDoc_STRVAR(recurrence_direct_doc,
             "recurrence_direct($module, first, second, b, axis, out, flags, threads, "
             "/)\n--\n\n"
             "Return x of a linear recurrence, a status that is not OK, or "
             "NotImplemented if the call needs planning.");

PyDoc_STRVAR(recurrence_borrowed_doc,
             "recurrence_borrowed($module, first, second, b, axis, out, flags, threads, "
             "device, library, /)\n--\n\n"
             "recurrence_direct() for arrays of a library.");

PyDoc_STRVAR(recurrence_doc,
             "recurrence($module, flags, first, second, b, initial, x, threads, "
             "device=0, stream=0, /)\n--\n\n"
             "Write x of a linear recurrence; return status.");

static PyMethodDef methods[] = {
    {"recurrence", recurrence, METH_VARARGS, recurrence_doc},
    {"recurrence_direct", (PyCFunction)(void (*)(void))recurrence_direct, METH_FASTCALL,
     recurrence_direct_doc},
    {"recurrence_borrowed", (PyCFunction)(void (*)(void))recurrence_borrowed,
     METH_FASTCALL, recurrence_borrowed_doc},
    {NULL, NULL, 0, NULL},
};

int
recurrence_add(PyObject *module)
{
    if (PyModule_AddIntConstant(module, "REVERSED", PS_REVERSED) < 0 ||
        PyModule_AddIntConstant(module, "TRANSPOSED", PS_TRANSPOSED) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, methods);
}
