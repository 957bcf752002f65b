"""The methods and timings of Souri, Akbarzadeh and Mahmoodi Darian (2020): PTA on a GPU.

Parallel Thomas approach development for solving tridiagonal systems in GPU programming, Mechanics &
Industry 21, 303: Intel i7-990X, NVIDIA GTX 580, CUDA 4.0. PTA, the parallel Thomas algorithm,
solves a line by one thread, with the coefficients of all lines in global memory.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from .. import flow
from .._checks import require
from ..flow.cavity._settings import CavitySettings
from ..flow.cavity.solver import CavityState
from ..flow.cylinder._settings import CylinderSettings
from ..flow.cylinder.solver import SavedCylinder

__all__ = ["LidDrivenCavity", "SouriTiming", "SquareCylinder", "souri_timings"]

LineMethod = Literal["partition", "pta"]
Block = Literal[32, 64, 128, 256]


@dataclass(frozen=True, kw_only=True)
class PtaCavitySettings(CavitySettings):
    """Parameters of `LidDrivenCavity` of this module."""

    block: Block | None  # type: ignore[misc]

    def _check(self) -> None:
        super()._check()
        if self.block is not None:
            thomas = f"block={self.block} needs line_method 'thomas'"
            require(self.line_method == "thomas", thomas, self.line_method)
            require(self.is_on_device, f"block={self.block} needs device 'cuda'", self.device)


@dataclass(frozen=True, kw_only=True)
class SavedPtaCavity(CavityState):
    """What `save` writes of `LidDrivenCavity` of this module."""

    settings: PtaCavitySettings

    _KIND = "pta2020 cavity state"


class LidDrivenCavity(flow.LidDrivenCavity):
    r"""`pysolvers.flow.LidDrivenCavity` with the threads of a block of PTA.

    Parameters
    ----------
    *args, **options
        As in `pysolvers.flow.LidDrivenCavity`.
    block : {32, 64, 128, 256}, optional
        For ``line_method='thomas'`` on a device: threads of a block, each of which solves a line.
        By default so many that all multiprocessors are used.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.flow.LidDrivenCavity`, and if `block` is none of the choices, or the lines are
        not solved by one thread each.
    BackendError, ModuleNotFoundError
        As `pysolvers.flow.LidDrivenCavity`.

    Examples
    --------
    >>> from pysolvers.papers import pta2020
    >>> cavity = pta2020.LidDrivenCavity(100, 17, method="line-jacobi", line_method="thomas")
    >>> cavity.iterate(5).iterations
    5
    """

    _SETTINGS: ClassVar[Any] = PtaCavitySettings
    _STATE: ClassVar[Any] = SavedPtaCavity

    def __init__(self, *args: Any, block: Block | None = None, **options: Any) -> None:
        self._experiment = {"block": block}
        super().__init__(*args, **options)


@dataclass(frozen=True, kw_only=True)
class PtaCylinderSettings(CylinderSettings):
    """Parameters of `SquareCylinder` of this module."""

    line_method: LineMethod
    block: Block | None  # type: ignore[misc]

    def _check(self) -> None:
        super()._check()
        if self.line_method == "pta":
            require(self.is_on_device, "line_method 'pta' needs device 'cuda'", self.device)
            rule = "line_method 'pta' needs psi_solver 'lines'"
            require(self.psi_solver == "lines", rule, self.psi_solver)
        else:
            rule = f"block={self.block} needs line_method 'pta'"
            require(self.block is None, rule, self.line_method)


@dataclass(frozen=True, kw_only=True)
class SavedPtaCylinder(SavedCylinder):
    """What `save` writes of `SquareCylinder` of this module."""

    settings: PtaCylinderSettings

    _KIND = "pta2020 cylinder state"


class SquareCylinder(flow.SquareCylinder):
    r"""`pysolvers.flow.SquareCylinder` with the lines of the paper.

    Parameters
    ----------
    *args, **options
        As in `pysolvers.flow.SquareCylinder`.
    line_method : {'partition', 'pta'}, default: 'partition'
        Solution of the lines on a device: by many threads in shared memory, or, for
        ``psi_solver='lines'``, by the parallel Thomas algorithm: one thread per line, with the
        coefficients in global memory. The host always uses Thomas elimination.
    block : {32, 64, 128, 256}, optional
        For ``line_method='pta'``: threads of a block. By default so many that all multiprocessors
        are used.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.flow.SquareCylinder`, and if these options are none of the choices or
        contradict others.
    BackendError, ModuleNotFoundError
        As `pysolvers.flow.SquareCylinder`.

    Examples
    --------
    >>> from pysolvers.papers import pta2020
    >>> cylinder = pta2020.SquareCylinder(20, (33, 201), steady=True, psi_solver="lines")
    >>> cylinder.step(3).steps
    3
    """

    _SETTINGS: ClassVar[Any] = PtaCylinderSettings
    _STATE: ClassVar[Any] = SavedPtaCylinder

    def __init__(
        self,
        *args: Any,
        line_method: LineMethod = "partition",
        block: Block | None = None,
        **options: Any,
    ) -> None:
        self._experiment = {"line_method": line_method, "block": block}
        super().__init__(*args, **options)


@dataclass(frozen=True, slots=True)
class SouriTiming:
    """Published time of one tridiagonal method in 1000 iterations of the cavity.

    Parameters
    ----------
    least_speedup, largest_speedup : float
        Range of the speedups over Thomas elimination on one core, for grids of 64^2 to 1024^2.
    seconds : float or None
        Time on `nodes` x `nodes` nodes, if it was published.
    nodes : int
        Nodes along a side.

    Examples
    --------
    >>> from pysolvers.papers.pta2020 import souri_timings
    >>> timing = souri_timings()["thomas"]
    >>> timing.seconds, timing.nodes
    (331.73, 1024)
    """

    least_speedup: float
    largest_speedup: float
    seconds: float | None = None
    nodes: int = 1024


_SOURI = {
    "thomas": SouriTiming(1.0, 1.0, 331.73),
    "cr": SouriTiming(0.4, 4.4),
    "pcr": SouriTiming(0.47, 5.2),
    "pta": SouriTiming(1.7, 38.45, 8.6),
}


def souri_timings() -> dict[str, SouriTiming]:
    """Return the timings by Souri, Akbarzadeh and Mahmoodi Darian (2020).

    Returns
    -------
    timings : dict of str to SouriTiming
        ``thomas`` on one core; ``cr``, ``pcr`` and ``pta`` (one thread per line with coalesced
        access) on the GPU.

    Examples
    --------
    >>> from pysolvers.papers.pta2020 import souri_timings
    >>> sorted(souri_timings())
    ['cr', 'pcr', 'pta', 'thomas']
    """
    return dict(_SOURI)
