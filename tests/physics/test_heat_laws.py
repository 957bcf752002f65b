"""k of time and temperature, sources of temperature: exact factors, orders, balances, files."""

import pickle

import numpy as np
import pytest

from pysolvers import ConvergenceError, HeatADI, Neumann
from pysolvers.distributed import Group, Slab

LARGE_STEPS = pytest.mark.filterwarnings(
    "ignore:HeatADI.*too large for the solution:RuntimeWarning"
)


def rising(t):
    return 1 + 3 * t


def of_temperature(T):
    return 1 + T * T


@pytest.mark.parametrize("shape", [(17,), (9, 17), (5, 5, 17)])
@LARGE_STEPS
def test_conductivity_of_time(backend, shape):
    # Each step multiplies a cosine by the factor for k in the middle of the step.
    dt, h = 0.01, 1 / 16
    x = np.broadcast_to(np.cos(2 * np.pi * np.arange(17) * h), shape)
    solver = HeatADI(
        shape,
        h,
        dt,
        diffusivity=rising,
        boundary=Neumann(),
        initial=x,
        damped_start=False,
        device=backend,
    )

    solver.step(4)

    z = 4 * dt / h**2 * np.sin(np.pi * h) ** 2 * rising((np.arange(4) + 0.5) * dt)
    factor = np.prod((1 - z / 2) / (1 + z / 2))
    np.testing.assert_allclose(solver.u, factor * x, rtol=0, atol=1e-12)
    assert solver.diffusion_number == pytest.approx(rising(3.5 * dt) * dt / h**2)


def manufactured(scheme, m, *, dimensions=1, **options):
    """Error at time 0.2 with k = 1 + T^2 and the solution below."""
    slope = np.array([2.0, 1.0])[:dimensions]
    capacity = options.get("heat_capacity", 1.0)

    def phase(*place, t):
        return sum(a * p for a, p in zip(slope, place, strict=True)) + t

    def exact(phi):
        return 1 + 0.3 * np.cos(phi)

    def source(phi):
        level, wave = exact(phi), slope @ slope
        fluxes = wave * ((1 + level**2) * -0.3 * np.cos(phi) + 2 * level * 0.09 * np.sin(phi) ** 2)
        return -0.3 * capacity * np.sin(phi) - fluxes

    n = 8 * m + 1
    line = np.linspace(0, 1, n)
    if "coordinates" in options:
        options["coordinates"] = [line + 0.1 * np.sin(np.pi * line)] * dimensions
    else:
        options["extent"] = [(0, 1)] * dimensions
    if dimensions == 1:
        data = {
            "source": lambda x, t: source(phase(x, t=t)),
            "initial": lambda x: exact(phase(x, t=0)),
            "boundary": {
                "x-": lambda x, t: exact(phase(x, t=t)),
                "x+": Neumann(
                    lambda x, t: -0.6 * (1 + exact(phase(x, t=t)) ** 2) * np.sin(phase(x, t=t))
                ),
            },
        }
    else:
        data = {
            "source": lambda x, y, t: source(phase(x, y, t=t)),
            "initial": lambda x, y: exact(phase(x, y, t=0)),
            "boundary": lambda x, y, t: exact(phase(x, y, t=t)),
        }
    solver = HeatADI(
        (n,) * dimensions,
        dt=0.2 / (6 * m),
        diffusivity=of_temperature,
        scheme=scheme,
        damped_start=False,
        **data,
        **options,
    )
    solver.step(6 * m)
    grid = np.meshgrid(*[solver.x, solver.y][:dimensions]) if dimensions > 1 else [solver.x]
    return np.abs(solver.u - exact(phase(*grid, t=solver.time))).max()


@pytest.mark.parametrize(
    ("scheme", "options"),
    [
        ("crank-nicolson", {}),
        ("implicit", {}),
        ("crank-nicolson", {"heat_capacity": 2.0, "coordinates": True}),
        ("peaceman-rachford", {"dimensions": 2}),
        ("douglas-gunn", {"dimensions": 2}),
        pytest.param("implicit", {"dimensions": 2}, marks=pytest.mark.slow),
        ("implicit", {"dimensions": 2, "coordinates": True}),
    ],
)
@LARGE_STEPS
def test_conductivity_of_temperature_has_order_two(scheme, options):
    errors = [manufactured(scheme, m, **dict(options)) for m in (1, 2, 4)]

    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (orders > 1.85).all(), (errors, orders)


@pytest.mark.parametrize("scheme", ["auto", "implicit"])
@LARGE_STEPS
@pytest.mark.parametrize("changes", [False, True], ids=["one dt", "two dt"])
def test_source_of_temperature_has_order_two(scheme, changes):
    # T_t = k T_xx + T (1 - T) has no wave here: the logistic equation, in every node.
    def error(steps):
        solver = HeatADI(
            (5, 6),
            0.1,
            2 / steps,
            source=lambda T: T * (1 - T),
            boundary=Neumann(),
            initial=0.1,
            scheme=scheme,
            damped_start=False,
        )
        solver.step(steps // 2)
        if changes:
            solver.dt /= 2
        solver.run(2.0)
        return np.abs(solver.u - 1 / (1 + 9 * np.exp(-2.0))).max()

    errors = [error(n) for n in (16, 32, 64, 128)]

    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (orders[1:] > 1.85).all(), (errors, orders)


@pytest.mark.parametrize("scheme", ["peaceman-rachford", "implicit"])
@LARGE_STEPS
def test_heat_is_conserved(backend, scheme):
    rng = np.random.default_rng(1)
    solver = HeatADI(
        (9, 12),
        0.1,
        0.02,
        diffusivity=of_temperature,
        heat_capacity=rng.uniform(1, 2, (9, 12)),
        initial=rng.uniform(size=(9, 12)),
        boundary=Neumann(),
        scheme=scheme,
        device=backend,
    )
    begin = solver.heat()

    assert solver.step(20).heat() == pytest.approx(begin, rel=1e-12)
    assert np.ptp(solver.u) < 0.1


def test_steady_state():
    # With k = 1 + T, T + T^2/2 is linear: order 2 in the nodes.
    def error(n, **options):
        data = {"diffusivity": lambda T: 1 + T, "boundary": {"x-": 0.0, "x+": 1.0}}
        solver = HeatADI((n,), 1 / (n - 1), 0.01, **data | options)
        u = solver.solve_steady().u
        assert not solver.u[:-1].any()
        return np.abs(u + u**2 / 2 - 1.5 * solver.x).max()

    assert np.log2(error(9) / error(17)) == pytest.approx(2, abs=0.1)
    # Newton's law of cooling along a fin, T'' = 25 (T - 0).
    fin = HeatADI(
        (129,),
        1 / 128,
        0.01,
        source=lambda T: -5 * T,
        boundary={"x-": 1.0, "x+": Neumann()},
    ).solve_steady()
    expected = np.cosh(np.sqrt(5) * (1 - fin.x)) / np.cosh(np.sqrt(5))
    np.testing.assert_allclose(fin.u, expected, rtol=0, atol=1e-4)
    with pytest.raises(ConvergenceError, match="100 iterations are not enough"):
        HeatADI(
            (9,),
            0.125,
            0.01,
            source=lambda T: 30 * T + 1,
            boundary=0.0,
        ).solve_steady(max_iterations=100)


@pytest.mark.parametrize("scheme", ["auto", "implicit"])
@pytest.mark.parametrize("shape", [(9,), (7, 9)])
def test_files_copies_and_starts(tmp_path, scheme, shape):
    data = {
        "diffusivity": of_temperature,
        "source": np.negative,
        "boundary": {"x-": 1.0, "x+": 0.0} | ({"y": Neumann()} if len(shape) > 1 else {}),
    }
    solver = HeatADI(shape, 0.1, 0.002, scheme=scheme, **data | {"source": np.ones(shape)})
    assert solver.diffusivity is of_temperature
    assert "diffusivity=a function of T" in repr(solver)
    solver.step(5)
    solver.save(tmp_path / "heat.npz")

    loaded = HeatADI.load(tmp_path / "heat.npz", **data | {"source": np.ones(shape)})
    copied = pickle.loads(pickle.dumps(solver))

    for other in (loaded, copied):
        np.testing.assert_array_equal(
            other.step(3).u, solver.step(3).u if other is loaded else solver.u
        )
    with pytest.raises(ValueError, match="diffusivity must be the same"):
        HeatADI.load(tmp_path / "heat.npz", **data | {"diffusivity": 1.0, "source": np.ones(shape)})


def test_auto_follows_the_conductivity():
    # A melted spot conducts 1000 times better: alternating directions would leave the range.
    i, j = np.indices((17, 17))
    solver = HeatADI(
        (17, 17),
        1.0,
        5.0,
        diffusivity=lambda T: np.where(T > 0.5, 1000.0, 1.0),
        boundary=Neumann(),
    )
    solver.step()
    assert solver.result().scheme == "peaceman-rachford"
    solver.u = np.where(np.abs(i - j) < 3, 1.0, 0.0)

    solver.step()
    assert solver.result().scheme == "implicit"
    fields = np.array([solver.step().u.copy() for _ in range(5)])

    assert -1e-3 < fields.min() <= fields.max() < 1 + 1e-3


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"diffusivity": lambda s: s}, TypeError, "must be among x, y, t, T, got s"),
        ({"diffusivity": lambda T: T - 1}, ValueError, "must be positive"),
        ({"diffusivity": lambda T: np.ones(3)}, ValueError, r"broadcast to \(5, 6\)"),
        ({"source": lambda T: T / 0.0 * 0}, ValueError, "source must be finite"),
        ({"boundary": lambda T: T}, TypeError, "must be among x, y, t, got T"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_errors(options, error, text):
    with pytest.raises(error, match=text):
        HeatADI((5, 6), 0.1, 0.1, **{"boundary": 0.0, "initial": 1.0} | options)


def test_an_error_of_a_law_keeps_the_state():
    def k(t):
        return 1.0 if t < 0.035 else -1.0

    solver = HeatADI((5,), 0.1, 0.01, boundary=0.0, initial=lambda x: np.sin(x), diffusivity=k)
    with pytest.raises(ValueError, match="diffusivity must be positive"):
        solver.step(6)
    assert solver.steps == 3


def test_group_is_refused(monkeypatch):
    monkeypatch.setattr("pysolvers.distributed._group._world", lambda: None)
    for data in ({"diffusivity": rising}, {"source": lambda T: T}):
        with pytest.raises(ValueError, match="with a group diffusivity cannot"):
            HeatADI((9, 9), 0.1, 0.1, boundary=0.0, group=Group(), split=Slab(0), **data)
