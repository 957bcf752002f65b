/* xla.h - the handlers through which programs that XLA has compiled call the backend.
 *
 * The handlers are registered with JAX. They neither use Python nor need the GIL.
 */
#ifndef PS_PYTHON_XLA_H
#define PS_PYTHON_XLA_H

#include "numpy_api.h"

/* Add to the module, 0, or -1 with an exception:
 *
 *   xla_tridiag    capsule of a handler: operands lower, diag, upper, rhs; results x
 *                  and, on a device, the workspace; attribute `layout` of int64
 *   xla_tridiag_work(dtype, layout) -> bytes of the workspace on a device, which must be
 *                  available
 *
 *   xla_products   capsule of a handler for a device: operands g and x, results lower,
 *                  diag and upper of ps_products; attribute `layout` of int64: flags,
 *                  rows, outer, inner
 *
 *   xla_blocks     capsule of a handler for the host: operands of ps_blocks, three blocks or
 *                  five diagonals and rhs; result x; attribute `layout` of int64: pivot,
 *                  definite, side, rows, outer, inner; then for each operand and x the
 *                  first element and the strides row, outer, inner, down, across, in
 *                  elements
 *
 * layout of xla_tridiag: pivot, flags, rows, outer, inner; then for lower, diag, upper,
 * rhs and x the first element and the strides row, outer, inner, in elements, all at
 * least 0. */
int xla_add(PyObject *module);

#endif
