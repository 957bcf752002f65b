/* blocks.h - block tridiagonal systems and five diagonals as functions of the extension. */
#ifndef PS_PYTHON_BLOCKS_H
#define PS_PYTHON_BLOCKS_H

#include "numpy_api.h"

/* Add blocks_store(), blocks_run() and their codes: 0, or -1 with an exception. */
int blocks_add(PyObject *module);

#endif
