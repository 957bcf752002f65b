"""The kernels of Niemeyer and Sung (2014): red-black SOR and the cavity on GPUs.

Recent progress and challenges in exploiting graphics processors in computational fluid dynamics,
J. Supercomputing 67, 528-564: variants of one program, by layout of the nodes, reduction of the
residuals, memory of the coefficients, and compiler directives. All variants of a solver give the
same bits, apart from those with arrays of coefficients.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .. import flow, relaxation
from .._checks import require
from .._errors import raise_for_status
from .._options import check_choice
from .._runtime import directive
from .._solver.schema import RunBy
from ..flow.staggered._settings import StaggeredSettings
from ..flow.staggered.solver import StaggeredState
from ..relaxation._base import Stop
from ..relaxation.laplace import RedBlackSettings, RedBlackState

__all__ = ["RedBlackSOR", "StaggeredCavity"]

Variant = Literal[
    "auto",
    "naive",
    "coalesced",
    "split",
    "shared",
    "atomic",
    "directive",
    "directive-openmp",
]
Coefficients = Literal["tables", "arrays", "texture"]
Kernels = Literal["auto", "serial", "openmp", "directive", "directive-openmp"]

_INTERLEAVED = ("naive", "coalesced", *directive.MODELS)


@dataclass(frozen=True, kw_only=True)
class PlateSettings(RedBlackSettings):
    """Parameters of `RedBlackSOR` of this module."""

    variant: Variant
    coefficients: Coefficients

    def _check(self) -> None:
        super()._check()
        if self.coefficients != "tables":
            coefficients = f"coefficients={self.coefficients!r}"
            require(self.is_on_device, f"{coefficients} needs device 'cuda'", self.device)
            is_surveyed = self.variant != "auto" and self.variant not in directive.MODELS
            rule = f"{coefficients} needs a variant of the survey, 'naive' for example"
            require(is_surveyed, rule, self.variant)
        if self.variant in directive.MODELS:
            is_host = self.device in (None, "cpu")
            require(is_host, f"device must be 'cpu' with variant={self.variant!r}", self.device)

    @property
    def is_interleaved(self) -> bool:
        return self.variant in _INTERLEAVED


@dataclass(frozen=True, kw_only=True)
class SavedPlate(RedBlackState):
    """What `save` writes of `RedBlackSOR` of this module."""

    settings: PlateSettings

    _KIND = "survey2014 red-black SOR state"


class RedBlackSOR(relaxation.RedBlackSOR):
    """`pysolvers.RedBlackSOR` with the variants of the survey.

    Parameters
    ----------
    *args, **options
        As in `pysolvers.RedBlackSOR`.
    variant : {'auto', 'naive', 'coalesced', 'split', 'shared', 'atomic', 'directive', ...}
        ``'auto'``, the default, makes several iterations in one pass over memory. ``'naive'``
        stores both colours in one array; it uses one thread on the CPU, and neighbouring threads
        in different rows on a GPU. ``'coalesced'`` has neighbouring threads within a row.
        ``'split'`` stores one array per colour. ``'shared'`` also reduces the residuals to one
        number per block, ``'atomic'`` to one number in total. The CPU has ``'auto'``, ``'naive'``
        and ``'split'``. ``'directive'`` and ``'directive-openmp'`` are ``'naive'`` with OpenACC
        and OpenMP directives: on a device if there is one, otherwise on the host. Their libraries
        are optional; see ``tools/build_directive.py``.
    coefficients : {'tables', 'arrays', 'texture'}, default: 'tables'
        For the other variants on a device: where a cell finds the coefficients of its equation.
        ``'tables'`` has three rows, which all cells share, and two constants. ``'arrays'`` has
        a_P, a_W, a_E, a_S, a_N and b for each cell, as the survey; ``'texture'`` reads these
        arrays as textures. The sum of the neighbours is then rounded in another order.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.RedBlackSOR`, and if the backend does not have the variant, or a group cannot
        use it.
    BackendError
        As `pysolvers.RedBlackSOR`, and if the library of directives is not there.

    Examples
    --------
    >>> from pysolvers.papers import survey2014
    >>> options = {"extent": ((0, 1), (0, 1)), "boundary": 1.0}
    >>> one, other = (
    ...     survey2014.RedBlackSOR((9, 9), variant=variant, **options).iterate(5)
    ...     for variant in ("naive", "split")
    ... )
    >>> bool((one.u == other.u).all())
    True
    """

    _SETTINGS: ClassVar[Any] = PlateSettings
    _STATE: ClassVar[Any] = SavedPlate

    def __init__(
        self,
        *args: Any,
        variant: Variant = "auto",
        coefficients: Coefficients = "tables",
        **options: Any,
    ) -> None:
        self._experiment = {"variant": variant, "coefficients": coefficients}
        super().__init__(*args, **options)

    def _check_experiment(self) -> None:
        variant = self._settings.variant
        known = self._backend.LAPLACE_VARIANTS
        check_choice("variant", variant, dict.fromkeys((*known, *directive.MODELS), 0))
        rule = f"with a group variant must be none of {_INTERLEAVED}"
        require(self._group is None or not self._settings.is_interleaved, rule, variant)
        coefficients = self._settings.coefficients
        rule = "with a group coefficients must be 'tables'"
        require(self._group is None or coefficients == "tables", rule, coefficients)
        if variant in directive.MODELS:
            rule = f"periodic axes need variant 'auto', 'naive' or 'split', not {variant!r}"
            require(not self._periodic, rule, "periodic")
            directive.load(variant)

    def _call(self, count: int, stop: Stop, made: NDArray[np.int64]) -> tuple[int, Any]:
        if self._settings.variant not in directive.MODELS:
            return super()._call(count, stop, made)
        kernels = directive.load(self._settings.variant)
        criterion, norm, every, tolerance, history, *_ = stop
        state, grid = self._state, self._grid
        source = state.operand("source") if self._sourced else None
        status, end, measures, measure = kernels.laplace_iterate(
            self._backend.DTYPES[self._settings.dtype],
            (grid.nx, grid.ny, grid.pitch),
            (*self._a, tolerance),
            (criterion, norm),
            every,
            (state.operand("u"), state.operand("diag"), state.operand("gain"), source, history),
            count,
            made,
        )
        return status, {
            "iterations": int(made[0]),
            "measures": measures,
            "measure": measure,
            "end": ("count", "tolerance", "not finite")[end],
            "threads": 0,
            "kernel": kernels.description,
        }


@dataclass(frozen=True, kw_only=True)
class CavitySettings(StaggeredSettings):
    """Parameters of `StaggeredCavity` of this module."""

    kernels: Kernels

    def _check(self) -> None:
        super()._check()
        require(
            not self.is_on_device or self.kernels == "auto",
            f"kernels must be 'auto' with device={self.device!r}",
            self.kernels,
        )
        if self.has_directives:
            require(
                self.pressure == "sor",
                f"pressure must be 'sor' with kernels={self.kernels!r}",
                self.pressure,
            )
            directive.load(self.kernels)
        require(
            self.kernels != "serial" or self.threads in (None, 1),
            "threads must be None or 1 with kernels='serial'",
            self.threads,
        )

    @property
    def has_directives(self) -> bool:
        """Whether the steps are made by kernels with compiler directives."""
        return self.kernels in directive.MODELS

    @property
    def call_threads(self) -> int:
        if self.kernels == "serial":
            return 1
        if self.kernels == "auto":
            return super().call_threads
        return self.threads or 0


@dataclass(frozen=True, kw_only=True)
class SavedCavity(StaggeredState):
    """What `save` writes of `StaggeredCavity` of this module."""

    settings: CavitySettings

    _KIND = "survey2014 staggered cavity state"


class StaggeredCavity(flow.StaggeredCavity):
    """`pysolvers.StaggeredCavity` with the kernels of the survey.

    Parameters
    ----------
    *args, **options
        As in `pysolvers.StaggeredCavity`.
    kernels : {'auto', 'serial', 'openmp', 'directive', 'directive-openmp'}, default: 'auto'
        ``'auto'`` selects the number of threads and makes several SOR iterations in one pass over
        the field. ``'serial'`` runs on one thread and stores both colours of SOR in one array.
        ``'openmp'`` divides the rows of each loop among threads. The three give the same bits.
        ``'directive'`` and ``'directive-openmp'`` are loops with OpenACC and OpenMP directives, for
        ``pressure='sor'`` only; they run on a device if there is one, with fields that are copied
        there every 20 steps, and on the host otherwise. Their libraries are optional; see
        ``tools/build_directive.py``.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.StaggeredCavity`, and if other options contradict the kernels.
    BackendError
        As `pysolvers.StaggeredCavity`, and if the library of directives is not there.

    Examples
    --------
    >>> from pysolvers.papers import survey2014
    >>> cavity = survey2014.StaggeredCavity(100, 16, pressure="sor", kernels="serial")
    >>> cavity.step(3).result().threads
    1
    """

    _SETTINGS: ClassVar[Any] = CavitySettings
    _STATE: ClassVar[Any] = SavedCavity

    def __init__(self, *args: Any, kernels: Kernels = "auto", **options: Any) -> None:
        self._experiment = {"kernels": kernels}
        super().__init__(*args, **options)

    def _checked_force(self, given: Any) -> Any:
        s = self._settings
        rule = f"force must be None with kernels={s.kernels!r}: use kernels='auto'"
        require(given is None or not s.has_directives, rule, given)
        return super()._checked_force(given)

    def _call(self, count: int, stages: tuple[str, ...], until: float, steady: float) -> str:
        s = self._settings
        if not s.has_directives:
            return super()._call(count, stages, until, steady)
        kernels = directive.load(s.kernels)
        n, backend = s.n, s.backend
        names = ("u", "v", "p", "f", "g", "clock")
        status, end, seconds = kernels.staggered_step(
            s.numbers(until, steady, None),
            s.max_sweeps,
            {name: self._state.operand(name) for name in names},
            np.empty((2, n + 2, n + 2)),
            count,
            np.zeros(1, np.int64),
        )
        raise_for_status(status, backend.STATUS, "StaggeredCavity")
        for name, time in zip(backend.STAGGERED_STAGES, seconds, strict=True):
            self._seconds[name] += time
        self._run_by = RunBy(kernels.description)
        return next(name for name, code in backend.STAGGERED_ENDS.items() if code == end)
