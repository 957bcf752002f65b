"""Result of a red-black relaxation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from .._repr import place_text, shape_text
from .._solver.files import SavedFile
from .._solver.result import Result
from .._solver.schema import AnyFloat, Count, Field, Line, Steps

STAGES = ("set-up", "iterations")


@dataclass(frozen=True, slots=True, eq=False)
class RelaxationHistory:
    """Values measured during an iteration, as arrays of equal length.

    Parameters
    ----------
    iteration : ndarray of int
        Numbers of the measured iterations, counted from 1.
    measure : ndarray of float
        Values measured in these iterations, by criterion and norm of the result.

    Examples
    --------
    >>> from pysolvers import solve_laplace
    >>> sides = {"x": 0.0, "y-": 0.0, "y+": 1.0}
    >>> result = solve_laplace((16, 16), extent=((0, 1), (0, 1)), boundary=sides)
    >>> history = result.history
    >>> bool(history.iteration[-1] == result.iterations)
    True
    >>> bool(history.measure[-1] < history.measure[0])
    True
    """

    iteration: Steps
    measure: Line


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RelaxationResult(Result):
    """State of a red-black relaxation, with the history that led to it.

    Parameters
    ----------
    u : ndarray of float, shape (len(y), len(x))
        Solution, y along the first axis: ``u[j, i]`` lies at ``(x[i], y[j])``.
    x, y : ndarray of float
        Coordinates of the nodes, boundary included, or of the centres of the cells.
    title : str
        Title of the problem.
    relaxation : str
        Relaxation parameters.
    method : str
        Kernel or variant that was requested.
    iterations : int
        Number of iterations since the start.
    residual : float
        Last measured value, by `criterion` and `norm`.
    criterion : {'residual', 'change', 'solution'}
        Value measured at each node: its residual immediately before its relaxation, its
        change in the iteration, or its new value.
    norm : {'max', 'l2'}
        Largest absolute value, or root mean square.
    stop_reason : {'converged', 'max_iterations', 'stalled', 'diverged', 'callback', 'running'}
        Reason of the end of the iteration.
    history : RelaxationHistory
        The measured values.
    seconds : dict of str to float
        Times of ``set-up`` (coefficients, parameters, copies to the device) and of
        ``iterations``.
    unknowns : int
        Number of nodes that are relaxed.
    backend, kernel : str
        Backend, and instruction set or kernel.
    threads : int
        Number of host threads; 0 on a device.
    exchange : {'none', 'host', 'nccl', 'peers'}
        With a group, how the ranks exchange rows: through the memory of the host, by NCCL, or
        between the devices of a host. `save` does not write it.

    Examples
    --------
    >>> from pysolvers import solve_laplace
    >>> sides = {"x": 0.0, "y-": 0.0, "y+": 1.0}
    >>> result = solve_laplace((16, 16), extent=((0, 1), (0, 1)), boundary=sides)
    >>> result.converged, round(float(result.u[7:9, 7:9].mean()), 3)
    (True, 0.25)
    """

    u: Field
    x: Line
    y: Line
    title: str
    relaxation: str
    method: str
    iterations: int
    residual: AnyFloat
    criterion: str
    norm: str
    history: RelaxationHistory
    unknowns: Count
    exchange: str = "none"

    _KIND, _PLOTS = "pysolvers relaxation result", "relaxation"
    _DIMS: ClassVar = {"u": "y x"}
    _PREFIX = ""

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.stop_reason == "converged"

    @property
    def updates_per_second(self) -> float:
        """Number of nodes relaxed per second; NaN before the first iteration."""
        seconds = self.seconds["iterations"]
        return self.unknowns * self.iterations / seconds if seconds else float("nan")

    def _check(self, saved: SavedFile) -> None:
        nodes = self.y.size, self.x.size
        rule = f"y and x need the shape {nodes}, got {self.u.shape}"
        saved.require(self.u.shape == nodes, "member 'u'", rule)
        saved.require_stages(self.seconds, STAGES)
        self._check_rows(saved, self.iterations)

    def _table(self) -> tuple[str, Mapping[str, str]]:
        speed = self.updates_per_second / 1e6
        facts = {
            "shape": f"{shape_text(self.u.shape)}, {self.u.dtype}",
            "relaxation": f"{self.relaxation}, {self.method}",
            "iterations": f"{self.iterations} ({self.stop_reason}), "
            f"{self.criterion} ({self.norm}) {self.residual:.2e}",
            "seconds": f"{self.seconds['iterations']:.3g}, {place_text(self)}",
            "speed": f"{speed:.4g} million updates/s",
        }
        return self.title, facts
