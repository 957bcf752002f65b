/* fp_mode.c - in_default_fp_mode(): call a function of Python with rounding to nearest
 * and gradual underflow, for the parts of the solvers that compute with NumPy. */
#include "fp_mode.h"

#include "pysolvers.h"

typedef struct {
    PyObject *const *args;
    Py_ssize_t count;
    PyObject *keywords, *result;
} python_call;

static void
make_call(void *self)
{
    python_call *const p = self;

    p->result =
        PyObject_Vectorcall(p->args[0], p->args + 1, (size_t)p->count - 1, p->keywords);
}

static PyObject *
in_default_fp_mode(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count,
                   PyObject *keywords)
{
    python_call p = {args, count, keywords, NULL};

    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "need a function and its arguments");
        return NULL;
    }
    ps_backend_get()->in_default_fp_mode(make_call, &p);
    return p.result;
}

PyDoc_STRVAR(in_default_fp_mode_doc,
             "in_default_fp_mode($module, function, /, *args, **kwargs)\n--\n\n"
             "Call a function with rounding to nearest and gradual underflow; return its "
             "result.");

static PyMethodDef methods[] = {
    {"in_default_fp_mode", (PyCFunction)(void (*)(void))in_default_fp_mode,
     METH_FASTCALL | METH_KEYWORDS, in_default_fp_mode_doc},
    {NULL, NULL, 0, NULL},
};

int
fp_mode_add(PyObject *module)
{
    return PyModule_AddFunctions(module, methods);
}
