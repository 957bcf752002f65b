"""CubicSpline has the values of SciPy, its conventions and its errors."""

import pickle
import re

import numpy as np
import pytest
from spline_cases import CONDITIONS, NAMED, batch, condition, conditions_at, knots, near, shifted

import pysolvers
from pysolvers import CubicSpline
from pysolvers.spline import PiecewisePolynomial

interpolate = pytest.importorskip("scipy.interpolate")

# The axis of the knots first, in the middle and last; an inner axis that is short and one that is
# longer than a block of threads.
SHAPES = [((), 0), ((3,), 0), ((3,), 1), ((2, 5), 1), ((150,), 0), ((9, 2), 2), ((2, 140), 1)]


def some_shapes(n, bc):
    """Return two or three of SHAPES, others for each number of knots and each condition."""
    return SHAPES[(n + CONDITIONS.index(bc)) % 3 :: 3]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("bc", CONDITIONS)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 16, 600])
def test_values_and_derivatives_are_those_of_scipy(backend, rng, n, bc, dtype):
    for rest, axis in some_shapes(n, bc):
        x = knots(rng, n)
        y = batch(rng, n, rest, axis, dtype, periodic=bc == "periodic")
        ends = condition(bc, rng, rest)
        points = rng.uniform(x[0] - 0.5, x[-1] + 0.5, (3, 4))
        expected = interpolate.CubicSpline(x, y, axis, ends)

        spline = CubicSpline(x, y, axis, ends, device=backend)

        assert spline(points).dtype == spline.dtype == expected(points).dtype
        assert (spline.axis, spline.extrapolate) == (expected.axis, expected.extrapolate)
        for nu in range(6):
            near(spline(points, nu), expected(points, nu), x, y, nu)
        near(spline(x, 1), expected(x, 1), x, y, 1)


@pytest.mark.each_value
@pytest.mark.parametrize("bc", CONDITIONS)
@pytest.mark.parametrize("n", [2, 3, 7])
def test_coefficients_derivatives_and_integrals_are_those_of_scipy(backend, rng, n, bc):
    for rest, axis in some_shapes(n, bc):
        x = knots(rng, n)
        y = batch(rng, n, rest, axis, periodic=bc == "periodic")
        ends = condition(bc, rng, rest)
        expected = interpolate.CubicSpline(x, y, axis, ends)
        points = np.concatenate([x, rng.uniform(x[0] - 0.2, x[-1] + 0.2, 5)])

        spline = CubicSpline(x, y, axis, ends, device=backend)

        np.testing.assert_array_equal(spline.x, x)
        for power, (own, theirs) in enumerate(zip(spline.c[::-1], expected.c[::-1], strict=True)):
            near(own, theirs, x, y, power)
        for nu in (-4, -2, -1, 1, 2, 3, 4):
            own, theirs = spline.derivative(nu), expected.derivative(nu)
            assert isinstance(own, PiecewisePolynomial)
            assert (own.c.shape, own.extrapolate) == (theirs.c.shape, theirs.extrapolate)
            if own.extrapolate == "periodic":
                places, option = shifted(points, x), True
            else:
                places, option = points, None
            near(own(points), theirs(places, 0, option), x, y, max(nu, 0))
            near(own(points, 1), theirs(places, 1, option), x, y, max(nu + 1, 0))
        near(spline.antiderivative(2)(points), expected.antiderivative(2)(points), x, y)
        twice = spline.antiderivative(3).derivative(2)
        near(twice(points), expected.antiderivative()(points), x, y)
        for limits in ((x[0], x[-1]), (x[0] + 0.1, x[-1] - 0.05), (2.5, -3.0), (-40.0, 61.0)):
            if bc == "periodic" or limits[1] < 60:
                near(spline.integrate(*limits), expected.integrate(*limits), x, 100 * y)
        inside = x[0] + 0.1, x[-1] - 0.1
        near(spline.integrate(*inside, False), expected.integrate(*inside, False), x, y)
        assert np.isnan(spline.integrate(x[0] - 0.1, x[-1], extrapolate=False)).all()


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("bc", CONDITIONS)
def test_single_precision_is_kept(backend, rng, bc, dtype):
    x = knots(rng, 40).astype(np.float32)
    y = batch(rng, 40, (6,), 0, dtype, periodic=bc == "periodic")
    ends = condition(bc, rng, 6)
    if bc in ("slopes", "curvatures"):
        ends = tuple((order, value.astype(np.float32)) for order, value in ends)
    elif "mixed" in bc:
        ends = tuple(e if isinstance(e, str) else (e[0], np.float32(e[1])) for e in ends)
    expected = interpolate.CubicSpline(x, y, 0, ends)
    points = np.linspace(x[0], x[-1], 77, dtype=np.float32)

    spline = CubicSpline(x, y, 0, ends, device=backend)

    assert spline.dtype == spline(points).dtype == spline.c.dtype == dtype
    for nu in range(4):
        near(spline(points, nu), expected(points, nu), x, y, nu, eps=1e-6)
    integral = spline.integrate(0.0, 1.0)
    assert integral.dtype == dtype
    near(integral, expected.integrate(0.0, 1.0), x, y, eps=1e-6)


def test_precision_promotes_as_in_numpy(backend, rng):
    x, y = knots(rng, 9), rng.standard_normal(9)

    assert CubicSpline(x, y.astype(np.float32), device=backend).dtype == np.float64
    assert CubicSpline(x.astype(np.float32), y, device=backend).dtype == np.float64
    assert CubicSpline(range(9), range(9), device=backend).dtype == np.float64
    ends = ((1, 1j), "natural")
    assert CubicSpline(x, y, 0, ends, device=backend).dtype == np.complex128
    expected = interpolate.CubicSpline(x, y, 0, ends)
    near(CubicSpline(x, y, 0, ends, device=backend)(x + 0.1), expected(x + 0.1), x, y)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("bc", CONDITIONS)
def test_splines_have_knots_and_points_of_their_own(backend, rng, bc, dtype):
    many = 130 if bc == "periodic" else 3  # 260 splines are more than a tile of 256
    for rest, axis in ((5,), 0), ((2, 3), 1), ((2, many), 1):
        n, m = 21, 8
        y = batch(rng, n, rest, axis, dtype, periodic=bc == "periodic")
        for alone in ((), (-1,)):  # x can be shared along some axes of the batch
            x = np.stack([knots(rng, n) for _ in range(int(np.prod(rest)))], 1).reshape(n, *rest)
            points = rng.uniform(x.min() - 0.3, x.max() + 0.3, (m, *rest))
            if alone:
                x = x[..., :1]
            x, points = np.moveaxis(x, 0, axis), np.moveaxis(points, 0, axis)
            ends = condition(bc, rng, rest)

            spline = CubicSpline(x, y, axis, ends, device=backend)
            own = [spline(points, nu, per_spline=True) for nu in range(4)]
            shared = spline(points.ravel()[:3])
            primitive = spline.antiderivative()(points, per_spline=True, extrapolate=True)

            lines = [np.moveaxis(np.broadcast_to(x, y.shape), axis, -1), np.moveaxis(y, axis, -1)]
            every = list(np.ndindex(*rest))
            for index in every[:: 1 if len(every) < 10 else 9] + every[-6:]:
                line = (*index[:axis], slice(None), *index[axis:])
                near_x, near_y = lines[0][index], lines[1][index]
                chosen = conditions_at(ends, index)
                expected = interpolate.CubicSpline(near_x, near_y, bc_type=chosen)
                for nu in range(4):
                    near(own[nu][line], expected(points[line], nu), near_x, near_y, nu)
                near(shared[line], expected(points.ravel()[:3]), near_x, near_y)
                integral = expected.antiderivative()(points[line], extrapolate=True)
                near(primitive[line], integral, near_x, near_y)
            wide = x.ravel() if x.size == n else np.broadcast_to(x, y.shape)
            np.testing.assert_array_equal(spline.x, wide)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bc", ["periodic", "natural"])
def test_a_knot_belongs_to_the_piece_that_begins_there(backend, rng, bc, dtype):
    for _ in range(40):
        x = (knots(rng, 30) * rng.uniform(0.1, 9)).astype(dtype)
        y = batch(rng, 30, (2,), 0, dtype, periodic=True)

        spline = CubicSpline(x, y, 0, bc, "periodic", device=backend)

        c = spline.c[0] * dtype(6)
        most = 1e-5 * np.abs(c).max()  # pieces differ by more
        np.testing.assert_allclose(spline(x[:-1], 3), c, rtol=0, atol=most)
        np.testing.assert_allclose(spline(x[-1], 3), c[0], rtol=0, atol=most)
        np.testing.assert_allclose(spline.derivative(3)(x[:-1]), c, rtol=0, atol=most)


def test_the_integral_to_nan_is_nan(backend, rng):
    x, y = knots(rng, 9), batch(rng, 9, (3,), 0, periodic=True)
    for bc in ("natural", "periodic"):
        spline = CubicSpline(x, y, 0, bc, device=backend)
        for option in (True, False, "periodic"):
            for limits in ((0.1, np.nan), (np.nan, 0.1), (np.nan, np.nan)):
                found = spline.integrate(*limits, option)
                assert found.shape == (3,) and np.isnan(found).all()


def test_limits_of_integrals_are_real_numbers(backend, rng):
    x, y = knots(rng, 9), rng.standard_normal(9)
    spline = CubicSpline(x, y, device=backend)
    expected = spline.integrate(0.25, 1.0)
    for bad in ("a", "1", 1j, np.complex64(1j), [0.1], np.array([0.1, 0.2]), None):
        with pytest.raises(TypeError, match=r"a must be a real number.*antiderivative"):
            spline.integrate(bad, 1.0)
        with pytest.raises(TypeError, match="b must be a real number"):
            spline.integrate(0.0, bad)
    for right in (0.25, np.float32(0.25), np.array(0.25)):
        assert spline.integrate(right, True) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_the_ends_of_periodic_values_are_compared_with_their_size(backend, dtype):
    dtype = np.dtype(dtype)
    eps, real = np.finfo(dtype).eps, np.finfo(dtype).dtype
    x = np.linspace(0, 2 * np.pi, 33)
    factor = 1 + 1j if dtype.kind == "c" else 1
    largest = 1e30 if eps > 1e-10 else 1e290
    for size in (1 / largest, 1e-16, 1e-7, 1.0, 10.0, 6.4e6, largest):
        for ends in (0.0, 1.0):
            for gap, is_closed in ((0, 1), (2 * eps, 1), (-6 * eps, 1), (40 * eps, 0), (-1.0, 0)):
                y = np.stack([np.sin(x) + ends, np.cos(x)], 1)
                y[-1] = y[0]
                y[-1, 0] += gap
                y = (size * factor * y).astype(dtype)
                if is_closed:
                    CubicSpline(x.astype(real), y, 0, "periodic", device=backend)
                else:
                    with pytest.raises(ValueError, match="must be identical"):
                        CubicSpline(x.astype(real), y, 0, "periodic", device=backend)
        ramp = (size * factor * np.linspace(1, 2, 33)).astype(dtype)
        with pytest.raises(ValueError, match="must be identical"):
            CubicSpline(x.astype(real), ramp, 0, "periodic", device=backend)
    # Each series has a size of its own; real and imaginary part have one.
    y = np.stack([np.sin(x), 1e-9 * np.sin(x)], 1).astype(dtype)
    y[-1] = y[0]
    if dtype.kind == "c":
        y.imag = 0
        y.imag[-1, 0] = eps
        CubicSpline(x.astype(real), y, 0, "periodic", device=backend)
    y[-1, 1] += real.type(1e-12 + 1e-6 * eps)
    with pytest.raises(ValueError, match="must be identical"):
        CubicSpline(x.astype(real), y, 0, "periodic", device=backend)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_value_that_is_not_finite_is_found_in_each_lane(backend, rng, dtype):
    # Runs of vectors and what is left of a run, in the first, an inner and the last row.
    for width in (37, 19, 3):
        for row, column in np.ndindex(3, width):
            y = rng.standard_normal((5, width)).astype(dtype)
            y[(0, 2, 4)[row], column] = (np.nan, np.inf)[column % 2]
            with pytest.raises(ValueError, match="`y` must contain only finite"):
                CubicSpline(np.arange(5, dtype=dtype), y, device=backend)


@pytest.mark.parametrize("own", [False, True])
def test_the_order_of_knots_is_checked_at_each_pair(backend, own):
    for count in (2, 5, 600):
        pairs = range(count - 1) if count < 600 else (0, 1, 511, 512, 598)
        for pair in pairs:
            for step in (0.0, -0.5):
                lengths = np.ones(count - 1)
                lengths[pair] = step
                x = np.concatenate([[0.0], np.cumsum(lengths)])
                x = np.stack([np.arange(float(count)), x], 1) if own else x
                with pytest.raises(ValueError, match="strictly increasing"):
                    CubicSpline(x, np.zeros((count, 2)), device=backend)


def test_periodic_integrals_need_shared_knots(backend, rng):
    x = np.stack([knots(rng, 5), knots(rng, 5)])
    y = batch(rng, 5, (2,), 1, periodic=True)
    spline = CubicSpline(x, y, 1, "periodic", device=backend)

    with pytest.raises(ValueError, match="knots that all splines share"):
        spline.integrate(0.0, 1.0)
    with pytest.raises(ValueError, match="knots that all splines share"):
        spline.to_scipy()
    here, there = spline(0.3), spline.antiderivative()
    own = CubicSpline(x, y, 1, "periodic", extrapolate=True, device=backend).integrate(0.3, 0.9)
    near(own, there(0.9) - there(0.3), x, y)
    assert here.shape == own.shape


@pytest.mark.parametrize("bc", ["natural", "periodic"])
def test_integrals_over_short_intervals_are_accurate(backend, rng, bc):
    x = np.arange(4001, dtype=np.float32)
    y = (1000 + rng.random((4001, 2))).astype(np.float32)
    y[-1] = y[0]
    expected = interpolate.CubicSpline(x, y, 0, bc)

    spline = CubicSpline(x, y, 0, bc, device=backend)

    for limits in ((3990.25, 3991.5), (3000.0, 2999.5), (0.25, 0.75), (3999.5, 4000.0)):
        own, theirs = spline.integrate(*limits), expected.integrate(*limits)
        np.testing.assert_allclose(own, theirs, rtol=2e-6)  # the integral over all is 4e6


@pytest.mark.parametrize("extrapolate", [True, False, "periodic", None])
@pytest.mark.parametrize("bc", ["natural", "periodic"])
def test_points_outside_the_knots(backend, rng, bc, extrapolate):
    x = knots(rng, 12)
    y = batch(rng, 12, (3,), 0, periodic=bc == "periodic")
    span = x[-1] - x[0]
    points = np.concatenate([x, x + span, x - 3 * span, [np.nan, x[0] - 1e-9, x[-1] + 1e-9]])
    expected = interpolate.CubicSpline(x, y, 0, bc, extrapolate)

    spline = CubicSpline(x, y, 0, bc, extrapolate, device=backend)

    assert spline.extrapolate == expected.extrapolate
    # At the ends of the period a rounding error decides which piece has the third derivative.
    for nu in range(3):
        for option in (None, True, False, "periodic"):
            own, theirs = spline(points, nu, option), expected(points, nu, option)
            chosen = expected.extrapolate if option is None else option
            if chosen == "periodic":
                if bc != "periodic" and nu >= 0:
                    inside = np.abs((points - x[0]) % span) > 1e-9 * span
                    inside &= np.abs((points - x[0]) % span - span) > 1e-9 * span
                    own, theirs = own[inside], theirs[inside]
                near(own, theirs, x, y, nu, eps=1e-12)
            else:
                near(own, theirs, x, y, nu)
            part = spline.derivative()(points, nu, option)
            if chosen != "periodic":
                near(part, expected.derivative()(points, nu, option), x, y, nu + 1)


@pytest.mark.parametrize("ratio", [1.0, 1.05, 3.0])
def test_the_piece_of_a_point_is_found_among_any_knots(backend, rng, ratio):
    n = 400 if ratio < 2 else 60
    x = np.cumsum(ratio ** np.arange(n, dtype=np.float64))
    x = np.concatenate([-x[::-1], x]) if ratio > 1 else x
    y = rng.standard_normal(len(x))
    points = np.concatenate([x, np.nextafter(x, -np.inf), rng.permutation(x) * 1.01])

    pieces = CubicSpline(x, y, device=backend).derivative(3)

    number = np.clip(np.searchsorted(x, points, side="right") - 1, 0, len(x) - 2)
    np.testing.assert_array_equal(pieces(points), pieces.c[0, number])
    with np.errstate(invalid="ignore"):
        assert np.isfinite(CubicSpline(x, y, device=backend)(points)).all()


@pytest.mark.parametrize("bc", NAMED)
def test_one_long_spline(backend, rng, bc):
    n = 140_001  # the systems are divided into chunks
    x = np.cumsum(rng.uniform(0.2, 1, n))
    y = batch(rng, n, (), 0, periodic=bc == "periodic")
    points = rng.uniform(x[0], x[-1], 1000)
    expected = interpolate.CubicSpline(x, y, 0, bc)

    spline = CubicSpline(x, y, 0, bc, device=backend)

    for nu in range(4):
        near(spline(points, nu), expected(points, nu), x, y, nu)
    own, theirs = spline.antiderivative()(points), expected.antiderivative()(points)
    np.testing.assert_allclose(own, theirs, rtol=0, atol=1e-12 * np.abs(theirs).max())


@pytest.mark.each_value
@pytest.mark.parametrize("nu", range(4))
@pytest.mark.parametrize("bc", ["not-a-knot", "periodic", "exact slopes", "exact curvatures"])
def test_order_of_convergence(backend, bc, nu):
    def sine(x, order=0):
        return np.sin(2 * np.pi * x + 0.3 + order * np.pi / 2) * (2 * np.pi) ** order

    errors = []
    for n in (40, 80, 160):
        t = np.linspace(0, 1, n + 1)
        x = t + 0.1 * t * (1 - t)
        y = sine(x)
        ends = bc
        if bc == "periodic":
            y[-1] = y[0]
        elif bc != "not-a-knot":
            order = 1 if bc == "exact slopes" else 2
            ends = ((order, sine(x[0], order)), (order, sine(x[-1], order)))
        points = np.linspace(0, 1, 7 * n)
        errors.append(np.abs(CubicSpline(x, y, 0, ends, device=backend)(points, nu)
                             - sine(points, nu)).max())  # fmt: skip

    rates = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (rates > 4 - nu - 0.3).all() and (rates < 4 - nu + 1.1).all()


@pytest.mark.parametrize("bc", ["not-a-knot", "slopes", "curvatures"])
def test_cubics_are_reproduced(backend, rng, bc):
    cubic = np.polynomial.Polynomial([1.0, -2.0, 0.5, 3.0])
    x = knots(rng, 11)
    order = {"slopes": 1, "curvatures": 2}.get(bc)
    ends = bc
    if order:
        ends = tuple((order, cubic.deriv(order)(x[k])) for k in (0, -1))

    spline = CubicSpline(x, cubic(x), 0, ends, device=backend)

    points = rng.uniform(x[0] - 1, x[-1] + 1, 50)
    np.testing.assert_allclose(spline(points), cubic(points), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(
        spline.integrate(-1.0, 2.0), cubic.integ()(2.0) - cubic.integ()(-1.0), rtol=1e-12
    )
    np.testing.assert_allclose(spline(x, 2), cubic.deriv(2)(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "view",
    [
        np.asfortranarray,
        lambda a: a[::-1],
        lambda a: a[:, ::-1, ::2],
        lambda a: a.swapaxes(0, 2),
        lambda a: np.broadcast_to(a[:1], a.shape),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_any_strides(backend, rng, view, dtype):
    y = view(batch(rng, 12, (12, 12), 0, dtype))
    before = y.copy()
    x = np.repeat(knots(rng, 12), 2)[::2].astype(dtype).real
    points = knots(rng, 30)[::-3].astype(dtype).real
    for axis in range(3):
        n = y.shape[axis]
        spline = CubicSpline(x[:n], y, axis, device=backend)
        expected = CubicSpline(x[:n].copy(), y.copy(), axis, device=backend)

        np.testing.assert_array_equal(spline(points), expected(points.copy()))
        np.testing.assert_array_equal(spline(points.reshape(2, -1).T).shape[axis], 5)
        np.testing.assert_array_equal(y, before)


def test_any_alignment_and_byte_order(backend, rng):
    x, y, points = knots(rng, 9), rng.standard_normal((9, 2)), rng.uniform(0, 1, 5)
    expected = CubicSpline(x, y, device=backend)(points)

    def packed(values):
        """Return a view whose elements are not aligned."""
        table = np.zeros(values.shape, np.dtype([("gap", "u1"), ("own", values.dtype)]))
        table["own"] = values
        return table["own"]

    for change in (packed, lambda a: a.astype(">f8")):
        spline = CubicSpline(change(x), change(y), device=backend)
        np.testing.assert_array_equal(spline(change(points)), expected)
    whole = CubicSpline([0, 1, 2], [0, 1, 8], device=backend)
    assert whole(2) == 8 and whole(True) == 1


def test_the_spline_keeps_copies(backend, rng):
    x, y = knots(rng, 8), rng.standard_normal((8, 2))
    spline = CubicSpline(x, y, device=backend)
    points = np.array(0.1)
    before = spline(points)

    x[:] = 0
    y[:] = 0

    np.testing.assert_array_equal(spline(points), before)
    assert spline(0.1).shape == (2,) and spline([[0.1]]).shape == (1, 1, 2)
    assert isinstance(CubicSpline([0, 1, 2], [0, 1, 4])(0.5), np.ndarray)


def test_nothing_to_compute(backend, rng):
    x = knots(rng, 5)
    empty = CubicSpline(x, np.zeros((5, 0, 3)), device=backend)

    assert empty([0.1, 0.2]).shape == (2, 0, 3)
    assert empty.c.shape == (4, 4, 0, 3)
    assert empty.derivative()(0.1).shape == empty.integrate(0, 1).shape == (0, 3)
    spline = CubicSpline(x, rng.standard_normal((5, 3)), device=backend)
    assert spline(np.zeros((0, 2))).shape == (0, 2, 3)
    assert spline(np.zeros((0, 3)), per_spline=True).shape == (0, 3)


BAD = {
    "complex x": (([0, 1j], [0, 1]), {}),
    "2-d x": ((np.zeros((2, 2)), np.zeros(2)), {}),
    "0-d x": ((1.0, np.zeros(2)), {}),
    "one knot": (([0.0], [1.0]), {}),
    "lengths": (([0, 1, 2], [0, 1]), {}),
    "x not finite": (([0, np.nan, 2], [0, 1, 2]), {}),
    "y not finite": (([0, 1, 2], [0, np.inf, 2]), {}),
    "equal knots": (([0, 1, 1], [0, 1, 2]), {}),
    "decreasing": (([0, 2, 1], [0, 1, 2]), {}),
    "open period": (([0, 1, 2], [0, 1, 2]), {"bc_type": "periodic"}),
    "one end": (([0, 1, 2], [0, 1, 2]), {"bc_type": ("natural",)}),
    "half periodic": (([0, 1, 2], [0, 1, 0]), {"bc_type": ("periodic", "natural")}),
    "unknown": (([0, 1, 2], [0, 1, 0]), {"bc_type": "slope"}),
    "no pair": (([0, 1, 2], [0, 1, 0]), {"bc_type": (1, "natural")}),
    "order": (([0, 1, 2], [0, 1, 0]), {"bc_type": ((3, 0.0), "natural")}),
    "slope that is NaN": (([0, 1, 2], [0, 1, 0]), {"bc_type": ((1, np.nan), "natural")}),
    "infinite curvature": (
        ([0, 1, 2], np.ones((3, 2))),
        {"bc_type": ("natural", (2, np.array([0.0, np.inf])))},
    ),
    "shape of the end": (([0, 1, 2], np.zeros((3, 2))), {"bc_type": ((1, 0.0), "natural")}),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_those_of_scipy(backend, name):
    args, options = BAD[name]
    with pytest.raises(ValueError) as theirs:
        interpolate.CubicSpline(*args, **options)

    with pytest.raises(ValueError) as own:
        CubicSpline(*args, **options, device=backend)

    def words(error):
        return set(re.findall(r"[a-z]{4,}", str(error.value).lower()))

    assert len(words(own) & words(theirs)) >= min(3, len(words(theirs)))


def test_other_bad_arguments(backend, rng):
    x, y = knots(rng, 6), rng.standard_normal((6, 2))
    spline = CubicSpline(x, y, device=backend)

    for call, kind, text in (
        (lambda: CubicSpline(x, y, 2), np.exceptions.AxisError, "axis must be in -2 .. 1"),
        (lambda: CubicSpline(x, y, 0.0), TypeError, "axis must be an int"),
        (lambda: CubicSpline(x, y, extrapolate="no"), ValueError, "'periodic'"),
        (lambda: CubicSpline(["a", "b"], [0, 1]), TypeError, "x: need float32"),
        (lambda: CubicSpline(np.tile(x, (6, 3, 1)), y), ValueError, "2 axes"),
        (lambda: CubicSpline(x[:, None] + np.zeros(3), y), ValueError, "does not broadcast"),
        (lambda: CubicSpline(x, y, threads=0), ValueError, "threads"),
        (lambda: spline(0.1, -1), ValueError, "nu must be at least 0"),
        (lambda: spline(0.1j), TypeError, "real values"),
        (lambda: spline(0.1, 0, "no"), ValueError, "'periodic'"),
        (lambda: spline(np.zeros(3), per_spline=True), ValueError, "per_spline"),
        (lambda: spline(np.zeros((4, 3)), per_spline=True), ValueError, "per_spline"),
        (lambda: spline.antiderivative(9), ValueError, "at most 8"),
        (lambda: spline.derivative(0.5), TypeError, "nu must be an int"),
    ):
        with pytest.raises(kind, match=re.escape(text)):
            call()
    assert spline.antiderivative(8).c.shape == (12, 5, 2)
    assert not spline(0.1, 10**12).any() and not spline.derivative(10**12).c.any()


@pytest.mark.parametrize("values", [[0.0, np.nan], [0.0, np.inf]])
def test_given_derivatives_are_finite(backend, rng, values):
    x, y = knots(rng, 700), rng.standard_normal((700, 2))
    for bc_type in (((1, values), "natural"), ("not-a-knot", (2, np.array(values)))):
        with pytest.raises(ValueError, match="finite"):
            CubicSpline(x, y, 0, bc_type, device=backend)


def test_slopes_that_overflow_are_refused():
    x = np.arange(6.0)
    with pytest.raises(ValueError, match=r"slopes .* finite.* distances .* scale x and y"):
        CubicSpline(x, 1e308 * (-1) ** x)


@pytest.mark.parametrize("scale", [2.0**-600, 2.0**600])
@pytest.mark.parametrize("bc", NAMED)
def test_knots_that_are_near_or_far(scale, bc):
    x, y = np.arange(6.0), np.sin(np.pi * np.arange(6.0) / 5) ** 2
    y[-1] = y[0]
    points = np.linspace(0, 5, 23)
    expected = interpolate.CubicSpline(x, y, bc_type=bc)(points)
    found = CubicSpline(scale * x, y, 0, bc)(scale * points)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_knots_of_each_spline_are_checked(backend, rng):
    x = np.stack([knots(rng, 600) for _ in range(300)], 1)
    y = rng.standard_normal(x.shape)
    CubicSpline(x, y, device=backend)
    for value, text in ((x[-1, 17], "increasing"), (np.nan, "finite")):
        bad = x.copy()
        bad[-2, 17] = value
        with pytest.raises(ValueError, match=text):
            CubicSpline(bad, y, device=backend)
    bad = y.copy()
    bad[-1, -1] = np.nan
    with pytest.raises(ValueError, match="`y` must contain only finite"):
        CubicSpline(x, bad, device=backend)
    y[-1] = y[0]
    y[-1, 5] += 1e-9
    with pytest.raises(ValueError, match="must be identical"):
        CubicSpline(x, y, 0, "periodic", device=backend)


@pytest.mark.parametrize("axis", [0, 1])
def test_same_bits_for_any_number_of_threads(rng, axis):
    x, y = knots(rng, 1300), batch(rng, 1300, (700,), axis)
    points = np.sort(rng.uniform(x[0], x[-1], 1500))
    one, three = (CubicSpline(x, y, axis, threads=n) for n in (1, 3))

    np.testing.assert_array_equal(one(points), three(points))
    np.testing.assert_array_equal(one.c, three.c)
    np.testing.assert_array_equal(one.integrate(0, 1), three.integrate(0, 1))


def test_a_spline_is_pickled_and_shown(rng):
    x, y = knots(rng, 7), batch(rng, 7, (3,), 1)
    spline = CubicSpline(x, y, 1, "natural")
    repeated = pickle.loads(pickle.dumps(spline))

    np.testing.assert_array_equal(repeated([0.1, 0.3]), spline([0.1, 0.3]))
    assert repr(spline) == "<CubicSpline of 7 knots, values (3, 7) float64, device cpu>"
    assert "CubicSpline" in spline._repr_html_()
    assert isinstance(repeated, pysolvers.CubicSpline)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_a_copy_for_scipy(backend, rng, dtype):
    x, y = knots(rng, 9).astype(np.float32), batch(rng, 9, (2, 3), 1, dtype)
    spline = CubicSpline(x, y, 1, device=backend)
    points = np.linspace(x[0], x[-1], 13)

    for own in (spline, spline.antiderivative()):
        copy = own.to_scipy()
        assert isinstance(copy, interpolate.PPoly)
        near(own(points), copy(points), x, y, eps=np.finfo(dtype).eps * 10)
