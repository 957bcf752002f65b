"""Quantities of a two-dimensional field on a square of nodes."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["fit_peak", "interpolate", "middle", "velocity"]

Array = NDArray[np.float64]


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


def interpolate(values: Array, at: ArrayLike) -> Array:
    """Interpolate values on equal steps over [0, 1] by cubics through four of them."""
    n = len(values)
    place = np.asarray(at, float) * (n - 1)
    first = np.clip(np.floor(place).astype(int) - 1, 0, n - 4)
    t = place - first
    weights = (
        -(t - 1) * (t - 2) * (t - 3) / 6,
        t * (t - 2) * (t - 3) / 2,
        -t * (t - 1) * (t - 3) / 2,
        t * (t - 1) * (t - 2) / 6,
    )
    return sum((w * values[first + k] for k, w in enumerate(weights)), np.zeros_like(t))


def fit_peak(field: Array, other: Array, j: int, i: int) -> tuple[float, float, float, float]:
    """Refine an extremum of `field` at the interior node (j, i).

    Quadratics are fitted to the nine nodes around it.

    Returns
    -------
    x, y : float
        Place of the extremum of the fit, in units of the side.
    value, other_value : float
        Both fits there.
    """
    h = 1.0 / (field.shape[0] - 1)
    dy, dx = (a.ravel() for a in np.mgrid[-1.0:2.0, -1.0:2.0])
    basis = np.stack([np.ones(9), dx, dy, dx * dx, dx * dy, dy * dy], axis=1)
    block = np.s_[j - 1 : j + 2, i - 1 : i + 2]
    nodes = np.stack([field[block].ravel(), other[block].ravel()], axis=1)
    fits = np.linalg.lstsq(basis, nodes, rcond=None)[0]
    _, bx, by, cxx, cxy, cyy = fits[:, 0]
    sx, sy = np.linalg.solve([[2 * cxx, cxy], [cxy, 2 * cyy]], [-bx, -by])
    value, other_value = np.array([1.0, sx, sy, sx * sx, sx * sy, sy * sy]) @ fits
    return float(i + sx) * h, float(j + sy) * h, float(value), float(other_value)
