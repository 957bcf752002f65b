"""GCEIDD: every scheme against SciPy, orders of convergence, invariances, restart, errors."""

import itertools
import re

import gceidd_reference
import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.linalg import splu

from pysolvers import GCEIDD, ConvectionDiffusion, ConvergenceError, Dirichlet, Neumann
from pysolvers.papers import gceidd2022
from pysolvers.papers.gceidd2022 import (
    decaying_bump,
    decaying_bump_exact,
    rotating_pulse,
    rotating_pulse_exact,
)
from pysolvers.transport import TransportResult, suggest_dt

SCHEMES = ("cp", "cfd", "mu")
SIDES = {"x-": "west", "x+": "east", "y-": "south", "y+": "north"}
EXTENT = ((0.5, 1.7), (-0.3, 0.6))


def compared(rng, backend, shape, kinds, options, *, steps=7, dt=0.05, dtype=np.float64):
    """Return the solution of a random problem, and the one written with SciPy."""
    nx, ny = shape
    nodes = (ny + 1, nx + 1)
    initial, field = rng.random(nodes), rng.random(nodes)
    velocity = rng.normal(size=nodes), rng.normal(size=(1, nx + 1))
    diffusion = 0.001 + 0.02 * rng.random(nodes), 0.01
    lengths = {"x": ny + 1, "y": nx + 1}
    ends = {side: rng.random(lengths[side[0]]) for side in SIDES}

    def placed(side):
        values = ends[side][:, None] if side[0] == "x" else ends[side]
        if kinds[side] == "dirichlet":
            return Dirichlet(lambda x, y, t: values * (1 + t))
        # The flux is the diffusion across the side times the outward derivative.
        if side[0] == "y":
            return Neumann(lambda t, y, x: diffusion[1] * values * (1 + t))
        across = diffusion[0][:, -1:] if side[1] == "+" else diffusion[0][:, :1]
        return Neumann(lambda t, y: across * (1 + t) * values * (1 + t))

    problem = ConvectionDiffusion(
        (lambda x, y, t: velocity[0] * np.cos(t), velocity[1]),
        (lambda x, y, t: diffusion[0] * (1 + t), diffusion[1]),
        extent=EXTENT,
        source=[(np.cos, field), (2.0, 0.25)],
        boundary={side: placed(side) for side in SIDES},
        initial=initial,
    )
    solver = gceidd2022.GCEIDD(problem, shape=nodes, dt=dt, dtype=dtype, device=backend, **options)
    solver.step(steps)
    spacing = tuple((high - low) / n for (low, high), n in zip(EXTENT, shape, strict=True))
    reference = gceidd_reference.Reference(
        initial,
        spacing,
        dt,
        (lambda t: velocity[0] * np.cos(t), velocity[1]),
        (lambda t: diffusion[0] * (1 + t), diffusion[1]),
        lambda t: np.cos(t) * field + 0.5,
        {SIDES[s]: (kinds[s], lambda t, v=ends[s]: v * (1 + t)) for s in SIDES},
        **{k: v for k, v in options.items() if k != "strips"},
        strips=options.get("strips", (1, 1)),
    )
    return solver.u, reference.step(steps).u


KINDS = {
    name: dict(zip(SIDES, kinds, strict=True))
    for name, kinds in {
        "all known": ["dirichlet"] * 4,
        "none known": ["neumann"] * 4,
        "outflow": ["dirichlet", "neumann", "dirichlet", "neumann"],
        "inflow": ["neumann", "dirichlet", "neumann", "dirichlet"],
        "channel": ["dirichlet", "dirichlet", "neumann", "neumann"],
    }.items()
}
OPTIONS = [
    {"scheme": "cp", "upwind": "modified", "foot": "clamp"},
    {"scheme": "cp", "upwind": "plain", "foot": "extrapolate"},
    {"scheme": "cfd", "foot": "clamp"},
    {"scheme": "cfd", "foot": "extrapolate"},
    {"scheme": "mu", "upwind": "modified", "predictor": "newest"},
    {"scheme": "mu", "upwind": "plain", "predictor": "printed"},
]


@pytest.mark.filterwarnings("ignore:GCEIDD. with .* is unstable")
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(o.values()))
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize(
    ("shape", "strips"),
    [((23, 17), (3, 2)), ((12, 9), (4, 3)), ((5, 40), (1, 11)), ((70, 3), (23, 1))],
)
def test_steps_are_those_of_scipy(rng, backend, options, kinds, shape, strips):
    u, expected = compared(rng, backend, shape, KINDS[kinds], {**options, "strips": strips})

    np.testing.assert_allclose(u, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_many_steps_are_those_of_scipy(rng, backend, scheme):
    options = {"scheme": scheme, "strips": (2, 3)}
    u, expected = compared(rng, backend, (21, 33), KINDS["outflow"], options, steps=150, dt=0.01)

    np.testing.assert_allclose(u, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_single_precision_is_near(rng, backend, scheme):
    options = {"scheme": scheme, "strips": (2, 3)}
    u, expected = compared(
        rng, backend, (41, 33), KINDS["channel"], options, dt=0.01, dtype=np.float32
    )

    assert u.dtype == np.float32
    np.testing.assert_allclose(u, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("dt", [0.002, 3.0])
@pytest.mark.parametrize("kinds", ["none known", "inflow"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("options", OPTIONS[::2], ids=lambda o: "-".join(o.values()))
def test_constant_coefficients_are_those_of_scipy_and_of_arrays(
    rng, backend, options, dtype, kinds, dt
):
    shape, strips = (90, 38), (1, 1)
    nodes = (shape[1] + 1, shape[0] + 1)
    initial = rng.random(nodes)
    velocity, diffusion = (0.7, -0.4), (0.02, 0.01)
    values = {side: 0.3 + 0.1 * k for k, side in enumerate(SIDES)}
    sides = {
        side: Dirichlet(values[side])
        if KINDS[kinds][side] == "dirichlet"
        else Neumann(diffusion[side[0] == "y"] * values[side])
        for side in SIDES
    }

    def solved(velocity, diffusion):
        problem = ConvectionDiffusion(
            velocity, diffusion, extent=EXTENT, boundary=sides, initial=initial
        )
        solver = gceidd2022.GCEIDD(
            problem, shape=nodes, dt=dt, dtype=dtype, device=backend, **options
        )
        return solver.step(2).u

    spacing = tuple((high - low) / n for (low, high), n in zip(EXTENT, shape, strict=True))
    reference = gceidd_reference.Reference(
        initial,
        spacing,
        dt,
        velocity,
        diffusion,
        lambda t: np.zeros(nodes),
        {SIDES[s]: (KINDS[kinds][s], lambda t, v=values[s]: v) for s in SIDES},
        strips=strips,
        **options,
    )
    u = solved(velocity, diffusion)
    expected = reference.step(2).u
    error = 64 * np.finfo(dtype).eps * np.abs(expected).max()
    across = [np.full(n, b) for n, b in zip((nodes[0], nodes[1]), velocity, strict=True)]

    np.testing.assert_allclose(u, expected, rtol=0, atol=max(error, 1e-11))
    for other in (
        (tuple(np.full(nodes, b) for b in velocity), diffusion),
        ((across[0][:, None], across[1]), tuple(np.full(nodes, a) for a in diffusion)),
        ((across[0][:, None], across[1]), diffusion),
    ):
        same = 0 if backend == "cpu" else error
        np.testing.assert_allclose(solved(*other), u, rtol=0, atol=same)


def central(n, h, a):
    """Second differences of the inner nodes of a line, times a."""
    return sparse.diags_array([a / h**2, -2 * a / h**2, a / h**2], offsets=[-1, 0, 1], shape=(n, n))


def test_one_strip_is_the_classic_method(backend):
    """(1 - dt L_x) V = U, (1 - dt L_y) U' = V, by sparse factors of the whole grid."""
    n, a, b, dt = 24, 0.02, (0.8, -0.6), 0.03
    h = 1 / n

    def initial(x, y):
        return np.sin(np.pi * x) * np.sin(2 * np.pi * y)

    problem = ConvectionDiffusion(b, a, initial=initial, boundary=0.0)
    solver = GCEIDD(problem, shape=(n + 1, n + 1), dt=dt, device=backend).step(10)
    factors = []
    for axis in (0, 1):
        star = a / (1 + h * abs(b[axis]) / (2 * a))
        inward = sparse.diags_array(
            [-max(b[axis], 0) / h, abs(b[axis]) / h, min(b[axis], 0) / h],
            offsets=[-1, 0, 1],
            shape=(n - 1, n - 1),
        )
        line = sparse.eye_array(n - 1) - dt * (central(n - 1, h, star) - inward)
        whole = (
            sparse.kron(sparse.eye_array(n - 1), line)
            if axis == 0
            else sparse.kron(line, sparse.eye_array(n - 1))
        )
        factors.append(splu(sparse.csc_array(whole)))
    x = np.linspace(0, 1, n + 1)
    u = initial(x[None, 1:-1], x[1:-1, None]).ravel()
    for _ in range(10):
        u = factors[1].solve(factors[0].solve(u))

    np.testing.assert_allclose(solver.u[1:-1, 1:-1].ravel(), u, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("options", "strips", "least", "most"),
    [
        ({"scheme": "cp", "upwind": "modified"}, 1, 0.9, 1.1),
        ({"scheme": "cfd"}, 1, 0.9, 1.1),
        ({"scheme": "mu", "upwind": "modified"}, 1, 0.9, 1.1),
        ({"scheme": "cp"}, 8, 0.9, 1.1),
        ({"scheme": "cfd"}, 8, 0.9, 1.1),
        ({"scheme": "mu", "predictor": "printed"}, 8, 0.9, 1.1),
        ({"scheme": "mu", "predictor": "newest"}, 8, 0.3, 0.6),  # its predictor errs by O(dt)
    ],
)
def test_order_in_time(options, strips, least, most):
    options = {"upwind": "plain", "strips": strips} | options
    fields = [
        gceidd2022.GCEIDD(decaying_bump(0.05), shape=(65, 65), dt=1 / n, **options).run(1.0).u
        for n in (128, 256, 512, 1024)
    ]
    differences = [np.linalg.norm(b - a) for a, b in itertools.pairwise(fields)]
    orders = np.log2(np.divide(differences[:-1], differences[1:]))

    assert (orders > least).all()
    assert (orders < most).all()


@pytest.mark.parametrize(
    ("scheme", "upwind", "least", "most"),
    [("cp", "modified", 1.5, 2.2), ("cp", "plain", 0.8, 1.1), ("cfd", "plain", 0.8, 1.1)],
)
def test_order_in_space(scheme, upwind, least, most):
    errors = [
        GCEIDD(decaying_bump(0.05), shape=(n + 1, n + 1), dt=1 / 8192, scheme=scheme, upwind=upwind)
        .run(0.25)
        .errors(decaying_bump_exact)[1]
        for n in (16, 32, 64)
    ]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))

    assert (orders > least).all()
    assert (orders < most).all()


@pytest.mark.parametrize(
    ("scheme", "strips"),
    [("cp", 1), ("cp", (3, 4)), ("cfd", 1), ("cfd", (3, 4)), ("mu", 1)],
)
def test_velocity_that_varies_along_itself(scheme, strips):
    """The conservative equation, with a known solution, on three grids with dt ~ h."""

    def velocity(x, y):
        return 0.5 + 0.4 * np.sin(2 * x + y)

    def exact(x, y, t):
        return np.exp(-t) * np.sin(x + 2 * y)

    def source(x, y, t):
        s, c = exact(x, y, t), np.exp(-t) * np.cos(x + 2 * y)
        b, bx, by = velocity(x, y), 0.8 * np.cos(2 * x + y), 0.4 * np.cos(2 * x + y)
        a = 0.03 * (1 + x + y)
        along_x = 0.03 * c - a * s
        along_y = 0.03 * 2 * c - 4 * a * s
        return -s + (bx * s + b * c) + (by * s + 2 * b * c) - along_x - along_y

    problem = ConvectionDiffusion(
        (velocity, velocity),
        lambda x, y: 0.03 * (1 + x + y),
        source=source,
        boundary=Dirichlet(exact),
        initial=lambda x, y: exact(x, y, 0.0),
    )
    errors = [
        GCEIDD(problem, shape=(n + 1, n + 1), dt=0.16 / n, scheme=scheme, strips=strips)
        .run(0.2)
        .errors(exact)[1]
        for n in (16, 32, 64)
    ]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))

    assert (orders > 0.8).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_constant_stays_constant(scheme, backend):
    problem = ConvectionDiffusion(
        (lambda x, y: 1 - 2 * y, lambda x, y: x**2),
        lambda x, y: 0.01 * (1 + x * y),
        boundary={"x": Dirichlet(3.0), "y": Neumann(0.0)},
        initial=3.0,
    )
    solver = GCEIDD(problem, shape=(28, 41), dt=0.02, scheme=scheme, strips=(5, 4), device=backend)

    np.testing.assert_allclose(solver.step(50).u, 3.0, rtol=1e-13)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_mirrored_problem_has_the_mirrored_solution(scheme, backend):
    def solved(sign):
        problem = ConvectionDiffusion(
            (lambda x, y: sign * (0.5 + y), lambda x, y: sign * x),
            0.004,
            extent=((-1, 1), (-1, 1)),
            boundary={"x": Dirichlet(0.5), "y": Neumann(0.1)},
            initial=lambda x, y: np.exp(-((x - sign * 0.3) ** 2 + y**2) / 0.1),
        )
        solver = GCEIDD(
            problem, shape=(25, 31), dt=0.03, scheme=scheme, strips=(3, 4), device=backend
        )
        return solver.step(20).u

    np.testing.assert_allclose(solved(-1.0)[:, ::-1], solved(1.0), rtol=0, atol=1e-13)


def pulse(backend="cpu", make=GCEIDD, **options):
    """Example 2 on a grid of two widths of strips."""
    settings = {"strips": (5, 3), "device": backend} | options
    return make(rotating_pulse(0.01), shape=(30, 38), dt=1 / 256, **settings)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_threads_do_not_change_a_bit(scheme):
    problem = rotating_pulse(0.01)
    fields = [
        GCEIDD(problem, shape=(132, 132), dt=1 / 256, scheme=scheme, strips=9, threads=threads)
        .step(12)
        .u
        for threads in (1, 2, 3)
    ]

    np.testing.assert_array_equal(fields[1], fields[0])
    np.testing.assert_array_equal(fields[2], fields[0])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_splitting_the_steps_changes_nothing(scheme, backend):
    whole = pulse(backend, scheme=scheme).step(101)
    parts = pulse(backend, scheme=scheme)

    for count in (1, 0, 2, 69, 29):
        parts.step(count)

    np.testing.assert_array_equal(parts.u, whole.u)
    assert parts.time == whole.time == 101 / 256


@pytest.mark.parametrize("half", [8, 33])
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (GCEIDD, {"scheme": "cp"}),
        (GCEIDD, {"scheme": "mu"}),
        (GCEIDD, {"dtype": "float32"}),
        (gceidd2022.GCEIDD, {"scheme": "cfd", "foot": "extrapolate"}),
        (gceidd2022.GCEIDD, {"scheme": "mu", "predictor": "newest"}),
        (gceidd2022.GCEIDD, {"scheme": "mu", "predictor": "printed"}),
    ],
)
def test_restart_is_exact(make, options, half, backend, tmp_path):
    whole = pulse(backend, make, **options).step(2 * half)
    pulse(backend, make, **options).step(half).save(tmp_path / "state.npz")

    restarted = make.load(tmp_path / "state.npz", rotating_pulse(0.01)).step(half)

    np.testing.assert_array_equal(restarted.u, whole.u)
    assert restarted.u.dtype == whole.u.dtype
    assert restarted.steps == whole.steps == 2 * half
    assert restarted.settings == whole.settings


def test_restart_needs_a_state_and_the_same_extent(tmp_path):
    solver = pulse().step(2)
    solver.save(tmp_path / "state.npz")
    solver.result().save(tmp_path / "result.npz")

    with pytest.raises(ValueError, match="holds no pysolvers GCEIDD state"):
        GCEIDD.load(tmp_path / "result.npz", rotating_pulse(0.01))
    other = ConvectionDiffusion((1, 1), 0.1, extent=((0, 2), (0, 1)), boundary=0.0)
    with pytest.raises(ValueError, match="problem must have the extent"):
        GCEIDD.load(tmp_path / "state.npz", other)


def test_source_in_two_parts_is_the_source(rng, backend):
    field = rng.random((20, 31))

    def solved(source):
        problem = ConvectionDiffusion((0.3, 0.1), 0.01, source=source, boundary=0.0)
        return GCEIDD(problem, shape=(20, 31), dt=0.05, strips=3, device=backend).step(70).u

    expected = solved(lambda x, y, t: np.cos(t) * field + x * y)

    parts = solved([(np.cos, field), (1.0, lambda x, y: x * y)])
    np.testing.assert_allclose(parts, expected, rtol=0, atol=1e-14)


def test_number_array_and_function_mean_the_same(backend):
    x, y = np.linspace(0, 1, 16), np.linspace(0, 1, 13)[:, None]

    def solved(velocity, diffusion, value):
        problem = ConvectionDiffusion(
            velocity,
            diffusion,
            boundary={"x": Dirichlet(value), "y": Neumann(0.0)},
            initial=lambda x, y: x + y,
        )
        return GCEIDD(problem, shape=(13, 16), dt=0.1, strips=2, device=backend).step(70).u

    expected = solved((lambda x, y: 1 + y, 0.2), lambda x, y: 0.01 * (1 + x), 2.0)

    for velocity, diffusion, value in (
        ((1 + y, np.full((13, 16), 0.2)), (0.01 * (1 + x), 0.01 * (1 + x)), np.full((13, 1), 2.0)),
        (
            (lambda x, y, t: 1 + y + 0 * t, np.array(0.2)),
            lambda x, y, t: 0.01 * (1 + x),
            lambda t: 2,
        ),
        (
            (lambda x, y: 1 + y + 0 * x, lambda t: 0.2),
            0.01 * (1 + x + 0 * y),
            lambda x, y: 2 + 0 * y,
        ),
    ):
        here = solved(velocity, diffusion, value)
        np.testing.assert_allclose(here, expected, rtol=0, atol=1e-13)


def test_run_shortens_the_last_step():
    solver = pulse()

    assert solver.run(10 / 256).steps == 10
    result = solver.run(10.5 / 256)
    assert (result.steps, result.time, result.last_dt) == (11, 10.5 / 256, 0.5 / 256)
    assert "the last of 0.00195" in repr(result)
    assert solver.run(10.5 / 256 * (1 - 1e-15)).steps == 11
    assert solver.run(0.1).time == 0.1
    for run in (solver.run, solver.record):
        with pytest.raises(ValueError, match=r"until must be at least the time 0\.1, got 0\.09"):
            run(0.09)
    assert (solver.dt, solver.steps) == (1 / 256, 11 + 16)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_steps_of_another_length_are_those_of_scipy(rng, backend, scheme):
    """Two steps, then three shorter ones; MU extrapolates again from the state at the change."""
    initial, b, a = rng.random((15, 22)), (0.7, -0.4), 0.02
    problem = ConvectionDiffusion(
        b, a, initial=initial, source=lambda t: 1 + t, boundary=lambda t: 1 - t
    )
    solver = GCEIDD(problem, shape=(15, 22), dt=0.05, scheme=scheme, strips=2, device=backend)
    solver.step(2)
    solver.dt = 0.02
    solver.step(3)

    start, begin = initial, 0.0
    for dt, count in ((0.05, 2), (0.02, 3)):
        reference = gceidd_reference.Reference(
            start,
            (1 / 21, 1 / 14),
            dt,
            b,
            (a, a),
            lambda t: 1 + t,
            {name: ("dirichlet", lambda t: 1 - t) for name in gceidd_reference.NAMES},
            scheme=scheme,
            strips=(2, 2),
        )
        reference.time = begin
        start, begin = reference.step(count).u, reference.time

    assert solver.time == pytest.approx(0.16, rel=1e-15)
    np.testing.assert_allclose(solver.u, start, rtol=0, atol=1e-13 * np.abs(start).max())


def test_changed_step_goes_on_from_a_file(tmp_path):
    solver = pulse(scheme="mu")
    solver.step(3)
    solver.dt = 1 / 500
    solver.step(2).save(tmp_path / "state.npz")
    loaded = GCEIDD.load(tmp_path / "state.npz", rotating_pulse(0.01))

    assert (loaded.dt, loaded.time) == (solver.dt, solver.time)
    np.testing.assert_array_equal(loaded.step(4).u, solver.step(4).u)


def test_flux_is_diffusion_times_outward_derivative(backend):
    """u = x^2 with a(x) = 1 + x: the flux at x = 1 is 2 * 2, and the source 2 + 4 x."""
    problem = ConvectionDiffusion(
        (0, 0),
        (lambda x: 1 + x, 1.0),
        source=lambda x: -(2 + 4 * x),
        boundary={"x-": Neumann(0.0), "x+": Neumann(4.0), "y": Dirichlet(lambda x: x**2)},
        initial=lambda x: x**2,
    )
    u = GCEIDD(problem, shape=(9, 65), dt=0.01, device=backend).step(100).u

    x = np.linspace(0, 1, 65)
    np.testing.assert_allclose(u, np.broadcast_to(x**2, u.shape), rtol=0, atol=3e-2)


def noise_in_strips(rng, dt, scheme, velocity, strips, **options):
    problem = ConvectionDiffusion(
        (velocity, 0.0),
        1.0,
        extent=((0, 36), (0, 4)),
        boundary={"x": 0.0, "y": Neumann()},
        initial=rng.uniform(-1, 1, (5, 37)),
    )
    return GCEIDD(problem, shape=(5, 37), dt=dt, scheme=scheme, strips=(strips, 1), **options)


@pytest.mark.parametrize("strips", [3, 6, 12])
@pytest.mark.parametrize("velocity", [0.0, 0.7])
@pytest.mark.parametrize("scheme", ["cp", "cfd"])
def test_predictions_warn_where_they_are_unstable(scheme, velocity, strips, rng):
    """Noise decays at 0.97 of the limit in the message, and grows at 1.05 of it."""
    with pytest.warns(RuntimeWarning, match="with .* strips along x .* is unstable") as caught:
        noise_in_strips(rng, 15.0, scheme, velocity, strips)
    limit = float(re.search(r"take dt = (\S+) or less", str(caught[0].message)).group(1))

    u = noise_in_strips(rng, 0.97 * limit, scheme, velocity, strips, bound=1e6).step(400).u
    assert np.abs(u).max() < 1e-2
    with pytest.warns(RuntimeWarning, match="is unstable"):
        solver = noise_in_strips(rng, 1.05 * limit, scheme, velocity, strips)
    with pytest.raises(ConvergenceError, match="which initial values, sides and source allow"):
        solver.step(3000)
    assert np.abs(solver.u).max() < 1e5
    with pytest.warns(RuntimeWarning, match="is unstable"):
        noise_in_strips(rng, 0.5, scheme, velocity, strips).dt = 15.0


def limits_of(solver):
    return solver._range.limits(solver.steps)


@pytest.mark.parametrize("calls", [(12,), (5, 1, 6)])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_range_follows_data_in_time(scheme, calls, rng):
    """The range so far, of data that are evaluated here step by step, contains every field."""
    dt, (y, x) = 0.3, (np.linspace(0, 1, 9)[:, None], np.linspace(0, 1, 8)[None, :])
    field = rng.uniform(-1, 1, (9, 8))
    sides = {"x-": lambda y, t: 0 * y + 4 * np.sin(t), "y+": lambda x, t: 2 + np.cos(3 * t) * x}
    problem = ConvectionDiffusion(
        (lambda y, t: y * np.cos(t), 0.5),
        lambda x, y, t: 0.1 + x * t,
        source=[(lambda t: np.cos(2 * t), lambda x, y: np.sin(5 * x) + y), (0.5, field)],
        boundary=sides | {"x+": Neumann(), "y-": 0.5},
        initial=rng.uniform(1.0, 1.2, (9, 8)),
    )
    solver = GCEIDD(problem, shape=(9, 8), dt=dt, scheme=scheme)
    u = solver.u
    lowest, highest, k = u.min(), u.max(), 0
    for count in calls:
        for _ in range(count):
            k += 1
            t = k * dt
            first, second = np.cos(2 * t) * (np.sin(5 * x) + y), 0.5 * field
            given = [0.5, *sides["x-"](y, t).ravel(), *sides["y+"](x, t).ravel()]
            lowest = min(lowest + dt * min(first.min() + second.min(), 0), *given)
            highest = max(highest + dt * max(first.max() + second.max(), 0), *given)
        solver.step(count)
        np.testing.assert_allclose(solver._range.at(k), (lowest, highest), rtol=1e-13)
        assert lowest <= solver.u.min() <= solver.u.max() <= highest
    room = 0.01 * (highest - lowest)
    np.testing.assert_allclose(limits_of(solver), (lowest - room, highest + room), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_value_that_leaves_the_range_of_the_data_ends_the_run(dtype, backend, tmp_path):
    """At both ends, with data in time, and after `load`; nothing moves, so that values stay."""

    def side(t):
        return 5.0 if t == 1 else 4.5

    problem = ConvectionDiffusion((0, 0), 0, boundary={"x": side, "y": Neumann()}, initial=4.0)
    solver = GCEIDD(problem, shape=(7, 9), dt=0.5, dtype=dtype, device=backend)

    def ends(solver, value):
        """Whether a step ends the run if one node has this value."""
        field = np.full((7, 9), 4.25)
        field[3, 4] = value
        solver._state.set_fields({"u": field})
        try:
            solver.step()
        except ConvergenceError as error:
            return "which initial values, sides and source allow" in str(error)
        return False

    assert ends(solver, 4.51)
    solver.step(2)
    values = 3.995, 3.98, 5.005, 5.02
    assert [ends(solver, value) for value in values] == [False, True] * 2
    solver.save(tmp_path / "state")
    loaded = GCEIDD.load(tmp_path / "state", problem)
    assert [ends(loaded, value) for value in values] == [False, True] * 2
    assert not ends(GCEIDD(problem, (7, 9), 0.5, dtype=dtype, bound=1e9, device=backend), 1e8)


@pytest.mark.parametrize(
    ("changes", "ends"),
    [
        ({"boundary": {"x": Neumann(0.1), "y": 1.0}}, (0.0, np.inf)),
        ({"boundary": {"x": Neumann(lambda t: -0.1 * (t > 0.2)), "y": 1.0}}, (-np.inf, 1.0)),
        ({"velocity": (lambda x: x, 0.0)}, (-np.inf, np.inf)),
        ({"velocity": (0.0, lambda x, y, t: x + y * (t > 0.2))}, (-np.inf, np.inf)),
        ({"velocity": (lambda y, t: y * t, lambda x: x**2)}, (0.0, 1.0)),
        ({"source": lambda t: -1.0 * (t < 0.25)}, (-0.2, 1.0)),
    ],
)
def test_range_is_open_where_the_maximum_principle_does_not_hold(changes, ends):
    data = {"velocity": (1.0, 0.5), "diffusion": 0.1, "boundary": 1.0} | changes
    solver = GCEIDD(ConvectionDiffusion(**data), shape=(9, 9), dt=0.1).step(4)

    np.testing.assert_allclose(solver._range.at(4), ends, rtol=1e-12)
    given = [end for end in ends if np.isfinite(end)]
    assert sum(abs(limit) < 2 for limit in limits_of(solver)) == len(given)
    foot = gceidd2022.GCEIDD(
        ConvectionDiffusion(**data), (9, 9), 0.1, scheme="cfd", foot="extrapolate"
    )
    assert limits_of(foot.step(4)) == (-1e12, 1e12)


def test_rounding_errors_of_many_steps_stay_in_the_range(rng):
    """The widths of these ranges are a few hundred rounding errors, or zero."""
    for initial in (300.0, 300 + rng.uniform(-0.01, 0.01, (8, 9))):
        problem = ConvectionDiffusion((3.0, 0.2), 0.1, boundary=Neumann(), initial=initial)
        for dt in (1e-2, 10.0):
            GCEIDD(problem, shape=(8, 9), dt=dt, dtype=np.float32).step(3000)


@pytest.mark.parametrize("predictor", ["newest", "printed"])
def test_mu_in_strips_has_no_limit_of_dt(predictor, rng):
    """Noise decays for any diffusion and Courant number: warnings are errors in the tests."""
    for ratio, courant, strips in itertools.product((0.5, 20.0, 1e4), (0.0, 8.0), (3, (12, 2))):
        problem = ConvectionDiffusion(
            (courant / max(ratio, 1.0), 0.0),
            ratio / max(ratio, 1.0),
            extent=((0, 36), (0, 12)),
            boundary=0.0,
            initial=rng.uniform(-1, 1, (13, 37)),
        )
        solver = gceidd2022.GCEIDD(
            problem, (13, 37), max(ratio, 1.0), scheme="mu", predictor=predictor, strips=strips
        )
        assert np.abs(solver.step(400).u).max() < 0.1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_value_without_strips_is_out_of_the_range_of_the_data(scheme, rng):
    """The maximum principle, which ends a run, holds for noise and a source at any step."""
    for dt in (1e-3, 1.0, 1e3):
        problem = ConvectionDiffusion(
            (3.0, lambda x: np.sin(x)),
            rng.random((12, 15)),
            boundary={"x": Neumann(), "y-": 1.0, "y+": rng.uniform(-1, 1, 15)},
            source=rng.uniform(-1, 1, (12, 15)),
            initial=rng.uniform(-1, 1, (12, 15)),
        )
        GCEIDD(problem, shape=(12, 15), dt=dt, scheme=scheme).step(30)


@pytest.mark.parametrize("kind", [Dirichlet, Neumann])
@pytest.mark.parametrize("side", SIDES)
def test_an_array_of_one_dimension_lies_along_its_side(side, kind, rng):
    """As the function of the coordinate along the side, and as a column on the sides of x."""
    ny, nx = 9, 14
    values = rng.random(ny if side[0] == "x" else nx)
    across = values[:, None] if side[0] == "x" else values[None]
    along = "y" if side[0] == "x" else "x"
    nodes = np.linspace(0, 1, values.size)
    one_dimensional = {
        "x": lambda x, t: values * (1 + 0 * t),
        "y": lambda y, t: values * (1 + 0 * t),
    }

    def solved(given):
        boundary = {name: Dirichlet(0.5) for name in SIDES} | {side: kind(given)}
        problem = ConvectionDiffusion((0.4, -0.3), 0.05, boundary=boundary)
        return GCEIDD(problem, shape=(ny, nx), dt=0.1).step(3).u

    forms = (
        values,
        list(values),
        across,
        lambda x, y: np.interp(y if side[0] == "x" else x, nodes, values),
    )
    expected = solved(forms[0])
    for form in (*forms[1:], one_dimensional[along]):
        np.testing.assert_allclose(solved(form), expected, rtol=0, atol=1e-14)
    with pytest.raises(ValueError, match=rf"boundary {re.escape(side)} must broadcast to"):
        solved(values[:-1])


def test_flux_needs_diffusion():
    problem = ConvectionDiffusion(
        (1, 0), (lambda x: x, 0.1), boundary={"x": Neumann(1.0), "y": 0.0}
    )

    with pytest.raises(ValueError, match="boundary x-: a flux other than 0 needs a positive diff"):
        GCEIDD(problem, shape=(9, 9), dt=0.1)


def test_a_shape_by_position_or_by_keyword():
    problem = rotating_pulse(0.01)
    for solver in (GCEIDD(problem, (10, 13), 0.01), GCEIDD(problem, shape=(10, 13), dt=0.01)):
        assert solver.u.shape == (len(solver.y), len(solver.x)) == (10, 13)
    assert suggest_dt(problem, (10, 13)) == suggest_dt(problem, shape=(10, 13))


def test_callback_sees_the_state_and_may_end():
    seen = []

    def watch(solver):
        seen.append(solver.steps)
        return solver.steps >= 15

    result = pulse().run(1.0, callback=watch, interval=5)

    assert seen == [5, 10, 15]
    assert result.stop_reason == "callback"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_interrupt_leaves_whole_steps(scheme, interrupt_later):
    problem = ConvectionDiffusion((1, 0.5), 0.001, initial=lambda x, y: x * y, boundary=0.0)
    solver = GCEIDD(problem, shape=(41, 41), dt=1e-3, scheme=scheme, strips=4, threads=1)

    interrupt_later()
    with pytest.raises(KeyboardInterrupt):
        solver.step(10**8)

    assert solver.steps > 0
    repeated = GCEIDD(problem, shape=(41, 41), dt=1e-3, scheme=scheme, strips=4, threads=1).step(
        solver.steps
    )
    np.testing.assert_array_equal(solver.u, repeated.u)


def test_solution_is_a_read_only_view():
    with pytest.raises(ValueError, match="read-only"):
        pulse().u[2, 2] = 1


def test_result_tells_what_was_done(tmp_path):
    result = pulse().run(0.25)

    result.save(tmp_path / "result.npz")
    loaded = TransportResult.load(tmp_path / "result.npz")

    assert (result.steps, result.time, result.stop_reason) == (64, 0.25, "reached")
    assert result.courant == pytest.approx(4 * 37 / 256)
    assert result.diffusion_number == pytest.approx(0.01 * 37**2 / 256)
    assert sum(result.seconds.values()) > 0
    for name in ("u", "x", "y"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(result, name))
    assert (loaded.strips, loaded.seconds) == (result.strips, result.seconds)
    assert "30 × 38" in result._repr_html_()
    assert "30 × 38" in repr(result)
    error = np.abs(result.u - rotating_pulse_exact(result.x, result.y[:, None], 0.25, 0.01))
    largest, l2 = result.errors(lambda x, y, t: rotating_pulse_exact(x, y, t, 0.01))
    assert largest == error.max()
    assert l2 == pytest.approx(np.sqrt((error**2).sum() / (37 * 29)))


def test_result_has_a_picture_and_coordinates():
    result = pulse().run(0.1)

    axes = pytest.importorskip("matplotlib") and result.plot()
    titles = [f"t = {result.time:.4g}", "profiles through the highest point"]
    assert [a.get_title() for a in axes] == titles
    data = pytest.importorskip("xarray") and result.to_xarray()
    assert data["u"].dims == ("y", "x")
    np.testing.assert_array_equal(data["u"], result.u)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_growth_keeps_the_state_of_that_step(bad, backend):
    """The source leaves the finite numbers, or the bound, in step 70 of 100."""
    problem = ConvectionDiffusion(
        (0, 0), 0.01, source=lambda t: 1e3 if t > 69.5 else 0.0, initial=0.5, boundary=0.0
    )
    solver = GCEIDD(problem, shape=(13, 13), dt=1.0, bound=100.0, device=backend)
    if np.isnan(bad):
        solver._state.set_fields({"u": np.full((13, 13), np.nan)})
    with pytest.raises(ConvergenceError, match="not at most 100") as error:
        solver.step(100)

    assert solver.steps == error.value.result.steps == (1 if np.isnan(bad) else 70)
    assert error.value.result.stop_reason == "diverged"
    np.testing.assert_array_equal(error.value.result.u, solver.u)


@pytest.mark.each_value
@pytest.mark.parametrize("value", [1e3, -1e3, 1e300])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_growth_on_any_line_is_found(place, value, backend):
    """One node alone leaves the bound, on one of 21 lines along y after the other.

    Lines are swept in groups of 8 on the CPU, the last of which is not full.
    """
    nx, ny = 20, 9
    j = {"first": 1, "middle": ny // 2, "last": ny - 1}[place]
    problem = ConvectionDiffusion((0, 0), 0, boundary=Neumann(0.0))
    for i in range(nx + 1):
        solver = GCEIDD(
            problem,
            shape=(ny + 1, nx + 1),
            dt=0.1,
            strips=1,
            bound=100.0,
            device=backend,
            threads=1,
        )
        field = np.zeros((ny + 1, nx + 1))
        field[j, i] = value
        solver._state.set_fields({"u": field})

        with pytest.raises(ConvergenceError, match="not at most 100 after step 1,"):
            solver.step(2)
        assert np.abs(solver.u[j, i]) > 100, "the other nodes are within the bound"
        assert np.count_nonzero(np.abs(solver.u) > 100) == 1
        solver._state.set_fields({"u": field * (99 / value)})
        assert solver.step(2).steps == 3


@pytest.mark.each_value
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("line", range(21))
def test_nan_on_any_line_is_found(line, threads):
    """The source overflows in the sweep along y, on one line; elimination makes it NaN."""
    source = np.zeros((10, 21))
    source[4, line] = np.finfo(np.float64).max
    problem = ConvectionDiffusion((0, 0), 0, source=source, boundary=Neumann(0.0))
    solver = GCEIDD(problem, shape=(10, 21), dt=2.0, bound=np.inf, threads=threads)

    with pytest.raises(ConvergenceError, match="after step 1,"):
        solver.step()
    assert np.isnan(solver.u[:, line]).any()
    assert np.isfinite(np.delete(solver.u, line, axis=1)).all()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("side", SIDES)
def test_without_coefficients_nothing_moves(scheme, side, backend):
    boundary = {name: Neumann(0.0) for name in SIDES} | {side: Dirichlet(50.0)}
    problem = ConvectionDiffusion((0, 0), 0, boundary=boundary, initial=0.25)
    solver = GCEIDD(problem, shape=(13, 10), dt=0.1, scheme=scheme, strips=2, device=backend)

    u = solver.step(3).u.copy()

    known = {"x-": np.s_[:, 0], "x+": np.s_[:, -1], "y-": np.s_[0], "y+": np.s_[-1]}[side]
    assert (u[known] == 50).all()
    u[known] = 0.25
    np.testing.assert_allclose(u, 0.25, rtol=1e-14)


@pytest.mark.parametrize("kernels", ["fused", "paper"])
@pytest.mark.parametrize("side", SIDES)
def test_bound_holds_on_the_lines_along_y(side, kernels, backend):
    """Their ends included: values of sides across x alone may be larger."""
    boundary = {name: Neumann(0.0) for name in SIDES} | {side: Dirichlet(50.0)}
    problem = ConvectionDiffusion((0, 0), 0, boundary=boundary)
    solver = gceidd2022.GCEIDD(
        problem, shape=(13, 10), dt=0.1, strips=2, bound=10.0, kernels=kernels, device=backend
    )

    if side[0] == "x":
        assert solver.step(3).u.max() == 50
        return
    with pytest.raises(ConvergenceError, match="not at most 10 after step 1,"):
        solver.step(3)


@pytest.mark.parametrize("side", ["y-", "y+"])
def test_bound_holds_on_sides_that_are_not_known(side, backend):
    boundary = {name: Dirichlet(0.0) for name in SIDES} | {side: Neumann(100.0 * 1e-4)}
    problem = ConvectionDiffusion((0, 0), 1e-4, boundary=boundary)
    solver = GCEIDD(problem, shape=(11, 11), dt=0.1, bound=0.01, device=backend)

    with pytest.raises(ConvergenceError, match=r"not at most 0\.01 after"):
        solver.step(100)

    row = {"y-": 0, "y+": -1}[side]
    assert solver.u[row].max() > 0.01
    solver_u = solver.u.copy()
    solver_u[row] = 0
    assert solver_u.max() <= 0.01


def test_half_levels_keep_the_old_values_of_sides_along_x(backend):
    problem = ConvectionDiffusion((1, 1), 0.01, boundary=Dirichlet(lambda t: 1 + t), initial=1.0)
    solver = GCEIDD(problem, shape=(13, 13), dt=0.125, scheme="mu", strips=2, device=backend).step(
        3
    )

    half = solver._state.fields()["older"]
    for row in (0, -1):
        np.testing.assert_array_equal(half[row, 1:-1], 1.25)
    assert (solver.u[[0, -1]] == 1.375).all()


def test_suggested_steps_keep_the_limits():
    problem = ConvectionDiffusion(
        (2.0, lambda x, y: x), 0.01, extent=((0, 2), (0, 1)), boundary=0.0
    )

    slow = ConvectionDiffusion(
        (0.2, lambda x, y: x / 10), 0.01, extent=((0, 2), (0, 1)), boundary=0.0
    )
    fine = suggest_dt(slow, shape=(513, 65), strips=8)
    assert fine.diffusion_limit == 3.8
    assert fine.diffusion_number == pytest.approx(3.8)
    assert "diffusion number     3.8, at most 3.8" in repr(fine)
    assert fine.dt == pytest.approx(3.8 / (0.01 * 512**2))
    solver = GCEIDD(slow, shape=(513, 65), dt=fine.dt, strips=8)
    assert solver.courant == pytest.approx(fine.courant)
    assert solver.diffusion_number == pytest.approx(3.8)
    for scheme in SCHEMES:
        step = suggest_dt(problem, shape=(65, 65), scheme=scheme)
        assert 0.5 <= step.courant <= 1 + 1e-12
    assert suggest_dt(ConvectionDiffusion((0, 0), 1.0, boundary=0.0), shape=(9, 9)).dt == np.inf


@pytest.mark.parametrize("upwind", ["modified", "plain"])
def test_suggested_step_balances_both_errors(upwind):
    """Along x p = h b/(2a) is 1/2 or 4; the numerical diffusions are those of the docstring."""
    for b, p in ((1.0, 0.5), (8.0, 4.0)):
        problem = ConvectionDiffusion((b, 0.0), 1 / 64, boundary=0.0)
        step = suggest_dt(problem, shape=(9, 65), upwind=upwind)

        share = 1.0 if upwind == "plain" else p / (1 + p)
        assert step.courant == pytest.approx(max(0.5, share))
        assert step.numerical_diffusion[0] == pytest.approx(b**2 * step.dt / 2 + b / 64 / 2 * share)
        assert step.numerical_diffusion[1] == 0


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("nodes", [129, 257])
def test_peak_at_the_suggested_step_is_that_of_the_model(backend, scheme, nodes):
    """A Gaussian turns once; its variance grows by the mean diffusion on its path."""
    a, width, radius, turn = 0.001, 0.08, 0.25, np.pi / 2
    problem = ConvectionDiffusion(
        (lambda y: -4 * y, lambda x: 4 * x),
        a,
        extent=((-0.5, 0.5), (-0.5, 0.5)),
        initial=lambda x, y: np.exp(-((x - radius) ** 2 + y**2) / (2 * width**2)),
        boundary=0.0,
    )
    dt = suggest_dt(problem, shape=(nodes, nodes), scheme=scheme).dt
    solver = GCEIDD(problem, shape=(nodes, nodes), dt=dt, scheme=scheme, device=backend)
    peak = solver.run(turn).u.max()

    h, angle = 1 / (nodes - 1), np.linspace(0, 2 * np.pi, 720, endpoint=False)
    b = 4 * radius * np.abs(np.sin(angle))
    p = h * b / (2 * a)
    added = b**2 * dt / 2 + a * p**2 / (1 + p)
    if scheme == "cfd":
        theta = b * dt / h
        added = h**2 * theta * (1 - theta) / (2 * dt)
    exact = width**2 / (width**2 + 2 * a * turn)
    expected = width**2 / (width**2 + 2 * (a + added.mean()) * turn)
    assert peak == pytest.approx(expected, rel=0.05)
    assert peak > exact / 2


GOOD = {"velocity": (1.0, 0.5), "diffusion": 0.01, "boundary": 0.0}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"velocity": 1.0}, ValueError, "velocity must be a pair"),
        ({"velocity": (1, lambda x: x**2, 3)}, ValueError, "for each of x, y, z"),
        ({"velocity": (1, lambda r: r)}, TypeError, "velocity along y: .*among x, y, t, got r"),
        ({"velocity": (1, lambda *a: 3)}, TypeError, r"among x, y, t, got \*a"),
        ({"velocity": (np.nan, 1)}, ValueError, "velocity along x must be finite"),
        ({"velocity": (np.ones(5), 1)}, ValueError, r"velocity along x must broadcast to \(9, 9\)"),
        ({"velocity": (np.ones((2, 9, 9)), 1)}, ValueError, "must broadcast"),
        ({"velocity": ("fast", 1)}, TypeError, "velocity along x must be real numbers"),
        ({"velocity": (1j, 1)}, TypeError, "velocity along x must be real numbers"),
        ({"diffusion": -0.1}, ValueError, "diffusion along x must be at least 0, got -0.1"),
        (
            {"diffusion": (0.1, lambda x, y: x - 2)},
            ValueError,
            "diffusion along y must be at least",
        ),
        ({"extent": ((0, 1), (1, 1))}, ValueError, "extent must be a pair"),
        ({"extent": (0, 1)}, ValueError, "extent must be"),
        ({"source": np.inf}, ValueError, "source must be finite"),
        ({"source": [(1, 2), (3, 4), (5, 6)]}, ValueError, "source must have at most 2 pairs"),
        ({"source": [(1, lambda t: t)]}, TypeError, "must not depend on time"),
        ({"source": [(lambda x, y: x, 1)]}, TypeError, "factor of source: .*among t, got x, y"),
        ({"initial": lambda t: t}, TypeError, "initial must be"),
        ({"initial": [[1, 2], [3, 4]]}, ValueError, "initial must broadcast"),
        ({"boundary": {"x-": "periodic", "x+": 0, "y": 0}}, ValueError, "both sides along x"),
        ({"boundary": {"x": Dirichlet(0)}}, ValueError, "each side must be given"),
        ({"boundary": {"z": Dirichlet(0)}}, ValueError, "the sides are x-, x\\+"),
        ({"boundary": {"x": Dirichlet(0), "x-": Neumann(0)}}, ValueError, "given once"),
        ({"boundary": Dirichlet(np.nan)}, ValueError, "boundary x- must be finite"),
        ({"boundary": Dirichlet(np.ones(4))}, ValueError, "boundary x- must broadcast"),
        ({"shape": (8, 3)}, ValueError, "shape along x must be at least 4, got 3"),
        ({"shape": 8.0}, ValueError, r"shape must be \(ny, nx\)"),
        ({"shape": (8.0, 9)}, TypeError, "shape along y must be an int"),
        ({"shape": (8, 8, 8)}, ValueError, r"shape must be \(ny, nx\)"),
        ({"dt": 0.0}, ValueError, "dt must be positive, got 0.0"),
        ({"dt": np.inf}, ValueError, "dt must be finite"),
        ({"strips": 3}, ValueError, "strips along x must have at least 3 cells each.*got 3"),
        ({"strips": (1, 0)}, ValueError, "strips along y must be at least 1, got 0"),
        ({"scheme": "magic"}, ValueError, "scheme must be one of cp, cfd, mu; got 'magic'"),
        ({"upwind": "x"}, ValueError, "upwind must be one of modified, plain"),
        ({"predictor": "newest"}, TypeError, "predictor"),
        ({"dtype": "int32"}, TypeError, "dtype must be float32 or float64, got int32"),
        ({"bound": 0}, ValueError, "bound must be positive or None, got 0"),
        ({"extent": ((0, 1e-300), (0, 1))}, ValueError, "extent along x: the spacing must be"),
        ({"extent": ((0, 1), (0, 1e300))}, ValueError, "extent along y: the spacing must be"),
        ({"threads": 0}, ValueError, "threads must be in"),
        ({"device": "abacus"}, ValueError, "device must be"),
    ],
)
def test_bad_input_is_refused(options, error, message):
    problem_options = ("velocity", "diffusion", "extent", "source", "initial", "boundary")
    given = GOOD | {k: v for k, v in options.items() if k in problem_options}
    rest = {k: v for k, v in options.items() if k not in problem_options}

    def make():
        problem = ConvectionDiffusion(given.pop("velocity"), given.pop("diffusion"), **given)
        return GCEIDD(problem, **{"shape": (9, 9), "dt": 0.1, **rest})

    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("option", "choices"),
    [
        ("predictor", "newest, printed"),
        ("foot", "clamp, extrapolate"),
        ("kernels", "fused, paper"),
        ("strategy", "3s, naive"),
    ],
)
def test_bad_options_of_the_paper_are_refused(option, choices):
    with pytest.raises(ValueError, match=f"{option} must be one of {choices}"):
        pulse(make=gceidd2022.GCEIDD, **{option: "x"})


def test_bad_values_at_a_later_time_are_refused():
    def source(x, y, t):
        return x * y if t < 0.35 else np.full((9, 9), np.nan)

    solver = GCEIDD(
        ConvectionDiffusion((1, 1), 0.1, source=source, boundary=0.0), shape=(9, 9), dt=0.1
    ).step(3)

    with pytest.raises(ValueError, match=r"source must be finite at time 0\.4"):
        solver.step()
    assert solver.steps == 3


def test_solver_needs_a_problem():
    with pytest.raises(TypeError, match="problem must be a ConvectionDiffusion, got str"):
        GCEIDD("stir", shape=(9, 9), dt=0.1)
    with pytest.raises(ValueError, match="count must be at least 0, got -1"):
        pulse().step(-1)


@pytest.mark.parametrize("idle", ["x", "y"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", ["dirichlet", "neumann"])
def test_sweep_without_velocity_and_diffusion_is_that_of_zeros_at_all_nodes(
    idle, scheme, kind, rng
):
    """Zeros that are one value let the CPU leave out a sweep; those of an array do not."""
    shape = (21, 18)
    initial, ends = rng.random(shape), rng.random((2, 21, 1))
    other = Dirichlet if kind == "dirichlet" else Neumann
    sides = {
        "x-": Dirichlet(lambda t: ends[0] * (1 + t)),
        "x+": other(0.0),
        "y-": other(0.0) if idle == "x" else Dirichlet(lambda x, t: x + t),
        "y+": 0.5,
    }

    def solution(zero, bound=None):
        first, second = ((zero, 0.3), (zero, 0.02)) if idle == "x" else ((0.3, zero), (0.02, zero))
        problem = ConvectionDiffusion(first, second, boundary=sides, initial=initial)
        strips = (1, 3) if idle == "x" else (3, 1)
        return GCEIDD(problem, shape=shape, dt=0.02, scheme=scheme, strips=strips, bound=bound)

    found, expected = solution(0.0).step(5), solution(np.zeros(shape)).step(5)
    np.testing.assert_allclose(found.u, expected.u, rtol=0, atol=1e-15)
    with pytest.raises(ConvergenceError) as error:
        solution(0.0, bound=0.5).step(3)
    assert (error.value.result.stop_reason, error.value.result.steps) == ("diverged", 1)
