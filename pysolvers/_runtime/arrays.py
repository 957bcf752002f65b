"""From array-likes to arrays of one dtype and one shape.

`as_operands` gives arrays of the dtype to which NumPy promotes them; `resolve_shape`
broadcasts their shapes, and lays those of one axis along the systems; `check_out` checks whether
a result can be written to an array. None of them has side effects.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import axis_number, index, integer
from .._plain import require_plain, what_is_lost
from .fp_mode import call_in_default_fp_mode
from .interop import library_of
from .lines import Shape

Array = NDArray[Any]

#: The dtypes of the contract, by NumPy's type number.
DTYPES = {np.dtype(name).num: np.dtype(name) for name in ("f4", "f8", "c8", "c16")}

_REAL = {np.dtype(c).num: np.dtype(r) for c, r in (("c8", "f4"), ("c16", "f8"))}

# Stand-ins of Python numbers, by the kind of the array that NumPy makes of them.
_WEAK: dict[str, Any] = {"i": 0, "u": 0, "f": 0.0, "c": 0j}

# Tuples: a union of types would be made anew in each call.
_NUMBERS = (int, float, complex)
_NOT_WEAK = (bool, np.generic)

_CHOICES = "float32, float64, complex64 or complex128"

_SIDES = ("lower", "upper")

# Steps of the search for a common element before it is taken for granted.
_OVERLAP_WORK = 10_000


def as_operands(
    named: Mapping[str, ArrayLike],
    like: Mapping[str, Array] | None = None,
    *,
    widens: bool = False,
    vectors: Collection[str] = ("rhs",),
) -> tuple[list[Array], np.dtype, tuple[str, ...]]:
    """Convert operands to the dtype to which NumPy promotes them.

    A real matrix with complex vectors stays real, with the precision of the result.

    Parameters
    ----------
    named : mapping of str to array_like
        Name and value of each operand.
    like : mapping of str to ndarray, optional
        Arrays of the dtype that the operands must have.
    widens : bool, default: False
        Whether the operands may be complex although `like` is real.
    vectors : collection of str
        Names of the operands that are not entries of the matrix.

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
        ``np.matrix``, an array with a unit, one of dask, or an array without values.
    """
    arrays = {name: as_array(name, value) for name, value in named.items()}
    dtype, dtypes = promote(arrays, weak_names(named), like, widens=widens, vectors=vectors)
    operands = []
    copied = []
    for (name, array), wanted in zip(arrays.items(), dtypes, strict=True):
        if array.dtype == wanted and _is_regular(array):
            operands.append(array)
            continue
        operands.append(call_in_default_fp_mode(np.array, array, wanted, order="K"))
        if array.ndim:
            copied.append(name)
    return operands, dtype, tuple(copied)


def as_array(name: str, value: ArrayLike) -> Array:
    """Return a plain array of one of the four dtypes, integers or booleans, or raise."""
    if type(value) is np.ndarray:
        array = value
    else:
        require_plain(name, value)
        library_of(value).check(name, value)
        try:
            array = np.asarray(value)
        except ValueError as error:  # rows of several lengths
            raise ValueError(f"{name}: {error}") from None
    if array.dtype.num not in DTYPES and array.dtype.kind not in "biu":
        raise TypeError(
            f"{name}: need {_CHOICES}, integers or booleans, got "
            f"{_kind_text(name, value, array.dtype)}"
        )
    return array


def _kind_text(name: str, value: Any, dtype: np.dtype) -> str:
    """Return what an array of another dtype is, and what to write."""
    if value is None:
        zeros = "0.0 for a diagonal of zeros" if name in (*_SIDES, "diag") else "an array"
        return f"None: pass {zeros}"
    if hasattr(value, "todia"):
        return "a sparse matrix: pass its diagonals, a.diagonal(-1), a.diagonal() and a.diagonal(1)"
    if dtype.kind in "mM":
        return f"{dtype}: write ({name} - {name}[0]) / numpy.timedelta64(1, 's')"
    if dtype.kind == "f":
        wanted = "numpy.float32" if dtype.itemsize < 4 else "float"
        return f"{dtype}: write {name}.astype({wanted})"
    if dtype.kind == "c":
        return f"{dtype}: write {name}.astype(complex)"
    if dtype.kind == "V" and dtype.names is None:  # bfloat16 and others of packages
        return f"{dtype}: write {name}.astype(numpy.float32)"
    write = f"{name}.astype(float)" if hasattr(value, "astype") else f"numpy.array({name}, float)"
    return f"{dtype}: write {write}"


def weak_names(named: Mapping[str, Any]) -> set[str]:
    """Return the names of the Python numbers, whose precision does not promote arrays."""
    return {
        name
        for name, value in named.items()
        if isinstance(value, _NUMBERS) and not isinstance(value, _NOT_WEAK)
    }


def promote(
    arrays: Mapping[str, Array],
    weak: Collection[str] = (),
    like: Mapping[str, Array] | None = None,
    *,
    widens: bool = False,
    vectors: Collection[str] = ("rhs",),
) -> tuple[np.dtype, list[np.dtype]]:
    """Return the dtype of the result and those that the operands are to have.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        From `as_array`.
    weak : collection of str
        From `weak_names`.
    like, widens, vectors
        As in `as_operands`.
    """
    fixed = {name: array.dtype for name, array in like.items()} if like else {}
    strong = [array.dtype for name, array in arrays.items() if name not in weak]
    strong += fixed.values()
    is_one = strong and not weak and strong.count(strong[0]) == len(strong)
    if is_one and strong[0].num in DTYPES:
        dtype = DTYPES[strong[0].num]
    else:
        dtype = np.result_type(*strong, *(_WEAK[arrays[name].dtype.kind] for name in weak))
        dtype = DTYPES.get(dtype.num, np.dtype(np.float64))
    for name, needed in fixed.items():
        if dtype != needed and not (widens and dtype == _complex_of(needed)):
            raise _refusal(arrays, name, needed, widens=widens)
    matrix = dtype
    if dtype.kind == "c" and any(arrays[n].dtype.kind == "c" for n in vectors if n in arrays):
        others = [array.dtype.kind for name, array in arrays.items() if name not in vectors]
        matrix = dtype if "c" in others else real_of(dtype)
    return dtype, [dtype if name in vectors else matrix for name in arrays]


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
    """Return the complex dtype of the same precision."""
    return np.result_type(dtype, np.complex64)


def _is_regular(array: Array) -> bool:
    """Return whether a backend can address the elements: native, and at multiples of their size."""
    size = array.itemsize
    flags = array.flags
    return (
        flags.aligned
        and array.dtype.isnative
        and (flags.c_contiguous or not any(stride % size for stride in array.strides))
    )


def padded_shape(shape: Sequence[int], axis: int, ndim: int) -> tuple[int, ...]:
    """Return the shape that an operand has with all axes of a call.

    One axis is that of the systems, `axis`; two and more are the last axes of the call.
    """
    missing = ndim - len(shape)
    behind = ndim - 1 - axis if len(shape) == 1 else 0
    return (1,) * (missing - behind) + tuple(shape) + (1,) * behind


def factor_axis(axis: object, ndim: int, what: str = "") -> tuple[int, int]:
    """Return the axis of the systems in matrices of `ndim` axes, and that of solves with them.

    The `axis` of a function that makes factors says where the systems lie in right-hand sides.
    Matrices of one axis can lie along any: solves use it as it was given, 0 for the first and -1
    for the last axis. With several it is an axis of the matrices, and counts from the end.
    `what` says for messages what has the axes.
    """
    if ndim <= 1:
        return -1, integer("axis", axis)
    own = axis_number(axis, ndim, what or f"operands of {ndim} axes") - ndim
    return own, own


def factor_shape(
    arrays: Mapping[str, Any], axis: object, rows: int | None, *, periodic: bool
) -> tuple[Shape, int]:
    """Return the shape of the matrices of a factor, and the axis of solves with them, or raise.

    `arrays` are ``lower``, ``diag`` and ``upper`` of any library. One entry for each matrix can be
    its only row, or the coefficient of all rows: then `rows` must say so.
    """
    count = None if rows is None else index("rows", rows, 0)
    ndim = max(array.ndim for array in arrays.values())
    if count is None and ndim == 0:
        raise ValueError(
            "lower, diag and upper are all 0-d, so the number of rows is unknown: "
            "pass rows=n, or at least one array"
        )
    place, own = factor_axis(axis, ndim)
    shape = resolve_shape(arrays, place, leader="diag", periodic=periodic, rows=count)
    is_open = arrays["diag"].ndim != 1 and not any(shape.short)
    if count is None and shape.rows == 1 < len(shape.full) and is_open:
        raise one_row(arrays, axis)
    return shape, own


def one_row(arrays: Mapping[str, Any], axis: object) -> ValueError:
    """Return the error of factors whose matrices have one entry each, and no `rows`."""
    *names, last = arrays
    shapes = ", ".join(f"{name} {tuple(array.shape)}" for name, array in arrays.items())
    return ValueError(
        f"{', '.join(names)} and {last} have one row along axis {axis}: {shapes}; pass rows=n for "
        "matrices of n rows with these coefficients in every row, rows=1 for one row"
    )


def axis_of_solutions(
    axis: object, own: int, ndim: int, sides: int, name: str = "rhs", *, tail: int = 0
) -> int:
    """Return the axis of the systems in solutions, counted from the end, or raise.

    Parameters
    ----------
    axis : int or None
        The argument of a solve; None is the axis of the factor.
    own : int
        The axis of the factor, from `factor_axis`.
    ndim : int
        Number of axes of the matrices.
    sides : int
        Number of axes of the right-hand sides; one is broadcast to the matrices.
    name : str
        What messages call the right-hand sides.
    tail : int, default: 0
        Number of axes that follow those counted here.
    """
    if sides < 1:  # the caller, who checks the shape, refuses it
        return -1
    whole = max(sides, ndim) if sides == 1 else sides
    what = f"{name} of {whole + tail} axes"
    if axis is not None:
        return axis_number(axis, whole, what, "an int or None") - whole
    if ndim > 1:
        return own
    return axis_number(own, whole, what, name="axis of the factor") - whole


def resolve_shape(
    named: Mapping[str, Array],
    axis: int,
    *,
    leader: str,
    periodic: bool = False,
    rows: int | None = None,
    omits: bool = True,
) -> Shape:
    """Return the common shape of operands, allowing short off-diagonals.

    Parameters
    ----------
    named : mapping of str to array
        ``lower``, ``diag``, ``upper`` and perhaps ``rhs``, of any library.
    axis : int
        Axis of the systems in the broadcast shape.
    leader : str
        The operand with all rows; ``lower`` and ``upper`` can have one row fewer.
    periodic : bool
        Whether the systems are periodic; short off-diagonals are then refused.
    rows : int, optional
        Number of rows; by default that of the operands.
    omits : bool, default: True
        Whether ``lower`` and ``upper`` can have one row fewer.

    Returns
    -------
    Shape
        Result shape, normalised axis, and which operands are short.

    Raises
    ------
    ValueError
        If an operand of one axis has not all rows, if other shapes do not broadcast, or (as
        an AxisError) if `axis` is out of range.

    Notes
    -----
    An operand of one axis lies along the axis of the systems and has an entry for each row,
    or, for ``lower`` and ``upper``, one less: its length never decides what it means.
    Numbers, and operands of two and more axes, broadcast as in NumPy. The number of rows is
    that of the operands with the most axes.
    """
    ndim = max(1, *(array.ndim for array in named.values()))
    axis = axis_number(axis, ndim, f"operands of {ndim} axes")
    full = tuple(named[leader].shape)
    has_rows = rows is None or full[axis : axis + 1] == (rows,)
    if has_rows and all(tuple(array.shape) == full for array in named.values()):
        return Shape(full, axis, (False,) * len(named))

    padded = {name: padded_shape(a.shape, axis, ndim) for name, a in named.items()}
    if rows is None:
        rows = _rows({n: (named[n].ndim > 1, shape[axis]) for n, shape in padded.items()}, leader)
    batch = [
        common_size(sizes)
        for place, sizes in enumerate(zip(*padded.values(), strict=True))
        if place != axis
    ]
    whole = (*batch[:axis], rows, *batch[axis:])
    has_less = []
    for name, array in named.items():
        length = padded[name][axis]
        is_constant = length == 1 and array.ndim != 1
        is_one_less = omits and not periodic and name in _SIDES and length == rows - 1
        if length != rows and not is_constant and not is_one_less:
            rule = "periodic" if periodic else "split" if not omits else ""
            raise ValueError(_length_text(name, array.ndim, length, whole, axis, rule))
        has_less.append(is_one_less and not is_constant)
    if -1 in batch:
        shapes = ", ".join(f"{name} {tuple(array.shape)}" for name, array in named.items())
        raise ValueError(f"shapes do not broadcast except along axis {axis}: {shapes}")
    return Shape(whole, axis, tuple(has_less))


def require_rows(name: str, array: Any, full: tuple[int, ...], axis: int) -> None:
    """Raise ValueError unless an operand of one axis has the rows of a call of shape `full`."""
    if array.shape[0] != full[axis]:
        raise ValueError(_length_text(name, 1, array.shape[0], full, axis, ""))


def common_size(sizes: Sequence[int]) -> int:
    """Return the size to which all sizes broadcast; -1 if there is none."""
    others = [size for size in sizes if size != 1] or [1]
    return others[0] if all(size == others[0] for size in others) else -1


def _rows(lengths: Mapping[str, tuple[bool, int]], leader: str) -> int:
    """Return the rows of the systems: those of the first operand that has several.

    Operands of several axes precede those of one, and the leader precedes the others. `lengths`
    has, by name, whether an operand has several axes, and its length.
    """
    others = ("diag",) if "diag" in lengths else tuple(lengths)
    for has_batch in (True, False):
        for name in (leader, *others):
            if lengths[name][0] == has_batch and lengths[name][1] != 1:
                return lengths[name][1]
    return max([1, *(lengths[name][1] for name in _SIDES if name in lengths)])


def _length_text(
    name: str, ndim: int, length: int, full: tuple[int, ...], axis: int, rule: str
) -> str:
    """Return the message for an operand of a length along the systems that is not that of the rows.

    `full` has -1 for axes that do not broadcast; `rule`, one of '', 'periodic' and 'split', is why
    ``lower`` and ``upper`` must have all rows, if they must.
    """
    rows = full[axis]
    entries = "entries" if ndim == 1 else "rows"
    count = f"{length} {entries if length != 1 else {'entries': 'entry', 'rows': 'row'}[entries]}"
    where = "" if len(full) == 1 else f" along axis {axis}"
    systems = f"{rows} rows" if rows != 1 else "1 row"
    if ndim > 1:
        text = f"{name} has {count} along axis {axis}, but the systems have {systems}"
    else:
        text = f"{name} has {count}, but the systems{where} have {systems}"
    if name in _SIDES and length == rows - 1 and rule == "periodic":
        corner = "first in lower" if name == "lower" else "last in upper"
        return (
            f"{text}: a periodic system has as many entries of lower and upper as rows; "
            f"add the corner entry, which is the {corner}"
        )
    if name in _SIDES and length == rows - 1 and rule == "split":
        return f"{text}: with axis_name, lower and upper have an entry for each row of a device"
    if ndim > 1:
        return text
    text += ": a one-dimensional operand lies along the axis"
    if length == 1:
        if name == "rhs":
            return f"{text}; for the same value in every row write numpy.full({rows}, value)"
        return f"{text}; for a constant coefficient write a number, {name}[0]"
    kind = "value" if name == "rhs" else "coefficient"
    for place in (*range(axis + 1, len(full)), *range(axis)):
        if full[place] != length:
            continue
        is_last = place == len(full) - 1
        index = "None, :" if is_last else ":" + ", None" * (len(full) - 1 - place)
        each = f"index of axis {place}"
        if len(full) == 2:
            each = "column" if is_last else "row of the array"
        return f"{text}; for one {kind} per {each} write {name}[{index}]"
    return text


def check_out(
    out: object,
    shape: tuple[int, ...],
    dtype: np.dtype,
    inputs: Mapping[str, Array],
    replaces: str = "rhs",
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
        What `out` must not overlap.
    replaces : str
        The input that may be `out` itself; '' for none.

    Raises
    ------
    TypeError
        If `out` is not an ndarray of this dtype.
    ValueError
        If its shape is another, it is read-only, not aligned, holds an element twice
        or overlaps an input.
    """
    if not isinstance(out, np.ndarray) or what_is_lost("out", out):
        raise TypeError(f"out must be an ndarray, got {type(out).__name__}")
    if out.dtype != dtype:
        raise TypeError(f"out must be {dtype} like the result, got {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"out must have the shape {shape} of the result, got {out.shape}")
    if not out.flags.writeable:
        raise ValueError("out is read-only: pass an array that can be written")
    if not _is_regular(out):
        raise ValueError(
            "out must be aligned, with strides that are multiples of its item size: pass a new "
            "array, as numpy.empty(shape, dtype) makes it"
        )
    if out.size and _may_repeat(out):
        raise ValueError(
            "out must hold each element at one index, but its axes overlap: it has shape "
            f"{out.shape} with strides of {out.strides} bytes; pass an array that is not broadcast"
        )
    for name, array in inputs.items():
        if not (name == replaces and _is_same(array, out)) and _overlap(array, out):
            may = f"it may be {replaces} itself and nothing else"
            raise ValueError(f"out overlaps {name}; {may if replaces else 'pass another array'}")
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
    """Return whether two arrays are the same elements in the same order."""
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
