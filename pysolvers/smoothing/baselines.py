"""Baselines of spectra: smooth curves below the peaks, by weights that are found iteratively."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._blocks.systems import solve_penalised
from .._checks import integer, require, require_number
from .._options import check_threads
from .penalised import penalty, require_determined, series_of

Array = NDArray[Any]

# Values of the spectra that are treated together: what an iteration reads stays in cache.
_TOGETHER = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class BaselineResult:
    """Baselines of spectra.

    Attributes
    ----------
    baseline : array, shape of the spectra
        The baselines.
    weights : array, shape of the spectra
        The last weights of the values.
    iterations : ndarray of int, shape of the spectra without the axis of values
        Number of solves of each spectrum.
    converged : ndarray of bool, of the same shape
        Whether the weights of a spectrum changed by less than the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers.smoothing import arpls
    >>> x = np.linspace(0, 1, 200)
    >>> noise = 0.01 * np.random.default_rng(0).standard_normal(200)
    >>> found = arpls(x + np.exp(-(((x - 0.5) / 0.01) ** 2)) + noise, 1e5)  # a line and a peak
    >>> bool(found.converged), bool(abs(found.baseline - x).max() < 0.02)
    (True, True)
    """

    baseline: Array
    weights: Array
    iterations: NDArray[np.intp]
    converged: NDArray[np.bool_]


def arpls(
    y: ArrayLike,
    lam: ArrayLike = 1e5,
    *,
    tol: float = 1e-3,
    max_iterations: int = 50,
    axis: int = -1,
    threads: int | None = None,
) -> BaselineResult:
    r"""Find the baselines of many spectra by asymmetrically reweighted penalised least squares.

    Parameters
    ----------
    y : array_like, shape (..., n, ...)
        The spectra, of real and finite numbers, n > 2.
    lam : array_like, default: 1e5
        The weight of the second differences of a baseline, as in `whittaker`.
    tol : float, default: 1e-3
        A spectrum has converged if the norm of the change of its weights is less than `tol` times
        that of the weights.
    max_iterations : int, default: 50
        Number of solves, at most.
    axis, threads
        As in `whittaker`.

    Returns
    -------
    BaselineResult
        Baselines, weights and numbers of iterations.

    Raises
    ------
    TypeError, ValueError, BackendError
        As `whittaker`, and if a value is not finite.
    SingularSystemError
        If `lam` is so large that the first baseline of a series is not determined.

    Notes
    -----
    With the baseline z of `whittaker` and d = y - z, whose negative values have the mean m and the
    standard deviation s, the next weights are ([1]_)

    .. math:: w_i = \frac{1}{1 + \exp(2 (d_i - (2 s - m)) / s)} .

    All spectra of a batch are iterated together; one that has converged leaves the batch, so that
    its result is the one that it has alone. So does one whose weights become 0 at all but two
    points, as can happen without noise: it has the last baseline, and has not converged.

    References
    ----------
    .. [1] S.-J. Baek, A. Park, Y.-J. Ahn and J. Choo, "Baseline correction using asymmetrically
       reweighted penalized least squares smoothing", *Analyst* 140 (2015) 250-257.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers.smoothing import arpls
    >>> x = np.linspace(-1, 1, 200)
    >>> noise = 0.01 * np.random.default_rng(0).standard_normal(200)
    >>> found = arpls(x + np.exp(-((x / 0.05) ** 2)) + noise, 1e5)
    >>> bool(found.converged), bool(np.abs(found.baseline - x).max() < 0.03)
    (True, True)
    """
    series = series_of("arpls", y, lam, None, axis)
    require_number("tol", tol)
    require(tol > 0, "tol must be greater than 0", tol)
    most = integer("max_iterations", max_iterations)
    require(most > 0, "max_iterations must be at least 1", max_iterations)
    rows, batch = series.y.shape[-1], series.y.shape[:-1]
    if rows < 3:
        raise ValueError(f"arpls: y must have at least 3 values along axis {axis}, got {rows}")
    if not np.isfinite(series.y).all():
        raise ValueError("arpls: y must be finite; interpolate values that are missing")
    lines = series.y.reshape(-1, rows)
    lams = np.broadcast_to(np.asarray(series.lam, series.y.dtype), batch).reshape(-1)
    baseline, weights = np.empty(lines.shape, lines.dtype), np.empty(lines.shape, lines.dtype)
    iterations = np.zeros(prod(batch), np.intp)
    converged = np.zeros(prod(batch), bool)
    together, count = max(1, _TOGETHER // rows), check_threads(threads)
    for start in range(0, len(lines), together):
        part = slice(start, start + together)
        _iterate(
            lines[part],
            lams[part],
            (baseline[part], weights[part], iterations[part], converged[part]),
            (float(tol), most, count),
            (batch, start),
        )
    return BaselineResult(
        series.finish(baseline.reshape(*batch, rows), y),
        series.finish(weights.reshape(*batch, rows), y),
        iterations.reshape(batch),
        converged.reshape(batch),
    )


def _iterate(
    y: Array,
    lam: Array,
    results: Any,
    options: tuple[float, int, int],
    place: tuple[tuple[int, ...], int],
) -> None:
    """Iterate spectra of a batch, from a number on; they leave when they have converged."""
    tol, most, threads = options
    baseline, weights, iterations, converged = results
    bands = penalty(y.shape[-1], 2, y.dtype)
    active = np.arange(len(y))
    w, before = np.ones_like(y), y
    for count in range(1, most + 1):
        z = np.empty_like(y)
        info = solve_penalised(y, lam[active], w, bands, z, threads)
        fails = info != 0  # too few weights are left: the last baseline stays
        if count == 1 and fails.any():
            batch, first = place
            require_determined(info, batch, w, first)
        z[fails] = before[fails]
        after = _reweighted(y, z)
        after[fails] = w[fails]
        change = np.linalg.norm(after - w, axis=-1)
        is_done = (change < tol * np.linalg.norm(w, axis=-1)) & ~fails
        leaves = is_done | fails if count < most else np.ones_like(is_done)
        if leaves.any():
            gone = active[leaves]
            baseline[gone], weights[gone] = z[leaves], after[leaves]
            iterations[gone], converged[gone] = count, is_done[leaves]
            stays = ~leaves
            active, y, after, z = active[stays], y[stays], after[stays], z[stays]
            if not len(active):
                return
        w, before = after, z


def _reweighted(y: Array, z: Array) -> Array:
    """Return the weights for baselines z."""
    d = y - z
    count = np.count_nonzero(d < 0, axis=-1)[:, None]
    negative = np.minimum(d, 0)
    mean = negative.sum(-1, keepdims=True) / np.maximum(count, 1)
    square = np.einsum("ij,ij->i", negative, negative)[:, None]
    variance = (square - count * mean**2) / np.maximum(count - 1, 1)
    deviation = np.sqrt(np.maximum(variance, np.finfo(d.dtype).tiny))
    np.subtract(d, 2 * deviation - mean, out=d)
    d *= 2 / deviation
    np.clip(d, -80, 80, out=d)  # exp of it is finite in every dtype
    np.exp(d, out=d)
    d += 1
    return np.reciprocal(d, out=d)
