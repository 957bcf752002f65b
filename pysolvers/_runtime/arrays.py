"""From array-likes to arrays of one dtype and one shape.

`as_operands` gives arrays of the dtype to which NumPy promotes them; `resolve_shape`
broadcasts their shapes, except along the axis of the systems; `check_out` checks whether
a result can be written to an array. None of them has side effects.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import integer
from .interop import library_of

__all__ = [
    "DTYPES",
    "Shape",
    "as_array",
    "as_operands",
    "check_out",
    "common_size",
    "pairs",
    "promote",
    "real_of",
    "resolve_shape",
    "weak_names",
]

Array = NDArray[Any]

#: The dtypes of the contract, by NumPy's type number.
DTYPES = {np.dtype(name).num: np.dtype(name) for name in ("f4", "f8", "c8", "c16")}

_REAL = {np.dtype(c).num: np.dtype(r) for c, r in (("c8", "f4"), ("c16", "f8"))}

# Stand-ins of Python numbers, by the kind of the array that NumPy makes of them.
_WEAK: dict[str, Any] = {"i": 0, "u": 0, "f": 0.0, "c": 0j}

_CHOICES = "float32, float64, complex64 or complex128"

_SIDES = ("lower", "upper")

# Steps of the search for a common element before it is taken for granted.
_OVERLAP_WORK = 10_000


def as_operands(
    named: Mapping[str, ArrayLike],
    like: Mapping[str, Array] | None = None,
    *,
    widens: bool = False,
) -> tuple[list[Array], np.dtype, tuple[str, ...]]:
    """Convert operands to the dtype to which NumPy promotes them.

    A real matrix with a complex ``rhs`` stays real, with the precision of the result.

    Parameters
    ----------
    named : mapping of str to array_like
        Name and value of each operand.
    like : mapping of str to ndarray, optional
        Arrays of the dtype that the operands must have.
    widens : bool, default: False
        Whether the operands may be complex although `like` is real.

    Returns
    -------
    operands : list of ndarray
        Aligned, in native byte order, with strides in multiples of the item size.
    dtype : dtype
        Of the result: float32, float64, complex64 or complex128.
    copied : tuple of str
        Names of the arrays that were copied for it.

    Raises
    ------
    TypeError
        If a dtype is not supported or not that of `like`, or for a masked array, an
        ``np.matrix`` or an array without values.
    """
    arrays = {name: as_array(name, value) for name, value in named.items()}
    dtype, dtypes = promote(arrays, weak_names(named), like, widens=widens)
    operands = []
    copied = []
    for (name, array), wanted in zip(arrays.items(), dtypes, strict=True):
        if array.dtype == wanted and _is_regular(array):
            operands.append(array)
            continue
        operands.append(np.array(array, wanted, order="K"))
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
        library_of(value).check(name, value)
        try:
            array = np.asarray(value)
        except ValueError as error:  # rows of several lengths
            raise ValueError(f"{name}: {error}") from None
    if array.dtype.num not in DTYPES and array.dtype.kind not in "biu":
        raise TypeError(f"{name}: need {_CHOICES}, integers or booleans, got {array.dtype}")
    return array


def weak_names(named: Mapping[str, Any]) -> set[str]:
    """Return the names of the Python numbers, whose precision does not promote arrays."""
    return {
        name
        for name, value in named.items()
        if isinstance(value, int | float | complex) and not isinstance(value, bool | np.generic)
    }


def promote(
    arrays: Mapping[str, Array],
    weak: Collection[str] = (),
    like: Mapping[str, Array] | None = None,
    *,
    widens: bool = False,
) -> tuple[np.dtype, list[np.dtype]]:
    """Return the dtype of the result and those that the operands are to have.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        From `as_array`.
    weak : collection of str
        From `weak_names`.
    like, widens
        As in `as_operands`.
    """
    fixed = {name: array.dtype for name, array in (like or {}).items()}
    strong = [array.dtype for name, array in arrays.items() if name not in weak]
    strong += fixed.values()
    if strong and not weak and strong[0].num in DTYPES and all(d == strong[0] for d in strong):
        dtype = DTYPES[strong[0].num]
    else:
        dtype = np.result_type(*strong, *(_WEAK[arrays[name].dtype.kind] for name in weak))
        dtype = DTYPES.get(dtype.num, np.dtype(np.float64))
    for name, needed in fixed.items():
        if dtype != needed and not (widens and dtype == _complex_of(needed)):
            raise _refusal(arrays, name, needed, widens=widens)
    matrix = dtype
    if dtype.kind == "c" and "rhs" in arrays and arrays["rhs"].dtype.kind == "c":
        others = [array.dtype.kind for name, array in arrays.items() if name != "rhs"]
        matrix = dtype if "c" in others else real_of(dtype)
    return dtype, [dtype if name == "rhs" else matrix for name in arrays]


def _refusal(arrays: Mapping[str, Array], name: str, fixed: np.dtype, *, widens: bool) -> TypeError:
    """Return the error for operands that do not promote to the dtype of something fixed."""
    accepted = (fixed, _complex_of(fixed)) if widens else (fixed,)
    operand, other = next(
        (key, array.dtype)
        for key, array in arrays.items()
        if np.result_type(array.dtype, fixed) not in accepted
    )
    return TypeError(f"{operand} is {other}, but {name} is {fixed}: convert {operand}")


def real_of(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the real and imaginary parts."""
    return _REAL.get(dtype.num, dtype)


def _complex_of(dtype: np.dtype) -> np.dtype:
    return np.result_type(dtype, np.complex64)


def _is_regular(array: Array) -> bool:
    size = array.itemsize
    flags = array.flags
    return (
        flags.aligned
        and array.dtype.isnative
        and (flags.c_contiguous or not any(stride % size for stride in array.strides))
    )


def pairs(array: Array) -> Array:
    """View a complex array as real: a leading axis of length 2 has real and imaginary part."""
    parts = array[..., None].view(real_of(array.dtype))
    return parts.transpose(-1, *range(array.ndim))


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
    along : tuple of bool
        For each operand, whether it has one axis only, which is the axis of the systems,
        although this is not the last axis of `full`.
    """

    full: tuple[int, ...]
    axis: int
    short: tuple[bool, ...]
    along: tuple[bool, ...] = ()

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
        return self._rows_last(array, along=False)

    def operands(self, arrays: Sequence[Array]) -> list[Array]:
        """View the first operands of the call as `batch_first` does."""
        along = self.along or (False,) * len(arrays)
        return [self._rows_last(a, along=k) for a, k in zip(arrays, along, strict=False)]

    def _rows_last(self, array: Array, *, along: bool) -> Array:
        ndim = len(self.full)
        if array.ndim < ndim:
            array = array[(None,) * (ndim - array.ndim)]
        if along or self.axis == ndim - 1:
            return array
        order = [*range(self.axis), *range(self.axis + 1, ndim), self.axis]
        return array.transpose(order)


def resolve_shape(
    named: Mapping[str, Array],
    axis: int,
    *,
    leader: str,
    periodic: bool = False,
    rows: int | None = None,
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
    rows : int, optional
        Number of rows; by default that of the operands.

    Returns
    -------
    Shape
        Result shape, normalised axis, and which operands are short.

    Raises
    ------
    ValueError
        If the shapes do not broadcast, or (as an AxisError) if `axis` is out of range.

    Notes
    -----
    An operand of one axis lies along the axis of the systems if its length is the number of
    rows, or, for ``lower`` and ``upper``, one less. Otherwise it broadcasts as in NumPy. The
    number of rows is that of the operands with more axes.
    """
    ndim = max(1, *(array.ndim for array in named.values()))
    axis = integer("axis", axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(
            f"axis must be in {-ndim} .. {ndim - 1} for operands of {ndim} axes, got {axis}"
        )
    axis %= ndim
    full = named[leader].shape
    has_rows = rows is None or full[axis : axis + 1] == (rows,)
    if has_rows and all(array.shape == full for array in named.values()):
        return Shape(full, axis, (False,) * len(named))

    along = _along_axis(named, axis, ndim, leader, periodic, rows)
    padded = {
        name: (1,) * axis + array.shape + (1,) * (ndim - 1 - axis)
        if name in along
        else (1,) * (ndim - array.ndim) + array.shape
        for name, array in named.items()
    }
    lengths = {name: shape[axis] for name, shape in padded.items()}
    may_be_short = not periodic
    if rows is None:
        rows = _rows(lengths, leader)
        may_be_short = may_be_short and lengths[leader] == rows
    short = tuple(
        may_be_short and name in _SIDES and length == rows - 1 != 1
        for name, length in lengths.items()
    )
    for (name, length), is_short in zip(lengths.items(), short, strict=True):
        if length not in (1, rows) and not is_short:
            kind = "a periodic system" if periodic else "a system"
            raise ValueError(f"{name}: {length} rows along axis {axis} do not fit {kind} of {rows}")
    batch = [
        common_size(sizes)
        for place, sizes in enumerate(zip(*padded.values(), strict=True))
        if place != axis
    ]
    if -1 in batch:
        shapes = ", ".join(f"{name} {tuple(array.shape)}" for name, array in named.items())
        raise ValueError(f"shapes do not broadcast except along axis {axis}: {shapes}")
    return Shape(
        (*batch[:axis], rows, *batch[axis:]), axis, short, tuple(name in along for name in named)
    )


def common_size(sizes: Sequence[int]) -> int:
    """Return the size to which all sizes broadcast; -1 if there is none."""
    others = [size for size in sizes if size != 1] or [1]
    return others[0] if all(size == others[0] for size in others) else -1


def _along_axis(
    named: Mapping[str, Array], axis: int, ndim: int, leader: str, periodic: bool, rows: int | None
) -> set[str]:
    """Return the names of the operands of one axis that lie along `axis`, not the last one."""
    vectors = {name: array.shape[0] for name, array in named.items() if array.ndim == 1}
    if not vectors or axis == ndim - 1:
        return set()
    if rows is None:
        padded = {name: (1,) * (ndim - a.ndim) + a.shape for name, a in named.items()}
        lengths = {name: 1 if name in vectors else s[axis] for name, s in padded.items()}
        rows = _rows(lengths, leader)
        if not periodic and lengths["diag"] == 1 and vectors.get(leader) == rows + 1:
            rows += 1  # lower and upper, which alone have more axes, are short
    return {
        name
        for name, size in vectors.items()
        if size != 1 and (size == rows or (size == rows - 1 and name in _SIDES and not periodic))
    }


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
