/* buffer.c - the types Buffer, a block of device memory, Mark, an event in a stream, and
 * Answer, memory of the host that a device writes.
 */
#include "call.h"
#include "memory.h"

typedef struct {
    PyObject ob_base;
    block memory;
} buffer_object;

static PyObject *
buffer_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"nbytes", "device", "stream", "lasting", NULL};
    int device = 0, lasting = 0;
    unsigned long long stream = 0;
    Py_ssize_t bytes;
    ps_exec exec;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "n|iKp:Buffer", names, &bytes,
                                     &device, &stream, &lasting)) {
        return NULL;
    }
    if (bytes < 0) {
        PyErr_Format(PyExc_ValueError, "nbytes: need at least 0, got %zd", bytes);
        return NULL;
    }
    if (exec_begin(&exec, device, stream) < 0) {
        return NULL;
    }
    buffer_object *const self = (buffer_object *)type->tp_alloc(type, 0);
    if (self != NULL && block_allocate((size_t)bytes, lasting ? FOR_LONG : FOR_STREAM,
                                       &exec, &self->memory) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void
buffer_dealloc(PyObject *self)
{
    PyTypeObject *const type = Py_TYPE(self);

    block_free(&((buffer_object *)self)->memory);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
buffer_address(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromVoidPtr(((buffer_object *)self)->memory.data);
}

static PyObject *
buffer_nbytes(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSize_t(((buffer_object *)self)->memory.bytes);
}

static PyObject *
buffer_device(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(((buffer_object *)self)->memory.device);
}

PyObject *
handle_new(PyTypeObject *type, PyObject *args, PyObject *keywords, const char *format,
           ps_status (*make)(const ps_exec *exec, void **made))
{
    static char *names[] = {"device", "stream", NULL};
    int device = 0;
    unsigned long long stream = 0;
    ps_exec exec;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, format, names, &device, &stream) ||
        exec_begin(&exec, device, stream) < 0) {
        return NULL;
    }
    handle_object *const self = (handle_object *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->exec = exec;
    const ps_status status = make(&exec, &self->made);
    if (status != PS_OK) {
        Py_DECREF(self);
        PyErr_Format(PyExc_RuntimeError, "device %d: %s", device, ps_status_text(status));
        return NULL;
    }
    return (PyObject *)self;
}

void
handle_dealloc(PyObject *self, ps_status (*end)(void *made, const ps_exec *exec))
{
    PyTypeObject *const type = Py_TYPE(self);
    const handle_object *const h = (handle_object *)self;

    if (h->made != NULL) {
        (void)end(h->made, &h->exec);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
mark_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return handle_new(type, args, keywords, "|iK:Mark", ps_backend_get()->mark);
}

static void
mark_dealloc(PyObject *self)
{
    handle_dealloc(self, ps_backend_get()->mark_end);
}

static PyObject *
mark_passed(PyObject *self, void *Py_UNUSED(closure))
{
    const handle_object *const m = (handle_object *)self;
    int32_t passed = 1;

    (void)ps_backend_get()->mark_passed(m->made, &m->exec, &passed);
    return PyBool_FromLong(passed);
}

static PyObject *
answer_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *const self =
        handle_new(type, args, keywords, "|iK:Answer", ps_backend_get()->answer);

    if (self != NULL) {
        memset(((handle_object *)self)->made, 0, PS_ANSWER_BYTES);
    }
    return self;
}

/* Work may still write memory that was not ended. */
static ps_status
answer_leave(void *made, const ps_exec *Py_UNUSED(exec))
{
    ps_backend_get()->answer_end(made, 0);
    return PS_OK;
}

static void
answer_dealloc(PyObject *self)
{
    handle_dealloc(self, answer_leave);
}

static PyObject *
answer_end(PyObject *self, PyObject *Py_UNUSED(none))
{
    handle_object *const a = (handle_object *)self;

    if (a->made != NULL) {
        ps_backend_get()->answer_end(a->made, 1);
        a->made = NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
answer_address(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromVoidPtr(((handle_object *)self)->made);
}

static PyObject *
answer_read(PyObject *self, PyObject *argument)
{
    const Py_ssize_t count = PyLong_AsSsize_t(argument);

    if (count == -1 && PyErr_Occurred()) {
        return NULL;
    }
    const handle_object *const a = (handle_object *)self;
    const Py_ssize_t most = a->made != NULL ? PS_ANSWER_BYTES : 0;

    if (count < 0 || count > most) {
        PyErr_Format(PyExc_ValueError, "nbytes: need 0 to %zd, got %zd", most, count);
        return NULL;
    }
    return PyBytes_FromStringAndSize(a->made, count);
}

PyObject *
buffer_of(PyObject *module, size_t bytes, int device, unsigned long long stream,
          void **data)
{
    PyObject *const made =
        PyObject_CallMethod(module, "Buffer", "niK", (Py_ssize_t)bytes, device, stream);

    *data = made != NULL ? ((buffer_object *)made)->memory.data : NULL;
    return made;
}

PyObject *
answer_of(PyObject *module, int device, unsigned long long stream, void **data)
{
    PyObject *const made = PyObject_CallMethod(module, "Answer", "iK", device, stream);

    *data = made != NULL ? ((handle_object *)made)->made : NULL;
    return made;
}

PyDoc_STRVAR(buffer_doc,
             "Buffer(nbytes, device=0, stream=0, lasting=False)\n--\n\n"
             "Memory of a device, in the order of a stream that outlives it, or lasting: "
             "of no stream, freed when the device is idle.");
PyDoc_STRVAR(mark_doc, "Mark(device=0, stream=0)\n--\n\n"
                       "A place in a stream: all that the stream holds now.");

PyDoc_STRVAR(answer_doc,
             "Answer(device=0, stream=0)\n--\n\n"
             "Memory of the host, zero at first, that the work of a device can write.");
PyDoc_STRVAR(answer_end_doc, "end($self, /)\n--\n\n"
                             "Give the memory back: no work writes it any more.");
PyDoc_STRVAR(answer_read_doc, "read($self, nbytes, /)\n--\n\n"
                              "Return the first bytes, after the work that writes them.");

static PyGetSetDef answer_getset[] = {
    {"address", answer_address, NULL, "Address of the memory.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef answer_methods[] = {
    {"read", answer_read, METH_O, answer_read_doc},
    {"end", answer_end, METH_NOARGS, answer_end_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef buffer_getset[] = {
    {"address", buffer_address, NULL, "Address of the memory; 0 if empty.", NULL},
    {"nbytes", buffer_nbytes, NULL, "Size in bytes.", NULL},
    {"device", buffer_device, NULL, "Ordinal of the device.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyGetSetDef mark_getset[] = {
    {"passed", mark_passed, NULL, "Whether the stream has passed it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot buffer_slots[] = {
    {Py_tp_doc, (void *)buffer_doc},
    {Py_tp_new, (void *)buffer_new},
    {Py_tp_dealloc, (void *)buffer_dealloc},
    {Py_tp_getset, buffer_getset},
    {0, NULL},
};

static PyType_Slot mark_slots[] = {
    {Py_tp_doc, (void *)mark_doc},
    {Py_tp_new, (void *)mark_new},
    {Py_tp_dealloc, (void *)mark_dealloc},
    {Py_tp_getset, mark_getset},
    {0, NULL},
};

static PyType_Slot answer_slots[] = {
    {Py_tp_doc, (void *)answer_doc},         {Py_tp_new, (void *)answer_new},
    {Py_tp_dealloc, (void *)answer_dealloc}, {Py_tp_getset, answer_getset},
    {Py_tp_methods, answer_methods},         {0, NULL},
};

static PyType_Spec answer_spec = {
    .name = PS_QUALIFIED("Answer"),
    .basicsize = sizeof(handle_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = answer_slots,
};

static PyType_Spec buffer_spec = {
    .name = PS_QUALIFIED("Buffer"),
    .basicsize = sizeof(buffer_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = buffer_slots,
};

static PyType_Spec mark_spec = {
    .name = PS_QUALIFIED("Mark"),
    .basicsize = sizeof(handle_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = mark_slots,
};

int
buffer_add(PyObject *module)
{
    static const struct {
        const char *name;
        PyType_Spec *spec;
    } types[] = {
        {"Buffer", &buffer_spec}, {"Mark", &mark_spec}, {"Answer", &answer_spec}};

    for (int k = 0; k < 3; k++) {
        PyObject *const type = PyType_FromModuleAndSpec(module, types[k].spec, NULL);
        const int failed =
            type == NULL || PyModule_AddObjectRef(module, types[k].name, type) < 0;

        Py_XDECREF(type);
        if (failed) {
            return -1;
        }
    }
    return 0;
}
