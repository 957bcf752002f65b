"""Piecewise polynomials in batches: values, derivatives, antiderivatives and integrals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import frexp, isnan, ldexp, nan, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import index, integer, require, short
from .._errors import raise_for_status
from .._extras import extra_module
from .._repr import ShownAsText
from .._runtime.arrays import real_of
from .._runtime.fp_mode import in_default_fp_mode
from .._runtime.interop import library_of
from .._runtime.lines import solve_lines
from .._runtime.streams import Stream
from .._runtime.targets import Target, fast_access_of
from ._arguments import Extrapolate, check_points, outside_of
from ._lines import (
    Layout,
    call,
    flat,
    is_of_library,
    parts_of,
    points_of,
    target_for,
)

__all__ = ["PiecewisePolynomial"]

Array = NDArray[Any]

_CUBIC = 4  # coefficients of a piece that is stored as values and slopes
_MOST_COEFFICIENTS = 12  # PS_SPLINE_ORDERS


class Form(NamedTuple):
    """How polynomials are stored; see csrc/include/ps_spline.h.

    Attributes
    ----------
    order : int
        Coefficients of a piece; 0: the arrays are values and slopes of cubics.
    power : int
        Power of the length of a piece by which its polynomial is multiplied.
    is_sum : bool
        Whether coefficient 0 is a sum over the pieces before, in the unit of the line of knots.
    """

    order: int
    power: int = 0
    is_sum: bool = False


class PiecewisePolynomial(ShownAsText):
    r"""Piecewise polynomials of a batch, as the methods of `CubicSpline` return them.

    On the piece :math:`x_i \le x < x_{i+1}` the polynomials are

    .. math:: p(x) = \sum_{q=0}^{k-1} c_q (x - x_i)^{k-1-q}.

    The first and the last piece extend to all x outside. Arrays are of the library, and on the
    device, of the arrays that the spline was made of.

    Values, derivatives and integrals are computed in :math:`t = (x - x_i)/h_i`, where
    :math:`h_i = x_{i+1} - x_i`, from coefficients that are as large as the values: they are right
    in any unit of the knots, as far as the dtype can represent the result. This is not so for `c`.

    Attributes
    ----------
    axis : int
        Axis of the knots in the array of values, at least 0.
    extrapolate : bool or 'periodic'
        What `__call__` does outside the knots by default.
    dtype : dtype
        Of the values: float32, float64, complex64 or complex128.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import CubicSpline
    >>> x = np.linspace(0, np.pi, 41)
    >>> slope = CubicSpline(x, np.sin(x)).derivative()
    >>> round(float(slope(0.0)), 6)
    1.000007
    >>> round(float(slope.integrate(0.0, np.pi / 2)), 6)
    1.0
    """

    axis: int
    extrapolate: Extrapolate
    dtype: np.dtype
    _layout: Layout
    _device: str
    _threads: int
    _knots: Array  # lines, one for all splines or one for each
    _keeper: Stream | None  # of the memory of knots and coefficients
    _form: Form
    _arrays: tuple[Array, ...]  # lines: the coefficient of power 0 first, or values and slopes
    _like: Any  # an array of one element of the library of the caller

    @cached_property
    def x(self) -> Any:
        """array: The knots, shape (n,), or that of the values with n along `axis`."""
        count = self._knots.shape[-1]
        target = target_for(self._device, self._like, None)
        shape = (count,) if self._is_shared else self._layout.shape(count)
        real = real_of(self.dtype)
        lines = self._knots
        if not self._is_shared:  # complex splines have knots for both parts
            step = len(self._layout.parts) + 1
            lines = self._layout.spread(lines)[:, ::step]
        outer, inner, _ = lines.shape
        result = self._result(target, self._like, (outer * count * inner,), real)
        written = target.destination(result).reshape(outer, count, inner).transpose(0, 2, 1)
        target.write(written, lines)
        target.has_read_kept(self._keeper)
        return target.finish(result, self._like).reshape(shape)

    @cached_property
    def c(self) -> Any:
        """array: Coefficients, shape (k, n - 1, ...), that of the highest power first.

        The other axes are those of the values without `axis`. They are computed, and kept, when
        they are read first. Those that the dtype cannot represent are infinite or 0, as of
        float32 values of the order of 1 at knots with distances of 1e-15: `to_scipy` has them in
        double precision.
        """
        arrays = self._differentiate(0, is_absolute=True)
        target = target_for(self._device, self._like, None)
        layout, pieces = self._layout, self._knots.shape[-1] - 1
        shape = (len(arrays), pieces, *layout.before, *layout.after)
        size = prod(shape)
        result = self._result(target, self._like, (size,), self.dtype)
        if size:
            written = target.destination(result).view(real_of(self.dtype))
            self._write_coefficients(target, written, arrays)
            target.has_read_kept(self._keeper)
        return target.finish(result, self._like).reshape(shape)

    def __repr__(self) -> str:
        knots = self._knots.shape[-1]
        return (
            f"<{type(self).__name__} of {knots} knots, values {self._layout.shape(knots)} "
            f"{self.dtype}, device {self._device}>"
        )

    def __getstate__(self) -> Any:
        if self._device != "cpu":
            raise TypeError(
                f"a {type(self).__name__} on {self._device} cannot be pickled or copied: keep its "
                "knots and values and create it again"
            )
        return super().__getstate__()

    def __call__(
        self,
        x: ArrayLike,
        nu: int = 0,
        extrapolate: Extrapolate | None = None,
        *,
        per_spline: bool = False,
        stream: object = None,
    ) -> Any:
        """Evaluate the polynomials or their derivatives.

        Parameters
        ----------
        x : array_like
            Points, converted to the precision of the splines.
        nu : int, default: 0
            Order of the derivative.
        extrapolate : bool or 'periodic', optional
            Whether points outside the knots have the value of the first or last piece (True), are
            NaN (False), or are shifted by periods. By default the attribute `extrapolate`.
        per_spline : bool, default: False
            Whether each spline has points of its own: x then has as many axes as the values, m
            points along `axis`, and other axes that broadcast to those of the values. Otherwise
            all splines are evaluated at all points.
        stream : int or object, optional
            Stream of the device on which the work is enqueued; as in `solve_tridiagonal`.

        Returns
        -------
        array
            Values. Their shape is that of the values at the knots, with the axes of x in place of
            `axis`, or, with `per_spline`, m in place of n. They are an array of the library of x,
            or, if x is a NumPy array, a list or a number, of that of the splines.

        Raises
        ------
        TypeError
            If x is complex or has an unsupported dtype.
        ValueError
            If `nu` is negative, `extrapolate` is unknown, or x does not fit `per_spline`.

        Notes
        -----
        The piece of a point is looked for at the place that equidistant knots would give, and then
        from there or from the piece of the point before, by steps that double: two comparisons for
        uniform knots, a few for sorted points. If all splines share knots and points, this is done
        once for the batch. A value of a cubic spline is a combination of two
        values and two slopes, 7 operations. The call does not wait for a device.
        """
        order = min(index("nu", nu, 0), _MOST_COEFFICIENTS)
        outside = outside_of(self.extrapolate if extrapolate is None else extrapolate)
        if self._device != "cpu" and stream is None and not per_spline:
            values = self._at_plain(x, order, outside)
            if values is not None:
                return values
        like = x if is_of_library(x) else self._like
        target = target_for(self._device, like, stream)
        points = points_of(target, x, real_of(self.dtype))
        shape, count = self._result_shape(points.shape, per_spline)
        size = prod(shape)
        result = self._result(target, like, (size,), self.dtype)
        if size:
            layout = self._layout
            lines = layout.lines(target, points) if per_spline else flat(target, points)[None, None]
            call(
                target,
                "spline",
                target.backend.spline_points,
                self._form,
                order,
                target.backend.SPLINE_OUTSIDES[outside],
                self._knots,
                self._arrays,
                lines,
                layout.result_lines(target.destination(result), count),
                self._threads,
            )
            target.has_read_kept(self._keeper)
        return target.finish(result, like).reshape(shape)

    def _at_plain(self, x: Any, order: int, outside: str) -> Any:
        """Return what a call does for points on a device that need no copy; None for others."""
        access = fast_access_of(x, self._device)
        if access is None:
            return None
        backend, functions, asked = access
        found = backend.borrow_operands(x, asked, functions)
        if not found:
            return None
        ordinal, stream, points = found
        layout, keeper = self._layout, self._keeper
        is_plain = points.dtype == self._knots.dtype and points.flags.c_contiguous
        if not is_plain or not layout.outer * layout.inner:
            return None
        assert keeper is not None
        library = library_of(x)
        result = library.empty(x, np.empty(0, self.dtype), layout.shape(*points.shape), ordinal)
        *_, array = backend.borrow_operands(result, ordinal, functions)
        status = backend.spline_points(
            *(self._form, order, backend.SPLINE_OUTSIDES[outside], self._knots, self._arrays),
            *(points.reshape(1, 1, -1), layout.result_lines(array, points.size)),
            *(self._threads, ordinal, stream),
        )
        if not status and not library.is_captured(ordinal):
            status = backend.order(stream, keeper.address, ordinal)
        raise_for_status(status, backend.STATUS, "spline")
        return result

    def derivative(self, nu: int = 1) -> PiecewisePolynomial:
        """Return the derivative of order `nu`; with `nu` below 0, an antiderivative.

        Parameters
        ----------
        nu : int, default: 1
            Order. The polynomials have `nu` coefficients less, but at least one.

        Returns
        -------
        PiecewisePolynomial
            The derivative on each piece, also where it jumps at the knots.
        """
        order = integer("nu", nu)
        if order < 0:
            return self.antiderivative(-order)
        form = self._form
        if order >= (form.order or _CUBIC):
            form = Form(1)  # zero
        elif order > 0:
            form = Form((form.order or _CUBIC) - order, form.power - order)
        else:
            form = form._replace(order=form.order or _CUBIC)
        arrays = self._differentiate(min(order, _MOST_COEFFICIENTS))
        return self._with_arrays(arrays, form, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> PiecewisePolynomial:
        """Return the antiderivative of order `nu` that vanishes at the first knot.

        Parameters
        ----------
        nu : int, default: 1
            Order: how often to integrate. Below 0, the derivative of order ``-nu``.

        Returns
        -------
        PiecewisePolynomial
            It is continuous, with its first ``nu - 1`` derivatives. A periodic spline has an
            antiderivative that is not extrapolated: `extrapolate` is False.

        Raises
        ------
        ValueError
            If it has more than 12 coefficients on a piece.
        """
        order = integer("nu", nu)
        if order <= 0:
            return self.derivative(-order)
        most = _MOST_COEFFICIENTS - (self._form.order or _CUBIC)
        require(order <= most, f"nu must be at most {most} for these polynomials", nu)
        found: PiecewisePolynomial = self
        extrapolate = False if self.extrapolate == "periodic" else self.extrapolate
        for _ in range(order):
            found = found._integrated(extrapolate)
        return found

    @in_default_fp_mode
    def integrate(self, a: float, b: float, extrapolate: Extrapolate | None = None) -> Any:
        """Integrate from a to b.

        Parameters
        ----------
        a, b : float
            Limits, the same for all splines.
        extrapolate : bool or 'periodic', optional
            As in `__call__`. With False, the integral is NaN if a or b is outside the knots.

        Returns
        -------
        array
            Integrals; their shape is that of the values without `axis`. NaN if a or b is NaN.

        Raises
        ------
        ValueError
            If `extrapolate` is ``'periodic'`` and the splines have knots of their own.
        TypeError
            If a or b is not a real number, or the library of the splines has no arithmetic (arrays
            of Numba on a device).

        Notes
        -----
        The integral is the difference of an antiderivative, which each call computes: for many
        integrals, keep that of `antiderivative`. If the splines share their knots, it is the
        antiderivative that vanishes at the begin of the first piece of the interval, so that the
        rounding errors are those of the interval, not of all pieces.
        """
        outside = outside_of(self.extrapolate if extrapolate is None else extrapolate)
        a, b = _limit("a", a), _limit("b", b)
        begin, end = min(a, b), max(a, b)
        if isnan(a) or isnan(b):
            begin = end = nan
        last, turns, first_piece = end, 0.0, 0
        if outside == "periodic" or self._is_shared:
            knots = self._host_knots()
            if outside == "periodic":
                first, last = float(knots[0]), float(knots[-1])
                turns, rest = divmod(end - begin, last - first)
                if not first <= begin < last:
                    begin = first + (begin - first) % (last - first)
                end = begin + rest
                if end > last:
                    end, turns = end - (last - first), turns + 1
            if not turns:
                found = int(np.searchsorted(knots, begin, side="right")) - 1
                first_piece = min(max(found, 0), len(knots) - 2)
        primitive = self._integrated(outside != "nan", first_piece)
        values = primitive([begin, end, last])
        before = (slice(None),) * self.axis
        low, high, whole = (values[(*before, k)] for k in range(3))
        integral = high - low + turns * whole if turns else high - low
        return integral if a <= b else -integral

    def to_scipy(self) -> Any:
        """Return a copy as `scipy.interpolate.PPoly`, in double precision, on the host.

        Returns
        -------
        scipy.interpolate.PPoly
            With the same knots, coefficients, axis and extrapolation.

        Raises
        ------
        ValueError
            If the splines have knots of their own.
        """
        PPoly = extra_module("scipy.interpolate", "poisson").PPoly

        knots = self._host_knots()
        target = target_for(self._device, np.zeros(1), None)
        layout, form = self._layout, self._form
        arrays = self._arrays if form.order else self._differentiate(0)
        pieces = self._knots.shape[-1] - 1
        shape = (len(arrays), pieces, *layout.before, *layout.after)
        written = target.empty((prod((*shape, *layout.parts)),), arrays[0].dtype)
        self._write_coefficients(target, written, arrays)
        c = target.on_host(written).view(self.dtype).reshape(shape)
        c = c.astype(np.result_type(self.dtype, np.float64))
        lengths = np.diff(knots).reshape(-1, *(1,) * (c.ndim - 2))
        for q, part in enumerate(c[::-1]):
            is_sum = form.is_sum and q == 0
            unit = 1 / _rate(knots) if is_sum else lengths
            scale = np.multiply if form.power > q else np.divide
            for _ in range(abs(form.power - q)):  # a power of the unit alone can overflow
                scale(part, unit, out=part)
        return PPoly.construct_fast(c, knots, self.extrapolate, self.axis)

    def _result_shape(self, points: tuple[int, ...], per_spline: bool) -> tuple[Any, int]:
        """Return the shape of the values at points, and the number of points of a spline."""
        layout = self._layout
        if not per_spline:
            return layout.shape(*points), prod(points)
        check_points(points, layout.shape(), self.axis)
        return layout.shape(points[self.axis]), points[self.axis]

    @staticmethod
    def _result(target: Target, like: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """Return a new array of the library of `like` for the values."""
        return target.result(None, {"rhs": like}, np.empty(0, dtype), shape, dtype)

    def _write_coefficients(self, target: Target, written: Array, arrays: Sequence[Array]) -> None:
        """Write coefficients to a flat array of real numbers, in the order of `c`."""
        outer, inner, pieces = arrays[0].shape
        view = written.reshape(len(arrays), pieces, outer, inner).transpose(0, 2, 3, 1)
        for lines, power in zip(arrays, reversed(range(len(arrays))), strict=True):
            target.write(view[power], lines)

    def _integrated(self, extrapolate: Extrapolate, first_piece: int = 0) -> PiecewisePolynomial:
        """Return the antiderivative that vanishes at the begin of a piece.

        Before this piece it is not continuous.
        """
        form = Form((self._form.order or _CUBIC) + 1, self._form.power + 1, is_sum=True)
        return self._with_arrays(self._differentiate(-1, first_piece), form, extrapolate)

    def _differentiate(
        self, nu: int, first_piece: int = 0, *, is_absolute: bool = False
    ) -> list[Array]:
        """Return the coefficients of the derivative of order nu >= 0, or -1.

        They are those of powers of t or, if `is_absolute`, of powers of x - x_i. An antiderivative,
        nu = -1, vanishes at the begin of `first_piece`.
        """
        target = target_for(self._device, np.zeros(1), None)
        layout, backend = self._layout, target.backend
        count = max((self._form.order or _CUBIC) - nu, 1)
        shape = (layout.outer, layout.inner, self._knots.shape[-1] - 1)
        real = real_of(self.dtype)
        result = parts_of(target.kept((count * prod(shape),), real, self._keeper), count, shape)
        if not result[0].size:
            return result
        call(
            target,
            "spline",
            backend.spline_pieces,
            self._form,
            nu,
            is_absolute,
            self._knots,
            self._arrays,
            tuple(result),
            self._threads,
        )
        if nu < 0:
            constants = result[0]
            numbers = target.upload(np.array([-1, 1, 0], real))
            matrix = np.broadcast_to(numbers, (*constants.shape, 3)).transpose(3, 0, 1, 2)
            target.write(constants[..., : first_piece + 1], matrix[2, ..., : first_piece + 1])
            # They are the sums of the integrals: the solution of c_i - c_{i-1} = b_i.
            solve_lines(target, "spline", list(matrix), constants, constants, threads=self._threads)
        target.wait()
        return result

    def _with_arrays(
        self, arrays: Sequence[Array], form: Form, extrapolate: Extrapolate
    ) -> PiecewisePolynomial:
        """Return polynomials with the knots of these and other coefficients."""
        found = PiecewisePolynomial()
        for name in (
            "axis",
            "dtype",
            "_layout",
            "_device",
            "_threads",
            "_knots",
            "_keeper",
            "_like",
        ):
            setattr(found, name, getattr(self, name))
        found.extrapolate = extrapolate
        found._arrays, found._form = tuple(arrays), form
        return found

    @property
    def _is_shared(self) -> bool:
        """Whether all splines share their knots."""
        return self._knots.shape[:2] == (1, 1)

    def _host_knots(self) -> NDArray[np.float64]:
        """Return the knots on the host, if all splines share them."""
        if not self._is_shared:
            raise ValueError(
                "this needs knots that all splines share: make a CubicSpline for each vector of "
                f"knots; there are {self._knots.shape[0] * self._knots.shape[1]}"
            )
        target = target_for(self._device, np.zeros(1), None)
        copy = target.empty(self._knots.shape, self._knots.dtype)
        target.write(copy, self._knots)
        return target.on_host(copy)[0, 0].astype(np.float64)


def _rate(knots: NDArray[np.float64]) -> float:
    """Return 1/H, the reciprocal unit of a line of knots; see csrc/include/ps_spline_math.h."""
    _, exponent = frexp((len(knots) - 1) / (float(knots[-1]) - float(knots[0])))
    return ldexp(1.0, min(max(exponent - 1, -1000), 1000))


def _limit(name: str, value: Any) -> float:
    """Return a limit of an integral, a real number or an array of one without axes."""
    number = value[()] if isinstance(value, np.ndarray) else value
    if not isinstance(number, str | bytes | np.complexfloating) and not getattr(number, "ndim", 0):
        try:
            return float(number)
        except (TypeError, ValueError):  # a complex number, a list
            pass
    raise TypeError(
        f"{name} must be a real number, got {short(value)}; for many limits, write "
        f"`primitive = spline.antiderivative()`, then primitive(b) - primitive(a)"
    )
