"""Result of a red-black relaxation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._files import SavedFile, is_rising
from .._header import count, number, record, text
from .._saved_result import SavedResult
from .._shown import place_text, shape_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RelaxationHistory", "RelaxationResult"]


@dataclass(frozen=True, slots=True, eq=False)
class RelaxationHistory:
    """Values measured during an iteration, as arrays of equal length.

    Parameters
    ----------
    iteration : ndarray of int
        Numbers of the measured iterations, counted from 1.
    measure : ndarray of float
        Values measured in these iterations, by criterion and norm of the result.
    """

    iteration: NDArray[np.int64]
    measure: NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RelaxationResult(SavedResult):
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
    """

    u: NDArray[Any]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    title: str
    relaxation: str
    method: str
    iterations: int
    residual: float
    criterion: str
    norm: str
    stop_reason: str
    history: RelaxationHistory
    seconds: dict[str, float]
    unknowns: int
    backend: str
    kernel: str
    threads: int
    exchange: str = "none"

    _KIND = "pysolvers relaxation result"
    _FACTS: ClassVar = {
        "title": text(),
        "relaxation": text(),
        "method": text(),
        "iterations": count(),
        "residual": number(finite=False),
        "criterion": text(),
        "norm": text(),
        "stop_reason": text(),
        "seconds": record({"set-up": number(), "iterations": number()}),
        "unknowns": count(1),
        "backend": text(),
        "kernel": text(),
        "threads": count(),
    }
    _ARRAYS: ClassVar = {
        "u": ((None, None), (np.float32, np.float64)),
        "x": ((None,), np.float64),
        "y": ((None,), np.float64),
    }
    _HISTORY = RelaxationHistory
    _COLUMNS: ClassVar = {"iteration": ((None,), np.int64), "measure": ((None,), np.float64)}
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

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        show: bool | None = None,
        **options: Any,
    ) -> Any:
        """Draw the solution and the history.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes on which only the solution is drawn. By default a new figure of pyplot is made.
        show : bool, optional
            Whether to open a window and wait until it is closed. By default this happens in a
            program whose matplotlib opens windows. A notebook shows the figure in any case.
        **options
            Options of `contourf`, for example ``levels`` and ``cmap``.

        Returns
        -------
        axes : Axes or ndarray of Axes
            `ax`, or the axes of all plots.

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed; it is in the extra ``plot``.
        """
        from ..plots.relaxation import plot_relaxation

        return plot_relaxation(self, ax, show=show, **options)

    def _check(self, saved: SavedFile) -> None:
        nodes, history = (self.y.size, self.x.size), self.history
        rule = f"y and x need the shape {nodes}, got {self.u.shape}"
        saved.require(self.u.shape == nodes, "member 'u'", rule)
        is_history = is_rising(history.iteration, self.iterations)
        saved.require(
            is_history and history.iteration.shape == history.measure.shape,
            "member 'iteration'",
            "it must hold rising integers up to the number of iterations, one for each measure",
        )

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
