"""The signs of matrices that are given by row sums: one pass over each operand as it was given."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._row_sums import complex_sums, matrix_names
from .device import is_device_array
from .finite import find_entry, rows_that_count
from .lines import Shape
from .singular import Entry
from .targets import Target

Array = NDArray[Any]

_NAMES = ("lower", "diag", "upper")
_LABELS = dict(zip(_NAMES, matrix_names(has_sums=True), strict=True))


def require_form(
    operation: str,
    target: Target,
    operands: Sequence[Array],
    shape: Shape,
    *,
    periodic: bool,
    check_signs: bool,
) -> int | None:
    """Raise an error for matrices that elimination with row sums excludes: complex, other signs.

    Parameters
    ----------
    operation : str
        The function, for the message.
    target : Target
        Where the operands are.
    operands : sequence of array
        lower, the row sums and upper, before they are moved.
    shape : Shape
        Their common shape.
    periodic : bool
        Whether the first entry of ``lower`` and the last one of ``upper`` count.
    check_signs : bool
        Whether to check the signs, which waits for operands on a device.

    Returns
    -------
    int or None
        1 if no off-diagonal is positive and no row sum is negative, -1 for the opposite signs;
        None if the signs were not checked.

    Notes
    -----
    NaN has no sign; the elimination reports it. Operands on a device are reduced there, and are
    copied to the host only if their library has no reductions or an entry has the wrong sign.
    """
    if operands[1].dtype.kind == "c":
        raise complex_sums(operation, operands[1].dtype)
    if not check_signs:
        return None
    named = dict(zip(_NAMES, operands, strict=False))
    for sign in (1, -1):
        if all(
            _has_sign(target, name, array, shape, sign if name == "diag" else -sign, periodic)
            for name, array in named.items()
        ):
            return sign
    views = {
        name: shape.batch_first(target.download(array) if is_device_array(array) else array)
        for name, array in named.items()
    }
    wrong = {}
    for sign in (1, -1):
        wrong[sign] = [
            entry
            for (name, view), omits in zip(views.items(), shape.omits, strict=False)
            if (entry := _find(name, view, shape.rows, omits, periodic, sign)) is not None
        ]
        if not wrong[sign]:
            return sign
    # The sign of the matrices is presumably that which fewer operands contradict.
    entry = min(wrong.values(), key=len)[0]
    raise ValueError(
        f"{operation}: {entry}, but with RowSums the entries of lower and upper are <= 0 and "
        "the row sums >= 0, or all have the opposite signs, in all matrices of a call: for other "
        "matrices pass the diagonal, diag = s - lower - upper, instead of RowSums(s)"
    )


def require_step_form(
    operation: str,
    target: Target,
    operands: Sequence[Array],
    shape: Shape,
    h: float,
    *,
    periodic: bool,
) -> None:
    """Raise ValueError if I - h A, A given by its row sums, has signs that elimination excludes.

    The operands are those of `require_form`, of A.
    """
    sign = 1 if h > 0 else -1
    for name, array in zip(_NAMES, operands, strict=False):
        if h == 0 or not array.size:
            continue
        if name == "diag":
            is_good = -_extreme(target, name, array, (), -sign) * abs(h) <= 1
        else:
            is_good = _has_sign(target, name, array, shape, sign, periodic)
        if not is_good and not _has_nan(target, array):
            side = ">=" if h > 0 else "<="
            raise ValueError(
                f"{operation}: with RowSums lower and upper must be {side} 0 and "
                f"theta dt RowSums.s <= 1, but {_LABELS[name]} is not: for other matrices pass the "
                "diagonal, diag = s - lower - upper, instead of RowSums(s)"
            )


def _has_nan(target: Target, array: Array) -> bool:
    """Whether an operand has an entry without a sign, which the elimination reports."""
    return bool(np.isnan(target.download(array) if is_device_array(array) else array).any())


def _has_sign(
    target: Target, name: str, array: Array, shape: Shape, sign: int, periodic: bool
) -> bool:
    """Whether no entry of an operand that counts has the other sign or is NaN.

    The first test includes ignored entries; only if it fails these are left out.
    """
    if not array.size:
        return True
    if _extreme(target, name, array, (), sign) >= 0:
        return True
    along = 0 if array.ndim == 1 else shape.axis + array.ndim - len(shape.full)
    if array.ndim == 0 or along < 0:
        length, before = 1, 0
    else:
        length, before = array.shape[along], along
    omits = shape.omits[_NAMES.index(name)]
    counted = rows_that_count(name, length, shape.rows, omits, periodic)
    if counted is None:
        return True
    if counted == slice(None):
        return False
    return _extreme(target, name, array, (slice(None),) * before + (counted,), sign) >= 0


def _extreme(target: Target, name: str, array: Array, index: tuple[slice, ...], sign: int) -> float:
    """Return `sign` times the extreme element of a part: negative if one has the other sign."""
    reduce = np.minimum.reduce if sign > 0 else np.maximum.reduce
    found = None
    if is_device_array(array):
        found = target.extreme(name, index, largest=sign < 0)
        array = array if found is not None else target.download(array)
    if found is None:
        found = reduce(array[index], axis=None)
    return float(found) * sign


def _find(
    name: str, view: Array, rows: int, omits: bool, periodic: bool, sign: int
) -> Entry | None:
    """Return the first entry of the wrong sign."""
    wanted = sign if name == "diag" else -sign
    entry = find_entry(name, view, rows, omits, periodic, lambda values: ~(values * wanted < 0))
    return None if entry is None else replace(entry, name=_LABELS[name])
