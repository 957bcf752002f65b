/* step.h - the functions of the module for products and implicit steps. */
#ifndef PS_PYTHON_STEP_H
#define PS_PYTHON_STEP_H

#include "numpy_api.h"

/* Add the functions and the codes; 0, or -1 with an exception. */
int step_add(PyObject *module);

#endif
