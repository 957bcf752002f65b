r"""The parts of the equation of heat, for steps by array operations.

Steps of Douglas and Gunn, by the driver of all schemes that split (_split/schemes.py): with one or
two axes they are those of Crank and Nicolson, and of Peaceman and Rachford, up to rounding errors.
F is the divergence of a flux between nodes, so that what flows out of a node flows into the next
one, and a constant is kept bit for bit. What the sides are at the levels of the sweeps is that of
_tables.py.

For nodes that the kernels of alternating directions cannot step: stretched coordinates, heat
capacities that vary, holes of a given temperature, and slabs whose neighbours exchange one node.
The kernels (`HeatState`) make the same steps in 4 words per node and two axes, these in about 60.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data import NodeData
from .._split.lines import Weights
from ._damped_start import FieldOps, Rows, flux_divergence, line_rows, pair_ratios, solve_axis
from ._sides import PERIODIC, Grid, Side

Array = NDArray[np.float64]


class HeatLevel(NamedTuple):
    """A time, and the values and inflows of the sides there; no values that the driver sets."""

    time: float
    sides: dict[Side, Array]
    values: tuple[Any, ...] = ()


class HeatOperators:
    """The parts for steps of one length and of one conductivity.

    Parameters
    ----------
    grid : Grid
        The nodes.
    sides : dict of str to Side
        All sides, by name.
    source : object or None
        The source: its values ``at(time)``.
    changes : callable
        As `SideTables.changes`.
    levels : callable
        Returns values and inflows of the sides at a time.
    ops : FieldOps
        How the field is held.
    """

    has_explicit = False
    adds_with_rate = False

    def __init__(
        self,
        grid: Grid,
        sides: dict[str, Side],
        source: NodeData | Any,
        changes: Callable[[dict[Side, Array], dict[Side, Array]], dict[Side, Array]],
        levels: Callable[[float], dict[Side, Array]],
        ops: FieldOps,
    ) -> None:
        self._grid, self._sides, self._source = grid, list(sides.values()), source
        self._changes_of, self._levels, self._ops = changes, levels, ops
        self._dt, self._k, self.axes = grid.dt, grid.k, grid.axes
        self._changes: dict[Side, Array] = {}  # of the step
        wraps = [
            any(side.axis == axis and side.kind == PERIODIC for side in self._sides)
            for axis in range(grid.axes)
        ]
        # For each axis, the ratios of pairs of neighbours, and the rows.
        self._pairs = [pair_ratios(grid, axis, wrap) for axis, wrap in enumerate(wraps)]
        self._rows = [
            Rows(*(np.ascontiguousarray(each) for each in line_rows(grid, self._sides, axis)))
            for axis in range(grid.axes)
        ]

    def are_those_of(self, grid: Grid) -> bool:
        """Return whether steps of a grid have these rows."""
        return self._dt == grid.dt and self._k is grid.k

    def zeros(self) -> Array:
        """Return a field of zeros."""
        return np.zeros(self._grid.nodes[::-1])

    def level(self, time: float, before: HeatLevel | None = None) -> HeatLevel:
        """Return the level at a time."""
        del before
        return HeatLevel(time, self._levels(time))

    def combine(
        self, level: HeatLevel, u: Array, d: Array | None, outs: Sequence[tuple[Array, Weights]]
    ) -> None:
        """Set fields to linear combinations of their values, F of u + d, d and u.

        F has the source in the middle of the step that begins at the level.
        """
        rate = None
        if any(weights.lines for _, weights in outs):
            y = u if d is None else u + d
            rate = flux_divergence(self._grid, self._sides, y, level.sides, self._pairs)
            if self._source is not None:
                rate += self._dt * self._source.at(level.time + self._dt / 2)
        for out, weights in outs:
            if weights.own != 1:
                out[...] = weights.own * out if weights.own else 0.0
            factors = weights.lines / self._dt, weights.change, weights.base
            for factor, field in zip(factors, (rate, d, u), strict=True):
                if factor and field is not None:
                    out += field if factor == 1 else factor * field

    def add_change(
        self, old: HeatLevel, new: HeatLevel, axis: int, h: float, u: Array, out: Array
    ) -> None:
        """Take note of the changes of the sides, which the solves along the axes set or add."""
        del h, u, out
        if axis == 0:
            self._changes = self._changes_of(old.sides, new.sides)

    def solve(
        self, level: HeatLevel, axis: int, h: float, field: Array, *, is_clear: bool = False
    ) -> None:
        """Solve with 1 + X along an axis, in place."""
        del level, h, is_clear
        about = self._grid, self._sides, axis, self._changes, field, self._ops
        solve_axis(*about, rows=self._rows[axis])

    def keeps_values(self, old: HeatLevel, new: HeatLevel) -> bool:
        """Return False: the solves set given values of differences, which are 0 or not."""
        del old, new
        return False

    def add(self, u: Array, d: Array, out: Array, own: float = 0.0) -> None:
        """Set a field to u + d + own times its values at all nodes."""
        out[...] = own * out + d + u if own else d + u

    def place(self, level: HeatLevel, u: Array) -> None:
        """Set the given values; at edges those of the later axis remain."""
        for side in self._sides:
            if side.kind == "value":
                side.of(u)[...] = level.sides[side]
