/* gceidd.h - the functions and constants of the extension for GCEIDD. */
#ifndef PS_PYTHON_GCEIDD_H
#define PS_PYTHON_GCEIDD_H

#include "numpy_api.h"

/* gceidd_step((scheme, upwind, predictor, foot, kernels, strategy), strips, lost,
 *              spacing, dt, (lowest, highest), (u, older, oldest), before, velocity,
 * diffusion, source, kinds, edges, exchange, count, threads, made, device=0, stream=0)
 *     -> (status, report or None)
 *   u, the half levels before it (None except for MU) and the field before the first
 * step (None: u) have shape (1, ny+1, nx+1), values at nodes have (count, ny+1, nx+1),
 * edges west and east (count, ny+1, 1), south and north (count, 1, nx+1), and so has the
 * exchange of a Robin side; it is None for others. source: pairs of a field and None or
 * `count` float64. */
PyObject *gceidd_step(PyObject *module, PyObject *args);

/* Set module.GCEIDD_SCHEMES, ... (gceidd.c) = {text: code}; 0, or -1 with an exception.
 */
int gceidd_add_constants(PyObject *module);

#endif
