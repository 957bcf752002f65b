/* spikes.h - the function of the module that solves ps_spikes. */
#ifndef PS_PYTHON_SPIKES_H
#define PS_PYTHON_SPIKES_H

#include "numpy_api.h"

/* Add the function; 0, or -1 with an exception. */
int spikes_add(PyObject *module);

#endif
