"""Estimates of the error of a grid from a run on a grid with about half the intervals.

The discretisation error of order two of a value f on grids with N and M < N intervals gives, by
Richardson extrapolation (Roache 1998),

    error of f on the finer grid = (f_N - f_M) / ((N / M)^2 - 1).

It is an estimate: on grids that do not resolve a solution yet, the order is not two.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .._errors import ConvergenceError

__all__ = ["NoEstimate", "compute_half", "error_of", "half_nodes"]

_LEAST = 5  # nodes along a side, with which a run of half the size still has inner nodes

Run = TypeVar("Run")


class NoEstimate(Exception):
    """There is no run of half the size; the text says why."""


def half_nodes(nodes: int) -> int:
    """Return the number of nodes of the grid with half the intervals, rounded up.

    Raises
    ------
    NoEstimate
        If these are too few.
    """
    if (half := nodes // 2 + 1) < _LEAST:
        raise NoEstimate(f"a grid of half of {nodes} nodes is too small")
    return half


def compute_half(name: str, run: Callable[[], Run]) -> Run:
    """Return what `run` computes on the grid `name`.

    Raises
    ------
    NoEstimate
        If the grid is refused or the run does not converge.
    """
    try:
        return run()
    except (ConvergenceError, ValueError) as error:
        raise NoEstimate(f"the run on {name} nodes failed: {error}") from error


def error_of(fine: ArrayLike, coarse: ArrayLike, intervals: tuple[int, int]) -> float:
    """Return the largest estimated error of values on the finer grid.

    Parameters
    ----------
    fine, coarse : array_like
        The same values on both grids.
    intervals : (int, int)
        Intervals of the finer and of the coarser grid along the same length.
    """
    ratio = intervals[0] / intervals[1]
    return float(np.abs(np.subtract(fine, coarse)).max()) / (ratio**2 - 1)
