"""What a red-black relaxation tells."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._files import is_rising, read_npz, write_npz
from .._header import count, number, record, text
from .._shown import Shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RelaxationHistory", "RelaxationResult"]

_KIND = "pysolvers relaxation result"


@dataclass(frozen=True, slots=True, eq=False)
class RelaxationHistory:
    """Measures in the course of an iteration, arrays of one length.

    Parameters
    ----------
    iteration : ndarray of int
        Iterations made.
    measure : ndarray of float
        What was measured in the last of them, by the criterion and norm of the result.
    """

    iteration: NDArray[np.int64]
    measure: NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RelaxationResult(Shown):
    """State of a red-black relaxation, with the history that led to it.

    Parameters
    ----------
    u : ndarray of float, shape (len(y), len(x))
        Solution, y along the first axis: ``u[j, i]`` lies at ``(x[i], y[j])``.
    x, y : ndarray of float
        Places of the nodes, with the boundary, or of the centres of cells.
    title : str
        What was solved.
    relaxation : str
        Relaxation parameters.
    method : str
        Kernel or variant that was asked for.
    iterations : int
        Iterations from the start to this state.
    residual : float
        The last measure, by `criterion` and `norm`.
    criterion : {'residual', 'change', 'solution'}
        What is measured at a node: the residual that it meets just before it is relaxed,
        its change in the iteration, or its value.
    norm : {'max', 'l2'}
        Largest absolute value, or root mean square.
    stop_reason : {'converged', 'max_iterations', 'diverged', 'callback', 'running'}
        Why the iteration ended.
    history : RelaxationHistory
        What was measured.
    seconds : dict of str to float
        Time spent: ``set-up`` (coefficients, parameters, their way to the device) and
        ``iterations``.
    unknowns : int
        Nodes that are relaxed.
    backend, kernel : str
        Backend, and instruction set or kernel.
    threads : int
        Threads used; 0 on a device.
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

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.stop_reason == "converged"

    @property
    def updates_per_second(self) -> float:
        """Nodes relaxed per second of the iterations; NaN before the first."""
        seconds = self.seconds["iterations"]
        return self.unknowns * self.iterations / seconds if seconds else float("nan")

    def plot(self) -> "Figure":
        """Draw the solution and the history.

        Returns
        -------
        figure : matplotlib.figure.Figure
            The figure; matplotlib comes with the extra ``plot``.
        """
        from ..plots.relaxation import plot_relaxation

        return plot_relaxation(self)

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the result to an npz file of exactly this name, whole or not at all.

        Parameters
        ----------
        path : path-like
            The file.
        """
        facts = {name: getattr(self, name) for name in _FACTS}
        arrays = {
            "u": self.u,
            "x": self.x,
            "y": self.y,
            "iteration": self.history.iteration,
            "measure": self.history.measure,
        }
        write_npz(path, _KIND, facts, arrays)

    @classmethod
    def load(cls, path: "str | os.PathLike[str]") -> "RelaxationResult":
        """Read a result that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        result : RelaxationResult
            The same, bit for bit.

        Raises
        ------
        ValueError
            If the file holds something else, is damaged or was edited; the message names the
            file and what is wrong.
        """
        saved = read_npz(path, _KIND)
        facts = saved.header(_FACTS)
        line = (None,), np.float64
        arrays = saved.arrays(
            {
                "u": ((None, None), (np.float32, np.float64)),
                "x": line,
                "y": line,
                "iteration": ((None,), np.int64),
                "measure": line,
            }
        )
        nodes = arrays["y"].size, arrays["x"].size
        rule = f"y and x need the shape {nodes}, got {arrays['u'].shape}"
        saved.require(arrays["u"].shape == nodes, "member 'u'", rule)
        is_history = is_rising(arrays["iteration"], facts["iterations"])
        saved.require(
            is_history and arrays["iteration"].shape == arrays["measure"].shape,
            "member 'iteration'",
            "it must hold rising integers up to the number of iterations, one for each measure",
        )
        history = RelaxationHistory(arrays["iteration"], arrays["measure"])
        return cls(u=arrays["u"], x=arrays["x"], y=arrays["y"], history=history, **facts)

    def _table(self) -> tuple[str, Mapping[str, str]]:
        speed = self.updates_per_second / 1e6
        facts = {
            "nodes": f"{len(self.x)} × {len(self.y)}, {self.u.dtype}",
            "relaxation": f"{self.relaxation}, {self.method}",
            "iterations": f"{self.iterations} ({self.stop_reason})",
            f"{self.criterion} ({self.norm})": f"{self.residual:.2e}",
            "time": f"{self.seconds['iterations']:.3g} s, {speed:.4g} million updates a second",
            "backend": f"{self.backend}, {self.kernel}, {self.threads} threads",
        }
        return self.title, facts


# What the header of a file holds, and the checks of it.
_FACTS = {
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
