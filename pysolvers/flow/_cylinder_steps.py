r"""Steps of the flow around the cylinder: unsteady and towards the steady state.

Unsteady (Peaceman and Rachford 1955), from level n to n + 1, with the velocity of
psi* = psi[n] + (psi[n] - psi[n-1]) dt / (2 dt_old) at the half step:

    (1 + dt/2 (u delta_x - nu delta_xx)) w*     = (1 - dt/2 (v delta_y - nu delta_yy)) w[n]
    (1 + dt/2 (v delta_y - nu delta_yy)) w[n+1] = (1 - dt/2 (u delta_x - nu delta_xx)) w*

for the vorticity w. The right side of the second line is 2 w* minus that of the first line. Walls
and body have values extrapolated to the half step as psi* is. The outlet is convected before, w by
u and psi by 1, with the scheme of Warming and Beam (1976). The circulation around the box is
advanced by the second-order method of Adams and Bashforth; psi follows from w and the circulation
(_body_poisson.py), and the vorticity on the walls and the body from psi. At a corner of the body it
is the mean of Thom's formulas of both faces, for every wall formula: psi grows as r^1.54 there, so
that the values farther away, which the formulas of second order read, make the corner worse.

Steady: backward Euler in delta form,

    (1 + dt (u delta_x - nu delta_xx)) (1 + dt (v delta_y - nu delta_yy)) D
        = dt (nu lap w - u delta_x w - v delta_y w),    w += D,

D = 0 on walls and body, zero gradient at the outlet, psi = 0 on the body by symmetry, and walls
relaxed, w_w += (formula - w_w) / (1 + g sqrt(dt nu)/h), with g = 2 for Thom's formula.

Rows of the body are identities. Words moved per unknown of an unsteady step: about 70, of which
14 for psi. Stability: the implicit half steps are stable for any dt; the walls, whose values a
step extrapolates, require dt of the order of the spacing and of Re times its square.
"""

from dataclasses import dataclass, replace
from math import sqrt
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tridiagonal import solve_tridiagonal
from ._body_poisson import BodyPoisson
from ._channel import ChannelGrid
from ._line_poisson import LinePoisson
from ._walls import WALLS, WallFormula

__all__ = ["CylinderState", "SteadyStep", "UnsteadyStep"]

Array = NDArray[Any]


@dataclass(slots=True)
class CylinderState:
    """Everything that the next step depends on.

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

    def after(self, dt: float) -> tuple[float, int]:
        """Return the origin of the state after a step."""
        return self.origin if dt == self.dt_old else (self.time, self.steps)

    def copy(self, into: Any = None) -> "CylinderState":
        """Return a state with arrays of its own; `into` is not used."""
        del into
        return replace(
            self,
            psi=self.psi.copy(),
            psi_old=self.psi_old.copy(),
            omega=self.omega.copy(),
            omega_old=self.omega_old.copy(),
        )


class _Step:
    """What both kinds of steps share.

    Parameters
    ----------
    grid : ChannelGrid
        The grid.
    re : float
        Reynolds number.
    wall : WallFormula
        Formula of the vorticity on the walls and the body.
    dtype : dtype
        float32 or float64.
    threads : int
        0 leaves the choice to the backend.
    psi_tol : float, optional
        Tolerance of `LinePoisson`, which then solves the equation of psi; without it,
        `BodyPoisson` does.
    """

    on_device = False
    backend_name = "cpu"
    #: Steps between two checks of the change of a steady flow.
    interval = 1
    _free_outlet = False

    def __init__(
        self,
        grid: ChannelGrid,
        re: float,
        wall: WallFormula,
        dtype: np.dtype,
        threads: int,
        psi_tol: float | None = None,
    ) -> None:
        self._grid, self._viscosity, self._wall, self._dtype = grid, 1 / re, wall, dtype
        outlet = self._free_outlet
        self.poisson: BodyPoisson | LinePoisson = (
            BodyPoisson(grid, dtype, threads, free_outlet=outlet)
            if psi_tol is None
            else LinePoisson(grid, dtype, threads, free_outlet=outlet, tolerance=psi_tol)
        )
        self.threads = self.poisson.threads
        #: Time of each stage of all steps.
        self.seconds = dict.fromkeys(("omega", "psi", "walls"), 0.0)
        shape = grid.shape[0] - 2, grid.shape[1] - 2
        names = ("lower_x", "upper_x", "lower_y", "upper_y", "rhs", "half", "work")
        self._work = {name: np.empty(shape, dtype) for name in names}
        rows, columns = grid.box
        self._box = rows.nodes, columns.nodes
        self._body_in_box = (
            slice(grid.rows.first - rows.first, grid.rows.last - rows.first + 1),
            slice(grid.columns.first - columns.first, grid.columns.last - columns.first + 1),
        )

    @property
    def viscosity(self) -> float:
        """1 / Re."""
        return self._viscosity

    @property
    def wall(self) -> WallFormula:
        """Formula of the vorticity on the walls and the body."""
        return self._wall

    def wall_weight(self, dt: float) -> float:
        """Return the share of the change to the formula that a step makes."""
        del dt
        return 1.0

    def resume(self, state: CylinderState) -> CylinderState:
        """Return a state for `make`."""
        return state

    def start(self, psi: Array, omega: Array, dt: float) -> CylinderState:
        """Return the state of a vorticity at time 0, with circulation 0 around the box.

        Parameters
        ----------
        psi, omega : ndarray
            psi on the boundary and omega at the nodes of the flow; both arrays are completed.
        dt : float
            Length of the first step.
        """
        omega[self._grid.body] = 0
        value = self.poisson.solve(omega, psi, circulation=0.0, sources=self.sources(omega))
        self.update_walls(psi, omega, value)
        return CylinderState(
            psi, psi.copy(), omega, omega.copy(), value, 0.0, float("nan"), dt, (0.0, 0), 0
        )

    def update_walls(self, psi: Array, omega: Array, value: float, weight: float = 1.0) -> None:
        """Move omega on the walls of the channel and on the body towards the wall formula."""
        grid, wall = self._grid, self._wall
        for end, inward in ((0, 1), (-1, -1)):
            found = wall.at(
                (psi[end + inward], psi[end + 2 * inward]), omega[end + inward], psi[end], grid.hy
            )
            omega[end, 1:] += weight * (found - omega[end])[1:]
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
            omega[rows, i] += weight * (faces[side] - omega[rows, i])
        inner = slice(i0 + 1, i1)
        for face, j in (("bottom", j0), ("top", j1)):
            omega[j, inner] += weight * (faces[face][1:-1] - omega[j, inner])

    def sources(self, omega: Array) -> float:
        """Return the sum of omega over the nodes of the box outside the body."""
        box = omega[self._box]
        total = box.sum(dtype=np.float64)
        return float(total - box[self._body_in_box].sum(dtype=np.float64))

    def circulation_rate(self, psi: Array, omega: Array) -> float:
        r"""Return the rate of change of the circulation around the box.

        The vorticity that convection and diffusion carry through the faces of the cells of
        the nodes of the box:

        .. math:: -\oint \omega\, u \cdot n\, ds + \nu \oint \partial\omega/\partial n\, ds
        """
        grid, nu = self._grid, self._viscosity
        rows, columns = grid.box
        total = 0.0
        for sign, i in ((-1, columns.first - 1), (1, columns.last)):
            # Nodes on both sides of the face, with one more row at both ends for u.
            part = psi[rows.first - 1 : rows.last + 2, i : i + 2].astype(np.float64)
            w = omega[rows.nodes, i : i + 2].astype(np.float64)
            u = (part[2:] - part[:-2]).sum(axis=1) / (4 * grid.hy)
            flux = nu * (w[:, 1] - w[:, 0]) / grid.hx - u * (w[:, 0] + w[:, 1]) / 2
            total += sign * float(flux.sum()) * grid.hy
        for sign, j in ((-1, rows.first - 1), (1, rows.last)):
            part = psi[j : j + 2, columns.first - 1 : columns.last + 2].astype(np.float64)
            w = omega[j : j + 2, columns.nodes].astype(np.float64)
            v = (part[:, :-2] - part[:, 2:]).sum(axis=0) / (4 * grid.hx)
            flux = nu * (w[1] - w[0]) / grid.hy - v * (w[0] + w[1]) / 2
            total += sign * float(flux.sum()) * grid.hx
        return total

    def _stop(self, start: float, stage: str) -> float:
        """Add the time since `start` to a stage, and return the time now."""
        now = perf_counter()
        self.seconds[stage] += now - start
        return now

    def _rows(self, psi: Array, dt: float) -> tuple[float, float]:
        """Write both off-diagonals along x and y, 0 in the body; return dt nu / h^2."""
        grid, work = self._grid, self._work
        along_x = self._viscosity * dt / grid.hx**2
        along_y = self._viscosity * dt / grid.hy**2
        speed = work["work"]
        factor = dt / (4 * grid.hx * grid.hy)
        for axis, low, high, sign in (
            ("x", psi[:-2, 1:-1], psi[2:, 1:-1], 1),
            ("y", psi[1:-1, :-2], psi[1:-1, 2:], -1),
        ):
            np.subtract(high, low, out=speed)
            speed *= sign * factor
            diffusion = along_x if axis == "x" else along_y
            np.subtract(-diffusion, speed, out=work[f"lower_{axis}"])
            np.subtract(speed, diffusion, out=work[f"upper_{axis}"])
        for name in ("lower_x", "upper_x", "lower_y", "upper_y"):
            work[name][grid.body_unknowns] = 0
        return along_x, along_y

    def _solve(self, axis: str, diag: Any, rhs: Array, out: Array) -> None:
        """Solve the lines along an axis; a line without a pivot is NaN.

        A flow that grows without bound has such lines. The check of the bounds of psi finds them.
        """
        solve_tridiagonal(
            self._work[f"lower_{axis}"],
            diag,
            self._work[f"upper_{axis}"],
            rhs,
            axis=1 if axis == "x" else 0,
            out=out,
            on_singular="nan",
            threads=self.threads,
        )


class UnsteadyStep(_Step):
    """Step of Peaceman and Rachford; parameters as in `_Step`, and whether psi is free."""

    def __init__(
        self,
        grid: ChannelGrid,
        re: float,
        wall: WallFormula,
        dtype: np.dtype,
        threads: int,
        psi_tol: float | None = None,
        *,
        free: bool,
    ) -> None:
        super().__init__(grid, re, wall, dtype, threads, psi_tol)
        self._free = free
        self._star = np.empty(grid.shape, dtype)
        self._source = np.empty(grid.shape, dtype)
        self._released: tuple[Array, Array] | None = None

    @property
    def is_free(self) -> bool:
        """Whether psi on the body follows from the circulation."""
        return self._free

    def make(self, state: CylinderState, dt: float) -> CylinderState:
        """Return the state after a step. The arrays of `state` do not change.

        The arrays of a state that was made two steps before can be overwritten.
        """
        clock = perf_counter()
        psi, omega = state.psi, state.omega
        new_psi, new_omega = self._arrays(state)
        star = self._star
        np.subtract(psi, state.psi_old, out=star)
        star *= dt / (2 * state.dt_old)
        star += psi
        new_psi[0], new_psi[-1], new_psi[:, 0] = psi[0], psi[-1], psi[:, 0]
        new_omega[0], new_omega[-1], new_omega[:, 0] = omega[0], omega[-1], omega[:, 0]
        new_omega[self._grid.body] = omega[self._grid.body]
        self._convect_outlet(psi, omega, star, dt, new_psi, new_omega)
        self._extrapolate_walls(omega, state.omega_old, dt / (2 * state.dt_old), new_omega)
        self._diffuse(omega, star, dt, new_omega)
        clock = self._stop(clock, "omega")
        rate = self.circulation_rate(psi, omega)
        old = rate if np.isnan(state.rate) else state.rate
        share = dt / (2 * state.dt_old)
        circulation = state.circulation + dt * (rate + share * (rate - old))
        sources = self.sources(new_omega)
        if self.poisson.needs_guess:
            inner = new_psi[1:-1, 1:-1]
            np.subtract(psi[1:-1, 1:-1], state.psi_old[1:-1, 1:-1], out=inner)
            inner *= dt / state.dt_old
            inner += psi[1:-1, 1:-1]
        value = self.poisson.solve(
            new_omega,
            new_psi,
            circulation=circulation if self._free else None,
            sources=sources,
        )
        clock = self._stop(clock, "psi")
        self.update_walls(new_psi, new_omega, value)
        self._stop(clock, "walls")
        return CylinderState(
            psi=new_psi,
            psi_old=psi,
            omega=new_omega,
            omega_old=omega,
            value=value,
            circulation=circulation,
            rate=rate,
            dt_old=dt,
            origin=state.after(dt),
            steps=state.steps + 1,
        )

    def _arrays(self, state: CylinderState) -> tuple[Array, Array]:
        """Return arrays for the new fields that `state` does not use."""
        spare, self._released = self._released, (state.psi_old, state.omega_old)
        used = (state.psi, state.psi_old, state.omega, state.omega_old)
        if spare is None or any(a is b for a in spare for b in used):
            return np.empty_like(state.psi), np.empty_like(state.omega)
        return spare

    def _convect_outlet(
        self, psi: Array, omega: Array, star: Array, dt: float, new_psi: Array, new_omega: Array
    ) -> None:
        """Write psi and omega of the new level at the outlet, walls apart."""
        grid = self._grid
        u = (star[2:, -1] - star[:-2, -1]) / (2 * grid.hy)
        for field, new, speed in ((psi, new_psi, 1.0), (omega, new_omega, u)):
            courant = speed * (dt / grid.hx)
            last, near, far = (field[1:-1, -k] for k in (1, 2, 3))
            new[1:-1, -1] = (
                last
                - courant / 2 * (3 * last - 4 * near + far)
                + courant * courant / 2 * (last - 2 * near + far)
            )

    def _extrapolate_walls(self, omega: Array, old: Array, share: float, new: Array) -> None:
        """Write omega of the half step on the walls and the body to `new`."""
        for place in (np.s_[0, 1:], np.s_[-1, 1:], self._grid.body):
            now = omega[place]
            new[place] = now + share * (now - old[place])

    def _diffuse(self, omega: Array, star: Array, dt: float, new: Array) -> None:
        """Make both half steps; `new` contains the values on the boundary and the body."""
        work, grid = self._work, self._grid
        along_x, along_y = self._rows(star, dt / 2)
        rhs, half, product = work["rhs"], work["half"], work["work"]
        # omega now, with the walls and the body of the half step.
        source = self._source
        source[:] = omega
        source[0], source[-1] = new[0], new[-1]
        source[grid.body] = new[grid.body]
        np.multiply(omega[1:-1, 1:-1], 1 - 2 * along_y, out=rhs)
        np.multiply(work["upper_y"], source[2:, 1:-1], out=product)
        rhs -= product
        np.multiply(work["lower_y"], source[:-2, 1:-1], out=product)
        rhs -= product
        body = new[grid.body].copy()
        rhs[grid.body_unknowns] = (1 + 2 * along_x) * body
        first, last = rhs[:, 0].copy(), rhs[:, -1].copy()
        rhs[:, 0] -= work["lower_x"][:, 0] * omega[1:-1, 0]
        rhs[:, -1] -= work["upper_x"][:, -1] * (omega[1:-1, -1] + new[1:-1, -1]) / 2
        self._solve("x", 1 + 2 * along_x, rhs, half)
        rhs[:, 0], rhs[:, -1] = first, last
        half *= 2
        half -= rhs
        half[grid.body_unknowns] = (1 + 2 * along_y) * body
        half[0] -= work["lower_y"][0] * new[0, 1:-1]
        half[-1] -= work["upper_y"][-1] * new[-1, 1:-1]
        self._solve("y", 1 + 2 * along_y, half, half)
        new[1:-1, 1:-1] = half
        new[grid.body] = body


class SteadyStep(_Step):
    """Step of backward Euler in delta form towards the steady state; parameters as in `_Step`."""

    _free_outlet = True

    def wall_weight(self, dt: float) -> float:
        grid = self._grid
        return 1 / (1 + self._wall.gain * sqrt(dt * self._viscosity) / min(grid.hx, grid.hy))

    def make(self, state: CylinderState, dt: float) -> CylinderState:
        """Return the state after a step, with new arrays."""
        clock = perf_counter()
        grid, work = self._grid, self._work
        psi, omega = state.psi.copy(), state.omega.copy()
        along_x, along_y = self._rows(psi, dt)
        rhs, product = work["rhs"], work["work"]
        np.multiply(omega[1:-1, 1:-1], -2 * (along_x + along_y), out=rhs)
        for name, neighbour in (
            ("lower_x", omega[1:-1, :-2]),
            ("upper_x", omega[1:-1, 2:]),
            ("lower_y", omega[:-2, 1:-1]),
            ("upper_y", omega[2:, 1:-1]),
        ):
            np.multiply(work[name], neighbour, out=product)
            rhs -= product
        rhs[grid.body_unknowns] = 0
        # Zero gradient at the outlet: the increment there is that of the last unknown.
        diag = np.full_like(rhs, 1 + 2 * along_x)
        diag[:, -1] += work["upper_x"][:, -1]
        self._solve("x", diag, rhs, rhs)
        self._solve("y", 1 + 2 * along_y, rhs, rhs)
        omega[1:-1, 1:-1] += rhs
        omega[1:-1, -1] = omega[1:-1, -2]
        clock = self._stop(clock, "omega")
        value = self.poisson.solve(omega, psi)
        clock = self._stop(clock, "psi")
        self.update_walls(psi, omega, value, self.wall_weight(dt))
        self._stop(clock, "walls")
        return CylinderState(
            psi=psi,
            psi_old=state.psi,
            omega=omega,
            omega_old=state.omega,
            value=value,
            circulation=0.0,
            rate=0.0,
            dt_old=dt,
            origin=state.after(dt),
            steps=state.steps + 1,
        )
