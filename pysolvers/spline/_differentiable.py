r"""Cubic splines by the array operations of a library that differentiates them.

With the lengths h of the pieces, the differences d_i = y_{i+1} - y_i and the slopes s, which the
differentiable solve of the library gives (de Boor, A Practical Guide to Splines, 1978, ch. IV),
piece i has the coefficients

    y_i,   h_i s_i,   3 d_i - 2 h_i s_i - h_i s_{i+1},   h_i s_i + h_i s_{i+1} - 2 d_i,

those of powers 0 to 3 of t = (x - x_i)/h_i. Every operation is differentiable in y, in the points,
in the knots and in the given derivatives. About 30 operations and 25 words per knot for the
coefficients and 5 words per unknown for the solve, 2 if the splines share their knots; 9 operations
and 6 gathered words per value.

Knots can be in any unit, as in csrc/include/ps_spline_math.h. The unit H of a line of knots is the
average length of its pieces, a constant in all derivatives. Lengths and slopes are in this unit, so
that quotients, and the squares of the denominators in their derivatives, are of the order of 1; a
derivative or an integral is divided or multiplied by H once for each order. With h in the unit H,
the polynomials of a derivative of order -power, or of an antiderivative of order power, are

    H^power h^power (a_0 + a_1 t + ...)   or   H^power (a_0 + h^power (a_1 t + ...)),

the latter if a_0 is the sum of the integrals over the pieces before.

Arrays are lines: the axis of the knots is the last one, and all axes of the batch exist, with
length 1 where an array broadcasts. Coefficients are a tuple, that of power 0 first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import perm, prod
from typing import Any, ClassVar, NamedTuple, TypeVar

from .._checks import index, integer, short
from .._xp import ArrayLibrary
from ._arguments import (
    ENDS,
    Conditions,
    Extrapolate,
    check_given,
    check_knots,
    check_points,
    checked_axis,
    conditions_of,
    outside_of,
)

Array = Any
# Differentiable solve along the last axis; arguments lower, diag, upper, rhs and periodic.
Solve = Callable[..., Array]
Self = TypeVar("Self", bound="Pieces")


class Cubic(NamedTuple):
    """What defines cubic splines.

    Attributes
    ----------
    knots : array
        Lines; of length 1 along the axes of the batch if the splines share them.
    coefficients : tuple of array
        Lines with an entry for each piece.
    axis : int
        Axis of the knots in the values, counted from the last axis: negative.
    extrapolate : bool or 'periodic'
        Default of the calls.
    """

    knots: Array
    coefficients: tuple[Array, ...]
    axis: int
    extrapolate: Extrapolate


def is_shared(lines: Array) -> bool:
    """Return whether lines, shape (..., n), are one line for the whole batch."""
    return prod(lines.shape[:-1]) == 1


def cubic_of(
    library: ArrayLibrary,
    through: Callable[..., tuple[Array, ...]],
    x: Any,
    y: Any,
    axis: int,
    bc_type: Conditions,
    extrapolate: Extrapolate | None,
) -> Cubic:
    """Return the splines through values; the other arguments are those of `CubicSpline`.

    `through` is `coefficients_through` of the library.
    """
    kinds, given = conditions_of(bc_type)
    if extrapolate is None:
        extrapolate = "periodic" if kinds[0] == "periodic" else True
    outside_of(extrapolate)
    arrays = library.operands({"x": x, "y": y, **given})
    knots, values = arrays.pop("x"), arrays.pop("y")
    if library.is_complex(x):
        raise ValueError(f"`x` must contain real values, got {getattr(x, 'dtype', knots.dtype)}")
    knots = knots.real
    place = checked_axis(axis, values.ndim)
    check_knots(tuple(knots.shape), tuple(values.shape), place)
    batch = (*values.shape[:place], *values.shape[place + 1 :])
    for name, array in arrays.items():
        check_given(name, tuple(array.shape), batch)
    values = library.move(values, place, -1)
    if knots.ndim == values.ndim:
        knots = library.move(knots, place, -1)
    else:
        knots = knots.reshape((1,) * len(batch) + (-1,))
    ends = tuple(arrays[name][..., None] if name in arrays else None for name in ENDS)
    return Cubic(knots, through(knots, values, ends, kinds), place - len(batch) - 1, extrapolate)


def coefficients_through(
    library: ArrayLibrary,
    solve: Solve,
    knots: Array,
    values: Array,
    ends: tuple[Array | None, ...],
    kinds: tuple[str, str],
) -> tuple[Array, ...]:
    """Return the coefficients of splines through lines of values, with derivatives at the ends."""
    unit = _unit(library, knots)
    h = (knots[..., 1:] - knots[..., :-1]) / unit
    return _coefficients(h, values, _slopes(library, solve, h, unit, values, kinds, ends))


def _unit(library: ArrayLibrary, knots: Array) -> Array:
    """Return the unit of each line of knots: the average length of the pieces."""
    return library.constant((knots[..., -1:] - knots[..., :1]) / (knots.shape[-1] - 1))


def _scaled(library: ArrayLibrary, values: Array, unit: Array, power: int) -> Array:
    """Return values * unit**power; no power of the unit is formed."""
    for _ in range(abs(power)):
        values = library.barrier(values * unit if power > 0 else values / unit)
    return values


class _Row(NamedTuple):
    """A row at an end, and what replaces the row next to it if its own unknown is eliminated.

    The right-hand side is the sum of the differences of the values on the piece at the end and on
    the next one, times `weights`, and of the given derivative times both of `gains`.
    """

    diag: Array
    beyond: Array  # entry of the neighbour
    weights: tuple[Array, Array]
    gains: tuple[Array, Array]
    next_diag: Array | None = None
    next_weights: tuple[Array, Array] | None = None


def _slopes(
    library: ArrayLibrary,
    solve: Solve,
    h: Array,
    unit: Array,
    y: Array,
    kinds: tuple[str, str],
    ends: tuple[Array | None, ...],
) -> Array:
    """Return the slopes at the knots; the rows are those of csrc/include/ps_spline_math.h.

    Lengths h and slopes are in the unit. The right-hand side is made of two products of arrays of
    the batch, which keeps its reverse pass short; the weights are as large as the knots.
    """
    concatenate = library.xp.concatenate
    d = y[..., 1:] - y[..., :-1]
    if kinds[0] == "periodic":
        before, change = (concatenate([a[..., -1:], a[..., :-1]], -1) for a in (h, d))
        rhs = 3 * h / before * change + 3 * before / h * d
        s = solve(h, 2 * (before + h), before, rhs, periodic=True)
        return concatenate([s, s[..., :1]], -1)
    a, b = h[..., :-1], h[..., 1:]
    lower, diag, upper = b, 2 * (a + b), a
    left, right = 3 * b / a, 3 * a / b
    is_parabola = y.shape[-1] == 3 and kinds[0] == kinds[1] == "not-a-knot"
    first = _end_row(library, kinds[0], h[..., :1], h[..., 1:2], unit, -0.5, is_parabola)
    last = _end_row(library, kinds[1], h[..., -1:], h[..., -2:-1], unit, 0.5, is_parabola)
    if first.next_weights is not None:
        lower = concatenate([0 * lower[..., :1], lower[..., 1:]], -1)
        diag = concatenate([first.next_diag, diag[..., 1:]], -1)
        left, right = (
            concatenate([new, old[..., 1:]], -1)
            for new, old in zip(first.next_weights, (left, right), strict=True)
        )
    if last.next_weights is not None:
        upper = concatenate([upper[..., :-1], 0 * upper[..., :1]], -1)
        diag = concatenate([diag[..., :-1], last.next_diag], -1)
        right, left = (
            concatenate([old[..., :-1], new], -1)
            for new, old in zip(last.next_weights, (right, left), strict=True)
        )
    if y.shape[-1] == 2:  # one piece
        rhs = concatenate([first.weights[0], last.weights[0]], -1) * d
    else:
        left = concatenate([first.weights[0], left, last.weights[1]], -1)
        right = concatenate([first.weights[1], right, last.weights[0]], -1)
        rhs = left * concatenate([d[..., :1], d[..., :-1], d[..., -2:-1]], -1)
        rhs = rhs + right * concatenate([d[..., 1:2], d[..., 1:], d[..., -1:]], -1)
    zeros = library.xp.zeros_like(h)  # in all rows but one
    for row, value, is_last in ((first, ends[0], False), (last, ends[1], True)):
        if value is not None:
            term = library.barrier(row.gains[0] * value) * row.gains[1]
            terms = [zeros * term, term] if is_last else [term, zeros * term]
            rhs = rhs + concatenate(terms, -1)
    return solve(
        concatenate([lower, last.beyond], -1),
        concatenate([first.diag, diag, last.diag], -1),
        concatenate([first.beyond, upper], -1),
        rhs,
        periodic=False,
    )


def _end_row(
    library: ArrayLibrary,
    kind: str,
    own: Array,
    other: Array,
    unit: Array,
    half: float,
    is_parabola: bool,
) -> _Row:
    """Return the row of an end.

    `own` and `other` are the lengths of the piece at the end and of the next one, empty if there
    is none; `half` is 1/2 with the sign of the outward direction.
    """
    zero, one = library.xp.zeros_like(own), library.xp.ones_like(own)
    if kind == "slope":
        return _Row(one, zero, (zero, zero), (unit * one, one))
    if kind == "curvature":
        return _Row(2 * own, own, (3 * one, zero), (unit * own, half * unit * own))
    if not other.shape[-1]:
        return _Row(one, zero, (1 / own, zero), (zero, zero))
    if is_parabola:
        return _Row(one, one, (2 / own, zero), (zero, zero))
    both = own + other
    return _Row(
        other,
        both,
        ((own + 2 * both) / both * (other / own), own / both * (own / other)),
        (zero, zero),
        both,
        (other / both * (other / own), (2 * own + 3 * other) / both * (own / other)),
    )


def _coefficients(h: Array, y: Array, s: Array) -> tuple[Array, ...]:
    """Return the coefficients of the powers of t = (x - x_i)/h from values and slopes."""
    d = y[..., 1:] - y[..., :-1]
    first, last = h * s[..., :-1], h * s[..., 1:]
    return y[..., :-1], first, 3 * d - 2 * first - last, first + last - 2 * d


class Form(NamedTuple):
    """What the coefficients of polynomials mean, apart from their number.

    Attributes
    ----------
    power : int
        Power of the lengths, in the unit and of the unit.
    is_sum : bool
        Whether coefficient 0 is not multiplied by the length.
    """

    power: int = 0
    is_sum: bool = False


class Pieces:
    r"""Piecewise polynomials with derivatives in their coefficients, knots and points.

    A class for each library derives from it, sets `_library` and defines `_with`.
    """

    _library: ClassVar[ArrayLibrary]
    _knots: Array
    _coefficients: tuple[Array, ...]
    _axis: int  # negative
    _form: Form
    extrapolate: Extrapolate

    @classmethod
    def _of(
        cls: type[Self],
        knots: Array,
        coefficients: Sequence[Array],
        axis: int,
        extrapolate: Extrapolate,
        form: Form,
    ) -> Self:
        """Return an object with these attributes, which are not checked."""
        found = object.__new__(cls)
        found._set(knots, coefficients, axis, extrapolate, form)
        return found

    def _set(
        self,
        knots: Array,
        coefficients: Sequence[Array],
        axis: int,
        extrapolate: Extrapolate,
        form: Form = Form(),  # noqa: B008
    ) -> None:
        """Set all fields: of new splines, and of those that a transformation builds again."""
        self._knots, self._coefficients = knots, tuple(coefficients)
        self._axis, self.extrapolate, self._form = axis, extrapolate, form

    def _with(self, coefficients: Sequence[Array], extrapolate: Extrapolate, form: Form) -> Pieces:
        """Return polynomials with the knots of these and other coefficients."""
        raise NotImplementedError

    @property
    def axis(self) -> int:
        """int: Axis of the knots in the array of values, at least 0."""
        return self._axis + len(self._batch) + 1

    @property
    def x(self) -> Any:
        """array: The knots, shape (n,), or those of each spline, with n entries along `axis`."""
        if is_shared(self._knots):
            return self._knots.reshape(-1)
        return self._library.move(self._knots, -1, self._axis)

    @property
    def c(self) -> Any:
        """array: Coefficients, shape (k, n - 1, ...), that of the highest power first.

        The other axes are those of the values without `axis`. Coefficients that the dtype cannot
        represent are infinite or 0, as of float32 values of the order of 1 at knots with distances
        of 1e-15.
        """
        library, (power, is_sum) = self._library, self._form
        unit, h = self._lengths()
        found = []
        for q, c in enumerate(self._coefficients):
            length = c if is_sum and q == 0 else _scaled(library, c, h, power - q)
            found.append(_scaled(library, length, unit, power - q))
        return library.move(library.xp.stack(found[::-1], 0), -1, 1)

    @property
    def _batch(self) -> tuple[int, ...]:
        """Shape of the values without `axis`."""
        return tuple(self._coefficients[0].shape[:-1])

    def __repr__(self) -> str:
        shape = list(self._batch)
        shape.insert(self.axis, self._knots.shape[-1])
        kind = type(self)
        return (
            f"<{kind.__name__} of {self._knots.shape[-1]} knots, values {tuple(shape)} "
            f"{self._coefficients[0].dtype}>"
        )

    def __call__(
        self,
        x: Any,
        nu: int = 0,
        extrapolate: Extrapolate | None = None,
        *,
        per_spline: bool = False,
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

        Returns
        -------
        array
            Values. Their shape is that of the values at the knots, with the axes of x in place of
            `axis`, or, with `per_spline`, m in place of n.

        Raises
        ------
        TypeError
            If x is complex or has an unsupported dtype.
        ValueError
            If `nu` is negative, `extrapolate` is unknown, or x does not fit `per_spline`.

        Notes
        -----
        The values are differentiable in x, in the values at the knots, in the knots and in the
        given derivatives at the ends. A knot belongs to the piece that begins there. At points
        that are NaN, or outside the knots with `extrapolate` False, the values are NaN, and all
        derivatives of them are zero, also if the points are fill values of any size or infinite.
        """
        order = index("nu", nu, 0)
        outside = outside_of(self.extrapolate if extrapolate is None else extrapolate)
        points = self._library.points(x, self._knots)
        if per_spline:
            check_points(tuple(points.shape), self._batch, self.axis)
        return self._at(points, order, outside, per_spline)

    def _at(self, points: Array, order: int, outside: str, per_spline: bool) -> Array:
        """Return the derivatives of an order at points that were checked."""
        move, batch, shape = self._library.move, self._batch, tuple(points.shape)
        coefficients, form = self._differentiated(order)
        if per_spline:
            lines = move(points, self._axis, -1)
            return move(self._values(coefficients, form, lines, outside), -1, self._axis)
        lines = points.reshape((1,) * len(batch) + (-1,))
        values = self._values(coefficients, form, lines, outside).reshape(batch + shape)
        return move(
            values,
            tuple(range(len(batch), len(batch) + len(shape))),
            tuple(range(self.axis, self.axis + len(shape))),
        )

    def derivative(self, nu: int = 1) -> Any:
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
        coefficients, form = self._differentiated(order)
        return self._with(coefficients, self.extrapolate, form)

    def antiderivative(self, nu: int = 1) -> Any:
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
        """
        order = integer("nu", nu)
        if order <= 0:
            return self.derivative(-order)
        xp = self._library.xp
        extrapolate = self.extrapolate != "periodic" and self.extrapolate
        coefficients, form = self._coefficients, self._form
        for _ in range(order):
            coefficients, form = self._integrated(coefficients, form)
            _, h = self._lengths()
            parts = _scaled(self._library, sum(coefficients[1:]), h, form.power)
            sums = xp.cumsum(parts, -1)
            constants = xp.concatenate([coefficients[0][..., :1], sums[..., :-1]], -1)
            coefficients = (constants, *coefficients[1:])
        return self._with(coefficients, extrapolate, form)

    def integrate(self, a: Any, b: Any, extrapolate: Extrapolate | None = None) -> Any:
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
            Integrals; their shape is that of the values without `axis`. They are differentiable in
            a and b, too.

        Raises
        ------
        TypeError
            If a or b is not a real number.
        ValueError
            If `extrapolate` is unknown.

        Notes
        -----
        The integral is the sum over all pieces of the integrals over their parts of the interval,
        so that the rounding errors are those of the interval. For many integrals, keep an
        antiderivative.
        """
        outside = outside_of(self.extrapolate if extrapolate is None else extrapolate)
        library, xp, knots = self._library, self._library.xp, self._knots
        first, last = knots[..., :1], knots[..., -1:]
        ends = [self._limit(*limit) for limit in (("a", a), ("b", b))]
        is_inside = [(first <= end) & (end <= last) for end in ends]
        if outside == "nan":  # as for points, in `_values`
            ends = [xp.where(i, end, first) for i, end in zip(is_inside, ends, strict=True)]
        if outside == "periodic":
            turns = [xp.floor((end - first) / (last - first)) for end in ends]
            ends = [end - t * (last - first) for end, t in zip(ends, turns, strict=True)]
        coefficients, form = self._integrated(self._coefficients, self._form)
        unit, h = self._lengths()
        infinite = xp.full_like(first, float("inf"))
        begins = xp.concatenate([-infinite, knots[..., 1:-1]], -1)
        stops = xp.concatenate([knots[..., 1:-1], infinite], -1)

        def primitive(end: Array) -> Array:
            """Return the integrals over the parts of the pieces before a point."""
            inside = xp.minimum(xp.maximum(end, begins), stops)
            t = (inside - knots[..., :-1]) / unit / h
            return _scaled(library, _horner(coefficients, t), h, form.power)

        found = (primitive(ends[1]) - primitive(ends[0])).sum(-1)
        if outside == "periodic":
            whole = _scaled(library, sum(coefficients[1:]), h, form.power).sum(-1)
            found = found + (turns[1] - turns[0])[..., 0] * whole
        found = _scaled(library, found, unit[..., 0], form.power)
        if outside == "nan":
            is_valid = (is_inside[0] & is_inside[1])[..., 0]
            found = xp.where(is_valid, found, float("nan"))
        return found

    def _limit(self, name: str, value: Any) -> Array:
        """Return a limit of an integral as an array without axes."""
        shape = tuple(getattr(value, "shape", ()))
        if shape or isinstance(value, (str, bytes, complex, list, tuple)):
            raise TypeError(
                f"{name} must be a real number, got {short(value)}; for many limits, write "
                "`primitive = spline.antiderivative()`, then primitive(b) - primitive(a)"
            )
        return self._library.points(value, self._knots).reshape(())

    def _lengths(self) -> tuple[Array, Array]:
        """Return the units of the lines of knots and, in these units, the lengths of the pieces."""
        unit = _unit(self._library, self._knots)
        return unit, (self._knots[..., 1:] - self._knots[..., :-1]) / unit

    def _differentiated(self, nu: int) -> tuple[tuple[Array, ...], Form]:
        """Return the coefficients of the derivative of order nu."""
        if nu == 0:
            return self._coefficients, self._form
        if nu >= len(self._coefficients):
            return (self._library.xp.zeros_like(self._coefficients[0]),), Form()
        found = tuple(perm(q, nu) * c for q, c in enumerate(self._coefficients) if q >= nu)
        return found, Form(self._form.power - nu)

    def _integrated(
        self, coefficients: Sequence[Array], form: Form
    ) -> tuple[tuple[Array, ...], Form]:
        """Return the coefficients of the antiderivative that vanishes where each piece begins."""
        zeros = self._library.xp.zeros_like(coefficients[0])
        first, *rest = coefficients
        if form.is_sum:
            _, h = self._lengths()
            first = _scaled(self._library, first, h, -form.power)
        found = (zeros, *(c / (q + 1) for q, c in enumerate((first, *rest))))
        return found, Form(form.power + 1, is_sum=True)

    def _values(
        self, coefficients: Sequence[Array], form: Form, points: Array, outside: str
    ) -> Array:
        """Return the values at points, which are lines and broadcast.

        A point without a value is replaced before the polynomial: its derivative is then zero times
        a finite number.
        """
        library, xp, knots = self._library, self._library.xp, self._knots
        first, last = knots[..., :1], knots[..., -1:]
        has_value = points == points
        if outside == "nan":
            has_value = (first <= points) & (points <= last)
        points = xp.where(has_value, points, first)
        if outside == "periodic":
            is_inside = (first <= points) & (points < last)
            shifted = first + xp.remainder(points - first, last - first)
            points = xp.where(is_inside, points, shifted)
        count = library.locate(knots, points)
        piece = xp.clip(count - 1, 0, knots.shape[-1] - 2)
        unit, h = self._lengths()
        h = library.take(h, piece)
        t = (points - library.take(knots, piece)) / unit / h
        taken = [library.take(c, piece) for c in coefficients]
        if form.is_sum:
            zeros = xp.zeros_like(taken[0])
            values = taken[0] + _scaled(library, _horner([zeros, *taken[1:]], t), h, form.power)
        else:
            values = _scaled(library, _horner(taken, t), h, form.power)
        values = _scaled(library, values, unit, form.power)
        return xp.where(has_value, values, float("nan"))


def _horner(coefficients: Sequence[Array], t: Array) -> Array:
    """Return sum_q c_q t^q."""
    *rest, value = coefficients
    for coefficient in reversed(rest):
        value = coefficient + t * value
    return value
