/* spline.h - functions of the extension for splines (ps_spline.h). Arrays have the shape
 * (outer, inner, rows).
 */
#ifndef PS_PYTHON_SPLINE_H
#define PS_PYTHON_SPLINE_H

#include "numpy_api.h"

/* Add the functions, SPLINE_ENDS, SPLINE_OUTSIDES and SPLINE_FAULTS; 0, or -1 with an
 * exception. */
int spline_add(PyObject *module);

#endif
