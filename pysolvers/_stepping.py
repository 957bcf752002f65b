"""Runs in time, which the solvers of time-dependent problems share."""

from collections.abc import Callable
from math import ceil
from typing import Any, Protocol, TypeVar

from ._checks import index, require_finite
from ._progress import IterationBar

__all__ = ["run_until"]


class _Stepper(Protocol):
    @property
    def time(self) -> float: ...
    @property
    def steps(self) -> int: ...
    def step(self, count: int = 1) -> object: ...


S = TypeVar("S", bound=_Stepper)


def run_until(
    solver: S,
    until: float,
    dt: float,
    most_steps: int,
    *,
    callback: Callable[[S], Any] | None,
    interval: int,
    progress: bool | None,
) -> str:
    """Step until a time is reached or `callback`, called every `interval` steps, ends it.

    Without anybody who looks on that takes as few calls of `step` as may be, of up to
    `most_steps` each. Return why it ended.
    """
    require_finite("until", until)
    interval = index("interval", interval, 1)
    end = ceil(until / dt * (1 - 1e-12) - 1e-9)
    with IterationBar(progress, type(solver).__name__, "time") as bar:
        while solver.steps < end:
            made = solver.steps
            stop = made - made % interval + interval
            near = stop if callback is not None else made + most_steps
            solver.step(min(near, end) - made)
            bar.update(solver.steps - made, solver.time)
            if callback is not None and solver.steps == stop and callback(solver):
                return "callback"
    return "reached"
