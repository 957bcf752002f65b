"""Result of the flow around a square cylinder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._atomic import atomic_write
from .._extras import extra_module
from .._files import SavedFile
from .._header import count, flag, mapping, number, positive, text
from .._runtime.recording import Filmed
from .._saved_result import SavedResult
from .._shown import place_text, shape_text
from ._channel import ChannelGrid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CylinderHistory", "CylinderResult", "Strouhal", "strouhal_of", "velocity"]

Array = NDArray[Any]

_ANY = number(finite=False)  # a number of the header that can be NaN

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
    """

    value: float
    uncertainty: float
    periods: int


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
    """

    time: Array
    drag: Array
    lift: Array
    surface_drag: Array
    surface_lift: Array
    probe_time: Array
    probes: Array
    u: Array
    v: Array
    change: Array


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CylinderResult(SavedResult, Filmed):
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
        Number of steps since time 0.
    drag, lift : float
        Coefficients by the balance of momentum in the middle of the last step; NaN at time 0.
    surface_drag, surface_lift : float
        The same by pressure and shear on the surface.
    surface_gap : float
        Difference of the pressure after once around the surface, in units of rho Umax^2.
    stop_reason : {'reached', 'converged', 'max_iterations', 'callback', 'diverged', 'running'}
        Reason of the end of the run.
    history : CylinderHistory
        Forces and velocities.
    seconds : dict of str to float
        Time of the stages: omega, psi, walls, forces.
    backend : str
        Backend of the lines.
    threads : int
        Number of host threads.
    frames : tuple of CylinderResult
        The states that `record` kept; empty after the other calls. `save` does not write them.
    """

    psi: Array
    omega: Array
    reynolds: float
    length: float
    cylinder: str
    wall: str
    steady: bool
    time: float
    dt: float
    steps: int
    drag: float
    lift: float
    surface_drag: float
    surface_lift: float
    surface_gap: float
    stop_reason: str
    history: CylinderHistory
    seconds: dict[str, float]
    backend: str
    threads: int
    frames: tuple[CylinderResult, ...] = ()

    _KIND = "pysolvers cylinder result"
    _FACTS: ClassVar = {
        "reynolds": positive,
        "length": positive,
        "cylinder": text(),
        "wall": text(),
        "steady": flag,
        "time": number(),
        "dt": positive,
        "steps": count(),
        "drag": _ANY,
        "lift": _ANY,
        "surface_drag": _ANY,
        "surface_lift": _ANY,
        "surface_gap": _ANY,
        "stop_reason": text(),
        "seconds": mapping(number()),
        "backend": text(),
        "threads": count(),
    }
    _ARRAYS: ClassVar = dict.fromkeys(("psi", "omega"), ((None, None), (np.float32, np.float64)))
    _HISTORY = CylinderHistory
    _COLUMNS: ClassVar = {
        **dict.fromkeys(
            ("time", "drag", "lift", "surface_drag", "surface_lift", "probe_time"),
            ((None,), np.float64),
        ),
        "probes": ((None, 2), np.float64),
        "u": ((None, None), np.float64),
        "v": ((None, None), np.float64),
        "change": ((None,), np.float64),
    }

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

    def plot(
        self,
        ax: Axes | None = None,
        *,
        show: bool | None = None,
        **options: Any,
    ) -> Any:
        """Draw streamlines, vorticity, velocities, and histories of forces or of the change.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes on which only the vorticity is drawn. By default a new figure of pyplot is made.
        show : bool, optional
            Whether to open a window and wait until it is closed. By default this happens in a
            program whose matplotlib opens windows. A notebook shows the figure in any case.
        **options
            Options of the `contourf` of the vorticity.

        Returns
        -------
        axes : Axes or ndarray of Axes
            `ax`, or the axes of all plots.

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed; it is in the extra ``plot``.
        """
        from ..plots.cylinder import plot_cylinder

        return plot_cylinder(self, ax, show=show, **options)

    @property
    def _film(self) -> Callable[..., Any]:
        from ..plots.cylinder import film_cylinder

        return film_cylinder

    def to_xarray(self) -> Any:
        """Return the fields as an `xarray.Dataset` with their coordinates.

        Returns
        -------
        dataset : xarray.Dataset
            psi, omega, u and v with the dimensions ``y, x``; the extra ``io`` installs xarray.
        """
        xarray: Any = extra_module("xarray", "io")
        return xarray.Dataset(
            {name: (("y", "x"), getattr(self, name)) for name in ("psi", "omega", "u", "v")},
            coords={"x": self.x, "y": self.y},
            attrs={"reynolds": self.reynolds, "time": self.time, "dt": self.dt},
        )

    def to_vtk(self, path: str | os.PathLike[str]) -> None:
        """Write psi, omega and the velocity to a VTK file (legacy format, binary).

        Parameters
        ----------
        path : path-like
            The file, usually ``*.vtk``. It is written completely or not at all.
        """
        ny, nx = self.psi.shape
        head = (
            "# vtk DataFile Version 3.0\n"
            f"square cylinder, Re {self.reynolds:g}, t {self.time:g}\n"
            "BINARY\nDATASET STRUCTURED_POINTS\n"
            f"DIMENSIONS {nx} {ny} 1\nORIGIN 0 {float(self.y[0])!r} 0\n"
            f"SPACING {self.grid.hx!r} {self.grid.hy!r} 1\nPOINT_DATA {nx * ny}\n"
        )
        vectors = np.stack([self.u, self.v, np.zeros_like(self.u)], axis=-1)
        with atomic_write(Path(path)) as stream:
            stream.write(head.encode())
            for name in ("psi", "omega"):
                stream.write(f"SCALARS {name} double 1\nLOOKUP_TABLE default\n".encode())
                stream.write(getattr(self, name).astype(">f8").tobytes() + b"\n")
            stream.write(b"VECTORS velocity double\n" + vectors.astype(">f8").tobytes() + b"\n")

    def _check(self, saved: SavedFile) -> None:
        history = self.history
        with saved.naming("member 'psi'"):
            ChannelGrid(self.psi.shape, self.length)
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
