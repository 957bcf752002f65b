"""Heat conduction against exact solutions and balances; runs, restart, results, errors."""

import json

import numpy as np
import pytest
from scipy.special import erfc

from pysolvers import BackendError, ConvergenceError, Dirichlet, HeatADI, Neumann, Robin
from pysolvers.cases.heat import cooled_slab
from pysolvers.heat import HeatResult
from pysolvers.papers import wei2013
from pysolvers.papers.wei2013 import heated_plate

# For tests of states that do not depend on the length of a step, and of errors.
LARGE_STEPS = pytest.mark.filterwarnings(
    "ignore:HeatADI.*too large for the solution:RuntimeWarning"
)


def lines_of(shape, spacing):
    """Coordinates x, y[, z] that broadcast to the shape."""
    return np.ix_(*(np.arange(n) * spacing for n in shape))[::-1]


def weights(shape, kinds="N"):
    """Volume of each node's cell: half of one at a side, unless the axis is periodic."""
    field = np.ones(shape)
    for axis in range(len(shape)):
        if kinds[axis % len(kinds)] == "N":
            for end in (0, -1):
                np.moveaxis(field, axis, 0)[end] /= 2
    return field


STEADY = {
    "DD": {
        "x": Dirichlet(lambda x, y: 1 + 2 * x - y),
        "y": Dirichlet(lambda x, y: 1 + 2 * x - y),
    },
    "ND": {
        "x-": Neumann(-2.0),
        "x+": Neumann(2.0),
        "y": Dirichlet(lambda x, y: 1 + 2 * x - y),
    },
    "RN": {
        "x-": Robin(4.0, lambda x, y: 1 - y - 2 / 4),
        "x+": Dirichlet(lambda x, y: 1 + 2 * x - y),
        "y-": Neumann(1.0),
        "y+": Neumann(-1.0),
    },
}


@pytest.mark.parametrize("boundary", STEADY.values(), ids=STEADY)
@pytest.mark.parametrize("scheme", ["peaceman-rachford", "douglas-gunn"])
@LARGE_STEPS
def test_linear_profile_stays(backend, boundary, scheme):
    x, y = lines_of((23, 31), 0.1)
    profile = 1 + 2 * x - y
    solver = HeatADI(
        (23, 31), 0.1, 0.5, scheme=scheme, boundary=boundary, initial=profile, device=backend
    )

    np.testing.assert_allclose(solver.step(40).u, profile, rtol=0, atol=2e-13)


def test_flux_through_layers(backend):
    # Across nodes in series the same flux passes every face.
    rng = np.random.default_rng(5)
    k = np.broadcast_to(rng.uniform(0.1, 2, 30), (9, 30)).copy()
    drops = (1 / k[0, :-1] + 1 / k[0, 1:]) / 2
    profile = np.broadcast_to(1 - np.concatenate([[0], drops.cumsum()]) / drops.sum(), k.shape)
    solver = HeatADI(
        k.shape,
        0.2,
        0.3,
        diffusivity=k,
        boundary={"x-": Dirichlet(1), "x+": Dirichlet(0), "y": Neumann()},
        initial=profile,
        device=backend,
    )

    np.testing.assert_allclose(solver.step(40).u, profile, rtol=0, atol=1e-13)


@pytest.mark.filterwarnings("ignore:HeatADI. in (two|three) dimensions:RuntimeWarning")
@pytest.mark.parametrize("shape", [(12, 19), (8, 9, 10)])
@pytest.mark.parametrize("varied", [False, True])
def test_heat_stays_without_flux(backend, rng, shape, varied):
    k = rng.uniform(0.1, 2, shape) if varied else 0.7
    start = rng.random(shape)
    solver = HeatADI(
        shape, 0.1, 0.02, diffusivity=k, boundary=Neumann(), initial=start, device=backend
    )
    volume = weights(shape)

    heat = (volume * solver.step(50).u).sum()

    assert heat == pytest.approx((volume * start).sum(), rel=1e-13)


@pytest.mark.filterwarnings("ignore:HeatADI. in two dimensions:RuntimeWarning")
def test_heat_stays_in_a_periodic_box(backend, rng):
    start = rng.random((12, 19))
    k = rng.uniform(0.1, 2, start.shape)
    solver = HeatADI(
        start.shape, 0.1, 0.02, diffusivity=k, boundary="periodic", initial=start, device=backend
    )

    assert solver.step(50).u.sum() == pytest.approx(start.sum(), rel=1e-13)


def test_inflow_and_source_are_what_warms(backend):
    spacing, dt, steps = 0.25, 0.1, 30
    shape = (9, 13)
    boundary = {
        "x-": Neumann(lambda t: 1 + t),
        "x+": Neumann(),
        "y-": Neumann(0.5),
        "y+": Neumann(),
    }
    solver = HeatADI(
        shape, spacing, dt, boundary=boundary, source=lambda x, y: 0 * x * y + 0.1, device=backend
    )

    heat = (weights(shape) * solver.step(steps).u).sum() * spacing**2

    width, height, time = spacing * 12, spacing * 8, steps * dt
    # Linear in time: the mean of both ends of a step is exact.
    expected = height * (time + time**2 / 2) + width * 0.5 * time + 0.1 * width * height * time
    assert heat == pytest.approx(expected, rel=1e-12)


def test_cooling_of_a_slab(backend):
    """cos(lambda x) exp(-lambda^2 t) where lambda tan(lambda) = Bi, symmetric about x = 0."""
    biot, rate = 1.0, 0.8603335890193798
    errors = []
    for n in (9, 17, 33):
        h = 1 / (n - 1)
        x, _ = lines_of((4, n), h)
        solver = HeatADI(
            (4, n),
            h,
            h / 8,
            boundary={"x-": Neumann(), "x+": Robin(biot), "y": "periodic"},
            initial=np.broadcast_to(np.cos(rate * x), (4, n)),
            device=backend,
        )
        u = solver.run(1.0).u
        errors.append(np.abs(u - np.cos(rate * x) * np.exp(-(rate**2))).max())

    assert errors[0] < 1e-3
    assert np.log2(errors[0] / errors[1]) > 1.9
    assert np.log2(errors[1] / errors[2]) > 1.9


def test_second_order_in_space_with_k_of_the_place(backend):
    """(k T')' + q = 0 with k = 1 + x, T = sin(pi x): a steady state."""
    errors = []
    for n in (17, 33):
        h = 1 / (n - 1)
        x, y = lines_of((5, n), h)
        solver = HeatADI(
            (5, n),
            h,
            0.02,
            diffusivity=np.broadcast_to(1 + x, (5, n)).copy(),
            boundary={"x": Dirichlet(), "y": Neumann()},
            source=lambda x, y: (
                (1 + x) * np.pi**2 * np.sin(np.pi * x) - np.pi * np.cos(np.pi * x) + 0 * y
            ),
            initial=np.broadcast_to(np.sin(np.pi * x) + 0 * y, (5, n)),
            device=backend,
        )
        errors.append(np.abs(solver.run(3.0).u - np.sin(np.pi * x)).max())

    assert np.log2(errors[0] / errors[1]) > 1.9


def test_spacing_and_diffusivity_name_their_axes(backend):
    """One axis of each is scaled away: the same numbers."""
    start = np.random.default_rng(3).random((11, 14))
    options = {"dt": 0.01, "boundary": 0.0, "damped_start": False, "device": backend}
    one = HeatADI(
        (11, 14), spacing=(0.2, 0.1), diffusivity={"x": 3.0, "y": 2.0}, initial=start, **options
    )
    other = HeatADI(
        (14, 11),
        spacing={"x": 0.1, "y": 0.2},
        diffusivity={"y": 3.0, "x": 2.0},
        initial=start.T,
        **options,
    )

    # The same factored operator in the other order: the order of the factors does not matter.
    np.testing.assert_allclose(one.step(5).u, other.step(5).u.T, rtol=0, atol=1e-13)


def inclusions(rng, shape=(9, 9, 9), contrast=100.0):
    return np.where(rng.random(shape) < 0.3, contrast, 1.0)


def cube(k, dt, **options):
    sides = dict.fromkeys("xyz", Neumann())
    options = {"scheme": "douglas-gunn"} | options
    return HeatADI(np.shape(k), 1.0, dt, diffusivity=k, boundary=sides, **options)


@pytest.mark.parametrize("place", ["dt", "constructor"])
def test_steps_that_can_grow_are_a_warning_that_names_a_shorter_one(rng, place):
    k, limit = inclusions(rng), 3 / 99

    def create(dt):
        if place == "constructor":
            return cube(k, dt)
        solver = cube(k, limit / 100)
        solver.dt = dt
        return solver

    create(0.999 * limit)
    with pytest.warns(RuntimeWarning, match=r"dt/h\^2 is above 3; it is 3.03: take dt <= 0.0303,"):
        create(1.01 * limit)


def test_steps_without_growth_are_no_warning(rng):
    layers = np.broadcast_to(inclusions(rng, (9,)), (9, 9, 9))
    for k in (
        layers,
        layers.transpose(0, 2, 1),
        layers.transpose(2, 0, 1),
        np.full((9, 9, 9), 3.0),
    ):
        cube(k, 100.0)
    cube(inclusions(rng), 100.0, scheme="auto")


@LARGE_STEPS
def test_warning_of_growth_parts_bounded_from_growing_solutions(rng):
    k, start = inclusions(rng), rng.random((9, 9, 9))
    options = {"initial": start, "damped_start": False}
    assert np.ptp(cube(k, 3 / 99, **options).step(300).u) < np.ptp(start)
    with pytest.warns(RuntimeWarning, match="steps can multiply waves"):
        solver = cube(k, 100 / 99, **options)
    assert np.ptp(solver.step(300).u) > 1e6
    with pytest.warns(RuntimeWarning), pytest.raises(ConvergenceError, match=r"take dt <= 0\.0303"):
        cube(k, 100.0, **options).step(3000)


def test_float32_stays_near_float64(backend):
    x, y = lines_of((200, 300), 0.01)
    start = 1 + np.sin(9 * x) * np.cos(7 * y)
    fields = [
        HeatADI(start.shape, 0.01, 0.01, initial=start, dtype=kind, device=backend, boundary=0.0)
        .step(100)
        .u
        for kind in (np.float32, np.float64)
    ]

    assert fields[0].dtype == np.float32
    assert np.linalg.norm(fields[0] - fields[1]) < 3e-6 * np.linalg.norm(fields[1])


# Both schemes have the kernels of one sweep.
@pytest.mark.parametrize(
    "scheme", ["peaceman-rachford", pytest.param("wei2013", marks=pytest.mark.slow)]
)
def test_float32_does_not_drift_where_the_field_is_smooth(backend, scheme):
    fields = [
        heated_plate(1024, scheme=scheme, dtype=kind, device=backend).step(100).u
        for kind in (np.float32, np.float64)
    ]
    limit = 3e-7 if backend == "cpu" else 3e-6  # u is relative to a near number on the CPU

    assert np.linalg.norm(fields[0] - fields[1]) < limit * np.linalg.norm(fields[1])


MOVING = {
    "x-": Dirichlet(lambda t: np.sin(t)),
    "x+": Robin(2.0, lambda x, y, t: y * np.cos(t)),
    "y-": Neumann(lambda x, y: x),
    "y+": Dirichlet(0.5),
}


def moving_solver(backend, scheme, **options):
    return HeatADI(
        (40, 50),
        0.1,
        0.05,
        scheme=scheme,
        boundary=MOVING,
        source=lambda x, y, t: x * y + t,
        initial=lambda x, y: np.sin(x + 2 * y),
        device=backend,
        **options,
    )


@pytest.mark.parametrize("scheme", ["peaceman-rachford", "douglas-gunn"])
def test_restart_is_exact(backend, scheme, tmp_path):
    straight = moving_solver(backend, scheme).step(14)
    half = moving_solver(backend, scheme).step(7)
    half.save(tmp_path / "state.npz")

    loaded = HeatADI.load(
        tmp_path / "state.npz",
        boundary=MOVING,
        source=lambda x, y, t: x * y + t,
        device=backend,
    ).step(7)

    np.testing.assert_array_equal(loaded.u, straight.u)
    np.testing.assert_array_equal(half.step(7).u, straight.u)
    assert (loaded.steps, loaded.time) == (straight.steps, straight.time)


@pytest.mark.parametrize("scheme", ["peaceman-rachford", "douglas-gunn"])
def test_any_split_into_calls_gives_the_same_bits(backend, scheme):
    straight = moving_solver(backend, scheme).step(70)
    pieces = moving_solver(backend, scheme)
    for count in (1, 0, 2, 64, 3):
        pieces.step(count)

    np.testing.assert_array_equal(pieces.u, straight.u)


@pytest.mark.parametrize("scheme", ["peaceman-rachford", "douglas-gunn", "wei2013"])
def test_same_bits_for_any_threads(scheme):
    start = np.random.default_rng(1).random((300, 200))
    fields = [
        wei2013.HeatADI(
            start.shape, 0.1, 0.1, scheme=scheme, initial=start, threads=n, boundary=0.0
        )
        .step(3)
        .u
        for n in (1, 2, 3)
    ]

    np.testing.assert_array_equal(fields[0], fields[1])
    np.testing.assert_array_equal(fields[0], fields[2])


def test_load_wants_the_same_problem(tmp_path):
    HeatADI((5, 6), 1.0, 0.1, boundary=0.0).step().save(tmp_path / "state.npz")

    with pytest.raises(ValueError, match="boundary must be the same"):
        HeatADI.load(tmp_path / "state.npz", boundary=Neumann())
    with pytest.raises(ValueError, match="diffusivity must be the same"):
        HeatADI.load(tmp_path / "state.npz", diffusivity=2.0, boundary=0.0)
    with pytest.raises(ValueError, match="source must be the same"):
        HeatADI.load(tmp_path / "state.npz", source=1.0, boundary=0.0)
    with pytest.raises(ValueError, match="holds no"):
        HeatResult.load(tmp_path / "state.npz")


def test_run_calls_back_and_ends_where_it_should():
    solver = HeatADI((9, 9), 0.1, 0.01, boundary=0.0)
    seen = []

    result = solver.run(1.0, callback=lambda s: seen.append(s.steps) or s.steps == 45, interval=15)

    assert seen == [15, 30, 45]
    assert (result.stop_reason, result.steps) == ("callback", 45)
    assert solver.run(0.5).stop_reason == "reached"
    assert solver.steps == 50
    with pytest.raises(ValueError, match=r"until must be at least the time 0\.5, got 0\.3"):
        solver.run(0.3)


@pytest.mark.parametrize(("until", "steps"), [(0.3, 3), (1.1, 11), (1.15, 12), (0.0, 0)])
def test_run_ends_with_the_step_that_reaches_its_time(until, steps):
    """1.1 / 0.1 is more than 11 to the computer."""
    assert HeatADI((3, 3), 1.0, 0.1, boundary=0.0).run(until).steps == steps


def test_result_tells_and_keeps(tmp_path):
    result = HeatADI((4, 5, 6), spacing=(0.1, 0.2, 0.3), dt=0.01, initial=1.0, boundary=0.0).run(
        0.05
    )
    result.save(tmp_path / "result.npz")
    loaded = HeatResult.load(tmp_path / "result.npz")

    np.testing.assert_array_equal(loaded.u, result.u)
    assert loaded.spacing == result.spacing
    assert (len(result.x), len(result.y), len(result.z)) == (6, 5, 4)
    assert result.x[1] == 0.1
    assert result.z[1] == 0.3
    assert sum(result.seconds.values()) > 0
    json.dumps(result.seconds)
    assert "douglas-gunn" in result._repr_html_()
    assert "douglas-gunn" in repr(result)


def test_result_draws():
    pytest.importorskip("matplotlib")
    flat = HeatADI((6, 7), 0.1, 0.01, initial=lambda x, y: x + y, boundary=0.0).step().result()

    assert len(flat.plot().figure.axes) == 2
    assert (
        "plane z = 0.2" in HeatADI((4, 6, 7), 0.1, 0.01, boundary=0.0).result().plot().get_title()
    )
    with pytest.raises(AttributeError):
        _ = flat.z


def test_result_as_xarray():
    pytest.importorskip("xarray")
    data = HeatADI((6, 7), 0.1, 0.01, initial=1.0, boundary=0.0).step(2).result().to_xarray()

    assert data["u"].dims == ("y", "x")
    assert data.attrs["steps"] == 2


@LARGE_STEPS
def test_overflow_is_an_error_and_the_state_is_kept(backend):
    solver = HeatADI(
        (6, 6), 0.1, 1.0, dtype=np.float32, source=1e37, boundary=Neumann(), device=backend
    )

    with pytest.raises(ConvergenceError, match="not finite after step") as caught:
        solver.step(100)

    assert caught.value.result.steps == solver.steps == 100
    assert caught.value.result.stop_reason == "diverged"


def test_data_that_spoil_later_leave_the_state(backend):
    solver = HeatADI(
        (6, 6), 1.0, 0.1, boundary=Dirichlet(lambda t: 1.0 if t < 0.45 else np.nan), device=backend
    )
    solver.step(4)
    before = solver.u.copy()

    with pytest.raises(ValueError, match=r"boundary x- must be finite at time 0\.5"):
        solver.step()

    assert solver.steps == 4
    np.testing.assert_array_equal(solver.u, before)


BAD = [
    ({"shape": 5}, TypeError, "shape must be a tuple"),
    ({"shape": (5, 5, 5, 5)}, ValueError, "1, 2 or 3 axes"),
    ({"shape": (5, 2)}, ValueError, "at least 3 nodes along x"),
    ({"shape": (5, 1)}, ValueError, "at least 2"),
    ({"spacing": 0.0}, ValueError, "spacing must be positive"),
    ({"spacing": (0.1, 0.1, 0.1)}, ValueError, "spacing must be a number, or one"),
    ({"dt": -1.0}, ValueError, "dt must be positive"),
    ({"dt": np.nan}, ValueError, "dt must be finite"),
    ({"scheme": "crank"}, ValueError, "scheme must be one of"),
    ({"scheme": "wei2013"}, ValueError, "scheme must be one of"),
    ({"dtype": int}, TypeError, "float32 or float64"),
    ({"diffusivity": 0.0}, ValueError, "diffusivity must be positive"),
    ({"diffusivity": np.ones((5, 6))}, ValueError, "must broadcast"),
    ({"diffusivity": -np.ones((5, 5))}, ValueError, "must be positive"),
    ({"diffusivity": (1.0, 2.0)}, ValueError, "'x': 2.0, 'y': 1.0"),
    (
        {"diffusivity": lambda x, s: x + s},
        TypeError,
        "must be among x, y, t, T, got s: write lambda x, y, t, T",
    ),
    ({"initial": lambda x, t: x + t}, TypeError, "has the parameter t: leave t out"),
    (
        {"extent": ((0, 1), (0, 1))},
        TypeError,
        "one of extent, spacing and coordinates, got extent and spacing",
    ),
    ({"spacing": None}, TypeError, "extent, spacing and coordinates, got none"),
    ({"spacing": None, "extent": ((0, 1), (1, 0))}, ValueError, "low < high"),
    ({"dt": None}, TypeError, "dt must be given"),
    ({"damped_start": "yes"}, TypeError, "damped_start must be a bool or None"),
    ({"boundary": None}, TypeError, "boundary x-"),
    ({"boundary": "Neumann"}, ValueError, "boundary x-"),
    (
        {"boundary": {"x": Dirichlet()}},
        ValueError,
        r"each side must be .*; y-, y\+ are missing",
    ),
    ({"boundary": {"x": Dirichlet(), "y": {}}}, TypeError, "boundary y-"),
    ({"boundary": {"x": Dirichlet(), "y": Dirichlet(), "w": 1}}, ValueError, "sides are x-"),
    (
        {"boundary": {"x": Dirichlet(), "x-": Dirichlet(), "y": Dirichlet()}},
        ValueError,
        "given once.*; x- is given by both",
    ),
    (
        {"boundary": {"x-": "periodic", "x+": Neumann(), "y": Dirichlet()}},
        ValueError,
        "both sides along x",
    ),
    ({"boundary": Robin(-1.0)}, ValueError, "coefficient must be at least 0"),
    ({"boundary": Dirichlet(np.nan)}, ValueError, "must be finite"),
    ({"boundary": Dirichlet(np.ones(7))}, ValueError, "must broadcast"),
    ({"boundary": Dirichlet(lambda a, b, c, d: 0)}, TypeError, "got a, b, c, d"),
    ({"source": np.ones((3, 5))}, ValueError, "source must broadcast"),
    ({"initial": np.inf}, ValueError, "initial must be finite, got inf$"),
    ({"initial": lambda t: t}, TypeError, "initial must be"),
    ({"kernels": "fused"}, TypeError, "kernels"),
    ({"threads": 0}, ValueError, "threads must be in"),
    ({"device": "cuda:99"}, BackendError, "cuda"),
]


@pytest.mark.parametrize(
    ("wrong", "error", "message"), BAD, ids=[f"{', '.join(case[0])}: {case[2]}" for case in BAD]
)
def test_wrong_parameters(wrong, error, message):
    options = {"shape": (5, 5), "spacing": 0.1, "dt": 0.1, "boundary": 0.0} | wrong

    with pytest.raises(error, match=message):
        HeatADI(**options)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"scheme": "crank"}, ValueError, "scheme must be one of .*wei2013"),
        ({"shape": (5, 5, 5), "scheme": "wei2013"}, ValueError, "need a shape of two axes"),
        ({"damped_start": True, "scheme": "wei2013"}, ValueError, "damped_start must be None"),
        ({"kernels": "wei2013", "scheme": "douglas-gunn"}, ValueError, "kernels"),
        ({"scheme": "wei2013", "boundary": Neumann()}, ValueError, "need Dirichlet"),
        ({"scheme": "wei2013", "source": 1.0}, ValueError, "no source"),
        ({"scheme": "wei2013", "diffusivity": np.ones((5, 5))}, ValueError, "is a number"),
        ({"mapping": "C5"}, ValueError, "mapping must be one of"),
        ({"memory": "shared"}, ValueError, "memory must be one of"),
        ({"block": 100}, ValueError, "block must be one of"),
        ({"block": 64.0}, TypeError, "block must be an int or None, got float"),
        ({"timed": "no"}, TypeError, "timed must be a bool, got str"),
    ],
)
def test_wrong_parameters_of_the_paper(wrong, error, message):
    options = {"shape": (5, 5), "spacing": 0.1, "dt": 0.1, "boundary": 0.0} | wrong

    with pytest.raises(error, match=message):
        wei2013.HeatADI(**options)


def test_count_and_until_are_checked():
    solver = HeatADI((5, 5), 0.1, 0.1, boundary=0.0)

    with pytest.raises(ValueError, match="count must be at least 0"):
        solver.step(-1)
    with pytest.raises(ValueError, match="until must be finite"):
        solver.run(np.inf)


def test_u_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        HeatADI((5, 5), 0.1, 0.1, boundary=0.0).u[0, 0] = 1


@pytest.mark.parametrize("t", [1e-4, 0.01, 0.1, 1.0])
def test_series_of_a_cooling_slab_is_the_sum_of_images(t):
    x = np.linspace(0, 1, 41)
    images = sum(
        (-1) ** n * (erfc((n + x) / np.sqrt(4 * t)) + erfc((n + 1 - x) / np.sqrt(4 * t)))
        for n in range(40)
    )

    np.testing.assert_allclose(cooled_slab(x, t), 1 - images, rtol=0, atol=2e-14)
