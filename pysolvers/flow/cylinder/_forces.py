r"""Forces of the flow on the cylinder, by two formulas.

All quantities are means or differences of two consecutive levels, for the time halfway between
them. The total pressure H = p + q^2/2 follows along lines of nodes from

    H_x = -u_t + v omega - nu omega_y,    H_y = -v_t - u omega + nu omega_x.

Over a box of nodes around the cylinder, with H along the sides of the box, the balance of
momentum is

    F = -d/dt int u dA - oint u (u.n) ds - oint p n ds + nu oint (grad u + grad u^T) n ds.

The momentum in the box is a sum over its sides, because u = (psi_y, -psi_x).

On the surface, H = p is carried from the box along a normal to the middle of each face, and from
there along the face by dp/ds = -nu domega/dn, with s clockwise and n the outward normal. The force
is that of this pressure and of the shear -+nu omega. The normals avoid the corners, where omega
grows as r^-0.455 and dp/ds is not integrable. The surface integral therefore converges slowly: at
Re = 20 it is 7.5 and 3.2 percent below the balance over the box with 80 and 240 intervals along y.

Derivatives are one-sided or central differences of second order, integrals trapezoidal sums.
Density, inflow speed and side of the cylinder are 1; coefficients are 2 F.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ._channel import ChannelGrid
from ._force_table import ForceTable, force_table

Array = NDArray[Any]

# Distance of the sides of the box from the cylinder: before, behind, and across. Coarse grids have
# oscillations before the cylinder that change the drag within 4 sides; behind 2 sides the vortices
# that cross the box add noise.
_BEFORE, _BEHIND, _ACROSS = 5.0, 2.0, 2.0


class Levels(Protocol):
    """Two levels of the fields, `dt_old` apart; `time` is that of the later one."""

    @property
    def psi(self) -> Array: ...
    @property
    def psi_old(self) -> Array: ...
    @property
    def omega(self) -> Array: ...
    @property
    def omega_old(self) -> Array: ...
    @property
    def dt_old(self) -> float: ...
    @property
    def time(self) -> float: ...


@dataclass(frozen=True, slots=True)
class ForceBalance:
    """Coefficients 2 F / (rho Umax^2 D) of the force on the cylinder.

    Parameters
    ----------
    time : float
        The middle of the last step.
    drag, lift : float
        Cd and Cl by the balance of momentum over the box.
    surface_drag, surface_lift : float
        Cd and Cl by pressure and shear on the surface.
    box_gap, surface_gap : float
        Difference of the pressure after once around the box, and around the surface, in units
        of rho Umax^2; zero for exact fields, if psi on the body is free.

    Examples
    --------
    >>> from pysolvers import SquareCylinder
    >>> forces = SquareCylinder(reynolds=40, shape=(49, 201)).step(20).forces
    >>> forces.drag > 0, abs(forces.lift) < forces.drag
    (True, True)
    """

    time: float
    drag: float
    lift: float
    surface_drag: float
    surface_lift: float
    box_gap: float
    surface_gap: float


@dataclass(frozen=True, slots=True, eq=False)
class SurfacePressure:
    """Pressure on the cylinder.

    Parameters
    ----------
    x, y : ndarray
        Nodes of the surface, clockwise from the lower corner of the front. A corner occurs at
        the ends of both faces.
    p : ndarray
        Pressure there, 0 in the middle of the front, in units of rho Umax^2.

    Examples
    --------
    >>> from pysolvers import SquareCylinder
    >>> found = SquareCylinder(reynolds=40, shape=(49, 201)).step(20).p_wall
    >>> found.p.shape == found.x.shape, bool(found.p.min() < 0)
    (True, True)
    """

    x: Array
    y: Array
    p: Array


class CylinderForces:
    """Both balances.

    Parameters
    ----------
    grid : ChannelGrid
        The grid.
    viscosity : float
        1 / Re.
    """

    def __init__(self, grid: ChannelGrid, viscosity: float) -> None:
        self._grid, self._viscosity = grid, viscosity
        body_rows, body_columns = grid.rows, grid.columns
        nx = grid.shape[1]
        away_y = min(round(_ACROSS / grid.hy), body_rows.first - 2)
        before = min(round(_BEFORE / grid.hx), body_columns.first - 2)
        behind = min(round(_BEHIND / grid.hx), nx - 3 - body_columns.last)
        rows = body_rows.widened(away_y, away_y)
        columns = body_columns.widened(before, behind)
        self._wide = rows.widened(1, 1).nodes, columns.widened(1, 1).nodes
        self._origin = rows.first, columns.first
        self._shape = rows.last - rows.first + 1, columns.last - columns.first + 1
        # The body in the arrays of the box.
        j0, j1 = away_y, rows.last - rows.first - away_y
        i0, i1 = before, columns.last - columns.first - behind
        self._body = j0, j1, i0, i1
        up, right = np.arange(j0, j1 + 1), np.arange(i0, i1 + 1)
        self._faces = [
            _Face(up, np.full_like(up, i0), (0, -1), grid.hy, grid.hx),
            _Face(np.full_like(right, j1), right, (1, 0), grid.hx, grid.hy),
            _Face(up[::-1], np.full_like(up, i1), (0, 1), grid.hy, grid.hx),
            _Face(np.full_like(right, j0), right[::-1], (-1, 0), grid.hx, grid.hy),
        ]
        self.x = np.concatenate([grid.x[columns.first :][face.columns] for face in self._faces])
        self.y = np.concatenate([grid.y[rows.first :][face.rows] for face in self._faces])

    def balance(self, state: Levels) -> ForceBalance:
        """Return the forces at the middle of the last step."""
        return self._evaluate(state)[0]

    def pressure(self, state: Levels) -> SurfacePressure:
        """Return the pressure on the surface at the middle of the last step."""
        p = np.concatenate(self._evaluate(state)[1])
        return SurfacePressure(self.x.copy(), self.y.copy(), p - p[self._faces[0].middle])

    def table(self) -> ForceTable:
        """Return the results of `balance` as weights of quantities at nodes."""
        grid = self._grid
        return force_table(
            self._shape,
            self._origin,
            self._body,
            self._faces,
            (grid.hx, grid.hy),
            self._viscosity,
            grid.shape[1],
        )

    def _evaluate(self, state: Levels) -> tuple[ForceBalance, list[Array]]:
        """Return the forces halfway between the two levels, and the pressure along each face."""
        grid, nu = self._grid, self._viscosity
        hx, hy = grid.hx, grid.hy
        old, now = (a[self._wide].astype(np.float64) for a in (state.psi_old, state.psi))
        psi, rate = (now + old) / 2, (now - old) / state.dt_old
        omega = (state.omega[self._wide].astype(np.float64) + state.omega_old[self._wide]) / 2

        def d_x(f: Array) -> Array:
            return np.asarray((f[1:-1, 2:] - f[1:-1, :-2]) / (2 * hx))

        def d_y(f: Array) -> Array:
            return np.asarray((f[2:, 1:-1] - f[:-2, 1:-1]) / (2 * hy))

        u, v, u_t, v_t = d_y(psi), -d_x(psi), d_y(rate), -d_x(rate)
        j0, j1, i0, i1 = self._body
        for field in (u, v, u_t, v_t):
            field[j0 : j1 + 1, i0 : i1 + 1] = 0
        w = omega[1:-1, 1:-1]
        slope_x = -u_t + v * w - nu * d_y(omega)
        slope_y = -v_t - u * w + nu * d_x(omega)
        # The total pressure along the sides of the box, from the lower left corner.
        bottom, top = _running(slope_x[0], hx), _running(slope_x[-1], hx)
        left, right = _running(slope_y[:, 0], hy), _running(slope_y[:, -1], hy)
        gap = float(bottom[-1] + right[-1] - top[-1] - left[-1])
        top, right = top + left[-1], right + bottom[-1]
        drag, lift = self._box(psi, rate, w, u, v, (bottom, top, left, right))

        j, i = (j0 + j1) // 2, (i0 + i1) // 2
        starts = (
            left[j] + _sum(slope_x[j, : i0 + 1], hx),
            top[i] - _sum(slope_y[j1:, i], hy),
            right[j] - _sum(slope_x[j, i1:], hx),
            bottom[i] + _sum(slope_y[: j0 + 1, i], hy),
        )
        pressures, around, forces = [], 0.0, []
        for face, start in zip(self._faces, starts, strict=True):
            p = _running(-nu * face.normal_derivative(w), face.step)
            around += float(p[-1])
            p = start + p - p[face.place_of(j, i)]
            pressures.append(p)
            forces.append((_sum(p, face.step), nu * _sum(w[face.rows, face.columns], face.step)))
        (front, ws), (upper, wt), (rear, wr), (lower, wb) = forces
        return (
            ForceBalance(
                time=state.time - state.dt_old / 2,
                drag=drag,
                lift=lift,
                surface_drag=2 * (front - rear - wt + wb),
                surface_lift=2 * (lower - upper - ws + wr),
                box_gap=gap,
                surface_gap=around,
            ),
            pressures,
        )

    def _box(
        self,
        psi: Array,
        rate: Array,
        w: Array,
        u: Array,
        v: Array,
        heads: tuple[Array, Array, Array, Array],
    ) -> tuple[float, float]:
        """Return the coefficients by the balance of momentum."""
        nu, hx, hy = self._viscosity, self._grid.hx, self._grid.hy
        bottom, top, left, right = heads
        u_y = (psi[2:, 1:-1] - 2 * psi[1:-1, 1:-1] + psi[:-2, 1:-1]) / hy**2
        u_x = (psi[2:, 2:] - psi[2:, :-2] - psi[:-2, 2:] + psi[:-2, :-2]) / (4 * hx * hy)
        shear, stretch = nu * (2 * u_y + w), 2 * nu * u_x
        half = (u**2 + v**2) / 2
        along_x = stretch - u**2 + half  # with -H the flux of x momentum through x = const
        along_y = -stretch - v**2 + half
        cross = shear - u * v
        inner = rate[1:-1, 1:-1]
        force_x = (
            _sum(along_x[:, -1] - along_x[:, 0] - right + left, hy)
            + _sum(cross[-1] - cross[0], hx)
            - _sum(inner[-1] - inner[0], hx)
        )
        force_y = (
            _sum(along_y[-1] - along_y[0] - top + bottom, hx)
            + _sum(cross[:, -1] - cross[:, 0], hy)
            + _sum(inner[:, -1] - inner[:, 0], hy)
        )
        return 2 * force_x, 2 * force_y


@dataclass(frozen=True, slots=True)
class _Face:
    """Nodes of a face in the order of the surface, outward normal, steps along and across."""

    rows: Array
    columns: Array
    normal: tuple[int, int]
    step: float
    across: float

    @property
    def middle(self) -> int:
        """Place of the middle node of the face."""
        return len(self.rows) // 2

    def place_of(self, row: int, column: int) -> int:
        """Return the place of the node in the middle."""
        at = self.rows == row if self.normal[0] == 0 else self.columns == column
        return int(np.argmax(at))

    def normal_derivative(self, w: Array) -> Array:
        """Return the derivative along the outward normal, from three nodes, of second order."""
        j, i = self.normal
        first, second, third = (w[self.rows + k * j, self.columns + k * i] for k in range(3))
        return np.asarray((-3 * first + 4 * second - third) / (2 * self.across))


def _running(values: Array, h: float) -> Array:
    """Return running trapezoidal sums, 0 first."""
    return np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) * (h / 2))])


def _sum(values: Array, h: float) -> float:
    """Return the trapezoidal sum."""
    return float(values.sum() - (values[0] + values[-1]) / 2) * h
