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

from .._options import OnSingular
from .._runtime.arrays import axis_of_solutions, real_of
from .._runtime.interop import shape_of
from .._runtime.singular import Singular
from .._runtime.targets import Target
from .._xp import joined
from . import systems
from .pairs import embedded
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


def folded_matrix(xp: Any, bands: Sequence[Any]) -> list[Any]:
    """Return the blocks below, on and above the diagonal of folded matrices.

    `bands` are the blocks (i, i - w) to (i, i + w) of all rows, (..., n, k, k), and those returned
    have 2 w k rows; rows of the identity follow the last one. `xp` has the functions of the arrays.
    """
    shape = np.broadcast_shapes(*(tuple(band.shape) for band in bands))
    *batch, n, k, _ = shape
    group, places = len(bands) - 1, places_of_rows(n)
    count = -(-n // group)
    # Blocks by number: the rows of one band after the other, then zeros and the identity.
    zeros, identity = len(bands) * n, len(bands) * n + 1
    which = np.full((3, count, group, group), zeros)
    rest = np.arange(n, count * group) % group
    which[1, -1, rest, rest] = identity
    for number, offset in enumerate(range(-(group // 2), group // 2 + 1)):
        column = np.roll(places, -offset)
        kind = 1 + column // group - places // group
        at = (kind, places // group, places % group, column % group)
        which[at] = number * n + np.arange(n)
    rows = [xp.broadcast_to(band, shape) for band in bands]
    zero = xp.zeros_like(rows[0][..., :1, :, :])
    one = xp.tril(xp.triu(xp.ones_like(zero)))
    source = xp.concatenate((*rows, zero, one), -3)
    blocks = source[..., which.ravel(), :, :].reshape((*batch, *which.shape, k, k))
    blocks = xp.swapaxes(blocks, -3, -2).reshape((*batch, 3, count, group * k, group * k))
    return [blocks[..., kind, :, :, :] for kind in range(3)]


def folded_rows(xp: Any, rhs: Any, group: int) -> Any:
    """Return right-hand sides (..., n, k, m) of folded matrices, `group` rows in one."""
    *batch, n, k, m = rhs.shape
    count = -(-n // group)
    order = np.full(count * group, n)
    order[places_of_rows(n)] = np.arange(n)
    wide = xp.concatenate((rhs, xp.zeros_like(rhs[..., :1, :, :])), -3)[..., order, :, :]
    return wide.reshape((*batch, count, group * k, m))


def unfolded_rows(x: Any, n: int, k: int) -> Any:
    """Return the n rows of k numbers of solutions of folded systems."""
    *batch, count, side, m = x.shape
    return x.reshape((*batch, count * side // k, k, m))[..., places_of_rows(n), :, :]


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
        *batch, n, _, _ = bands[0].shape
        self._rows, self._group = n, len(bands) - 1
        self._is_complex = bands[0].dtype.kind == "c"
        matrix = folded_matrix(np, bands)
        count, side = matrix[1].shape[-3:-1]
        if self._is_complex:
            matrix, side = [embedded(np, block) for block in matrix], 2 * side
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
        wide = folded_rows(np, rhs[..., None], self._group)[..., 0]
        half = wide.shape[-1]
        if self._is_complex:
            wide = np.concatenate((wide.real, wide.imag), -1)
        code = "N" if trans == "N" else "T"  # of the embedded matrix: that of "H"
        x = systems.apply(self._target, self.made, code, wide, self._threads)
        if self._is_complex:
            x = joined(np, x[..., :half], x[..., half:])
        return unfolded_rows(x[..., None], *rhs.shape[-2:])[..., 0]

    @property
    def singular(self) -> Singular:
        """The singular systems, with the last row."""
        found = self.made.singular
        return Singular(found.systems, np.full(len(found.rows), self._rows - 1, np.intp))

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


class RingFactor(systems.Uncopied):
    """Factors of open or periodic matrices, by those of a folded matrix where there are some."""

    axis: int
    batch: tuple[int, ...]
    _made: Factors
    _folded: Folded | None
    pivoted: bool
    nbytes: int

    @property
    def _own_axis(self) -> int:
        """Axis of the rows in arrays of the shape of the matrices, counted from the end."""
        return self.axis if self.batch else -1

    def _axis_of(self, axis: Any, rhs: Any, tail: int = 0) -> int:
        """Return the axis of the rows in solutions, before the last `tail`, from the end."""
        if axis is None and self.axis == -1:
            return -1
        sides = len(shape_of(rhs)) - tail
        return axis_of_solutions(axis, self.axis, len(self.batch) + 1, sides, tail=tail)

    @property
    def _singular(self) -> Singular:
        return self._made.singular if self._folded is None else self._folded.singular

    def _finish(self, policy: OnSingular, matrices: Matrices, target: Target) -> None:
        """Do what `on_singular` says; the last call of a constructor."""
        if self._folded is not None:
            self.pivoted = True
            self.nbytes += self._folded.made.store.nbytes
        self._fills = policy == "nan" and len(self._singular.rows) > 0
        if policy != "ignore":
            systems.react(self._singular, matrices, None, policy, 4, target)
