"""Result of a parabolic solver."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._repr import place_text, shape_text, steps_text
from .._solver.files import SavedFile
from .._solver.result import Result
from .._solver.schema import Count, Line, Member, Positive
from .._split import LABELS, SCHEMES


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ParabolicResult(Result):
    """The solutions of a batch of parabolic equations, with scheme, steps and times.

    Parameters
    ----------
    u : ndarray, shape batch + (nx,), (ny, nx) or (nz, ny, nx)
        The solutions at the nodes, x along the last axis.
    lines : ndarray
        Coordinates of the nodes along x, those along y, and so on, one after the other; `x`, `y`
        and `z` are these.
    batch : tuple of int
        Axes of `u` before those of space; empty for one equation.
    time : float
        Time of the state.
    dt : float
        Time step.
    last_dt : float
        Length of the last step, which `run` shortens to end at a given time.
    steps : int
        Number of steps since the start.
    scheme : str
        The scheme, as in `ParabolicADI`.
    theta : float
        Its parameter.
    damped_start : bool
        Whether the first steps were those of a damped start.
    stop_reason : {'reached', 'callback', 'diverged', 'running'}
        Reason of the end of the last run.
    seconds : dict of str to float
        Time of the parts of the steps: evaluation of coefficients, products of rows, and line
        solves. On a device the times are those of the calls, which do not wait for their work.
    backend, kernel : str
        Backend, and its instruction set or kernels.
    threads : int
        Number of host threads.
    frames : tuple of ParabolicResult
        The states that `record` kept; empty after the other calls. `save` does not write them.
    """

    u: Annotated[NDArray[Any], Member(None, (np.float32, np.float64))]
    lines: Line
    batch: tuple[Count, ...]
    time: float
    dt: Positive
    last_dt: Positive
    steps: int
    scheme: str
    theta: Positive
    damped_start: bool

    _KIND: ClassVar = "pysolvers parabolic result"
    _PLOTS: ClassVar = "parabolic"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one solution."""
        return self.u.shape[len(self.batch) :]

    @property
    def x(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along x: shape (nx,)."""
        return self._line(0)

    @property
    def y(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along y: shape (ny,); an error in one dimension."""
        return self._line(1)

    @property
    def z(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along z: shape (nz,); an error in two dimensions."""
        return self._line(2)

    def _line(self, axis: int) -> NDArray[np.float64]:
        if axis >= len(self.shape):
            raise AttributeError(f"a solution of shape {self.shape} has no axis {'xyz'[axis]}")
        end = sum(self.shape[::-1][: axis + 1])
        return self.lines[end - self.shape[-1 - axis] : end]

    def _check(self, saved: SavedFile) -> None:
        axes = self.u.ndim - len(self.batch)
        fits = axes in (1, 2, 3) and self.u.shape[: len(self.batch)] == self.batch
        saved.require(fits, "member 'u'", f"it must have the axes {self.batch} and 1 to 3 others")
        saved.require_array("lines", self.lines, (sum(self.shape),), np.float64)
        saved.require(self.scheme in SCHEMES, "header", "scheme must be one of " + str(SCHEMES))

    @property
    def _has_lines(self) -> bool:
        return True

    def to_vtk(self, path: str | os.PathLike[str]) -> None:
        """Write the solution to a VTK file; see `Result.to_vtk`.

        Raises
        ------
        ValueError
            If there is a batch.
        """
        if self.batch:
            raise ValueError(
                f"ParabolicResult.to_vtk: a file holds one solution, got a batch of {self.batch}: "
                "write u[k] of to_xarray()"
            )
        super().to_vtk(path)

    def _dims(self) -> Mapping[str, str]:
        count = len(self.batch)
        names = ["problem"] if count == 1 else [f"problem_{k}" for k in range(count)]
        return {"u": " ".join([*names, *"zyx"[-len(self.shape) :]])}

    def _table(self) -> tuple[str, Mapping[str, str]]:
        problems = f"{shape_text(self.batch)} problems of " if self.batch else ""
        damped = ", damped start" if self.damped_start else ""
        facts = {
            "nodes": problems + shape_text(self.shape),
            "time": f"{self.time:g} ({steps_text(self)}, {self.stop_reason})",
            "scheme": f"{LABELS[self.scheme]}, theta = {self.theta:.4g}{damped}",
            "u": f"{self.u.min():.6g} to {self.u.max():.6g}",
            "seconds": f"{sum(self.seconds.values()):.3g}, {place_text(self)}",
        }
        return "Parabolic equation", facts
