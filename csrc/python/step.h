/* step.h - the functions of the module for products and implicit steps. */
#ifndef PS_PYTHON_STEP_H
#define PS_PYTHON_STEP_H

#include "call.h"
#include "numpy_api.h"
#include "ps_step.h"

/* Add the functions and the codes; 0, or -1 with an exception. */
int step_add(PyObject *module);

/* Make a step in a call that call_begin() has prepared, and end it. `count`: as that of
 * step_solve(). Returns 0, or -1 with an exception. */
int step_run(const ps_step *s, ps_pivot pivot, int count, call *c, ps_status *status,
             ps_report *report);

#endif
