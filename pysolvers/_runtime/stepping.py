"""Time stepping, shared by the solvers of time-dependent problems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import isclose
from typing import Any, Generic, Self, TypeVar

from numpy.typing import ArrayLike

from .._checks import index, require, require_callable, require_finite
from .._clock import Clock
from .._counter import Counter
from .._errors import ConvergenceError
from .._other_calls import explain_run
from .._progress import IterationBar
from .._shown import ShownAsText
from .exclusive import Exclusive, exclusive
from .fp_mode import call_in_default_fp_mode

__all__ = ["Stepper"]

Result = TypeVar("Result")


class Stepper(Exclusive, ShownAsText, ABC, Generic[Result]):
    """A solution that advances in time by steps of a length that can be set.

    Parameters
    ----------
    dt : float
        Length of the steps.
    """

    def __init__(self, dt: float) -> None:
        self._count = Counter()
        self._clock = Clock(dt)
        self._next_dt = dt
        self._examined = 0  # number of steps at the last check of the bounds

    @property
    def time(self) -> float:
        """Time of the solution."""
        return self._clock.at(self.steps)

    @property
    def steps(self) -> int:
        """Number of steps since time 0."""
        return self._count.value

    @property
    def dt(self) -> float:
        """Length of the next step; can be set between steps."""
        return self._next_dt

    @dt.setter
    def dt(self, value: float) -> None:
        require_finite("dt", value)
        require(value > 0, "dt must be positive", value)
        self._check_length(float(value))
        self._next_dt = float(value)

    @property
    def last_dt(self) -> float:
        """Length of the last step; before the first step `dt`."""
        return self._clock.last(self.steps) if self.steps else self.dt

    @exclusive
    def step(self, count: int = 1) -> Self:
        """Make `count` steps; several calls give the same bits as one call.

        Parameters
        ----------
        count : int, default: 1
            Number of steps; at least 0.

        Returns
        -------
        self
            This object.

        Raises
        ------
        ConvergenceError
            If the solution is not finite, or exceeds the bound of the solver. The solver keeps
            the state after this step; the attribute ``result`` of the error contains it.
        ValueError
            If data that change with time are not finite at a later time. The solver keeps
            the state before the step.
        RuntimeError
            If another call is in progress that changes the solver: of another thread, or of the
            function or the callback that calls this method.
        """
        self._step_to(self.steps + index("count", count, 0), self.dt)
        return self

    @explain_run
    @exclusive
    def run(
        self,
        until: float,
        *,
        callback: Callable[[Self], Any] | None = None,
        interval: int = 1,
        progress: bool | None = None,
    ) -> Result:
        """Step until a time is reached.

        Parameters
        ----------
        until : float
            The end time, not before `time`. If the last step would end later, it is shortened to
            end at this time; ``last_dt`` of the result is its length.
        callback : callable, optional
            Called with this object after each step whose number is a multiple of `interval`, and
            after the last step; a true return value ends the run. It may read the solver, save it
            and set `dt`.
        interval : int, default: 1
            Number of steps between two calls of `callback`. Steps between two calls can be made in
            one call of the backend, which takes less time.
        progress : bool, optional
            Whether to show a progress bar with the time left. By default it is shown in a
            terminal and in a notebook after a second, if tqdm is installed.

        Returns
        -------
        result
            The final state, as returned by `result`.

        Raises
        ------
        ConvergenceError, ValueError, RuntimeError
            As in `step`; ValueError also if `until` is before `time`.
        """
        return self._run(until, callback, interval, progress)

    def _run(
        self,
        until: float,
        callback: Callable[[Self], Any] | None,
        interval: int,
        progress: bool | None,
    ) -> Result:
        """Do what `run` does."""
        self._check_end(until)
        require_callable("callback", callback)
        interval = index("interval", interval, 1)
        with self._bar(until, progress) as bar:
            reason = self._go_to(until, bar, callback, interval)
        return self.result(reason)

    def _bar(self, until: float, progress: bool | None) -> IterationBar:
        """Return the bar of a run that ends at a time."""
        end, short = self._plan(until)
        total = max(end - self.steps, 0) + (short > 0)
        wanted = progress if self._shows_progress else False
        return IterationBar(wanted, type(self).__name__, "time", total)

    def _go_to(
        self,
        until: float,
        bar: IterationBar,
        callback: Callable[[Self], Any] | None = None,
        interval: int = 1,
    ) -> str:
        """Step until a time is reached, or the callback ends the run; return the reason."""
        end, short = self._plan(until)
        while self.steps < end or short:
            made = self.steps
            stop = made - made % interval + interval
            if made < end:
                near = stop if callback is not None else made + self._most_steps
                self._step_to(min(near, end), self.dt)
            else:
                self._step_to(made + 1, short)
            if self.steps > end or (self.steps == end and not short):
                self._end_at(until)
            bar.update(self.steps - made, self.time)
            end, short = self._plan(until)
            if callback is None:
                continue
            is_last = self.steps >= end and not short
            if (self.steps == stop or is_last) and callback(self) and not is_last:
                return "callback"
            end, short = self._plan(until)  # the callback may have set `dt`
        return "reached"

    @exclusive
    def record(
        self,
        until: float | None = None,
        *,
        times: ArrayLike | None = None,
        every: float | None = None,
        progress: bool | None = None,
    ) -> Result:
        """Step until a time is reached, as `run` does, and keep states on the way.

        Parameters
        ----------
        until : float, optional
            The end time, as in `run`; by default the last one of `times`.
        times : array_like, optional
            The times of the states that are kept, rising and not before `time`. Steps are
            shortened to end at these times.
        every : float, optional
            Instead of `times`: distance in time of the states that are kept. The first one is the
            state now, and the last one that at `until`. If it is no multiple of `dt`, steps are
            shortened. By default the smallest multiple of `dt` that makes about 50 states, and at
            most 51.
        progress : bool, optional
            As in `run`.

        Returns
        -------
        result
            The final state, with the kept ones as ``frames``, each a copy on the host.
            ``result.animate("film.gif")`` writes a film, and ``result.to_xarray()`` returns all of
            them along the dimension ``time``.

        Raises
        ------
        TypeError, ValueError
            If `times` or `every` is out of its range, or both are given.
        ConvergenceError, RuntimeError
            As in `run`.
        """
        from .recording import frame_times, keep_frames

        at, end = frame_times(self.time, until, times, every, self.dt)
        self._check_end(end)
        with self._bar(end, progress) as bar:
            found: Result = keep_frames(self, at, end, lambda time: self._go_to(time, bar))
        return found

    @abstractmethod
    def result(self, stop_reason: str = "running") -> Result:
        """Return a copy of the current state as a result."""

    @property
    def _shows_progress(self) -> bool:
        """Whether this process shows the progress of a run."""
        return True

    @property
    @abstractmethod
    def _most_steps(self) -> int:
        """Largest number of steps in one call of the backend."""

    @abstractmethod
    def _advance(self, end: int) -> bool:
        """Make the steps of one call of the backend, up to step `end`.

        Return whether the solution is in bounds: finite, or as the solver defines it.
        """

    @abstractmethod
    def _is_in_bounds(self) -> bool:
        """Return whether the current solution is in bounds."""

    @abstractmethod
    def _out_of_bounds(self) -> ConvergenceError:
        """Return the error of a solution that is not in bounds."""

    def _check_end(self, until: float) -> None:
        """Raise unless `until` can be the end of a run: not before the time, but for rounding."""
        require_finite("until", until)
        require(
            until >= self.time or isclose(until, self.time, rel_tol=1e-12),
            f"until must be at least the time {self.time:g}",
            until,
        )

    def _step_to(self, end: int, dt: float) -> None:
        """Make steps of this length up to step `end`."""
        if self.steps < end:
            self._set_length(dt)
        while self.steps < end:
            if self._examined != self.steps:  # an interrupt came before the last check
                self._examine(self._is_in_bounds())
            self._examine(call_in_default_fp_mode(self._advance, end))

    def _check_length(self, dt: float) -> None:
        """Warn of a length with which steps can grow; called before `dt` is set."""

    def _set_length(self, dt: float) -> None:
        """Make the next steps of this length."""
        self._clock.change(self.steps, dt)

    def _plan(self, until: float) -> tuple[int, float]:
        """Return the step up to which steps have the length `dt`, and that of a step after it."""
        if until <= self.time:
            return self.steps, 0.0
        self._set_length(self.dt)
        return self._clock.split(until)

    def _end_at(self, until: float) -> None:
        """Set the time to the end of a run, from which it differs by rounding."""
        self._clock.reach(self.steps, until)

    def _examine(self, is_in_bounds: bool) -> None:
        """Record that the solution was checked, and raise if it is not in bounds."""
        self._examined = self.steps
        if not is_in_bounds:
            raise self._out_of_bounds()
