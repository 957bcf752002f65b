"""Steps in time, which the solvers of time-dependent problems share."""

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
    """A solution that goes on in time by steps of one length."""

    def __init__(self) -> None:
        self._count = Counter()
        self._examined = 0  # the steps after which the solution was last found to be in bounds

    @property
    def time(self) -> float:
        """Time of the solution."""
        return self.steps * self._dt

    @property
    def steps(self) -> int:
        """Steps made since time 0."""
        return self._count.value

    def step(self, count: int = 1) -> Self:
        """Make steps; any split into calls gives the same bits.

        Parameters
        ----------
        count : int, default: 1
            How many; at least 0.

        Returns
        -------
        self
            For chaining.

        Raises
        ------
        ConvergenceError
            If the solution is not finite, or past the bound of a solver that has one. The
            solver keeps the state after that step, and the error has it as its ``result``.
        ValueError
            If data that change with time are not finite at a later time. The solver keeps
            the state before.
        """
        end = self.steps + index("count", count, 0)
        while self.steps < end:
            if self._examined != self.steps:  # an interrupt took what the last call reported
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
            The time: the last step is the first that ends there, to rounding, or later.
        callback : callable, optional
            Called with this object every `interval` steps; a true answer ends the run.
        interval : int, default: 20
            Steps between two calls of `callback`.
        progress : bool, optional
            Whether to show a progress bar on stderr; by default if that is a terminal and tqdm
            is installed.

        Returns
        -------
        result
            The state then, as `result` tells it.

        Raises
        ------
        ConvergenceError, ValueError
            As in `step`.
        """
        require_finite("until", until)
        require_callable("callback", callback)
        interval = index("interval", interval, 1)
        end = ceil(until / self._dt * (1 - 1e-12) - 1e-9)
        with IterationBar(progress, type(self).__name__, "time") as bar:
            while self.steps < end:
                made = self.steps
                stop = made - made % interval + interval
                near = stop if callback is not None else made + self._most_steps
                self.step(min(near, end) - made)
                bar.update(self.steps - made, self.time)
                if callback is not None and self.steps == stop and callback(self):
                    return self.result("callback")
        return self.result("reached")

    @abstractmethod
    def result(self, stop_reason: str = "running") -> Result:
        """Return the state now as a result of its own."""

    @property
    @abstractmethod
    def _dt(self) -> float:
        """Length of a step."""

    @property
    @abstractmethod
    def _most_steps(self) -> int:
        """Steps that one call of the backend can make."""

    @abstractmethod
    def _advance(self, end: int) -> bool:
        """Make the steps of one call of the backend, up to step `end`.

        Return whether the solution is in bounds: finite, or as the solver defines it.
        """

    @abstractmethod
    def _is_in_bounds(self) -> bool:
        """Return whether the solution now is in bounds."""

    @abstractmethod
    def _out_of_bounds(self) -> ConvergenceError:
        """Return the error of a solution that is not in bounds."""

    def _examine(self, is_in_bounds: bool) -> None:
        """Take note that the solution was examined, and raise if it is not in bounds."""
        self._examined = self.steps
        if not is_in_bounds:
            raise self._out_of_bounds()
