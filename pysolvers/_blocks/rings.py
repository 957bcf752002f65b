"""Periodic matrices whose open part is singular, or nearly so: the ring of rows is folded.

In the order 0, n - 1, 1, n - 2, ... neighbours of the ring are at most twice as far from each other
as before, also across the ends. Rows that couple to w neighbours on both sides are thus rows of an
open block tridiagonal matrix with blocks of 2 w rows, whose rows can be exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._runtime.arrays import real_of
from .._runtime.singular import Singular
from .._runtime.targets import Target
from . import systems
from .pairs import embedded, joined
from .systems import Factors, Matrices

Array = NDArray[Any]

_MOST_SIDE = 32  # rows of a block
#: Of the open part by which digits of the border are lost.
MOST_GROWTH = 32.0
_MOST_UNITS = 1000  # rounding units


def places_of_rows(n: int) -> Array:
    """Return the places of n rows in the order 0, n - 1, 1, n - 2, ..."""
    rows = np.arange(n)
    return np.where(rows < (n + 1) // 2, 2 * rows, 2 * (n - rows) - 1)


class Folded:
    """Factors, with row exchanges, of periodic matrices.

    Parameters
    ----------
    target : Target
        The host.
    operation : str
        Of the caller, for messages.
    bands : sequence of array, shape (..., n, k, k)
        The blocks (i, i - w) to (i, i + w) of all rows; the batch axes do not broadcast.
    threads : int
        Number of threads.
    """

    def __init__(
        self, target: Target, operation: str, bands: Sequence[Array], threads: int
    ) -> None:
        self._target, self._threads = target, threads
        *batch, n, k, _ = bands[0].shape
        width = len(bands) // 2
        group = 2 * width
        self._places = places_of_rows(n)
        self._shape = count, side = -(-n // group), group * k
        self._is_complex = bands[0].dtype.kind == "c"
        blocks = np.zeros((3, *batch, count, group, k, group, k), bands[0].dtype)
        for place in range(n, count * group):
            blocks[1, ..., -1, place % group, :, place % group, :] = np.eye(k)
        row = self._places
        for offset, band in zip(range(-width, width + 1), bands, strict=True):
            column = np.roll(self._places, -offset)
            kind = 1 + column // group - row // group
            for which in range(3):
                at = np.flatnonzero(kind == which)
                block, i, j = row[at] // group, row[at] % group, column[at] % group
                # The axis of the rows comes first: indices on both sides of a slice.
                blocks[which][..., block, i, :, j, :] += np.moveaxis(band[..., at, :, :], -3, 0)
        matrix = [a.reshape(*batch, count, side, side) for a in blocks]
        if self._is_complex:
            matrix, side = [embedded(block) for block in matrix], 2 * side
        dtype = np.dtype(real_of(bands[0].dtype))
        names = "lower", "diag", "upper"
        matrices = Matrices(operation, side, count, tuple(batch), dtype, names, tuple(matrix))
        self.made: Factors = systems.factor(
            target, matrices, target.backend.PIVOTS["always"], threads
        )

    def solve(self, rhs: Array, trans: str) -> Array:
        """Solve for rhs (..., n, k); its last batch axes are those of the matrices."""
        if self._is_complex and trans == "T":
            return self.solve(rhs.conj(), "H").conj()
        *batch, _, k = rhs.shape
        count, side = self._shape
        wide = np.zeros((*batch, count * side // k, k), rhs.dtype)
        wide[..., self._places, :] = rhs
        wide = wide.reshape(*batch, count, side)
        if self._is_complex:
            wide = np.concatenate((wide.real, wide.imag), -1)
        code = "N" if trans == "N" else "T"  # of the embedded matrix: that of "H"
        x = systems.apply(self._target, self.made, code, wide, self._threads)
        if self._is_complex:
            x = joined(x[..., :side], x[..., side:])
        return x.reshape(*batch, count * side // k, k)[..., self._places, :]

    @property
    def singular(self) -> Singular:
        """The singular systems, with the last row."""
        found = self.made.singular
        return Singular(found.systems, np.full(len(found.rows), len(self._places) - 1, np.intp))

    def logdet(self) -> Array:
        """Return the logarithms of the moduli of the determinants."""
        logarithms, _ = systems.logdet(self._target, self.made)
        return logarithms / 2 if self._is_complex else logarithms


def can_fold(bands: Sequence[Array]) -> bool:
    """Return whether the blocks of folded matrices are not too large."""
    side = bands[0].shape[-1] * (len(bands) - 1)
    return side * (2 if bands[0].dtype.kind == "c" else 1) <= _MOST_SIDE


def lost(solved: Array, schur: Array, other: Array, scale: Array, axes: tuple[int, ...]) -> Array:
    """Return which matrices have an open part with which digits are lost.

    The part that couples to the border is large after the `solved` systems, or the last equations
    found with the columns of the border and with its rows, `schur` and `other`, differ. `axes` are
    those of the blocks of these.
    """
    eps = np.finfo(schur.dtype).eps
    with np.errstate(all="ignore"):
        differs = np.abs(schur - other).max(axes) > _MOST_UNITS * eps * scale
        return ~(np.isfinite(solved) & (solved <= MOST_GROWTH)) | differs


def marked(wrong: Array, singular: Singular) -> Array:
    """Return which matrices of a batch are `wrong` or singular."""
    wrong = np.array(wrong)
    if len(singular.rows):
        wrong[tuple(singular.systems.T)] = True
    return wrong


def fold(
    target: Target,
    operation: str,
    bands: Sequence[Array],
    wrong: Array,
    singular: Singular,
    threads: int,
) -> Folded | None:
    """Return factors of all matrices if one is singular or `wrong`, and can be folded."""
    if not marked(wrong, singular).any() or not can_fold(bands):
        return None
    return Folded(target, operation, bands, threads)


def repair(
    target: Target,
    operation: str,
    bands: Sequence[Array],
    rhs: Array,
    x: Array,
    wrong: Array,
    singular: Singular,
    threads: int,
) -> Singular:
    """Solve the systems that are singular or `wrong`; return those that are singular now.

    `bands` as for `Folded`, with the batch axes of `wrong`; rhs and x have the shape (..., n, k),
    and can have more axes first.
    """
    wrong = marked(wrong, singular)
    if not wrong.any() or not can_fold(bands):
        return singular
    folded = Folded(target, operation, [band[wrong] for band in bands], threads)
    x[..., wrong, :, :] = folded.solve(rhs[..., wrong, :, :], "N")
    found = np.argwhere(wrong)[folded.made.singular.systems[:, 0]]
    still = marked(np.zeros(wrong.shape, bool), Singular(found, found))
    known = np.atleast_1d(still[tuple(singular.systems.T)]) if len(singular.rows) else ()
    kept = np.array(known, bool)
    rest = Singular(singular.systems[kept], singular.rows[kept])
    return systems.with_last_row(rest, still, bands[0].shape[-3] - len(bands) // 2)
