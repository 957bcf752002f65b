"""Interpolation by cubic splines in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._errors import raise_for_status
from .._options import check_threads
from .._runtime.arrays import real_of
from .._runtime.device import device_array, is_device_array
from .._runtime.streams import keeping_stream
from .._runtime.targets import Target, fast_access_of, find_target
from ._arguments import (
    ENDS,
    Conditions,
    Extrapolate,
    check_finite,
    check_given,
    check_knots,
    checked_axis,
    conditions_of,
    outside_of,
)
from ._lines import Layout, call, in_real, is_of_library, like_on_device, parts_of, smallest_like
from .piecewise import Form, PiecewisePolynomial

__all__ = ["CubicSpline"]

Array = NDArray[Any]

_FAULT_BYTES = np.dtype(np.int32).itemsize


class CubicSpline(PiecewisePolynomial):
    r"""Cubic splines through the values of a batch, with continuous second derivatives.

    The interface is that of `scipy.interpolate.CubicSpline`. With :math:`h_i = x_{i+1} - x_i`,
    the slopes :math:`s_i` at the knots solve

    .. math::
       h_i s_{i-1} + 2 (h_{i-1} + h_i) s_i + h_{i-1} s_{i+1}
       = 3 h_i \frac{y_i - y_{i-1}}{h_{i-1}} + 3 h_{i-1} \frac{y_{i+1} - y_i}{h_i}

    with one condition at each end ([1]_, ch. IV).

    Parameters
    ----------
    x : array_like, shape (n,), or a shape that broadcasts to that of `y`
        Knots: real, finite, strictly increasing, at least 2. One vector is shared by all splines;
        an array with as many axes as `y` has a vector for each spline along `axis`.
    y : array_like
        Values, real or complex, finite, with n entries along `axis`. The other axes are those of
        the batch. A value that is NaN in one series is an error for the batch: leave the series
        out, or the knots where values are missing.
    axis : int, default: 0
        Axis of the knots in `y`.
    bc_type : str or pair, default: 'not-a-knot'
        Condition at the ends: ``'not-a-knot'`` (the third derivative is continuous at the second
        and the last but one knot), ``'clamped'`` (first derivative zero), ``'natural'`` (second
        derivative zero) or ``'periodic'`` (values and derivatives agree; the values of `y` at the
        ends must be equal to 8 eps of the largest value of the series). A pair gives the conditions
        of the first and the last knot; one of them is a name other than ``'periodic'`` or a pair
        (order, value) of the order of a derivative, 1 or 2, and its values: an array of the shape
        of `y` without `axis`.
    extrapolate : bool or 'periodic', optional
        Whether points outside the knots have the value of the first or last piece (True), are NaN
        (False), or are shifted by periods. By default ``'periodic'`` for periodic splines,
        otherwise True.
    device : str, optional
        ``'cpu'``, ``'cuda'`` or ``'cuda:N'``; by default the device of the arrays.
    stream : int or object, optional
        Stream of the device on which the work is enqueued; as in `solve_tridiagonal`.
    threads : int, optional
        Number of host threads of all calls; by default as in `solve_tridiagonal`.

    Attributes
    ----------
    axis : int
        Axis of the knots in `y`, at least 0.
    extrapolate : bool or 'periodic'
        What `__call__` does outside the knots by default.
    dtype : dtype
        Of the values: float32 if x and y are float32 or complex64, complex if y is.

    Raises
    ------
    TypeError
        If an array has an unsupported dtype.
    ValueError
        If x, y or a given derivative is not finite, x does not increase or is complex, shapes do
        not fit, `bc_type` is unknown, the ends of a periodic spline differ by more than 8 eps of
        the largest value of the series, or the slopes overflow. On a device neither the slopes nor
        derivatives that are given as arrays on the device are examined.
    BackendError
        If the device is not available.

    See Also
    --------
    solve_tridiagonal : Solves for the slopes.

    Notes
    -----
    The splines are stored as values and slopes, 2 words per knot, in copies; coefficients are
    computed when `c` is read. The stored slopes are those in the unit of the average distance of
    the knots, so that distances of 1e-30 or 1e30 are as good as 1 in float32, too. A not-a-knot
    condition is eliminated from the row next to it, so that the systems are diagonally dominant and
    are solved without row exchanges. Splines that share their knots share one matrix.

    Two knots without a derivative at an end give a line there, three knots with not-a-knot
    conditions at both ends a parabola, as in SciPy.

    The interpolation error of a smooth function is of order :math:`h^4` in the values,
    :math:`h^{4-\nu}` in the derivatives of order :math:`\nu` ([1]_, ch. V).

    The constructor waits for a device, because it reports bad values; calls do not wait.

    References
    ----------
    .. [1] C. de Boor, *A Practical Guide to Splines*, Springer, 1978.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import CubicSpline
    >>> x = np.linspace(0, 2 * np.pi, 41)
    >>> spline = CubicSpline(x, np.stack([np.sin(x), np.cos(x)]), axis=1)
    >>> bool(np.allclose(spline(1.0), [np.sin(1.0), np.cos(1.0)], atol=1e-5))
    True
    >>> spline.derivative()(x).shape
    (2, 41)
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        axis: int = 0,
        bc_type: Conditions = "not-a-knot",
        extrapolate: Extrapolate | None = None,
        *,
        device: str | None = None,
        stream: object = None,
        threads: int | None = None,
    ) -> None:
        kinds, given = conditions_of(bc_type)
        self._threads = check_threads(threads)
        if extrapolate is None:
            extrapolate = "periodic" if kinds[0] == "periodic" else True
        self.extrapolate = extrapolate
        outside_of(extrapolate)
        if given or stream is not None or not self._make_of_plain(x, y, axis, kinds, device):
            self._make_of_any(x, {"y": y, **given}, axis, kinds, device, stream)

    def _make_of_plain(
        self, x: Any, y: Any, axis: int, kinds: tuple[str, str], device: str | None
    ) -> bool:
        """Compute the slopes from arrays on a device that need no copies; False for others."""
        access = fast_access_of(y, device)
        if access is None:
            return False
        backend, functions, asked = access
        found = backend.borrow_operands(x, y, asked, functions)
        if not found:
            return False
        ordinal, stream, knots, values = found
        keeper = keeping_stream(ordinal, stream)
        ends = backend.SPLINE_ENDS[kinds[0]], backend.SPLINE_ENDS[kinds[1]]
        made = backend.spline_create(
            knots, values, axis, ends, keeper.address, self._threads, ordinal, stream
        )
        if made is None:
            return False
        # What follows is done while the kernels run.
        status, buffer, answer = made
        try:
            self.axis, self.dtype, self._keeper = axis % values.ndim, values.dtype, keeper
            before, after = values.shape[: self.axis], values.shape[self.axis + 1 :]
            layout = self._layout = Layout(before, after, values.dtype)
            real, count = knots.dtype, len(knots)
            numbers = 2 * layout.outer * layout.inner * count + count
            self._keep(device_array(buffer.address, (numbers,), None, real, buffer), (1, 1, count))
            self._device = f"cuda:{ordinal}"
            self._like = like_on_device(y, knots, ordinal)
        finally:
            status = backend.wait(ordinal, stream) or status
            faults = answer.read(_FAULT_BYTES * len(backend.SPLINE_FAULTS))
            answer.end()
        raise_for_status(status, backend.STATUS, "CubicSpline")
        if any(faults):
            _raise_for_faults(np.frombuffer(faults, np.int32), backend.SPLINE_FAULTS, self.axis)
        return True

    def _keep(self, block: Array, knots: tuple[int, ...]) -> None:
        """Set the arrays of the spline to parts of a block; `knots`: the shape of their lines."""
        layout, count = self._layout, knots[-1]
        size = layout.outer * layout.inner * count
        values, slopes = parts_of(block[: 2 * size], 2, (layout.outer, layout.inner, count))
        (self._knots,) = parts_of(block[2 * size :], 1, knots)
        self._arrays, self._form = (values, slopes), Form(0)

    def _make_of_any(
        self,
        x: Any,
        named: dict[str, Any],
        axis: int,
        kinds: tuple[str, str],
        device: str | None,
        stream: object,
    ) -> None:
        """Compute the slopes from `y`, and derivatives at the ends, of any library."""
        target = find_target(device, stream, {"x": x, **named}, operation="CubicSpline", leader="y")
        (knots,), x_dtype, _ = target.operands({"x": x})
        if x_dtype.kind == "c":
            raise ValueError(f"`x` must contain real values, got {x_dtype}")
        operands, dtype, _ = target.operands(named)
        dtype = dtype if dtype == x_dtype else np.result_type(dtype, x_dtype)
        self._begin(target, axis, knots.shape, operands[0].shape, dtype)
        layout = self._layout
        for name, array in zip(list(named)[1:], operands[1:], strict=True):
            check_given(name, array.shape, layout.shape())
            if not is_device_array(array):  # those of a device stay there
                check_finite(name, array)
        y = named["y"]
        like = y if not target.is_synchronous or is_of_library(y) else x

        values, *ends = (
            in_real(target, name, array, dtype) for name, array in zip(named, operands, strict=True)
        )
        knots, values, *ends = target.move(
            in_real(target, "x", knots, real_of(dtype)), values, *ends
        )
        if knots.ndim == 1:
            knots = knots[(*(None,) * self.axis, slice(None), *(None,) * len(layout.after))]
        given = {
            name: layout.lines(target, np.expand_dims(array, self.axis))
            for name, array in zip(list(named)[1:], ends, strict=True)
        }
        x_lines, y_lines = (layout.lines(target, array) for array in (knots, values))
        self._make(target, kinds, x_lines, y_lines, given, like)

    def _begin(
        self,
        target: Target,
        axis: int,
        knots: tuple[int, ...],
        values: tuple[int, ...],
        dtype: np.dtype,
    ) -> None:
        """Set what the shapes of knots and values and the dtype determine, or raise."""
        self.axis = checked_axis(axis, len(values))
        check_knots(knots, values, self.axis)
        self._device = target.device_name
        self.dtype = dtype
        self._layout = Layout(values[: self.axis], values[self.axis + 1 :], dtype)

    def _make(
        self,
        target: Target,
        kinds: tuple[str, str],
        knots: Array,
        y: Array,
        given: dict[str, Array],
        like: Any,
    ) -> None:
        """Compute the slopes from lines. What can follow the kernels is done while these run."""
        layout, backend, real = self._layout, target.backend, real_of(self.dtype)
        count = knots.shape[-1]
        size = layout.outer * layout.inner * count
        self._keeper = target.keeper
        self._keep(target.kept((2 * size + knots.size,), real, self._keeper), knots.shape)
        values, slopes = self._arrays
        flags = target.flags(len(backend.SPLINE_FAULTS))
        try:
            if size:
                call(
                    target,
                    "CubicSpline",
                    backend.spline_make,
                    tuple(backend.SPLINE_ENDS[kind] for kind in kinds),
                    prod(layout.parts),
                    knots,
                    y,
                    tuple(given.get(name) for name in ENDS),
                    self._knots,
                    (slopes, values),
                    flags,
                    self._threads,
                )
            else:
                target.write(self._knots, knots)
            self._like = smallest_like(target, like, y)
        finally:
            found = target.flags_on_host(flags)
        if any(found):
            _raise_for_faults(found, backend.SPLINE_FAULTS, self.axis)
        if self._device == "cpu":  # those of a device stay there
            _check_slopes(slopes, self._knots)


def _check_slopes(slopes: Array, knots: Array) -> None:
    """Raise if slopes are not finite, as SciPy does: data or knots overflow in the formulas."""
    if np.isfinite(slopes).all():
        return
    least, most = (f(np.diff(knots)) for f in (np.min, np.max))
    raise ValueError(
        "the slopes at the knots must be finite, but the formulas overflow for these values and "
        f"derivatives and for distances of the knots from {least:.3g} to {most:.3g}: scale x and y "
        "to moderate size"
    )


def _raise_for_faults(flags: Sequence[int] | Array, codes: Mapping[str, int], axis: int) -> None:
    """Raise for what the backend found wrong with knots and values."""
    found = {name for name, code in codes.items() if flags[code]}
    if "knots" in found:
        raise ValueError("`x` must contain only finite values: leave out the other knots")
    if "values" in found:
        raise ValueError(
            "`y` must contain only finite values: leave out the series, or the knots, of the "
            f"others; numpy.isfinite(y).all({axis}) shows the series"
        )
    if "order" in found:
        raise ValueError(
            "`x` must be a strictly increasing sequence: write x, first = numpy.unique(x, "
            f"return_index=True) and y = y.take(first, {axis})"
        )
    if "period" in found:
        raise ValueError(
            f"The first and last `y` point along axis {axis} must be identical (within machine "
            "precision) when bc_type='periodic': write the value of the first knot at the last one"
        )
