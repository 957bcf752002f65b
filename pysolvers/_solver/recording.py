"""Recording of states during a run."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, isclose
from typing import Any

import numpy as np

from .._checks import real_array, require, require_finite, short

FRAMES = 50
"""Frames after the first one, if neither their times nor their distance are given."""

_ROUNDING = 1e-12  # of a time
_TINY = 1e-9  # of the distance of two frames: a remainder that is a rounding error


def is_now(at: float, time: float) -> bool:
    """Return whether a time differs from the time of a solution by rounding errors only."""
    return isclose(at, time, rel_tol=_ROUNDING, abs_tol=0.0)


def frame_times(
    time: float, until: float | None, times: Any, every: float | None, default: float | None
) -> tuple[Sequence[float], float]:
    """Return the times of the frames of a record, and its end.

    Parameters
    ----------
    time : float
        The time now.
    until : float or None
        The end, or None for the last one of `times`.
    times : array_like or None
        The times of the frames.
    every : float or None
        Distance of the frames in time, from now to the end.
    default : float or None
        Length of a step: without `times` and `every` the distance is a whole number of steps. None
        if steps have no common length.

    Raises
    ------
    TypeError, ValueError
        If both `times` and `every` are given, or neither `until` nor `times`, or if a value is out
        of its range.
    """
    if times is not None and every is not None:
        raise TypeError("record takes times or every, got both")
    if times is not None:
        at = real_array("times", times)
        if at.ndim != 1 or not at.size:
            raise ValueError(f"times must be a sequence of at least one time, got {short(times)}")
        rises = bool(np.isfinite(at).all() and (np.diff(at) > 0).all())
        require(rises, "times must be finite and rise", times)
        is_later = at[0] >= time or is_now(at[0], time)
        require(is_later, f"times must not be before the time {time:g}", at[0])
        end = float(at[-1]) if until is None else until
        require_finite("until", end)
        require(at[-1] <= end, f"times must not be after until, {end:g}", at[-1])
        return at.tolist(), float(end)
    if until is None:
        raise TypeError("record needs until or times, for example record(until, every=0.1)")
    require_finite("until", until)
    if every is None:
        every = (until - time) / FRAMES
        if default is not None:
            every = default * ceil(every / default * (1 - _TINY))
    else:
        require_finite("every", every)
        require(every > 0, "every must be positive", every)
    count = ceil((until - time) / every - _TINY) if until > time else 0
    return [*(time + k * every for k in range(count)), until], float(until)


def keep_frames(
    solver: Any, times: Sequence[float], until: float, go_to: Callable[[float], Any]
) -> Any:
    """Run a solver to the end, and return the result with its states at these times.

    Parameters
    ----------
    solver : object
        Solver with the method ``result``.
    times : sequence of float
        As `frame_times` returns.
    until : float
        The end time.
    go_to : callable
        ``go_to(time)`` steps to a time.

    Returns
    -------
    result : dataclass
        The final state, with ``frames``.
    """
    frames = []
    for time in times:
        go_to(time)
        frames.append(solver.result())
    go_to(until)
    return replace(solver.result("reached"), frames=tuple(frames))
