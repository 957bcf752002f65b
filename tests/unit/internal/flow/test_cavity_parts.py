"""Parts of `LidDrivenCavity`: direct solver of psi, residuals of walls, stages of the extension."""

import numpy as np
import pytest
import scipy.linalg

from pysolvers import _core
from pysolvers.flow._walls import cavity_wall_residual
from pysolvers.flow.cavity._poisson import solve_poisson

LINE_METHODS = ["thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "pivoted"]


@pytest.mark.parametrize("line_method", ["auto", "pcr"])
@pytest.mark.parametrize("n", [3, 4, 9, 40])
def test_direct_psi_solves_the_five_point_equations(n, line_method, rng):
    source = rng.standard_normal((n, n))
    second = (2 * np.eye(n - 2) - np.eye(n - 2, k=1) - np.eye(n - 2, k=-1)) * (n - 1) ** 2
    matrix = np.kron(second, np.eye(n - 2)) + np.kron(np.eye(n - 2), second)
    expected = np.zeros((n, n))
    expected[1:-1, 1:-1] = np.linalg.solve(matrix, source[1:-1, 1:-1].ravel()).reshape(n - 2, n - 2)

    psi = solve_poisson(source, line_method=line_method)

    np.testing.assert_allclose(psi, expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(psi, solve_poisson(source, line_method=line_method, threads=2))


def implicit(velocity, dt, nu, rhs):
    """Solve (1 + dt (velocity delta_x - nu delta_xx)) d = rhs along the last axis, 0 outside."""
    h, found = 1 / (rhs.shape[1] + 1), np.empty_like(rhs)
    for j in range(len(rhs)):
        half, diffusion = dt[j] * velocity[j] / (2 * h), dt[j] * nu / h**2
        upper, lower = np.roll(half - diffusion, 1), np.roll(-half - diffusion, -1)
        bands = np.stack([upper, 1 + 2 * diffusion, lower])
        found[j] = scipy.linalg.solve_banded((1, 1), bands, rhs[j])
    return found


SIZES = [5, 9, 12, 18, 39]  # lines of 3 to 37 rows: vectors with and without a rest


@pytest.mark.each_value
@pytest.mark.parametrize("steepness", [0.0, 1.0, 300.0])
@pytest.mark.parametrize("line_method", LINE_METHODS)
@pytest.mark.parametrize("n", SIZES)
def test_step_of_the_vorticity_is_that_of_the_scheme(n, line_method, steepness, rng):
    """Factored backward Euler in differences, whose step is cut where the vorticity is steep.

    The factor is 1 / (1 + dt (abs(w_E - w_W) + abs(w_N - w_S))): about 1, 0.8 and 0.01 here.
    """
    nu, step = 0.02, 0.1 * (11 / (n - 1)) ** 2
    psi, omega = np.zeros((n, n)), steepness * rng.uniform(-1, 1, (n, n)) + np.arange(n) / n
    psi[1:-1, 1:-1] = min(1.0, 11 / (n - 1)) * rng.uniform(-1, 1, (n - 2, n - 2))
    before, stages, h = omega.copy(), 1 << _core.STAGES["omega"], 1 / (n - 1)
    codes = _core.SCHEMES["adi"], _core.WALLS["thom"], _core.DIRECTIONS["x"]

    status, _ = _core.cavity_iterate(
        *(*codes, stages, nu, 1.0, step, 1, 0, psi, omega, 1, _core.METHODS[line_method], 0, 1),
        np.zeros(1, np.int64),
    )

    centre, east, west = np.s_[1:-1, 1:-1], np.s_[1:-1, 2:], np.s_[1:-1, :-2]
    north, south = np.s_[2:, 1:-1], np.s_[:-2, 1:-1]
    u, v = (psi[north] - psi[south]) / (2 * h), (psi[west] - psi[east]) / (2 * h)
    w = before
    rate = np.abs(w[east] - w[west]) + np.abs(w[north] - w[south])
    local = step / (1 + step * rate)
    right = nu * (w[east] + w[west] + w[north] + w[south] - 4 * w[centre]) / h**2
    right -= (u * (w[east] - w[west]) + v * (w[north] - w[south])) / (2 * h)
    change = implicit(u, local, nu, local * right)
    change = implicit(v.T, local.T, nu, change.T).T
    w[centre] += change
    assert status == 0
    assert np.abs(change).max() > 1e-4
    np.testing.assert_allclose(omega, w, rtol=0, atol=1e-12 * np.abs(w).max())


@pytest.mark.each_value
@pytest.mark.parametrize("line_method", LINE_METHODS)
@pytest.mark.parametrize("n", SIZES)
def test_double_sweep_for_psi_is_that_of_peaceman_and_rachford(n, line_method, rng):
    """(A + r) p* = (r - B) p + h^2 omega and (B + r) p = (r - A) p* + h^2 omega."""
    psi, omega, rows = np.zeros((n, n)), rng.uniform(-1, 1, (n, n)), n - 2
    psi[1:-1, 1:-1] = rng.uniform(-1, 1, (rows, rows))
    p, source = psi[1:-1, 1:-1].copy(), omega[1:-1, 1:-1] / (n - 1) ** 2
    second = 2 * np.eye(rows) - np.eye(rows, k=1) - np.eye(rows, k=-1)
    extremes = 2 - 2 * np.cos(np.pi / (n - 1)), 2 - 2 * np.cos(np.pi * (n - 2) / (n - 1))
    r, stages = np.sqrt(np.prod(extremes)), 1 << _core.STAGES["psi"]
    codes = _core.SCHEMES["adi"], _core.WALLS["thom"], _core.DIRECTIONS["x"]

    status, _ = _core.cavity_iterate(
        *(*codes, stages, 0.01, 1.0, 0.1, 1, 0, psi, omega, 1, _core.METHODS[line_method], 0, 1),
        np.zeros(1, np.int64),
    )

    shifted = second + r * np.eye(rows)
    p = np.linalg.solve(shifted, (r * p - second @ p + source).T).T
    p = np.linalg.solve(shifted, r * p - p @ second + source)
    assert status == 0
    np.testing.assert_allclose(psi[1:-1, 1:-1], p, rtol=0, atol=1e-13 * np.abs(p).max())


def cavity_fields(wall, n=9, lid=2.0):
    """Return random psi, and omega that has the values of the formula on the walls."""
    h, rng = 1 / (n - 1), np.random.default_rng(5)
    psi, omega = np.zeros((n, n)), rng.normal(size=(n, n))
    psi[1:-1, 1:-1] = rng.normal(size=(n - 2, n - 2))
    for k in range(4):  # each wall in turn is the first row, y = 1 with k = 2
        p, w = np.rot90(psi, -k), np.rot90(omega, -k)
        speed = lid if k == 2 else 0.0
        one, two = p[1, 1:-1] / h**2, p[2, 1:-1] / h**2
        w[0, 1:-1] = {
            "thom": -2 * one - 2 * speed / h,
            "woods": -3 * one - w[1, 1:-1] / 2 - 3 * speed / h,
            "jensen": -4 * one + two / 2 - 3 * speed / h,
        }[wall]
    return psi, omega


@pytest.mark.parametrize("wall", ["jensen", "woods", "thom"])
def test_residual_of_the_walls(wall):
    psi, omega = cavity_fields(wall)
    assert cavity_wall_residual(wall, psi, omega, 2.0) < 1e-12
    for side in (np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1]):
        other = omega.copy()
        other[side] += 0.5
        assert cavity_wall_residual(wall, psi, other, 2.0) == pytest.approx(0.25, rel=1e-10)
