"""Search for NaN and infinity in the operands of a call."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Shape
from .places import Place
from .shadows import is_shadow
from .singular import NotFinite, Singular

__all__ = ["NotFinite", "explained", "find_not_finite", "require_finite_operands"]

Array = NDArray[Any]

_MATRIX = ("lower", "diag", "upper")
_ENTRIES = 1 << 20  # of the matrices that are searched at once


def require_finite_operands(
    operation: str,
    place: Place,
    named: Mapping[str, Array],
    shape: Shape,
    *,
    periodic: bool,
) -> None:
    """Raise ValueError if an entry of an operand that counts is NaN or infinite.

    Parameters
    ----------
    operation : str
        The function, for the message.
    place : Place
        Where the operands are; those on a device are copied to the host.
    named : mapping of str to ndarray
        Operands before they are moved, by name.
    shape : Shape
        Their common shape.
    periodic : bool
        Whether the first entry of ``lower`` and the last one of ``upper`` count.
    """
    for (name, array), omits in zip(named.items(), shape.omits, strict=False):
        view = shape.batch_first(array)
        found = find_not_finite(
            name, place.download(view) if is_shadow(view) else view, shape.rows, omits, periodic
        )
        if found is not None:
            raise ValueError(f"{operation}: {found}, and check_finite=True requires finite values")


def explained(
    singular: Singular,
    place: Place,
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
    place : Place
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
    matrix = [place.download(view) if is_shadow(view) else view for view in views[:3]]
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
            return replace(singular, entry=NotFinite(label, system, row, value))
    return singular


def find_not_finite(
    name: str, view: Array, rows: int, omits: bool, periodic: bool
) -> NotFinite | None:
    """Return the first entry of an operand, rows last, that counts and is not finite.

    `omits` says that the operand has an entry less than the systems have rows.
    """
    if view.dtype.kind not in "fc":
        return None
    is_constant = view.shape[-1] == 1 and not omits
    first = int(omits and name == "lower")
    if not periodic and not is_constant and not omits and name in ("lower", "upper"):
        first = int(name == "lower")
        view = view[..., 1:] if first else view[..., :-1]
    if is_constant and rows == 1 and not periodic and name in ("lower", "upper"):
        return None
    is_finite = np.isfinite(view)
    if is_finite.all():
        return None
    *system, row = map(int, np.unravel_index(int(np.argmin(is_finite)), view.shape))
    return NotFinite(name, tuple(system), row + first, view[(*system, row)])
