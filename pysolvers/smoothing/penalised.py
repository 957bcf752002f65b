"""Values that are smooth in the sense of small differences: Whittaker, Hodrick and Prescott."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._blocks import factor_pentadiagonal, solve_pentadiagonal
from .._blocks.systems import host_target, solve_penalised
from .._checks import axis_number, broadcasts, integer
from .._errors import SingularSystemError
from .._memory import RELEASES
from .._options import check_threads
from .._row_sums import RowSums
from ..tridiagonal import solve_tridiagonal

Array = NDArray[Any]

# Matrices of more rows are not kept: making them costs little in comparison with a solve.
_MOST_KEPT = 4096

# Values for which the elimination of one matrix for each series costs less than a factor.
_FEW_VALUES = 4096


class Series(NamedTuple):
    """Checked series, the values along the last axis, and what to do with a result."""

    y: Array
    lam: Array | float  # of the batch, or a number
    weights: Array | None
    axis: int
    target: Any  # None: a new array of NumPy is the result

    def finish(self, z: Array, like: Any) -> Any:
        """Return a result in the order of axes and in the library of the caller."""
        moved = z if self.axis == -1 else np.moveaxis(z, -1, self.axis)
        if self.target is None:
            return np.ascontiguousarray(moved)
        result = self.target.result(
            None, {"y": like}, moved, moved.shape, moved.dtype, leader="y", replaces=""
        )
        result[...] = moved
        return self.target.finish(result, like, None)


def whittaker(
    y: ArrayLike,
    lam: ArrayLike,
    *,
    order: int = 2,
    weights: ArrayLike | None = None,
    axis: int = -1,
    threads: int | None = None,
) -> Array:
    r"""Smooth many series by penalised differences (Whittaker, Henderson, Eilers).

    For every index of the other axes, find `z` that minimises

    .. math:: \sum_i w_i (y_i - z_i)^2 + \lambda \sum_i (\Delta^p z_i)^2 ,

    with the differences :math:`\Delta^p` of order p = 1 or 2.

    Parameters
    ----------
    y : array_like, shape (..., n, ...)
        The series, of real numbers.
    lam : array_like
        The weight :math:`\lambda \ge 0` of the differences: a number, or one for each series,
        broadcastable to the shape of `y` without `axis`.
    order : {1, 2}
        Order p of the differences. With 2, straight lines are not penalised.
    weights : array_like, optional
        The weights :math:`w_i \ge 0` of the values, broadcastable with `y`; by default 1. A value
        with the weight 0 is not read, also if it is NaN: it is interpolated.
    axis : int, default: -1
        Axis of the series.
    threads : int, optional
        Number of threads, as in `solve_tridiagonal`.

    Returns
    -------
    array, shape of `y`
        The smooth values z, in a new array of the library of `y`.

    Raises
    ------
    TypeError
        If an operand is complex, or has another dtype than those of `solve_tridiagonal`.
    ValueError
        If shapes do not broadcast, or `lam` or a weight is negative or NaN.
    SingularSystemError
        If fewer than p weights of a series are positive, or, for p = 2, if `lam` is so large, from
        about 1e15 in float64 and 1e6 in float32 relative to the weights, that the weights are lost
        by rounding.
    BackendError
        If an operand is on a device.

    See Also
    --------
    hodrick_prescott : Trend and cycle of economic series.
    arpls : Weights that follow the baseline of a spectrum.
    make_smoothing_spline : The same for values at any points.

    Notes
    -----
    The equations :math:`(W + \lambda D^T D)\, z = W y` ([1]_) are tridiagonal for p = 1, where they
    are given by row sums and have the accuracy of those, and pentadiagonal for p = 2. If all series
    have the same weights and :math:`\lambda`, the matrix is factored once.

    References
    ----------
    .. [1] P. H. C. Eilers, "A perfect smoother", *Analytical Chemistry* 75 (2003) 3631-3636.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers.smoothing import whittaker
    >>> whittaker(np.array([0.0, 0.0, 3.0, 0.0, 0.0]), 1.0).round(3)
    array([0.125, 0.75 , 1.25 , 0.75 , 0.125])
    """
    require_order(order)
    series = series_of("whittaker", y, lam, weights, axis, checks=order == 1)
    return series.finish(smooth(series, order, threads), y)


def hodrick_prescott(
    y: ArrayLike, lam: ArrayLike = 1600.0, *, axis: int = -1, threads: int | None = None
) -> tuple[Array, Array]:
    r"""Split many series into cycle and trend by the filter of Hodrick and Prescott.

    Parameters
    ----------
    y : array_like, shape (..., n, ...)
        The series.
    lam : array_like, default: 1600
        The weight of the second differences of the trend: 1600 is usual for quarters, 6.25 for
        years, 129600 for months.
    axis, threads
        As in `whittaker`.

    Returns
    -------
    cycle, trend : array, shape of `y`
        The trend is that of `whittaker` of order 2; the cycle is `y` minus the trend.

    Raises
    ------
    TypeError, ValueError, BackendError
        As `whittaker`.

    References
    ----------
    .. [1] R. J. Hodrick and E. C. Prescott, "Postwar U.S. business cycles", *Journal of Money,
       Credit and Banking* 29 (1997) 1-16.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers.smoothing import hodrick_prescott
    >>> cycle, trend = hodrick_prescott(np.arange(5.0))
    >>> np.abs(cycle).max() < 1e-10
    np.True_
    """
    series = series_of("hodrick_prescott", y, lam, None, axis)
    trend = smooth(series, 2, threads)
    return series.finish(series.y - trend, y), series.finish(trend, y)


def require_order(order: int) -> None:
    """Raise ValueError unless differences have the order 1 or 2."""
    if integer("order", order) not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {order}")


def series_of(
    operation: str, y: Any, lam: Any, weights: Any, axis: int, *, checks: bool = True
) -> Series:
    """Check the operands of a smoother, and bring the values to the last axis.

    Without `checks` weights may be negative or not finite.
    """
    plain = _plain_series(y, lam, weights, axis, checks)
    if plain is not None:
        return plain
    named = {"y": y, "lam": lam}
    if weights is not None:
        named["weights"] = weights
    target = host_target(operation, named, None, "y")
    arrays, dtype, _ = target.operands(named, vectors=())
    operands = dict(zip(named, arrays, strict=True))
    if dtype.kind == "c":
        raise TypeError(f"{operation}: operands must be real, got {dtype}")
    values = operands["y"]
    if values.ndim == 0:
        raise ValueError("y must have at least one dimension, got a 0-d array")
    place = axis_number(axis, values.ndim, f"y of {values.ndim} axes") - values.ndim
    moved = np.moveaxis(values, place, -1)
    own = None
    if weights is not None:
        own = operands["weights"]
        if own.ndim == 1:  # along the series
            fits = own.shape[0] == moved.shape[-1]
        else:
            fits = broadcasts(own.shape, values.shape)
        if not fits:
            raise ValueError(
                f"{operation}: weights must have {moved.shape[-1]} entries along axis {axis}, or "
                f"broadcast to the shape {values.shape} of y, got shape {own.shape}"
            )
        if own.ndim != 1:
            own = np.moveaxis(np.broadcast_to(own, values.shape), place, -1)
        if checks:
            _require_weights(operation, own)
    strength = operands["lam"]
    if not ((strength >= 0) & np.isfinite(strength)).all():
        raise ValueError(f"{operation}: lam must be finite and at least 0, got {lam}")
    try:
        np.broadcast_to(strength, moved.shape[:-1])
    except ValueError:
        raise ValueError(
            f"lam must broadcast to {moved.shape[:-1]}, one for each series, got shape "
            f"{strength.shape}"
        ) from None
    return Series(moved, strength, own, place, target)


def _plain_series(y: Any, lam: Any, weights: Any, axis: Any, checks: bool) -> Series | None:
    """Return the series of a call that needs no conversions, or None."""
    if type(y) is not np.ndarray or y.dtype.char not in "fd" or type(axis) is not int:
        return None
    if type(lam) not in (int, float) or not 0 <= lam <= np.finfo(y.dtype).max:
        return None
    if not -y.ndim <= axis < y.ndim or not (y.flags.aligned and y.dtype.isnative):
        return None
    place = axis if axis < 0 else axis - y.ndim
    own = weights
    if weights is not None:
        same = type(weights) is np.ndarray and weights.dtype is y.dtype
        if not same or weights.shape != y.shape or (checks and not _are_weights(weights)):
            return None
        own = weights if place == -1 else np.moveaxis(weights, place, -1)
    return Series(y if place == -1 else np.moveaxis(y, place, -1), float(lam), own, place, None)


def _are_weights(weights: Array) -> bool:
    """Return whether weights are finite and at least 0, by passes that make no arrays."""
    if weights.size == 0:
        return True
    return bool(weights.min() >= 0 and weights.max() <= np.finfo(weights.dtype).max)


def _require_weights(operation: str, weights: Array) -> None:
    """Raise ValueError if a weight is negative or not finite."""
    if not _are_weights(weights):
        wrong = weights[~((weights >= 0) & np.isfinite(weights))][0]
        raise ValueError(f"{operation}: weights must be finite and at least 0, got {wrong}")


@lru_cache(maxsize=8)
def _kept_penalty(rows: int, order: int, dtype: str) -> list[Array]:
    return _penalty(rows, order, dtype)


RELEASES.append(_kept_penalty.cache_clear)


def penalty(rows: int, order: int, dtype: Any) -> list[Array]:
    """Return diagonal and upper diagonals of D'D, which are kept, without the entries outside."""
    make = _kept_penalty if rows <= _MOST_KEPT else _penalty
    return make(rows, order, np.dtype(dtype).char)


def _penalty(rows: int, order: int, dtype: str) -> list[Array]:
    step = np.array([-1, 1] if order == 1 else [1, -2, 1], dtype)
    bands = []
    for offset in range(order + 1):
        line = np.zeros(max(0, rows - offset), dtype)
        for k in range(order + 1 - offset):  # D has rows - order rows
            line[k : k + max(0, rows - order)] += step[k] * step[k + offset]
        bands.append(line)
    return bands


def smooth(series: Series, order: int, threads: int | None) -> Array:
    """Solve (W + lam D'D) z = W y."""
    y, lam, weights = series.y, series.lam, series.weights
    rows = y.shape[-1]
    if rows <= order:
        lam = 0.0 * lam
    column = lam[..., None] if isinstance(lam, np.ndarray) and lam.ndim else lam
    if order == 1:
        right = y if weights is None else _weighted(y, weights, None)
        out = None if weights is None else right
        form = RowSums(1.0 if weights is None else weights, check_signs=False)
        return solve_tridiagonal(-column, form, -column, right, out=out, threads=threads)
    diag, upper, upper2 = penalty(rows, order, y.dtype)
    options: dict[str, Any] = {"assume": "positive definite", "threads": threads}
    try:
        if weights is None and np.ndim(lam) == 0:
            bands = (1 + lam * diag, lam * upper, lam * upper2)
            if y.size <= _FEW_VALUES:
                return solve_pentadiagonal(None, None, *bands, y, **options)
            return factor_pentadiagonal(None, None, *bands, **options).solve(y)
        return _smooth_own(y, lam, weights, threads)
    except SingularSystemError as error:
        raise undetermined(error.systems, error.rows, order, y.dtype) from None


def _weighted(y: Array, weights: Array, out: Array | None) -> Array:
    """Return weights times values, 0 where the weight is 0."""
    with np.errstate(invalid="ignore"):  # 0 times infinity, which is not read
        right = np.multiply(weights, y, out=out)
    if right.size and weights.min() == 0:
        np.copyto(right, 0, where=weights == 0)
    return right


def _smooth_own(y: Array, lam: Any, weights: Array | None, threads: int | None) -> Array:
    """Solve with a matrix of second differences for each series."""
    batch, rows = y.shape[:-1], y.shape[-1]
    bands = penalty(rows, 2, y.dtype)
    lines = y if y.ndim == 2 else y.reshape(prod(batch), rows)
    z = np.empty_like(lines)
    own = np.ones(1, y.dtype) if weights is None else weights
    given = own if own.shape == lines.shape else np.broadcast_to(own, y.shape).reshape(z.shape)
    if own.ndim == 1:
        given = np.broadcast_to(own, z.shape)
    lams = np.broadcast_to(np.asarray(lam, y.dtype), batch).reshape(len(z))
    if z.size:
        info = solve_penalised(lines, lams, given, bands, z, check_threads(threads))
        if info.any():
            require_determined(info, batch, given)
    return z.reshape(y.shape)


def require_determined(info: Array, batch: tuple[int, ...], weights: Array, first: int = 0) -> None:
    """Raise the error for series of a batch, from number `first` on, whose `info` is not 0."""
    if (info < 0).any():
        _require_weights("whittaker", weights)
    failed = np.flatnonzero(info)
    index = np.unravel_index(first + failed, batch) if batch else ()
    systems = np.stack(index, -1) if batch else np.zeros((1, 0), np.intp)
    raise undetermined(systems, np.maximum(info[failed].astype(np.intp) - 1, 0), 2, weights.dtype)


def undetermined(systems: Array, rows: Array, order: int, dtype: Any) -> SingularSystemError:
    """Return the error for series whose smooth values are not determined."""
    place = tuple(map(int, systems[0]))
    where = f" at batch index {place}" if place else ""
    return SingularSystemError(
        systems,
        rows,
        f"the smooth values of {len(rows)} series, first{where}, are not determined: "
        f"pass at least {order} weights greater than 0, or a lam that is less than "
        f"{0.1 / np.finfo(dtype).eps:.0e} times the weights",
    )
