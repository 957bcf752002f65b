"""AdvectionDiffusion: orders in space and time, exact discrete waves, conservation, and GCEIDD."""

import warnings

import numpy as np
import pytest
from parabolic_cases import named

from pysolvers import (
    GCEIDD,
    AdvectionDiffusion,
    ConvectionDiffusion,
    Neumann,
    Robin,
)

DIFFERENCES = ("central", "upwind", "third-order")
DIFFUSION = 0.3


class Wave:
    """u = 1 + sin(k x - 2 t), with a velocity of place and time."""

    def __init__(self, axes, sides):
        self.names, self.sides = "xyz"[:axes], sides
        is_periodic = sides == "periodic"
        self.k = dict.fromkeys("xyz", 2 * np.pi) if is_periodic else {"x": 2.0, "y": 3.0, "z": 1.5}

    def phase(self, t, places):
        return sum(self.k[n] * places[n] for n in self.names) - 2 * t

    def u(self, t, **places):
        return 1 + np.sin(self.phase(t, places))

    def velocity(self, name, t, places):
        """It is along the axis, and depends on its coordinate and on time."""
        sign = {"x": 1.0, "y": -0.7, "z": 0.5}[name]
        return sign * (1 + 0.3 * np.sin(2 * np.pi * places[name]) * np.cos(t))

    def slope(self, name, t, places):
        return (
            0.6
            * np.pi
            * np.cos(2 * np.pi * places[name])
            * np.cos(t)
            * ({"x": 1.0, "y": -0.7, "z": 0.5}[name])
        )

    def source(self, t, **places):
        cosine = np.cos(self.phase(t, places))
        found = -2 * cosine
        for name in self.names:
            k = self.k[name]
            found = found + DIFFUSION * k**2 * np.sin(self.phase(t, places))
            found = found + self.velocity(name, t, places) * k * cosine
            found = found + self.slope(name, t, places) * self.u(t, **places)
        return found

    def boundary(self):
        def flux(name, sign):
            return lambda t, **p: sign * DIFFUSION * self.k[name] * np.cos(self.phase(t, p))

        found, parameters = {}, [*self.names, "t"]
        for k, name in enumerate(self.names):
            for end, sign in (("-", -1), ("+", 1)):
                kind, q = self.sides, flux(name, sign)
                if kind == "some":
                    kind = ("value", "flux", "robin")[(k + (sign > 0)) % 3]
                if kind == "value":
                    side = named(parameters, self.u)
                elif kind == "flux":
                    side = Neumann(named(parameters, q))
                elif kind == "robin":
                    ambient = named(parameters, lambda t, q=q, **p: self.u(t, **p) + q(t, **p) / 2)
                    side = Robin(2.0, ambient)
                else:
                    side = kind
                found[name + end] = side
        return found

    def errors(self, nodes, steps, until=0.4, **options):
        names = list(self.names)
        problem = ConvectionDiffusion(
            [named([*names, "t"], lambda t, n=n, **p: self.velocity(n, t, p)) for n in self.names],
            DIFFUSION,
            extent=((0, 1),) * len(names),
            boundary=self.boundary(),
            source=named([*names, "t"], self.source),
            initial=named(names, lambda **p: self.u(0.0, **p)),
        )
        nodes -= self.sides == "periodic"
        solver = AdvectionDiffusion(
            problem, (nodes,) * len(names), until / steps, damped_start=False, **options
        )
        result = solver.run(until, progress=False)
        places = {n: getattr(result, n).reshape(-1, *[1] * k) for k, n in enumerate(names)}
        error = np.abs(result.u - self.u(until, **places))
        return error.max(), np.sqrt((error**2).mean())


def order(coarse, fine):
    return np.log2(np.array(coarse) / np.array(fine))


def cases():
    """Each kind of sides with each kind of differences, of which some are slow."""
    for sides in ("some", "value", "flux", "robin", "periodic"):
        for differences in DIFFERENCES:
            is_short = sides == "some" or differences == "third-order"
            yield pytest.param(sides, differences, marks=() if is_short else pytest.mark.slow)


@pytest.mark.parametrize(("sides", "differences"), list(cases()))
def test_a_smooth_solution_has_the_order_of_the_differences(sides, differences):
    wave = Wave(2, sides)
    coarse, fine = (wave.errors(n, n - 1, differences=differences) for n in (17, 33))
    assert order(coarse, fine)[1] > (0.75 if differences == "upwind" else 1.75)


@pytest.mark.parametrize(
    "differences",
    [*(pytest.param(d, marks=pytest.mark.slow) for d in DIFFERENCES[:2]), DIFFERENCES[2]],
)
def test_in_three_dimensions(differences):
    wave = Wave(3, "some")
    coarse, fine = (wave.errors(n, 2 * n - 2, differences=differences) for n in (9, 17))
    assert order(coarse, fine)[1] > (0.6 if differences == "upwind" else 1.7)


def test_third_order_of_the_advection():
    """Without diffusion, with steps whose errors are small."""

    def error(n):
        problem = ConvectionDiffusion(
            (1.0, -1.0),
            0.0,
            boundary="periodic",
            initial=lambda x, y: np.sin(2 * np.pi * (x + 2 * y)),
        )
        options = {"differences": "third-order", "damped_start": False}
        result = AdvectionDiffusion(problem, (n, n), 0.1 / 64, **options).run(0.1, progress=False)
        x, y = result.x, result.y[:, None]
        return np.abs(result.u - np.sin(2 * np.pi * (x + 2 * y + 0.1))).max()

    assert order(error(24), error(48)) > 2.8


def symbols(differences, b, a, angle, h):
    """Return the symbols of the lines and of the part that is explicit."""
    sine, cosine = np.sin(angle), np.cos(angle)
    spread = -2 * a * (1 - cosine) / h**2
    if differences == "central":
        return -1j * b * sine / h + spread, 0.0
    lines = -abs(b) * (1 - cosine) / h - 1j * b * sine / h
    if differences == "upwind":
        return lines + spread, 0.0
    third = -abs(b) * (1 - cosine) ** 2 / 3 / h - 1j * b * sine * (4 - cosine) / 3 / h
    return lines + spread, third - lines


@pytest.mark.parametrize("differences", DIFFERENCES)
@pytest.mark.parametrize("axes", [2, 3])
def test_a_wave_is_multiplied_by_the_factor_of_the_scheme(axes, differences):
    """In two dimensions, without an explicit part, the factor is that of Peaceman and Rachford."""
    n, dt = 12, 0.1
    h, names = 1 / n, "xyz"[:axes]
    velocity, diffusion = (1.0, -0.6, 0.3)[:axes], (0.02, 0.05, 0.0)[:axes]
    angles = 2 * np.pi * np.array([2, 5, 3])[:axes] / n
    found = [
        symbols(differences, *each, h) for each in zip(velocity, diffusion, angles, strict=True)
    ]
    z1, z0 = [dt * line for line, _ in found], dt * sum(part for _, part in found)
    p, z = np.prod([1 - each / 2 for each in z1]), z0 + sum(z1)
    factor = 1 + z / p + z0 * z / 2 / p**2
    if axes == 2 and differences != "third-order":
        expected = np.prod([(1 + each / 2) / (1 - each / 2) for each in z1])
        np.testing.assert_allclose(factor, expected, rtol=1e-13)
    phase = sum(angle * np.arange(n).reshape(-1, *[1] * k) for k, angle in enumerate(angles))
    problem = ConvectionDiffusion(
        velocity,
        diffusion,
        extent=((0, 1),) * len(names),
        boundary="periodic",
        initial=np.cos(phase),
    )
    options = {"differences": differences, "damped_start": False}
    solver = AdvectionDiffusion(problem, (n,) * axes, dt, **options)
    for count in (1, 2, 3):
        expected = (factor**count * np.exp(1j * phase)).real
        np.testing.assert_allclose(solver.step().u, expected, rtol=0, atol=1e-12)


def pulse(x, y):
    return np.exp(-60 * ((x - 0.5) ** 2 + (y - 0.4) ** 2))


@pytest.mark.parametrize("differences", DIFFERENCES)
@pytest.mark.parametrize("boundary", ["periodic", "outflow", Neumann()])
def test_u_is_conserved(boundary, differences):
    """A velocity that turns around, and vanishes at the sides unless they are periodic."""
    around = 1.0 if boundary == "periodic" else 0.0
    problem = ConvectionDiffusion(
        (
            lambda x, y, t: around + np.sin(np.pi * x) * np.cos(np.pi * y) * np.cos(t),
            lambda x, y: -np.cos(np.pi * x) * np.sin(np.pi * y),
        ),
        lambda x: 0.01 * (1 + x),
        boundary=boundary,
        initial=pulse,
    )
    solver = AdvectionDiffusion(problem, (20, 24), 0.02, differences=differences)
    weights = [np.ones(24), np.ones(20)]
    if boundary != "periodic":
        for each in weights:
            each[[0, -1]] = 0.5
    before = weights[1] @ solver.u @ weights[0]
    np.testing.assert_allclose(weights[1] @ solver.step(20).u @ weights[0], before, rtol=1e-12)


@pytest.mark.parametrize("courant", [0.7, 1.5])
def test_third_order_differences_are_stable_up_to_their_limit(courant, rng):
    problem = ConvectionDiffusion((1.0, -1.0), 0.0, boundary="periodic")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver = AdvectionDiffusion(
            problem, (16, 16), courant / 16, differences="third-order", damped_start=False
        )
    solver.u = field = rng.standard_normal((16, 16))
    assert np.linalg.norm(solver.step(100).u) <= np.linalg.norm(field)
    with pytest.warns(RuntimeWarning, match=r"Courant number 3 is above 1.5.*take dt <= 0\.0938"):
        solver.dt = 3 / 16


@pytest.mark.parametrize("differences", ["central", "upwind"])
def test_steps_of_any_length_are_stable(differences, rng):
    problem = ConvectionDiffusion((1.0, -1.0), 1e-3, boundary="periodic")
    solver = AdvectionDiffusion(
        problem, (16, 16), 10.0, differences=differences, damped_start=False
    )
    solver.u = field = rng.standard_normal((16, 16))
    assert np.linalg.norm(solver.step(100).u) <= np.linalg.norm(field)


def test_an_outflow_lets_a_pulse_leave():
    problem = ConvectionDiffusion(
        (1.0, 0.0), 1e-3, boundary={"x-": 0.0, "x+": "outflow", "y": Neumann()}, initial=pulse
    )
    solver = AdvectionDiffusion(problem, (33, 65), 0.01, differences="third-order")
    result = solver.run(1.5, progress=False)
    assert np.abs(result.u).max() < 2e-3


def test_errors_beside_those_of_gceidd():
    """A pulse that turns and spreads; the steps of GCEIDD are of first order in time."""
    k, turns = 0.005, 2.0

    def exact(x, y, t):
        wide = 0.01 + 4 * k * t
        along = x + 0.25 * np.cos(turns * t), y + 0.25 * np.sin(turns * t)
        return 0.01 / wide * np.exp(-(along[0] ** 2 + along[1] ** 2) / wide)

    problem = ConvectionDiffusion(
        (lambda y: -turns * y, lambda x: turns * x),
        k,
        extent=((-0.8, 0.8), (-0.8, 0.8)),
        boundary=0.0,
        initial=lambda x, y: exact(x, y, 0.0),
    )
    found = {}
    for name, solver in (
        ("GCEIDD", GCEIDD(problem, (81, 81), 0.0125)),
        *((d, AdvectionDiffusion(problem, (81, 81), 0.0125, differences=d)) for d in DIFFERENCES),
    ):
        result = solver.run(1.0, progress=False)
        found[name] = np.abs(result.u - exact(result.x, result.y[:, None], 1.0)).max()
    assert found["third-order"] < found["central"] < 0.5 * found["GCEIDD"]
    assert found["third-order"] < 0.25 * found["GCEIDD"] < found["upwind"]


def test_gceidd_names_the_solver_of_its_problems():
    problem = ConvectionDiffusion((1.0,) * 3, 0.1, extent=((0, 1),) * 3, boundary=0.0)
    with pytest.raises(ValueError, match="two axes, got 3 axes: use AdvectionDiffusion"):
        GCEIDD(problem, (9, 9), 0.1)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"shape": (9,)}, ValueError, r"shape must be \(ny, nx\)"),
        ({"shape": (9, 9, 9)}, ValueError, "shape must have 2 axes"),
        ({"shape": (3, 9)}, ValueError, "shape must be at least 4"),
        ({"differences": "quick"}, ValueError, "differences must be one of central, upwind, third"),
        ({"dt": 0}, ValueError, "dt must be positive"),
        ({"problem": 1.0}, TypeError, "problem must be a ConvectionDiffusion"),
    ],
)
def test_wrong_arguments_are_named(options, error, text):
    problem = ConvectionDiffusion((1.0, 0.0), 0.1, boundary=0.0)
    given = {"problem": problem, "shape": (9, 9), "dt": 0.1}
    with pytest.raises(error, match=text):
        AdvectionDiffusion(**given | options)


def test_wrong_problems_are_named():
    for velocity in (1.0, (1.0,), (1.0, 2.0, 3.0, 4.0)):
        with pytest.raises(ValueError, match="velocity must be a pair"):
            ConvectionDiffusion(velocity, 0.1, boundary=0.0)
    with pytest.raises(ValueError, match="diffusion must be a number, or one along x and along y"):
        ConvectionDiffusion((1, 2), (1, 2, 3), boundary=0.0)
    with pytest.raises(ValueError, match="extent must be a pair"):
        ConvectionDiffusion((1, 2, 3), 0.1, boundary=0.0)
    with pytest.raises(ValueError, match="both sides along x must be periodic"):
        ConvectionDiffusion((1, 2), 0.1, boundary={"x-": "periodic", "x+": "outflow", "y": 0.0})
