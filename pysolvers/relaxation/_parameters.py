"""Coefficients and relaxation parameters of LMSOR, LSOR and SOR."""

from math import cos, pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .problem import SteadyConvectionDiffusion

Array = NDArray[np.float64]

_BLOCK = 2**17  # nodes whose parameters are computed at once, so that they stay in a cache


class Direction(NamedTuple):
    r"""What the nodes know of one direction; arrays that broadcast to the interior.

    With :math:`l r` the product of the coefficients of both neighbours and n nodes:

    - skew: half the difference of both coefficients
    - mu_max: :math:`2 \sqrt{|l r|} \cos(\pi / (n + 1))`
    - mu_min: :math:`2 \sqrt{|l r|} \cos(\pi n / (2 n + 2))`
    - sign: that of :math:`l r`
    - gain: :math:`1 / (1 - \mu_{max}^{2/3})` where the sign is 1, else 0
    """

    skew: Array
    mu_max: Array
    mu_min: Array
    sign: Array
    gain: Array


class Coefficients(NamedTuple):
    """Coefficients of the local Jacobi operator.

    The neighbours have cx + skew (west), cx - skew (east), cy + skew (south) and cy - skew
    (north); the source is added. With upwind differences cx and cy are arrays, unless the
    convection is uniform.
    """

    cx: float | Array
    cy: float | Array
    x: Direction
    y: Direction
    source: Array


def coefficients(problem: SteadyConvectionDiffusion) -> Coefficients:
    """Return what the nodes of a problem are relaxed with."""
    h, k = problem.spacing
    ny, nx = problem.interior
    if problem.differences == "upwind":
        return _upwind_coefficients(problem)
    d = 2 * (h * h + k * k)
    cx, cy = k * k / d, h * h / d
    return Coefficients(
        cx,
        cy,
        _direction(cx, cx * (h * problem.f / 2), nx),
        _direction(cy, cy * (k * problem.g / 2), ny),
        h * h * k * k / d * problem.source,
    )


def _upwind_coefficients(problem: SteadyConvectionDiffusion) -> Coefficients:
    r"""Return the coefficients with first-order differences against the convection.

    The neighbour on the side where the convection comes from has the coefficient
    :math:`(1/h^2 + |f|/h)/a`, the other one :math:`1/h^2/a`, and a is the sum of all four.
    """
    (h, k), (ny, nx) = problem.spacing, problem.interior
    west, east = (1 / h**2 + np.maximum(s * problem.f, 0) / h for s in (1, -1))
    south, north = (1 / k**2 + np.maximum(s * problem.g, 0) / k for s in (1, -1))
    total = (west + east) + (south + north)
    cx, cy = (west + east) / (2 * total), (south + north) / (2 * total)
    uniform = total.size == 1
    return Coefficients(
        float(cx[0, 0]) if uniform else cx,
        float(cy[0, 0]) if uniform else cy,
        _direction(cx, (west - east) / (2 * total), nx),
        _direction(cy, (south - north) / (2 * total), ny),
        problem.source / total,
    )


def _direction(centre: float | Array, skew: Array, nodes: int) -> Direction:
    """Return the extreme eigenvalues of the Jacobi iteration along one axis, node by node."""
    product = (centre + skew) * (centre - skew)
    root, sign = 2 * np.sqrt(np.abs(product)), np.sign(product)
    mu_max = root * cos(pi / (nodes + 1))
    mu_min = root * cos(pi * nodes / (2 * nodes + 2))
    with np.errstate(divide="ignore"):
        gain = np.where(sign > 0, 1 / (1 - np.cbrt(mu_max * mu_max)), 0.0)
    return Direction(skew, mu_max, mu_min, sign, gain)


def local_omega(c: Coefficients, shape: tuple[int, int], relaxation: str) -> Array:
    """Return the relaxation parameters of the interior nodes: shape (ny, nx).

    Parameters
    ----------
    c : Coefficients
        Of the problem.
    shape : tuple of int
        (ny, nx).
    relaxation : {'lmsor', 'lmsor-2012', 'lsor'}
        The formulas; see `LMSOR`.
    """
    ny, nx = shape
    omega = np.empty(shape)
    rows = max(1, _BLOCK // nx)
    columns = np.arange(nx)
    for start in range(0, ny, rows):
        block = slice(start, min(start + rows, ny))
        red = (np.arange(block.start, block.stop)[:, None] + columns) % 2 == 0
        omega[block] = _omega(_rows(c.x, block), _rows(c.y, block), red, relaxation)
    return omega


def _rows(d: Direction, block: slice) -> Direction:
    """Return the part of some rows; numbers that are the same in all rows stay one row."""
    return Direction(*(a if a.shape[0] == 1 else a[block] for a in d))


def _omega(x: Direction, y: Direction, red: Any, relaxation: str) -> Array:
    """Evaluate the formulas, operation by operation as the kernels do."""
    high, low = x.mu_max + y.mu_max, x.mu_min + y.mu_min
    imaginary = (x.sign < 0) | (y.sign < 0)
    s = np.where(imaginary, 1.0, -1.0)
    under, shift = 1 + s * (high * high), np.ones(np.broadcast(high, red).shape)
    if relaxation != "lsor":
        under = under * (1 + s * (low * low))
        shift = np.where(red, 1 - high * low, 1 + high * low)
    if relaxation == "lmsor-2012":
        under = np.where(imaginary, under, (1 - high) * (1 - low))
    mixed = x.sign * y.sign < 0
    if mixed.any():
        along_x = x.sign > 0
        real = np.where(along_x, x.mu_max, y.mu_max)
        other = np.where(along_x, y.mu_max, x.mu_max)
        gain = np.where(along_x, x.gain, y.gain)
        under = np.where(mixed, (1 - real * real) + (other * other) * gain, under)
        shift = np.where(mixed, 1.0, shift)
    return 2 / (shift + np.sqrt(under))
