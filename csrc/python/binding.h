/* binding.h - the functions and the types that module.c adds to the extension.
 *
 * An operand is an ndarray in the memory of the backend. If that is device memory, only
 * address, shape, strides and dtype are read. device and stream (0, or the address of a
 * stream) are used by device backends only.
 */
#ifndef PS_PYTHON_BINDING_H
#define PS_PYTHON_BINDING_H

#include "numpy_api.h"
#include "pysolvers.h"

/* tridiag_solve(method, pivot, flags, lower, diag, upper, rhs, x, info, threads,
 *               variant=0, device=0, stream=0, count=0) -> (status, report)
 * count: non-zero waits, if necessary, for the number of systems with row exchanges. */
PyObject *tridiag_solve(PyObject *module, PyObject *args);

/* tridiag_direct(lower, diag, upper, rhs, axis, out, pivot, periodic, threads,
 *                device=0, stream=0, singular=1, sums=0, step=None, method, reports)
 * -> x, or (x, info) if a system is singular, or a status that is not PS_OK, or
 * NotImplemented if the call is not one of those that need no planning. Arguments as
 * those of pysolvers.solve_tridiagonal; its other options have their defaults. singular:
 * 0 does nothing about singular systems, 1 reports them, which waits for a device, and 2,
 * on a device only, writes NaN to their solutions. sums: `diag` holds row sums, with
 * signs that are known (1) or checked (2); on the CPU only. step: (kind, step, gain,
 * source, where, flux_first, flux_last, value_first, value_last) for the step of ps_step
 * from the values `rhs`; each of those after gain can be None, and all can be left out; on
 * a device then (x, u, lower, diag, upper) and scale for its products: x and u of the step
 * whose reverse pass it is, and the arrays to which the products are written. The call is
 * left to Python unless these five arrays have the shape and the strides of `out`.
 * method: its code. reports, with singular=1 on the CPU: whether the answer is (x, info,
 * report), info None if no system is singular, in the place of x and of (x, info). */
PyObject *tridiag_direct(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* tridiag_borrowed(lower, diag, upper, rhs, axis, out, pivot, periodic, threads, device,
 * asks, library, step)
 * -> as tridiag_direct(), for numbers and arrays of a library, see borrowed.h; x is an
 * array of the library. device: -1, or the one that has the arrays. */
PyObject *tridiag_borrowed(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* borrow(array, device=0, stream=0) -> ndarray over the memory of an array of another
 * library, which `stream` can use from then on, or None if the backend cannot use it */
PyObject *borrow(PyObject *module, PyObject *args);

/* borrow_operands(operand, ..., device, library)
 * -> (device, stream, ndarray, ...), see borrowed.h: the device of the last operand, which
 * must be `device` unless that is -1, the current stream of the library, and ndarrays over
 * the operands, numbers and None; or None if the backend cannot use one of them */
PyObject *borrow_operands(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* factor_make(pivot, flags, lower, diag, upper, info, threads, device=0, stream=0,
 *             count=0) -> (status, report, Factor or None); count as above */
PyObject *factor_make(PyObject *module, PyObject *args);

/* The factor of a Factor of this type; null with TypeError for another object. Borrowed.
 */
const ps_factor *factor_of(PyObject *object, PyObject *type);

/* copy(source, target, threads, device=0, stream=0) -> status; arrays of shape
 * (1, 1, count) */
PyObject *copy(PyObject *module, PyObject *args);

/* Create the type Factor: a new reference, or null with an exception. */
PyObject *factor_type_new(PyObject *module);

/* The state of the module: the type from factor_type_new(). */
typedef struct {
    PyObject *factor_type;
} module_state;

#endif
