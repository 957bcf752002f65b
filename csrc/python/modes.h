/* modes.h - products with eigenvectors as a function of the extension. */
#ifndef PS_PYTHON_MODES_H
#define PS_PYTHON_MODES_H

#include "numpy_api.h"

/* Add modes(): 0, or -1 with an exception. */
int modes_add(PyObject *module);

#endif
