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
from .._lines.step import Differences, differentiate
from .._memory import RELEASES
from .._options import Choice
from .._runtime.arrays import as_array, real_of
from .._runtime.backends import require as require_backend
from .._runtime.interop import dtype_of, host_array, library_of, locate, shape_of
from ..factor import TridiagonalFactor, factor_tridiagonal
from .formulas import FORMULAS, SPLIT_POINTS, end_weights, split, split_ends

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
        are tridiagonal, with 8 pentadiagonal, see Notes.
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
        If `f` has complex values on a device, and `accuracy` is 8 on a grid of fewer than 64
        points that is not periodic.

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

    The five diagonals of accuracy 8 are the product of two tridiagonal matrices with constant
    diagonals, on a periodic grid exactly. On a grid with ends, of at least 64 points, the product
    differs in the first and the last entry of the diagonal; the right sides of the first and the
    last row are changed accordingly. Shorter grids with ends are solved with five diagonals.

    The differences are made where the systems are solved, so that each value is read once and
    written once; on a GPU twice where `accuracy` 8 solves with two factors.

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
    is_short = accuracy == 8 and not periodic and rows < SPLIT_POINTS
    if is_short and ordinal is not None and dtype_of(own).kind == "c":
        raise BackendError(
            f"{_NAME}: accuracy 8 of complex values on a device needs {SPLIT_POINTS} points, and f "
            f"has {rows} along axis {axis}: write accuracy=6, or pass an array of NumPy"
        )
    end = None if periodic else int(accuracy if closure is None else closure)
    by = _differences_of((order, accuracy), step, end, splits=not is_short)
    which = (order, accuracy, rows, bool(periodic), ordinal)
    if not is_short and (out is None or type(out) is type(f)):
        dtype = dtype_of(own).name
        if dtype in ("float32", "float64"):
            first, *others = _factors_of(*which, dtype)
            x = first.solve_differences_directly(f, place, by, others, out, threads, _NAME)
            if x is not None:
                return x
    host_out: Any = out if ordinal is not None or out is None else library_of(out).host_view(out)
    call = prepare({"f": own}, None, _OPERATION, Choice(axis=place, out=host_out, threads=threads))
    if is_short:
        x = _solve_pentadiagonal(differentiate(call, by), place, order, ordinal)
        if host_out is not None and ordinal is None:
            host_out[...] = x
    else:
        first, *others = _factors_of(*which, real_of(call.dtype).name)
        x = first.solve_differences(call, by, *others)
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
def _differences_of(
    which: tuple[int, int], step: float, closure: int | None, *, splits: bool
) -> Differences:
    """Return the weights of the right sides; without a closure those of a periodic grid.

    With `splits`, five diagonals are the product of `split`.
    """
    formula, order = FORMULAS[which], which[0]
    a, b = float(formula.a), float(formula.b)
    whole = step**order
    near, far = (a / (2 * step), b / (4 * step)) if order == 1 else (a / whole, b / (4 * whole))
    is_even = order == 2
    flags = require_backend("cpu").PERIODIC if closure is None else 0
    ends: tuple[tuple[float, ...], ...] = ((0.0,), (0.0,))
    if which[1] == 8 and splits:
        scale = split(order).scale
        near, far = near / scale, far / scale
        ends = ends if closure is None else split_ends(order, closure)
    elif closure is not None:
        ends = end_weights(*which, closure)
    rows = [tuple(value / whole for value in line) for line in ends]
    if len(rows) == 1:
        rows.append((near if is_even else -near, 0.0, near))
    sides = (float(formula.alpha), 0.0)
    if which[1] == 8:
        sides = split(order).sides if splits else (0.0, 0.0)
    return Differences(flags, is_even, near, far, *sides, (rows[0], rows[1]))


def _solve_pentadiagonal(right: Any, axis: int, order: int, ordinal: int | None) -> Any:
    """Solve for the right sides of a short grid."""
    if ordinal is None:
        name = real_of(right.dtype).name
        return _kept_pentadiagonal(order, right.shape[axis], name).solve(right, axis=axis)
    alpha, beta = float(FORMULAS[order, 8].alpha), float(FORMULAS[order, 8].beta)
    to = right if library_of(right).mutable else None
    options: dict[str, Any] = {"assume": "positive definite", "on_singular": "ignore"}
    return solve_pentadiagonal(beta, alpha, 1.0, alpha, beta, right, axis=axis, out=to, **options)


@lru_cache(maxsize=16)
def _kept_pentadiagonal(order: int, rows: int, dtype: str) -> PentadiagonalFactor:
    """Factor the five diagonals of a short grid."""
    formula, as_type = FORMULAS[order, 8], np.dtype(dtype).type
    alpha, beta, one = as_type(float(formula.alpha)), as_type(float(formula.beta)), as_type(1)
    bands = (beta, alpha, one, alpha, beta)
    return factor_pentadiagonal(*bands, rows=rows, assume="positive definite")


RELEASES.append(_kept_pentadiagonal.cache_clear)


def _factors_of(
    order: int, accuracy: int, rows: int, periodic: bool, ordinal: int | None, dtype: str
) -> tuple[TridiagonalFactor, ...]:
    """Return the factors of the matrices of a grid, kept ones if these are not large."""
    arguments = (order, accuracy, rows, dtype, periodic, ordinal)
    if rows > _MOST_KEPT:
        return _make_factors(*arguments)
    return _kept_factors(None if ordinal is None else require_backend("cuda"), *arguments)


def _make_factors(
    order: int, accuracy: int, rows: int, dtype: str, periodic: bool, ordinal: int | None
) -> tuple[TridiagonalFactor, ...]:
    """Factor the matrices of a grid."""
    sides = split(order).sides if accuracy == 8 else (float(FORMULAS[order, accuracy].alpha),)
    as_type = np.dtype(dtype).type
    device = "cpu" if ordinal is None else f"cuda:{ordinal}"
    options: dict[str, Any] = {"rows": rows, "periodic": periodic, "device": device}
    found = [
        factor_tridiagonal(as_type(a), as_type(1), as_type(a), pivot=False, **options)
        for a in sides
    ]
    return tuple(factor for factor in found if isinstance(factor, TridiagonalFactor))


@lru_cache(maxsize=16)
def _kept_factors(_backend: Any, *arguments: Any) -> tuple[TridiagonalFactor, ...]:
    """Return factors, of the backend that made them."""
    return _make_factors(*arguments)


RELEASES.append(_kept_factors.cache_clear)
