"""Result of the lid-driven cavity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._repr import place_text
from ..._solver.files import SavedFile
from ..._solver.result import Result
from ..._solver.schema import AnyFloat, Line, Positive, Steps, Table
from .. import _fields
from .._centrelines import CavityProfiles


@dataclass(frozen=True, slots=True, eq=False)
class CavityHistory:
    """Residuals during an iteration, as arrays of equal length.

    Parameters
    ----------
    iteration : ndarray of int
        Numbers of the iterations after which the residuals were measured.
    psi, omega : ndarray of float
        Root mean square residuals of both equations, in the units of `CavityResult.residual`.
    pseudo_dt : ndarray of float
        Pseudo-time step of these iterations, in units of side divided by lid speed; NaN for
        line Jacobi.

    Examples
    --------
    >>> from pysolvers import LidDrivenCavity
    >>> result = LidDrivenCavity(reynolds=100, n=33).solve(tol=1e-6)
    >>> history = result.history
    >>> bool(history.psi[-1] < 1e-6), bool(history.iteration[-1] == result.iterations)
    (True, True)
    """

    iteration: Steps
    psi: Line
    omega: Line
    pseudo_dt: Line


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CavityResult(Result, CavityProfiles):
    """State of a lid-driven cavity, with the history that led to it.

    Lengths are in units of the side and velocities in those of `lid_velocity`. Fields have
    the shape (n, n) with y along the first axis: ``psi[j, i]`` lies at ``(x[i], y[j])``.

    Parameters
    ----------
    psi, omega : ndarray of float, shape (n, n)
        Streamfunction and vorticity. The corners of `omega` are not defined.
    reynolds : float
        Lid speed times side over kinematic viscosity.
    lid_velocity : float
        Velocity of the lid along x.
    wall, method, line_method : str
        Wall formula, iteration, and algorithm of its tridiagonal lines.
    iterations : int
        Number of iterations since the start from rest.
    residual : float
        The larger of the root mean square residuals of both equations over the interior
        nodes, in units of lid speed divided by side (psi) and of its square (omega).
    stop_reason : {'converged', 'max_iterations', 'stalled', 'diverged', 'callback', 'running'}
        Reason of the end of the iteration.
    history : CavityHistory
        Residuals every 20 iterations.
    seconds : dict of str to float
        Time of each stage of the iterations: omega, psi, walls, residual. On a device
        the time of 20 iterations is divided among the stages in the ratio of the last one.
    backend, kernel : str
        Backend and instruction set of the lines.
    threads : int
        Number of host threads.

    Examples
    --------
    >>> from pysolvers import LidDrivenCavity
    >>> result = LidDrivenCavity(reynolds=100, n=33).solve(tol=1e-6)
    >>> result.converged, result.psi.shape
    (True, (33, 33))
    >>> round(result.primary_vortex().psi, 3)
    -0.101
    """

    psi: Table
    omega: Table
    reynolds: Positive
    lid_velocity: float
    wall: str
    method: str
    line_method: str
    iterations: int
    residual: AnyFloat
    history: CavityHistory

    _KIND, _PLOTS = "pysolvers cavity result", "cavity"
    _DIMS: ClassVar = dict.fromkeys(("psi", "omega", "u", "v"), "y x")

    @property
    def n(self) -> int:
        """Nodes along each side, walls included."""
        return self.psi.shape[0]

    @cached_property
    def x(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along x, from 0 to 1: shape (n,)."""
        return np.linspace(0.0, 1.0, self.n)

    @property
    def y(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along y, from 0 to 1: shape (n,)."""
        return self.x

    @cached_property
    def _velocity(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return u and v at the nodes, those of the lid on it."""
        return _fields.velocity(self.psi, self.lid_velocity)

    @property
    def u(self) -> NDArray[np.float64]:
        """Velocity along x: shape (n, n)."""
        return self._velocity[0]

    @property
    def v(self) -> NDArray[np.float64]:
        """Velocity along y: shape (n, n)."""
        return self._velocity[1]

    @property
    def _places(self) -> NDArray[np.float64]:
        return self.x

    @property
    def _profiles(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return _fields.middle(self.u, 1), _fields.middle(self.v, 0)

    def wall_vorticity(self, side: str = "lid") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the vorticity along a wall.

        Parameters
        ----------
        side : {'lid', 'bottom', 'left', 'right'}, default: 'lid'
            The wall.

        Returns
        -------
        place : ndarray of float, shape (n - 2,)
            Coordinate along the wall of its nodes, corners apart.
        omega : ndarray of float, shape (n - 2,)
            Vorticity there.

        Raises
        ------
        ValueError
            If there is no such wall.
        """
        walls = {
            "lid": self.omega[-1],
            "bottom": self.omega[0],
            "left": self.omega[:, 0],
            "right": self.omega[:, -1],
        }
        if side not in walls:
            raise ValueError(f"side must be one of {', '.join(walls)}; got {side!r}")
        return self.x[1:-1].copy(), walls[side][1:-1].copy()

    def _check(self, saved: SavedFile) -> None:
        n = self.n
        shapes = {self.psi.shape, self.omega.shape}
        rule = f"psi and omega must have one square shape of at least 5 nodes a side, got {shapes}"
        saved.require(shapes == {(n, n)} and n >= 5, "member 'psi'", rule)
        self._check_rows(saved, self.iterations)

    def _table(self) -> tuple[str, Mapping[str, str]]:
        vortex = self.primary_vortex()
        facts = {
            "flow": f"Re = {self.reynolds:g}, {self.n} × {self.n} nodes, {self.wall} walls",
            "method": f"{self.method}, lines by {self.line_method}",
            "iterations": f"{self.iterations} ({self.stop_reason}), residual {self.residual:.2e}",
            "primary vortex": f"psi {vortex.psi:.6f}, omega {vortex.omega:.5f} "
            f"at ({vortex.x:.4f}, {vortex.y:.4f})",
            "seconds": f"{sum(self.seconds.values()):.3g}, {place_text(self)}",
        }
        return "Lid-driven cavity", facts
