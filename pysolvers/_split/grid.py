"""Nodes of a box, with axes of a batch before those of space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._boundary import PERIODIC
from .._checks import require
from .._domain import AXES, checked_line, origin_and_step

Array = NDArray[np.float64]
Index = tuple[Any, ...]

_LEAST = 3  # nodes along an axis
_EVEN = 1e-12  # of the spacing: rounding errors of coordinates that are evenly spaced
_LEAST_GAP = 1e-150  # its square is a number


class Grid:
    """Nodes of a box; axes are counted from x on, which is the last axis of an array.

    Parameters
    ----------
    batch : tuple of int
        Axes before those of space.
    lines, gaps : sequence of ndarray
        Along each axis the coordinates, and the distances of neighbours: one less than nodes, or
        as many on a periodic axis.
    kinds : mapping of str to str
        Kind of each side by its name.
    """

    def __init__(
        self,
        batch: tuple[int, ...],
        lines: Sequence[Array],
        gaps: Sequence[Array],
        kinds: Mapping[str, str],
    ) -> None:
        self.batch, self.lines, self.gaps = batch, tuple(lines), tuple(gaps)
        self.axes = len(self.lines)
        self.names = AXES[: self.axes]
        self.shape = tuple(line.size for line in reversed(self.lines))
        #: Shape of a field, and its number of axes.
        self.nodes = (*batch, *self.shape)
        self.ndim = len(self.nodes)
        self.kinds = dict(kinds)
        self.periodic = tuple(kinds[name + "-"] == PERIODIC for name in self.names)
        for name, gap in zip(self.names, self.gaps, strict=True):
            require(
                bool(gap.min() >= _LEAST_GAP and gap.max() <= 1 / _LEAST_GAP),
                f"the distance of nodes along {name} must be between {_LEAST_GAP:g} and "
                f"{1 / _LEAST_GAP:g}, choose another unit of length",
                float(gap.min()),
            )
        #: Nodes along each axis that have no given value.
        self.free = tuple(self._free(axis) for axis in range(self.axes))
        #: Number of these along each axis, x along the last one.
        self.shape_free = tuple(each.stop - each.start for each in reversed(self.free))
        #: All nodes that have no given value.
        self.inner = self.index({})
        #: The lines along each axis whose other coordinates have no given value.
        self.through = tuple(self.index({axis: slice(None)}) for axis in range(self.axes))

    def _free(self, axis: int) -> slice:
        """Return the nodes along an axis that are not on a side with a given value."""
        name, n = self.names[axis], self.lines[axis].size
        first, last = (self.kinds[name + end] == "value" for end in "-+")
        return slice(int(first), n - int(last))

    def index(self, own: Mapping[int, Any]) -> Index:
        """Return an index of a field: `own` along some axes, the free nodes along the others."""
        along = (own.get(axis, self.free[axis]) for axis in reversed(range(self.axes)))
        return (..., *along)

    def side(self, axis: int, end: int, *, whole: bool = False) -> Index:
        """Return the index of the nodes of a side, its axis kept; all of them or the free ones."""
        at = slice(-1, None) if end else slice(1)
        others = {other: slice(None) for other in range(self.axes)} if whole else {}
        return self.index(others | {axis: at})

    def along(self, axis: int, values: Any) -> Array:
        """Return an array of one dimension as one that lies along an axis of a field."""
        return np.reshape(values, (1,) * (self.ndim - 1 - axis) + (-1,) + (1,) * axis)

    def places(self, own: Mapping[int, Any] | None = None) -> tuple[Array, ...]:
        """Return coordinates along x, y, ... that broadcast to a field, or to a part of it."""
        own = own or {}
        return tuple(
            self.along(axis, line[own.get(axis, slice(None))])
            for axis, line in enumerate(self.lines)
        )

    def part(self, values: NDArray[Any], index: Index) -> NDArray[Any]:
        """Return what an array that broadcasts to a field has at an index: a view."""
        own = (
            at if size > 1 else slice(None)
            for at, size in zip(index[1:], values.shape[-self.axes :], strict=True)
        )
        return values[(..., *own)]

    def three_points(self, axis: int) -> tuple[tuple[Array, Array], ...]:
        """Return the lower and upper weights of the second and of the first derivative.

        The weights of the node itself are minus their sums. They are of second order for
        distances that change smoothly, and of first order at worst; the first derivative is exact
        for parabolas. The ends of an axis that is not periodic have weights of 0.
        """
        gap, n = self.gaps[axis], self.lines[axis].size
        before, after = np.ones(n), np.ones(n)
        if self.periodic[axis]:
            before, after = np.roll(gap, 1), gap
        else:
            before[1:], after[:-1] = gap, gap
        both = before + after
        found = (
            (2 / (before * both), 2 / (after * both)),
            (
                -after / (before * both),
                before / (after * both),
            ),
        )
        if not self.periodic[axis]:
            for lower, upper in found:
                lower[[0, -1]] = upper[[0, -1]] = 0
        return found

    def end_gap(self, axis: int, end: int) -> float:
        """Return the distance of the nodes of a side from their neighbours."""
        return float(self.gaps[axis][-end])

    @property
    def spacing(self) -> tuple[float, ...]:
        """Mean distance of the nodes along each axis."""
        return tuple(float(gap.mean()) for gap in self.gaps)

    @property
    def is_even(self) -> bool:
        """Whether the nodes along all axes are evenly spaced."""
        return all(
            float(np.ptp(gap)) <= _EVEN * abs(line).max() + _EVEN * float(gap.mean())
            for gap, line in zip(self.gaps, self.lines, strict=True)
        )


def make_grid(
    what: str,
    shape: Sequence[int],
    batch: tuple[int, ...],
    spacing: Any,
    extent: Any,
    coordinates: Any,
    kinds: Mapping[str, str],
) -> Grid:
    """Return the nodes at a spacing, in an extent, or at coordinates, of which one is given.

    Raises
    ------
    ValueError
        If an axis has too few nodes, or the coordinates of a periodic axis lack the last one.
    """
    names = AXES[: len(shape)]
    for name, n in zip(names, reversed(shape), strict=True):
        require(n >= _LEAST, f"{what} must have at least {_LEAST} nodes along {name}", n)
    periodic = [name for name in names if kinds[name + "-"] == PERIODIC]
    nodes = tuple(reversed(shape))
    if coordinates is None:
        origin, steps = origin_and_step(nodes, spacing, extent, periodic)
        lines: list[Any] = [
            o + h * np.arange(n) for o, h, n in zip(origin, steps, nodes, strict=True)
        ]
        gaps: list[Any] = [
            np.full(n - (name not in periodic), h)
            for name, h, n in zip(names, steps, nodes, strict=True)
        ]
        return Grid(batch, lines, gaps, kinds)
    lines, gaps = [], []
    for name, places, n in zip(names, coordinates, nodes, strict=True):
        line = checked_line(name, places, n, is_periodic=name in periodic)
        lines.append(line[:n])
        gaps.append(np.diff(line))
    return Grid(batch, lines, gaps, kinds)
