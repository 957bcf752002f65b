/* transform.h - functions of the extension of a device for transforms (ps_transform.h).
 */
#ifndef PS_PYTHON_TRANSFORM_H
#define PS_PYTHON_TRANSFORM_H

#include "numpy_api.h"

/* Add the functions and TRANSFORMS, the kinds by name; 0, or -1 with an exception. */
int transform_add(PyObject *module);

#endif
