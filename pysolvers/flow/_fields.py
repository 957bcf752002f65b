"""Quantities of a two-dimensional field on a square of nodes."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import require

Array = NDArray[np.float64]

SERIAL_BELOW = 200  # nodes or cells a side: below, waking threads costs more than they save

_ROUNDING = 1e-12  # of coordinates that a caller computes


def velocity(psi: Array, lid_velocity: float) -> tuple[Array, Array]:
    r"""Return u and v, :math:`u = \psi_y, v = -\psi_x` by central differences.

    The walls have their own velocity: `lid_velocity` along y = 1, corners apart, else 0.
    """
    half_inverse = (psi.shape[0] - 1) / 2
    u, v = np.zeros_like(psi), np.zeros_like(psi)
    u[1:-1, 1:-1] = (psi[2:, 1:-1] - psi[:-2, 1:-1]) * half_inverse
    v[1:-1, 1:-1] = (psi[1:-1, :-2] - psi[1:-1, 2:]) * half_inverse
    u[-1, 1:-1] = lid_velocity
    return u, v


def middle(field: Array, axis: int) -> Array:
    """Return the values on the centre line across `axis`: a mean if no node is there."""
    n = field.shape[axis]
    low, high = field.take((n - 1) // 2, axis), field.take(n // 2, axis)
    return 0.5 * (low + high)


def _inside(at: ArrayLike) -> Array:
    """Return coordinates as an array, or raise ValueError if one is outside of [0, 1]."""
    places = np.asarray(at, float)
    is_inside = (places >= -_ROUNDING) & (places <= 1 + _ROUNDING)
    require(bool(is_inside.all()), "the coordinates must be in [0, 1]", places[~is_inside])
    return places


def interpolate_at(places: Array, values: Array, at: ArrayLike) -> Array:
    """Interpolate values at ascending places by cubics through four of them."""
    target = _inside(at)
    first = np.clip(np.searchsorted(places, target) - 2, 0, len(places) - 4)
    total = np.zeros_like(target)
    for k in range(4):
        weight = np.ones_like(target)
        for m in range(4):
            if m != k:
                near = places[first + m]
                weight = weight * (target - near) / (places[first + k] - near)
        total = total + weight * values[first + k]
    return total


def refined_minimum(places: Array, values: Array, sign: int) -> tuple[float, float]:
    """Return the minimum of ``sign * values`` and its place, off the ends.

    The minimum is that of the polynomial through five values around the smallest one. The value
    is returned without the factor `sign`.
    """
    k = int(np.argmin(sign * values[1:-1])) + 1
    first = min(max(k - 2, 0), len(values) - 5)
    near = np.s_[first : first + 5]
    width = places[first + 4] - places[first]
    fit = np.polynomial.Polynomial.fit((places[near] - places[k]) / width, values[near], 4)
    roots = fit.deriv().roots()
    real = roots[np.abs(roots.imag) < 1e-9].real
    at = float(real[np.argmin(np.abs(real))]) if real.size else 0.0
    return float(fit(at)), float(places[k] + width * at)


def largest_divergence(u: Array, v: Array) -> float:
    """Return the largest sum of the outflows through the four faces of a cell."""
    return float(np.abs(np.diff(u, axis=1) + np.diff(v, axis=0)).max())


def fit_peak(field: Array, other: Array, j: int, i: int) -> tuple[float, float, float, float]:
    """Refine an extremum of `field` at the interior node (j, i).

    Quadratics are fitted to the nine nodes around it. If that of `field` has no extremum among
    these nodes, as in a fluid at rest, the node and its values are returned.

    Returns
    -------
    x, y : float
        Place of the extremum, in units of the side.
    value, other_value : float
        Both fields there.
    """
    h = 1.0 / (field.shape[0] - 1)
    dy, dx = (a.ravel() for a in np.mgrid[-1.0:2.0, -1.0:2.0])
    basis = np.stack([np.ones(9), dx, dy, dx * dx, dx * dy, dy * dy], axis=1)
    block = np.s_[j - 1 : j + 2, i - 1 : i + 2]
    nodes = np.stack([field[block].ravel(), other[block].ravel()], axis=1)
    fits = np.linalg.lstsq(basis, nodes, rcond=None)[0]
    _, bx, by, cxx, cxy, cyy = fits[:, 0]
    try:
        sx, sy = np.linalg.solve([[2 * cxx, cxy], [cxy, 2 * cyy]], [-bx, -by])
    except np.linalg.LinAlgError:
        sx = sy = np.nan
    if not (abs(sx) <= 1 and abs(sy) <= 1):
        return i * h, j * h, float(field[j, i]), float(other[j, i])
    value, other_value = np.array([1.0, sx, sy, sx * sx, sx * sy, sy * sy]) @ fits
    return float(i + sx) * h, float(j + sy) * h, float(value), float(other_value)
