/* heat.h - the functions and constants of the extension for heat conduction. */
#ifndef PS_PYTHON_HEAT_H
#define PS_PYTHON_HEAT_H

#include "numpy_api.h"

/* heat_step((scheme, kernels, memory, mapping, block), (fresh, timed, goes_on, changed, before),
 *           ratios, sides, tables, source, (level_step, node_step), k, t, w, largest, kept, count,
 *           threads, made, device=0, stream=0)
 *     -> (status, report or None)
 *   A field has the axes of t, x last, and its dtype; ratios are those of x, y and z.
 *   sides: for each axis, from x on, the lower and the upper side, each as (kind,
 * exchange, (start, level_step, node_step) of the levels, the same of the sweeps), where
 * start is an index of the array tables, -1 for zeros. kept: None, or what heat_keep() returned;
 * changed: whether it was used with another ratio, k, or kind or exchange of a side. */
PyObject *heat_step(PyObject *module, PyObject *args);

/* heat_keep() -> a capsule for what heat_step() of a solver keeps from call to call */
PyObject *heat_keep(PyObject *module, PyObject *none);

/* heat_cut(applies, (rank, ranks), ends, beyond, first, used, t, before, ends, outer, weights,
 *          spikes, device=0, stream=0) -> status
 *   The members of ps_heat_cut, in pairs; an array has its numbers of a line as the first axis,
 * and the axes of t after it. A spike has as many lines, or one; None: no nodes. */
PyObject *heat_cut(PyObject *module, PyObject *args);

/* Set module.HEAT_SCHEMES, HEAT_SIDES, HEAT_KERNELS, HEAT_MEMORY and HEAT_STAGES =
 * {text: code}; 0, or -1 with an exception. */
int heat_add_constants(PyObject *module);

#endif
