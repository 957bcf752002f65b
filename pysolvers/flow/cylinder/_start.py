"""The flow around the cylinder at the start, computed on the host in float64."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from .._walls import WALLS, WallFormula
from ._body_poisson import BodyPoisson
from ._channel import ChannelGrid

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class CylinderValues:
    """Everything that the next step depends on, on the host.

    Parameters
    ----------
    psi, psi_old, omega, omega_old : ndarray
        Fields now and one step before.
    value : float
        psi on the body.
    circulation : float
        Circulation around the box.
    rate : float
        Its rate of change one step before; NaN before the first step.
    dt_old : float
        Length of the last step.
    origin : (float, int)
        Time and number of steps when the current length of a step was first used.
    steps : int
        Number of steps.
    """

    psi: Array
    psi_old: Array
    omega: Array
    omega_old: Array
    value: float
    circulation: float
    rate: float
    dt_old: float
    origin: tuple[float, int]
    steps: int

    @property
    def time(self) -> float:
        """Time of the fields."""
        time, steps = self.origin
        return time + (self.steps - steps) * self.dt_old


def start_values(
    grid: ChannelGrid,
    poisson: BodyPoisson,
    wall: WallFormula,
    psi: Array,
    omega: Array,
    dt: float,
    origin: tuple[float, int],
    circulation: float,
) -> CylinderValues:
    """Return the state of a vorticity before a step that knows none before it.

    Parameters
    ----------
    grid : ChannelGrid
        The grid.
    poisson : BodyPoisson
        Solver for psi.
    wall : WallFormula
        Formula of the vorticity on the walls and the body.
    psi, omega : ndarray of float64
        psi on the boundary and omega at the nodes of the flow; both arrays are completed.
    dt : float
        Length of the first step.
    origin : (float, int)
        Time and number of steps.
    circulation : float
        Circulation around the box.
    """
    omega[grid.body] = 0
    rows, columns = grid.box
    sources = float(omega[rows.nodes, columns.nodes].sum())
    value = poisson.solve(omega, psi, circulation=circulation, sources=sources)
    _set_walls(grid, wall, psi, omega)
    old, steps = (psi.copy(), omega.copy()), origin[1]
    return CylinderValues(
        psi, old[0], omega, old[1], value, circulation, float("nan"), dt, origin, steps
    )


def _set_walls(grid: ChannelGrid, wall: WallFormula, psi: Array, omega: Array) -> None:
    """Set omega on the walls of the channel and on the body to the wall formula."""
    value = psi[grid.body][0, 0]
    for end, inward in ((0, 1), (-1, -1)):
        found = wall.at(
            (psi[end + inward], psi[end + 2 * inward]), omega[end + inward], psi[end], grid.hy
        )
        omega[end, 1:] = found[1:]
    i0, i1 = grid.columns.first, grid.columns.last
    j0, j1 = grid.rows.first, grid.rows.last
    rows, columns = grid.body
    faces = {
        "front": wall.at(
            (psi[rows, i0 - 1], psi[rows, i0 - 2]), omega[rows, i0 - 1], value, grid.hx
        ),
        "rear": wall.at(
            (psi[rows, i1 + 1], psi[rows, i1 + 2]), omega[rows, i1 + 1], value, grid.hx
        ),
        "bottom": wall.at(
            (psi[j0 - 1, columns], psi[j0 - 2, columns]), omega[j0 - 1, columns], value, grid.hy
        ),
        "top": wall.at(
            (psi[j1 + 1, columns], psi[j1 + 2, columns]), omega[j1 + 1, columns], value, grid.hy
        ),
    }
    thom = WALLS["thom"]
    for side, end, i in (("front", 0, i0 - 1), ("rear", -1, i1 + 1)):
        for face, corner, j in (("bottom", 0, j0 - 1), ("top", -1, j1 + 1)):
            row, column = rows.start if corner == 0 else j1, i0 if end == 0 else i1
            mean = (thom.psi1 / 2) * (
                (psi[row, i] - value) / grid.hx**2 + (psi[j, column] - value) / grid.hy**2
            )
            faces[side][corner] = faces[face][end] = mean
    for side, i in (("front", i0), ("rear", i1)):
        omega[rows, i] = faces[side]
    inner = slice(i0 + 1, i1)
    for face, j in (("bottom", j0), ("top", j1)):
        omega[j, inner] = faces[face][1:-1]
