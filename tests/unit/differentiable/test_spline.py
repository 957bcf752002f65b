"""`CubicSpline` of JAX and PyTorch: the values of SciPy, derivatives of all arguments, batches."""

import re

import numpy as np
import pytest
from array_libraries import IGNORED, check_derivatives, converted
from covering import slow
from spline_cases import CONDITIONS, OwnKnots, batch, condition, condition_with, knots, near

interpolate = pytest.importorskip("scipy.interpolate")

pytestmark = IGNORED


@pytest.fixture
def make(differentiable):
    """Return a spline of arrays of the library, from arrays of NumPy."""

    def spline(x, y, axis=0, bc_type="not-a-knot", extrapolate=None):
        x, y = (converted(differentiable, a) for a in (x, y))
        ends = converted(differentiable, bc_type)
        return differentiable.functions.CubicSpline(x, y, axis, ends, extrapolate)

    return spline


@pytest.mark.parametrize(  # names of conditions with values stand for those, in one function
    "bc", [slow(bc) if bc in ("natural", "slopes", "named") else bc for bc in CONDITIONS]
)
def test_values_and_coefficients_are_those_of_scipy(differentiable, rng, bc):
    spline_of = differentiable.functions.CubicSpline
    sizes = [(16, (3,), 1, np.complex128)]
    if bc in ("not-a-knot", "periodic"):  # of which few knots are cases of their own
        sizes += [(2, (), 0, np.float64), (3, (4,), 0, np.float64), (4, (2, 3), 1, np.float64)]
    for n, rest, axis, dtype in sizes:
        # The coefficients are compared; the derivatives of a piece depend on nothing else.
        orders = (0,) if n == 16 and bc != "not-a-knot" else (0, 1, 2, 3, 4)[:: 1 if n == 16 else 2]
        x = knots(rng, n)
        y = batch(rng, n, rest, axis, dtype, periodic=bc == "periodic")
        ends = condition(bc, rng, rest)
        points = rng.uniform(x[0] - 0.5, x[-1] + 0.5, (3, 4))
        expected = interpolate.CubicSpline(x, y, axis, ends)
        there = [converted(differentiable, a) for a in (x, y, ends, points)]
        made = []

        def found(x, y, points, axis=axis, ends=there[2], made=made, orders=orders):
            spline = spline_of(x, y, axis, ends)
            made.append((spline.axis, spline.extrapolate))
            return spline.c, spline.x, [spline(points, nu) for nu in orders]

        c, same, values = differentiable.jit(found)(there[0], there[1], there[3])

        assert made[0] == (expected.axis, expected.extrapolate)
        assert isinstance(c, differentiable.kind) and differentiable.dtype(c) == expected.c.dtype
        np.testing.assert_array_equal(differentiable.get(same), x)
        for nu, own in zip(orders, values, strict=True):
            near(differentiable.get(own), expected(points, nu), x, y, nu)
        c = differentiable.get(c)
        for power, (own, theirs) in enumerate(zip(c[::-1], expected.c[::-1], strict=True)):
            near(own, theirs, x, y, power)


@pytest.mark.parametrize("bc", [slow("not-a-knot"), "periodic"])
def test_integrals_and_derivatives_are_those_of_scipy(differentiable, make, rng, bc):
    x = knots(rng, 7)
    y = batch(rng, 7, (2, 3), 1, periodic=bc == "periodic")
    inside = rng.uniform(x[0], x[-1], 4)
    orders, limits = (-2, -1, 1, 4), np.array([(-0.7, 0.9), (2.5, -3.0), (-40.0, 61.0)])
    limits = limits if bc == "periodic" else limits[:2]
    expected = interpolate.CubicSpline(x, y, 1, bc)
    spline_of = differentiable.functions.CubicSpline

    @differentiable.jit
    def found(x, y, points):
        spline = spline_of(x, y, 1, bc)
        others = [spline.derivative(nu) for nu in orders]
        return (
            [other.c for other in others],
            [other(points) for other in others],
            [spline.integrate(*pair) for pair in limits],
            spline.integrate(0.1, x[-1] + 1e-9, False),
        )

    coefficients, values, integrals, outside = found(*converted(differentiable, (x, y, inside)))

    for c, own, nu in zip(coefficients, values, orders, strict=True):
        assert c.shape == expected.derivative(nu).c.shape
        near(differentiable.get(own), expected.derivative(nu)(inside), x, y, max(nu, 0))
    for own, pair in zip(integrals, limits, strict=True):
        near(differentiable.get(own), expected.integrate(*pair), x, 100 * y)
    assert np.isnan(differentiable.get(outside)).all()
    other = make(x, y, 1, bc).derivative()
    assert type(other) is differentiable.functions.PiecewisePolynomial
    assert other.extrapolate == expected.derivative().extrapolate


@pytest.mark.parametrize(("alone", "bc"), [(False, "mixed"), slow(True, "periodic")])
def test_splines_have_knots_and_points_of_their_own(everywhere, rng, bc, alone):
    given = OwnKnots(rng, bc, is_shared=alone)
    x, y, points, ends = (
        converted(everywhere, a) for a in (given.x, given.y, given.points, given.bc_type)
    )
    few = everywhere.array(given.points.ravel()[:3])

    def found(x, y):
        spline = everywhere.functions.CubicSpline(x, y, given.axis, ends)
        own = [spline(points, nu, per_spline=True) for nu in range(4)]
        return spline.x, spline(few), spline.integrate(0.1, 0.9), own

    *others, own = everywhere.jit(found)(x, y)
    same, shared, integral = map(everywhere.get, others)
    own = [everywhere.get(a) for a in own]

    np.testing.assert_array_equal(same, given.x)
    for line, x, y, points, ends in given.lines():
        expected = interpolate.CubicSpline(x, y, bc_type=ends)
        for nu in range(4):
            near(own[nu][line], expected(points, nu), x, y, nu)
        near(shared[line], expected(given.points.ravel()[:3]), x, y)
        near(integral[line[::2]], expected.integrate(0.1, 0.9), x, y)


@pytest.mark.parametrize(
    ("bc", "extrapolate"),
    [("natural", None), ("periodic", None), slow("natural", False), slow("periodic", True)],
)
def test_points_outside_the_knots(differentiable, make, rng, bc, extrapolate):
    x = knots(rng, 12)
    y = batch(rng, 12, (3,), 0, periodic=bc == "periodic")
    points = np.concatenate([rng.uniform(x[0] - 7, x[-1] + 7, 40), x[[0, 4]], [np.nan]])
    expected = interpolate.CubicSpline(x, y, 0, bc, extrapolate)

    spline = make(x, y, 0, bc, extrapolate)
    choices = [*((0, option) for option in (None, True, False, "periodic")), (3, None)]
    found = differentiable.jit(lambda p: [spline(p, *choice) for choice in choices])(
        differentiable.array(points)
    )

    assert spline.extrapolate == expected.extrapolate
    for own, choice in zip(found, choices, strict=True):
        own = differentiable.get(own)
        near(own, expected(points, *choice), x, y, choice[0], eps=1e-12)


@pytest.mark.parametrize(
    ("bc", "own", "orders"),
    [
        ("periodic", True, 1),
        *(slow(bc, own, 2) for bc in CONDITIONS for own in (False, True)),
    ],
)
def test_derivatives_of_both_orders(differentiable, rng, bc, own, orders):
    """With respect to the knots, the values, those of derivatives at the ends, and the points."""
    x = np.stack([knots(rng, 6), knots(rng, 6)], 1) if own else knots(rng, 6)
    y, value = rng.standard_normal((6, 2)), rng.standard_normal(2)
    points = np.array([-1.0, 0.2, 0.9, 2.5])
    weight = differentiable.array(rng.standard_normal((4, 2)))

    def loss(x, y, value, points):
        spline = differentiable.functions.CubicSpline(x, y, 0, condition_with(bc, value))
        return (weight * spline(points) ** 2).sum() + 0 * value.sum()

    arguments = [x, y, value, points]
    check_derivatives(differentiable, loss, arguments, rng, rtol=1e-5, orders=orders)


@pytest.mark.parametrize("bc", [slow("natural"), "periodic"])
def test_integrals_have_the_derivatives_of_calculus(differentiable, make, rng, bc):
    x, y = knots(rng, 9), batch(rng, 9, (), 0, periodic=bc == "periodic")
    spline = make(x, y, bc_type=bc)
    expected = interpolate.CubicSpline(x, y, bc_type=bc)
    gradient = differentiable.value_and_grad(spline.integrate, 2)

    # Also at knots, where two pieces meet, and outside the knots.
    for a, b in ((x[0], x[4]), (x[-1], x[2]), (-2.0, 5.0), (0.1, 0.2), (4.0, -7.5)):
        ends = (differentiable.array(np.array(one)) for one in (a, b))
        found = [float(differentiable.get(g)) for g in gradient(*ends)[1]]
        np.testing.assert_allclose(found, [-expected(a), expected(b)], atol=1e-12)


def test_batches_by_vmap(everywhere, rng):
    x = np.stack([knots(rng, 7) for _ in range(3)])
    y, points = rng.standard_normal((3, 7, 2)), rng.uniform(0, 1, (3, 4))

    def value(x, y, p):
        return everywhere.functions.CubicSpline(x, y)(p)

    axes = (None, 0, None), (0, None, 0)
    for mapped in axes:
        args = [a if m == 0 else a[0] for a, m in zip((x, y, points), mapped, strict=True)]
        there = converted(everywhere, args)
        together = everywhere.get(everywhere.vmap(value, mapped)(*there))
        for k in range(3):
            *one, p = (a[k] if m == 0 else a for a, m in zip(args, mapped, strict=True))
            near(together[k], interpolate.CubicSpline(*one)(p), *one)


@pytest.mark.slow  # batches of splines, and gradients, are tests of their own
def test_gradients_for_each_sample(differentiable, rng):
    x, y, at = converted(
        differentiable, (knots(rng, 7), rng.standard_normal((3, 7)), np.array(0.3))
    )

    def loss(y, point):
        return differentiable.functions.CubicSpline(x, y).derivative()(point) ** 2

    found = differentiable.vmap(differentiable.gradient_of(loss), (0, None))(y, at)

    alone = differentiable.value_and_grad(loss)
    for own, values in zip(found, y, strict=True):
        _, (expected,) = alone(values, at)
        own, expected = differentiable.get(own), differentiable.get(expected)
        np.testing.assert_allclose(own, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("differentiable", ["torch"], indirect=True)
def test_compiled_without_graph_breaks(differentiable, rng):
    arrays = knots(rng, 7), rng.standard_normal((7, 2)), rng.uniform(-1, 3, 5)
    x, y, points = converted(differentiable, arrays)

    def values(x, y, points):
        spline = differentiable.functions.CubicSpline(x, y, 0, ((1, y[0]), "not-a-knot"))
        around = differentiable.functions.CubicSpline(x, y, 0, "periodic")
        return spline(points) + around(points, 1), spline.antiderivative().integrate(0.1, points[0])

    for own, one in zip(
        differentiable.compiled(values)(x, y, points), values(x, y, points), strict=True
    ):
        own, one = differentiable.get(own), differentiable.get(one)
        np.testing.assert_allclose(own, one, rtol=1e-10, atol=1e-10)


def test_single_precision_is_kept(differentiable, make, rng):
    x, y = knots(rng, 20).astype(np.float32), rng.standard_normal((20, 2)).astype(np.float32)
    points = np.linspace(x[0], x[-1], 33)
    spline = make(x, y)

    found, integral = differentiable.jit(lambda p: (spline(p), spline.integrate(0.0, 1.0)))(
        differentiable.array(points)
    )

    assert differentiable.dtype(found) == differentiable.dtype(integral) == np.float32
    near(differentiable.get(found), interpolate.CubicSpline(x, y)(points), x, y, eps=2e-6)
    coefficients = differentiable.jit(lambda x, y: differentiable.functions.CubicSpline(x, y).c)
    for arrays in ((x, y.astype(float)), (np.arange(4), np.arange(4))):
        c = coefficients(*converted(differentiable, arrays))
        assert differentiable.dtype(c) == np.float64
    assert re.fullmatch(
        r"<CubicSpline of 20 knots, values \(20, 2\) (torch\.)?float32>", repr(spline)
    )


def test_bad_arguments_are_refused(differentiable, make, rng):
    x, y = knots(rng, 6), rng.standard_normal((6, 2))
    spline, there = make(x, y), converted(differentiable, (x, y))
    spline_of = differentiable.functions.CubicSpline
    matrix = differentiable.array(np.zeros((4, 3)))

    for call, kind, text in (
        (lambda: make(x, y, 2), np.exceptions.AxisError, "axis must be in -2 .. 1"),
        (lambda: make(x[1:], y), ValueError, "doesn't match the length of `x`: 6 and 5"),
        (lambda: make(x + 1j, y), ValueError, "`x` must contain real values"),
        (lambda: make(x, y, bc_type="slope"), ValueError, "bc_type=slope is not allowed"),
        (lambda: make(x, y, 0, ((1, 0.0), "natural")), ValueError, "expected one (2,)"),
        (lambda: make(x, y, 0, ((1, np.nan), "natural")), ValueError, "got nan"),
        (lambda: spline_of(*there, 0, ((1, np.full(2, np.inf)), "natural")), ValueError, "finite"),
        (lambda: make(x, y, extrapolate="no"), ValueError, "'periodic'"),
        (lambda: spline(0.1, -1), ValueError, "nu must be at least 0"),
        (lambda: spline(0.1j), TypeError, "real values"),
        (lambda: spline(np.complex64(0.1j)), TypeError, "real values"),
        (lambda: spline(np.array([0.1j])), TypeError, "real values"),
        (lambda: spline(matrix, per_spline=True), ValueError, "per_spline"),
        (lambda: spline.derivative(0.5), TypeError, "nu must be an int"),
    ):
        with pytest.raises(kind, match=re.escape(text)):
            call()


@pytest.mark.parametrize("differentiable", ["torch"], indirect=True)
def test_torch_takes_tensors_alone(differentiable, rng):
    y = differentiable.array(rng.standard_normal(6))
    with pytest.raises(TypeError, match="x: need a tensor or a number"):
        differentiable.functions.CubicSpline(knots(rng, 6), y)


def test_limits_of_integrals_are_real_numbers(differentiable, make, rng):
    spline = make(knots(rng, 6), rng.standard_normal(6))
    for bad in ("a", 1j, np.array([0.1, 0.2])):
        with pytest.raises(TypeError, match="b must be a real number"):
            spline.integrate(0.0, bad)
    integrate = differentiable.jit(spline.integrate)
    for limits in ((0.0, np.nan), (np.nan, 0.1)):
        ends = (differentiable.array(np.array(one)) for one in limits)
        assert np.isnan(differentiable.get(integrate(*ends)))


@pytest.mark.parametrize("dtype", ["float32", slow("float64")])
def test_a_knot_belongs_to_the_piece_that_begins_there(differentiable, rng, dtype):
    spline_of = differentiable.functions.CubicSpline
    thirds = differentiable.jit(lambda x, y: spline_of(x, y, 0, "periodic")(x, 3))
    for _ in range(40):
        x = (knots(rng, 30) * rng.uniform(0.1, 9)).astype(dtype)
        y = batch(rng, 30, (), 0, dtype, periodic=True)
        c = interpolate.CubicSpline(x, y, 0, "periodic").c[0] * 6

        found = thirds(differentiable.array(x), differentiable.array(y))

        most = (1e-4 if dtype == "float32" else 1e-9) * np.abs(c).max()
        found, expected = differentiable.get(found), np.append(c, c[0])
        np.testing.assert_allclose(found, expected, rtol=0, atol=most)


def test_derivatives_in_values_are_splines_through_units(everywhere, rng):
    x, y = knots(rng, 6), rng.standard_normal(6)
    points, weights = rng.uniform(x[0], x[-1], 11), rng.standard_normal(11)
    units = interpolate.CubicSpline(x, np.eye(6), bc_type="clamped")
    x_there, at, weight = converted(everywhere, (x, points, weights))
    spline_of = everywhere.functions.CubicSpline

    _, (found,) = everywhere.value_and_grad(
        lambda y: (weight * spline_of(x_there, y, 0, "clamped")(at)).sum()
    )(everywhere.array(y))

    near(everywhere.get(found), weights @ units(points), x, np.eye(6))
