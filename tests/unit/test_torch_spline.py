"""`pysolvers.torch.CubicSpline`: the values of SciPy, gradients, batches and compilation."""

import re

import numpy as np
import pytest
from spline_cases import CONDITIONS, OwnKnots, batch, condition, condition_with, knots, near

torch = pytest.importorskip("torch", exc_type=ImportError)
interpolate = pytest.importorskip("scipy.interpolate")

from pysolvers.torch import CubicSpline, PiecewisePolynomial  # noqa: E402

# Of torch.compile itself, in torch 2.7 and 2.11.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning"),
]


def tensors(bc_type):
    """Return a condition with tensors for the values of derivatives."""
    if isinstance(bc_type, str):
        return bc_type
    return tuple(
        end if isinstance(end, str) else (end[0], torch.as_tensor(end[1])) for end in bc_type
    )


def leaf(array):
    return torch.tensor(np.asarray(array)).requires_grad_()


@pytest.mark.parametrize("bc", CONDITIONS)
@pytest.mark.parametrize("n", [2, 3, 4, 16])
def test_values_and_coefficients_are_those_of_scipy(rng, n, bc):
    for rest, axis, dtype in (((), 0, np.float64), ((2, 3), 1, np.complex128)):
        x = knots(rng, n)
        y = batch(rng, n, rest, axis, dtype, periodic=bc == "periodic")
        ends = condition(bc, rng, rest)
        points = rng.uniform(x[0] - 0.5, x[-1] + 0.5, (3, 4))
        expected = interpolate.CubicSpline(x, y, axis, ends)

        spline = CubicSpline(torch.tensor(x), torch.tensor(y), axis, tensors(ends))

        assert (spline.axis, spline.extrapolate) == (expected.axis, expected.extrapolate)
        np.testing.assert_array_equal(spline.x, x)
        for nu in range(5):
            near(spline(torch.tensor(points), nu).numpy(), expected(points, nu), x, y, nu)
        for power, (own, theirs) in enumerate(zip(spline.c.flip(0), expected.c[::-1], strict=True)):
            near(own.numpy(), theirs, x, y, power)


@pytest.mark.parametrize("bc", ["not-a-knot", "periodic"])
def test_integrals_and_derivatives_are_those_of_scipy(rng, bc):
    x = knots(rng, 7)
    y = batch(rng, 7, (2, 3), 1, periodic=bc == "periodic")
    inside = rng.uniform(x[0], x[-1], 4)
    limits = ((-0.7, 0.9), (2.5, -3.0), (-40.0, 61.0))[: 3 if bc == "periodic" else 2]
    expected = interpolate.CubicSpline(x, y, 1, bc)

    spline = CubicSpline(torch.tensor(x), torch.tensor(y), 1, bc)

    for nu in (-2, -1, 1, 4):
        own, theirs = spline.derivative(nu), expected.derivative(nu)
        assert type(own) is PiecewisePolynomial
        assert (own.c.shape, own.extrapolate) == (theirs.c.shape, theirs.extrapolate)
        near(own(torch.tensor(inside)).numpy(), theirs(inside), x, y, max(nu, 0))
    for pair in limits:
        near(spline.integrate(*pair).numpy(), expected.integrate(*pair), x, 100 * y)
    assert spline.integrate(0.1, x[-1] + 1e-9, False).isnan().all()


@pytest.mark.parametrize(("alone", "bc"), [(False, "mixed"), (True, "periodic")])
def test_splines_have_knots_and_points_of_their_own(rng, bc, alone):
    given = OwnKnots(rng, bc, is_shared=alone)

    spline = CubicSpline(
        torch.tensor(given.x), torch.tensor(given.y), given.axis, tensors(given.bc_type)
    )
    own = [spline(torch.tensor(given.points), nu, per_spline=True).numpy() for nu in range(4)]
    shared = spline(torch.tensor(given.points.ravel()[:3])).numpy()

    np.testing.assert_array_equal(spline.x, given.x)
    for line, x, y, points, ends in given.lines():
        expected = interpolate.CubicSpline(x, y, bc_type=ends)
        for nu in range(4):
            near(own[nu][line], expected(points, nu), x, y, nu)
        near(shared[line], expected(given.points.ravel()[:3]), x, y)


@pytest.mark.parametrize("extrapolate", [True, False, "periodic", None])
@pytest.mark.parametrize("bc", ["natural", "periodic"])
def test_points_outside_the_knots(rng, bc, extrapolate):
    x = knots(rng, 12)
    y = batch(rng, 12, (3,), 0, periodic=bc == "periodic")
    points = np.concatenate([rng.uniform(x[0] - 7, x[-1] + 7, 40), x[[0, 4]], [np.nan]])
    expected = interpolate.CubicSpline(x, y, 0, bc, extrapolate)

    spline = CubicSpline(torch.tensor(x), torch.tensor(y), 0, bc, extrapolate)

    for choice in ((nu, option) for nu in (0, 3) for option in (None, True, False, "periodic")):
        own = spline(torch.tensor(points), *choice).numpy()
        near(own, expected(points, *choice), x, y, choice[0], eps=1e-12)


@pytest.mark.parametrize(
    ("bc", "own"),
    [
        *((bc, bc == "periodic") for bc in ("not-a-knot", "periodic", "mixed")),
        *(
            pytest.param(bc, own, marks=pytest.mark.slow)
            for bc in CONDITIONS
            for own in (False, True)
        ),
    ],
)
def test_first_and_second_derivatives_are_those_of_finite_differences(rng, bc, own):
    x = np.stack([knots(rng, 5), knots(rng, 5)], 1) if own else knots(rng, 5)
    points = np.array([-1.0, 0.2, 2.5])
    values = map(leaf, (x, rng.standard_normal((5, 2)), rng.standard_normal(2), points))

    def spline(x, y, value, points):
        return CubicSpline(x, y, 0, condition_with(bc, value))(points)

    arguments = tuple(values)
    assert torch.autograd.gradcheck(spline, arguments)
    assert torch.autograd.gradgradcheck(spline, arguments)


@pytest.mark.parametrize("bc", ["natural", "periodic"])
def test_integrals_have_the_derivatives_of_calculus(rng, bc):
    x, y = knots(rng, 9), batch(rng, 9, (), 0, periodic=bc == "periodic")
    spline = CubicSpline(torch.tensor(x), leaf(y), bc_type=bc)

    # Also at knots, where two pieces meet, and outside the knots.
    for a, b in ((x[0], x[4]), (x[-1], x[2]), (-2.0, 5.0), (0.1, 0.2), (4.0, -7.5)):
        ends = leaf(a), leaf(b)
        found = torch.autograd.grad(spline.integrate(*ends), ends, retain_graph=True)
        expected = [-spline(a).item(), spline(b).item()]
        np.testing.assert_allclose([g.item() for g in found], expected, atol=1e-12)


def test_batches_by_vmap(rng):
    x = np.stack([knots(rng, 7) for _ in range(3)])
    y, points = rng.standard_normal((3, 7, 2)), rng.uniform(0, 1, (3, 4))

    for mapped in ((0, 0, 0), (None, 0, None), (0, None, None), (None, None, 0), (0, 0, None)):
        args = [a if m == 0 else a[0] for a, m in zip((x, y, points), mapped, strict=True)]
        value = torch.vmap(lambda x, y, p: CubicSpline(x, y)(p), mapped)
        together = value(*map(torch.tensor, args)).numpy()
        for k in range(3):
            *one, p = (a[k] if m == 0 else a for a, m in zip(args, mapped, strict=True))
            near(together[k], interpolate.CubicSpline(*one)(p), *one)


def test_gradients_of_torch_func_for_each_sample(rng):
    x, y = torch.tensor(knots(rng, 7)), torch.tensor(rng.standard_normal((3, 7)))

    def loss(y, point):
        return CubicSpline(x, y).derivative()(point).square()

    found = torch.vmap(torch.func.grad(loss), (0, None))(y, torch.tensor(0.3))

    for own, values in zip(found, y, strict=True):
        sample = values.clone().requires_grad_()
        loss(sample, torch.tensor(0.3)).backward()
        torch.testing.assert_close(own, sample.grad)


def test_compiled_without_graph_breaks(rng):
    x, y = leaf(knots(rng, 7)), leaf(rng.standard_normal((7, 2)))
    points = leaf(rng.uniform(-1, 3, 5))

    def values(x, y, points):
        spline = CubicSpline(x, y, 0, ((1, y[0]), "not-a-knot"))
        around = CubicSpline(x, y, 0, "periodic")
        return spline(points) + around(points, 1), spline.antiderivative().integrate(0.1, points[0])

    compiled = torch.compile(values, fullgraph=True, backend="aot_eager")

    for function in (values, compiled):
        results = function(x, y, points)
        gradients = torch.autograd.grad(sum(r.square().sum() for r in results), (x, y, points))
        if function is values:
            expected = *results, *gradients
    for own, one in zip((*results, *gradients), expected, strict=True):
        torch.testing.assert_close(own, one, rtol=1e-10, atol=1e-10)


def test_single_precision_is_kept(rng):
    x, y = (torch.tensor(a, dtype=torch.float32) for a in (knots(rng, 9), rng.random((9, 2))))

    spline = CubicSpline(x, y)

    assert spline(0.1).dtype == spline.integrate(0.0, 1.0).dtype == torch.float32
    assert CubicSpline(x, y.double()).c.dtype == torch.float64
    assert CubicSpline(torch.arange(4), torch.arange(4)).c.dtype == torch.float64
    assert repr(spline) == "<CubicSpline of 9 knots, values (9, 2) torch.float32>"


def test_bad_arguments_are_refused(rng):
    x, y = torch.tensor(knots(rng, 6)), torch.tensor(rng.standard_normal((6, 2)))
    spline = CubicSpline(x, y)

    for call, kind, text in (
        (lambda: CubicSpline(x.numpy(), y), TypeError, "x: need a tensor or a number"),
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
        (lambda: spline(np.array([0.1j])), TypeError, "real values"),
        (lambda: spline(torch.zeros(4, 3), per_spline=True), ValueError, "per_spline"),
        (lambda: spline.derivative(0.5), TypeError, "nu must be an int"),
    ):
        with pytest.raises(kind, match=re.escape(text)):
            call()
