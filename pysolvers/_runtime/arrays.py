"""From array-likes to arrays of one dtype and one shape.

`as_operands` gives arrays of one of the four dtypes, converting no inexact array;
`resolve_shape` broadcasts their shapes, the axis of the systems apart; `check_out`
says whether a result may be written to an array. None of them has side effects.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import ArrayLike, NDArray

from .._checks import integer

__all__ = [
    "DTYPES",
    "Shape",
    "as_array",
    "as_operands",
    "check_out",
    "common_dtype",
    "resolve_shape",
]

Array = NDArray[Any]

#: The dtypes of the contract, by NumPy's type number.
DTYPES = {np.dtype(name).num: np.dtype(name) for name in ("f4", "f8", "c8", "c16")}

_CHOICES = "float32, float64, complex64 or complex128"

# Steps of the search for a common element before it is taken for granted.
_OVERLAP_WORK = 10_000


def as_operands(
    named: Mapping[str, ArrayLike], like: Mapping[str, Array] | None = None
) -> tuple[list[Array], np.dtype, tuple[str, ...]]:
    """Give every operand one dtype without converting any inexact array.

    The dtype is the one of the float or complex arrays, which must agree. Integer and
    boolean arrays are converted if NumPy promotes them to this dtype, and become
    float64 if there is no other array. Scalars and 0-d arrays follow the arrays.

    Parameters
    ----------
    named : mapping of str to array_like
        Name and value of each operand.
    like : mapping of str to ndarray, optional
        Arrays that have a say in the dtype and are not operands.

    Returns
    -------
    operands : list of ndarray
        Aligned, in native byte order, with strides in multiples of the item size.
    dtype : dtype
        Of all of them: float32, float64, complex64 or complex128.
    copied : tuple of str
        Names of the arrays that had to be copied for it.

    Raises
    ------
    TypeError
        If a dtype is unsupported or two differ, for a complex scalar among real
        arrays, a masked array or an ``np.matrix``.
    """
    arrays = {name: as_array(name, value) for name, value in named.items()}
    dtype = common_dtype({**like, **arrays} if like else arrays)
    operands = []
    copied = []
    for name, array in arrays.items():
        if array.dtype == dtype and _is_regular(array):
            operands.append(array)
            continue
        operands.append(np.array(array, dtype, order="K"))
        if array.ndim:
            copied.append(name)
    return operands, dtype, tuple(copied)


def as_array(name: str, value: ArrayLike) -> Array:
    """Return a plain array of one of the four dtypes, integers or booleans, or raise."""
    if type(value) is np.ndarray:
        array = value
    elif isinstance(value, np.ma.MaskedArray | np.matrix):
        raise TypeError(f"{name}: need a plain array, got {type(value).__name__}")
    else:
        try:
            array = np.asarray(value)
        except ValueError as error:  # rows of several lengths
            raise ValueError(f"{name}: {error}") from None
    if array.dtype.num not in DTYPES and array.dtype.kind not in "biu":
        raise TypeError(f"{name}: need {_CHOICES}, integers or booleans, got {array.dtype}")
    return array


def common_dtype(arrays: Mapping[str, Array]) -> np.dtype:
    """Return the dtype that all arrays are to have, or raise if there is none."""
    proper = {name: array for name, array in arrays.items() if array.ndim}
    scalars = {name: array for name, array in arrays.items() if not array.ndim}
    inexact = {name: array.dtype for name, array in proper.items() if array.dtype.num in DTYPES}
    if inexact:
        leader = "rhs" if "rhs" in inexact else next(iter(inexact))
        dtype = DTYPES[inexact[leader].num]
        _require_agreement(proper, leader, dtype)
        _require_real_scalars(scalars, leader, dtype)
        return dtype
    has_complex = any(array.dtype.kind == "c" for array in scalars.values())
    return np.dtype(np.complex128 if has_complex else np.float64)


def _require_agreement(arrays: Mapping[str, Array], leader: str, dtype: np.dtype) -> None:
    for name, array in arrays.items():
        is_inexact = array.dtype.num in DTYPES
        if array.dtype.num == dtype.num:
            continue
        if is_inexact or np.result_type(array.dtype, dtype) != dtype:
            raise TypeError(
                f"{name} is {array.dtype}, but {leader} is {dtype}: convert one of them"
            )


def _require_real_scalars(scalars: Mapping[str, Array], leader: str, dtype: np.dtype) -> None:
    if dtype.kind == "c":
        return
    for name, scalar in scalars.items():
        if scalar.dtype.kind == "c":
            raise TypeError(f"{name} is complex, but {leader} is {dtype}: convert one of them")


def _is_regular(array: Array) -> bool:
    size = array.itemsize
    flags = array.flags
    return (
        flags.aligned
        and array.dtype.isnative
        and (flags.c_contiguous or not any(stride % size for stride in array.strides))
    )


@dataclass(frozen=True, slots=True)
class Shape:
    """Common shape of the operands of a call.

    Attributes
    ----------
    full : tuple of int
        Shape of the result.
    axis : int
        Axis of the systems in it; at least 0.
    short : tuple of bool
        For each operand, whether it has one row less.
    """

    full: tuple[int, ...]
    axis: int
    short: tuple[bool, ...]

    @property
    def rows(self) -> int:
        """Length of a system."""
        return self.full[self.axis]

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape without the axis of the systems."""
        return self.full[: self.axis] + self.full[self.axis + 1 :]

    def batch_first(self, array: Array) -> Array:
        """View an array, broadcastable to `full`, with the axis of the systems last."""
        ndim = len(self.full)
        if array.ndim < ndim:
            array = array[(None,) * (ndim - array.ndim)]
        if self.axis == ndim - 1:
            return array
        order = [*range(self.axis), *range(self.axis + 1, ndim), self.axis]
        return array.transpose(order)


def resolve_shape(
    named: Mapping[str, Array], axis: int, *, leader: str, periodic: bool = False
) -> Shape:
    """Broadcast the shapes of operands, allowing short off-diagonals.

    Parameters
    ----------
    named : mapping of str to ndarray
        ``lower``, ``diag``, ``upper`` and perhaps ``rhs``.
    axis : int
        Axis of the systems in the broadcast shape.
    leader : str
        The operand with all rows; ``lower`` and ``upper`` can have one row fewer.
    periodic : bool
        Whether short off-diagonals are refused.

    Returns
    -------
    Shape
        Result shape, normalised axis, and which operands are short.

    Raises
    ------
    ValueError
        If the shapes do not broadcast, or (as an AxisError) if `axis` is out of range.
    """
    ndim = max(array.ndim for array in named.values())
    axis = integer("axis", axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(
            f"axis must be in {-ndim} .. {ndim - 1} for operands of {ndim} axes, got {axis}"
        )
    axis = normalize_axis_index(axis, ndim)
    full = named[leader].shape
    if all(array.shape == full for array in named.values()):
        return Shape(full, axis, (False,) * len(named))

    padded = {name: (1,) * (ndim - array.ndim) + array.shape for name, array in named.items()}
    lengths = {name: shape[axis] for name, shape in padded.items()}
    rows = _rows(lengths, leader)
    may_be_short = lengths[leader] == rows and not periodic
    short = tuple(
        may_be_short and name in ("lower", "upper") and length == rows - 1 != 1
        for name, length in lengths.items()
    )
    for (name, length), is_short in zip(lengths.items(), short, strict=True):
        if length not in (1, rows) and not is_short:
            kind = "a periodic system" if periodic else "a system"
            raise ValueError(f"{name}: {length} rows along axis {axis} do not fit {kind} of {rows}")
    try:
        batch = np.broadcast_shapes(*(s[:axis] + s[axis + 1 :] for s in padded.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in named.items())
        raise ValueError(f"shapes do not broadcast beside axis {axis}: {shapes}") from None
    return Shape((*batch[:axis], rows, *batch[axis:]), axis, short)


def _rows(lengths: Mapping[str, int], leader: str) -> int:
    """Rows of the systems: of the first operand, leader first, that does not broadcast."""
    if lengths[leader] != 1:
        return lengths[leader]
    if lengths["diag"] != 1:
        return lengths["diag"]
    return max(lengths["lower"], lengths["upper"], 1)


def check_out(
    out: object, shape: tuple[int, ...], dtype: np.dtype, inputs: Mapping[str, Array]
) -> Array:
    """Return `out` if a result of this shape and dtype may be written to it.

    Parameters
    ----------
    out : object
        What the caller gave.
    shape : tuple of int
        Shape of the result.
    dtype : dtype
        Dtype of the result.
    inputs : mapping of str to ndarray
        What `out` must not overlap; ``rhs`` may be `out` itself.

    Raises
    ------
    TypeError
        If `out` is not an ndarray of this dtype.
    ValueError
        If its shape is another, it is read-only, not aligned, holds an element twice
        or overlaps an input.
    """
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray | np.matrix):
        raise TypeError(f"out must be an ndarray, got {type(out).__name__}")
    if out.dtype != dtype:
        raise TypeError(f"out must be {dtype} like the result, got {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"out must have the shape {shape} of the result, got {out.shape}")
    if not out.flags.writeable:
        raise ValueError("out is read-only")
    if not _is_regular(out):
        raise ValueError("out must be aligned, with strides that are multiples of its item size")
    if out.size and _may_repeat(out):
        raise ValueError(
            "out must hold each element at one index, but its axes overlap: it has shape "
            f"{out.shape} with strides of {out.strides} bytes; pass an array that is not broadcast"
        )
    for name, array in inputs.items():
        if not (name == "rhs" and _is_same(array, out)) and _overlap(array, out):
            raise ValueError(f"out overlaps {name}; it may be rhs itself and nothing else")
    return out


def _may_repeat(array: Array) -> bool:
    """Whether an element may lie at two indices; never so for views made by slices.

    No element does if each axis steps over all that the axes with smaller steps reach.
    """
    axes = sorted(
        (abs(step), n) for step, n in zip(array.strides, array.shape, strict=True) if n > 1
    )
    reach = 0
    for step, n in axes:
        if step <= reach:
            return True
        reach += step * (n - 1)
    return False


def _is_same(a: Array, b: Array) -> bool:
    return a is b or (
        a.dtype == b.dtype
        and a.shape == b.shape
        and a.strides == b.strides
        and a.ctypes.data == b.ctypes.data
    )


def _overlap(a: Array, b: Array) -> bool:
    """Return whether two arrays share an element; True if this cannot be decided quickly."""
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_OVERLAP_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
