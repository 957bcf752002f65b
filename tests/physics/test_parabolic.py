"""ParabolicADI: orders in space and time, stability, prices of options, exact discrete waves."""

import itertools
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from parabolic_cases import (
    HESTON,
    SCHEMES,
    Wave,
    heston_call,
    heston_call_by_one_integral,
    heston_mesh,
    heston_solver,
)
from scipy.interpolate import CubicSpline

from pysolvers import Neumann, ParabolicADI, Robin

# Nodes of the coarser grid: as few as show the order.
NODES = {1: 21, 2: 13, 3: 9}
SIDES = ("value", "flux", "robin", "some", "periodic")


def order(coarse, fine):
    return np.log2(np.array(coarse) / np.array(fine))


def cases():
    """Each scheme with each kind of sides, of which the long ones are slow."""
    for axes, sides, scheme in itertools.product((1, 2, 3), SIDES, SCHEMES):
        is_one = (sides, scheme) == ("value", SCHEMES[2])
        is_short = axes < 3 and (sides == "some" or is_one or (axes, scheme) == (1, SCHEMES[0]))
        marks = () if is_short else pytest.mark.slow
        yield pytest.param(axes, sides, scheme, marks=marks)
    yield 3, "value", "douglas"


@pytest.mark.parametrize(("axes", "sides", "scheme"), list(cases()))
def test_a_smooth_solution_is_of_order_two(axes, sides, scheme):
    """Coefficients, source and sides change with place and time; the grid is not even."""
    wave, n = Wave(axes, sides, mixed=scheme != "douglas"), NODES[axes]
    found = [wave.errors(k, k - 1, scheme=scheme, damped_start=False) for k in (n, 2 * n - 1)]
    largest, mean = order(*found)
    assert mean > 1.7
    assert largest > 1.5


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("even", [False, True])
def test_coefficients_that_do_not_change_with_time_have_kept_factors(scheme, even):
    """The order in time alone is that of the whole: the grid is finer by the same factor."""
    wave = Wave(2, "some", mixed=scheme != "douglas", varies=False)
    found = [
        wave.errors(k, (k - 1) // 2, scheme=scheme, even=even, damped_start=False) for k in (17, 33)
    ]
    assert order(*found)[1] > 1.8


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_damped_start_leaves_the_order_two(scheme):
    wave = Wave(2, "periodic", mixed=scheme != "douglas")
    found = [wave.errors(k, k - 1, scheme=scheme, damped_start=True) for k in (17, 33)]
    assert order(*found)[1] > 1.75


FACTORS = {
    "douglas": lambda z0, z, p, theta: 1 + z / p,
    "craig-sneyd": lambda z0, z, p, theta: 1 + z / p + z0 * z / 2 / p**2,
    "modified-craig-sneyd": lambda z0, z, p, theta: (
        1 + z / p + (theta * z0 + (0.5 - theta) * z) * z / p**2
    ),
    "hundsdorfer-verwer": lambda z0, z, p, theta: 1 + 2 * z / p - z / p**2 + z**2 / 2 / p**2,
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_wave_is_multiplied_by_the_factor_of_the_scheme(axes, scheme):
    """The factors of In 't Hout and Welfert (2009), with the symbols of the differences."""
    n, dt, theta, reaction = 12, 0.4, 0.6, -0.2
    names, h = "xyz"[:axes], 1 / n
    diffusion = {"xx": 1.0, "xy": 0.7, "yy": 0.5, "xz": -0.3, "yz": 0.2, "zz": 0.8}
    diffusion = {k: a for k, a in diffusion.items() if set(k) <= set(names)}
    advection = dict(zip(names, (2.0, -1.0, 0.5), strict=False))
    angles = dict(zip(names, 2 * np.pi * np.array([2, 5, 1]) / n, strict=False))
    parts = [
        -diffusion[2 * k] * 4 * np.sin(angles[k] / 2) ** 2 / h**2
        + 1j * advection[k] * np.sin(angles[k]) / h
        + reaction / axes
        for k in names
    ]
    z0 = dt * sum(
        -a * np.sin(angles[k[0]]) * np.sin(angles[k[1]]) / h**2
        for k, a in diffusion.items()
        if k[0] != k[1]
    )
    z, p = z0 + dt * sum(parts), np.prod([1 - theta * dt * part for part in parts])
    phase = sum(angles[k] * np.arange(n).reshape(-1, *[1] * axis) for axis, k in enumerate(names))
    start = partial(
        ParabolicADI,
        (n,) * axes,
        extent=((0, 1),) * axes,
        diffusion=diffusion,
        advection=advection,
        reaction=reaction,
        boundary="periodic",
        initial=np.cos(phase),
        dt=dt,
        scheme=scheme,
        theta=theta,
    )
    solver = start(damped_start=False)
    factor = FACTORS[scheme](z0, z, p, theta)
    for count in (1, 2, 3):
        expected = (factor**count * np.exp(1j * phase)).real
        np.testing.assert_allclose(solver.step().u, expected, rtol=0, atol=1e-12)
    damped = 1.0
    for part in parts:
        damped = damped / (1 - dt / 2 * part)
    solver = start(damped_start=True)
    expected = ((damped * (1 + z0 / 2)) ** 2 * np.exp(1j * phase)).real
    np.testing.assert_allclose(solver.step().u, expected, rtol=0, atol=1e-12)
    expected = (factor * (damped * (1 + z0 / 2)) ** 2 * np.exp(1j * phase)).real
    np.testing.assert_allclose(solver.step().u, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("dt", [0.1, 1e4])
def test_steps_of_any_length_are_stable_with_mixed_derivatives(dt, axes, scheme, rng):
    """The largest mixed coefficients of a parabolic equation, with the default theta."""
    names = "xyz"[:axes]
    vector = dict(zip(names, (1.0, 0.7, 0.5), strict=False))
    diffusion = {
        p + q: (1 if p == q else 2) * vector[p] * vector[q]
        for k, q in enumerate(names)
        for p in names[: k + 1]
    }
    field = rng.standard_normal((8,) * axes)
    solver = ParabolicADI(
        (8,) * axes,
        spacing=0.1,
        diffusion=diffusion,
        boundary="periodic",
        initial=field,
        dt=dt,
        scheme=scheme,
        damped_start=False,
    )
    size = np.linalg.norm(field)
    for _ in range(3):
        found = np.linalg.norm(solver.step(5).u)
        assert found <= size * (1 + 1e-12)
        size = found


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_jump_is_damped_along_both_axes(scheme):
    """Without a damped start the shortest waves hardly decay; Neumann sides keep the mean."""
    field = np.where(np.add.outer(np.arange(24), np.arange(24)) % 2, 1.0, -1.0)
    sizes = {}
    for damped in (False, True):
        solver = ParabolicADI(
            (24, 24),
            spacing=1 / 23,
            diffusion={"xx": 1.0, "yy": 1.0},
            boundary=Neumann(),
            initial=field,
            dt=0.5,
            scheme=scheme,
            damped_start=damped,
        )
        sizes[damped] = np.abs(solver.step(4).u).max()
    assert sizes[True] < 1e-4 < 0.5 < sizes[False]
    auto = ParabolicADI(
        (24, 24),
        spacing=1 / 23,
        diffusion={"xx": 1.0, "yy": 1.0},
        boundary=Neumann(),
        initial=field,
        dt=0.5,
        scheme=scheme,
    )
    assert auto.step(4).result().damped_start


@pytest.mark.parametrize("end", ["low", "high"])
def test_a_linear_side_is_of_order_two(end):
    """u_t = x u_xx + b u_x on 0 .. 1, at whose end 0 the equation has no second derivative."""

    def error(n):
        line = np.linspace(0, 1, n) ** 1.3
        sign = 1.0
        if end == "high":
            line, sign = 1 - line[::-1], -1.0
        distance = (lambda x: x) if end == "low" else (lambda x: 1 - x)
        sides = {"x-": "linear", "x+": lambda t: np.exp(-t) * np.cos(1.0)}
        if end == "high":
            sides = {"x-": sides["x+"], "x+": sides["x-"]}

        def source(x, t):
            d = distance(x)
            return np.exp(-t) * (-np.cos(d) + d * np.cos(d) + 0.8 * np.sin(d))

        solver = ParabolicADI(
            (n,),
            coordinates=[line],
            diffusion={"xx": distance},
            advection={"x": 0.8 * sign},
            source=source,
            boundary=sides,
            initial=lambda x: np.cos(distance(x)),
            dt=0.5 / (n - 1),
        )
        result = solver.run(0.5, progress=False)
        return abs(result.u - np.exp(-0.5) * np.cos(distance(result.x))).max()

    assert order(error(33), error(65)) > 1.8


@pytest.mark.parametrize("varies", [False, True])
@pytest.mark.parametrize("end", ["low", "high"])
def test_differences_are_exact_for_parabolas(end, varies, rng):
    """Where the diffusion vanishes at a linear side, on nodes of any distance."""
    line = np.cumsum(rng.uniform(0.5, 2.0, 9))
    sign = 1.0
    if end == "high":
        line, sign = -line[::-1], -1.0
    first = line[0] if end == "low" else line[-1]

    def speed(t=0.0):
        return 0.8 * sign * (1 + t * varies)

    sides = {"x-": "linear", "x+": lambda x: 1 + x + x**2}
    solver = ParabolicADI(
        (9,),
        coordinates=[line],
        diffusion={"xx": lambda x: abs(x - first)},
        advection={"x": (lambda t: speed(t)) if varies else speed()},
        source=lambda x, t: -2 * abs(x - first) - speed(t) * (1 + 2 * x),
        boundary=sides if end == "low" else {"x-": sides["x+"], "x+": "linear"},
        initial=sides["x+"],
        dt=0.3,
        damped_start=False,
    )
    expected = 1 + line + line**2
    np.testing.assert_allclose(solver.step(5).u, expected, rtol=1e-12)
    assert "linear" in solver.boundary.values()


@pytest.mark.parametrize("number", HESTON)
def test_two_formulas_for_heston_calls_agree(number):
    parameters, _ = HESTON[number]
    for spot, v in ((60.0, 0.02), (100.0, 0.1), (170.0, 0.3)):
        price = heston_call(spot, v, parameters)
        assert abs(price - heston_call_by_one_integral(spot, v, parameters)) < 1e-6


@pytest.mark.parametrize(
    "number", [1, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 4))]
)
def test_heston_calls_have_the_prices_of_the_formula(number):
    """The four sets of In 't Hout and Foulon (2010) on 200 x 100 nodes, at the mean variance."""
    parameters, mesh = HESTON[number]
    s, v = heston_mesh((200, 100), mesh)
    expiry = parameters[-1]
    options = {"dt": expiry / 100, "scheme": "modified-craig-sneyd", "damped_start": False}
    result = heston_solver(parameters, s, v, **options).run(expiry, progress=False)
    spots = np.linspace(50, 200, 16)
    at_mean = CubicSpline(v[:60], result.u[:60])(parameters[1])
    exact = [heston_call(spot, parameters[1], parameters) for spot in spots]
    np.testing.assert_allclose(CubicSpline(s, at_mean)(spots), exact, rtol=0, atol=1e-3)


def test_the_page_on_options_gives_the_price():
    page = (Path(__file__).parents[2] / "docs" / "options.md").read_text()
    names = {}
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(compile(code, "options.md", "exec"), names)
    x, y = names["x"], names["y"]
    found = CubicSpline(x, CubicSpline(y, names["price"])(0.04))(100.0)
    assert found == pytest.approx(heston_call(100.0, 0.04, HESTON[1][0]), abs=3e-3)


def test_problems_of_a_batch_are_those_of_one_each(rng):
    """Two axes of a batch; coefficients, sides and source of several shapes."""
    xx, ambient = 1 + rng.random((3, 2, 1, 1)), rng.random((3, 2, 7))
    source, initial = rng.random((2, 6, 7)), rng.random((3, 1, 6, 7))
    data = {
        "diffusion": {"xx": xx, "xy": 0.4, "yy": rng.random((6, 7)) + 0.5},
        "advection": {"x": lambda y: y},
        "reaction": rng.random((3, 1, 1, 1)),
        "source": source,
        "boundary": {"x": "linear", "y-": Robin(0.5, ambient), "y+": lambda x, t: xx[..., :1] * t},
        "initial": initial,
        "spacing": 0.2,
        "dt": 0.05,
    }
    whole = ParabolicADI((6, 7), batch=(3, 2), **data).step(3).u
    for k, m in itertools.product(range(3), range(2)):
        own = data | {
            "diffusion": data["diffusion"] | {"xx": xx[k, m]},
            "reaction": data["reaction"][k, 0],
            "source": source[m],
            "boundary": data["boundary"]
            | {
                "y-": Robin(0.5, ambient[k, m]),
                "y+": lambda x, t, k=k, m=m: xx[k, m] * t + 0 * x,
            },
            "initial": initial[k, 0],
        }
        np.testing.assert_allclose(ParabolicADI((6, 7), **own).step(3).u, whole[k, m], atol=1e-13)


def test_float32_and_threads():
    wave = Wave(2, "some")
    assert wave.errors(17, 8, dtype="float32")[0] < 3 * wave.errors(17, 8)[0]
    options = {"spacing": 0.01, "diffusion": {"xx": 1.0, "xy": 1.0, "yy": 2.0}, "dt": 0.1}
    field = np.random.default_rng(3).random((300, 200))
    found = [
        ParabolicADI(
            (300, 200), boundary={"x": 0.0, "y": "linear"}, initial=field, threads=n, **options
        )
        .step(2)
        .u
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("sides", [0.5, Neumann(0.2), {"x": "periodic", "y": "linear"}])
@pytest.mark.parametrize("mixed", [0.0, 0.4])
def test_steps_of_a_call_give_the_bits_of_one_each(mixed, sides, rng, monkeypatch):
    """The pass that adds the change also makes F of the next step: not where something changes."""
    monkeypatch.setattr("pysolvers.parabolic._operators.ParabolicOperators.adds_with_rate", True)

    def solver():
        return ParabolicADI(
            (9, 11),
            extent=((0, 1), (0, 1)),
            diffusion={"xx": 1.0, "xy": mixed, "yy": 1.0},
            source=lambda x, t: x * t,
            boundary=sides,
            initial=start,
            dt=1e-3,
            scheme="douglas",
        )

    start = rng.random((9, 11))
    one, many = solver(), solver()
    for change in ("dt", "u", "nothing"):
        many.step(4)
        for _ in range(4):
            one.step()
        np.testing.assert_array_equal(many.u, one.u)
        for each in (one, many):
            if change == "dt":
                each.dt = 5e-4
            if change == "u":
                each.u = start


def test_a_constant_is_kept_between_insulated_linear_and_periodic_sides():
    for boundary in ({"x": Neumann(), "y": "linear"}, {"x": "periodic", "y": Neumann()}):
        solver = ParabolicADI(
            (9, 8),
            spacing=0.1,
            diffusion={"xx": lambda x: 1 + x, "xy": 0.5, "yy": 1.0},
            advection={"x": 3.0, "y": -2.0},
            boundary=boundary,
            initial=7.0,
            dt=0.3,
        )
        np.testing.assert_allclose(solver.step(20).u, 7.0, rtol=1e-13)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"diffusion": 1.0}, TypeError, "diffusion must be a mapping"),
        ({"diffusion": {"yx": 1.0}}, ValueError, "'yx' is 'xy', given once"),
        ({"diffusion": {"zz": 1.0}}, ValueError, "diffusion: the keys are xx, xy, yy"),
        ({"diffusion": {"xx": -1.0}}, ValueError, "diffusion xx must be at least 0"),
        ({"diffusion": {"xx": 1.0, "xy": 3.0, "yy": 1.0}}, ValueError, "not parabolic"),
        ({"advection": {"xx": 1.0}}, ValueError, "advection: the keys are x, y"),
        ({"boundary": {"x": "linear"}}, ValueError, "y-, y\\+ are missing"),
        ({"boundary": {"x-": "periodic", "x+": 0.0, "y": 0.0}}, ValueError, "both sides along x"),
        ({"boundary": "bent"}, ValueError, "periodic, linear"),
        ({"theta": 0.0}, ValueError, "theta must be above 0 and at most 1 or None, got 0"),
        ({"theta": 2.0}, ValueError, "theta must be above 0 and at most 1 or None, got 2"),
        ({"scheme": "strang"}, ValueError, "scheme must be one of douglas"),
        ({"shape": (2, 9)}, ValueError, "shape must be at least 3"),
        ({"source": lambda x, s: x}, TypeError, "source: the parameters"),
        ({"initial": lambda t: t}, TypeError, "leave t out"),
        ({"diffusion": {"yy": 1.0}, "boundary": Neumann(1.0)}, ValueError, "flux other than 0"),
        ({"diffusion": {"yy": 1.0}, "boundary": Robin(1.0)}, ValueError, "flux other than 0"),
        ({"extent": ((0, 1), (0, 1))}, TypeError, "got extent and spacing"),
        ({"spacing": None}, TypeError, "one of extent, spacing and coordinates, got none"),
        (
            {"initial": np.where(np.arange(72).reshape(8, 9) == 21, np.nan, 0.0)},
            ValueError,
            r"initial must be finite, got nan at \(2, 3\)",
        ),
        ({"batch": 0}, ValueError, "batch must be at least 1"),
    ],
)
def test_wrong_arguments_are_named(options, error, text):
    given = {
        "shape": (8, 9),
        "spacing": 0.1,
        "diffusion": {"xx": 1.0, "yy": 1.0},
        "boundary": 0.0,
        "dt": 0.1,
    }
    with pytest.raises(error, match=text):
        ParabolicADI(**given | options)


def test_sides_of_another_kind_are_named_by_load(tmp_path):
    data = {"diffusion": {"xx": 1.0}}
    solver = ParabolicADI((9,), spacing=0.1, dt=0.1, boundary={"x-": Robin(1.0), "x+": 0.0}, **data)
    solver.save(tmp_path / "solver.npz")

    rule = r"boundary x\+ must be Dirichlet as when the state was saved, got Neumann or Robin"
    with pytest.raises(ValueError, match=rule):
        ParabolicADI.load(tmp_path / "solver.npz", boundary=Neumann(), **data)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("shape", [(6, 7), (5, 6, 7)])
def test_a_quadratic_steady_state_is_kept_between_sides_with_fluxes(shape, scheme):
    """Differences are exact for it, mixed ones at sides with fluxes and where two meet, too."""
    names = "xyz"[: len(shape)]
    a = dict(zip(names, (1.0, 2.0, 0.5), strict=False))
    slopes, bends = np.array([0.3, -0.2, 0.5]), np.array([[7, 9, -6], [9, -4, 8], [-6, 8, 2]]) / 10

    def slope(axis, at):
        return slopes[axis] + sum(bends[axis, k] * x for k, x in enumerate(at))

    def u(*at):
        return sum(0.5 * (slopes[k] + slope(k, at)) * x for k, x in enumerate(at))

    def called(text):
        """Return a function of the coordinates with their names."""
        return eval(f"lambda {', '.join(names)}: {text}", {"u": u, "slope": slope})

    at = ", ".join(names)
    of_z = {"z-": called(f"u({at})"), "z+": Neumann(called(f"0.5 * slope(2, ({at},))"))}
    mixed = {one + two: 0.3 for one, two in itertools.combinations(names, 2)}
    curvature = sum(a[name] * bends[k, k] for k, name in enumerate(names))
    curvature += sum(0.3 * bends["xyz".index(j), "xyz".index(k)] for j, k in mixed)
    solver = ParabolicADI(
        shape,
        spacing=0.25,
        diffusion={2 * name: value for name, value in a.items()} | mixed,
        source=-curvature,
        boundary={
            "x-": Neumann(called(f"-slope(0, ({at},))")),
            "x+": Robin(2.0, called(f"u({at}) + 0.5 * slope(0, ({at},))")),
            "y-": Neumann(called(f"-2 * slope(1, ({at},))")),
            "y+": called(f"u({at})"),
        }
        | (of_z if "z" in names else {}),
        initial=called(f"u({at})"),
        dt=0.1,
        scheme=scheme,
    )
    start = solver.u.copy()
    np.testing.assert_allclose(solver.step(5).u, start, rtol=0, atol=1e-13)


@pytest.mark.parametrize("nz", [4, 6])
def test_mixed_derivatives_at_fluxes_between_given_values(nz):
    """An array as coefficient of u_xy, whose planes z = 0 and z = 1 have given values."""
    rng = np.random.default_rng(0)
    shape = (nz, 5, 6)
    mixed, start = rng.uniform(-0.4, 0.4, (nz, 1, 1)), rng.standard_normal(shape)
    flux_x, flux_y = rng.standard_normal((nz, 5)), rng.standard_normal((nz, 6))

    def solved(mixed, start):
        solver = ParabolicADI(
            shape,
            extent=[(0, 1)] * 3,
            diffusion={"xx": 1.0, "yy": 1.0, "zz": 1e-12, "xy": mixed},
            boundary={"x-": Neumann(flux_x), "x+": 0.5, "y": Neumann(flux_y), "z": 0.0},
            initial=start,
            dt=0.01,
        )
        solver.step(3)
        return solver.u

    u = solved(np.broadcast_to(mixed, shape), start)

    for k in range(1, nz - 1):  # without coupling along z each plane has its own number
        plane = solved(float(mixed[k, 0, 0]), start)[k]
        np.testing.assert_allclose(u[k], plane, rtol=1e-9, atol=1e-9)
