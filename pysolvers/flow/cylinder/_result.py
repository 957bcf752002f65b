"""Result of the flow around a square cylinder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._repr import place_text, shape_text
from ..._solver.files import SavedFile
from ..._solver.result import Result, write_vtk
from ..._solver.schema import AnyFloat, Field, Line, Member, Positive, Table
from ._channel import ChannelGrid

Array = NDArray[Any]

_PERIODS = 8  # last periods of which the Strouhal number is the mean


class Strouhal(NamedTuple):
    """Strouhal number f D / Umax of vortex shedding.

    Parameters
    ----------
    value : float
        The number of periods divided by their duration.
    uncertainty : float
        Standard deviation of the frequencies of the single periods.
    periods : int
        Number of periods, at most the last 8.

    Examples
    --------
    >>> from pysolvers.flow import Strouhal
    >>> found = Strouhal(value=0.125, uncertainty=0.003, periods=8)  # by result.strouhal()
    >>> 1 / found.value  # one period, in units of D / Umax
    8.0
    >>> print(found)
    0.12500 +- 3.0e-03 (8 periods)
    """

    value: float
    uncertainty: float
    periods: int

    def __str__(self) -> str:
        return f"{self.value:.5f} +- {self.uncertainty:.1e} ({self.periods} periods)"


@dataclass(frozen=True, slots=True, eq=False)
class CylinderHistory:
    """Forces and velocities during a run.

    Parameters
    ----------
    time : ndarray, shape (k,)
        Times of the forces: the middles of every fourth step.
    drag, lift : ndarray, shape (k,)
        Coefficients by the balance of momentum over a box.
    surface_drag, surface_lift : ndarray, shape (k,)
        Coefficients by pressure and shear on the surface.
    probe_time : ndarray, shape (m,)
        Times of the velocities: the ends of all steps.
    probes : ndarray, shape (p, 2)
        Coordinates x, y of the probes. The first lies four sides behind the centre.
    u, v : ndarray, shape (m, p)
        Velocities at the probes; NaN before a probe was set.
    change : ndarray, shape (m,)
        Largest change of psi per unit time in each step.

    Examples
    --------
    >>> from pysolvers import SquareCylinder
    >>> result = SquareCylinder(reynolds=40, shape=(49, 201)).run(until=0.5)
    >>> history = result.history
    >>> len(history.time) == len(history.drag)
    True
    >>> history.u.shape[1] == len(history.probes)
    True
    """

    time: Line
    drag: Line
    lift: Line
    surface_drag: Line
    surface_lift: Line
    probe_time: Line
    probes: Annotated[Array, Member((None, 2))]
    u: Table
    v: Table
    change: Line


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CylinderResult(Result):
    """Flow around a square cylinder, with the history that led to it.

    Lengths are in sides of the cylinder and velocities in units of the largest inflow velocity.
    Fields have the shape (ny, nx): ``psi[j, i]`` lies at ``(x[i], y[j])``.

    Parameters
    ----------
    psi, omega : ndarray, shape (ny, nx)
        Streamfunction and vorticity; psi is constant and omega is 0 inside the cylinder.
    reynolds : float
        Largest inflow velocity times side over kinematic viscosity.
    length : float
        Length of the channel.
    cylinder, wall : str
        As in `SquareCylinder`.
    steady : bool
        Whether the steps go towards the steady flow, so that times have no meaning.
    time, dt : float
        Time of the fields, and the last time step.
    steps : int
        Number of steps since the start.
    drag, lift : float
        Coefficients by the balance of momentum in the middle of the last step; NaN before the
        first step.
    surface_drag, surface_lift : float
        The same by pressure and shear on the surface.
    surface_gap : float
        Difference of the pressure after once around the surface, in units of rho Umax^2.
    stop_reason : {'converged', 'reached', 'max_iterations', 'stalled', 'diverged', ...}
        Reason of the end of the run.
    history : CylinderHistory
        Forces and velocities.
    seconds : dict of str to float
        Time of the stages: omega, psi, walls, forces.
    backend, kernel : str
        Backend of the lines, and instruction set of the host; empty on a device.
    threads : int
        Number of host threads.
    frames : tuple of CylinderResult
        The states that `record` kept; empty after the other calls. `save` does not write them.

    Examples
    --------
    >>> from pysolvers import SquareCylinder
    >>> result = SquareCylinder(reynolds=40, shape=(49, 201)).run(until=0.5)
    >>> result.omega.shape, result.stop_reason, result.drag > 0
    ((49, 201), 'reached', True)
    """

    psi: Field
    omega: Field
    reynolds: Positive
    length: Positive
    cylinder: str
    wall: str
    steady: bool
    time: float
    dt: Positive
    steps: int
    drag: AnyFloat
    lift: AnyFloat
    surface_drag: AnyFloat
    surface_lift: AnyFloat
    surface_gap: AnyFloat
    history: CylinderHistory

    _KIND, _PLOTS = "pysolvers cylinder result", "cylinder"
    _DIMS: ClassVar = dict.fromkeys(("psi", "omega", "u", "v"), "y x")

    @cached_property
    def grid(self) -> ChannelGrid:
        """The grid."""
        ny, nx = self.psi.shape
        return ChannelGrid((ny, nx), self.length)

    @property
    def x(self) -> Array:
        """Coordinates of the nodes along x, from 0 to `length`: shape (nx,)."""
        return self.grid.x

    @property
    def y(self) -> Array:
        """Coordinates of the nodes along y, from -4 to 4: shape (ny,)."""
        return self.grid.y

    @cached_property
    def _velocity(self) -> tuple[Array, Array]:
        """Return u and v at the nodes."""
        return velocity(self.grid, self.psi)

    @property
    def u(self) -> Array:
        """Velocity along x: shape (ny, nx)."""
        return self._velocity[0]

    @property
    def v(self) -> Array:
        """Velocity along y: shape (ny, nx)."""
        return self._velocity[1]

    @property
    def recirculation_length(self) -> float:
        """Lr, from the rear face to the point where u on y = 0 changes its sign; NaN if none."""
        return recirculation_length(self.grid, self.psi)

    @property
    def recirculation_centre_length(self) -> float:
        """Lc = Lr + 1/2, measured from the centre of the cylinder."""
        return self.recirculation_length + 0.5

    def strouhal(self) -> Strouhal:
        """Return the Strouhal number of v at the first probe.

        Raises
        ------
        ValueError
            If v has fewer than three rising zeros.
        """
        return strouhal_of(self.history.probe_time, self.history.v[:, 0])

    def to_vtk(self, path: str | os.PathLike[str]) -> None:
        """Write psi, omega and the velocity to a VTK file (legacy format, binary).

        Parameters
        ----------
        path : path-like
            The file, usually ``*.vtk``. It is written completely or not at all.
        """
        ny, nx = self.psi.shape
        write_vtk(
            path,
            f"square cylinder, Re {self.reynolds:g}, t {self.time:g}",
            (nx, ny),
            (0, float(self.y[0])),
            (self.grid.hx, self.grid.hy),
            POINT_DATA={
                "psi": self.psi,
                "omega": self.omega,
                "velocity": np.stack([self.u, self.v], -1),
            },
        )

    def _check(self, saved: SavedFile) -> None:
        history = self.history
        try:
            ChannelGrid(self.psi.shape, self.length)
        except (TypeError, ValueError) as error:
            raise saved.error("member 'psi'", str(error)) from None
        saved.require(
            self.psi.shape == self.omega.shape,
            "member 'omega'",
            "it must have the shape of psi",
        )
        times, probes = len(history.probe_time), len(history.probes)
        forces = history.drag, history.lift, history.surface_drag, history.surface_lift
        saved.require(
            history.u.shape == history.v.shape == (times, probes)
            and len(history.change) == times
            and {len(column) for column in forces} == {len(history.time)},
            "member 'history_u'",
            "the columns of the history must have equal lengths",
        )

    def _table(self) -> tuple[str, Mapping[str, str]]:
        shape = shape_text(self.psi.shape)
        facts = {
            "flow": f"Re = {self.reynolds:g}, {shape} nodes, {self.wall} walls",
            "steps": f"{self.steps} of {self.dt:g}, time {self.time:g} ({self.stop_reason})",
            "drag, lift": f"{self.drag:.4f}, {self.lift:z.4f} "
            f"(surface {self.surface_drag:.4f}, {self.surface_lift:z.4f})",
        }
        if self.steady:
            facts["recirculation length"] = f"{self.recirculation_length:.4f}"
        else:
            try:
                found = self.strouhal()
                facts["Strouhal number"] = f"{found.value:.4f} ± {found.uncertainty:.4f}"
            except ValueError:
                facts["Strouhal number"] = "fewer than three periods"
        facts["seconds"] = f"{sum(self.seconds.values()):.3g}, {place_text(self)}"
        return "Flow around a square cylinder", facts


def velocity(grid: ChannelGrid, psi: Array) -> tuple[Array, Array]:
    """Return u and v by central differences, one-sided at the outlet, 0 on walls and body."""
    u, v = np.zeros_like(psi), np.zeros_like(psi)
    u[1:-1] = (psi[2:] - psi[:-2]) / (2 * grid.hy)
    v[1:-1, 1:-1] = (psi[1:-1, :-2] - psi[1:-1, 2:]) / (2 * grid.hx)
    v[1:-1, -1] = (4 * psi[1:-1, -2] - 3 * psi[1:-1, -1] - psi[1:-1, -3]) / (2 * grid.hx)
    u[grid.body] = v[grid.body] = 0
    return u, v


def recirculation_length(grid: ChannelGrid, psi: Array) -> float:
    """Return the distance from the rear face to the zero of u on y = 0; NaN if there is none."""
    j, i = grid.intervals[0] // 2, grid.columns.last
    u = (psi[j + 1, i + 1 :] - psi[j - 1, i + 1 :]) / (2 * grid.hy)
    change = np.flatnonzero((u[:-1] < 0) & (u[1:] >= 0))
    if not len(change):
        return float("nan")
    k = int(change[0])
    return float((k + 1 + u[k] / (u[k] - u[k + 1])) * grid.hx)


def strouhal_of(time: Array, v: Array) -> Strouhal:
    """Return the frequency of the last periods of a signal between its rising zeros."""
    rising = np.flatnonzero((v[:-1] < 0) & (v[1:] >= 0))
    if len(rising) < 3:
        raise ValueError(
            f"strouhal needs at least 3 rising zeros of v at the first probe, got {len(rising)}: "
            "run longer, with a Reynolds number above about 50"
        )
    share = v[rising] / (v[rising] - v[rising + 1])
    zeros = (time[rising] + share * (time[rising + 1] - time[rising]))[-_PERIODS - 1 :]
    frequencies = 1 / np.diff(zeros)
    periods = len(frequencies)
    return Strouhal(
        float(periods / (zeros[-1] - zeros[0])), float(frequencies.std(ddof=1)), periods
    )
