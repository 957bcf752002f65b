"""Heat conduction: exact discrete factors, order, conservation, restart, errors."""

import numpy as np
import pytest

from pysolvers import Dirichlet, HeatADI, Neumann, Robin
from pysolvers.papers import wei2013

# Exact factors of the schemes are those of steps of any length.
pytestmark = pytest.mark.filterwarnings("ignore:HeatADI.*too large for the solution:RuntimeWarning")

SINES, COSINES, WAVES = Dirichlet(0.0), Neumann(0.0), "periodic"


def mode(boundary, n, p):
    """A mode of n nodes along an axis, and the eigenvalue of -delta^2/2 for r = 1."""
    i = np.arange(n)
    if boundary is WAVES:
        return np.cos(2 * np.pi * p * i / n + 0.3), 2 * np.sin(np.pi * p / n) ** 2
    wave = np.sin if boundary is SINES else np.cos
    return wave(np.pi * p * i / (n - 1)), 2 * np.sin(np.pi * p / (2 * (n - 1))) ** 2


def modes(boundaries, shape, numbers):
    """A product of modes, and the eigenvalues along the axes of the array."""
    found = [mode(*one) for one in zip(boundaries, shape, numbers, strict=True)]
    field = np.ones(shape)
    for axis, (values, _) in enumerate(found):
        field = field * values.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return field, np.array([value for _, value in found])


def solver_of(boundaries, shape, r, backend, **options):
    """A solver of unit step, with r = dt k/h^2 along each axis of the array."""
    names = "xyz"[: len(shape)][::-1]
    spacing = {name: 1 / np.sqrt(one) for name, one in zip(names, r, strict=True)}
    sides = dict(zip(names, boundaries, strict=True))
    options = {"damped_start": False, **options}
    return wei2013.HeatADI(shape, spacing, 1.0, boundary=sides, device=backend, **options)


@pytest.mark.parametrize("r", [(0.1, 0.1), (1.0, 3.0), (100.0, 100.0), (1e3, 30.0)], ids=str)
@pytest.mark.parametrize("numbers", [(1, 1), (2, 5), (11, 3)], ids=str)
@pytest.mark.parametrize(
    "boundaries",
    [(SINES, SINES), (COSINES, SINES), (WAVES, COSINES), (SINES, WAVES)],
    ids=["DD", "ND", "PN", "DP"],
)
@pytest.mark.parametrize("shape", [(17, 33), (65, 40)], ids=str)
def test_factor_of_peaceman_and_rachford(backend, shape, boundaries, numbers, r):
    field, values = modes(boundaries, shape, numbers)
    a = np.array(r) * values
    solver = solver_of(boundaries, shape, r, backend, initial=field)

    expected = np.prod((1 - a) / (1 + a)) * field

    np.testing.assert_allclose(solver.step().u, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("r", [(0.1, 0.2, 0.3), (1.0, 1.0, 1.0), (100.0, 30.0, 500.0)], ids=str)
@pytest.mark.parametrize("numbers", [(1, 1, 1), (2, 5, 3)], ids=str)
@pytest.mark.parametrize("boundaries", [(SINES, SINES, SINES), (WAVES, COSINES, SINES)], ids="DP")
def test_factor_of_douglas_and_gunn(backend, boundaries, numbers, r):
    field, values = modes(boundaries, (12, 17, 21), numbers)
    a = np.array(r) * values
    solver = solver_of(boundaries, field.shape, r, backend, initial=field)

    # A_x A_y A_z (T+ - T) = -2 (a_x + a_y + a_z) T for a mode.
    expected = (1 - 2 * a.sum() / np.prod(1 + a)) * field

    np.testing.assert_allclose(solver.step().u, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kernels", ["fused", "wei2013"])
def test_factor_of_the_published_scheme(backend, kernels):
    (ry, rx), shape = (3.0, 50.0), (20, 33)
    field, values = modes((SINES, SINES), shape, (2, 3))
    cy, cx = 1 - values
    solver = solver_of(
        (SINES, SINES), shape, (ry, rx), backend, initial=field, scheme="wei2013", kernels=kernels
    )

    whole = 1 + 2 * rx + 2 * ry
    factor = (1 + 2 * ry * cy) / (whole - 2 * rx * cx) * (1 + 2 * rx * cx) / (whole - 2 * ry * cy)

    np.testing.assert_allclose(solver.step().u, factor * field, rtol=0, atol=1e-13)


@pytest.mark.parametrize("r", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("kernels", ["fused", "wei2013"])
def test_published_scheme_is_no_time_integrator(backend, r, kernels):
    n, steps = 65, 10
    field, values = modes((SINES, SINES), (n, n), (1, 1))
    solver = solver_of(
        (SINES, SINES), (n, n), (r, r), backend, initial=field, scheme="wei2013", kernels=kernels
    )

    after = solver.step(steps).u

    c = 1 - values[0]
    factor = ((1 + 2 * r * c) / (1 + 4 * r - 2 * r * c)) ** 2
    np.testing.assert_allclose(after, factor**steps * field, rtol=0, atol=1e-13)
    advanced = np.log(after[n // 2, n // 2]) / (-4 * r * values[0] * steps)
    assert advanced == pytest.approx(2 / (1 + 2 * r), rel=0.01)


def test_both_schemes_are_one_in_two_dimensions(backend, rng):
    options = {"initial": rng.random((21, 34)), "source": rng.random((21, 34)), "boundary": 0.0}
    options["device"] = backend
    one = HeatADI((21, 34), 0.1, 0.05, **options)
    other = HeatADI((21, 34), 0.1, 0.05, scheme="douglas-gunn", **options)

    np.testing.assert_allclose(one.step(5).u, other.step(5).u, rtol=0, atol=1e-13)


# Second differences of this are exact, along two axes at once, too: the error is that of time.
def shape_of(*place):
    squares = [x * x for x in place]
    return 1 + sum(squares) + 0.5 * np.prod(np.broadcast_arrays(*squares), axis=0)


def laplacian_of(*place):
    squares = [x * x for x in place]
    others = [
        np.prod(np.broadcast_arrays(*(s for b, s in enumerate(squares) if b != a), 1.0), axis=0)
        for a in range(len(place))
    ]
    return 2 * len(place) + sum(others)


def slope_of(axis, *place):
    others = [x * x for a, x in enumerate(place) if a != axis]
    return 2 * place[axis] + place[axis] * np.prod(np.broadcast_arrays(*others, 1.0), axis=0)


def rise(t):
    return np.exp(np.sin(2 * t))


def rise_rate(t):
    return 2 * np.cos(2 * t) * rise(t)


def taking(axes, function):
    """`function` with as many arguments as a box of so many axes calls it with."""
    return {2: lambda x, y, t: function(x, y, t), 3: lambda x, y, z, t: function(x, y, z, t)}[axes]


def moving(kind, axes, axis, sign):
    """A side on which rise(t) shape_of(place) goes on."""

    def value(*args):
        return rise(args[-1]) * shape_of(*args[:-1])

    def flux(*args):
        return sign * rise(args[-1]) * slope_of(axis, *args[:-1])

    if kind == "D":
        return Dirichlet(taking(axes, value))
    if kind == "N":
        return Neumann(taking(axes, flux))
    return Robin(2.0, taking(axes, lambda *args: value(*args) + flux(*args) / 2))


def error_after(kinds, steps, backend, scheme=None):
    """Largest error at t = 1 with sides like ("DN", "RD"), for x, y, ..., and h = 1/8."""
    axes = len(kinds)
    shape = (13, 11, 9)[-axes:]
    sides = {
        "xyz"[axis] + end: moving(kind, axes, axis, sign)
        for axis, pair in enumerate(kinds)
        for end, sign, kind in zip("-+", (-1, 1), pair, strict=True)
    }
    lines = np.ix_(*(np.arange(n) / 8 for n in shape))[::-1]

    def source(*args):
        *place, t = args
        return rise_rate(t) * shape_of(*place) - rise(t) * laplacian_of(*place)

    solver = HeatADI(
        shape,
        1 / 8,
        1 / steps,
        scheme=scheme,
        boundary=sides,
        source=taking(axes, source),
        initial=shape_of(*lines),
        device=backend,
    )
    return np.abs(solver.run(1.0).u - rise(1.0) * shape_of(*lines)).max()


@pytest.mark.parametrize(
    "kinds", [("DD", "DD"), ("DN", "DD"), ("DD", "ND"), ("NN", "RD"), ("RD", "DN"), ("RN", "NR")]
)
@pytest.mark.parametrize("scheme", ["peaceman-rachford", "douglas-gunn"])
def test_second_order_in_time_with_moving_sides(backend, kinds, scheme):
    coarse, fine = (error_after(kinds, steps, backend, scheme) for steps in (40, 80))

    assert coarse < 2e-2
    assert np.log2(coarse / fine) > 1.9


@pytest.mark.parametrize("kinds", [("DD", "DD", "DD"), ("DN", "RD", "DN"), ("ND", "DD", "DR")])
def test_second_order_in_three_dimensions(backend, kinds):
    coarse, fine = (error_after(kinds, steps, backend) for steps in (40, 80))

    assert np.log2(coarse / fine) > 1.9


def exact_without_error(time, *place):
    """A field that the schemes reproduce: the products of operators of two axes are 0 on it."""
    first, second = 1 + time - 2 * time**2, 2 * time + time**2
    return first + second * np.prod(np.broadcast_arrays(*place), axis=0) + (1 - time) * place[0]


def slope_without_error(axis, time, *place):
    others = [p for a, p in enumerate(place) if a != axis]
    product = (2 * time + time**2) * np.prod(np.broadcast_arrays(*others, 1.0), axis=0)
    return product + (1 - time if axis == 0 else 0.0)


def side_without_error(kind, axes, axis, sign):
    def flux(*args):
        return sign * slope_without_error(axis, args[-1], *args[:-1])

    def value(*args):
        return exact_without_error(args[-1], *args[:-1])

    if kind == "D":
        return Dirichlet(taking(axes, value))
    if kind == "N":
        return Neumann(taking(axes, flux))
    return Robin(3.0, taking(axes, lambda *args: value(*args) + flux(*args) / 3))


EDGES_2D = [("DD", "DD"), ("DN", "RD"), ("NN", "NN"), ("RR", "RR"), ("NR", "RN")]
EDGES_3D = [("NR", "DR", "RN"), ("RR", "RR", "RR")]


@pytest.mark.parametrize(
    ("scheme", "kinds"),
    [
        *(("peaceman-rachford", kinds) for kinds in EDGES_2D),
        *(("douglas-gunn", kinds) for kinds in EDGES_2D + EDGES_3D),
    ],
    ids=str,
)
def test_moving_fluxes_that_meet_at_edges_leave_no_error(backend, kinds, scheme):
    # With an error of the boundary values at edges T would have one of order dt^2 log(1/h).
    axes, h, dt = len(kinds), 1 / 8, 0.3
    shape = (7, 6, 5)[-axes:]
    sides = {
        "xyz"[axis] + end: side_without_error(kind, axes, axis, sign)
        for axis, pair in enumerate(kinds)
        for end, sign, kind in zip("-+", (-1, 1), pair, strict=True)
    }
    lines = np.ix_(*(np.arange(n) * h for n in shape))[::-1]

    def source(*args):
        *place, t = args
        product = np.prod(np.broadcast_arrays(*place), axis=0)
        return 1 - 4 * t + (2 + 2 * t) * product - place[0]

    solver = HeatADI(
        shape,
        h,
        dt,
        scheme=scheme,
        boundary=sides,
        source=taking(axes, source),
        initial=exact_without_error(0.0, *lines),
        damped_start=False,
        device=backend,
    )
    result = solver.run(2.0)

    assert result.last_dt < dt
    expected = exact_without_error(2.0, *lines)
    np.testing.assert_allclose(result.u, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
