"""Search for NaN and infinity in the operands of a call."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Shape
from .places import Place
from .shadows import is_shadow

__all__ = ["NotFinite", "find_not_finite", "require_finite_operands"]

Array = NDArray[Any]


class NotFinite:
    """The first entry of an operand that is not finite.

    Parameters
    ----------
    name : str
        The operand.
    system : tuple of int
        Its batch index; 0 along axes over which the operand is shared.
    row : int
        Its row.
    value : number
        The entry.
    """

    def __init__(self, name: str, system: tuple[int, ...], row: int, value: Any) -> None:
        self.name, self.system, self.row, self.value = name, system, row, value

    def __str__(self) -> str:
        where = f"batch index {self.system}, " if self.system else ""
        return f"{self.name} is {self.value} at {where}row {self.row}"


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
