"""The damped start of HeatADI: bounds, order of convergence, choice, half-steps by hand."""

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.linalg import spsolve

from pysolvers import HeatADI, Neumann, Robin
from pysolvers.papers import wei2013

# The damped start is for steps that do not resolve the fast part of the solution.
pytestmark = pytest.mark.filterwarnings("ignore:HeatADI.*too large for the solution:RuntimeWarning")

ROUNDING = 4 * np.finfo(float).eps


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("r", [65.0, 1e4])
def test_jump_at_a_side_leaves_no_overshoot(backend, axis, r):
    other = {"x": "y", "y": "x"}[axis]
    boundary = {f"{axis}-": 1.0, f"{axis}+": 0.0, other: Neumann()}
    solver = HeatADI((129, 65), spacing=0.01, dt=r * 1e-4, boundary=boundary, device=backend)

    for _ in range(50):
        u = solver.step().u
        assert u.max() <= 1 + ROUNDING
        assert u.min() >= -ROUNDING

    assert solver.result().damped_start


def test_without_damping_the_same_jump_overshoots(backend):
    boundary = {"x-": 1.0, "x+": 0.0, "y": Neumann()}
    solver = HeatADI(
        (129, 65), spacing=0.01, dt=65e-4, boundary=boundary, damped_start=False, device=backend
    )

    assert solver.step().u.max() > 1.5
    assert not solver.result().damped_start


def test_jump_in_three_dimensions(backend):
    boundary = {"x": Neumann(), "y": Neumann(), "z-": 2.0, "z+": -1.0}
    solver = HeatADI((33, 9, 12), spacing=0.05, dt=0.5, boundary=boundary, device=backend)

    for _ in range(20):
        u = solver.step().u
        assert u.max() <= 2 + 2 * ROUNDING
        assert u.min() >= -1 - 2 * ROUNDING


def exact(x, y, t):
    """Second differences of this are exact: the error is that of time."""
    return (1 + x * x + y * y + 0.5 * x * x * y * y) * np.exp(-t)


def source(x, y, t):
    return -exact(x, y, t) - np.exp(-t) * (4 + x * x + y * y)


def east(x, y, t):
    return (2 * x + x * y * y) * np.exp(-t)


def north(x, y, t):
    return (2 * y + x * x * y) * np.exp(-t)


SIDES = {
    "values": exact,
    "fluxes": {"x-": Neumann(), "x+": Neumann(east), "y-": Neumann(), "y+": Neumann(north)},
    "both": {"x-": Neumann(), "x+": exact, "y-": exact, "y+": Neumann(north)},
    "exchange": {
        "x-": Robin(2.0, exact),
        "x+": Robin(1.0, lambda x, y, t: exact(x, y, t) + east(x, y, t)),
        "y": exact,
    },
}


@pytest.mark.parametrize("boundary", SIDES.values(), ids=SIDES)
def test_damped_start_keeps_order_two(backend, boundary):
    errors = []
    for count in (32, 64, 128):
        result = HeatADI(
            (33, 33),
            spacing=1 / 32,
            dt=1 / count,
            boundary=boundary,
            source=source,
            initial=lambda x, y: exact(x, y, 0.0),
            damped_start=True,
            device=backend,
        ).run(0.5)
        errors.append(np.abs(result.u - exact(result.x, result.y[:, None], 0.5)).max())

    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders.min() > 1.9


def test_a_plate_heated_from_a_side_has_order_two(backend):
    """The Fourier series at t = 0.1; without the damped start the error is 0.75 at r = 655."""
    x = np.linspace(0, 1, 257)
    k = np.arange(1, 60)[:, None]
    waves = 2 / (np.pi * k) * np.sin(np.pi * k * x) * np.exp(-(k**2) * np.pi**2 * 0.1)
    exact = 1 - x - waves.sum(0)
    boundary = {"x-": 1.0, "x+": 0.0, "y": Neumann()}
    errors = []
    for dt in (1e-2, 5e-3, 2.5e-3):
        solver = HeatADI((3, 257), spacing=1 / 256, dt=dt, boundary=boundary, device=backend)
        errors.append(np.abs(solver.run(0.1).u[1] - exact).max())

    assert errors[0] < 1e-3
    assert np.log2(np.array(errors[:-1]) / errors[1:]).min() > 1.9


def line_matrix(n, r, ends):
    """1 - t d k d of a line with constant k; a row of a value side is that of the identity."""
    matrix = sparse.diags_array([-r, 1 + 2 * r, -r], offsets=[-1, 0, 1], shape=(n, n))
    matrix = matrix.astype(float).tolil()
    for row, inner, kind in ((0, 1, ends[0]), (n - 1, n - 2, ends[1])):
        matrix[row] = 0
        matrix[row, row] = 1.0
        if kind == "flux":
            matrix[row, row], matrix[row, inner] = 1 + 2 * r, -2 * r
    return matrix.tocsc()


@pytest.mark.parametrize("dt", [0.05, 0.7, 20.0])
def test_half_steps_are_those_of_sparse_matrices(rng, backend, dt):
    """(1 + X)(1 + Y) T1 = T0 + dt/2 q, then (1 + X + Y) T = T1 + dt/2 q."""
    (ny, nx), h, flux = (12, 15), 0.1, 0.4
    start, heat = rng.random((ny, nx)), rng.random((ny, nx))
    solver = HeatADI(
        (ny, nx),
        spacing=h,
        dt=dt,
        initial=start,
        source=heat,
        boundary={"x-": lambda y: 3 + y**2, "x+": Neumann(flux), "y-": Neumann(), "y+": -2.0},
        damped_start=True,
        device=backend,
    )
    values = solver.u.copy()
    given = np.zeros((ny, nx), bool)
    given[:, 0] = given[-1] = True
    inflow = 2 * (dt / 2) / h * flux
    along_x = line_matrix(nx, dt / 2 / h**2, ("value", "flux"))
    along_y = line_matrix(ny, dt / 2 / h**2, ("flux", "value"))

    right = values + dt / 2 * heat
    right[:, 0] = values[:, 0]
    right[:, -1] += inflow
    half = spsolve(along_x, right.T).T
    half[-1] = values[-1]
    half = np.where(given, values, spsolve(along_y, half))

    ones = sparse.eye_array(ny), sparse.eye_array(nx)
    whole = sparse.kron(ones[0], along_x) + sparse.kron(along_y - ones[0], ones[1])
    right = half + dt / 2 * heat
    right[:, -1] += inflow
    keep = sparse.diags_array(1.0 - given.ravel())
    matrix = keep @ whole + sparse.diags_array(1.0 * given.ravel())
    expected = spsolve(matrix.tocsc(), np.where(given, values, right).ravel())

    found = solver.step().u
    np.testing.assert_allclose(found, expected.reshape(ny, nx), rtol=0, atol=1e-2)
    np.testing.assert_array_equal(found[given], values[given])


def test_data_along_one_axis_need_no_iteration(backend):
    """The solves along x and y alone are exact."""
    x = np.linspace(0, 1.4, 15)
    start, heat = np.tile(np.sin(9 * x), (12, 1)), np.tile(1.0 * (x > 0.5), (12, 1))
    solver = HeatADI(
        (12, 15),
        spacing=0.1,
        dt=0.7,
        initial=start,
        source=heat,
        boundary={"x-": 3.0, "x+": Neumann(0.4), "y": Neumann()},
        damped_start=True,
        device=backend,
    )
    t = solver.u[0].copy()

    for _ in range(2):
        right = t + 0.35 * heat[0]
        right[0] = 3.0
        right[-1] += 2 * 0.35 / 0.1 * 0.4
        t = spsolve(line_matrix(15, 35.0, ("value", "flux")), right)

    np.testing.assert_allclose(solver.step().u, np.tile(t, (12, 1)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("r", [10.0, 65.0, 1000.0])
@pytest.mark.parametrize("shape", [(65, 129), (33, 20, 40)])
def test_corners_of_different_values_leave_no_overshoot(backend, shape, r):
    boundary = {"x-": 1.0, "x+": 0.0, "y": 0.0} | ({"z-": -1.0, "z+": 0.5} if shape[2:] else {})
    solver = HeatADI(shape, spacing=1.0, dt=r, boundary=boundary, device=backend)

    for _ in range(20):
        u = solver.step().u
        assert u.max() <= 1 + 1e-9
        assert u.min() >= min(boundary.values()) - 1e-9


@pytest.mark.parametrize(
    ("options", "damped"),
    [
        ({"initial": lambda x, y: np.sin(3 * x) * np.sin(3 * y)}, False),
        ({"boundary": 1.0, "initial": 1.0}, False),
        ({"boundary": 1.0, "dt": 1e-7}, False),
        ({"boundary": 1.0}, True),
        ({"boundary": Neumann(), "initial": lambda x, y: 1.0 * (x < 0.5) + 0 * y}, True),
        ({"boundary": Robin(1e4, 1.0)}, True),
        ({"boundary": "periodic", "initial": lambda x, y: 1.0 * (x < 0.5) + 0 * y}, True),
        ({"boundary": 1.0, "damped_start": False}, False),
        ({"initial": 0.0, "damped_start": True}, True),
    ],
)
def test_start_is_damped_where_the_data_are_rough(options, damped):
    solver = HeatADI(
        (33, 33), extent=((0, np.pi / 3), (0, np.pi / 3)), **{"dt": 0.01, "boundary": 0.0} | options
    )

    result = solver.step().result()

    assert result.damped_start == damped
    assert ("damped start" in repr(result)) == damped


def test_scheme_of_the_paper_has_no_damped_start():
    assert not wei2013.heated_plate(33).step().result().damped_start
    assert not wei2013.heated_plate(33, damped_start=None).step().result().damped_start


def test_conductivity_across_the_damped_steps(rng):
    """Heat is neither lost nor made by the half-steps, with k that varies and closed sides."""
    k, start = rng.uniform(0.1, 2, (11, 13)), rng.random((11, 13))
    solver = HeatADI(
        start.shape,
        spacing=0.1,
        dt=1.0,
        diffusivity=k,
        boundary="periodic",
        initial=start,
        damped_start=True,
    )

    assert solver.step().u.sum() == pytest.approx(start.sum(), rel=1e-13)


@pytest.mark.filterwarnings("ignore:HeatADI. in (two|three) dimensions:RuntimeWarning")
@pytest.mark.parametrize("seed", [31, 35, 50, 55, 57])
def test_corrections_that_do_not_commute_stay_bounded(seed):
    """Maximum principle with k, spacings and coefficients that differ by orders of magnitude."""
    rng = np.random.default_rng(seed)
    shape, sides = tuple(rng.integers(4, 7, 3)), {}
    for axis in "xyz":
        if rng.random() < 0.3:
            sides[axis] = "periodic"
            continue
        for end in "-+":
            kinds = Neumann(), 1.0, Robin(10.0 ** rng.integers(4), 1.0)
            sides[axis + end] = kinds[rng.integers(3)]
    solver = HeatADI(
        shape,
        spacing=tuple(rng.permutation([0.01, 0.1, 1.0])),
        dt=10.0,
        diffusivity=rng.uniform(0.1, 3.0, shape) ** 2,
        boundary=sides,
        initial=rng.random(shape),
        damped_start=True,
    )
    u = solver.step().u

    assert u.min() > -0.05
    assert u.max() < 1.05


def test_damped_start_goes_on_from_a_file(tmp_path):
    straight = HeatADI((20, 20), spacing=0.1, dt=1.0, boundary=1.0)
    parted = HeatADI((20, 20), spacing=0.1, dt=1.0, boundary=1.0)
    parted.step()
    parted.save(tmp_path / "state.npz")
    loaded = HeatADI.load(tmp_path / "state.npz", boundary=1.0)

    assert loaded.result().damped_start
    np.testing.assert_array_equal(loaded.step(3).u, straight.step(4).u)
