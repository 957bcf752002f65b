"""`compact_derivative`: weights of differences, and factors that are kept."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._blocks import PentadiagonalFactor, factor_pentadiagonal, solve_pentadiagonal
from .._checks import axis_number, integer, require, require_finite, require_flag
from .._errors import BackendError
from .._lines.prepared import Operation, prepare
from .._lines.step import Differences, differentiate, is_plain
from .._memory import RELEASES
from .._options import Choice, check_threads
from .._runtime.arrays import as_array, real_of
from .._runtime.backends import require as require_backend
from .._runtime.interop import dtype_of, host_array, library_of, locate, shape_of
from ..factor import TridiagonalFactor, factor_tridiagonal
from .formulas import FORMULAS, end_weights

Array = NDArray[Any]

_REALS = np.finfo(np.float64)

_NAME = "compact_derivative"
_OPERATION = Operation(_NAME, "f", ("f",), "*")

# Fewer points have two entries of a periodic formula in one place.
_LEAST_PERIODIC = 5

# Factors of more rows are not kept: making them costs little in comparison with a call.
_MOST_KEPT = 1 << 16


def compact_derivative(
    f: ArrayLike,
    axis: int = -1,
    *,
    spacing: float = 1.0,
    order: int = 1,
    accuracy: int = 6,
    periodic: bool = False,
    closure: int | None = None,
    out: Array | None = None,
    threads: int | None = None,
) -> Array:
    r"""Differentiate values on a uniform grid along one axis, by compact differences.

    The derivatives :math:`d_i` of order 1 at the points :math:`x_i = i h` satisfy

    .. math::

       \beta d_{i-2} + \alpha d_{i-1} + d_i + \alpha d_{i+1} + \beta d_{i+2}
       = a \frac{f_{i+1} - f_{i-1}}{2 h} + b \frac{f_{i+2} - f_{i-2}}{4 h},

    those of order 2 the same with
    :math:`a (f_{i+1} - 2 f_i + f_{i-1}) / h^2 + b (f_{i+2} - 2 f_i + f_{i-2}) / (2 h)^2`.

    Parameters
    ----------
    f : array_like, shape (..., n, ...)
        The values; complex numbers are allowed.
    axis : int, default: -1
        Axis along which to differentiate.
    spacing : float, default: 1
        Distance h of the points; the unit of the result is that of f / h^order.
    order : {1, 2}
        Order of the derivative.
    accuracy : {4, 6, 8}
        The error is proportional to h to this power where f is smooth. With 4 and 6 the systems
        are tridiagonal, with 8 pentadiagonal.
    periodic : bool, default: False
        Whether ``f[n]`` would be ``f[0]``; n is then at least 5.
    closure : int, optional
        Power of h of the error at the first and at the last point, from 3 to `accuracy`, which is
        the default; that of the point next to it is larger by 1, but at most `accuracy`. See Notes.
        The grid must have ``accuracy + order`` points.
    out : array, optional
        Array for the result, with its dtype and shape. It can be `f`, or overlap it.
    threads : int, optional
        Number of threads, as in `solve_tridiagonal`. The result has the same bits for any number.

    Returns
    -------
    array, shape of `f`
        The derivatives: `out`, or a new array of the library of `f`.

    Raises
    ------
    TypeError
        If `f` has another dtype than those of `solve_tridiagonal`.
    ValueError
        If an option is not one of its values, `spacing` is not positive, or the grid has too few
        points.
    BackendError
        If `f` is on a device and `accuracy` is 8 on a periodic grid or of complex values.

    See Also
    --------
    CubicSpline : Derivatives between the points, and on grids that are not uniform.

    Notes
    -----
    The coefficients are those of [1]_ (2.1.6, 2.1.7, 2.2.6 and 2.2.7) without points further than
    2. A wave :math:`\exp(i k x)` on a periodic grid is differentiated as if its wave number were,
    with :math:`w = k h`,

    .. math:: k' = \frac{a \sin w + \frac b2 \sin 2 w}
       {h (1 + 2 \alpha \cos w + 2 \beta \cos 2 w)}, \qquad
       k''^2 = \frac{2 a (1 - \cos w) + \frac b2 (1 - \cos 2 w)}
       {h^2 (1 + 2 \alpha \cos w + 2 \beta \cos 2 w)} .

    Unless `periodic`, the matrix has the same entries in its first and last rows, without those
    outside, so that it is symmetric, positive definite and diagonally dominant. Their right sides
    are sums over the points next to the end, whose weights follow from the exactness for
    polynomials. In a problem u_t + c u_x = 0 with a given value at the end where c enters, closures
    of high order have modes that grow in time: of the eigenvalues of -d/dx without the row and the
    column of this end, for 65 points and h = 1/64, the largest real part is negative with
    `closure` 3 for every accuracy, and 0.16 with `accuracy` and `closure` 6.

    The factors of the matrices are kept, those of 16 grids of up to 65536 points, until
    `clear_cache`.

    On a grid that is not uniform, x(s) with uniform s, write
    ``compact_derivative(f) / compact_derivative(x)``.

    References
    ----------
    .. [1] S. K. Lele, "Compact finite difference schemes with spectral-like resolution", *Journal
       of Computational Physics* 103 (1992) 16-42.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import compact_derivative
    >>> x = np.linspace(0.0, 1.0, 21)
    >>> slope = compact_derivative(np.exp(x), spacing=0.05)
    >>> bool(np.abs(slope - np.exp(x)).max() < 1e-8)
    True
    """
    step = _check_options(order, accuracy, spacing, closure)
    require_flag("periodic", periodic)
    own = host_array(f)
    ordinal = locate(own)
    if not (hasattr(own, "shape") or hasattr(own, "__cuda_array_interface__")):
        own = as_array("f", own)
    shape = shape_of(own)
    ndim = len(shape)
    if ndim == 0:
        raise ValueError("f must have at least one dimension, got a number")
    place = axis_number(axis, ndim, f"f of {ndim} axes")
    rows = shape[place]
    least = _LEAST_PERIODIC if periodic else accuracy + order
    if rows < least:
        kind = "a periodic grid" if periodic else f"a grid for accuracy {accuracy}"
        raise ValueError(f"{kind} must have at least {least} points along axis {axis}, got {rows}")
    if accuracy == 8 and ordinal is not None and (periodic or dtype_of(own).kind == "c"):
        what = "on a periodic grid" if periodic else "of complex values"
        raise BackendError(
            f"{_NAME}: accuracy 8 {what} needs the CPU, and f is on a device: write accuracy=6, or "
            "pass an array of NumPy"
        )
    by = _differences_of(
        (order, accuracy),
        step,
        None if periodic else int(accuracy if closure is None else closure),
    )
    if accuracy < 8 and out is None and type(f) is np.ndarray and is_plain(f):
        factor = _factor_of(order, accuracy, rows, f.dtype.name, bool(periodic), None)
        return factor.solve_plain_differences(f, place, by, check_threads(threads), _NAME)
    out_given: Any = out if ordinal is not None or out is None else library_of(out).host_view(out)
    call = prepare({"f": own}, None, _OPERATION, Choice(axis=place, out=out_given, threads=threads))
    if accuracy < 8:
        dtype = real_of(call.dtype)
        factor = _factor_of(order, accuracy, rows, dtype.name, bool(periodic), ordinal)
        x = factor.solve_differences(call, by)
    elif ordinal is None:
        right = differentiate(call, by)
        x = _solve_pentadiagonal(right, place, order, periodic=bool(periodic))
        if out is not None:
            out_given[...] = x
    else:
        right = differentiate(call, by)
        alpha, beta = float(FORMULAS[order, 8].alpha), float(FORMULAS[order, 8].beta)
        x = solve_pentadiagonal(
            *(beta, alpha, 1.0, alpha, beta),
            right,
            axis=place,
            assume="positive definite",
            out=right if library_of(right).mutable else None,
            on_singular="ignore",
        )
    if out is not None:
        return out
    return x if ordinal is not None else library_of(f).from_host(x, f)


def _check_options(order: int, accuracy: int, spacing: float, closure: int | None) -> float:
    """Return the spacing, or raise TypeError or ValueError for an option."""
    require(integer("order", order) in (1, 2), "order must be 1 or 2", order)
    require(integer("accuracy", accuracy) in (4, 6, 8), "accuracy must be 4, 6 or 8", accuracy)
    require_finite("spacing", spacing)
    require(spacing > 0, "spacing must be greater than 0", spacing)
    least, most = (float(end) ** (1 / order) for end in (_REALS.tiny, _REALS.max))
    require(
        least <= spacing <= most,
        f"spacing must be from {least:.2g} to {most:.2g} for order {order}",
        spacing,
    )
    if closure is not None:
        require(
            3 <= integer("closure", closure, "an int or None") <= accuracy,
            f"closure must be from 3 to accuracy, which is {accuracy}",
            closure,
        )
    return float(spacing)


@lru_cache(maxsize=64)
def _differences_of(which: tuple[int, int], step: float, closure: int | None) -> Differences:
    """Return the weights of the right sides; without a closure those of a periodic grid."""
    formula, order = FORMULAS[which], which[0]
    a, b = float(formula.a), float(formula.b)
    scale = step**order
    near, far = (a / (2 * step), b / (4 * step)) if order == 1 else (a / scale, b / (4 * scale))
    is_even = order == 2
    if closure is None:
        return Differences(True, is_even, near, far, ((0.0,), (0.0,)))
    ends = end_weights(*which, closure)
    points = max(3, *map(len, ends))
    rows = [[value / scale for value in line] for line in ends]
    if len(rows) == 1:
        rows.append([near if is_even else -near, 0.0, near])
    first, second = (tuple(row + [0.0] * (points - len(row))) for row in rows)
    return Differences(False, is_even, near, far, (first, second))


def _solve_pentadiagonal(right: Array, axis: int, order: int, *, periodic: bool) -> Array:
    """Solve for right sides in host memory."""
    name = real_of(right.dtype).name
    factor = _factor_of(order, 8, right.shape[axis], name, periodic, None)
    return factor.solve(right, axis=axis)


def _factor_of(
    order: int, accuracy: int, rows: int, dtype: str, periodic: bool, ordinal: int | None
) -> Any:
    """Return the factor of a matrix, a kept one if it is not large."""
    arguments = (order, accuracy, rows, dtype, periodic, ordinal)
    if rows > _MOST_KEPT:
        return _make_factor(*arguments)
    return _kept_factor(None if ordinal is None else require_backend("cuda"), *arguments)


def _make_factor(
    order: int, accuracy: int, rows: int, dtype: str, periodic: bool, ordinal: int | None
) -> TridiagonalFactor | PentadiagonalFactor:
    """Factor the matrix of a grid."""
    formula = FORMULAS[order, accuracy]
    as_type = np.dtype(dtype).type
    alpha, beta, one = as_type(float(formula.alpha)), as_type(float(formula.beta)), as_type(1)
    if accuracy == 8:
        bands = (beta, alpha, one, alpha, beta)
        return factor_pentadiagonal(
            *bands, rows=rows, periodic=periodic, assume="positive definite"
        )
    device = "cpu" if ordinal is None else f"cuda:{ordinal}"
    found = factor_tridiagonal(
        alpha, one, alpha, rows=rows, periodic=periodic, pivot=False, device=device
    )
    assert isinstance(found, TridiagonalFactor)
    return found


@lru_cache(maxsize=16)
def _kept_factor(_backend: Any, *arguments: Any) -> TridiagonalFactor | PentadiagonalFactor:
    """Return a factor, of the backend that made it."""
    return _make_factor(*arguments)


RELEASES.append(_kept_factor.cache_clear)
