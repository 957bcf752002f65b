"""Time of a solver that makes steps of equal length, until the length changes."""

from math import floor
from typing import NamedTuple

_TINY = 1e-9  # of a step: a remainder that is a rounding error


class Leg(NamedTuple):
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
        """Return the time after a number of steps, those of earlier legs included."""
        return self.time + (steps - self.steps) * self.dt


class Clock:
    """Time as a function of the number of steps.

    Within a leg the time is the time at its begin plus a multiple of the length of a step, so
    that rounding errors do not add up, and several runs have the times of one run.

    Parameters
    ----------
    dt : float
        Length of the first steps.
    """

    def __init__(self, dt: float) -> None:
        self.leg = Leg(0.0, 0, dt, dt)
        self._reached = (0, 0.0)

    @property
    def dt(self) -> float:
        """Length of a step of the current leg."""
        return self.leg.dt

    def at(self, steps: float) -> float:
        """Return the time after a number of steps: in the current leg, or at an end time."""
        if steps == self._reached[0]:
            return self._reached[1]
        return self.leg.at(steps)

    def last(self, steps: int) -> float:
        """Return the length of the last one of a number of steps."""
        return self.leg.dt if steps > self.leg.steps else self.leg.before

    def change(self, steps: int, dt: float) -> None:
        """Begin a leg after a number of steps, unless steps have this length already."""
        if dt != self.leg.dt:
            self.leg = Leg(self.at(steps), steps, dt, self.last(steps))

    def begin(self, steps: int) -> None:
        """Begin a leg after a number of steps, of the same length."""
        self.leg = Leg(self.at(steps), steps, self.leg.dt, self.last(steps))

    def split(self, until: float) -> tuple[int, float]:
        """Return the last whole step before a time, and the rest; 0 if it is a rounding error."""
        leg = self.leg
        whole = floor((until - leg.time) / leg.dt * (1 + 1e-12) + _TINY)
        rest = until - leg.at(leg.steps + whole)
        return leg.steps + whole, rest if rest > _TINY * leg.dt else 0.0

    def reach(self, steps: int, time: float) -> None:
        """Set the time after these steps, which differs from the present one by rounding."""
        self._reached = (steps, time)

    def rounded(self, steps: int, time: float) -> float:
        """Return a time after these steps, or the end time that it differs from by rounding."""
        reached, end = self._reached
        return end if steps == reached and abs(end - time) <= _TINY * self.dt else time

    def facts(self) -> tuple[float, ...]:
        """Return numbers from which `restore` makes the same clock."""
        return (*self.leg, *self._reached)

    def restore(self, facts: tuple[float, ...]) -> None:
        """Take the state of a clock whose `facts` these are."""
        time, steps, dt, before, reached, when = facts
        self.leg = Leg(float(time), int(steps), float(dt), float(before))
        self._reached = (int(reached), float(when))
