/* codes.c - add_codes(): a list of the contract as a dictionary of the extension. */
#include "codes.h"

int
add_codes(PyObject *module, const char *name, const char *const *texts, int count)
{
    PyObject *const codes = PyDict_New();
    int failed = codes == NULL;

    for (int code = 0; code < count && !failed; code++) {
        PyObject *const value = PyLong_FromLong(code);

        failed = value == NULL || PyDict_SetItemString(codes, texts[code], value) < 0;
        Py_XDECREF(value);
    }
    failed = failed || PyModule_AddObjectRef(module, name, codes) < 0;
    Py_XDECREF(codes);
    return failed ? -1 : 0;
}
