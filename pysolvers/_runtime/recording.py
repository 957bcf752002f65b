"""Recording of states during a run."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

__all__ = ["record_frames", "record_steps"]


def record_steps(solver: Any, until: float, frames: int, progress: bool | None) -> Any:
    """Run a solver with steps of equal length and keep a state every so many steps.

    Parameters
    ----------
    solver : object
        Solver with the attributes ``time`` and ``dt``, and the method ``run`` with `callback` and
        `interval`.
    until : float
        The end time.
    frames : int
        Largest number of states between the first one and the last one.
    progress : bool or None
        As in ``run``.

    Returns
    -------
    result : dataclass
        As `record_frames` returns.
    """
    spacing = (until - solver.time) / (frames + 1)
    interval = max(ceil(spacing / solver.dt), 1)
    run = partial(solver.run, until, interval=interval, progress=progress)
    # The callbacks come at multiples of the interval: the first one can come too early.
    return record_frames(solver, run, frames, spacing / 2)


def record_frames(solver: Any, run: Callable[..., Any], frames: int, spacing: float = 0.0) -> Any:
    """Run a solver, keep a state at each callback, and return the result with these states.

    Parameters
    ----------
    solver : object
        Solver with the attributes ``time`` and ``steps`` and the method ``result``.
    run : callable
        ``run(callback=keep)`` runs the solver and returns its result.
    frames : int
        Largest number of states between the first one and the last one.
    spacing : float, default: 0
        Smallest time between two states; the calls that come earlier are skipped.

    Returns
    -------
    result : dataclass
        Result of `run`; ``frames`` are the first state, the states in between, and the last one.
    """
    kept = [solver.result()]

    def keep(_: object) -> None:
        if len(kept) <= frames and solver.time - kept[-1].time >= spacing:
            kept.append(solver.result())

    result = run(callback=keep)
    if kept[-1].steps == result.steps:
        kept.pop()
    return replace(result, frames=(*kept, replace(result, frames=())))
