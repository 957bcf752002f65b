"""The formulas of linear smoothers for JAX and PyTorch; see pysolvers/_xp.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._checks import axis_number, broadcasts
from .._row_sums import RowSums
from .._xp import ArrayLibrary
from .penalised import penalty, require_order

Array = Any


def smooth(
    library: ArrayLibrary,
    solves: tuple[Callable[..., Array], Callable[..., Array]],
    named: dict[str, Any],
    axis: int,
    order: int,
) -> tuple[Array, Array, int]:
    """Return y and z with (W + lam D'D) z = W y, values last, and the axis of the values.

    `solves` are `solve_tridiagonal` and `solve_pentadiagonal` of the library. The values of `lam`
    and of the weights are not checked: a transformed function has none.
    """
    require_order(order)
    given = {name: value for name, value in named.items() if value is not None}
    for name, value in given.items():
        if library.is_complex(value):
            raise TypeError(f"{name} must be real")
    arrays = library.operands(given)
    y, lam = arrays["y"], arrays["lam"]
    if y.ndim == 0:
        raise ValueError("y must have at least one dimension, got a 0-d array")
    place = axis_number(axis, y.ndim, f"y of {y.ndim} axes") - y.ndim
    y = library.move(y, place, -1)
    rows, batch = y.shape[-1], tuple(y.shape[:-1])
    if not broadcasts(tuple(lam.shape), batch):
        raise ValueError(
            f"lam must broadcast to {batch}, one for each series, got shape {tuple(lam.shape)}"
        )
    if rows <= order:
        lam = lam * 0
    column = lam[..., None] if lam.ndim else lam
    weights, right = None, y
    if "weights" in arrays:
        weights = arrays["weights"]
        if weights.ndim > 1:
            missing = y.ndim - weights.ndim
            wide = weights.reshape((1,) * missing + tuple(weights.shape))
            weights = library.move(wide, place, -1)
        # A value with the weight 0 can be NaN, and has no derivative.
        right = weights * library.xp.where(weights == 0, 0 * lam.sum(), y)
    tridiagonal, pentadiagonal = solves
    if order == 1:
        sums = library.ones(rows, y) if weights is None else weights
        return y, tridiagonal(-column, RowSums(sums, check_signs=False), -column, right), place
    diag, upper, upper2 = (library.points(band, y) for band in penalty(rows, 2, np.float64))
    own = (1 if weights is None else weights) + column * diag
    bands = (own, column * upper, column * upper2)
    return y, pentadiagonal(None, None, *bands, right, assume="positive definite"), place
