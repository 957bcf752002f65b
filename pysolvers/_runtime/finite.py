"""Search for NaN and infinity in the operands of a call."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .device import is_device_array
from .lines import Shape
from .singular import Entry, Singular
from .targets import Target

Array = NDArray[Any]

_MATRIX = ("lower", "diag", "upper")
_NO_LABELS: Mapping[str, str] = MappingProxyType({})
_ENTRIES = 1 << 20  # of the matrices that are searched at once


def require_finite_operands(
    operation: str,
    target: Target,
    named: Mapping[str, Array],
    shape: Shape,
    *,
    periodic: bool,
    labels: Mapping[str, str] = _NO_LABELS,
) -> None:
    """Raise ValueError if an entry of an operand that counts is NaN or infinite.

    Parameters
    ----------
    operation : str
        The function, for the message.
    target : Target
        Where the operands are; those on a device are copied to the host.
    named : mapping of str to ndarray
        Operands before they are moved, by name. With ``where``, a mask, entries outside of it do
        not count.
    shape : Shape
        Their common shape.
    periodic : bool
        Whether the first entry of ``lower`` and the last one of ``upper`` count.
    labels : mapping of str to str
        Names in messages, where others.
    """

    def on_host(array: Array) -> Array:
        view = shape.batch_first(array)
        return target.download(view) if is_device_array(view) else view

    inside = on_host(named["where"]) if "where" in named else None
    for (name, array), omits in zip(named.items(), shape.omits, strict=False):
        if name == "where":
            continue
        counts = on_host(array)
        if inside is not None:
            rows = inside
            if omits and inside.shape[-1] > 1:
                rows = inside[..., 1:] if name == "lower" else inside[..., :-1]
            counts = np.where(rows, counts, 0)
        found = find_not_finite(labels.get(name, name), counts, shape.rows, omits, periodic)
        if found is not None:
            raise ValueError(f"{operation}: {found}, and check_finite=True requires finite values")


def are_finite(operands: Iterable[Any]) -> bool:
    """Return whether operands are numbers and NumPy arrays without NaN or infinity.

    False does not say that there is any in an entry that counts.
    """
    for value in operands:
        if type(value) is np.ndarray:
            if value.dtype.kind in "fc" and not np.isfinite(value).all():
                return False
        elif type(value) is not int and not (type(value) is float and isfinite(value)):
            return False
    return True


def are_checked(check_finite: object, operands: Iterable[Any]) -> bool:
    """Return whether a call needs no check of its operands, or these pass it as they are."""
    return check_finite is False or (check_finite is True and are_finite(operands))


def explained(
    singular: Singular,
    target: Target,
    views: Sequence[Array],
    shape: Shape,
    *,
    periodic: bool,
    names: Sequence[str] = _MATRIX,
) -> Singular:
    """Return singular systems with the first entry of their matrices that is NaN or infinite.

    Parameters
    ----------
    singular : Singular
        Systems with a bad pivot. Without any, the operands are not read.
    target : Target
        Where the operands are.
    views : sequence of array
        lower, diag and upper, with all batch axes, the rows last.
    shape : Shape
        Their common shape.
    periodic : bool
        Whether the first entry of ``lower`` and the last one of ``upper`` count.
    names : sequence of str
        Names of the operands in messages.
    """
    if not len(singular.rows):
        return singular
    matrix = [target.download(view) if is_device_array(view) else view for view in views[:3]]
    block = max(1, _ENTRIES // max(shape.rows, 1))
    for first in range(0, len(singular.rows), block):
        systems = singular.systems[first : first + block]
        found = []
        for name, label, view, omits in zip(_MATRIX, names, matrix, shape.omits, strict=False):
            own = tuple(
                index if size > 1 else np.zeros_like(index)
                for index, size in zip(systems.T, view.shape[:-1], strict=True)
            )
            lines = view[own] if own else view[None]
            entry = find_not_finite(name, lines, shape.rows, omits, periodic)
            if entry is not None:
                found.append((entry.system[0], entry.row, label, entry.value))
        if found:
            at, row, label, value = min(found, key=lambda entry: entry[:2])
            system = tuple(map(int, systems[at]))
            return replace(singular, entry=Entry(label, system, row, value))
    return singular


def find_not_finite(name: str, view: Array, rows: int, omits: bool, periodic: bool) -> Entry | None:
    """Return the first entry of an operand, rows last, that counts and is not finite.

    `omits` says that the operand has an entry less than the systems have rows.
    """
    if view.dtype.kind not in "fc":
        return None
    return find_entry(name, view, rows, omits, periodic, np.isfinite)


def find_entry(
    name: str,
    view: Array,
    rows: int,
    omits: bool,
    periodic: bool,
    is_good: Callable[[Array], NDArray[np.bool_]],
) -> Entry | None:
    """Return the first entry of an operand, rows last, that counts and is not good."""
    counted = rows_that_count(name, view.shape[-1], rows, omits, periodic)
    if counted is None:
        return None
    view = view[..., counted]
    good = is_good(view)
    if good.all():
        return None
    *system, row = map(int, np.unravel_index(int(np.argmin(good)), view.shape))
    first = 1 if name == "lower" and omits else counted.start or 0
    return Entry(name, tuple(system), row + first, view[(*system, row)])


def rows_that_count(name: str, length: int, rows: int, omits: bool, periodic: bool) -> slice | None:
    """Return the rows of an operand of this length along the systems that are not ignored.

    None if there are none: the off-diagonals of one row.
    """
    if periodic or omits or name not in ("lower", "upper"):
        return slice(None)
    if length == 1:
        return None if rows == 1 else slice(None)
    return slice(1, None) if name == "lower" else slice(None, -1)
