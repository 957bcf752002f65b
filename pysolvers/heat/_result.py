"""Result of a heat conduction solver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from .._domain import AXES, NodeLines
from .._repr import place_text, shape_text, steps_text
from .._solver.files import SavedFile
from .._solver.result import Result
from .._solver.schema import Line, Member, Positive


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HeatResult(NodeLines, Result):
    """A temperature field, with scheme, steps and times.

    Parameters
    ----------
    u : ndarray, shape (nx,), (ny, nx) or (nz, ny, nx)
        Temperature at the nodes, x along the last axis.
    spacing : tuple of float
        Distance between the nodes along each axis, in the order x, y, z; the mean one if they are
        not evenly spaced.
    origin : tuple of float
        Coordinates of the first node.
    lines : ndarray or None
        Coordinates of the nodes along x, those along y, and so on, one after the other; None if
        they are evenly spaced. `x`, `y` and `z` are these.
    holes : ndarray of bool or None
        Whether each node lies in a hole; None without holes. Pictures leave these nodes out.
    time : float
        Time of the state.
    dt : float
        Time step.
    last_dt : float
        Length of the last step, which `run` shortens to end at a given time.
    steps : int
        Number of steps since the start.
    scheme : str
        The scheme of the steps of length `dt`, as in `HeatADI`, but for ``'auto'``.
    iterations : int
        With the scheme ``'implicit'``, iterations of the last step; otherwise 0.
    damped_start : bool
        Whether the first step was two half-steps of the backward Euler method.
    stop_reason : {'reached', 'callback', 'diverged', 'running'}
        Reason of the end of the last run.
    seconds : dict of str to float
        Time of each stage of the steps; on a device only with the option ``timed`` of
        `pysolvers.papers.wei2013.HeatADI`. For large fields in three dimensions, a device merges
        the stages into two: *x* contains the right-hand side, *z* the rest, and each contains half
        of the work along y. Where one kernel makes a step, *x* contains all of it.
    backend, kernel : str
        Backend, and its instruction set or kernels. Of planes with one conductivity on a device:
        ``'resident'`` if its multiprocessors hold the plane, ``'plane'`` for steps of one kernel,
        ``'fused'`` for two sweeps.
    threads : int
        Number of host threads.
    exchange : {'none', 'host', 'nccl', 'peers'}
        With a group, how the ranks exchange nodes: through the memory of the host, by NCCL, or
        between the devices of a host; ``'none'`` where each device has all nodes. `save` does not
        write it.
    frames : tuple of HeatResult
        The states that `record` kept; empty after the other calls. `save` does not write them.

    Examples
    --------
    >>> from pysolvers import HeatADI
    >>> solver = HeatADI((9, 17), 1 / 8, dt=0.01, boundary={"x-": 1.0, "x+": 0.0, "y": 0.0})
    >>> result = solver.run(until=0.055)
    >>> result.stop_reason, result.steps, round(result.last_dt, 3)
    ('reached', 6, 0.005)
    >>> result.u.shape, result.x[-1], result.y[-1]
    ((9, 17), np.float64(2.0), np.float64(1.0))
    """

    u: Annotated[NDArray[Any], Member(None, (np.float32, np.float64))]
    spacing: tuple[Positive, ...]
    origin: tuple[float, ...]
    time: float
    dt: Positive
    last_dt: Positive
    steps: int
    scheme: str
    iterations: int
    damped_start: bool
    lines: Line | None
    holes: Annotated[NDArray[np.bool_], Member(None, (np.bool_,))] | None
    exchange: str = "none"

    _KIND, _PLOTS = "pysolvers heat result", "heat"

    def _line(self, axis: int) -> NDArray[np.float64]:
        if axis >= self.u.ndim:
            axes = ("one axis", "two axes")[self.u.ndim - 1]
            raise AttributeError(f"a field of {axes} has no {AXES[axis]}")
        if self.lines is not None:
            ends = np.cumsum(self.u.shape[::-1])
            return self.lines[ends[axis] - self.u.shape[-1 - axis] : ends[axis]]
        places = np.arange(self.u.shape[-1 - axis], dtype=np.float64)
        return self.origin[axis] + places * self.spacing[axis]

    def _check(self, saved: SavedFile) -> None:
        axes = len(self.spacing)
        saved.require(axes in (1, 2, 3), "header", f"spacing must have 1 to 3 entries, got {axes}")
        saved.require(len(self.origin) == axes, "header", f"origin must have {axes} entries")
        saved.require(self.u.ndim == axes, "member 'u'", f"it must have {axes} axes")
        if self.holes is not None:
            saved.require_array("holes", self.holes, self.u.shape, np.bool_)
        if self.lines is not None:
            saved.require_array("lines", self.lines, (sum(self.u.shape),), np.float64)

    def _inside(self) -> NDArray[Any]:
        """Return T of the nodes that are not in holes."""
        return self.u if self.holes is None else self.u[~self.holes]

    @property
    def _has_lines(self) -> bool:
        return self.lines is not None

    def _dims(self) -> Mapping[str, str]:
        return {"u": "z y x"[-2 * self.u.ndim + 1 :]}

    def _scheme_text(self) -> str:
        """Name of the scheme with the facts of its last step and of the start."""
        of_step = f", {self.iterations} iterations in the last step" if self.iterations else ""
        return self.scheme + of_step + (", damped start" if self.damped_start else "")

    def _table(self) -> tuple[str, Mapping[str, str]]:
        facts = {
            "nodes": shape_text(self.u.shape),
            "time": f"{self.time:g} ({steps_text(self)}, {self.stop_reason})",
            "scheme": self._scheme_text(),
            "T": f"{self._inside().min():.6g} to {self._inside().max():.6g}",
            "seconds": f"{sum(self.seconds.values()):.3g}, {place_text(self)}",
        }
        return "Heat conduction", facts
