/* part.c - systems that are divided over devices, and memory that devices share. */
#include "part.h"

#include "call.h"
#include "codes.h"
#include "operand.h"
#include "ps_part.h"

/* Read a tuple of `count` integers; 0, or -1 with an exception. */
static int
read_numbers(PyObject *tuple, const char *name, int count, unsigned long long *numbers)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) {
        PyErr_Format(PyExc_ValueError, "%s: need a tuple of %d integers", name, count);
        return -1;
    }
    for (int k = 0; k < count; k++) {
        numbers[k] = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(tuple, k));
        if (numbers[k] == (unsigned long long)-1 && PyErr_Occurred()) {
            return -1;
        }
    }
    return 0;
}

/* Read which part this is; 0, or -1 with an exception. */
static int
read_place(int part, int count, ps_part *p)
{
    if (count < 2 || count > PS_MOST_PARTS || part < 0 || part >= count) {
        PyErr_Format(PyExc_ValueError,
                     "part: need 2 to %d parts and one of them, got part %d of %d",
                     PS_MOST_PARTS, part, count);
        return -1;
    }
    p->part = part;
    p->count = count;
    return 0;
}

/* Read addresses of memory of all parts; 0, or -1 with an exception. */
static int
read_addresses(PyObject *tuple, const char *name, const ps_part *p, void **of_part)
{
    unsigned long long addresses[PS_MOST_PARTS];

    if (read_numbers(tuple, name, p->count, addresses) < 0) {
        return -1;
    }
    for (int k = 0; k < p->count; k++) {
        of_part[k] = (void *)(uintptr_t)addresses[k];
    }
    return 0;
}

/* Read which part this is, and the logs; 0, or -1 with an exception. */
static int
read_part(int part, int count, PyObject *logs, ps_part *p)
{
    return read_place(part, count, p) < 0 ? -1 : read_addresses(logs, "logs", p, p->log);
}

static int
read_rows(PyObject *last_rows, PyObject *mailboxes, ps_part *p)
{
    unsigned long long rows[PS_MOST_PARTS];
    const int count = p->count;

    if (read_numbers(last_rows, "last_rows", count, rows) < 0 ||
        read_addresses(mailboxes, "mailboxes", p, p->mailbox) < 0) {
        return -1;
    }
    for (int k = 0; k < count; k++) {
        if (rows[k] >= INT32_MAX) {
            PyErr_SetString(PyExc_ValueError, "last_rows: too many rows");
            return -1;
        }
        p->last_row[k] = (int32_t)rows[k];
    }
    return 0;
}

static int
read_step(int step, ps_part_step *to)
{
    if (step < 0 || step >= PS_PART_LEAVE) {
        PyErr_Format(PyExc_ValueError, "step: need 0 to %d, got %d", PS_PART_LEAVE - 1,
                     step);
        return -1;
    }
    *to = (ps_part_step)step;
    return 0;
}

/* Call part_check() or part_solve() of the backend. */
static PyObject *
of_part(PyObject *args, ps_status (*entry)(const ps_part *, const ps_exec *))
{
    unsigned flags;
    unsigned long long key, clock, marks, stream = 0;
    long long patience;
    int part, count, step, device = 0, sharing = 1;
    PyObject *lower, *diag, *upper, *rhs, *x, *info, *last_rows, *mailboxes, *logs;
    operand r, out, like;
    ps_part p = {0};
    call c;

    if (!PyArg_ParseTuple(args, "IOOOOOOiiOOOKKLKi|iKi", &flags, &lower, &diag, &upper,
                          &rhs, &x, &info, &part, &count, &last_rows, &mailboxes, &logs,
                          &key, &clock, &patience, &marks, &step, &device, &stream,
                          &sharing) ||
        read_step(step, &p.step) < 0 ||
        operand_matrix(flags, lower, diag, upper, &p.t) < 0 ||
        operand_read(diag, "diag", &like) < 0 || operand_read(rhs, "rhs", &r) < 0 ||
        operand_write(x, "x", &out) < 0 || operand_match(&r, &like, like.rows) < 0 ||
        operand_match(&out, &like, like.rows) < 0 ||
        operand_info(info, p.t.outer * p.t.inner, &p.t.info) < 0 ||
        read_part(part, count, logs, &p) < 0 || read_rows(last_rows, mailboxes, &p) < 0) {
        return NULL;
    }
    if (sharing < 1 || sharing > count) {
        PyErr_Format(PyExc_ValueError, "sharing: need 1 to %d parts, got %d", count,
                     sharing);
        return NULL;
    }
    p.t.rhs = operand_input(&r);
    p.t.x = operand_output(&out);
    p.sharing = sharing;
    p.key = key;
    p.clock = (void *)(uintptr_t)clock;
    p.patience = patience;
    p.marks = (uint8_t *)(uintptr_t)marks;
    if (call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status = entry(&p, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

static PyObject *
part_check(PyObject *Py_UNUSED(module), PyObject *args)
{
    return of_part(args, ps_backend_get()->part_check);
}

static PyObject *
part_solve(PyObject *Py_UNUSED(module), PyObject *args)
{
    return of_part(args, ps_backend_get()->part_solve);
}

static PyObject *
part_leave(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long stream = 0;
    int part, count, ends, device = 0;
    PyObject *logs;
    ps_part p = {0};
    call c;

    if (!PyArg_ParseTuple(args, "iiOp|iK:part_leave", &part, &count, &logs, &ends,
                          &device, &stream) ||
        read_part(part, count, logs, &p) < 0 || call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    p.step = ends ? PS_PART_END : PS_PART_LEAVE;
    call_enter(&c);
    const ps_status status = ps_backend_get()->part_solve(&p, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

static PyObject *
part_mailbox(PyObject *Py_UNUSED(module), PyObject *args)
{
    int dtype, count, step;
    long long systems;
    size_t bytes = 0;
    ps_part p = {0};

    if (!PyArg_ParseTuple(args, "iLii:part_mailbox", &dtype, &systems, &count, &step) ||
        read_step(step, &p.step) < 0) {
        return NULL;
    }
    if (dtype < 0 || dtype >= PS_DTYPE_COUNT || systems < 0 || count < 2 ||
        count > PS_MOST_PARTS) {
        PyErr_Format(PyExc_ValueError,
                     "need a dtype, systems and 2 to %d parts, got %d, %lld, %d",
                     PS_MOST_PARTS, dtype, systems, count);
        return NULL;
    }
    p.t.dtype = (ps_dtype)dtype;
    p.t.outer = 1;
    p.t.inner = systems;
    p.count = count;
    const ps_status status = ps_backend_get()->part_mailbox(&p, &bytes);

    return Py_BuildValue("(in)", (int)status, (Py_ssize_t)bytes);
}

static PyObject *
reach(PyObject *Py_UNUSED(module), PyObject *args)
{
    int other, device;
    call c;

    if (!PyArg_ParseTuple(args, "ii:reach", &other, &device) ||
        call_begin(&c, 0, device, 0) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status = ps_backend_get()->reach(other, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

static PyObject *
share(PyObject *Py_UNUSED(module), PyObject *args)
{
    char name[PS_SHARED_NAME_BYTES] = {0};
    unsigned long long address;
    int device;
    call c;

    if (!PyArg_ParseTuple(args, "Ki:share", &address, &device) ||
        call_begin(&c, 0, device, 0) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status =
        ps_backend_get()->share((void *)(uintptr_t)address, name, &c.exec);

    return call_leave(&c) < 0
               ? NULL
               : Py_BuildValue("(iy#)", (int)status, name, (Py_ssize_t)sizeof name);
}

static PyObject *
open_shared(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *name;
    Py_ssize_t size;
    void *data = NULL;
    int device;
    call c;

    if (!PyArg_ParseTuple(args, "y#i:open_shared", &name, &size, &device)) {
        return NULL;
    }
    if (size != PS_SHARED_NAME_BYTES) {
        PyErr_Format(PyExc_ValueError, "name: need %d bytes, got %zd",
                     PS_SHARED_NAME_BYTES, size);
        return NULL;
    }
    if (call_begin(&c, 0, device, 0) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status = ps_backend_get()->open_shared(name, &data, &c.exec);

    return call_leave(&c) < 0
               ? NULL
               : Py_BuildValue("(iK)", (int)status, (unsigned long long)(uintptr_t)data);
}

static PyObject *
close_shared(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long address;
    int device;
    call c;

    if (!PyArg_ParseTuple(args, "Ki:close_shared", &address, &device) ||
        call_begin(&c, 0, device, 0) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status =
        ps_backend_get()->close_shared((void *)(uintptr_t)address, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

static PyObject *
part_barrier(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long round, clock, stream = 0;
    long long patience;
    int part, count, fails, device = 0;
    PyObject *slots;
    ps_part p = {0};
    call c;

    if (!PyArg_ParseTuple(args, "iiOKpLK|iK:part_barrier", &part, &count, &slots, &round,
                          &fails, &patience, &clock, &device, &stream) ||
        read_place(part, count, &p) < 0 ||
        read_addresses(slots, "slots", &p, p.mailbox) < 0 ||
        call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    p.step = fails ? PS_PART_FAIL : PS_PART_BARRIER;
    p.key = round;
    p.patience = patience;
    p.clock = (void *)(uintptr_t)clock;
    call_enter(&c);
    const ps_status status = ps_backend_get()->part_solve(&p, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

PyDoc_STRVAR(part_mailbox_doc,
             "part_mailbox($module, dtype, systems, count, step, /)\n--\n\n"
             "Return status and the bytes of the mailbox of a part.");
PyDoc_STRVAR(
    part_check_doc,
    "part_check($module, flags, lower, diag, upper, rhs, x, info, part, count, "
    "last_rows, mailboxes, logs, key, clock, patience, marks, step, device=0, stream=0, "
    "sharing=1, /)\n--\n\n"
    "Return the status with which part_solve() would begin, without reading any "
    "memory.");
PyDoc_STRVAR(
    part_solve_doc,
    "part_solve($module, flags, lower, diag, upper, rhs, x, info, part, count, "
    "last_rows, mailboxes, logs, key, clock, patience, marks, step, device=0, stream=0, "
    "sharing=1, /)\n--\n\n"
    "Solve for the rows of one part of all systems, with the other parts; "
    "return status.");
PyDoc_STRVAR(
    part_leave_doc,
    "part_leave($module, part, count, logs, ends, device=0, stream=0, /)\n--\n\n"
    "Write into the logs of the other parts that this part makes another call, or, "
    "with `ends`, into its own one that its call gives up; return status.");
PyDoc_STRVAR(
    part_barrier_doc,
    "part_barrier($module, part, count, slots, round, fails, patience, clock, "
    "device=0, stream=0, /)\n--\n\n"
    "Let a stream wait for those of other parts, or, with `fails`, let these not "
    "wait for it up to a round; return status.");
PyDoc_STRVAR(reach_doc, "reach($module, other, device, /)\n--\n\n"
                        "Let a device use the memory of another one; return status.");
PyDoc_STRVAR(share_doc, "share($module, address, device, /)\n--\n\n"
                        "Return status and the name of memory of reserve() for other "
                        "processes.");
PyDoc_STRVAR(open_shared_doc, "open_shared($module, name, device, /)\n--\n\n"
                              "Return status and the address of memory of another "
                              "process.");
PyDoc_STRVAR(close_shared_doc, "close_shared($module, address, device, /)\n--\n\n"
                               "End the use of memory of another process; return "
                               "status.");
static PyMethodDef methods[] = {
    {"part_mailbox", part_mailbox, METH_VARARGS, part_mailbox_doc},
    {"part_check", part_check, METH_VARARGS, part_check_doc},
    {"part_solve", part_solve, METH_VARARGS, part_solve_doc},
    {"part_leave", part_leave, METH_VARARGS, part_leave_doc},
    {"part_barrier", part_barrier, METH_VARARGS, part_barrier_doc},
    {"reach", reach, METH_VARARGS, reach_doc},
    {"share", share, METH_VARARGS, share_doc},
    {"open_shared", open_shared, METH_VARARGS, open_shared_doc},
    {"close_shared", close_shared, METH_VARARGS, close_shared_doc},
    {NULL, NULL, 0, NULL},
};

int
part_add(PyObject *module)
{
    static const char *const steps[PS_PART_LEAVE] = {[PS_PART_WHOLE] = "whole",
                                                     [PS_PART_SEND] = "send",
                                                     [PS_PART_RECEIVE] = "receive"};

    return add_codes(module, "PART_STEPS", steps, PS_PART_LEAVE) < 0
               ? -1
               : PyModule_AddFunctions(module, methods);
}
