"""Forces on the square cylinder: potential flows, the table of weights, formulas of the walls."""

import numpy as np
import pytest

from pysolvers.flow import LidDrivenCavity, SquareCylinder
from pysolvers.flow._walls import WALLS
from pysolvers.flow.cylinder._channel import ChannelGrid
from pysolvers.flow.cylinder._force_table import RESULTS
from pysolvers.flow.cylinder._forces import CylinderForces
from pysolvers.flow.cylinder._start import CylinderValues

# Grids with waves are fast, and the discrete equations hold on them as well.
pytestmark = pytest.mark.filterwarnings("ignore::pysolvers.CoarseGridWarning")


SMALL = (33, 201)  # h = 1/4 along both axes

FINER = (65, 401)


def spacing(solver):
    return solver.x[1] - solver.x[0], solver.y[1] - solver.y[0]


def body_of(solver):
    """Return the nodes of the cylinder as a mask."""
    x, y = solver.x - solver.x[-1] / 4, solver.y[:, None]
    return (np.abs(x) < 0.5 + 1e-9) & (np.abs(y) < 0.5 + 1e-9)


@pytest.mark.parametrize("wall", ["thom", "woods", "jensen"])
def test_walls_have_the_formulas_of_the_cavity(wall):
    cavity = LidDrivenCavity(100, 17, wall=wall, method="line-jacobi").iterate(30)
    psi, omega = cavity.psi, cavity.omega

    found = WALLS[wall].at((psi[1], psi[2]), omega[1], psi[0], 1 / 16)

    np.testing.assert_allclose(omega[0, 1:-1], found[1:-1], rtol=1e-12)


def test_potential_flow_without_a_body_has_no_force():
    """psi = a(t) y + b(t) x + c(t) x y: the pressure of the acceleration and of the stagnation."""
    grid = ChannelGrid((81, 401), 50.0)
    x, y = grid.x - grid.centre, grid.y[:, None]
    dt = 0.1

    def state(c):
        psi = [(1 + 3 * t) * y + (0.5 - 2 * t) * x + c * (1 + t) * x * y for t in (0, dt)]
        zero = np.zeros_like(psi[0])
        return CylinderValues(psi[1], psi[0], zero, zero, 0.0, 0.0, 0.0, dt, (0.0, 0), 1)

    forces = CylinderForces(grid, 0.01)
    uniform, straining = forces.balance(state(0.0)), forces.balance(state(0.3))

    assert abs(uniform.drag) < 1e-10
    assert abs(uniform.lift) < 1e-10
    # The means of two levels of products, and trapezoidal sums of squares.
    assert abs(straining.drag) < 0.02
    assert abs(straining.lift) < 0.02
    assert abs(straining.box_gap) < 1e-10


def force_quantities(solver, nodes):
    """Return the seven quantities of _force_table.py at nodes of the grid."""
    state, grid, nu = solver._state, solver._grid, 1 / solver.result().reynolds
    (hx, hy), nx = spacing(solver), grid.shape[1]
    psi = ((state.psi + state.psi_old) / 2).ravel()
    psi_t = ((state.psi - state.psi_old) / state.dt_old).ravel()
    w = ((state.omega + state.omega_old) / 2).ravel()
    moves = ~body_of(solver).ravel()[nodes]

    def along_x(f):
        return (f[nodes + 1] - f[nodes - 1]) / (2 * hx)

    def along_y(f):
        return (f[nodes + nx] - f[nodes - nx]) / (2 * hy)

    u, v = along_y(psi) * moves, -along_x(psi) * moves
    u_t, v_t = along_y(psi_t) * moves, -along_x(psi_t) * moves
    u_y = (psi[nodes + nx] - 2 * psi[nodes] + psi[nodes - nx]) / hy**2
    corners = psi[nodes + nx + 1] - psi[nodes + nx - 1] - psi[nodes - nx + 1] + psi[nodes - nx - 1]
    stretch, head = nu * corners / (2 * hx * hy), (u**2 + v**2) / 2
    return np.stack(
        [
            v * w[nodes] - u_t - nu * along_y(w),
            -u * w[nodes] - v_t + nu * along_x(w),
            stretch - u**2 + head,
            -stretch - v**2 + head,
            nu * (2 * u_y + w[nodes]) - u * v,
            psi_t[nodes],
            w[nodes],
        ]
    )


@pytest.mark.parametrize("shape", [SMALL, FINER, (81, 201)])
def test_table_of_forces_gives_the_balances(shape):
    solver = SquareCylinder(50, shape).step(17)
    table, expected = solver._forces.table(), solver.forces

    found = np.einsum("rqn,qn->r", table.weights, force_quantities(solver, table.nodes))

    assert len(np.unique(table.nodes)) == len(table.nodes)
    for name, value in zip(RESULTS, found, strict=True):
        assert value == pytest.approx(getattr(expected, name), abs=1e-12), name
