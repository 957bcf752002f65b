/* staggered.h - the function and constants of the extension for the staggered cavity. */
#ifndef PS_PYTHON_STAGGERED_H
#define PS_PYTHON_STAGGERED_H

#include "numpy_api.h"

/* staggered_step((kernel, pressure, stages),
 *                (reynolds, tau, gamma, dt, until, steady, tolerance, omega, lid, push,
 *                 bound),
 *                most_sweeps, u, v, p, f, g, q, clock, (force_x, force_y) or None, count,
 *                threads, made, device=0, stream=0)
 *     -> (status, report or None) */
PyObject *staggered_step(PyObject *module, PyObject *args);

/* Set module.STAGGERED_KERNELS, PRESSURES, STAGGERED_STAGES, STAGGERED_ENDS and CLOCK =
 * {text: code}; 0, or -1 with an exception. */
int staggered_add_constants(PyObject *module);

#endif
