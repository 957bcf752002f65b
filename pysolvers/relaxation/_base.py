"""Base class of the red-black relaxations: stop test, history, rows of a group."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, nextafter
from time import perf_counter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._checks import index
from .._errors import ConvergenceError, raise_for_status
from .._options import check_choice
from .._runtime.fields import count_of_a_call, make_fields
from .._solver.exclusive import exclusive
from .._solver.files import SavedFile, is_rising
from .._solver.schema import Field, Member, Real, RunBy, number
from .._solver.settings import Settings
from .._solver.solver import Iteration, OverRanks, State
from ..distributed import Group, Slab
from ._colours import ColourGrid
from ._result import STAGES, RelaxationHistory, RelaxationResult
from ._rows import WholeRows

_CHECKS = 1024  # checks of the stop test in one call of the backend
_EXPLOSION = 1e10  # growth of what is measured that means divergence

_QUANTITIES = {"residual": "residual", "change": "change", "solution": "value"}

Criterion = Literal["residual", "change", "solution"]
Norm = Literal["max", "l2"]
Stop = tuple[int, int, int, float, NDArray[np.float64] | None, int, int]
Omega = Annotated[float, number(above=0, below=2)]


@dataclass(frozen=True, kw_only=True)
class RelaxationSettings(Settings):
    """What all relaxations have."""

    dtype: Real


@dataclass(frozen=True, kw_only=True)
class RelaxationState(State):
    """What `save` writes: the field with its frame, and what was measured.

    A subclass adds the data of the problem.
    """

    settings: RelaxationSettings
    criterion: Criterion
    norm: Norm
    state: Field
    measures: Annotated[NDArray[np.float64], Member((None, 2))]

    _INSIDE: ClassVar[tuple[str, ...]] = ()  # members that broadcast to the interior

    @property
    def interior(self) -> tuple[int, int]:
        """Number of nodes inside of the frame along y and x."""
        raise NotImplementedError

    @property
    def unknown(self) -> tuple[int, int]:
        """Number of nodes along y and x at which u is unknown."""
        return self.interior

    def _check(self, saved: SavedFile) -> None:
        ny, nx = self.interior
        saved.require_stages(self.seconds, STAGES)
        saved.require_array("state", self.state, (ny + 2, nx + 2), np.dtype(self.settings.dtype))
        saved.require(
            is_rising(self.measures[:, 0], self.made),
            "member 'measures'",
            "the first column must hold rising integers up to the number of iterations",
        )
        for name in self._INSIDE:
            shape = getattr(self, name).shape
            fits = all(size in (1, n) for size, n in zip(shape, self.unknown, strict=True))
            rule = f"it must broadcast to {self.unknown}, got shape {shape}"
            saved.require(fits, f"member {name!r}", rule)


class _Call(NamedTuple):
    """A call of the backend, as far as the meaning of what it measures depends on it.

    Attributes
    ----------
    known : int
        Number of measures before the call.
    before : int
        Number of iterations before the call.
    length, every : int
        Iterations of the call, and between two measurements.
    scale : float
        Factor of the measured values.
    """

    known: int
    before: int
    length: int
    every: int
    scale: float


class Relaxation(OverRanks, Iteration[RelaxationResult], is_base=True):
    """Iterations of a red-black relaxation; several calls give the same bits as one call.

    Parameters
    ----------
    settings : RelaxationSettings
        The parameters.
    grid : ColourGrid
        Storage order of the nodes.
    fields : mapping of str to (shape, dtype)
        Operands of the backend in addition to ``u`` and ``history``.
    rows : WholeRows
        Those of this process.
    """

    _RESULT = RelaxationResult
    _NORM: Norm  # default norm

    def __init__(
        self,
        settings: RelaxationSettings,
        grid: ColourGrid,
        fields: Mapping[str, tuple[tuple[int, ...], Any]],
        rows: WholeRows,
    ) -> None:
        super().__init__(settings, STAGES)
        self._grid, self._dtype = grid, np.dtype(settings.dtype)
        self._rows, self._group = rows, rows.group
        self._threads = settings.call_threads
        layout = {
            "u": (grid.shape, self._dtype),
            "history": ((_CHECKS,), np.dtype(float)),
            **fields,
        }
        self._state = make_fields(layout, settings.device, type(self).__name__)
        self._periodic = 0  # bits of the periodic axes: 1 is x, 2 is y
        self._criterion: Criterion = "residual"
        self._norm, self._every = self._NORM, 1
        self._measures: list[tuple[int, float]] = []
        self._since = 0  # number of measures before the last call of `iterate` or `solve`
        self._ending = "count"  # why the last call of the backend ended
        self._known = 0  # number of measures before it
        self._last_call: _Call | None = None

    @abstractmethod
    def _call(self, count: int, stop: Stop, made: NDArray[np.int64]) -> tuple[int, Any]:
        """Iterate on the backend; return status and report."""

    @abstractmethod
    def _describe(self) -> dict[str, Any]:
        """Return title, relaxation and method of a result."""

    @abstractmethod
    def _problem(self) -> dict[str, Any]:
        """Return the fields of the state that hold the problem."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Shape of the solution."""

    @property
    @abstractmethod
    def u(self) -> NDArray[Any]:
        """The solution, with a group the rows of this rank: a new array."""

    @property
    @abstractmethod
    def x(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along x."""

    @property
    @abstractmethod
    def y(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along y, with a group those of this rank."""

    @property
    def _backend(self) -> Any:
        """The module with the kernels: of the CPU or of the device."""
        return self._settings.backend

    @property
    def _expected_patience(self) -> int:
        """Iterations without progress after which something is wrong; 0 if it is not known."""
        return 0

    @property
    def _remedy(self) -> str:
        """What else helps an iteration that did not converge: the end of a message."""
        return ""

    def _scale(self, criterion: str, norm: str) -> float:
        """Return the factor by which the values measured by the backend are multiplied."""
        del criterion, norm
        return 1.0

    @property
    def residual(self) -> float:
        """Last measured value; infinite before the first measurement.

        It is measured by the criterion and norm of the last `solve`. By default it is the norm
        of the residuals of the nodes immediately before their relaxation.
        """
        self._take_measures()
        return self._measures[-1][1] if self._measures else inf

    @property
    def _place(self) -> tuple[slice, ...]:
        """Where `u` lies in the nodes that are held here, with the frame."""
        return (self._rows.own,)

    def _restart(self, **fields: NDArray[Any]) -> None:
        field = self._grid.unpack(self._state.get("u"))
        values = field.copy()
        values[self._place] = fields["u"]
        field[1:-1, 1:-1] = values[1:-1, 1:-1]
        self._set_given(field)
        self._grid.wrap(field, self._periodic)
        self._state.set("u", self._grid.pack(field, self._dtype))
        self._rows.refresh()
        self._measures.clear()
        self._last_call = None

    def _set_given(self, values: NDArray[Any]) -> None:
        """Give nodes with values that the problem prescribes these values, in place."""

    def _text(self) -> str:
        return f"{self.shape}, dtype={self._dtype.name}"

    def _begin(self, count: int) -> None:
        self._every, self._since = max(count, 1), len(self._measures)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        group: Group | None = None,
        split: Slab | None = None,
    ) -> Self:
        """Read a state that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.
        group : pysolvers.distributed.Group, optional
            As in the constructor. A state can be continued by any number of ranks; every rank
            reads the file.
        split : pysolvers.distributed.Slab, optional
            As in the constructor.

        Returns
        -------
        solver
            A solver in the saved state, with its history.

        Raises
        ------
        ValueError
            If the file is not a state of this class, is damaged or was changed, or has another
            format; the message names the file and the error.
        """
        return cls._load(path, "header or arguments", group=group, split=split)

    @exclusive
    def solve(
        self,
        tol: float = 1e-8,
        *,
        norm: Norm | None = None,
        criterion: Criterion = "residual",
        max_iterations: int = 100_000,
        callback: Callable[[Self], Any] | None = None,
        check_every: int = 1,
        patience: int | None = None,
        progress: bool | None = None,
    ) -> RelaxationResult:
        """Iterate until the measured value is at most `tol`.

        The stop test is evaluated during the iterations, also on a device, so that the
        iteration stops at the first measured iteration that satisfies it.

        Parameters
        ----------
        tol : float, default: 1e-8
            Upper bound of the measured value; not negative.
        norm : {'max', 'l2'}, optional
            Largest absolute value or root mean square over the nodes; the default depends on
            the class.
        criterion : {'residual', 'change', 'solution'}, default: 'residual'
            Value measured at each node: its residual immediately before its relaxation, its
            change in the iteration, or its new value.
        max_iterations : int, default: 100000
            Largest number of iterations of this call.
        callback : callable, optional
            Called with this object after each measured iteration, of which the last one is one; a
            true return value ends the iteration.
        check_every : int, default: 1
            Number of iterations between two measurements. The last iteration of a call is
            always measured.
        patience : int, optional
            Largest number of iterations in which the smallest measured value does not fall by
            10 %; then the iteration ends with an error. By default the larger of 5000 and the
            square of the longer side in nodes; `RedBlackSOR` waits at least 12/(1 - r) iterations,
            with the factor r by which it expects the error to fall in an iteration. It does not
            apply to the criterion ``'solution'``.
        progress : bool, optional
            Whether to show a progress bar with the time left. By default it is shown in a
            terminal and in a notebook after a second, if tqdm is installed.

        Returns
        -------
        result : RelaxationResult
            The converged state, or the state at which `callback` ended the iteration.

        Raises
        ------
        TypeError, ValueError
            If an argument is out of its range.
        ConvergenceError
            If the tolerance was not reached, the measured value stalled, or the iteration
            diverged. The state is not reset; the attribute ``result`` of the error contains a
            copy and the history.
        RuntimeError
            As in `iterate`.
        """
        every = index("check_every", check_every, 1)
        self._measure_by(criterion, norm)
        self._every, self._since = every, len(self._measures)
        self._ending, self._known = "count", self._since
        origin = self.iterations
        return self._solve(tol, max_iterations, patience, callback, every, progress, origin)

    @property
    def _nodes(self) -> tuple[int, int]:
        """Number of nodes along x and y: of the whole grid, so that all ranks do the same."""
        return self._grid.nx, self._rows.interior

    def _approach(self, stop: int) -> None:
        nx, ny = self._nodes
        checks = count_of_a_call(_CHECKS, nx * ny * self._every, self._settings.device)
        self._make_some(min(stop - self._made, self._every * checks))

    def _measure(self, tol: float, *, is_end: bool) -> float:
        del is_end
        if self._ending == "tolerance":  # by the backend, which compares before it scales
            return min(self.residual, tol)
        smallest = min((measure for _, measure in self._measures[self._known :]), default=inf)
        return max(smallest, nextafter(tol, inf))

    def _patience(self, most: int) -> int:
        del most
        return max(max(self._nodes) ** 2, self._expected_patience)

    @property
    def _can_stall(self) -> bool:
        return self._criterion != "solution"

    def _advice(self, tol: float, *, is_stalled: bool) -> str:
        if not is_stalled:
            return self._remedy
        return (
            f": the tolerance {tol:g} can be below the rounding errors; take a larger one, or a "
            f"larger patience{self._remedy}"
        )

    def _facts(self) -> dict[str, Any]:
        self._take_measures()
        table = self._table
        return {
            **self._describe(),
            "u": self.u,
            "x": self.x,
            "y": self.y,
            "iterations": self.iterations,
            "residual": self.residual,
            "criterion": self._criterion,
            "norm": self._norm,
            "history": RelaxationHistory(table[:, 0].astype(np.int64), table[:, 1].copy()),
            "unknowns": self._unknowns,
            "exchange": self._rows.exchange,
        }

    @property
    def _unknowns(self) -> int:
        """Number of nodes that are relaxed here."""
        return self._grid.nx * self._grid.ny

    @property
    def _table(self) -> NDArray[np.float64]:
        """What was measured: rows of the number of an iteration and a value."""
        return np.array(self._measures, float).reshape(-1, 2)

    def _kept(self) -> dict[str, Any] | None:
        self._take_measures()
        whole = self._rows.gather(self._grid.unpack(self._state.get("u"))[self._rows.own])
        if whole is None:  # on all ranks but the first one
            return None
        return {
            **self._problem(),
            "criterion": self._criterion,
            "norm": self._norm,
            "state": whole,
            "measures": self._table,
        }

    def _resume(self, state: Any) -> None:
        self._measure_by(state.criterion, state.norm)
        self._state.set("u", self._grid.pack(state.state[self._rows.held], self._dtype))
        self._measures = [(int(n), measure) for n, measure in state.measures.tolist()]

    def _measure_by(self, criterion: Criterion, norm: Norm | None) -> None:
        """Set criterion and norm; a change clears the history."""
        norm = self._NORM if norm is None else norm
        check_choice("criterion", criterion, self._backend.CRITERIA)
        check_choice("norm", norm, self._backend.NORMS)
        self._take_measures()
        self._last_call = None
        if (criterion, norm) != (self._criterion, self._norm):
            self._measures.clear()
        self._criterion, self._norm = criterion, norm
        self._quantity = _QUANTITIES[criterion]

    def _advance(self, count: int) -> bool:
        self._take_measures()
        measures = self._measures
        self._known = len(measures)
        start = perf_counter()
        try:
            self._ending = ending = self._rows.iterate(self, count)
        finally:
            self._seconds["iterations"] += perf_counter() - start
        if ending != "count" or len(measures) < self._since + 2:
            return ending != "not finite"
        first = measures[self._since][1] or inf
        return not measures[-1][1] > _EXPLOSION * first

    def _stop_test(self) -> tuple[int, float, float, tuple[Criterion, Norm], tuple[int, int]]:
        """Return iterations between measurements, tolerance, scale, criterion and norm, codes."""
        backend, scale = self._backend, self._scale(self._criterion, self._norm)
        codes = backend.CRITERIA[self._criterion], backend.NORMS[self._norm]
        return self._every, self._goal.tol, scale, (self._criterion, self._norm), codes

    def _call_backend(self, count: int, stop: Stop) -> dict[str, Any]:
        """Iterate in one call of the backend; return its report."""
        status, report = self._call(count, stop, self._count.begin())
        raise_for_status(status, self._backend.STATUS, type(self).__name__)
        self._run_by = RunBy(report["kernel"], report["threads"])
        found: dict[str, Any] = report
        return found

    def _note(self, measure: float) -> None:
        """Add a measured value to the history."""
        self._measures.append((self.iterations, measure))

    def _iterate_alone(self, count: int) -> str:
        """Iterate until the stop test is satisfied; return the backend's reason for the end."""
        every, tolerance, scale, _, codes = self._stop_test()
        stop = (*codes, every, tolerance / scale, self._state.operand("history"), 0, 0)
        self._last_call = _Call(len(self._measures), self.iterations, count, every, scale)
        try:
            return str(self._call_backend(count, stop)["end"])
        finally:
            self._take_measures()
            self._last_call = None

    def _take_measures(self) -> None:
        """Add what the last call has measured to the history, once.

        After an interrupt of the call there is no report, but the measured values are valid; after
        an interrupt here the next call, also of `result` and `save`, adds them.
        """
        last = self._last_call
        if last is None:
            return
        before, every = last.before, last.every
        made = self.iterations - before
        measured = made // every + (made == last.length and made % every != 0)
        values = self._state.get("history")[:measured].tolist()
        numbers = [min(before + n * every, before + made) for n in range(1, measured + 1)]
        found = [(n, value * last.scale) for n, value in zip(numbers, values, strict=True)]
        self._measures[last.known :] = found

    def _gathered(self) -> NDArray[Any] | None:
        return self._rows.gather(self.u)

    def _out_of_bounds(self) -> ConvergenceError:
        text = f"{self!r}, did not converge: the measured value grew to {self.residual:.1e}"
        text += self._remedy
        return ConvergenceError(text, self.result("diverged"))
