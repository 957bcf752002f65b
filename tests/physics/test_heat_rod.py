"""Heat conduction in a rod: exact factors, dense matrices, orders, balances, results, errors."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from pysolvers import Dirichlet, HeatADI, Neumann, Robin
from pysolvers.distributed import Group, Slab
from pysolvers.papers import wei2013

LARGE_STEPS = pytest.mark.filterwarnings(
    "ignore:HeatADI.*too large for the solution:RuntimeWarning"
)
GAMMA = 1 - 1 / np.sqrt(2)


def rod_matrix(k, h, sides):
    """Matrix and inflow of T_t = M T + inflow; rows of given values are 0.

    A side is (kind, coefficient, value): "D", "N" with the flux, "R" with the ambient temperature.
    """
    n = len(k)
    face = 2 * k[1:] * k[:-1] / (k[1:] + k[:-1]) / h**2
    matrix, inflow = np.zeros((n, n)), np.zeros(n)
    for i in range(n - 1):
        matrix[i, i] -= face[i]
        matrix[i, i + 1] += face[i]
        matrix[i + 1, i + 1] -= face[i]
        matrix[i + 1, i] += face[i]
    for at, (kind, coefficient, value) in zip((0, -1), sides, strict=True):
        matrix[at] *= 2
        if kind == "D":
            matrix[at] = 0
        else:
            matrix[at, at] -= 2 * coefficient / h
            inflow[at] += 2 / h * (value if kind == "N" else coefficient * value)
    return matrix, inflow


@pytest.mark.parametrize("scheme", ["crank-nicolson", "implicit"])
@pytest.mark.parametrize("sides", ["D", "N", "P"])
@LARGE_STEPS
def test_factor_of_a_mode(backend, sides, scheme):
    n, dt, mode = 24, 0.013, 3
    boundary = {"D": 0.0, "N": Neumann(), "P": "periodic"}[sides]
    h = 1 / n if sides == "P" else 1 / (n - 1)
    x = np.arange(n) * h
    wave = 2 * np.pi * mode if sides == "P" else np.pi * mode
    start = np.sin(wave * x) if sides == "D" else np.cos(wave * x)
    solver = HeatADI(
        (n,),
        h,
        dt,
        scheme=scheme,
        boundary=boundary,
        initial=start,
        damped_start=False,
        device=backend,
    )

    found = solver.step(3).u

    z = 4 * dt / h**2 * np.sin(wave * h / 2) ** 2
    factor = (1 - z / 2) / (1 + z / 2)
    if scheme == "implicit":
        factor = (1 - (1 - 2 * GAMMA) * z) / (1 + GAMMA * z) ** 2
    atol = 1e-13 if scheme == "crank-nicolson" else 1e-7
    np.testing.assert_allclose(found, factor**3 * start, rtol=0, atol=atol)


SIDES = {
    "DD": ((Dirichlet(1.5), Dirichlet(-0.5)), (("D", 0, 0), ("D", 0, 0))),
    "NR": ((Neumann(-0.7), Robin(2.0, 0.4)), (("N", 0, -0.7), ("R", 2.0, 0.4))),
    "RD": ((Robin(3.0, -1.0), Dirichlet(0.2)), (("R", 3.0, -1.0), ("D", 0, 0))),
}


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("name", SIDES)
@LARGE_STEPS
def test_steps_are_those_of_dense_matrices(backend, name, kind):
    n, h, dt = 31, 0.1, 0.2
    rng = np.random.default_rng(4)
    k, q, start = rng.uniform(0.2, 3, n), rng.normal(size=n), rng.normal(size=n)
    conditions, sides = SIDES[name]
    options = {
        "diffusivity": k,
        "source": q,
        "initial": start,
        "boundary": dict(zip(("x-", "x+"), conditions, strict=True)),
        "dtype": kind,
        "device": backend,
    }
    split = HeatADI((n,), h, dt, damped_start=False, **options)
    damped = HeatADI((n,), h, dt, damped_start=True, **options)

    matrix, inflow = rod_matrix(k, h, sides)
    for at, condition in zip((0, -1), conditions, strict=True):
        if isinstance(condition, Dirichlet):
            start[at], q[at] = condition.value, 0
    f, one = inflow + q, np.eye(n)
    expected = start
    for _ in range(3):
        right = (one + dt / 2 * matrix) @ expected + dt * f
        expected = np.linalg.solve(one - dt / 2 * matrix, right)
    atol = 1e-12 if kind == "float64" else 5e-6
    np.testing.assert_allclose(split.step(3).u, expected, rtol=0, atol=atol)
    expected = start
    for _ in range(2):
        expected = np.linalg.solve(one - dt / 2 * matrix, expected + dt / 2 * f)
    np.testing.assert_allclose(damped.step().u, expected, rtol=0, atol=atol)
    steady = np.where(matrix.any(axis=1), f, -start)  # given values stay
    steady = np.linalg.solve(np.where(matrix.any(axis=1)[:, None], matrix, one), -steady)
    atol = 1e-7 if kind == "float64" else 1e-3
    np.testing.assert_allclose(split.solve_steady().u, steady, rtol=0, atol=atol)


def manufactured(scheme, n, steps):
    """Error at time 0.3 of a rod whose data all change, with the solution below."""

    def exact(x, t):
        return np.cos(2 * x + t) * np.exp(-t)

    def slope(x, t):
        return -2 * np.sin(2 * x + t) * np.exp(-t)

    def k(x):
        return 1 + 0.5 * x

    def source(x, t):
        rate = -(np.sin(2 * x + t) + np.cos(2 * x + t)) * np.exp(-t)
        return rate - 0.5 * slope(x, t) + k(x) * 4 * exact(x, t)

    solver = HeatADI(
        (n,),
        extent=((0.5, 1.5),),
        dt=0.3 / steps,
        scheme=scheme,
        diffusivity=k,
        source=source,
        initial=lambda x: exact(x, 0.0),
        boundary={
            "x-": lambda x, t: exact(x, t),
            "x+": Robin(2.0, lambda t: exact(1.5, t) + k(1.5) * slope(1.5, t) / 2),
        },
        damped_start=False,
    )
    return np.abs(solver.step(steps).u - exact(solver.x, 0.3)).max()


@pytest.mark.parametrize("scheme", ["crank-nicolson", "implicit"])
def test_order_two(scheme):
    errors = [manufactured(scheme, 8 * m + 1, 6 * m) for m in (1, 2, 4)]

    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (orders > 1.85).all(), (errors, orders)


@pytest.mark.parametrize("scheme", ["crank-nicolson", "implicit"])
@LARGE_STEPS
def test_heat_is_conserved(backend, scheme):
    rng = np.random.default_rng(8)
    n = 40
    weights = np.r_[0.5, np.ones(n - 2), 0.5]
    start, k = rng.uniform(0, 1, n), 10 ** rng.uniform(-2, 2, n)
    solver = HeatADI(
        (n,),
        0.1,
        0.5,
        scheme=scheme,
        diffusivity=k,
        initial=start,
        boundary=Neumann(),
        device=backend,
    )

    solver.step(50)

    assert weights @ solver.u == pytest.approx(weights @ start, rel=1e-12)
    assert start.min() <= solver.u.min() <= solver.u.max() <= start.max()


def test_rows_of_a_long_series_of_steps_are_the_same(backend, tmp_path):
    def made():
        return HeatADI(
            (19,),
            0.1,
            0.01,
            boundary={"x-": lambda t: np.sin(t), "x+": Neumann(1.0)},
            source=lambda x, t: x * t,
            device=backend,
        )

    one, other = made().step(20), made().step(7)
    other.save(tmp_path / "rod.npz")
    options = {
        "boundary": {"x-": lambda t: np.sin(t), "x+": Neumann(1.0)},
        "source": lambda x, t: x * t,
        "device": backend,
    }
    other = HeatADI.load(tmp_path / "rod.npz", **options).step(13)

    np.testing.assert_array_equal(other.u, one.u)
    one.u = np.arange(19.0)
    expected = np.r_[one.u[0], np.arange(1.0, 19.0)]
    np.testing.assert_array_equal(one.u, expected)
    assert one.step().u.shape == (19,)


def test_results(tmp_path):
    solver = HeatADI((9,), extent=((1.0, 3.0),), dt=0.05, boundary={"x-": 1.0, "x+": 0.0})

    result = solver.record(1.0, every=1.0)

    assert result.u.shape == solver.gather().shape == (9,)
    np.testing.assert_allclose(result.x, np.linspace(1, 3, 9))
    assert result.scheme == "crank-nicolson"
    assert result.spacing == (0.25,)
    assert "hx=0.25, dt" in repr(solver)
    assert result.to_xarray()["u"].dims == ("time", "x")
    axes = result.plot(show=False, unit="m", label="T (K)")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (m)", "T (K)")
    plt.close(axes.figure)
    result.animate(tmp_path / "rod.gif", label="T (K)", dpi=40)
    assert (tmp_path / "rod.gif").stat().st_size > 1000
    result.save(tmp_path / "rod.npz")
    assert type(result).load(tmp_path / "rod.npz").u.shape == (9,)
    result.to_vtk(tmp_path / "rod.vtk")
    for name in "yz":
        for each in (solver, result):
            with pytest.raises(AttributeError, match=f"no (axis )?{name}"):
                getattr(each, name)


def test_two_nodes_between_fluxes():
    # Lumped: the mean grows with the inflow, the difference decays with 4 k/h^2.
    solver = HeatADI((2,), 0.5, 0.01, boundary={"x-": Neumann(1.0), "x+": Neumann()})

    solver.step(100)

    assert solver.u.mean() == pytest.approx(1.0 / 0.5, rel=1e-12)
    assert solver.u[0] - solver.u[1] == pytest.approx(0.25, rel=1e-4)  # 2 h/2 h/k


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"shape": (9, 9), "scheme": "crank-nicolson"}, "with two axes scheme must be"),
        ({"scheme": "peaceman-rachford"}, "'auto', 'implicit' or 'crank-nicolson'"),
        ({"boundary": {"x": 0.0, "y": 0.0}}, "the sides are x-, x"),
        ({"source": lambda x, y: x}, "must be among x, t, T, got y"),
        ({"initial": np.zeros(8)}, r"must broadcast to \(9,\)"),
        ({"shape": (2,)}, "at least 3 nodes along x"),
        ({"shape": 9}, "tuple of 1, 2 or 3 int"),
    ],
)
def test_errors(options, text):
    with pytest.raises((TypeError, ValueError), match=text):
        HeatADI(**{"shape": (9,), "spacing": 0.1, "dt": 0.1, "boundary": 0.0} | options)


def test_group_is_refused(monkeypatch):
    monkeypatch.setattr("pysolvers.distributed._group._world", lambda: None)
    with pytest.raises(ValueError, match="cannot be split over the ranks"):
        HeatADI((9,), 0.1, 0.1, boundary=0.0, group=Group(), split=Slab(0))


def test_scheme_of_the_paper_is_for_plates():
    with pytest.raises(ValueError, match="2 or 3 axes"):
        wei2013.HeatADI((9,), 0.1, 0.1, boundary=0.0)
    with pytest.raises(ValueError, match="two axes"):
        wei2013.HeatADI((9, 9, 9), 0.1, 0.1, boundary=0.0, scheme="wei2013")
