"""Time of a solver that makes steps of equal length, until the length changes."""

from math import floor
from typing import NamedTuple

_TINY = 1e-9  # of a step: a remainder that is a rounding error


class Segment(NamedTuple):
    """Steps of one length.

    Parameters
    ----------
    time : float
        Time at which the first step begins.
    steps : int
        Number of steps before.
    dt : float
        Length of a step.
    before : float
        Length of the step before the first one; `dt` if there is none.
    """

    time: float
    steps: int
    dt: float
    before: float

    def at(self, steps: float) -> float:
        """Return the time after a number of steps, those of earlier segments included."""
        return self.time + (steps - self.steps) * self.dt


class Clock:
    """Time as a function of the number of steps.

    Within a segment the time is the time at its begin plus a multiple of the length of a step, so
    that rounding errors do not add up, and several runs have the times of one run.

    Parameters
    ----------
    dt : float
        Length of the first steps.
    time : float, default: 0
        Time before the first step.
    """

    def __init__(self, dt: float, time: float = 0.0) -> None:
        self.segment = Segment(time, 0, dt, dt)
        self._reached = (0, time)

    @property
    def dt(self) -> float:
        """Length of a step of the current segment."""
        return self.segment.dt

    def at(self, steps: float) -> float:
        """Return the time after a number of steps: in the current segment, or at an end time."""
        if steps == self._reached[0]:
            return self._reached[1]
        return self.segment.at(steps)

    def last(self, steps: int) -> float:
        """Return the length of the last one of a number of steps."""
        return self.segment.dt if steps > self.segment.steps else self.segment.before

    def change(self, steps: int, dt: float) -> None:
        """Begin a segment after a number of steps, unless steps have this length already."""
        if dt != self.segment.dt:
            self.segment = Segment(self.at(steps), steps, dt, self.last(steps))

    def begin(self, steps: int) -> None:
        """Begin a segment after a number of steps, of the same length."""
        self.segment = Segment(self.at(steps), steps, self.segment.dt, self.last(steps))

    def split(self, until: float) -> tuple[int, float]:
        """Return the last whole step before a time, and the rest; 0 if it is a rounding error."""
        segment = self.segment
        whole = floor((until - segment.time) / segment.dt * (1 + 1e-12) + _TINY)
        rest = until - segment.at(segment.steps + whole)
        return segment.steps + whole, rest if rest > _TINY * segment.dt else 0.0

    def reach(self, steps: int, time: float) -> None:
        """Set the time after these steps, which differs from the present one by rounding."""
        self._reached = (steps, time)

    def rounded(self, steps: int, time: float) -> float:
        """Return a time after these steps, or the end time that it differs from by rounding."""
        reached, end = self._reached
        return end if steps == reached and abs(end - time) <= _TINY * self.dt else time

    def facts(self) -> tuple[float, ...]:
        """Return numbers from which `restore` makes the same clock."""
        return (*self.segment, *self._reached)

    def restore(self, facts: tuple[float, ...]) -> None:
        """Take the state of a clock whose `facts` these are."""
        time, steps, dt, before, reached, when = facts
        self.segment = Segment(float(time), int(steps), float(dt), float(before))
        self._reached = (int(reached), float(when))
