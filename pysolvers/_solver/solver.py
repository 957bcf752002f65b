"""The base of all solvers that make steps or iterations: loops, results, files, copies.

A solver is settings, fields, and one call: `_advance`, which makes steps or iterations in one call
of a backend. Everything else is inherited from `Iteration` or, for a solution that changes with
time, from `TimeStepping`. A solver defines

    _RESULT, _STATE       dataclasses: what `result` returns and what `save` writes
    _advance(count)       make at most `count` steps; return whether the solution is in bounds
    _facts()              the fields of the result that the base does not know
    _kept()               the fields of the state that the base does not know
    _resume(state)        go on from a state
    _restart(fields)      begin again from values of fields that can be set

and, as it needs them, what else is not final here: `_measure`, `_is_in_bounds`, `_out_of_bounds`,
`_text`, `_from_saved`. Each has a default, or its docstring says when it is called.

Options that exist for the experiments of a paper are no parameters of a solver. Its settings, of
the class `_SETTINGS`, have them as constants of the class; a class of `pysolvers.papers` has
settings in which they are fields, and gives their values in `_experiment`.

Every argument of a constructor is an attribute: those that are settings by themselves, and those
that are data, functions and arrays, if the constructor puts them into `_data_given`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._checks import index, real_array, require_all_finite, require_callable
from .._errors import ConvergenceError
from .._progress import IterationBar
from .._repr import ShownAsText, residual_text
from .._runtime.fp_mode import call_in_default_fp_mode, in_default_fp_mode
from ..distributed import Group, Slab
from ..distributed._group import agreement_of
from .arguments import add_arguments
from .counter import Counter
from .exclusive import Exclusive, exclusive, reading
from .files import Saved, naming
from .result import StopReason
from .schema import RunBy, Seconds, number
from .settings import Settings
from .stall import Stall, checked_patience

R = TypeVar("R")

_TOLERANCE = number(least=0)


class Goal(NamedTuple):
    """What ends a call of `_advance` before its last step, if the backend can.

    Parameters
    ----------
    tol : float
        Value of the measured quantity; -1 for none.
    until : float
        Time.
    """

    tol: float = -1.0
    until: float = inf


NO_GOAL = Goal()


@dataclass(frozen=True, kw_only=True)
class State(Saved):
    """What `save` writes of every solver; a subclass adds its own fields.

    Parameters
    ----------
    settings : Settings
        The parameters; a subclass gives their class.
    made : int
        Number of steps or iterations.
    seconds : dict of str to float
        Times of the stages.
    run_by : RunBy
        Of the last call of the backend.
    """

    settings: Any
    made: int
    seconds: Seconds
    run_by: RunBy


class Solver(Exclusive, ShownAsText, ABC, Generic[R]):
    """Settings, fields, and steps or iterations.

    Parameters
    ----------
    settings : Settings
        The parameters.
    stages : iterable of str
        Names of the stages whose times are measured.
    """

    _SETTINGS: ClassVar[Any]
    _RESULT: ClassVar[Any]
    _STATE: ClassVar[Any]
    _UNIT: ClassVar[str] = "step"
    _quantity: str = "residual"  # what `_measure` returns
    _group: Group | None = None
    _experiment: Mapping[str, Any] = MappingProxyType({})  # values of `_SETTINGS` of a paper
    _data_given: Mapping[str, Any] = MappingProxyType({})  # arguments that are no settings

    device: str | None  # as all arguments: see `add_arguments`
    threads: int | None

    def __init_subclass__(cls, *, is_base: bool = False) -> None:
        """Make the arguments of the constructor attributes; a base has those of its subclasses."""
        super().__init_subclass__()
        if not is_base:
            add_arguments(cls)

    def __init__(self, settings: Settings, stages: Any = ()) -> None:
        self._settings: Any = settings
        self._count = Counter()
        self._examined = 0  # number of steps at the last check of the bounds
        self._goal = NO_GOAL
        self._seconds = dict.fromkeys(stages, 0.0)
        self._run_by = RunBy()

    @abstractmethod
    def _advance(self, count: int) -> bool:
        """Make at most `count` steps, at least one, in one call of the backend.

        The backend writes their number to an array of `_count`. The call may end before the last
        one, for example where the quantity or the time of `_goal` is reached. Return whether the
        solution is in bounds: finite, or as the solver defines it.
        """

    @abstractmethod
    def _facts(self) -> dict[str, Any]:
        """Return the fields of the result, apart from those of `result`."""

    @abstractmethod
    def _kept(self) -> dict[str, Any] | None:
        """Return the fields of the state, apart from those of `State`; None to write no file."""

    @abstractmethod
    def _resume(self, state: Any) -> None:
        """Go on from a state that was read."""

    def _restart(self, **fields: NDArray[Any]) -> None:
        """Begin again at the present time from values of fields, by name; collective.

        The number of steps goes on. What was measured or predicted from earlier steps is forgotten.
        """
        raise NotImplementedError

    @classmethod
    def _from_saved(cls, state: Any, **data: Any) -> Self:
        """Return a solver with the settings of a state that was read, but for other arguments."""
        return cls(**state.settings.facts() | data)

    def _check_experiment(self) -> None:
        """Raise unless the options of a paper fit the data; a constructor with data calls it."""

    def _is_in_bounds(self) -> bool:
        """Return whether the current solution is in bounds, where `_advance` could not say it."""
        return True

    def _out_of_bounds(self) -> ConvergenceError:
        """Return the error of a solution that is not in bounds."""
        text = f"{self!r} is not finite after {self._UNIT} {self._made}"
        return ConvergenceError(text, self.result("diverged"))

    def _measure(self, tol: float, *, is_end: bool) -> float:
        """Return the quantity that decides: `solve` ends as soon as it is at most `tol`.

        `is_end` says whether these are the last steps of the call.
        """
        raise NotImplementedError

    def _patience(self, most: int) -> int:
        """Return the steps without progress after which something is wrong, of at most `most`."""
        del most
        return 0

    @property
    def _can_stall(self) -> bool:
        """Whether `_measure` falls as long as the iteration makes progress."""
        return True

    def _advice(self, tol: float, *, is_stalled: bool) -> str:
        """Return what helps an iteration that did not converge: the end of a message."""
        del tol
        return ": take a larger tol or a larger patience" if is_stalled else ""

    def _text(self) -> str:
        """Return the parameters that `repr` shows."""
        return ""

    @property
    def _made(self) -> int:
        """Number of steps or iterations so far."""
        return self._count.value

    @property
    def _shows_progress(self) -> bool:
        """Whether this process shows the progress of a run."""
        return self._group is None or self._group.rank == 0

    @property
    def settings(self) -> Any:
        """The parameters of the solver, each by its name: a frozen dataclass."""
        return self._settings

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the fields."""
        return np.dtype(getattr(self._settings, "dtype", np.float64))

    @property
    def seconds(self) -> dict[str, float]:
        """Time spent in each stage so far, as in the result."""
        return dict(self._seconds)

    @reading
    @in_default_fp_mode
    def result(self, stop_reason: StopReason = "running") -> R:
        """Return a copy of the current state as a result.

        Parameters
        ----------
        stop_reason : str, default: 'running'
            Reason of the end of the run, for the result.

        Returns
        -------
        result
            Copies of the fields, with history and times.

        Raises
        ------
        RuntimeError
            If another thread is in a call that changes the solver.
        """
        facts = {
            "stop_reason": stop_reason,
            "seconds": self.seconds,
            "backend": self._settings.backend.NAME,
            "kernel": self._run_by.kernel,
            "threads": self._run_by.threads,
        }
        made: R = self._RESULT(**facts | self._facts())
        return made

    @reading
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, from which `load` continues with the same bits.

        Parameters
        ----------
        path : path-like
            The npz file; its name is not changed. It is written completely or not at all. It
            does not contain data of the problem that can be functions: `load` takes them again.
            With a group the first rank writes the whole state.

        Raises
        ------
        OSError
            If the file cannot be written.
        RuntimeError
            If another thread is in a call that changes the solver.
        """
        kept = self._kept()
        common: dict[str, Any] = {
            "settings": self._settings,
            "made": self._made,
            "seconds": self.seconds,
            "run_by": self._run_by,
        }
        with agreement_of(self._group, f"{type(self).__name__}.save"):
            if kept is not None:
                self._STATE(**common | kept)._write(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a state that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.

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
        return cls._load(path, "header")

    @classmethod
    def _load(cls, path: str | os.PathLike[str], part: str, **data: Any) -> Self:
        """Do what `load` does; `part` of the file has what is wrong with arguments and `data`."""
        state = cls._STATE._read(path)
        with naming(path, part):
            solver = cls._from_saved(state, **data)
            solver._count = Counter(state.made)
            solver._seconds, solver._run_by = dict(state.seconds), state.run_by
            solver._resume(state)
        if "initial" in solver._data_given:  # the fields of the file took its place
            solver._data_given = {**solver._data_given, "initial": None}
        return solver

    def __getstate__(self) -> Any:
        facts = super().__getstate__()
        facts["_data_given"] = self._data_of_a_copy()
        return facts

    def _data_of_a_copy(self) -> dict[str, Any]:
        """Return `_data_given` for pickle, without a function that is not called again."""
        found = dict(self._data_given)
        if callable(found.get("initial")):
            found["initial"] = None
        return found

    def _add_seconds(self, found: Mapping[str, float]) -> None:
        """Add times of stages to those so far."""
        seconds = self._seconds
        for name, time in found.items():
            seconds[name] = seconds.get(name, 0.0) + time

    def _set_field(self, name: str, values: Any) -> None:
        """Set a field to values of its shape; with a group to those of this rank, on all ranks."""
        with agreement_of(self._group, f"{type(self).__name__}.{name}"):
            found, shape = real_array(name, values), np.shape(getattr(self, name))
            if found.shape != shape:
                raise ValueError(f"{name} must have the shape {shape}, got shape {found.shape}")
            with np.errstate(over="ignore"):
                found = found.astype(self.dtype)  # a copy
            require_all_finite(name, found)
        call_in_default_fp_mode(self._restart, **{name: found})
        self._examined = self._made

    def _is_computed(self, name: str, others: str) -> AttributeError:
        """Return the error of a field that is set, but is computed from other ones."""
        kind = type(self).__name__
        return AttributeError(f"{name} of a {kind} is computed: set {others} instead")

    def _make(self, end: int) -> None:
        """Make steps up to step `end`."""
        self._check_last_call()
        while self._examined < end:
            self._examine(call_in_default_fp_mode(self._advance, end - self._examined))

    def _make_some(self, count: int) -> None:
        """Make at most `count` steps, in one call of the backend."""
        self._check_last_call()
        self._examine(call_in_default_fp_mode(self._advance, count))

    def _check_last_call(self) -> None:
        """Check the bounds if an interrupt came before the last check."""
        if self._examined != self._made:
            self._examine(call_in_default_fp_mode(self._is_in_bounds))

    def _examine(self, is_in_bounds: bool) -> None:
        """Record that the solution was checked, and raise if it is not in bounds."""
        self._examined = self._made
        if not is_in_bounds:
            raise self._out_of_bounds()

    def _approach(self, stop: int) -> None:
        """Make steps up to the next measurement, at most to step `stop`."""
        self._make_some(stop - self._made)

    def _solve(
        self,
        tol: float,
        most: int,
        patience: int | None,
        callback: Callable[[Self], Any] | None,
        interval: int,
        progress: bool | None,
        origin: int = 0,
    ) -> R:
        """Make at most `most` steps until `_measure` is at most `tol`; see `solve`.

        `callback` is called after steps whose number minus `origin` is a multiple of `interval`.
        """
        tol = _TOLERANCE("tol", tol)
        require_callable("callback", callback)
        interval = index("interval", interval, 1)
        end = self._made + index("max_iterations", most, 1)
        stall = Stall(checked_patience(patience, self._patience(most)), self._made)
        self._goal = Goal(tol)
        self._check_last_call()
        size = self._measure(tol, is_end=True)
        with self._bar(progress, self._quantity, most, tol) as bar:
            while not size <= tol and self._made < end:
                made = self._made
                stop = made + interval - (made - origin) % interval
                self._approach(end if callback is None else min(stop, end))
                size = self._measure(tol, is_end=self._made == end)
                bar.update(self._made - made, size)
                is_last = size <= tol or self._made == end
                is_called = callback is not None and (self._made == stop or is_last)
                if is_called and callback(self) and not is_last:  # type: ignore[misc]
                    return self.result("callback")
                if not size <= tol and self._can_stall and stall.is_over(self._made, size):
                    reason = f"{stall.text(size, self._quantity)}"
                    raise self._failed(reason + self._advice(tol, is_stalled=True), "stalled")
        if not size <= tol:
            reason = (
                f"the {self._quantity} {size:.1e} is above the tolerance {tol:g} after "
                f"{most} {self._UNIT}s"
            )
            raise self._failed(reason + self._advice(tol, is_stalled=False), "max_iterations")
        return self.result("converged")

    def _failed(self, reason: str, stop_reason: StopReason) -> ConvergenceError:
        """Return the error of an iteration that did not converge."""
        text = f"{self!r}, did not converge: {reason}"
        return ConvergenceError(text, self.result(stop_reason))

    def _bar(
        self, progress: bool | None, quantity: str, total: int | None, goal: float = 0.0
    ) -> IterationBar:
        """Return the bar of a run."""
        wanted = progress if self._shows_progress else False
        return IterationBar(wanted, type(self).__name__, quantity, total, goal)


class OverRanks(Exclusive):
    """A solver whose `u` can be split over the ranks of a group."""

    group: Group | None
    split: Slab | None

    @abstractmethod
    def _gathered(self) -> NDArray[Any] | None:
        """Return `u` at all nodes on rank 0, None on the other ranks; collective."""

    @reading
    def gather(self) -> NDArray[Any] | None:
        """Return `u` at all nodes; with a group on rank 0, None on the other ranks.

        With a group, all ranks call this function.

        Raises
        ------
        RuntimeError
            If another thread is in a call that changes the solver.
        """
        return self._gathered()


class Iteration(Solver[R], is_base=True):
    """A solver of a steady problem, which makes iterations."""

    _UNIT = "iteration"

    @property
    def iterations(self) -> int:
        """Number of iterations since the start."""
        return self._made

    @property
    @abstractmethod
    def residual(self) -> float:
        """Last measured value; infinite before the first measurement."""

    def __repr__(self) -> str:
        name = f"{type(self).__name__}({self._text()})"
        return f"{name}: {self.iterations} iterations{residual_text(self.residual)}"

    @exclusive
    def iterate(self, count: int = 1) -> Self:
        """Make `count` iterations; several calls give the same bits as one call.

        Parameters
        ----------
        count : int, default: 1
            Number of iterations; at least 0.

        Returns
        -------
        self
            This object.

        Raises
        ------
        ConvergenceError
            If the iteration diverges. The attribute ``result`` of the error contains the state.
        RuntimeError
            If another call is in progress that changes the solver: of another thread, or of the
            callback that calls this method.
        """
        count = index("count", count, 0)
        self._goal = NO_GOAL
        self._begin(count)
        self._make(self._made + count)
        return self

    def _begin(self, count: int) -> None:
        """Prepare for a call of `iterate`."""

    step = iterate
