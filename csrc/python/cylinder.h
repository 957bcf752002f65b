/* cylinder.h - functions of the extension of a device for the flow around a cylinder
 * (ps_cylinder.h).
 */
#ifndef PS_PYTHON_CYLINDER_H
#define PS_PYTHON_CYLINDER_H

#include "numpy_api.h"

/* Add the function, and the names of stages, tables and columns; 0, or -1 with an
 * exception. */
int cylinder_add(PyObject *module);

#endif
