"""Coefficients and relaxation parameters of LMSOR, LSOR and SOR."""

from math import acos, acosh, cos, exp, pi, sin, sinh, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._boundary import Robin
from .problem import SteadyConvectionDiffusion, _coefficient

Array = NDArray[np.float64]

# Least relative distance of an eigenvalue from l + r, times the square of the intervals.
_LEAST_GAP = 1e-3
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
    """Return what the nodes of a problem are relaxed with, apart from its sides."""
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


def _cosine(problem: SteadyConvectionDiffusion, axis: str) -> tuple[float, float]:
    r"""Return C of the first eigenvector along an axis, and its eigenvalue divided by l + r.

    With the coefficients l and r of both neighbours, the eigenvector of the Jacobi iteration is
    :math:`(l/r)^{i/2} w_i` with the eigenvalue :math:`2 \sqrt{l r}\, C`, :math:`C = \cos\theta`,
    and :math:`w_{i-1} + w_{i+1} = 2 C w_i`. At a side with :math:`u_n = -c u`, the value beyond it
    is :math:`u_{N-1} - 2 h c\, u_N`, that is

    .. math:: w_{N-1} = (1 + \sigma) \left(C + h c \sqrt{\frac{1-\sigma}{1+\sigma}}\right) w_N,
        \qquad \sigma = \frac{l - r}{l + r},

    for N intervals, with l on the inner side and the mean of :math:`\sigma` over the nodes of the
    side. In a flow that enters through a side without exchange, C is above 1, but the eigenvalue is
    below l + r. C is the largest solution, above which w is positive and the second side takes more
    than :math:`w_{N-1}`: found by bisection.
    """
    place = "yx".index(axis)
    n, h = problem.shape[place] - 1, problem.spacing["xy".index(axis)]
    convection = np.broadcast_to(problem.f if axis == "x" else problem.g, problem.interior)
    ends: list[tuple[float, float] | None] = []
    for sign, index in ((-1, 0), (1, -1)):
        side = axis + ("-" if sign < 0 else "+")
        if problem._is_given(side):
            ends.append(None)
            continue
        half = h * sign * float(convection.take(index, place).mean()) / 2
        skew = half / (1 + abs(half)) if problem.differences == "upwind" else half
        skew = skew if abs(skew) < 1 else 0.0  # imaginary eigenvalues
        exchange = h * _coefficient(problem._sides[side])
        ends.append((1 + skew, exchange * sqrt((1 - skew) / (1 + skew))))
    low, high = ends

    def is_above(cosine: float) -> bool:
        first, second = (0.0, 1.0) if low is None else (1.0, low[0] * (cosine + low[1]))
        # The last two values, divided by the growth of w.
        if cosine < 1:
            theta = acos(cosine)
            slope = (second - first * cosine) / sin(theta)
            before, last = (first * cos(k * theta) + slope * sin(k * theta) for k in (n - 1, n))
        elif cosine == 1:
            before, last = (first + k * (second - first) for k in (n - 1, n))
        else:
            t = acosh(cosine)
            rising = (second - first * exp(-t)) / (2 * sinh(t))
            falling = first - rising
            before, last = (
                rising * exp((k - n) * t) + falling * exp(-(k + n) * t) for k in (n - 1, n)
            )
        return last > 0 and (high is None or before < high[0] * (cosine + high[1]) * last)

    below, above = cos(pi / n), max([1.0, *(1 / end[0] for end in ends if end is not None)])
    while below < (cosine := (below + above) / 2) < above:
        below, above = (below, cosine) if is_above(cosine) else (cosine, above)
    lowest = min([0.0, *(end[0] - 1 for end in ends if end is not None)])
    share = cosine * sqrt(1 - lowest * lowest) if cosine > 1 else 1.0
    return cosine, min(share, 1 - _LEAST_GAP / (n * n))


class _Spectrum(NamedTuple):
    """Largest real and imaginary part of the eigenvalues along an axis; least real part."""

    real: Array
    imaginary: Array
    least: Array
    is_ellipse: bool = False


def _spectrum(problem: SteadyConvectionDiffusion, axis: str, d: Direction, sum_: Any) -> _Spectrum:
    """Return what the nodes know of an axis; `sum_` is that of the coefficients l + r."""
    place = "yx".index(axis)
    both, skew = np.broadcast_arrays(np.asarray(sum_), d.skew)
    root = np.sqrt(np.abs((both / 2 + d.skew) * (both / 2 - d.skew))) * 2
    if problem._is_periodic(axis):
        # l e^(-i t) + r e^(i t): an ellipse, and not the interval between given values.
        return _Spectrum(both, 2 * np.abs(skew), 0 * both, True)
    cosine, share = _cosine(problem, axis)
    if problem._is_given(axis + "-") and problem._is_given(axis + "+"):
        cosine = cos(pi / (problem.interior[place] + 1))
    most = np.minimum(root * cosine, both * share)
    half = sin(acos(min(cosine, 1.0)) / 2)
    is_real = d.sign >= 0
    imaginary = np.where(is_real, 0.0, root * min(cosine, 1.0))
    return _Spectrum(np.where(is_real, most, 0.0), imaginary, root * half)


def _sided_omega(
    problem: SteadyConvectionDiffusion, c: Coefficients, relaxation: str, first: int
) -> Array:
    r"""Return the relaxation parameters of a problem with other sides than given values.

    Where all eigenvalues are real or imaginary, and where they are sums of real ones along one
    axis and imaginary ones along the other, the formulas are those of `LMSOR`. Along a periodic
    axis with convection they are in an ellipse with the semi-axes :math:`a_x = l + r` and
    :math:`b_x = |l - r|`; those of both axes are in the ellipse with :math:`a = a_x + a_y` and
    :math:`b^2 = b_x^2\, a / a_x`, and for an ellipse (Young 1971)

    .. math:: \omega = \frac{2}{1 + \sqrt{1 - a^2 + b^2}} .
    """
    x, y = (_spectrum(problem, a, d, 2 * s) for a, d, s in (("x", c.x, c.cx), ("y", c.y, c.cy)))
    a = np.broadcast_to(x.real + y.real, problem.interior)
    ellipse, segment = np.zeros(a.shape), np.zeros(a.shape)
    for each in (x, y):
        if each.is_ellipse:
            ellipse = ellipse + each.imaginary**2 * a / each.real
        else:
            segment = segment + each.imaginary
    ny, nx = problem.interior
    colour = first + np.arange(ny)[:, None] + np.arange(nx)
    is_mixed = ((a > 0) & (segment > 0)) | (ellipse > 0)
    under = 1 - a * a + ellipse + segment**2 / np.where(is_mixed, 1 - np.cbrt(a * a), 1.0)
    shift = np.ones(a.shape)
    if relaxation != "lsor":
        least = x.least + y.least
        square = np.where(segment > 0, 1.0, -1.0) * least * least
        under = np.where(is_mixed, under, under * (1 + square))
        ahead = np.where(colour % 2 == 0, -1.0, 1.0)
        shift = np.where(is_mixed, shift, 1 + ahead * np.maximum(a, segment) * least)
    return 2 / (shift + np.sqrt(np.maximum(under, 0)))


def sided_fields(problem: SteadyConvectionDiffusion, relaxation: str | float) -> dict[str, Array]:
    r"""Return the fields of kernel 1 at all nodes, with the conditions of the sides.

    At a node of a side with :math:`u_n = g - c u` the value beyond the side is
    :math:`u_{in} + 2 h (g - c\, u_P)` with the inner neighbour: its coefficient a goes to the inner
    neighbour, :math:`2 h a c` to the diagonal and :math:`2 h a g` to the source. A node with a
    given value has no neighbours, and this value as its source.

    Parameters
    ----------
    problem : SteadyConvectionDiffusion
        The problem.
    relaxation : str or float
        As in `LMSOR`.

    Returns
    -------
    fields : dict of str to ndarray, shape (ny, nx)
        omega, west, east, north, south and source.
    """
    (h, k), inside = problem.spacing, problem._unknown
    c = coefficients(problem)
    shape = problem.interior

    def full(values: Any) -> Array:
        return np.array(np.broadcast_to(values, shape))

    # Coefficients of the neighbours divided by `total`, their sum in the interior.
    near = {"x-": full(c.cx + c.x.skew), "x+": full(c.cx - c.x.skew)}
    near |= {"y-": full(c.cy + c.y.skew), "y+": full(c.cy - c.y.skew)}
    diag, source = np.ones(shape), full(c.source)
    for side, along in problem._fluxes.items():
        other = side[0] + ("+" if side[1] == "-" else "-")
        edge: list[Any] = [slice(None), slice(None)]
        place = "yx".index(side[0])
        edge[place] = 0 if side[1] == "-" else -1
        at = tuple(edge)
        condition = problem._sides[side]
        coefficient = _coefficient(condition)
        values = along[inside[1 - place]]
        flux = coefficient * values if isinstance(condition, Robin) else values
        weight = 2 * (h if side[0] == "x" else k) * near[side][at]
        diag[at] += weight * coefficient
        source[at] += weight * flux
        near[other][at] += near[side][at]
        near[side][at] = 0.0
    names = {"west": "x-", "east": "x+", "south": "y-", "north": "y+"}
    first = inside[0].start + inside[1].start
    found: dict[str, Any] = {name: near[side] / diag for name, side in names.items()}
    found["source"] = source / diag
    found["omega"] = (
        _sided_omega(problem, c, relaxation, first) if isinstance(relaxation, str) else relaxation
    )
    fields = {name: np.zeros(problem.shape) for name in found}
    fields["omega"][...], fields["source"][...] = 1.0, problem._start()
    for name, values in found.items():
        fields[name][inside] = values
    return fields


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
