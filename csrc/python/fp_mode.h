/* fp_mode.h - functions of Python in the default floating-point mode. */
#ifndef PS_PYTHON_FP_MODE_H
#define PS_PYTHON_FP_MODE_H

#include "numpy_api.h"

/* Add in_default_fp_mode() to the module: 0, or -1 with an exception. */
int fp_mode_add(PyObject *module);

#endif
