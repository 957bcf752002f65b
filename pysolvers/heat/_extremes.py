"""Bounds of spacing, conductivity and time step, so that no product of them leaves its dtype."""

from collections.abc import Iterable, Sequence
from math import isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from ._sides import Side

_LEAST, _MOST = 1e-150, 1e150  # of a spacing, whose square is taken
_ROOM = 64.0  # sums of k dt/h^2 over the neighbours, twice, stay in the range of the dtype


def check_spacing(spacing: Sequence[float], axes: str) -> None:
    """Raise ValueError if the square of a spacing is not a number in float64."""
    for h, axis in zip(spacing, axes, strict=True):
        require(
            _LEAST <= h <= _MOST,
            f"spacing must be between {_LEAST:g} and {_MOST:g} along each axis: choose another "
            f"unit of length; along {axis}",
            h,
        )


def check_conductivity(k: NDArray[np.float64], dtype: str) -> None:
    """Raise ValueError if products of two values are not numbers of the dtype."""
    facts = np.finfo(dtype)
    low, high = sqrt(float(facts.tiny)), sqrt(float(facts.max) / 2)
    for value in (float(k.min()), float(k.max())):
        require(
            low <= value <= high,
            f"diffusivity in an array must be between {low:.2g} and {high:.2g} for dtype {dtype}, "
            "so that the harmonic mean of two values can be formed: choose other units",
            value,
        )


def check_ratios(dt: float, rates: Sequence[float], sides: Iterable[Side], dtype: str) -> None:
    """Raise ValueError if a step is too long or too short for the dtype.

    Parameters
    ----------
    dt : float
        Length of the step.
    rates : sequence of float
        Largest k/h^2 along each axis.
    sides : iterable of Side
        The sides, for their exchange.
    dtype : str
        That of the solution.
    """
    facts = np.finfo(dtype)
    low, high = float(facts.tiny), float(facts.max) / _ROOM
    for rate, axis in zip(rates, "xyz", strict=False):
        ratio = rate * dt
        require(
            isfinite(ratio) and low <= ratio <= high,
            f"dt = {dt:.3g}: k dt/h^2 must be between {low:.2g} and {high:.2g} for dtype {dtype}: "
            f"choose another dt or other units; along {axis}",
            ratio,
        )
    for side in sides:
        exchange = float(np.max(side.loss)) * dt
        require(
            isfinite(exchange) and exchange <= high,
            f"dt = {dt:.3g}: dt/h times the coefficient of Robin must be at most {high:.2g} for "
            f"dtype {dtype}, on side {side.name}",
            exchange,
        )
