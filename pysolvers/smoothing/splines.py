"""Smoothing splines: natural cubic splines near noisy values."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._blocks import factor_pentadiagonal
from .._blocks.systems import host_target
from .._checks import require_flag
from ..spline import CubicSpline
from .penalised import series_of

Array = NDArray[Any]

# Values of log10 of lam / lam_0 that are tried for the generalised cross validation, where lam_0
# weighs both terms alike, and steps of the golden section search between the best neighbours.
_TRIED = np.arange(-8.0, 11.0)
_STEPS = 26
_GOLDEN = (5**0.5 - 1) / 2


class _Equations(NamedTuple):
    """R and G = Q' W^-1 Q as three upper diagonals each, and Q."""

    r: tuple[Array, Array]
    g: tuple[Array, Array, Array]
    q: tuple[Array, Array, Array]
    v: Array  # 1 / w
    y: Array  # the values, the knots last


@overload
def make_smoothing_spline(
    x: ArrayLike,
    y: ArrayLike,
    w: ArrayLike | None = ...,
    lam: ArrayLike | None = ...,
    *,
    axis: int = ...,
    return_lam: Literal[False] = ...,
    threads: int | None = ...,
) -> CubicSpline: ...
@overload
def make_smoothing_spline(
    x: ArrayLike,
    y: ArrayLike,
    w: ArrayLike | None = ...,
    lam: ArrayLike | None = ...,
    *,
    axis: int = ...,
    return_lam: Literal[True],
    threads: int | None = ...,
) -> tuple[CubicSpline, Array]: ...
def make_smoothing_spline(
    x: ArrayLike,
    y: ArrayLike,
    w: ArrayLike | None = None,
    lam: ArrayLike | None = None,
    *,
    axis: int = 0,
    return_lam: bool = False,
    threads: int | None = None,
) -> CubicSpline | tuple[CubicSpline, Array]:
    r"""Return the cubic splines that are smooth and near the values of a batch of series.

    For every index of the other axes, the natural cubic spline f with knots x that minimises

    .. math:: \sum_i w_i (y_i - f(x_i))^2 + \lambda \int f''(t)^2 \, dt .

    Parameters
    ----------
    x : array_like, shape (n,)
        The knots, increasing, n >= 5.
    y : array_like, shape (..., n, ...)
        The values, real numbers.
    w : array_like, optional
        The weights, greater than 0: one for each knot, or an array that broadcasts with `y`. By
        default 1.
    lam : array_like, optional
        The weight :math:`\lambda \ge 0`: a number, or one for each series, broadcastable to the
        shape of `y` without `axis`. By default each series has the one that minimises its
        generalised cross validation score.
    axis : int, default: 0
        Axis of the knots in `y`.
    return_lam : bool, default: False
        Whether to return the weights as well.
    threads : int, optional
        Number of threads, as in `solve_tridiagonal`.

    Returns
    -------
    spline : CubicSpline
        The splines, functions of points.
    lam : ndarray
        Only if `return_lam`: the weights, of the shape of `y` without `axis`.

    Raises
    ------
    TypeError
        If an operand is complex.
    ValueError
        If there are fewer than 5 knots, they do not increase, a weight is not greater than 0, `lam`
        is negative, or shapes do not fit.
    BackendError
        If an operand is on a device.

    See Also
    --------
    whittaker : Values at equal distances, without a function between them.

    Notes
    -----
    The second derivatives at the inner knots solve pentadiagonal systems ([1]_). The score is

    .. math:: \frac{1}{n} \sum_i (y_i - f(x_i))^2 \Big/ \Big(1 - \frac{\mathrm{tr} A}{n}\Big)^2

    without the weights, as in SciPy, with the matrix A that makes the values :math:`f(x_i)` of y;
    its trace needs five diagonals of the inverse matrices alone ([2]_). All series are searched
    together, on a grid of :math:`\log \lambda` and by golden sections.

    References
    ----------
    .. [1] C. H. Reinsch, "Smoothing by spline functions", *Numerische Mathematik* 10 (1967)
       177-183.
    .. [2] M. F. Hutchinson and F. R. de Hoog, "Smoothing noisy data with spline functions",
       *Numerische Mathematik* 47 (1985) 99-106.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers.smoothing import make_smoothing_spline
    >>> x = np.linspace(0, 1, 50)
    >>> noise = 0.1 * np.random.default_rng(0).standard_normal((50, 3))
    >>> spline = make_smoothing_spline(x, np.sin(6 * x)[:, None] + noise)
    >>> bool(np.abs(spline(0.5) - np.sin(3.0)).max() < 0.1)
    True
    """
    require_flag("return_lam", return_lam)
    operation = "make_smoothing_spline"
    series = series_of(operation, y, 0.0 if lam is None else lam, w, axis)
    (given,), dtype, _ = host_target(operation, {"x": x}, None, "x").operands({"x": x})
    if dtype.kind == "c":
        raise TypeError(f"{operation}: x must be real, got {dtype}")
    knots = given.astype(np.float64)
    n = series.y.shape[-1]
    if knots.ndim != 1 or len(knots) != n:
        raise ValueError(
            f"x must have one dimension and the {n} values of y along axis {axis}, got shape "
            f"{knots.shape}"
        )
    if n < 5:
        raise ValueError(f"x and y must have at least 5 values, got {n}")
    if not (np.diff(knots) > 0).all():
        raise ValueError("x must increase: sort x, and y with it, and average repeated values")
    weights = np.ones(n) if series.weights is None else series.weights
    if not (weights > 0).all():
        raise ValueError(f"weights must be greater than 0, got {weights.min()}")
    equations = _equations(knots, np.asarray(series.y, np.float64), 1.0 / weights)
    batch = series.y.shape[:-1]
    chosen = np.broadcast_to(np.asarray(series.lam, np.float64), batch)
    if lam is None:
        chosen = _best(equations, batch, threads)
    z = _solved(equations, chosen, threads, has_score=False)[0]
    values = series.finish(np.asarray(z, np.result_type(series.y.dtype, dtype)), y)
    spline = CubicSpline(knots.astype(values.dtype), values, axis=axis, bc_type="natural")
    return (spline, np.array(chosen)) if return_lam else spline


def _equations(x: Array, y: Array, v: Array) -> _Equations:
    """Return the matrices of the equations of Reinsch."""
    h = np.diff(x)
    a, c = 1 / h[:-1], 1 / h[1:]
    b = -(a + c)
    v = np.broadcast_to(v, (*v.shape[:-1], y.shape[-1]))
    first, middle, last = v[..., :-2], v[..., 1:-1], v[..., 2:]
    g = (
        a**2 * first + b**2 * middle + c**2 * last,
        b[:-1] * a[1:] * middle[..., :-1] + c[:-1] * b[1:] * last[..., :-1],
        c[:-2] * a[2:] * last[..., :-2],
    )
    return _Equations(((h[:-1] + h[1:]) / 3, h[1:-1] / 6), g, (a, b, c), v, y)


def _solved(
    e: _Equations, lam: Array, threads: int | None, *, has_score: bool
) -> tuple[Array, Array | None]:
    """Return the values of the splines at the knots, and the scores."""
    column = lam[..., None]
    bands = (e.r[0] + column * e.g[0], e.r[1] + column * e.g[1], column * e.g[2])
    rows = e.y.shape[-1] - 2
    factor = factor_pentadiagonal(
        None, None, *bands, rows=rows, assume="positive definite", threads=threads
    )
    a, b, c = e.q
    y = e.y
    gamma = factor.solve(a * y[..., :-2] + b * y[..., 1:-1] + c * y[..., 2:])
    bend = np.zeros_like(y)
    bend[..., :-2] += a * gamma
    bend[..., 1:-1] += b * gamma
    bend[..., 2:] += c * gamma
    residual = column * e.v * bend
    if not has_score:
        return y - residual, None
    n = y.shape[-1]
    _, _, middle, next_one, next_two = factor.inverse_diagonals()
    trace = (middle * e.g[0]).sum(-1)
    trace = trace + 2 * (next_one[..., :-1] * e.g[1]).sum(-1)
    trace = trace + 2 * (next_two[..., :-2] * e.g[2]).sum(-1)
    left = lam * trace / n  # 1 - tr A / n
    return y - residual, (residual**2).sum(-1) / n / left**2


def _best(e: _Equations, batch: tuple[int, ...], threads: int | None) -> Array:
    """Return the lam of each series with the least score."""
    scale = np.broadcast_to(np.log10(e.r[0].sum(-1) / e.g[0].sum(-1)), batch)

    def score(places: Array) -> Array:
        found = _solved(e, 10.0**places, threads, has_score=True)[1]
        assert found is not None
        return np.where(np.isnan(found), np.inf, found)

    scores = np.stack([score(scale + place) for place in _TRIED])
    best = scores.argmin(0)
    low = scale + _TRIED[np.maximum(best - 1, 0)]
    high = scale + _TRIED[np.minimum(best + 1, len(_TRIED) - 1)]
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    of_left, of_right = score(left), score(right)
    for _ in range(_STEPS):
        goes_left = of_left <= of_right
        low, high = np.where(goes_left, low, left), np.where(goes_left, right, high)
        kept, of_kept = np.where(goes_left, left, right), np.where(goes_left, of_left, of_right)
        new = np.where(goes_left, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        of_new = score(new)
        left, right = np.where(goes_left, new, kept), np.where(goes_left, kept, new)
        of_left, of_right = (
            np.where(goes_left, of_new, of_kept),
            np.where(goes_left, of_kept, of_new),
        )
    return 10.0 ** np.where(of_left <= of_right, left, right)
