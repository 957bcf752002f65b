"""Result of the cavity on a staggered grid."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._repr import place_text
from .._solver.files import SavedFile
from .._solver.result import Result, write_vtk
from .._solver.schema import AnyFloat, Line, Positive, Steps, Table
from . import _fields
from ._result import Vortex

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class StaggeredHistory:
    """Every 20th step, as arrays of equal length.

    Parameters
    ----------
    step : ndarray of int
        Numbers of the steps.
    time : ndarray of float
        Times after these steps, in units of side divided by lid speed.
    dt : ndarray of float
        Lengths of these steps.
    change : ndarray of float
        Largest change of a velocity in these steps, divided by the length of the step.
    sweeps : ndarray of int
        Number of SOR iterations since the start; 0 for a direct solver.
    """

    step: Steps
    time: Line
    dt: Line
    change: Line
    sweeps: Steps


@dataclass(frozen=True, slots=True)
class CentrelineExtrema:
    """Extreme velocities on the centre lines, from polynomials through five values.

    Parameters
    ----------
    u_min, y_u_min : float
        Smallest u on x = 1/2, and its coordinate.
    v_max, x_v_max : float
        Largest v on y = 1/2, and its coordinate.
    v_min, x_v_min : float
        Smallest v on y = 1/2, and its coordinate.
    """

    u_min: float
    y_u_min: float
    v_max: float
    x_v_max: float
    v_min: float
    x_v_min: float


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class StaggeredResult(Result):
    """State of a cavity on a staggered grid, with the history that led to it.

    Lengths are in units of the side, velocities in units of the lid speed U, pressures in units
    of density times U squared. The first axis of a field is y. N is the number of cells along
    each side.

    Parameters
    ----------
    u : ndarray of float, shape (N, N + 1)
        Velocity along x on the vertical faces: ``u[j, i]`` is at ``(x_faces[i], y[j])``.
    v : ndarray of float, shape (N + 1, N)
        Velocity along y on the horizontal faces: ``v[j, i]`` is at ``(x[i], y_faces[j])``.
    p : ndarray of float, shape (N, N)
        Pressure in the centres of the cells, with mean 0.
    reynolds : float
        Lid speed times side over kinematic viscosity.
    gamma : float or 'auto'
        Share of the donor-cell differences.
    pressure : str
        Solver of the Poisson equation, as in `StaggeredCavity`.
    time : float
        Time of the state, in units of side divided by lid speed.
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
    """

    u: Table
    v: Table
    p: Table
    reynolds: Positive
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
    _COORDINATES: ClassVar = {"x_face": "x_faces", "y_face": "y_faces"}

    @property
    def n(self) -> int:
        """Cells along each side."""
        return self.p.shape[0]

    @property
    def converged(self) -> bool:
        """Whether the steady state was reached."""
        return self.stop_reason == "converged"

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
        u = np.concatenate([-self.u[:1], self.u, 2.0 - self.u[-1:]], axis=0)
        v = np.concatenate([-self.v[:, :1], self.v, -self.v[:, -1:]], axis=1)
        return (np.diff(v, axis=1) - np.diff(u, axis=0)) * self.n

    @cached_property
    def divergence(self) -> float:
        """Largest absolute value of ``u_x + v_y``, times the size of a cell."""
        return _fields.largest_divergence(self.u, self.v)

    def centreline_u(self, y: ArrayLike | None = None) -> Array:
        """Return u on the line x = 1/2.

        Parameters
        ----------
        y : array_like, optional
            Coordinates in [0, 1], for cubic interpolation; by default the centres of the cells.

        Returns
        -------
        u : ndarray of float
            One value per coordinate.

        Raises
        ------
        ValueError
            If a coordinate is outside of [0, 1].
        """
        places, values = self._line_u
        return values[1:-1].copy() if y is None else _fields.interpolate_at(places, values, y)

    def centreline_v(self, x: ArrayLike | None = None) -> Array:
        """Return v on the line y = 1/2.

        Parameters
        ----------
        x : array_like, optional
            Coordinates in [0, 1], for cubic interpolation; by default the centres of the cells.

        Returns
        -------
        v : ndarray of float
            One value per coordinate.

        Raises
        ------
        ValueError
            If a coordinate is outside of [0, 1].
        """
        places, values = self._line_v
        return values[1:-1].copy() if x is None else _fields.interpolate_at(places, values, x)

    def centreline_extrema(self) -> CentrelineExtrema:
        """Return the extreme velocities on the centre lines.

        Returns
        -------
        extrema : CentrelineExtrema
            Values and coordinates.
        """
        (y, u), (x, v) = self._line_u, self._line_v
        return CentrelineExtrema(
            *_fields.refined_minimum(y, u, 1),
            *_fields.refined_minimum(x, v, -1),
            *_fields.refined_minimum(x, v, 1),
        )

    def primary_vortex(self, *, refine: bool = True) -> Vortex:
        """Return the centre of the main vortex, where psi is farthest from zero.

        Parameters
        ----------
        refine : bool, default: True
            Fit a quadratic polynomial to the nine corners of cells around the extremum; otherwise
            return the corner with the extreme value.

        Returns
        -------
        vortex : Vortex
            Coordinates, psi and omega.
        """
        inner = np.abs(self.psi[1:-1, 1:-1])
        j, i = (int(k) + 1 for k in np.unravel_index(np.argmax(inner), inner.shape))
        if refine:
            return Vortex(*_fields.fit_peak(self.psi, self.omega, j, i))
        return Vortex(
            float(self.x_faces[i]),
            float(self.y_faces[j]),
            float(self.psi[j, i]),
            float(self.omega[j, i]),
        )

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
    def _line_u(self) -> tuple[Array, Array]:
        """Coordinates and values of u on x = 1/2, with the walls."""
        line = _fields.middle(self.u, 1)
        return self._with_walls, np.concatenate([[0.0], line, [1.0]])

    @cached_property
    def _line_v(self) -> tuple[Array, Array]:
        """Coordinates and values of v on y = 1/2, with the walls."""
        line = _fields.middle(self.v, 0)
        return self._with_walls, np.concatenate([[0.0], line, [0.0]])

    @cached_property
    def _with_walls(self) -> Array:
        """Centres of the cells along an axis, with the walls."""
        return np.concatenate([[0.0], self.x, [1.0]])

    def _table(self) -> tuple[str, Mapping[str, str]]:
        facts = {
            "flow": f"Re = {self.reynolds:g}, {self.n} × {self.n} cells, gamma {self.gamma}",
            "pressure": self.pressure + (f", {self.sweeps} sweeps" if self.sweeps else ""),
            "state": f"t = {self.time:.6g}, {self.steps} steps ({self.stop_reason})",
            "change": f"{self.change:.2e}, divergence × cell size {self.divergence:.1e}",
            "seconds": f"{sum(self.seconds.values()):.3g}, {place_text(self)}",
        }
        return "Lid-driven cavity on a staggered grid", facts
