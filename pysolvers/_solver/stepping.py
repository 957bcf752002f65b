"""Solvers of problems that change with time: steps of a length that can be set."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from numpy.typing import ArrayLike

from .._checks import index, require, require_callable, require_finite
from .._other_calls import explain_run
from .._progress import IterationBar
from .clock import Clock
from .exclusive import exclusive
from .recording import frame_times, is_now, keep_frames
from .schema import Positive
from .settings import TimeSettings
from .solver import NO_GOAL, Goal, Solver, State

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class TimeState(State):
    """What `save` writes of every solver with steps of one length.

    Parameters
    ----------
    dt : float
        Length of the next step.
    clock : tuple of float
        As `Clock.facts` returns.
    """

    dt: Positive
    clock: tuple[float, int, float, float, int, float]


class TimeStepping(Solver[R], is_base=True):
    """A solution that advances in time by steps of a length that can be set.

    Parameters
    ----------
    settings : TimeSettings
        The parameters.
    dt : float
        Length of the steps.
    stages : iterable of str
        Names of the stages whose times are measured.
    """

    start_time: float

    def __init__(self, settings: TimeSettings, dt: float, stages: Any = ()) -> None:
        super().__init__(settings, stages)
        self._clock = Clock(dt, settings.start_time)
        self._next_dt = dt

    @property
    def time(self) -> float:
        """Time of the solution."""
        return self._clock.at(self.steps)

    @property
    def steps(self) -> int:
        """Number of steps since the start."""
        return self._made

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

    def __repr__(self) -> str:
        name = f"{type(self).__name__}({self._text()})"
        return f"{name}: {self.steps} steps, t = {self.time:g}"

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
        self._goal = NO_GOAL
        self._step_to(self._made + index("count", count, 0), self.dt)
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
    ) -> R:
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
    ) -> R:
        """Do what `run` does."""
        self._check_end(until)
        require_callable("callback", callback)
        interval = index("interval", interval, 1)
        with self._bar(progress, "time", self._steps_left(until)) as bar:
            reason = self._go_to(until, bar, callback, interval)
        return self.result(reason)

    def _go_to(
        self,
        until: float,
        bar: IterationBar,
        callback: Callable[[Self], Any] | None = None,
        interval: int = 1,
    ) -> Any:
        """Step until a time is reached, or the callback ends the run; return the reason."""
        self._goal, begin = Goal(until=until), self.steps
        while not self._is_at(until):
            made = self.steps
            stop = made - made % interval + interval
            self._step_towards(until, None if callback is None else stop)
            bar.expect(self.steps - begin + self._steps_left(until))
            bar.update(self.steps - made, self.time)
            is_last = self._is_at(until)
            is_called = callback is not None and (self.steps == stop or is_last)
            if is_called and callback(self) and not is_last:  # type: ignore[misc]
                return "callback"
        if self.time != until:  # by rounding
            self._reach(until)
        return "reached"

    @exclusive
    def record(
        self,
        until: float | None = None,
        *,
        times: ArrayLike | None = None,
        every: float | None = None,
        progress: bool | None = None,
    ) -> R:
        """Step until a time is reached, as `run` does, and keep states meanwhile.

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
        at, end = frame_times(self.time, until, times, every, self.dt)
        self._check_end(end)
        with self._bar(progress, "time", self._steps_left(end)) as bar:
            found: R = keep_frames(self, at, end, lambda time: self._go_to(time, bar))
        return found

    def _check_end(self, until: float) -> None:
        """Raise unless `until` can be the end of a run: not before the time, but for rounding."""
        require_finite("until", until)
        require(
            until >= self.time or is_now(until, self.time),
            f"until must be at least the time {self.time:g}",
            until,
        )

    def _kept(self) -> dict[str, Any] | None:
        return {"dt": self.dt, "clock": self._clock.facts()}

    def _resume(self, state: Any) -> None:
        self._clock.restore(state.clock)
        if state.dt != self.dt:
            self.dt = state.dt

    @property
    @abstractmethod
    def _most_steps(self) -> int:
        """Largest number of steps in one call of the backend."""

    def _step_to(self, end: int, dt: float) -> None:
        """Make steps of this length up to step `end`."""
        if dt != self._clock.segment.dt and self._made < end:
            self._set_length(dt)
        self._make(end)

    def _step_towards(self, until: float, stop: int | None) -> None:
        """Make steps towards a time, at most to step `stop` if it is given."""
        made, (end, short) = self.steps, self._plan(until)
        if made < end:
            near = made + self._most_steps if stop is None else stop
            self._step_to(min(near, end), self.dt)
        else:
            self._step_to(made + 1, short)
        if self.steps > end or (self.steps == end and not short):
            self._reach(until)

    def _reach(self, until: float) -> None:
        """Set the time to one that differs from it by rounding."""
        self._clock.reach(self.steps, until)

    def _is_at(self, until: float) -> bool:
        """Return whether a time is reached; rounding errors do not count."""
        end, short = self._plan(until)
        return self.steps >= end and not short

    def _steps_left(self, until: float) -> int:
        """Return the number of steps up to a time, as far as it is known."""
        end, short = self._plan(until)
        return max(end - self.steps, 0) + (short > 0)

    def _plan(self, until: float) -> tuple[int, float]:
        """Return the step up to which steps have the length `dt`, and that of a step after it."""
        if until <= self.time:
            return self.steps, 0.0
        self._set_length(self.dt)
        return self._clock.split(until)

    def _check_length(self, dt: float) -> None:
        """Warn of a length with which steps can grow; called before `dt` is set."""

    def _set_length(self, dt: float) -> None:
        """Make the next steps of this length."""
        self._clock.change(self.steps, dt)
