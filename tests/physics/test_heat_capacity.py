"""Heat capacities: dense matrices, two bodies in contact, balances in joules, files, errors."""

import heat_matrices as dense
import numpy as np
import pytest
from scipy.special import erf

from pysolvers import Dirichlet, HeatADI, Neumann, Robin
from pysolvers.distributed import Group, Slab

LARGE_STEPS = pytest.mark.filterwarnings(
    "ignore:HeatADI.*too large for the solution:RuntimeWarning",
    "ignore:HeatADI.*can leave the range:RuntimeWarning",
    "ignore:HeatADI.*can multiply waves:RuntimeWarning",
)
CASES = {
    "rod": ((12,), {"x-": ("R", 3.0, 0.5), "x+": ("D",)}),
    "ring": ((9,), {"x-": ("P",), "x+": ("P",)}),
    "plate": ((6, 7), {"x-": ("N", 0.7), "x+": ("D",), "y-": ("R", 2.0, -1.0), "y+": ("N", 0.0)}),
    "tube": ((5, 6), {"x-": ("P",), "x+": ("P",), "y-": ("D",), "y+": ("R", 4.0, 1.0)}),
    "box": (
        (4, 5, 4),
        {
            "x-": ("N", 0.3),
            "x+": ("R", 2.0, 0.3),
            "y-": ("D",),
            "y+": ("D",),
            "z-": ("P",),
            "z+": ("P",),
        },
    ),
}


def problem(name):
    """A random problem: options of `HeatADI` without scheme, the start, and dense matrices."""
    shape, sides = CASES[name]
    rng = np.random.default_rng(3)
    k, c = rng.uniform(0.3, 3, shape), 10 ** rng.uniform(-1, 1, shape)
    q, start = rng.normal(size=shape), rng.normal(size=shape)
    kinds = {
        "D": lambda: Dirichlet(0.25),
        "N": lambda flux: Neumann(flux),
        "R": lambda coefficient, ambient: Robin(coefficient, ambient),
        "P": lambda: "periodic",
    }
    lines = [np.arange(n) * 0.2 for n in shape[::-1]]
    period = {axis: 0.2 * n for axis, n in enumerate(shape[::-1])}
    *matrices, given = dense.matrices(lines, sides, k, c, q, period)
    start[given.reshape(shape)] = 0.25
    options = {
        "shape": shape,
        "spacing": 0.2,
        "diffusivity": k,
        "heat_capacity": c,
        "source": q,
        "initial": start,
        "boundary": {side: kinds[kind](*values) for side, (kind, *values) in sides.items()},
    }
    return options, start, matrices, given


@pytest.mark.parametrize("name", CASES)
@LARGE_STEPS
def test_steps_are_those_of_dense_matrices(backend, name):
    options, start, matrices, given = problem(name)
    dt = 0.15
    axes = len(start.shape)
    split = ("crank-nicolson", "peaceman-rachford", "douglas-gunn")[axes - 1]

    def made(scheme, damped):
        return HeatADI(**options, dt=dt, scheme=scheme, damped_start=damped, device=backend)

    expected = start
    for _ in range(3):
        expected = dense.split_step(*matrices, expected, dt)
    np.testing.assert_allclose(made(split, False).step(3).u, expected, rtol=0, atol=1e-12)
    expected = start
    for _ in range(3):
        expected = dense.implicit_step(*matrices, expected, dt)
    np.testing.assert_allclose(made("implicit", False).step(3).u, expected, rtol=0, atol=1e-7)
    expected = dense.damped_step(*matrices, start, dt)
    np.testing.assert_allclose(made("implicit", True).step().u, expected, rtol=0, atol=1e-7)
    if axes == 1:  # otherwise some residual of the first half-step remains
        np.testing.assert_allclose(made(split, True).step().u, expected, rtol=0, atol=1e-12)
    if name != "ring":
        expected = dense.steady_state(*matrices, given, start)
        found = made("auto", False).solve_steady().u
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["rod", "plate", "box"])
@LARGE_STEPS
def test_number_divides_all_data(backend, name):
    options, *_ = problem(name)
    options |= {"heat_capacity": 7.0, "dt": 0.3, "device": backend}
    divided = {}
    for side, condition in options["boundary"].items():
        match condition:
            case Neumann(flux):
                divided[side] = Neumann(flux / 7)
            case Robin(coefficient, ambient):
                divided[side] = Robin(coefficient / 7, ambient)
            case _:
                divided[side] = condition
    other = options | {
        "heat_capacity": 1.0,
        "boundary": divided,
        "diffusivity": options["diffusivity"] / 7,
        "source": options["source"] / 7,
    }

    for scheme in ("auto", "implicit"):
        found, expected = (HeatADI(**o, scheme=scheme).step(4) for o in (options, other))
        np.testing.assert_allclose(found.u, expected.u, rtol=0, atol=1e-7)
        assert found.heat() == pytest.approx(7 * expected.heat(), rel=1e-7)
        assert found.diffusion_number == pytest.approx(expected.diffusion_number)
        assert found.suggest_dt() == pytest.approx(expected.suggest_dt())


def contact(scheme, m):
    """Largest error near the contact of copper at 100 °C and glass at 0 °C, after 2 s."""
    n = 64 * m
    h = 0.12 / n
    x = (np.arange(n) + 0.5) * h - 0.06
    in_glass = x > 0
    k, c = np.where(in_glass, 1.05, 400.0), np.where(in_glass, 2500 * 840.0, 8960 * 385.0)
    begin, end = 0.5, 2.0

    def exact(t):
        effusivity = np.sqrt(np.array([400 * 8960 * 385.0, 1.05 * 2500 * 840.0]))
        middle = 100 * effusivity[0] / effusivity.sum()
        scaled = x / np.sqrt(4 * k / c * t)
        return np.where(in_glass, middle * (1 - erf(scaled)), middle - (100 - middle) * erf(scaled))

    solver = HeatADI(
        (n,),
        h,
        (end - begin) / (12 * m),
        diffusivity=k,
        heat_capacity=c,
        boundary=Neumann(),
        initial=exact(begin),
        scheme=scheme,
        damped_start=False,
    )
    near = np.abs(x) < 0.03
    return np.abs(solver.step(12 * m).u - exact(end))[near].max()


@pytest.mark.parametrize("scheme", ["crank-nicolson", "implicit"])
def test_two_bodies_in_contact(scheme):
    errors = [contact(scheme, m) for m in (4, 8, 16)]

    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert errors[-1] < 0.03, errors
    assert (orders > 1.7).all(), (errors, orders)


@pytest.mark.parametrize("scheme", ["auto", "peaceman-rachford", "implicit"])
@LARGE_STEPS
def test_heat_balance(backend, scheme):
    shape, h, dt = (11, 14), 0.01, 5.0
    rng = np.random.default_rng(6)
    c, q = rng.uniform(1e6, 4e6, shape), rng.uniform(0, 1e5, shape)
    k = rng.uniform(1, 50, shape)
    cells = h**2 * np.outer(np.r_[0.5, np.ones(9), 0.5], np.r_[0.5, np.ones(12), 0.5])
    options = {
        "spacing": h,
        "dt": dt,
        "diffusivity": k,
        "heat_capacity": c,
        "initial": rng.uniform(0, 100, shape),
        "scheme": scheme,
        "device": backend,
    }
    closed = HeatADI(shape, boundary=Neumann(), **options)
    heated = HeatADI(
        shape, boundary={"x-": Neumann(300.0), "x+": Neumann(), "y": Neumann()}, source=q, **options
    )
    begin = (cells * c * options["initial"]).sum()
    assert closed.heat() == pytest.approx(begin, rel=1e-13)

    power = (cells * q).sum() + 300.0 * h * 10
    assert closed.step(20).heat() == pytest.approx(begin, rel=1e-12)
    assert heated.step(20).heat() - begin == pytest.approx(power * 20 * dt, rel=1e-8)
    with pytest.raises(ValueError, match=f"is {power:.6g} instead of 0"):
        heated.solve_steady()


@LARGE_STEPS
def test_auto_keeps_the_range():
    # A bar of steel in insulation.
    n = 17
    i, j = np.indices((n, n))
    in_bar = np.abs(i - j) < 3
    options = {
        "shape": (n, n),
        "spacing": 0.01,
        "dt": 36000.0,
        "diffusivity": np.where(in_bar, 50.0, 0.035),
        "heat_capacity": np.where(in_bar, 3.9e6, 4e4),
        "boundary": {"x-": 1.0, "x+": 0.0, "y": Neumann()},
    }
    solver = HeatADI(**options)
    with pytest.warns(RuntimeWarning, match="can leave the range"):
        forced = HeatADI(**options, scheme="peaceman-rachford")

    fields = np.array([solver.step().u.copy() for _ in range(30)])
    others = np.array([forced.step().u.copy() for _ in range(30)])

    assert solver.result().scheme == "implicit"
    assert -1e-3 < fields.min() <= fields.max() < 1 + 1e-3
    assert others.max() > 1.1


def test_files_and_properties(tmp_path):
    c = np.linspace(1.0, 2.0, 9)
    data = {"heat_capacity": c, "diffusivity": 3.0, "boundary": {"x-": 1.0, "x+": Neumann(2.0)}}
    solver = HeatADI((9,), 0.1, 0.01, **data, source=lambda x, t: x + t).step(3)
    assert solver.heat_capacity is c
    assert (solver.diffusivity, solver.boundary) == (3.0, data["boundary"])
    assert callable(solver.source)
    assert "heat_capacity=an array" in repr(solver)
    solver.save(tmp_path / "heat.npz")

    other = HeatADI.load(tmp_path / "heat.npz", **data, source=lambda x, t: x + t)

    np.testing.assert_array_equal(other.step(2).u, solver.step(2).u)
    assert solver.result().kernel == "arrays"
    with pytest.raises(ValueError, match="heat_capacity must be the same"):
        HeatADI.load(
            tmp_path / "heat.npz", **data | {"heat_capacity": 1.0}, source=lambda x, t: x + t
        )
    number = HeatADI((9,), 0.1, 0.01, diffusivity=3.0, heat_capacity=4e6, boundary=0.0)
    assert "heat_capacity=4e+06" in repr(number)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.0, ValueError, "heat_capacity must be positive"),
        (np.nan, ValueError, "heat_capacity must be finite"),
        (np.zeros((5, 5)), ValueError, "heat_capacity must be positive"),
        (np.ones(4), ValueError, r"heat_capacity must broadcast to \(5, 5\)"),
        (lambda x, t: x, TypeError, "must be among x, y, got t"),
        ("steel", TypeError, "heat_capacity"),
    ],
)
def test_errors(value, error, text):
    with pytest.raises(error, match=text):
        HeatADI((5, 5), 0.1, 0.1, boundary=0.0, heat_capacity=value)


def test_group_needs_a_number(monkeypatch):
    monkeypatch.setattr("pysolvers.distributed._group._world", lambda: None)
    options = {"boundary": 0.0, "initial": 1.0, "group": Group(), "split": Slab(0)}
    with pytest.raises(ValueError, match="with a group heat_capacity must be a number"):
        HeatADI((9, 9), 0.1, 0.1, heat_capacity=np.ones((9, 9)), **options)

    solver = HeatADI((9, 9), 0.1, 0.01, heat_capacity=3.0, source=2.0, **options).step(3)

    options = {"boundary": 0.0, "initial": 1.0, "source": 2.0}
    alone = HeatADI((9, 9), 0.1, 0.01, heat_capacity=3.0, **options).step(3)
    np.testing.assert_allclose(solver.u, alone.u, rtol=0, atol=1e-14)
    assert solver.heat() == pytest.approx(alone.heat())
