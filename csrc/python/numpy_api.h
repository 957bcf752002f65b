/* numpy_api.h - Python and NumPy for every file of the binding. module.c defines
 * PS_IMPORT_NUMPY and fills the table of functions of NumPy; the other files use this
 * table.
 */
#ifndef PS_PYTHON_NUMPY_API_H
#define PS_PYTHON_NUMPY_API_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL ps_numpy_api
#ifndef PS_IMPORT_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

/* The name of the module, and the name of a type in it, as texts. */
#define PS_TEXT_OF_(name) #name
#define PS_TEXT_OF(name) PS_TEXT_OF_(name)
#define PS_QUALIFIED(type) "pysolvers." PS_TEXT_OF(PS_MODULE_NAME) "." type

#endif
