"""Arrays of splines as lines of real numbers, (outer, inner, rows), and memory for them.

The axes before that of the knots are merged to `outer`, those after it to `inner`; real and
imaginary part are one more inner axis. Memory of splines has the order of a C-contiguous array of
the caller: (outer, rows, inner).
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import raise_for_status
from .._runtime.arrays import as_operands, real_of
from .._runtime.interop import host_array, library_of, locate
from .._runtime.lines import lines_view
from .._runtime.targets import Target, find_target

Array = NDArray[Any]


class Layout:
    """Shape of a batch of splines.

    Attributes
    ----------
    before, after : tuple of int
        Lengths of the axes before and after that of the knots.
    dtype : dtype
        Of the values.
    parts : tuple of int
        The axis of real and imaginary part, if the values are complex.
    outer, inner : int
        Number of real splines along the axes before and after that of the knots.
    """

    def __init__(self, before: tuple[int, ...], after: tuple[int, ...], dtype: np.dtype) -> None:
        self.before, self.after, self.dtype = before, after, dtype
        self.parts: tuple[int, ...] = (2,) if dtype.kind == "c" else ()
        self.outer, self.inner = prod(before), prod(after + self.parts)

    def shape(self, *middle: int) -> tuple[int, ...]:
        """Return the shape of an array with these axes in place of that of the knots."""
        return (*self.before, *middle, *self.after)

    def spread(self, lines: Array) -> Array:
        """Broadcast lines to all splines."""
        full = self.outer, self.inner, lines.shape[-1]
        return lines if lines.shape == full else np.broadcast_to(lines, full)

    def lines(self, target: Target, array: Array) -> Array:
        """View an array that broadcasts to `shape` as lines, or copy it so; not broadcast."""
        if array.dtype.kind == "c":
            array = array[..., None].view(real_of(array.dtype))
        elif self.parts:
            array = array[..., None]
        axis = len(self.before)
        if array.size == array.shape[axis]:
            return array.reshape(1, 1, -1)
        order = [k for k in range(array.ndim) if k != axis]
        batch = self.before + self.after + self.parts
        groups = (range(axis), range(axis, len(batch)))
        return lines_view(array.transpose(*order, axis), groups, batch, target.copier)

    def result_lines(self, written: Array, rows: int) -> Array:
        """View a C-contiguous array of the values of all splines as lines."""
        real = written.view(real_of(self.dtype))
        return real.reshape(self.outer, rows, self.inner).transpose(0, 2, 1)


def stacked(block: Array, count: int, shape: tuple[int, ...]) -> Array:
    """View a block of memory as an array of `count` arrays of lines of one shape."""
    outer, inner, rows = shape
    return block.reshape(count, outer, rows, inner).transpose(0, 1, 3, 2)


def parts_of(block: Array, count: int, shape: tuple[int, ...]) -> list[Array]:
    """View a block of memory as `count` arrays of lines of one shape."""
    return list(stacked(block, count, shape))


def is_of_library(value: Any) -> bool:
    """Whether a value is an array of a library other than NumPy."""
    return locate(value) is not None or host_array(value) is not value


# Arrays of one element of libraries, which all splines of a device share.
_smallest: dict[tuple[Any, ...], Any] = {}


def smallest_like(target: Target, like: Any, array: Array) -> Any:
    """Return an array of one element of the library of `like`, of the dtype of `array`."""
    if type(like) is np.ndarray:
        return np.empty(1, array.dtype)
    if target.is_synchronous:
        result = target.result(None, {"rhs": like}, np.empty(0), (1,), array.dtype)
        return target.finish(result, like)
    return like_on_device(like, array, target.ordinal)


def like_on_device(like: Any, array: Array, ordinal: int) -> Any:
    """Return what `smallest_like` does for an array on a device."""
    key = type(like), ordinal, array.dtype.num
    found = _smallest.get(key)
    if found is None:
        library = library_of(like)
        found = library.empty(like, array, (1,), ordinal)
        if library.has_fast_access:
            _smallest[key] = found
    return found


def in_real(target: Target, name: str, array: Array, dtype: np.dtype) -> Array:
    """Convert an operand of a target to another dtype."""
    return array if array.dtype == dtype else target.widen(name, array, dtype)


def points_of(target: Target, value: Any, dtype: np.dtype) -> Array:
    """Return points of the caller as real numbers of a dtype in the memory of a target."""
    if is_of_library(value):
        (array,), _, _ = target.operands({"x": value})
    else:
        (array,), _, _ = as_operands({"x": value})
    if array.dtype.kind == "c":
        raise TypeError(f"x must contain real values, got {array.dtype}")
    if is_of_library(value):
        return target.move(in_real(target, "x", array, dtype))[0]
    return target.upload(np.asarray(array, dtype)) if array.size else array.astype(dtype)


def flat(target: Target, array: Array) -> Array:
    """View an array with any axes as one line, or copy it so."""
    if array.ndim == 1:
        return array
    return lines_view(array[..., None], (range(array.ndim),), array.shape, target.copier)[:, 0]


def call(target: Target, name: str, function: Any, *arguments: Any) -> None:
    """Call a function of the backend for splines; `name` is that of the operation."""
    status = function(*arguments, *target.arguments)
    raise_for_status(status, target.backend.STATUS, name)


def target_for(device: str, like: Any, stream: object) -> Target:
    """Return where splines of a device are computed, with the current stream of `like`."""
    return find_target(device, stream, {"x": like}, operation="CubicSpline", leader="x")
