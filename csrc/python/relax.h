/* relax.h - the functions and constants of the extension for red-black relaxation. */
#ifndef PS_PYTHON_RELAX_H
#define PS_PYTHON_RELAX_H

#include "numpy_api.h"

/* lmsor_iterate(kernel, relaxation, omega, nx, ny, pitch, periodic, cx, cy, u, fields,
 *                tables, stop, count, threads, made, device=0, stream=0)
 *     -> (status, report or None)
 *   fields: omega, west, east, north, south, skew_x, skew_y, source, each an array like u
 *   or None; tables: x and y, or None twice; stop: criterion, norm, every, tolerance,
 *   history (an array or None), first_row and rows; made: one int64, the number of
 *   iterations, also if the call is interrupted. */
PyObject *lmsor_iterate(PyObject *module, PyObject *args);

/* laplace_iterate(variant, coefficients, nx, ny, pitch, periodic, ax, ay, t, diag, gain,
 *                 source, stop, count, threads, made, device=0, stream=0)
 *     -> (status, report or None) */
PyObject *laplace_iterate(PyObject *module, PyObject *args);

/* Set module.LMSOR_KERNELS, RELAXATIONS, LAPLACE_VARIANTS, LAPLACE_COEFFICIENTS, CRITERIA
 * and NORMS = {text: code}, and TABLE_ROWS; 0, or -1 with an exception. */
int relax_add_constants(PyObject *module);

#endif
