r"""Matrices of lines as products of two triangular ones, for solvers of whole systems.

The last axis is that of the lines; lower and upper >= 0, row sums s <= 0 as in
`pysolvers._factor.factor_row_sums`. The elimination in row-sum form,

    sigma_0 = s_0,  sigma_i = s_i - lower_i sigma_{i-1} / p_{i-1},   p_i = sigma_i - upper_i,

subtracts no numbers of one sign, so that A = L U has small relative errors in every entry for any
condition number, with the rows (lower_i, p_i) of L and (1, upper_i / p_i) of U. Both are
tridiagonal with a diagonal of zeros, so that every algorithm for tridiagonal systems solves with
them without subtractions of matrix entries; with A it would subtract. In a periodic line the last
unknown is kept apart: A is bordered by the column `far` and the row `bottom`,

    (L U) x + far y = f,   bottom z + p_last y = f_last,   L z = f,

where `far` and `bottom` are those of the eliminated rows. Python does this elimination because it
needs the factors as arrays; those of `factor_row_sums` are private to the backend. It takes one
pass over the rows, with 8 operations for each number.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Triangles", "triangles_of"]

Array = NDArray[np.float64]


class Triangles(NamedTuple):
    """The factors of the rows without the last one of periodic lines, shapes (..., rows).

    Attributes
    ----------
    lower : ndarray
        Lower diagonal of L, as given.
    pivots : ndarray
        Main diagonal of L.
    ratios : ndarray
        Upper diagonal of U; its main diagonal is 1.
    far : ndarray or None
        Entries of the column of the last unknown of periodic lines, divided by the pivots.
    bottom : ndarray or None
        Entries of the last row in the eliminated matrix: its multipliers times the pivots.
    last : ndarray or None
        Its pivot, shape (...).
    """

    lower: Array
    pivots: Array
    ratios: Array
    far: Array | None
    bottom: Array | None
    last: Array | None


def triangles_of(lower: Any, sums: Any, upper: Any, *, periodic: bool) -> Triangles:
    """Factor matrices whose arrays broadcast, with one row per entry of the last axis."""
    lower, upper = np.asarray(lower, float), np.asarray(upper, float)
    rows = np.shape(sums)[-1]
    count = rows - 1 if periodic else rows
    # The rows first, so that each of them is one run of memory.
    below, above = np.moveaxis(lower, -1, 0), np.moveaxis(upper, -1, 0)
    own = np.ascontiguousarray(np.moveaxis(np.asarray(sums, float), -1, 0))
    pivots = np.empty((count, *own.shape[1:]))
    ratios = np.zeros_like(pivots)
    far = np.zeros_like(pivots) if periodic else None
    bottom = np.zeros_like(pivots) if periodic else None
    border, last = above[-1], own[-1]
    sigma: Any = 0.0
    for i in range(count):
        is_last = i == count - 1
        m = below[i] / pivots[i - 1] if i else 0.0
        sigma = own[i] - m * sigma
        pivots[i] = sigma if is_last else sigma - above[i]
        if far is not None and bottom is not None:
            column = below[0] if i == 0 else -below[i] * far[i - 1]
            if is_last:
                column = column + above[i]
                border = border + below[-1]
            pivots[i] -= column
            far[i] = column / pivots[i]
            bottom[i] = border
            last = last - border / pivots[i] * sigma
        if not is_last:
            ratios[i] = above[i] / pivots[i]
            border = -border * ratios[i]
    return Triangles(
        lower[..., :count],
        np.moveaxis(pivots, 0, -1),
        np.moveaxis(ratios, 0, -1),
        None if far is None else np.moveaxis(far, 0, -1),
        None if bottom is None else np.moveaxis(bottom, 0, -1),
        last if periodic else None,
    )
