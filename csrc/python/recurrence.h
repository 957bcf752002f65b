/* recurrence.h - linear recurrences as functions of the extension. */
#ifndef PS_PYTHON_RECURRENCE_H
#define PS_PYTHON_RECURRENCE_H

#include "numpy_api.h"

/* Add recurrence() and its flags: 0, or -1 with an exception. */
int recurrence_add(PyObject *module);

#endif
