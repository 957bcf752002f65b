/* diffusion.h - the functions of the extension for implicit steps of diffusion. */
#ifndef PS_PYTHON_DIFFUSION_H
#define PS_PYTHON_DIFFUSION_H

#include "numpy_api.h"

/* diffusion_apply(ends, system, x, out, threads, device=0, stream=0) -> status
 * diffusion_solve((rtol, ratio, most), ends, system, levels, rhs, x, scale, basis,
 * threads, device=0, stream=0)
 *     -> (status, report or None)
 *   x, rhs, out and each field of the basis, a tuple, have the axes of the system, x
 * last, and its dtype. ends: for each axis from x on (periodic, half, half); system:
 * (nodes, first, end, faces, sum); levels: for each level the same and (factors,
 * weights), in the dtype of the system or all in float32. Each item but sum has one entry
 * for each axis from x on. */
PyObject *diffusion_apply(PyObject *module, PyObject *args);
PyObject *diffusion_solve(PyObject *module, PyObject *args);

/* Add DIFFUSION_MARGIN and DIFFUSION_KEPT, and a function of devices,
 *   diffusion_centre(ends, system, x, mean, device=0, stream=0) -> status,
 * or those of hosts, for ranks that each hold a part of the fields:
 *   diffusion_combine(products, is_float32) -> factors
 *     products: the rows g[i][0 .. i + 1] of ps_diffusion_combine()
 *   diffusion_least(state, alpha, beta) -> (state, least)
 *     state: the numbers of ps_diffusion_least in their order, at first 0
 * 0, or -1 with an exception. */
int diffusion_add(PyObject *module);

#endif
