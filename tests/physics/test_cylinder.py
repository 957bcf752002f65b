"""The square cylinder: discrete identities, order, restart, errors, published values."""

import functools
import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest

from pysolvers import BackendError, CoarseGridWarning, ConvergenceError
from pysolvers.flow import CylinderResult, SquareCylinder
from pysolvers.papers import breuer_drag

# Grids with waves are fast, and the discrete equations hold on them as well.
pytestmark = pytest.mark.filterwarnings("ignore::pysolvers.CoarseGridWarning")

SMALL = (33, 201)  # h = 1/4 along both axes
FINER = (65, 401)


@pytest.fixture
def make(backend):
    """`SquareCylinder` on one backend."""
    return functools.partial(SquareCylinder, device=backend)


def assert_same_bits(a, b):
    """Compare two solvers: fields, circulation, forces, times and the whole history."""
    for name in ("psi", "omega", "circulation", "time", "dt", "steps", "forces"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    first, second = a.result().history, b.result().history
    for name in first.__slots__:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


def laplacian(field, hx, hy):
    """Return the five-point Laplacian at the inner nodes."""
    along_x = field[1:-1, 2:] - 2 * field[1:-1, 1:-1] + field[1:-1, :-2]
    along_y = field[2:, 1:-1] - 2 * field[1:-1, 1:-1] + field[:-2, 1:-1]
    return along_x / hx**2 + along_y / hy**2


def spacing(solver):
    return solver.x[1] - solver.x[0], solver.y[1] - solver.y[0]


def body_of(solver):
    """Return the nodes of the cylinder as a mask."""
    x, y = solver.x - solver.x[-1] / 4, solver.y[:, None]
    return (np.abs(x) < 0.5 + 1e-9) & (np.abs(y) < 0.5 + 1e-9)


@pytest.mark.parametrize("steady", [False, True])
@pytest.mark.parametrize("shape", [SMALL, (49, 251)])
def test_psi_satisfies_its_equation_to_rounding(shape, steady):
    solver = SquareCylinder(30, shape, steady=steady).step(7)
    psi, omega, body = solver.psi, solver.omega, body_of(solver)

    residual = laplacian(psi, *spacing(solver)) + omega[1:-1, 1:-1]

    assert np.abs(residual[~body[1:-1, 1:-1]]).max() < 1e-10 * np.abs(omega).max()


@pytest.mark.parametrize("cylinder", ["free", "fixed"])
def test_psi_has_one_value_on_the_cylinder(cylinder):
    solver = SquareCylinder(100, SMALL, cylinder=cylinder).step(20)
    psi, body = solver.psi, body_of(solver)

    values = np.unique(psi[body])

    assert len(values) == 1
    assert (values[0] == 0) == (cylinder == "fixed")
    # The nodes of the body are set at the end. That the charges make psi constant shows in the
    # harmonic interior of the solution: at the nodes next to the faces the residual is rounding.
    j, i = np.argwhere(body)[0]
    hx, hy = spacing(solver)
    residual = laplacian(psi, hx, hy) + solver.omega[1:-1, 1:-1]
    assert np.abs(residual[j - 2, i - 1 : i + 4]).max() < 1e-10


def circulation_around(solver, rows, columns):
    """Return minus the flux of grad psi through the faces of the cells of a box of nodes."""
    psi, (hx, hy) = solver.psi, spacing(solver)
    (j0, j1), (i0, i1) = rows, columns
    right = (psi[j0 : j1 + 1, i1 + 1] - psi[j0 : j1 + 1, i1]).sum() * hy / hx
    left = (psi[j0 : j1 + 1, i0] - psi[j0 : j1 + 1, i0 - 1]).sum() * hy / hx
    top = (psi[j1 + 1, i0 : i1 + 1] - psi[j1, i0 : i1 + 1]).sum() * hx / hy
    bottom = (psi[j0, i0 : i1 + 1] - psi[j0 - 1, i0 : i1 + 1]).sum() * hx / hy
    return -(right - left + top - bottom)


def test_circulation_of_psi_is_the_balanced_one():
    solver = SquareCylinder(100, FINER).step(30)
    # the box half a side away from the cylinder: h = 1/8, faces at 12 and 13, -1/2 and 1/2
    rows, columns = (24, 40), (92, 108)

    found = circulation_around(solver, rows, columns)

    assert abs(solver.circulation) > 1e-4
    assert found == pytest.approx(solver.circulation, rel=1e-9)


def test_circulation_changes_by_the_flux_of_vorticity():
    solver = SquareCylinder(100, FINER, dt=0.02).step(100)
    rates, values = [], [solver.circulation]
    for _ in range(2):
        rates.append(flux_of_vorticity(solver, (24, 40), (92, 108), 1 / 100))
        solver.step()
        values.append(solver.circulation)

    expected = values[1] + 0.02 * (1.5 * rates[1] - 0.5 * rates[0])

    assert abs(values[2] - values[1]) > 1e-5
    assert values[2] == pytest.approx(expected, abs=1e-12)


def flux_of_vorticity(solver, rows, columns, nu):
    """Return the inflow of vorticity through the faces of the cells of a box, node by node."""
    psi, w, (hx, hy) = solver.psi, solver.omega, spacing(solver)
    u = np.zeros_like(psi)
    v = np.zeros_like(psi)
    u[1:-1] = (psi[2:] - psi[:-2]) / (2 * hy)
    v[:, 1:-1] = (psi[:, :-2] - psi[:, 2:]) / (2 * hx)
    (j0, j1), (i0, i1) = rows, columns
    total = 0.0
    for j in range(j0, j1 + 1):
        for sign, a, b in ((-1, (j, i0 - 1), (j, i0)), (1, (j, i1), (j, i1 + 1))):
            mean = (u[a] + u[b]) * (w[a] + w[b]) / 4
            total += sign * hy * (nu * (w[b] - w[a]) / hx - mean)
    for i in range(i0, i1 + 1):
        for sign, a, b in ((-1, (j0 - 1, i), (j0, i)), (1, (j1, i), (j1 + 1, i))):
            mean = (v[a] + v[b]) * (w[a] + w[b]) / 4
            total += sign * hx * (nu * (w[b] - w[a]) / hy - mean)
    return total


def dense_half_step(diffusion, speed, fixed, values):
    """Solve (1 + speed delta - diffusion delta^2) w = values on lines, with fixed entries."""
    n = len(values)
    matrix = np.eye(n)
    for k in range(1, n - 1):
        if not fixed[k]:
            matrix[k, k - 1 : k + 2] += [-diffusion - speed[k], 2 * diffusion, speed[k] - diffusion]
    return np.linalg.solve(matrix, values)


def test_step_is_peaceman_and_rachford():
    dt, re = 0.05, 80.0
    solver = SquareCylinder(re, (33, 101), length=25, dt=dt).step(3)
    hx, hy = spacing(solver)
    old_psi, old_w = solver.psi.copy(), solver.omega.copy()
    solver.step()
    psi, w, body = solver.psi.copy(), solver.omega.copy(), body_of(solver)
    solver.step()
    walls = body.copy()
    walls[0, 1:] = walls[-1, 1:] = True
    start = np.where(walls, 1.5 * w - 0.5 * old_w, w)

    star = 1.5 * psi - 0.5 * old_psi
    u, v = np.zeros_like(psi), np.zeros_like(psi)
    u[1:-1] = (star[2:] - star[:-2]) / (2 * hy)
    v[:, 1:-1] = (star[:, :-2] - star[:, 2:]) / (2 * hx)
    fixed = body.copy()
    fixed[0] = fixed[-1] = True
    fixed[:, 0] = fixed[:, -1] = True
    outlet = w[:, -1].copy()
    c = u[:, -1] * dt / hx
    outlet[1:-1] += (
        -c / 2 * (3 * w[:, -1] - 4 * w[:, -2] + w[:, -3])
        + c**2 / 2 * (w[:, -1] - 2 * w[:, -2] + w[:, -3])
    )[1:-1]
    rx, ry = dt / (2 * re * hx**2), dt / (2 * re * hy**2)
    cu, cv = u * dt / (4 * hx), v * dt / (4 * hy)
    right = start.copy()
    inner = (ry - cv)[1:-1] * start[2:] + (1 - 2 * ry) * start[1:-1] + (ry + cv)[1:-1] * start[:-2]
    right[1:-1] = np.where(fixed[1:-1], start[1:-1], inner)
    right[:, -1] = (w[:, -1] + outlet) / 2
    half = np.array([dense_half_step(rx, cu[j], fixed[j], right[j]) for j in range(len(w))])
    right = start.copy()
    inner = (
        (rx - cu)[:, 1:-1] * half[:, 2:]
        + (1 - 2 * rx) * half[:, 1:-1]
        + (rx + cu)[:, 1:-1] * half[:, :-2]
    )
    right[:, 1:-1] = np.where(fixed[:, 1:-1], start[:, 1:-1], inner)
    expected = np.array(
        [dense_half_step(ry, cv[:, i], fixed[:, i], right[:, i]) for i in range(w.shape[1])]
    ).T

    np.testing.assert_allclose(solver.omega[~fixed], expected[~fixed], atol=1e-11)
    np.testing.assert_allclose(solver.omega[1:-1, -1], outlet[1:-1], atol=1e-12)
    outlet = psi[:, -1].copy()
    c = dt / hx
    outlet += -c / 2 * (3 * psi[:, -1] - 4 * psi[:, -2] + psi[:, -3])
    outlet += c**2 / 2 * (psi[:, -1] - 2 * psi[:, -2] + psi[:, -3])
    np.testing.assert_allclose(solver.psi[1:-1, -1], outlet[1:-1], atol=1e-12)


@pytest.mark.parametrize("wall", ["thom", "woods", "jensen"])
def test_walls_have_the_formula(wall):
    solver = SquareCylinder(100, FINER, wall=wall).step(5)
    psi, w, (hx, hy) = solver.psi, solver.omega, spacing(solver)
    j0, j1, i0, i1 = 28, 36, 96, 104

    def formula(p1, p2, w1, on_wall, h):
        p1, p2 = p1 - on_wall, p2 - on_wall
        return {
            "thom": -2 * p1 / h**2,
            "woods": -3 * p1 / h**2 - w1 / 2,
            "jensen": -(8 * p1 - p2) / (2 * h**2),
        }[wall]

    for end, step in ((0, 1), (-1, -1)):
        found = formula(psi[end + step], psi[end + 2 * step], w[end + step], psi[end], hy)
        np.testing.assert_allclose(w[end, 1:], found[1:], rtol=1e-11)
    value = psi[j0, i0]
    for line, h, one, two, part in (
        (w[j0:, i0], hx, np.s_[j0:, i0 - 1], np.s_[j0:, i0 - 2], j1 - j0),
        (w[j0:, i1], hx, np.s_[j0:, i1 + 1], np.s_[j0:, i1 + 2], j1 - j0),
        (w[j0, i0:], hy, np.s_[j0 - 1, i0:], np.s_[j0 - 2, i0:], i1 - i0),
        (w[j1, i0:], hy, np.s_[j1 + 1, i0:], np.s_[j1 + 2, i0:], i1 - i0),
    ):
        found = formula(psi[one], psi[two], w[one], value, h)
        np.testing.assert_allclose(line[1:part], found[1:part], rtol=1e-11)
    # Thom's formula at the corners, whatever the faces have
    corner = -(psi[j0, i0 - 1] - value) / hx**2 - (psi[j0 - 1, i0] - value) / hy**2
    assert w[j0, i0] == pytest.approx(corner, rel=1e-11)


def test_symmetric_start_stays_symmetric():
    solver = SquareCylinder(100, FINER, perturbation=0.0).step(200)

    assert np.abs(solver.psi + solver.psi[::-1]).max() < 1e-10
    assert abs(solver.lift) < 1e-8
    assert solver.drag > 1
    perturbed = SquareCylinder(100, FINER).step(200)
    assert abs(perturbed.lift) > 1e-3


@pytest.mark.parametrize("options", [{}, {"dtype": np.float32}, {"psi_solver": "lines"}])
def test_restart_gives_the_same_bits(make, options, tmp_path):
    path = tmp_path / "state.npz"
    whole = make(100, SMALL, **options).step(7)
    whole.run(1.5, probes=[(20.1, 0.3)])
    whole.dt = whole.dt / 2
    whole.step(3)
    whole.save(path)

    loaded = SquareCylinder.load(path)
    for solver in (whole, loaded):
        solver.step(9)

    assert_same_bits(loaded, whole)
    assert loaded.result().backend == whole.result().backend


def test_restart_of_a_steady_flow_gives_the_same_bits(make, tmp_path):
    whole = make(60, SMALL, steady=True).step(33)
    whole.save(tmp_path / "state.npz")

    assert_same_bits(SquareCylinder.load(tmp_path / "state.npz").step(33), whole.step(33))


@pytest.mark.parametrize("steady", [False, True])
def test_several_calls_give_the_bits_of_one(make, steady):
    one, several = (make(100, SMALL, steady=steady) for _ in range(2))
    one.step(211)
    for count in (1, 0, 19, 30, 51, 110):
        several.step(count)
        assert np.isfinite(several.psi).all()
        assert len(several.result().history.probe_time) == several.steps

    assert_same_bits(several, one)


def test_result_survives_its_file(make, tmp_path):
    result = make(100, SMALL).run(2.0)
    result.save(tmp_path / "result.npz")

    loaded = CylinderResult.load(tmp_path / "result.npz")

    np.testing.assert_array_equal(loaded.psi, result.psi)
    np.testing.assert_array_equal(loaded.history.drag, result.history.drag)
    assert loaded.backend == result.backend
    assert repr(loaded) == repr(result)
    with pytest.raises(ValueError, match="holds no pysolvers cylinder state"):
        SquareCylinder.load(tmp_path / "result.npz")


def test_probes_record_the_velocity_of_every_step(make):
    solver = make(100, (33, 101))  # hx = 1/2, hy = 1/4
    solver.step(2)
    result = solver.run(2.0, probes=[(20.0, 0.5), (20.1, 0.6)])
    history = result.history

    assert history.u.shape == (result.steps, 3)
    assert history.probe_time[-1] == result.time
    assert np.isnan(history.u[:2, 1:]).all()
    assert np.isfinite(history.u[2:]).all()
    assert history.u[-1, 1] == pytest.approx(result.u[18, 40], rel=1e-12)
    assert history.v[-1, 0] == pytest.approx(result.v[16, 33], rel=1e-12)
    weights = np.outer([0.6, 0.4], [0.8, 0.2])
    for found, field in ((history.u, result.u), (history.v, result.v)):
        corners = field[18:20, 40:42]
        assert found[-1, 2] == pytest.approx((corners * weights).sum(), rel=1e-9)


def test_forces_belong_to_the_middle_of_every_fourth_step(make):
    dt = 0.04
    solver = make(100, SMALL, dt=dt).step(11)
    history = solver.result().history

    np.testing.assert_allclose(history.probe_time, dt * np.arange(1, 12), rtol=1e-12)
    np.testing.assert_allclose(history.time, [3.5 * dt, 7.5 * dt], rtol=1e-12)
    assert solver.forces.time == pytest.approx(10.5 * dt, rel=1e-12)
    solver.dt = dt / 4
    assert solver.forces.time == pytest.approx(10.5 * dt, rel=1e-12)
    assert solver.step().forces.time == pytest.approx((11 + 1 / 8) * dt, rel=1e-12)


def test_a_result_does_not_change_any_more(make):
    solver = make(100, SMALL).step(20)
    result = solver.result()
    kept = result.psi.copy()

    solver.step(20)

    np.testing.assert_array_equal(result.psi, kept)
    assert (solver.psi != kept).any()


def test_steady_state_satisfies_the_steady_equations():
    re = 20
    solver = SquareCylinder(re, (33, 101), length=25, steady=True, wall="woods")
    result = solver.solve(1e-8)
    w, (hx, hy) = result.omega, spacing(result)
    flow = ~body_of(result)[1:-1, 1:-1]

    u, v = result.u[1:-1, 1:-1], result.v[1:-1, 1:-1]
    along_x = (w[1:-1, 2:] - w[1:-1, :-2]) / (2 * hx)
    along_y = (w[2:, 1:-1] - w[:-2, 1:-1]) / (2 * hy)
    residual = u * along_x + v * along_y - laplacian(w, hx, hy) / re

    assert np.abs(residual[flow]).max() < 1e-5
    np.testing.assert_array_equal(w[1:-1, -1], w[1:-1, -2])
    wall = -3 * (result.psi[1] - result.psi[0]) / hy**2 - w[1] / 2
    np.testing.assert_allclose(w[0, 1:], wall[1:], atol=1e-5)
    assert result.steps < 4000


@pytest.mark.parametrize("dt", [1e100, 1e-20])
def test_steps_that_change_nothing_do_not_converge(make, dt):
    """After the first step the change of psi per unit time is below any tolerance."""
    solver = make(20, SMALL, steady=True, dt=dt)
    with pytest.raises(ConvergenceError, match=r"the change stalled: .* take dt=None") as caught:
        solver.solve(1e-3, max_iterations=200, patience=50)

    assert caught.value.result.stop_reason == "stalled"
    assert caught.value.result.history.change[-1] < 1e-3


@pytest.mark.parametrize("dt", [0.5, 10.0])
def test_the_steady_flow_does_not_depend_on_the_step(make, dt):
    """With dt=10 the change per unit time is small long before the flow is steady."""
    expected = SquareCylinder(20, SMALL, steady=True).solve(1e-7)
    result = make(20, SMALL, steady=True, dt=dt).solve(1e-5)

    assert result.stop_reason == "converged"
    assert len(result.history.change) == result.steps
    assert difference(result, expected) < 1e-3


def difference(a, b):
    return np.abs(a.psi - b.psi).max()


def test_error_falls_with_the_step():
    """From a smooth state at time 4, halved steps: the differences fall as dt^2."""
    solver = SquareCylinder(100, SMALL, dt=0.02).step(200)
    ends = []
    for k in range(4):
        copy = SquareCylinder(100, SMALL, dt=0.02).step(200)
        copy.dt = 0.08 / 2**k
        ends.append(copy.step(10 * 2**k))
    assert solver.time == pytest.approx(4.0)

    changes = [difference(a, b) for a, b in itertools.pairwise(ends)]
    orders = np.log2(np.array(changes[:-1]) / changes[1:])

    np.testing.assert_allclose(orders, 2, atol=0.2)


def test_both_balances_of_force_agree():
    solver = SquareCylinder(40, (81, 401)).step(250)
    forces = solver.forces

    assert forces.drag == pytest.approx(forces.surface_drag, rel=0.1)
    assert forces.lift == pytest.approx(forces.surface_lift, abs=0.02)
    assert abs(forces.box_gap) < 0.01
    assert abs(forces.surface_gap) < 0.02


def test_pressure_and_friction_on_the_surface_are_the_force(make):
    """p lies on the faces in turn: front, upper side, rear, lower side, with their corners."""
    solver = make(40, FINER).step(60)
    old = solver.omega.copy()
    omega, surface, forces = (solver.step().omega + old) / 2, solver.p_wall, solver.forces
    hx, hy = spacing(solver)
    rows, columns = np.nonzero(body_of(solver))
    j0, j1, i0, i1 = rows.min(), rows.max(), columns.min(), columns.max()
    up, along = j1 - j0 + 1, i1 - i0 + 1
    front, top, rear, bottom = np.split(surface.p, np.cumsum([up, along, up]))

    def total(values, h):
        return (values.sum() - (values[0] + values[-1]) / 2) * h

    friction_x = total(omega[j0, i0 : i1 + 1], hx) - total(omega[j1, i0 : i1 + 1], hx)
    friction_y = total(omega[j0 : j1 + 1, i1], hy) - total(omega[j0 : j1 + 1, i0], hy)
    drag = 2 * (total(front, hy) - total(rear, hy) + friction_x / 40)
    lift = 2 * (total(bottom, hx) - total(top, hx) + friction_y / 40)
    assert surface.p[up // 2] == 0
    assert (surface.x[:up] == surface.x.min()).all() and (surface.y[up : up + along] == 0.5).all()
    assert drag == pytest.approx(forces.surface_drag, rel=1e-9)
    assert lift == pytest.approx(forces.surface_lift, abs=1e-9)


def test_steady_flow_is_near_the_published_one():
    result = SquareCylinder(20, FINER, steady=True).solve(1e-4)

    assert result.recirculation_length == pytest.approx(-0.065 + 0.0554 * 20, rel=0.1)
    drag = np.interp(20, breuer_drag()["re"], breuer_drag()["cd"])
    assert result.drag == pytest.approx(drag, rel=0.05)
    assert abs(result.lift) < 1e-6


def test_shape_that_does_not_fit_names_the_nearest():
    with pytest.raises(ValueError, match=r"\(161, 801\)") as caught:
        SquareCylinder(100, (160, 800))
    assert "(145, 751)" in str(caught.value)
    for shape in ((145, 751), (161, 801), (145, 801), (161, 751)):
        assert str(shape) in str(caught.value)
    with pytest.raises(ValueError, match="length must be such that"):
        SquareCylinder(100, (33, 201), length=np.pi * 10)
    SquareCylinder(100, (33, 81), length=20)


@pytest.mark.parametrize("dt", [3.0, 30.0])
def test_too_large_a_step_returns_to_a_state_before_the_growth(make, dt):
    solver = make(100, SMALL).step(100)
    solver.dt = dt

    with pytest.raises(ConvergenceError, match="set a smaller dt") as caught:
        solver.step(500)

    assert caught.value.result.stop_reason == "diverged"
    assert caught.value.result.steps == solver.steps <= 100
    assert np.isfinite(solver.psi).all()
    assert solver.result().history.probe_time.shape == (solver.steps,)
    assert np.abs(solver.psi).max() < 3
    solver.dt = 0.05
    solver.step(50)
    assert np.isfinite(solver.psi).all()
    assert np.abs(solver.psi).max() < 3


@pytest.mark.parametrize(("wall", "cylinder"), [("thom", "free"), ("jensen", "fixed")])
def test_growth_until_a_line_has_no_pivot_returns_to_a_state_before(make, wall, cylinder):
    options = {"wall": wall, "cylinder": cylinder}
    flow = make(50, (17, 21), length=10, psi_solver="lines", dt=20, **options)

    with pytest.raises(ConvergenceError, match="set a smaller dt"):
        flow.step(100)

    assert np.isfinite(flow.omega).all()
    assert np.abs(flow.psi).max() < 8


@pytest.mark.parametrize(
    "options", [{}, {"cylinder": "fixed"}, {"steady": True}, {"wall": "woods", "length": 25}]
)
def test_lines_agree_with_the_direct_solver(options):
    shape = (33, 101) if "length" in options else SMALL
    direct = SquareCylinder(60, shape, **options)
    lines = SquareCylinder(60, shape, psi_solver="lines", psi_tol=1e-10, **options)

    for flow in (direct, lines):
        flow.step(40)

    assert np.abs(lines.psi - direct.psi).max() < 1e-8
    assert np.abs(lines.omega - direct.omega).max() < 1e-6
    assert lines.circulation == pytest.approx(direct.circulation, abs=1e-8)
    assert lines.drag == pytest.approx(direct.drag, abs=1e-5)


@pytest.mark.parametrize("steady", [False, True])
def test_residual_of_lines_is_below_the_tolerance(steady):
    solver = SquareCylinder(60, SMALL, psi_solver="lines", psi_tol=1e-6, steady=steady).step(20)
    psi, omega, body = solver.psi, solver.omega, body_of(solver)

    residual = np.abs(laplacian(psi, *spacing(solver)) + omega[1:-1, 1:-1])[~body[1:-1, 1:-1]]

    # The walls change after psi; they are the largest values of omega, but not in the equation.
    assert 1e-13 < residual.max() / np.abs(omega).max() < 2e-6


def sweep(psi, omega, shift, spacings, body, axis):
    """Return psi after the sweep of lines along an axis, by dense solves."""
    along, across = spacings if axis == 1 else spacings[::-1]
    psi, omega, body = (a if axis == 1 else a.T for a in (psi, omega, body))
    found = psi.copy()
    for j in range(1, len(psi) - 1):
        delta = (psi[j + 1] - 2 * psi[j] + psi[j - 1]) / across**2
        rhs = shift * psi[j] + delta + omega[j]
        matrix, inside = np.eye(len(rhs)), np.flatnonzero(~body[j, 1:-1]) + 1
        matrix[inside, inside - 1] = matrix[inside, inside + 1] = -1 / along**2
        matrix[inside, inside] = 2 / along**2 + shift
        fixed = body[j].copy()
        fixed[[0, -1]] = True
        found[j] = np.linalg.solve(matrix, np.where(fixed, psi[j], rhs))
    return found if axis == 1 else found.T


def test_lines_make_cycles_that_reduce_the_residual_tenfold():
    options = {"length": 25, "psi_solver": "lines", "psi_tol": 1e-9, "cylinder": "fixed"}
    solver = SquareCylinder(60, (33, 101), **options).step(3)
    ahead = SquareCylinder(60, (33, 101), **options).step(4)  # omega of a step does not read psi
    spacings, body, omega = spacing(solver), body_of(solver), ahead.omega
    flow = ~body[1:-1, 1:-1]

    def cycle(psi):
        for shift in solver._steps._cycle.shifts:
            psi = sweep(
                sweep(psi, omega, shift, spacings, body, 1), omega, shift, spacings, body, 0
            )
        return psi

    def residual(psi):
        return np.abs((laplacian(psi, *spacings) + omega[1:-1, 1:-1])[flow]).max()

    estimate = 2 * solver.psi - solver._state.psi_old
    estimate[:, -1] = ahead.psi[:, -1]
    once = cycle(estimate)
    residuals = [residual(psi) for psi in (estimate, once, cycle(once))]
    between = np.sqrt(residuals[0] * residuals[1]) / np.abs(omega[1:-1, 1:-1][flow]).max()
    solver._steps._settings = replace(solver._steps._settings, psi_tol=between)
    solver.step()

    assert residuals[1] < residuals[0] / 10
    assert residuals[2] < residuals[1] / 10
    np.testing.assert_allclose(solver.psi, once, atol=1e-11)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (ValueError, {"reynolds": -1}),
        (ValueError, {"cylinder": "loose"}),
        (ValueError, {"wall": "wood"}),
        (ValueError, {"psi_solver": "slow"}),
        (ValueError, {"psi_tol": 0.0}),
        (ValueError, {"dt": 0.0}),
        (ValueError, {"length": 5}),
        (TypeError, {"dtype": np.int64}),
        (TypeError, {"steady": "no"}),
        (ValueError, {"shape": (33,)}),
        (BackendError, {"device": "cuda:63"}),
    ],
)
def test_wrong_options_are_errors(kind, options):
    with pytest.raises(kind):
        SquareCylinder(**{"reynolds": 100, "shape": SMALL, **options})


def test_calls_that_do_not_fit_the_kind_are_errors():
    with pytest.raises(ValueError, match="solve"):
        SquareCylinder(20, SMALL, steady=True).run(1.0)
    unsteady = SquareCylinder(20, SMALL)
    with pytest.raises(ValueError, match="run"):
        unsteady.solve()
    with pytest.raises(ValueError, match="step"):
        _ = unsteady.drag
    with pytest.raises(ValueError, match="3 rising"):
        unsteady.strouhal()
    with pytest.raises(ValueError, match="probe"):
        unsteady.run(1.0, probes=[(12.5, 0.0)])
    with pytest.raises(ConvergenceError, match="tolerance"):
        SquareCylinder(20, SMALL, steady=True).solve(1e-9, max_iterations=3)


def test_float32_follows_float64(make):
    single = make(100, SMALL, dtype=np.float32).step(50)
    double = SquareCylinder(100, SMALL).step(50)

    assert single.psi.dtype == np.float32
    assert 0 < difference(single, double) < 1e-4


def test_dataset_holds_the_fields():
    pytest.importorskip("xarray")
    result = SquareCylinder(100, SMALL).step(2).result()

    dataset = result.to_xarray()

    np.testing.assert_array_equal(dataset["omega"].values, result.omega)
    assert float(dataset["u"].sel(x=2.0, y=0.0)) == result.u[16, 8]


def test_state_with_another_number_of_steps_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    SquareCylinder(100, SMALL).step(6).save(path)
    with np.load(path) as file:
        members = dict(file)
    members["header"] = np.array(str(members["header"]).replace('"made": 6', '"made": 7'))
    np.savez(path, **members)

    with pytest.raises(ValueError, match="probe_rows"):
        SquareCylinder.load(path)


def test_vtk_file_holds_the_fields(tmp_path):
    result = SquareCylinder(100, SMALL).step(2).result()
    result.to_vtk(tmp_path / "flow.vtk")

    data = (tmp_path / "flow.vtk").read_bytes()

    head = [line.split() for line in data[: data.index(b"SCALARS")].decode().splitlines()]
    geometry = {words[0]: [float(word) for word in words[1:]] for words in head[4:7]}
    x, y = result.x, result.y
    assert geometry == {
        "DIMENSIONS": [len(x), len(y), 1],
        "ORIGIN": [x[0], y[0], 0],
        "SPACING": [x[1] - x[0], y[1] - y[0], 1],
    }
    start = data.index(b"LOOKUP_TABLE default\n") + len(b"LOOKUP_TABLE default\n")
    psi = np.frombuffer(data[start : start + 8 * result.psi.size], ">f8").reshape(SMALL)
    np.testing.assert_array_equal(psi, result.psi)


# Reference program with the same formulas: St, and max |v| four sides behind the centre.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("re", "shape", "cylinder", "strouhal", "v"),
    [
        (75, (161, 801), "free", 0.12878, 0.3769),
        (100, (161, 801), "free", 0.13849, 0.4959),
        (150, (161, 801), "free", 0.14553, 0.6182),
        (200, (161, 801), "free", 0.13914, 0.6889),
        (100, (161, 801), "fixed", 0.14085, 0.4914),
        (100, (241, 1201), "fixed", 0.14147, 0.4836),
        (200, (161, 801), "fixed", 0.14866, 0.6935),
    ],
)
def test_shedding_has_the_reference_frequency(make, re, shape, cylinder, strouhal, v):
    result = make(re, shape, dt=0.02, cylinder=cylinder).run(
        200 if re == 75 else 170, progress=False
    )
    history = result.history
    last = history.probe_time > result.time - 16
    forces = history.time > result.time - 16

    assert result.strouhal().value == pytest.approx(strouhal, rel=0.005)
    assert np.abs(history.v[last, 0]).max() == pytest.approx(v, rel=0.02)
    mean = history.drag[forces].mean()
    assert history.surface_drag[forces].mean() == pytest.approx(mean, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("re", [1, 5, 60])
def test_drag_is_the_published_one(re):
    result = SquareCylinder(re, (241, 1201), steady=True).solve(1e-5)

    table = breuer_drag()
    assert result.drag == pytest.approx(np.interp(re, table["re"], table["cd"]), rel=0.05)


@pytest.mark.slow
def test_frequency_extrapolates_to_the_reference():
    coarse, fine = (
        SquareCylinder(100, shape, dt=0.02).run(130, progress=False).strouhal().value
        for shape in ((161, 801), (241, 1201))
    )

    assert fine == pytest.approx(0.13900, rel=0.005)
    assert fine + (fine - coarse) / (1.5**2 - 1) == pytest.approx(0.1394, abs=0.0010)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("re", "shape", "wall", "length"),
    [
        (10, (241, 1201), "thom", 0.4748),
        (20, (241, 1201), "thom", 1.0378),
        (30, (241, 1201), "thom", 1.6102),
        (40, (241, 1201), "thom", 2.1718),
        (40, (161, 801), "jensen", 2.1574),
    ],
)
def test_recirculation_has_the_reference_length(make, re, shape, wall, length):
    result = make(re, shape, wall=wall, steady=True).solve(1e-6)

    assert result.recirculation_length == pytest.approx(length, rel=0.005)
    assert result.recirculation_length == pytest.approx(-0.065 + 0.0554 * re, rel=0.035)
    table = breuer_drag()
    drag = np.exp(np.interp(np.log(re), np.log(table["re"]), np.log(table["cd"])))
    assert result.drag == pytest.approx(drag, rel=0.05)


def test_a_refused_run_leaves_the_probes():
    solver = SquareCylinder(100, (33, 201), dt=0.05).step(2)

    for until in (-1.0, np.nan):
        with pytest.raises(ValueError, match="until"):
            solver.run(until, probes=[(20.0, 1.0)])
    assert len(solver.result().history.probes) == 1
    assert len(solver.run(0.1, probes=[(20.0, 1.0)]).history.probes) == 2


def test_a_huge_step_is_the_error_of_growth(make):
    solver = make(100, SMALL, dt=1e300)

    with np.errstate(all="ignore"), pytest.raises(ConvergenceError, match="set a smaller dt"):
        solver.step()


@pytest.mark.parametrize("until", [1.0, 1.01, 1.03, 0.02])
def test_a_run_ends_exactly_and_no_step_is_very_short(make, until, tmp_path):
    solver = make(100, SMALL, dt=0.05)
    result = solver.run(until)

    steps = np.diff(result.history.probe_time, prepend=0.0)
    assert result.time == solver.time == until
    assert steps.max() <= 0.05 * (1 + 1e-12)
    assert steps.min() >= min(0.025, until) * (1 - 1e-12)
    assert solver.dt == 0.05
    solver.save(tmp_path / "state.npz")
    assert SquareCylinder.load(tmp_path / "state.npz").time == until
    assert solver.run(2 * until).time == 2 * until


@pytest.mark.parametrize("re", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("share", [1, 4, 16])
def test_creeping_flow_is_not_taken_for_an_unstable_one(re, share):
    """psi changes within the viscous time Re, and faster after a start: in proportion to 1/Re."""
    step = SquareCylinder(re, SMALL).dt / share
    flow, slower = (SquareCylinder(each, SMALL, dt=step * each / re) for each in (re, re / 2))
    for solver in (flow, slower):
        solver.step(60)

    assert flow.steps == 60
    # Without convection, of which there is a share of about Re, the flow depends on t / Re alone.
    np.testing.assert_allclose(flow.psi, slower.psi, atol=0.2 * re)
    assert flow.drag * re == pytest.approx(slower.drag * re / 2, rel=0.5 * re)


@pytest.mark.parametrize("re", [0.01, 1.0, 100.0])
def test_a_step_that_is_too_long_is_still_an_error(re):
    step = SquareCylinder(re, SMALL).dt

    with pytest.raises(ConvergenceError, match=r"dt=.* is too large"):
        SquareCylinder(re, SMALL, dt=10 * step).step(60)


def wave_amplitude(flow, place):
    """Largest wave from node to node of omega at a distance from the front of the cylinder."""
    front = flow._grid.centre - 0.5
    near = np.abs(flow.x[1:-1] - (front - place)) <= 0.26
    curve = np.abs(flow.omega[:, :-2] - 2 * flow.omega[:, 1:-1] + flow.omega[:, 2:]) / 4
    return curve[np.abs(flow.y) < 1.5][:, near].max()


def test_waves_decay_upstream_as_the_notes_say():
    for shape, hx in ((SMALL, 1 / 4), ((49, 251), 1 / 5)):
        flow = SquareCylinder(100, shape).step(100)
        cell = 100 * hx
        expected = ((cell - 2) / (cell + 2)) ** (1 / hx)
        assert wave_amplitude(flow, 2) / wave_amplitude(flow, 1) == pytest.approx(expected, rel=0.4)


@pytest.mark.filterwarnings("default::pysolvers.CoarseGridWarning")
def test_a_grid_with_waves_is_named_with_one_without():
    for re, shape, options, better in (
        (100, SMALL, {}, (65, 401)),
        (400, SMALL, {}, (129, 801)),
        (100, (97, 201), {"steady": True}, (97, 401)),
        (100, (33, 81), {"length": 20}, (65, 161)),
    ):
        with pytest.warns(CoarseGridWarning, match="re hx = .* filter pysolvers.Coarse") as caught:
            SquareCylinder(re, shape, **options)
        assert f"shape=({better[0]}, {better[1]})" in str(caught[0].message)
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            SquareCylinder(re, better, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for re, shape in ((40, SMALL), (100, (97, 401)), (100, (161, 801)), (200, (161, 801))):
            SquareCylinder(re, shape)


@pytest.mark.filterwarnings("default::pysolvers.CoarseGridWarning")
def test_a_state_is_loaded_without_another_warning(tmp_path):
    with pytest.warns(CoarseGridWarning):
        SquareCylinder(100, SMALL).save(tmp_path / "state.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SquareCylinder.load(tmp_path / "state.npz")
