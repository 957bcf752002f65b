"""`pysolvers.jax.CubicSpline`: the values of SciPy, derivatives of all arguments, batches."""

import re

import numpy as np
import pytest
from spline_cases import CONDITIONS, OwnKnots, batch, condition, condition_with, knots, near

jax = pytest.importorskip("jax")
interpolate = pytest.importorskip("scipy.interpolate")
jnp = jax.numpy

from pysolvers.jax import CubicSpline, PiecewisePolynomial  # noqa: E402


@pytest.mark.parametrize("bc", CONDITIONS)
def test_coefficients_are_those_of_scipy(rng, bc):
    cases = []
    for n, rest, axis, dtype in (
        (2, (), 0, np.float64),
        (3, (4,), 0, np.float64),
        (4, (2, 3), 1, np.float64),
        (16, (3,), 1, np.complex128),
    ):
        y = batch(rng, n, rest, axis, dtype, periodic=bc == "periodic")
        cases.append((knots(rng, n), y, axis, condition(bc, rng, rest)))

    # One compiled function for all cases.
    splines = jax.jit(lambda: [CubicSpline(*case) for case in cases])()

    for spline, case in zip(splines, cases, strict=True):
        expected = interpolate.CubicSpline(*case)
        assert (spline.axis, spline.extrapolate) == (expected.axis, expected.extrapolate)
        assert isinstance(spline.c, jax.Array) and spline.c.dtype == expected.c.dtype
        np.testing.assert_array_equal(spline.x, expected.x)
        for power, (own, theirs) in enumerate(zip(spline.c[::-1], expected.c[::-1], strict=True)):
            near(own, theirs, *case[:2], power)


@pytest.mark.parametrize("bc", ["not-a-knot", "periodic"])
def test_values_integrals_and_derivatives_are_those_of_scipy(rng, bc):
    x = knots(rng, 7)
    y = batch(rng, 7, (2, 3), 1, periodic=bc == "periodic")
    points = rng.uniform(x[0] - 0.5, x[-1] + 0.5, (3, 4))
    inside = rng.uniform(x[0], x[-1], 4)
    orders, limits = (-2, -1, 1, 4), np.array([(-0.7, 0.9), (2.5, -3.0), (-40.0, 61.0)])
    limits = limits if bc == "periodic" else limits[:2]
    expected = interpolate.CubicSpline(x, y, 1, bc)

    @jax.jit
    def found(x, y):
        spline = CubicSpline(x, y, 1, bc)
        return (
            [spline(points, nu) for nu in range(5)],
            [spline.derivative(nu)(inside) for nu in orders],
            [spline.integrate(*pair) for pair in limits],
        )

    values, others, integrals = found(x, y)

    for nu in range(5):
        near(values[nu], expected(points, nu), x, y, nu)
    for own, nu in zip(others, orders, strict=True):
        near(own, expected.derivative(nu)(inside), x, y, max(nu, 0))
    for own, pair in zip(integrals, limits, strict=True):
        near(own, expected.integrate(*pair), x, 100 * y)
    for nu in (-1, 2, 4):
        own, theirs = CubicSpline(x, y, 1, bc).derivative(nu), expected.derivative(nu)
        assert type(own) is PiecewisePolynomial
        assert (own.c.shape, own.extrapolate) == (theirs.c.shape, theirs.extrapolate)


@pytest.mark.parametrize(("alone", "bc"), [(False, "mixed"), (True, "periodic")])
def test_splines_have_knots_and_points_of_their_own(rng, bc, alone):
    given = OwnKnots(rng, bc, is_shared=alone)

    @jax.jit
    def found(x, y):
        spline = CubicSpline(x, y, given.axis, given.bc_type)
        own = [spline(given.points, nu, per_spline=True) for nu in range(4)]
        return spline.x, own, spline(given.points.ravel()[:3]), spline.integrate(0.1, 0.9)

    same, own, shared, integral = found(given.x, given.y)

    np.testing.assert_array_equal(same, given.x)
    for line, x, y, points, ends in given.lines():
        expected = interpolate.CubicSpline(x, y, bc_type=ends)
        for nu in range(4):
            near(own[nu][line], expected(points, nu), x, y, nu)
        near(shared[line], expected(given.points.ravel()[:3]), x, y)
        near(integral[line[::2]], expected.integrate(0.1, 0.9), x, y)


@pytest.mark.parametrize(
    ("bc", "extrapolate"), [("natural", None), ("periodic", None), ("natural", False)]
)
def test_points_outside_the_knots(rng, bc, extrapolate):
    x = knots(rng, 12)
    y = batch(rng, 12, (3,), 0, periodic=bc == "periodic")
    points = np.concatenate([rng.uniform(x[0] - 7, x[-1] + 7, 40), x[[0, 4]], [np.nan]])
    expected = interpolate.CubicSpline(x, y, 0, bc, extrapolate)

    spline = CubicSpline(x, y, 0, bc, extrapolate)
    choices = [(nu, option) for nu in (0, 3) for option in (None, True, False, "periodic")]
    found = jax.jit(lambda spline: [spline(points, *choice) for choice in choices])(spline)

    assert spline.extrapolate == expected.extrapolate
    for own, choice in zip(found, choices, strict=True):
        near(own, expected(points, *choice), x, y, choice[0], eps=1e-12)


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("bc", "own"),
    [
        *((bc, bc == "periodic") for bc in ("not-a-knot", "periodic")),
        *(slow(bc, own) for bc in CONDITIONS for own in (False, True)),
    ],
)
def test_derivatives_of_both_orders_agree_with_finite_differences(rng, bc, own):
    x = np.stack([knots(rng, 6), knots(rng, 6)], 1) if own else knots(rng, 6)
    y, value = rng.standard_normal((6, 2)), rng.standard_normal(2)
    points = np.array([-1.0, 0.2, 0.9, 2.5])
    weight = rng.standard_normal((4, 2))

    def loss(x, y, value, points):
        return (weight * CubicSpline(x, y, 0, condition_with(bc, value))(points) ** 2).sum()

    every = (0, 1, 2, 3)

    @jax.jit
    def derivatives(values, directions):
        """Return the gradient in reverse mode, and its derivative along directions, forward."""
        gradient = jax.value_and_grad(loss, every)
        (value, slopes), (slope, changes) = jax.jvp(lambda *v: gradient(*v), values, directions)
        return value, slope, slopes, changes

    values = x, y, value, points
    directions = tuple(rng.standard_normal(a.shape) for a in values)
    h = 1e-6
    low, high = (
        derivatives(tuple(a + t * d for a, d in zip(values, directions, strict=True)), directions)
        for t in (-h, h)
    )
    _, slope, slopes, changes = derivatives(values, directions)

    product = sum((s * d).sum() for s, d in zip(slopes, directions, strict=True))
    np.testing.assert_allclose([slope, product], (high[0] - low[0]) / (2 * h), rtol=1e-6)
    for change, before, after in zip(changes, low[2], high[2], strict=True):
        apart = (after - before) / (2 * h)
        np.testing.assert_allclose(change, apart, rtol=1e-5, atol=1e-6 * np.abs(apart).max())


@pytest.mark.parametrize("bc", ["natural", "periodic"])
def test_integrals_have_the_derivatives_of_calculus(rng, bc):
    x, y = knots(rng, 9), batch(rng, 9, (), 0, periodic=bc == "periodic")
    spline = CubicSpline(x, y, bc_type=bc)

    gradient = jax.jit(jax.grad(spline.integrate, (0, 1)))
    # Also at knots, where two pieces meet, and outside the knots.
    for a, b in ((x[0], x[4]), (x[-1], x[2]), (-2.0, 5.0), (0.1, 0.2), (4.0, -7.5)):
        of_a, of_b = gradient(a, b)
        np.testing.assert_allclose([of_a, of_b], [-spline(a), spline(b)], atol=1e-12)
    assert np.isnan(spline.integrate(0.1, x[-1] + 1e-9, False))


def test_derivatives_in_points_are_those_of_the_spline(rng):
    x, y = knots(rng, 9), rng.standard_normal((9, 2))
    spline = CubicSpline(x, y)
    points = rng.uniform(x[0] - 0.3, x[-1] + 0.3, 20)

    def at(p):
        return spline(p)[0]

    for nu, function in ((1, jax.grad(at)), (2, jax.grad(jax.grad(at)))):
        near(jax.jit(jax.vmap(function))(points), np.asarray(spline(points, nu)[:, 0]), x, y, nu)
    # Points that are NaN give no gradient.
    slopes = jax.grad(lambda p: jnp.nansum(spline(p, extrapolate=False)))(x[-1:] + 1.0)
    assert not slopes.any()


def test_derivatives_in_values_are_splines_through_units(rng):
    x, y = knots(rng, 6), rng.standard_normal(6)
    points = rng.uniform(x[0], x[-1], 11)
    units = interpolate.CubicSpline(x, np.eye(6), bc_type="clamped")

    found = jax.jit(jax.jacrev(lambda y: CubicSpline(x, y, bc_type="clamped")(points)))(y)

    near(found, units(points), x, np.eye(6))


def test_batches_by_vmap(rng):
    x = np.stack([knots(rng, 7) for _ in range(3)])
    y, points = rng.standard_normal((3, 7, 2)), rng.uniform(0, 1, (3, 4))

    for mapped in ((0, 0, 0), (None, 0, None), (0, None, None), (None, None, 0)):
        args = [a if m == 0 else a[0] for a, m in zip((x, y, points), mapped, strict=True)]
        together = jax.jit(jax.vmap(lambda x, y, p: CubicSpline(x, y)(p), mapped))(*args)
        for k in range(3):
            knots_, values, p = (a[k] if m == 0 else a for a, m in zip(args, mapped, strict=True))
            near(together[k], interpolate.CubicSpline(knots_, values)(p), knots_, values)


def test_splines_are_pytrees(rng):
    x, y = knots(rng, 7), rng.standard_normal((3, 7, 2))

    splines = jax.jit(jax.vmap(lambda y: CubicSpline(x, y)))(y)
    shifted = jax.tree.map(lambda a: a, splines)
    together = jax.vmap(lambda spline: spline(0.3))(splines)

    assert type(shifted) is CubicSpline and shifted.extrapolate is True
    assert repr(shifted) == "<CubicSpline of 7 knots, values (3, 7, 2) float64>"
    expected = interpolate.CubicSpline(x, y, 1)
    near(together, expected(0.3), x, y)
    near(splines(0.3), expected(0.3), x, y)  # as one batch, with the axis from `vmap` first
    assert splines.axis == 1
    end, _ = jax.lax.scan(lambda s, _: (s.derivative(0), s(0.1)), splines.derivative(), length=2)
    near(end(0.3), expected(0.3, 1), x, y, 1)


def test_splines_that_share_their_knots_share_the_matrix(rng):
    x, y = knots(rng, 7), rng.standard_normal((5, 7, 3))
    spline = jax.jit(lambda x, y: CubicSpline(x, y, 1)._coefficients)

    program = spline.lower(x, y).as_text()

    (call,) = [line for line in program.splitlines() if "pysolvers_tridiagonal" in line]
    operands = call.partition(": (")[2].partition(")")[0]
    assert operands.count("tensor<1x1x7xf64>") == 1 and operands.count("tensor<1x1x6xf64>") == 2


#: Femtoseconds, light days, light years, and far beyond; without a unit.
UNITS = (1e-30, 1e-15, 1.0, 2.59020683712e13, 9.4607e15, 1e30)


@pytest.mark.parametrize(
    "bc", ["not-a-knot", *(slow(bc) for bc in CONDITIONS if bc not in ("not-a-knot", "mixed"))]
)
def test_units_of_the_knots_in_single_precision(rng, bc):
    x = np.cumsum(rng.uniform(0.6, 1.4, 8))
    y = rng.standard_normal(8)
    y[-1] = y[0] if bc == "periodic" else y[-1]
    points = rng.uniform(x[0] + 0.1, x[-1] - 0.1, 5)
    weight = rng.standard_normal(5)

    ends = condition_with(bc, 0.3)

    def sum_of(x, y, points):
        return weight @ interpolate.CubicSpline(x, y, bc_type=ends)(points)

    @jax.jit
    def found(x, y, points, scales):
        given = ends
        if not isinstance(ends, str):
            given = [e if isinstance(e, str) else (e[0], e[1] * scales[e[0]]) for e in ends]

        def spline(x, y):
            return CubicSpline(x, y, bc_type=given)

        def total(x, y, points):
            return (weight.astype(np.float32) * spline(x, y)(points)).sum()

        own = spline(x, y)
        values = [own(points, nu) for nu in range(3)]
        integrals = own.integrate(points[0], points[1]), own.antiderivative(2)(points, 1)
        return values, integrals, jax.grad(total, (0, 1, 2))(x, y, points)

    for unit in UNITS:
        single = [(a * u).astype(np.float32) for a, u in ((x, unit), (y, 1), (points, unit))]
        exact_x, exact_y, q = (
            a.astype(float) / u for a, u in zip(single, (unit, 1, unit), strict=True)
        )
        if bc in ("curvatures", "mixed") and not 1e-30 < unit < 1e30:
            continue  # float32 cannot represent the given curvature
        scales = np.float32([1, 1 / unit, 1 / unit**2 if 1e-30 < unit < 1e30 else 0])
        expected = interpolate.CubicSpline(exact_x, exact_y, bc_type=ends)
        with jax.debug_nans(True):
            values, integrals, gradients = found(*single, scales)

        for nu, own in enumerate(values):
            if 1e-37 < unit**-nu < 1e37:
                near(np.asarray(own, float) * unit**nu, expected(q, nu), x, y, nu, eps=2e-6)
        integral, primitive = (np.asarray(a, float) / unit for a in integrals)
        near(integral, np.asarray(expected.integrate(*q[:2])), x, y, eps=2e-6)
        near(primitive, expected.antiderivative()(q), x, y, eps=4e-6)
        exact = (exact_x, exact_y, q)
        for k, (own, scale) in enumerate(zip(gradients, (unit, 1, unit), strict=True)):
            apart = np.zeros(len(exact[k]))
            for i in range(len(apart)):
                step = 1e-5 * np.eye(len(apart))[i]
                if bc == "periodic" and k == 1:
                    step = step + 1e-5 * np.eye(8)[{0: 7, 7: 0}.get(i, i)] * (i in (0, 7))
                low, high = (
                    sum_of(*(a + s * step if j == k else a for j, a in enumerate(exact)))
                    for s in (-1, 1)
                )
                apart[i] = (high - low) / 2e-5
            wanted = np.asarray(own, float) * scale
            if bc == "periodic" and k == 1:
                wanted[[0, -1]] = wanted[0] + wanted[-1]
            np.testing.assert_allclose(wanted, apart, rtol=0, atol=2e-5 * np.abs(apart).max())


@pytest.mark.parametrize("dtype", ["float32", slow("float64")])
def test_points_without_a_value_leave_gradients_alone(rng, dtype):
    x, y = (a.astype(dtype) for a in (knots(rng, 7), rng.standard_normal(7)))
    inside = np.array([0.1, 0.4], dtype)
    fills = [1e20, -1e20, np.inf, -np.inf, np.nan, np.finfo(dtype).max, x[-1] + 0.01]

    @jax.jit
    def gradients(x, y, points):
        def total(x, y, points):
            spline = CubicSpline(x, y, bc_type="natural", extrapolate=False)
            outside = jnp.nan_to_num(spline.integrate(0.0, points[-1]))
            return jnp.nansum(spline(points)) + jnp.nansum(spline(points, 1)) + 0 * outside

        return jax.grad(total, (0, 1, 2))(x, y, points)

    own = [gradients(x, y, np.append(inside, np.dtype(dtype).type(fill))) for fill in fills]

    for found in own:
        assert not found[2][-1]
        for one, other in zip(found, own[-1], strict=True):
            np.testing.assert_array_equal(one, other)
    for one in own[-1]:
        assert np.isfinite(one).all() and np.any(one)
    # NaN in another mode, too.
    slopes = jax.grad(lambda y: jnp.nansum(CubicSpline(x, y)(np.append(inside, np.nan))))(y)
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_knot_belongs_to_the_piece_that_begins_there(rng, dtype):
    thirds = jax.jit(lambda x, y: CubicSpline(x, y, 0, "periodic")(x, 3))
    for _ in range(40):
        x = (knots(rng, 30) * rng.uniform(0.1, 9)).astype(dtype)
        y = batch(rng, 30, (), 0, dtype, periodic=True)
        c = interpolate.CubicSpline(x, y, 0, "periodic").c[0] * 6

        found = thirds(x, y)

        most = (1e-4 if dtype == "float32" else 1e-9) * np.abs(c).max()
        np.testing.assert_allclose(found, np.append(c, c[0]), rtol=0, atol=most)


def test_limits_of_integrals_are_real_numbers(rng):
    spline = CubicSpline(knots(rng, 6), rng.standard_normal(6))
    for bad in ("a", 1j, [0.1], np.array([0.1, 0.2])):
        with pytest.raises(TypeError, match="b must be a real number"):
            spline.integrate(0.0, bad)
    assert np.isnan(spline.integrate(0.0, np.nan)) and np.isnan(spline.integrate(np.nan, 0.1))


def test_single_precision_is_kept(rng):
    x, y = knots(rng, 20).astype(np.float32), rng.standard_normal((20, 2)).astype(np.float32)
    points = np.linspace(x[0], x[-1], 33)
    expected = interpolate.CubicSpline(x, y)

    def dtypes(x, y):
        spline = CubicSpline(x, y)
        return {a.dtype for a in jax.eval_shape(lambda: (spline.c, spline.integrate(0, 1)))}

    found = jax.jit(lambda x, y: CubicSpline(x, y)(points))(x, y)

    assert found.dtype == np.float32
    near(found, expected(points), x, y, eps=2e-6)
    assert dtypes(x, y) == {np.dtype(np.float32)}
    assert dtypes(x, y.astype(np.float64)) == {np.dtype(np.float64)}
    assert dtypes(np.arange(4), np.arange(4)) == {np.dtype(np.float64)}


def test_bad_arguments_are_refused(rng):
    x, y = knots(rng, 6), rng.standard_normal((6, 2))
    spline = CubicSpline(x, y)

    for call, kind, text in (
        (lambda: CubicSpline(x, y, 2), np.exceptions.AxisError, "axis must be in -2 .. 1"),
        (lambda: CubicSpline(x[1:], y), ValueError, "doesn't match the length of `x`: 6 and 5"),
        (lambda: CubicSpline(x + 1j, y), ValueError, "`x` must contain real values"),
        (lambda: CubicSpline(x, y, bc_type="slope"), ValueError, "bc_type=slope is not allowed"),
        (lambda: CubicSpline(x, y, 0, ((1, 0.0), "natural")), ValueError, "expected one (2,)"),
        (lambda: CubicSpline(x, y, 0, ((1, np.nan), "natural")), ValueError, "got nan"),
        (lambda: CubicSpline(x, y, 0, ((1, np.full(2, np.inf)), "natural")), ValueError, "finite"),
        (lambda: CubicSpline(x, y, extrapolate="no"), ValueError, "'periodic'"),
        (lambda: spline(0.1, -1), ValueError, "nu must be at least 0"),
        (lambda: spline(0.1j), TypeError, "real values"),
        (lambda: spline(np.zeros((4, 3)), per_spline=True), ValueError, "per_spline"),
        (lambda: spline.derivative(0.5), TypeError, "nu must be an int"),
    ):
        with pytest.raises(kind, match=re.escape(text)):
            call()
