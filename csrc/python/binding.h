/* binding.h - the functions and the type that module.c puts into the extension. */
#ifndef PS_PYTHON_BINDING_H
#define PS_PYTHON_BINDING_H

#include "numpy_api.h"

/* tridiag_solve(method, pivot, flags, lower, diag, upper, rhs, x, info, threads,
 *               variant=0) -> (status, report) */
PyObject *tridiag_solve(PyObject *module, PyObject *args);

/* factor_make(pivot, flags, lower, diag, upper, info, threads)
 *     -> (status, report, Factor or None) */
PyObject *factor_make(PyObject *module, PyObject *args);

/* copy(source, target, threads) -> status; arrays of shape (1, 1, count) */
PyObject *copy(PyObject *module, PyObject *args);

/* Create the type Factor: a new reference, or null with an exception. */
PyObject *factor_type_new(PyObject *module);

/* The state of the module: what factor_type_new() made. */
typedef struct {
    PyObject *factor_type;
} module_state;

#endif
