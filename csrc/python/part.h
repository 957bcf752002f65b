/* part.h - the functions of part.c, for the initialization of the module. */
#ifndef PS_PYTHON_PART_H
#define PS_PYTHON_PART_H

#include "numpy_api.h"

/* Add the functions to the module of a device; 0, or -1 with an exception. */
int part_add(PyObject *module);

#endif
