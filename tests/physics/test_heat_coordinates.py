"""Nodes that are not evenly spaced: dense matrices, orders, balances, results, files, errors."""

import heat_matrices as dense
import matplotlib.pyplot as plt
import numpy as np
import pytest

from pysolvers import Dirichlet, HeatADI, Neumann, Robin
from pysolvers.distributed import Group, Slab
from pysolvers.papers import wei2013

LARGE_STEPS = pytest.mark.filterwarnings(
    "ignore:HeatADI.*too large for the solution:RuntimeWarning",
    "ignore:HeatADI.*can leave the range:RuntimeWarning",
    "ignore:HeatADI.*can multiply waves:RuntimeWarning",
)
CASES = {
    "rod": ((12,), {"x-": ("N", 0.4), "x+": ("R", 3.0, 0.5)}),
    "ring": ((9,), {"x-": ("P",), "x+": ("P",)}),
    "plate": ((6, 7), {"x-": ("R", 2.0, 0.7), "x+": ("D",), "y-": ("N", 1.0), "y+": ("N", 0.0)}),
    "tube": ((5, 6), {"x-": ("P",), "x+": ("P",), "y-": ("D",), "y+": ("R", 4.0, 1.0)}),
    "box": (
        (4, 5, 4),
        {
            "x-": ("N", 0.3),
            "x+": ("N", 0.3),
            "y-": ("D",),
            "y+": ("R", 1.0, 0.1),
            "z-": ("P",),
            "z+": ("P",),
        },
    ),
}
CONDITIONS = {"D": lambda: Dirichlet(0.25), "N": Neumann, "R": Robin, "P": lambda: "periodic"}


def problem(name, varies):
    """A random problem: options of `HeatADI`, the start, dense matrices; k and c vary or not."""
    shape, sides = CASES[name]
    rng = np.random.default_rng(7)
    ends = [np.cumsum(rng.uniform(0.1, 0.4, n + 1)) - 1 for n in shape[::-1]]
    wraps = [sides["xyz"[axis] + "-"][0] == "P" for axis in range(len(shape))]
    k = rng.uniform(0.3, 3, shape) if varies else 1.3
    c = 10 ** rng.uniform(-1, 1, shape) if varies else 0.8
    start, q = rng.normal(size=shape), rng.normal(size=shape)
    period = {axis: line[-1] - line[0] for axis, line in enumerate(ends)}
    lines = [line[:-1] for line in ends]
    *matrices, given = dense.matrices(lines, sides, k, c, q, period)
    start[given.reshape(shape)] = 0.25
    options = {
        "shape": shape,
        "coordinates": [e if w else e[:-1] for e, w in zip(ends, wraps, strict=True)],
        "diffusivity": k,
        "heat_capacity": c,
        "source": q,
        "initial": start,
        "boundary": {side: CONDITIONS[kind](*rest) for side, (kind, *rest) in sides.items()},
    }
    return options, start, matrices, given


@pytest.mark.parametrize("varies", [False, True], ids=["constant", "varying"])
@pytest.mark.parametrize("name", CASES)
@LARGE_STEPS
def test_steps_are_those_of_dense_matrices(backend, name, varies):
    options, start, matrices, given = problem(name, varies)
    dt = 0.15
    axes = start.ndim
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
    if name != "ring":
        expected = dense.steady_state(*matrices, given, start)
        found = made("auto", False).solve_steady().u
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def manufactured(scheme, m):
    """Largest error at time 0.2 on a grid that is finer in a corner, and the largest spacing."""
    n = 10 * m + 1

    def exact(x, y, t):
        return np.cos(2 * x + t) * np.sin(1 + y - t)

    def source(x, y, t):
        rate = -np.sin(2 * x + t) * np.sin(1 + y - t) - np.cos(2 * x + t) * np.cos(1 + y - t)
        return rate + 5 * exact(x, y, t)

    s = np.linspace(0, 1, n)
    line = np.expm1(2 * s) / np.expm1(2)
    solver = HeatADI(
        (n, n),
        coordinates={"y": line, "x": line},
        dt=0.2 / (5 * m),
        scheme=scheme,
        source=source,
        initial=lambda x, y: exact(x, y, 0.0),
        boundary={
            "x-": lambda x, y, t: exact(x, y, t),
            "x+": Neumann(lambda x, y, t: -2 * np.sin(2 * x + t) * np.sin(1 + y - t)),
            "y-": Neumann(lambda x, y, t: -np.cos(2 * x + t) * np.cos(1 + y - t)),
            "y+": Robin(
                2.0,
                lambda x, y, t: exact(x, y, t) + np.cos(2 * x + t) * np.cos(1 + y - t) / 2,
            ),
        },
        damped_start=False,
    )
    expected = exact(solver.x, solver.y[:, None], 0.2)
    return np.abs(solver.step(5 * m).u - expected).max()


@pytest.mark.parametrize("scheme", ["peaceman-rachford", "douglas-gunn", "implicit"])
def test_order_two(scheme):
    errors = [manufactured(scheme, m) for m in (1, 2, 4)]

    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (orders > 1.85).all(), (errors, orders)


def test_fine_nodes_where_the_solution_is_steep():
    # A layer of width 0.02: 33 nodes that are dense there do better than 129 even ones.
    def exact(x):
        return np.exp(-x / 0.02)

    s = np.linspace(0, 1, 33)
    data = {"dt": 0.1, "boundary": {"x-": 1.0, "x+": 0.0}, "source": lambda x: -2500 * exact(x)}
    fine = HeatADI((33,), coordinates=[np.expm1(4 * s) / np.expm1(4)], **data).solve_steady()
    even = HeatADI((129,), extent=[(0, 1)], **data).solve_steady()

    assert np.abs(fine.u - exact(fine.x)).max() < 0.5 * np.abs(even.u - exact(even.x)).max()


@pytest.mark.parametrize("scheme", ["peaceman-rachford", "implicit"])
@LARGE_STEPS
def test_heat_is_conserved_and_a_linear_profile_stays(backend, scheme):
    rng = np.random.default_rng(2)
    lines = [np.cumsum(rng.uniform(0.2, 1, n)) for n in (9, 12)]
    options = {"coordinates": lines, "scheme": scheme, "device": backend}
    cells = np.outer(*(np.gradient(line, edge_order=1) for line in lines[::-1]))
    for at in (0, -1):
        cells[at] /= 2
        cells[:, at] /= 2
    start = rng.uniform(size=(12, 9))
    closed = HeatADI((12, 9), dt=0.7, boundary=Neumann(), initial=start, **options)
    linear = HeatADI(
        (12, 9),
        dt=0.7,
        boundary=lambda x, y: 1 + 2 * x - y,
        initial=lambda x, y: 1 + 2 * x - y,
        **options,
    )
    expected = linear.u.copy()

    assert closed.heat() == pytest.approx((cells * start).sum(), rel=1e-13)
    assert closed.step(30).heat() == pytest.approx((cells * start).sum(), rel=1e-12)
    np.testing.assert_allclose(linear.step(10).u, expected, rtol=0, atol=1e-11)


def test_even_coordinates_are_a_spacing():
    options = {"dt": 0.01, "boundary": 0.0, "initial": lambda x, y: np.sin(x) * y}
    lines = np.linspace(-1, 2, 21), np.linspace(0, 3, 11)
    found = HeatADI((11, 21), coordinates=lines, **options).step(5)
    expected = HeatADI((11, 21), extent=((-1, 2), (0, 3)), **options).step(5)

    assert found.result().kernel == expected.result().kernel
    np.testing.assert_allclose(found.u, expected.u, rtol=0, atol=1e-14)
    assert found.result().lines is None


def test_results_and_files(tmp_path):
    x, y = np.array([0.0, 0.1, 0.3, 0.7, 1.0]), np.array([0.0, 1.0, 1.5, 1.6])
    data = {"boundary": {"x": 1.0, "y": Neumann()}}
    solver = HeatADI((4, 5), coordinates={"x": x, "y": y}, dt=0.01, **data).step(2)

    np.testing.assert_array_equal(solver.x, x)
    np.testing.assert_array_equal(solver.settings.coordinates[1], y)
    assert "hx=0.1 to 0.4, hy=0.1 to 1" in repr(solver)
    assert solver.diffusion_number == pytest.approx(0.01 / 0.1**2)
    result = solver.record(0.06, every=0.02)
    np.testing.assert_array_equal(result.y, y)
    np.testing.assert_array_equal(result.to_xarray()["x"], x)
    plt.close(result.plot(show=False).figure)
    result.save(tmp_path / "result.npz")
    np.testing.assert_array_equal(type(result).load(tmp_path / "result.npz").x, x)
    result.to_vtk(tmp_path / "result.vtk")
    text = (tmp_path / "result.vtk").read_bytes()
    head, _, rest = text.partition(b"X_COORDINATES 5 double\n")
    assert head.endswith(b"DATASET RECTILINEAR_GRID\nDIMENSIONS 5 4 1\n")
    np.testing.assert_array_equal(np.frombuffer(rest[:40], ">f8"), x)
    assert rest[40:].startswith(b"\nY_COORDINATES 4 double\n")
    solver.save(tmp_path / "solver.npz")
    other = HeatADI.load(tmp_path / "solver.npz", **data)
    np.testing.assert_array_equal(other.step(3).u, solver.step(3).u)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"spacing": 0.1}, TypeError, "got spacing and coordinates"),
        ({"coordinates": [np.arange(5.0)]}, ValueError, "an array for each of x, y"),
        ({"coordinates": {"x": np.arange(5.0)}}, ValueError, "an array for each of x, y"),
        ({"coordinates": np.zeros((2, 5))}, TypeError, "as a tuple or a mapping"),
        ({"coordinates": [np.arange(5.0)] * 2}, ValueError, "along y must be an array of 4 num"),
        ({"coordinates": [np.arange(6.0), np.arange(4.0)]}, ValueError, "x must be an array of 5"),
        ({"coordinates": [np.ones(5), np.arange(4.0)]}, ValueError, "x must be finite and rising"),
        (
            {"boundary": {"x": "periodic", "y": 0.0}},
            ValueError,
            "6 numbers, the last one that of the image",
        ),
    ],
)
def test_errors(options, error, text):
    lines = [np.arange(5.0) ** 2, np.arange(4.0)]
    with pytest.raises(error, match=text):
        HeatADI((4, 5), **{"coordinates": lines, "dt": 0.1, "boundary": 0.0} | options)


def test_group_and_paper_need_even_nodes(monkeypatch):
    monkeypatch.setattr("pysolvers.distributed._group._world", lambda: None)
    options = {"coordinates": [np.arange(5.0) ** 2] * 2, "dt": 0.1, "boundary": 0.0}
    with pytest.raises(ValueError, match="coordinates evenly spaced"):
        HeatADI((5, 5), **options, group=Group(), split=Slab(0))
    with pytest.raises(ValueError, match="coordinates must be None"):
        wei2013.HeatADI((5, 5), **options, scheme="wei2013")
