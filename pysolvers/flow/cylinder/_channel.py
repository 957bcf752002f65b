"""The grid of a channel with a square cylinder, and the nodes on and around the cylinder."""

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._checks import index, require, require_finite

Array = NDArray[np.float64]

HALF_HEIGHT = 4.0
"""Half of the height of the channel, in sides of the cylinder."""

_PARTS = 16  # intervals along y come in multiples: the faces y = -1/2 and 1/2 are 7/16 and 9/16
_SHORTEST = 8.0  # length of the channel: the cylinder then ends 1.5 sides behind the inlet
_TOLERANCE = 1e-9  # of a coordinate, in intervals


@dataclass(frozen=True, slots=True)
class _Range:
    """Nodes from `first` to `last`, both included, along one axis."""

    first: int
    last: int

    @property
    def nodes(self) -> slice:
        """All nodes."""
        return slice(self.first, self.last + 1)

    @property
    def unknowns(self) -> slice:
        """The same nodes in an array without the nodes of the boundary."""
        return slice(self.first - 1, self.last)

    def widened(self, before: int, after: int) -> "_Range":
        """Return the range with more nodes at both ends."""
        return _Range(self.first - before, self.last + after)


@dataclass(frozen=True)
class ChannelGrid:
    """Nodes of the channel 0 <= x <= length, -4 <= y <= 4.

    The cylinder is the square of side 1 with the centre (length/4, 0). Its faces lie on nodes.

    Parameters
    ----------
    shape : (int, int)
        Number of nodes along y and x, with those on the boundary.
    length : float
        Length of the channel, in sides of the cylinder.
    """

    shape: tuple[int, int]
    length: float

    def __post_init__(self) -> None:
        require_finite("length", self.length)
        require(self.length >= _SHORTEST, f"length must be at least {_SHORTEST:g}", self.length)
        given: Any = self.shape
        require(
            isinstance(given, tuple | list) and len(given) == 2,
            "shape must be (ny, nx), the numbers of nodes along y and x",
            given,
        )
        ny, nx = (index("shape", count, 3) for count in given)
        object.__setattr__(self, "shape", (ny, nx))
        object.__setattr__(self, "length", float(self.length))
        if (ny - 1) % _PARTS or not _fits(nx - 1, self.length):
            raise ValueError(self._misfit())

    @property
    def intervals(self) -> tuple[int, int]:
        """Number of intervals between the nodes along y and x."""
        return self.shape[0] - 1, self.shape[1] - 1

    @property
    def hx(self) -> float:
        """Distance of the nodes along x."""
        return self.length / (self.shape[1] - 1)

    @property
    def hy(self) -> float:
        """Distance of the nodes along y."""
        return 2 * HALF_HEIGHT / (self.shape[0] - 1)

    @property
    def centre(self) -> float:
        """Coordinate x of the centre of the cylinder."""
        return self.length / 4

    @cached_property
    def x(self) -> Array:
        """Coordinates of the nodes along x."""
        return np.linspace(0.0, self.length, self.shape[1])

    @cached_property
    def y(self) -> Array:
        """Coordinates of the nodes along y; exactly antisymmetric."""
        half = self.intervals[0] // 2
        return np.asarray(np.arange(-half, half + 1) * (HALF_HEIGHT / half), np.float64)

    @cached_property
    def columns(self) -> _Range:
        """Nodes of the cylinder along x, its faces included."""
        return _Range(
            round((self.centre - 0.5) / self.hx),
            round((self.centre + 0.5) / self.hx),
        )

    @cached_property
    def rows(self) -> _Range:
        """Nodes of the cylinder along y, its faces included."""
        part = self.intervals[0] // _PARTS
        return _Range(7 * part, 9 * part)

    @property
    def body(self) -> tuple[slice, slice]:
        """The nodes of the cylinder, its faces included."""
        return self.rows.nodes, self.columns.nodes

    @property
    def body_unknowns(self) -> tuple[slice, slice]:
        """As `body`, in an array without the nodes of the boundary."""
        return self.rows.unknowns, self.columns.unknowns

    @cached_property
    def box(self) -> tuple[_Range, _Range]:
        """Rows and columns of the nodes of a box half a side away from the cylinder."""
        along_x = max(2, (self.columns.last - self.columns.first) // 2)
        along_y = max(2, (self.rows.last - self.rows.first) // 2)
        return self.rows.widened(along_y, along_y), self.columns.widened(along_x, along_x)

    def next_intervals(self, least: int) -> int:
        """Return the smallest number of intervals along x, at least `least`, that fits."""
        own = self.intervals[1]
        most = -(-least // own) * own  # a multiple fits
        return next(n for n in range(least, most + 1) if n == most or _fits(n, self.length))

    @staticmethod
    def rows_of(hx: float) -> int:
        """Return the smallest number of intervals along y that fits, of a length up to `hx`."""
        return _PARTS * ceil(2 * HALF_HEIGHT / _PARTS / hx * (1 - _TOLERANCE))

    def inflow(self) -> tuple[Array, Array]:
        """Return psi and omega of the inflow profile u = 1 - (y/4)^2 at the coordinates y."""
        return self.y - self.y**3 / (3 * HALF_HEIGHT**2), 2 * self.y / HALF_HEIGHT**2

    def _misfit(self) -> str:
        """Return what is wrong with the shape or the length, and the nearest ones that fit."""
        ny, nx = self.intervals
        near_y = sorted({max(_PARTS, ny // _PARTS * _PARTS), -(-ny // _PARTS) * _PARTS})
        near_x = _nearest(nx, self.length)
        if not near_x:
            return (
                f"length must be such that the faces x = length/4 -+ 1/2 of the cylinder lie on "
                f"nodes, and no number of nodes up to {4 * nx} does it, got {self.length:g}"
            )
        fits = ", ".join(f"({j + 1}, {i + 1})" for j in near_y for i in near_x)
        return (
            "shape must have 16 k + 1 nodes along y, and nodes at x = length/4 -+ 1/2, for the "
            f"faces of the cylinder; the nearest shapes for length={self.length:g} are {fits}; "
            f"got {self.shape}"
        )


def _fits(intervals: int, length: float) -> bool:
    """Whether the faces of the cylinder lie on nodes along x, with a node between them."""
    side = intervals / length
    front = (length / 4 - 0.5) * side
    return (
        round(side) >= 2
        and abs(side - round(side)) < _TOLERANCE * intervals
        and abs(front - round(front)) < _TOLERANCE * intervals
    )


def _nearest(intervals: int, length: float) -> list[int]:
    """Return the next smaller and larger numbers of intervals that fit."""
    smaller = next((n for n in range(intervals, 0, -1) if _fits(n, length)), 0)
    most = max(4 * intervals, round(8 * length))
    larger = next((n for n in range(intervals, most) if _fits(n, length)), 0)
    return sorted({n for n in (smaller, larger) if n})
