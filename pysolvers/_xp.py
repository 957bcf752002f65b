"""Formulas for JAX and PyTorch: what they need apart from the functions that both libraries have.

`xp` is the module with the functions that have one name and the same positional arguments in
`jax.numpy` and in `torch`: `concatenate`, `where`, `broadcast_to`, `stack`, ...
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = Any


def joined(xp: Any, real: Array, imag: Array) -> Array:
    """Return complex numbers of NumPy or CuPy; parts that are not finite stay apart."""
    x = xp.empty(real.shape, np.result_type(real.dtype, np.complex64))
    x.real, x.imag = real, imag
    return x


class ArrayLibrary(NamedTuple):
    """A library of arrays with derivatives.

    Attributes
    ----------
    xp : module
        Functions of arrays.
    move : callable
        Moves axes; `torch.moveaxis` has no rule for `torch.vmap`.
    operands : callable
        Returns the dict of arrays of one dtype to which a dict of arguments of the caller promotes.
    checked : callable
        Returns an array of the caller as an array of the library; the arguments are its name, for
        messages, and the array.
    like : callable
        Returns an argument of the caller with dtype and device of an array, or raises TypeError;
        the arguments are its name, the argument and the array.
    points : callable
        Returns real points of the caller with dtype and device of an array.
    is_complex : callable
        Whether an argument of the caller, or an array, is complex.
    joined : callable
        Returns complex numbers of their real and imaginary parts. The sum of one part and 1j times
        the other spoils numbers with a part that is not finite, and zeros of negative sign.
    ones : callable
        Returns a vector of ones with the real dtype and the device of an array; the arguments are
        the length and the array.
    rows : callable
        Returns consecutive rows; the arguments are array, start, stop and axis.
    padded : callable
        Returns an array with rows of zeros; the arguments are array, numbers of rows before and
        after it, and axis.
    add, put : callable
        Return an array with values added to one row, or in place of it; the arguments are array,
        axis, index and values.
    locate : callable
        Returns the numbers of knots, along the last axis, that are at most the points.
    take : callable
        Returns the elements of an array at indices along the last axis, for other axes that
        broadcast.
    constant : callable
        Returns an array whose derivatives are zero.
    barrier : callable
        Returns an array, computed before the operations that use it: a compiler must not turn
        a / b / b into a / (b * b), which can overflow.
    """

    xp: Any
    move: Callable[..., Array]
    operands: Callable[[dict[str, Any]], dict[str, Array]]
    checked: Callable[[str, Any], Array]
    like: Callable[[str, Any, Array], Array]
    points: Callable[[Any, Array], Array]
    is_complex: Callable[[Any], bool]
    joined: Callable[[Array, Array], Array]
    ones: Callable[[int, Array], Array]
    rows: Callable[[Array, int, int, int], Array]
    padded: Callable[[Array, int, int, int], Array]
    add: Callable[[Array, int, int, Array], Array]
    put: Callable[[Array, int, int, Array], Array]
    locate: Callable[[Array, Array], Array]
    take: Callable[[Array, Array], Array]
    constant: Callable[[Array], Array]
    barrier: Callable[[Array], Array]

    def end_row(self, array: Array, place: int, axis: int) -> Array:
        """Return the first (0) or the last row (-1)."""
        start = place % array.shape[axis]
        return self.rows(array, start, start + 1, axis)

    def shifted(self, array: Array, by: int, axis: int) -> Array:
        """Return an array whose rows are shifted around by 1 or -1."""
        count = array.shape[axis]
        if by == 1:
            inner, end = self.rows(array, 0, count - 1, axis), self.end_row(array, -1, axis)
            return self.padded(inner, 1, 0, axis) + self.padded(end, 0, count - 1, axis)
        inner, end = self.rows(array, 1, count, axis), self.end_row(array, 0, axis)
        return self.padded(inner, 0, 1, axis) + self.padded(end, count - 1, 0, axis)

    def flux_into(self, conductance: Array, x: Array, axis: int, *, periodic: bool) -> Array:
        """Return q_i - q_{i-1}, q_i = c_i (x_{i+1} - x_i): exactly zero where x is constant.

        The transpose is the same function. The conductances have n - 1 rows or, if `periodic`, n.
        """
        count = x.shape[axis]
        inner = self.rows(conductance, 0, count - 1, axis)
        flux = inner * (self.rows(x, 1, count, axis) - self.rows(x, 0, count - 1, axis))
        into = self.padded(flux, 0, 1, axis) - self.padded(flux, 1, 0, axis)
        if not periodic:
            return into
        step = self.end_row(x, 0, axis) - self.end_row(x, -1, axis)
        flux = self.end_row(conductance, -1, axis) * step
        around = self.padded(flux, count - 1, 0, axis) - self.padded(flux, 0, count - 1, axis)
        return into + around
