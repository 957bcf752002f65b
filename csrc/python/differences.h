/* differences.h - compact differences as functions of the extension. */
#ifndef PS_PYTHON_DIFFERENCES_H
#define PS_PYTHON_DIFFERENCES_H

#include "numpy_api.h"

/* Add differences(): 0, or -1 with an exception. */
int differences_add(PyObject *module);

#endif
