"""Result of a convection-diffusion solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._repr import place_text, shape_text, steps_text
from .._solver.files import SavedFile
from .._solver.result import Result
from .._solver.schema import Count, Field, Line, Positive

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TransportResult(Result):
    """State of a convection-diffusion problem, with scheme, steps and times.

    Parameters
    ----------
    u : ndarray, shape (ny, nx)
        The solution: ``u[j, i]`` lies at ``(x[i], y[j])``.
    x, y : ndarray of float, shapes (nx,) and (ny,)
        Coordinates of the nodes along each axis.
    time : float
        Time of the state.
    dt : float
        Time step.
    last_dt : float
        Length of the last step, which `run` shortens to end at a given time.
    steps : int
        Number of steps since the start.
    scheme, upwind : str
        The method, as in `GCEIDD`.
    strips : (int, int)
        Strips along x and y.
    courant : float
        Largest abs(b) dt/h of both axes.
    diffusion_number : float
        Largest a dt/h^2 of both axes.
    stop_reason : {'reached', 'callback', 'diverged', 'running'}
        Reason of the end of the last run.
    seconds : dict of str to float
        Time of each part of both sweeps. On a device the time of each call of the
        backend is divided among the parts in the ratio measured in its last step.
    backend, kernel : str
        Backend, and its instruction set or kernels.
    threads : int
        Number of host threads.
    exchange : {'none', 'host', 'nccl', 'peers'}
        With a group, how the ranks exchange nodes: through the memory of the host, by NCCL, or
        between the devices of a host. `save` does not write it.
    frames : tuple of TransportResult
        The states that `record` kept; empty after the other calls. `save` does not write them.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import GCEIDD, ConvectionDiffusion
    >>> problem = ConvectionDiffusion(
    ...     (1.0, 0.0), 0.01, boundary=0.0,
    ...     initial=lambda x, y: np.sin(np.pi * x) * np.sin(np.pi * y),
    ... )
    >>> result = GCEIDD(problem, (17, 17), dt=0.01, strips=2).run(until=0.1)
    >>> result.steps, result.strips, round(result.courant, 3)
    (10, (2, 2), 0.16)
    """

    u: Field
    x: Line
    y: Line
    time: float
    dt: Positive
    last_dt: Positive
    steps: int
    scheme: str
    upwind: str
    strips: tuple[Count, Count]
    courant: float
    diffusion_number: float
    exchange: str = "none"

    _KIND, _PLOTS = "pysolvers transport result", "transport"
    _DIMS: ClassVar = {"u": "y x"}

    def errors(self, exact: Callable[[Array, Array, float], Any]) -> tuple[float, float]:
        """Return the errors with respect to an exact solution.

        Parameters
        ----------
        exact : callable
            Function of (x, y, t), called with x of shape (1, nx) and y (ny, 1).

        Returns
        -------
        largest : float
            Largest error at a node.
        l2 : float
            Square root of the sum of squared errors times the area of a cell.
        """
        error = np.abs(self.u - exact(self.x[None, :], self.y[:, None], self.time))
        area = (self.x[1] - self.x[0]) * (self.y[1] - self.y[0])
        return float(error.max()), float(np.sqrt(np.sum(error**2) * area))

    def _check(self, saved: SavedFile) -> None:
        nodes = self.y.size, self.x.size
        saved.require(
            self.u.shape == nodes and min(nodes) > 1,
            "member 'u'",
            f"y and x need the shape {nodes}, of at least 2 nodes, got {self.u.shape}",
        )

    def _table(self) -> tuple[str, Mapping[str, str]]:
        facts = {
            "nodes": f"{shape_text(self.u.shape)}, strips {self.strips[0]} along x, "
            f"{self.strips[1]} along y",
            "scheme": f"{self.scheme}, Courant number {self.courant:.3g}, "
            f"diffusion number {self.diffusion_number:.3g}",
            "time": f"{self.time:g} ({steps_text(self)}, {self.stop_reason})",
            "u": f"{self.u.min():.6g} to {self.u.max():.6g}",
            "seconds": f"{sum(self.seconds.values()):.3g}, {place_text(self)}",
        }
        return "Convection and diffusion", facts
