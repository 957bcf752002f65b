"""Result of a parabolic solver."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from .._solver.files import SavedFile
from .._solver.schema import Count, Positive
from .._split import LABELS, SCHEMES
from .._split.solver import SplitResult


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ParabolicResult(SplitResult):
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

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import ParabolicADI
    >>> solver = ParabolicADI(
    ...     (21,), extent=((0, 1),), diffusion={"xx": 1.0}, boundary=0.0, dt=0.01,
    ...     initial=lambda x: np.sin(np.pi * x), damped_start=False,
    ... )
    >>> result = solver.run(until=0.1)
    >>> round(float(result.u.max()), 3), round(float(np.exp(-0.1 * np.pi**2)), 3)
    (0.373, 0.373)
    """

    batch: tuple[Count, ...]
    scheme: str
    theta: Positive

    _KIND: ClassVar = "pysolvers parabolic result"
    _CAPTION: ClassVar = "Parabolic equation"

    @property
    def _batch(self) -> tuple[int, ...]:
        return self.batch

    def _check(self, saved: SavedFile) -> None:
        super()._check(saved)
        saved.require(self.scheme in SCHEMES, "header", "scheme must be one of " + str(SCHEMES))

    def _scheme_text(self) -> str:
        return f"{LABELS[self.scheme]}, theta = {self.theta:.4g}"

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
