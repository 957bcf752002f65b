"""Time stepping, shared by the solvers of time-dependent problems."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import ceil
from typing import Any, Generic, Self, TypeVar

from .._checks import index, require_callable, require_finite
from .._counter import Counter
from .._errors import ConvergenceError
from .._progress import IterationBar

__all__ = ["Stepper"]

Result = TypeVar("Result")


class Stepper(ABC, Generic[Result]):
    """A solution that advances in time by steps of constant length."""

    def __init__(self) -> None:
        self._count = Counter()
        self._examined = 0  # number of steps at the last check of the bounds

    @property
    def time(self) -> float:
        """Time of the solution."""
        return self.steps * self._dt

    @property
    def steps(self) -> int:
        """Number of steps since time 0."""
        return self._count.value

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
        """
        end = self.steps + index("count", count, 0)
        while self.steps < end:
            if self._examined != self.steps:  # an interrupt came before the last check
                self._examine(self._is_in_bounds())
            self._examine(self._advance(end))
        return self

    def run(
        self,
        until: float,
        *,
        callback: Callable[[Self], Any] | None = None,
        interval: int = 20,
        progress: bool | None = None,
    ) -> Result:
        """Step until a time is reached.

        Parameters
        ----------
        until : float
            The end time. Steps are not shortened: the last step is the first step that ends at
            this time (up to rounding) or later.
        callback : callable, optional
            Called with this object every `interval` steps; a true return value ends the run.
        interval : int, default: 20
            Number of steps between two calls of `callback`.
        progress : bool, optional
            Whether to show a progress bar on stderr. By default it is shown if stderr is a
            terminal and tqdm is installed.

        Returns
        -------
        result
            The final state, as returned by `result`.

        Raises
        ------
        ConvergenceError, ValueError
            As in `step`.
        """
        require_finite("until", until)
        require_callable("callback", callback)
        interval = index("interval", interval, 1)
        end = self._end(until)
        total = max(end - self.steps, 0)
        with IterationBar(progress, type(self).__name__, "time", total) as bar:
            while self.steps < end:
                made = self.steps
                stop = made - made % interval + interval
                near = stop if callback is not None else made + self._most_steps
                self.step(min(near, end) - made)
                bar.update(self.steps - made, self.time)
                if callback is not None and self.steps == stop and callback(self):
                    return self.result("callback")
        return self.result("reached")

    def record(self, until: float, frames: int = 50, *, progress: bool | None = None) -> Result:
        """Step until a time is reached, as `run` does, and keep states for a film.

        Parameters
        ----------
        until : float
            The end time, as in `run`.
        frames : int, default: 50
            Largest number of states that are kept, at about equal times between the first one and
            the last one, which are kept, too. Each is a copy of the solution on the host.
        progress : bool, optional
            As in `run`.

        Returns
        -------
        result
            The final state, with the kept ones as ``frames``; ``result.animate("film.gif")``
            writes a film.

        Raises
        ------
        ConvergenceError, ValueError
            As in `run`.
        """
        from .recording import record_steps

        require_finite("until", until)
        found: Result = record_steps(self, until, index("frames", frames, 1), progress)
        return found

    @abstractmethod
    def result(self, stop_reason: str = "running") -> Result:
        """Return a copy of the current state as a result."""

    @property
    @abstractmethod
    def _dt(self) -> float:
        """Length of a step."""

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

    def _end(self, until: float) -> int:
        """Return the number of steps after which a time is reached, up to rounding."""
        return ceil(until / self._dt * (1 - 1e-12) - 1e-9)

    def _examine(self, is_in_bounds: bool) -> None:
        """Record that the solution was checked, and raise if it is not in bounds."""
        self._examined = self.steps
        if not is_in_bounds:
            raise self._out_of_bounds()
