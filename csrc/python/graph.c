/* graph.c - capture() and the type Graph, the captured work of a stream. */
#include "call.h"
#include "memory.h"

static PyObject *
graph_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return handle_new(type, args, keywords, "|iK:Graph", ps_backend_get()->capture_end);
}

static void
graph_dealloc(PyObject *self)
{
    handle_dealloc(self, ps_backend_get()->graph_end);
}

static PyObject *
graph_launch(PyObject *self, PyObject *args)
{
    handle_object *const g = (handle_object *)self;
    int device = 0;
    unsigned long long stream = 0;
    ps_exec exec;

    if (!PyArg_ParseTuple(args, "|iK:launch", &device, &stream) ||
        exec_begin(&exec, device, stream) < 0) {
        return NULL;
    }
    return PyLong_FromLong(ps_backend_get()->graph_launch(g->made, &exec));
}

static PyObject *
capture(PyObject *Py_UNUSED(module), PyObject *args)
{
    int device = 0;
    unsigned long long stream = 0;
    ps_exec exec;

    if (!PyArg_ParseTuple(args, "|iK:capture", &device, &stream) ||
        exec_begin(&exec, device, stream) < 0) {
        return NULL;
    }
    return PyLong_FromLong(ps_backend_get()->capture(&exec));
}

PyDoc_STRVAR(graph_doc, "Graph(device=0, stream=0)\n--\n\n"
                        "End of the capture of a stream: its work since capture().");
PyDoc_STRVAR(launch_doc, "launch($self, device=0, stream=0, /)\n--\n\n"
                         "Enqueue the work; return status.");
PyDoc_STRVAR(capture_doc, "capture($module, device=0, stream=0, /)\n--\n\n"
                          "Capture the work of a stream from now on; return status.");

static PyMethodDef graph_methods[] = {
    {"launch", graph_launch, METH_VARARGS, launch_doc},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef methods[] = {
    {"capture", capture, METH_VARARGS, capture_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot graph_slots[] = {
    {Py_tp_doc, (void *)graph_doc},
    {Py_tp_new, (void *)graph_new},
    {Py_tp_dealloc, (void *)graph_dealloc},
    {Py_tp_methods, graph_methods},
    {0, NULL},
};

static PyType_Spec graph_spec = {
    .name = PS_QUALIFIED("Graph"),
    .basicsize = sizeof(handle_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = graph_slots,
};

int
graph_add(PyObject *module)
{
    PyObject *const type = PyType_FromModuleAndSpec(module, &graph_spec, NULL);
    const int failed = type == NULL || PyModule_AddObjectRef(module, "Graph", type) < 0;

    Py_XDECREF(type);
    return failed ? -1 : PyModule_AddFunctions(module, methods);
}
