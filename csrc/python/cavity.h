/* cavity.h - the functions and constants of the extension for the lid-driven cavity. */
#ifndef PS_PYTHON_CAVITY_H
#define PS_PYTHON_CAVITY_H

#include "numpy_api.h"

/* cavity_iterate(scheme, wall, direction, stages, viscosity, lid, step, psi_sweeps,
 *                iteration, psi, omega, count, method, threads, made,
 *                device=0, stream=0)
 *     -> (status, report or None) */
PyObject *cavity_iterate(PyObject *module, PyObject *args);

/* Set module.SCHEMES, WALLS, DIRECTIONS and STAGES = {text: code}; 0, or -1 with an
 * exception. */
int cavity_add_constants(PyObject *module);

#endif
