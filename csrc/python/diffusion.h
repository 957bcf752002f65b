/* diffusion.h - the functions of the extension for implicit steps of diffusion. */
#ifndef PS_PYTHON_DIFFUSION_H
#define PS_PYTHON_DIFFUSION_H

#include "numpy_api.h"

/* diffusion_apply(ends, levels, x, out, threads, device=0, stream=0) -> status
 * diffusion_solve((rtol, ratio, most), ends, levels, rhs, x, scale, threads, device=0,
 * stream=0)
 *     -> (status, report or None)
 *   x, rhs and out have the axes of the first level, x last, and one dtype. ends: for
 * each axis from x on (periodic, half, half); levels: for each level (nodes, first, end,
 * faces, sum, factors, weights), each but sum with one entry for each axis from x on;
 * diffusion_apply() uses the first five entries of the first level. */
PyObject *diffusion_apply(PyObject *module, PyObject *args);
PyObject *diffusion_solve(PyObject *module, PyObject *args);

#endif
