"""Nodes of a box, with axes of a batch before those of space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._axis import DIRICHLET, NEUMANN, GridAxis, even_step
from .._boundary import PERIODIC
from .._checks import require
from .._domain import AXES, checked_line, origin_and_step

Array = NDArray[np.float64]
Index = tuple[Any, ...]

_LEAST = 3  # nodes along an axis
_ENDS = {PERIODIC: PERIODIC, "value": DIRICHLET}
_LEAST_GAP = 1e-150  # its square is a number


class Grid:
    """Nodes of a box; axes are counted from x on, which is the last axis of an array.

    Parameters
    ----------
    batch : tuple of int
        Axes before those of space.
    described : sequence of GridAxis
        The axes of space.
    kinds : mapping of str to str
        Kind of each side by its name.
    """

    def __init__(
        self,
        batch: tuple[int, ...],
        described: Sequence[GridAxis],
        kinds: Mapping[str, str],
    ) -> None:
        self.batch, self.described = batch, tuple(described)
        #: Coordinates of the nodes along each axis, and distances of neighbours: one less than
        #: nodes, or as many on a periodic axis.
        self.lines = tuple(axis.places for axis in described)
        self.gaps = tuple(axis.gaps for axis in described)
        self.axes = len(self.lines)
        self.names = AXES[: self.axes]
        self.shape = tuple(line.size for line in reversed(self.lines))
        #: Shape of a field, and its number of axes.
        self.nodes = (*batch, *self.shape)
        self.ndim = len(self.nodes)
        self.kinds = dict(kinds)
        self.periodic = tuple(axis.is_periodic for axis in described)
        for name, gap in zip(self.names, self.gaps, strict=True):
            require(
                bool(gap.min() >= _LEAST_GAP and gap.max() <= 1 / _LEAST_GAP),
                f"the distance of nodes along {name} must be between {_LEAST_GAP:g} and "
                f"{1 / _LEAST_GAP:g}, choose another unit of length",
                float(gap.min()),
            )
        #: Nodes along each axis that have no given value.
        self.free = tuple(axis.unknowns for axis in described)
        #: Number of these along each axis, x along the last one.
        self.shape_free = tuple(each.stop - each.start for each in reversed(self.free))
        #: All nodes that have no given value.
        self.inner = self.index({})
        #: The lines along each axis whose other coordinates have no given value.
        self.through = tuple(self.index({axis: slice(None)}) for axis in range(self.axes))

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

    def end_gap(self, axis: int, end: int) -> float:
        """Return the distance of the nodes of a side from their neighbours."""
        return float(self.gaps[axis][-end])

    @property
    def spacing(self) -> tuple[float, ...]:
        """Mean distance of the nodes along each axis."""
        return tuple(axis.spacing for axis in self.described)

    @property
    def is_even(self) -> bool:
        """Whether the nodes along all axes are evenly spaced."""
        return all(axis.step is not None for axis in self.described)


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
    steps: Sequence[float | None]
    if coordinates is None:
        origin, steps = origin_and_step(nodes, spacing, extent, periodic)
        edges: list[Any] = [
            o + h * np.arange(n + (name in periodic))
            for name, o, h, n in zip(names, origin, steps, nodes, strict=True)
        ]
    else:
        edges = [
            checked_line(name, places, n, is_periodic=name in periodic)
            for name, places, n in zip(names, coordinates, nodes, strict=True)
        ]
        steps = [even_step(places) for places in edges]
    axes = []
    for name, n, places, step in zip(names, nodes, edges, steps, strict=True):
        ends = tuple(_ENDS.get(kinds[name + sign], NEUMANN) for sign in "-+")
        axes.append(GridAxis(name, n, True, ends, places, step))  # type: ignore[arg-type]
    return Grid(batch, axes, kinds)
