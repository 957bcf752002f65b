r"""The range of the solution of GCEIDD that the data allow.

With one strip a sweep solves rows

    (1 + l + u) V_i - l V_{i-1} - u V_{i+1} = U_i + dt/2 f_i,   l, u >= 0,

with U at feet, means of two values, for characteristics, and with given values at Dirichlet sides.
So V lies between the smallest and the largest of U + dt/2 f and of the given values (discrete
maximum principle). A `Robin` side adds e (w - V_n) with e >= 0: its ambient values w are given
ones, too. After n steps u lies between the smallest and the largest of the initial values and of
the given values so far, plus the sum of dt min(f, 0) and of dt max(f, 0) over the steps.

This needs velocities that are constant along their own axis: otherwise the rows have the divergence
q as well, which gathers what flows together. A side with an outward derivative g > 0 lifts u, and
one with g < 0 lowers it: the range is then open above, or below. Feet that are extrapolated are no
means.

In strips, corrections and explicit predictions are no means either. In stable steps, u differs from
the middle of the range by a multiple of half of its width: up to about 11 along each axis for the
worst of data with ``'cp'`` and ``'cfd'``, and 2.2 with ``'mu'`` (computed for constant coefficients
from the powers of a step).
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from .problem import GridData

Rows = NDArray[np.float64]
Row = tuple[float, float, float, float]

_GROWTH = 1e12
_ROOM = 0.01  # of the width, on each side
_ROOM_IN_STRIPS = 100.0  # times half of the width
_ROUNDING = 8  # rounding errors of a step, in units of the last digit of the largest value

#: The row of data about which nothing is known.
NO_ROW: Row = (0.0, 0.0, -inf, inf)


class Range:
    """Smallest and largest value of u that the data of the steps so far allow, and the limits.

    Parameters
    ----------
    lowest, highest : float
        Smallest and largest initial value.
    largest : float
        Largest magnitude of the data at time 0.
    bound : float or None
        Limit of abs(u) that was given; there is then no other.
    is_in_strips : bool
        Whether a line has several strips.
    dtype : str
        Dtype of the solution.
    """

    def __init__(
        self,
        lowest: float,
        highest: float,
        largest: float,
        bound: float | None,
        dtype: str,
        *,
        is_in_strips: bool,
    ) -> None:
        self._is_given = bound is not None
        #: Limit of abs(u), whatever the data are.
        self.limit = _GROWTH * max(1.0, largest) if bound is None else float(bound)
        self._is_in_strips = is_in_strips
        self._rounding = _ROUNDING * float(np.finfo(dtype).eps)
        # The range after a number of steps, and length and data of the steps that follow.
        self._known: tuple[int, float, float, float, Rows] = (0, lowest, highest, 0.0, _NO_ROWS)

    def begin(self, first: int, count: int, dt: float, rows: Rows) -> tuple[float, float]:
        """Take the data of the steps after the first ones; return the limits of u in them.

        An interrupt can end the steps before the last one: `at` then counts those that were made.

        Parameters
        ----------
        first, count : int
            Number of steps before, and number of the steps.
        dt : float
            Their length.
        rows : ndarray, shape (count or 1, 4)
            Of `rows_of`; one row is that of every step.
        """
        self._known = (first, *self.at(first), dt, rows)
        return self.limits(first + count)

    def at(self, steps: int) -> tuple[float, float]:
        """Return the range of u after a number of steps, without room; it can be infinite."""
        first, lowest, highest, dt, rows = self._known
        made = steps - first
        if len(rows) == 1 and made > 0:
            below, above, least, most = rows[0].tolist()
            lowest = min(lowest, least) + made * dt * min(below, 0.0)
            highest = max(highest, most) + made * dt * max(above, 0.0)
            return lowest, highest
        for below, above, least, most in rows[: max(made, 0)].tolist():
            lowest = min(lowest + dt * min(below, 0.0), least)
            highest = max(highest + dt * max(above, 0.0), most)
        return lowest, highest

    def restore(self, steps: int, lowest: float, highest: float) -> None:
        """Take the range after a number of steps, as `at` returned it."""
        self._known = (steps, lowest, highest, 0.0, _NO_ROWS)

    def limits(self, steps: int) -> tuple[float, float]:
        """Return the smallest and the largest value of u that are accepted after these steps."""
        lowest, highest = self.at(steps)
        is_open = not (isfinite(lowest) and isfinite(highest))
        if self._is_given or (is_open and self._is_in_strips):
            return -self.limit, self.limit
        largest = max(abs(end) for end in (lowest, highest, 0.0) if isfinite(end))
        errors = self._rounding * (steps + 1) * largest
        width = largest if is_open else highest - lowest
        if self._is_in_strips:
            middle, reach = lowest + width / 2, _ROOM_IN_STRIPS * (width / 2 + errors)
            lowest, highest = middle - reach, middle + reach
        else:
            room = _ROOM * width + errors
            lowest, highest = lowest - room, highest + room
        return max(lowest, -self.limit), min(highest, self.limit)

    def is_of_data(self, steps: int) -> bool:
        """Whether the limits after these steps are those of the data, at one end at least."""
        return self.limits(steps) != (-self.limit, self.limit)


_NO_ROWS = np.empty((0, 4))


def bounds_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the smallest and the largest value of each step, shape (steps, 2)."""
    across = tuple(range(1, values.ndim))
    return np.stack([values.min(axis=across), values.max(axis=across)], axis=1)


def rows_of(
    data: GridData,
    bounds: Mapping[str, NDArray[np.float64]],
    factors: Sequence[NDArray[np.float64]],
    *,
    is_even: NDArray[np.bool_] | bool,
) -> Rows:
    """Return what the range depends on in some steps, one row for each, or one for all.

    A row has the smallest and the largest value of the source, and the smallest and the largest
    value that the sides give: infinite if nothing is known, or if a side lets u rise or fall.

    Parameters
    ----------
    data : GridData
        The data.
    bounds : mapping of str to ndarray, shape (steps or 1, 2)
        Smallest and largest value in each step of the fields of the source, as ``"source 0"``,
        and of the sides.
    factors : sequence of ndarray
        Factors of the fields of the source in each step.
    is_even : bool or ndarray of bool
        Whether each velocity is constant along its own axis, in each step.
    """
    below, above, least, most = np.zeros(1), np.zeros(1), np.full(1, inf), np.full(1, -inf)
    for k, factor in enumerate(factors):
        ends = factor[:, None] * bounds[f"source {k}"]
        below, above = below + ends.min(axis=1), above + ends.max(axis=1)
    for side, kind in data.kinds.items():
        if kind == "periodic":
            continue
        low, high = bounds[side].T
        if kind == "neumann":
            low, high = np.where(low < 0, -inf, inf), np.where(high > 0, inf, -inf)
        least, most = np.minimum(least, low), np.maximum(most, high)
    least, most = np.where(is_even, least, -inf), np.where(is_even, most, inf)
    return np.stack(np.broadcast_arrays(below, above, least, most), axis=1)


def joined(rows: Iterable[Sequence[float]]) -> Row:
    """Return one row for all data of some rows, of parts of the grid or of several steps."""
    below, above, least, most = zip(*rows, strict=True)
    return min(below), max(above), min(least), max(most)
