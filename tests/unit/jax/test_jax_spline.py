"""`pysolvers.jax.CubicSpline` in programs of JAX: pytrees, units, points without a value."""

import numpy as np
import pytest
from covering import slow
from spline_cases import CONDITIONS, condition_with, knots, near

jax = pytest.importorskip("jax")
interpolate = pytest.importorskip("scipy.interpolate")
jnp = jax.numpy

from pysolvers.jax import CubicSpline  # noqa: E402


@pytest.mark.slow  # the points are arguments of tests/unit/differentiable/test_spline.py
def test_derivatives_in_points_are_those_of_the_spline(rng):
    x, y = knots(rng, 9), rng.standard_normal((9, 2))
    points = rng.uniform(x[0] - 0.3, x[-1] + 0.3, 20)

    @jax.jit
    def found(x, y, points, outside):
        spline = CubicSpline(x, y)

        def at(p):
            return spline(p)[0]

        once, twice = (jax.vmap(f)(points) for f in (jax.grad(at), jax.grad(jax.grad(at))))
        # Points that are NaN give no gradient.
        slopes = jax.grad(lambda p: jnp.nansum(spline(p, extrapolate=False)))(outside)
        return (once, twice), [spline(points, nu)[:, 0] for nu in (1, 2)], slopes

    derivatives, values, slopes = found(x, y, points, x[-1:] + 1.0)

    for nu, (own, value) in enumerate(zip(derivatives, values, strict=True), 1):
        near(own, np.asarray(value), x, y, nu)
    assert not slopes.any()


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
    in_another_mode = jax.grad(lambda y: jnp.nansum(CubicSpline(x, y)(np.append(inside, np.nan))))
    slopes = jax.jit(in_another_mode)(y)
    assert np.isfinite(slopes).all()
