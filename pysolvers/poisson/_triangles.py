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
    lower, sums, upper = (np.asarray(a, float) for a in (lower, sums, upper))
    rows = sums.shape[-1]
    count = rows - 1 if periodic else rows
    pivots = np.empty((*sums.shape[:-1], count))
    after = np.zeros_like(pivots)  # entries in the column of the next row
    far = np.zeros_like(pivots) if periodic else None
    bottom = np.zeros_like(pivots) if periodic else None
    border, last = upper[..., -1], sums[..., -1]
    sigma: Any = 0.0
    for i in range(count):
        m = lower[..., i] / pivots[..., i - 1] if i else 0.0
        sigma = sums[..., i] - m * sigma
        ends_here = i == count - 1
        if not ends_here:
            after[..., i] = upper[..., i]
        pivots[..., i] = sigma - after[..., i]
        if far is None or bottom is None:
            continue
        column = lower[..., 0] if i == 0 else -m * far[..., i - 1]
        if ends_here:
            column = column + upper[..., i]
            border = border + lower[..., -1]
        far[..., i] = column
        pivots[..., i] -= column
        bottom[..., i] = border
        last = last - border / pivots[..., i] * sigma
        border = -border / pivots[..., i] * after[..., i]
    return Triangles(
        lower[..., :count],
        pivots,
        after / pivots,
        None if far is None else far / pivots,
        bottom,
        None if bottom is None else last,
    )
