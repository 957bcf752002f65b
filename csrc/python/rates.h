/* rates.h - rates of equations on boxes as a function of the extension. */
#ifndef PS_PYTHON_RATES_H
#define PS_PYTHON_RATES_H

#include "numpy_api.h"

/* Add rates(): 0, or -1 with an exception. */
int rates_add(PyObject *module);

#endif
