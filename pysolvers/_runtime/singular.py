"""The singular systems of a batch, and the reaction to them."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import SingularSystemError, SingularSystemWarning, singular_text
from .lines import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """An entry of an operand that breaks a rule.

    Attributes
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

    name: str
    system: tuple[int, ...]
    row: int
    value: Any

    def __str__(self) -> str:
        where = f"batch index {self.system}, " if self.system else ""
        return f"{self.name} is {self.value} at {where}row {self.row}"


@dataclass(frozen=True, slots=True, eq=False)
class Singular:
    """Systems with a bad pivot: batch indices (K, axes) and rows (K,).

    `entry` is the first entry of their matrices that is not finite; None also without a search.
    `message` is that of an error where the rule is another one than of pivots.
    """

    systems: NDArray[np.intp]
    rows: NDArray[np.intp]
    entry: Entry | None = None
    message: str = ""

    def report(self, policy: str, operation: str, *, stacklevel: int) -> None:
        """Raise or warn, if there is such a system and the policy requires it."""
        if not len(self.rows) or policy not in ("raise", "warn"):
            return
        text = self.message or singular_text(self.systems, self.rows)
        if self.entry is not None:
            text = (
                f"{operation}: {self.entry}, and a matrix must be finite; with on_singular='nan' "
                "the solutions of such a matrix are NaN"
            )
        if policy == "warn":
            warnings.warn(text, SingularSystemWarning, stacklevel=stacklevel + 1)
        elif self.entry is not None:
            raise ValueError(text)
        else:
            raise SingularSystemError(self.systems, self.rows, self.message)

    def of_first(self) -> "Singular":
        """Return the systems with index 0 along the first batch axis, without this axis."""
        is_first = self.systems[:, 0] == 0
        return Singular(self.systems[is_first, 1:], self.rows[is_first], self.entry)

    def fill_nan(self, x: NDArray[Any], batch: Sequence[int]) -> None:
        """Write NaN to these systems of x, whose last axis runs along the systems.

        `batch` is the shape of the batch of `systems`. x can be longer along axes of `batch`
        of length 1, and can have additional leading axes.
        """
        if not len(self.rows):
            return
        places = [
            slice(None) if size == 1 else place
            for size, place in zip(batch, self.systems.T, strict=True)
        ]
        x[(..., *places, slice(None))] = np.nan


def find_singular(info: NDArray[np.int32], plan: Plan) -> Singular:
    """Return the singular systems of a batch from the `info` array of the backend."""
    if not info.any():
        return Singular(np.zeros((0, len(plan.batch)), np.intp), np.zeros(0, np.intp))
    failed = np.flatnonzero(info)
    systems = plan.unravel(failed)
    rows = info[failed].astype(np.intp) - 1
    if len(rows) > 1:
        order = np.lexsort(systems.T[::-1])
        systems, rows = systems[order], rows[order]
    return Singular(systems, rows)
