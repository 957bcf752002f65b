"""Result of the cavity on a staggered grid."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..._repr import place_text
from ..._solver.files import SavedFile
from ..._solver.result import Result, write_vtk
from ..._solver.schema import AnyFloat, Line, Positive, Steps, Table
from .. import _fields
from .._centrelines import CavityProfiles

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class StaggeredHistory:
    """Every 20th step, as arrays of equal length.

    Parameters
    ----------
    step : ndarray of int
        Numbers of the steps.
    time : ndarray of float
        Times after these steps.
    dt : ndarray of float
        Lengths of these steps.
    change : ndarray of float
        Largest change of a velocity in these steps, divided by the length of the step.
    sweeps : ndarray of int
        Number of SOR iterations since the start; 0 for a direct solver.

    Examples
    --------
    >>> from pysolvers import StaggeredCavity
    >>> result = StaggeredCavity(reynolds=100, n=16).run(until=0.5)
    >>> history = result.history
    >>> bool((history.dt > 0).all()), len(history.step) == len(history.time)
    (True, True)
    """

    step: Steps
    time: Line
    dt: Line
    change: Line
    sweeps: Steps


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class StaggeredResult(Result, CavityProfiles):
    """State of a cavity on a staggered grid, with the history that led to it.

    Lengths are in units of the side, velocities in units of the speed U of the Reynolds number,
    which is that of the lid if `lid_velocity` is 1, pressures in units of density times U squared,
    and times in units of side divided by U. The first axis of a field is y. N is the number of
    cells along each side.

    Parameters
    ----------
    u : ndarray of float, shape (N, N + 1)
        Velocity along x on the vertical faces: ``u[j, i]`` is at ``(x_faces[i], y[j])``.
    v : ndarray of float, shape (N + 1, N)
        Velocity along y on the horizontal faces: ``v[j, i]`` is at ``(x[i], y_faces[j])``.
    p : ndarray of float, shape (N, N)
        Pressure in the centres of the cells, with mean 0.
    reynolds : float
        U times side over kinematic viscosity.
    lid_velocity : float
        Velocity of the lid.
    gamma : float or 'auto'
        Share of the donor-cell differences.
    pressure : str
        Solver of the Poisson equation, as in `StaggeredCavity`.
    time : float
        Time of the state.
    steps : int
        Number of steps since the start.
    change : float
        Largest change of a velocity in the last step, divided by the length of the step.
    sweeps : int
        Number of SOR iterations since the start; 0 for a direct solver.
    stop_reason : {'converged', 'reached', 'max_iterations', 'stalled', 'diverged', ...}
        Reason of the end of the run. ``'reached'``: the end time is reached; the last step was
        shortened to end there.
    history : StaggeredHistory
        Every 20th step.
    seconds : dict of str to float
        Time of each stage of the steps: predict, pressure, correct.
    backend, kernel : str
        Backend and instruction set.
    threads : int
        Number of host threads.
    frames : tuple of StaggeredResult
        The states that `record` kept; empty after the other calls. `save` does not write them.

    Examples
    --------
    >>> from pysolvers import StaggeredCavity
    >>> result = StaggeredCavity(reynolds=100, n=16).run(until=0.5)
    >>> result.u.shape, result.v.shape, result.p.shape
    ((16, 17), (17, 16), (16, 16))
    >>> result.divergence < 1e-10
    True
    """

    u: Table
    v: Table
    p: Table
    reynolds: Positive
    lid_velocity: float
    gamma: float | Literal["auto"]
    pressure: str
    time: float
    steps: int
    change: AnyFloat
    sweeps: int
    history: StaggeredHistory

    _KIND, _PLOTS = "pysolvers staggered cavity result", "staggered"
    _DIMS: ClassVar = {"u": "y x_face", "v": "y_face x", "p": "y x"} | dict.fromkeys(
        ("psi", "omega"), "y_face x_face"
    )
    _SHOWN = slice(1, -1)  # not at the walls
    _COORDINATES: ClassVar = {"x_face": "x_faces", "y_face": "y_faces"}

    @property
    def n(self) -> int:
        """Cells along each side."""
        return self.p.shape[0]

    @cached_property
    def x(self) -> Array:
        """Coordinates of the centres of the cells along x: shape (N,)."""
        return (np.arange(self.n) + 0.5) / self.n

    @property
    def y(self) -> Array:
        """Coordinates of the centres of the cells along y: shape (N,)."""
        return self.x

    @cached_property
    def x_faces(self) -> Array:
        """Coordinates of the vertical faces, from 0 to 1: shape (N + 1,)."""
        return np.arange(self.n + 1) / self.n

    @property
    def y_faces(self) -> Array:
        """Coordinates of the horizontal faces, from 0 to 1: shape (N + 1,)."""
        return self.x_faces

    @cached_property
    def psi(self) -> Array:
        """Streamfunction at the corners of the cells, from u: shape (N + 1, N + 1)."""
        psi = np.zeros((self.n + 1, self.n + 1))
        np.cumsum(self.u / self.n, axis=0, out=psi[1:])
        return psi

    @cached_property
    def omega(self) -> Array:
        """Vorticity at the corners of the cells: shape (N + 1, N + 1)."""
        u = np.concatenate([-self.u[:1], self.u, 2 * self.lid_velocity - self.u[-1:]], axis=0)
        v = np.concatenate([-self.v[:, :1], self.v, -self.v[:, -1:]], axis=1)
        return (np.diff(v, axis=1) - np.diff(u, axis=0)) * self.n

    @cached_property
    def divergence(self) -> float:
        """Largest absolute value of ``u_x + v_y``, times the size of a cell."""
        return _fields.largest_divergence(self.u, self.v)

    def to_vtk(self, path: str | os.PathLike[str]) -> None:
        """Write a VTK file (legacy format, binary): p and the velocity of cells, psi and omega.

        The velocity of a cell is the mean of its faces. psi and omega belong to the corners.

        Parameters
        ----------
        path : path-like
            The file, usually ``*.vtk``. It is written completely or not at all.
        """
        n = self.n
        u, v = (self.u[:, 1:] + self.u[:, :-1]) / 2, (self.v[1:] + self.v[:-1]) / 2
        write_vtk(
            path,
            f"staggered cavity, Re {self.reynolds:g}, t {self.time:g}",
            (n + 1, n + 1),
            (0, 0),
            (1 / n, 1 / n),
            CELL_DATA={"p": self.p, "velocity": np.stack([u, v], -1)},
            POINT_DATA={"psi": self.psi, "omega": self.omega},
        )

    def _check(self, saved: SavedFile) -> None:
        n = self.n
        shapes = self.u.shape, self.v.shape, self.p.shape
        saved.require(
            shapes == ((n, n + 1), (n + 1, n), (n, n)) and n >= 4,
            "member 'p'",
            f"u, v and p must have the shapes (N, N + 1), (N + 1, N) and (N, N), got {shapes}",
        )
        self._check_rows(saved, self.steps)

    @cached_property
    def _places(self) -> Array:
        return np.concatenate([[0.0], self.x, [1.0]])

    @cached_property
    def _profiles(self) -> tuple[Array, Array]:
        u, v = _fields.middle(self.u, 1), _fields.middle(self.v, 0)
        return np.concatenate([[0.0], u, [self.lid_velocity]]), np.concatenate([[0.0], v, [0.0]])

    def _table(self) -> tuple[str, Mapping[str, str]]:
        facts = {
            "flow": f"Re = {self.reynolds:g}, {self.n} × {self.n} cells, gamma {self.gamma}",
            "pressure": self.pressure + (f", {self.sweeps} sweeps" if self.sweeps else ""),
            "state": f"t = {self.time:.6g}, {self.steps} steps ({self.stop_reason})",
            "change": f"{self.change:.2e}, divergence × cell size {self.divergence:.1e}",
            "seconds": f"{sum(self.seconds.values()):.3g}, {place_text(self)}",
        }
        return "Lid-driven cavity on a staggered grid", facts
