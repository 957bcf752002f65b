/* module.c - an extension module of Python that calls the functions by their capsule. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define PYSOLVERS_PYTHON
#include <pysolvers_api.h>

static PyObject *
solve(PyObject *self, PyObject *args)
{
    double lower[3] = {0, 1, 1}, diag[3] = {4, 4, 4}, upper[3] = {1, 1, 0}, x[3];

    (void)self;
    if (!PyArg_ParseTuple(args, "ddd", &x[0], &x[1], &x[2])) {
        return NULL;
    }
    const pysolvers_status status = pysolvers_dsolve(3, 1, lower, diag, upper, x, x);

    return Py_BuildValue("iddd", (int)status, x[0], x[1], x[2]);
}

static PyMethodDef methods[] = {{"solve", solve, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "calls", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit_calls(void)
{
    return pysolvers_import() < 0 ? NULL : PyModule_Create(&definition);
}
