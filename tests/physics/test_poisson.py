"""FastPoisson converges with second order to solutions of the differential equation."""

import numpy as np
import pytest
from command_line import main

from pysolvers import Dirichlet, FastPoisson, Neumann
from pysolvers.cases.poisson import duct_series, pipe_series

PAIRS = ("DD", "DN", "ND", "NN")
GRIDS = ("nodes", "cells")


def order(errors):
    """Return the order of convergence between the two finest grids, each twice as fine."""
    return np.log2(errors[-2] / errors[-1])


def error(u, exact, weights=None):
    """Return the largest error; in a singular case the mean difference is left out."""
    difference = u - exact
    if weights is not None:
        difference = difference - (difference * weights).sum() / weights.sum()
    return np.abs(difference).max()


def waves(x, y, z=0.0):
    """Return a function that no combination of sides makes periodic or symmetric."""
    return np.exp(0.7 * x - 0.4 * y) * np.cos(2 * x + y + 0.5) + np.sin(2 * z + x)


def gradient(x, y, z=0.0):
    e, s, c = np.exp(0.7 * x - 0.4 * y), np.sin(2 * x + y + 0.5), np.cos(2 * x + y + 0.5)
    return {
        "x": e * (0.7 * c - 2 * s) + np.cos(2 * z + x),
        "y": e * (-0.4 * c - s),
        "z": 2 * np.cos(2 * z + x),
    }


def laplacian(x, y, z=None):
    e, s, c = np.exp(0.7 * x - 0.4 * y), np.sin(2 * x + y + 0.5), np.cos(2 * x + y + 0.5)
    along_x = e * ((0.49 - 4) * c - 2.8 * s)
    along_y = e * ((0.16 - 1) * c + 0.8 * s)
    depth = 0.0 if z is None else z
    return along_x + along_y - (1 if z is None else 5) * np.sin(2 * depth + x)


def boundary_of(pairs):
    """Return the conditions that `waves` satisfies, for two letters for each of x, y, z."""
    names = "xyz"[: len(pairs)]
    conditions = {}
    for name, pair in zip(names, pairs, strict=True):
        for end, sign, normal in zip(pair, "-+", (-1, 1), strict=True):
            if end == "D":
                conditions[name + sign] = Dirichlet(by_names(names, waves))
            else:
                conditions[name + sign] = Neumann(outward(names, name, normal))
    return conditions


def by_names(names, function):
    if names == "xy":
        return lambda x, y: function(x, y)
    return lambda x, y, z: function(x, y, z)


def outward(names, name, normal):
    return by_names(names, lambda *place: normal * gradient(*place)[name])


def volumes(sizes, on_nodes):
    """Return the trapezoidal weights of nodes, or those of equal cells."""
    weights = np.ones(sizes)
    if on_nodes:
        for axis in range(len(sizes)):
            for end in (0, -1):
                weights[(slice(None),) * axis + (end,)] /= 2
    return weights


@pytest.mark.parametrize("x", PAIRS)
@pytest.mark.parametrize("y", PAIRS)
@pytest.mark.parametrize("grid", GRIDS)
def test_rectangle_converges_with_second_order(grid, y, x):
    errors = []
    for n in (24, 48, 96):
        sizes = (n + (grid == "nodes"), 2 * n // 3 + (grid == "nodes"))
        solver = FastPoisson(
            sizes,
            extent=((0.2, 1.2), (-0.5, 1.0)),
            boundary=boundary_of([x, y]),
            grid=grid,
            on_incompatible="ignore",
        )
        places = solver.x, solver.y[:, None]
        weights = volumes(sizes, grid == "nodes") if solver.is_singular else None
        errors.append(error(solver.solve(laplacian(*places)), waves(*places), weights))

    assert 1.85 < order(errors) < 2.3
    assert errors[-1] < 2e-3


@pytest.mark.parametrize("pairs", [("DD", "DN", "NN"), ("ND", "NN", "DD"), ("NN", "NN", "NN")])
@pytest.mark.parametrize("grid", GRIDS)
def test_box_converges_with_second_order(grid, pairs):
    errors = []
    for n in (12, 24, 48):
        m = n + (grid == "nodes")
        solver = FastPoisson(
            (m, m, m),
            extent=((0, 1), (0, 1.5), (-0.5, 0.5)),
            boundary=boundary_of(pairs),
            grid=grid,
            on_incompatible="ignore",
        )
        places = solver.x, solver.y[:, None], solver.z[:, None, None]
        weights = volumes((m, m, m), grid == "nodes") if solver.is_singular else None
        errors.append(error(solver.solve(laplacian(*places)), waves(*places), weights))

    assert 1.8 < order(errors) < 2.3
    assert errors[-1] < 5e-3


@pytest.mark.parametrize("x", PAIRS)
@pytest.mark.parametrize("grid", GRIDS)
def test_stretched_rectangle_converges_with_second_order(grid, x):
    errors = []
    for n in (24, 48, 96, 192):
        m = n + (grid == "nodes")
        s = np.linspace(0, 1, n + 1)
        edges = 0.2 + np.tanh(2.5 * s) / np.tanh(2.5)  # fine at the upper end
        solver = FastPoisson(
            (m, m),
            (edges, 1 / n),
            boundary=boundary_of([x, "DN"]),
            grid=grid,
        )
        places = solver.x, solver.y[:, None]
        errors.append(error(solver.solve(laplacian(*places)), waves(*places)))

    assert 1.85 < order(errors) < 2.3
    assert errors[-1] < 1e-3


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("ends", ["PP", "PD", "DP", "PN"])
def test_waves_have_the_exact_discrete_factor(ends, dtype):
    # One wave along a periodic axis is an eigenvector of the three-point formula.
    n, k = 40, 3
    kinds = {"P": "periodic", "D": 0.0, "N": Neumann()}
    solver = FastPoisson(
        (n, n),
        extent=((0, 2 * np.pi), (0, 2 * np.pi)),
        boundary={"x": kinds[ends[0]], "y": kinds[ends[1]]},
        grid="cells",
        dtype=dtype,
    )
    h = 2 * np.pi / n
    eigenvalues = {"P": k, "D": k / 2, "N": k / 2}
    shapes = {
        "P": lambda t: np.cos(k * t + 0.3),
        "D": lambda t: np.sin(k * t / 2),
        "N": lambda t: np.cos(k * t / 2),
    }
    total = -sum((2 / h * np.sin(eigenvalues[end] * h / 2)) ** 2 for end in ends)
    f = shapes[ends[0]](solver.x) * shapes[ends[1]](solver.y)[:, None]

    np.testing.assert_allclose(solver.solve(f), f / total, atol=1e-14)


def test_cubic_polynomial_is_exact():
    # The three-point formula has no error for polynomials of degree 3.
    solver = FastPoisson(
        (9, 12), (0.1, 0.3), boundary=lambda x, y: x**3 - 2 * x * y + y**2, grid="nodes"
    )
    u = solver.solve(lambda x, y: 6 * x + 2 + 0 * y)

    np.testing.assert_allclose(
        u, solver.x**3 - 2 * solver.x * solver.y[:, None] + solver.y[:, None] ** 2, atol=1e-13
    )


def test_torsion_of_a_square_bar():
    # lap u = -1, u = 0 on the sides; the middle value by its Fourier series, about 0.0736714.
    errors = []
    for n in (64, 128, 256):
        u = FastPoisson((n + 1, n + 1), 1 / n, boundary=0.0).solve(-1.0)
        series = sum(
            (-1) ** ((m - 1) // 2) / m**3 / np.cosh(m * np.pi / 2) for m in range(1, 60, 2)
        )
        errors.append(abs(u[n // 2, n // 2] - (1 / 8 - 4 / np.pi**3 * series)))

    assert 1.95 < order(errors) < 2.05
    assert errors[-1] < 2e-6


def test_series_of_ducts_and_pipes():
    # Torsion of a square bar: 0.1405770 times the side to the fourth (Timoshenko and Goodier).
    assert 4 * duct_series(1.0).mean == pytest.approx(0.1405770, abs=5e-8)
    assert duct_series(1.0).middle == pytest.approx(0.0736714, abs=5e-8)
    # Long ones have the profiles x (1 - x) / 2 and (1 - r^2) / 4.
    assert duct_series(60.0).middle == pytest.approx(1 / 8, abs=1e-15)
    assert pipe_series(60.0).middle == pytest.approx(1 / 4, abs=1e-15)


@pytest.mark.parametrize("problem", ["duct", "pipe"])
def test_command_compares_with_the_series(problem, capsys, tmp_path):
    options = ["--n", "64", "--no-plot", "--output", str(tmp_path)]
    assert main(["run", "poisson", "--problem", problem, *options]) == 0
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.startswith("64 x 64 ") and "." in line][:1]
    orders = [float(word) for word in line.split()[5::3]]
    assert all(1.95 < order < 2.05 for order in orders), out
    assert (tmp_path / f"poisson_{problem}_64.npz").exists()
