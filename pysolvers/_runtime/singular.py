"""The singular systems of a batch, and the reaction to them."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import SingularSystemError, SingularSystemWarning, singular_text
from .lines import Plan

__all__ = ["Singular", "find_singular"]


@dataclass(frozen=True, slots=True, eq=False)
class Singular:
    """Systems with a zero or subnormal pivot: batch indices (K, axes) and rows (K,)."""

    systems: NDArray[np.intp]
    rows: NDArray[np.intp]

    def report(self, policy: str, *, stacklevel: int) -> None:
        """Raise or warn, if there is such a system and the policy requires it."""
        if not len(self.rows):
            return
        if policy == "raise":
            raise SingularSystemError(self.systems, self.rows)
        if policy == "warn":
            text = singular_text(self.systems, self.rows)
            warnings.warn(text, SingularSystemWarning, stacklevel=stacklevel + 1)

    def of_first(self) -> "Singular":
        """Return the systems with index 0 along the first batch axis, without this axis."""
        is_first = self.systems[:, 0] == 0
        return Singular(self.systems[is_first, 1:], self.rows[is_first])

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
