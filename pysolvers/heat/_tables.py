"""What the backend takes of the sides for the steps of a call.

A sweep is exact in its line, but what the boundary has to be at its intermediate level
follows from the scheme; the boundary values of the next time there would cost the second
order. Peaceman and Rachford's two sub-steps, added, say

    T* = (T + T+)/2 + K_y (T+ - T)/4,

and those of Douglas and Gunn D_x = A_y A_z (T+ - T), D_y = A_z (T+ - T). Along a side whose value
is given, K_y has the inflow of the sides that are fluxes at its ends. Along a side that is a flux
f, it is 0 at an end on another such side: with B the conditions of both sides, the inflow there is
B_y f = B_x B_y T, so that K_y f = -dt/2 k f_yy has no term in 1/h. Without this inflow the error of
the boundary values would be of order dt^2/h at the corner, and that of T of order dt^2 log(1/h).
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._solver.clock import Segment
from ._sides import PERIODIC, Grid, Side

Array = NDArray[np.float64]
Places = tuple[int, int, int]  # start, steps between levels and between nodes

_NOWHERE: Places = (-1, 0, 0)


class SideTables:
    """Tables of levels and sweeps of all sides, one after the other in one array.

    Parameters
    ----------
    grid : Grid
        The nodes.
    sides : dict of str to Side
        By name.
    is_delta : bool
        Whether sweeps solve for differences, as those of Douglas and Gunn do.
    steps : int
        Steps that a call makes at most.
    """

    def __init__(self, grid: Grid, sides: dict[str, Side], is_delta: bool, steps: int) -> None:
        self._grid, self._is_delta, self._steps = grid, is_delta, steps
        self._sides = list(sides.values())
        self._fluxes = [side for side in self._sides if side.kind == "flux"]
        self._given = [side for side in self._sides if side.kind != PERIODIC]
        #: Whether they change with time.
        self.varies = any(side.varies for side in self._given)
        self.size = 0
        self._places = [self._place(side) for side in self._sides]
        # What the last call of `arguments` was for, and returned.
        self._last: tuple[Segment | None, tuple[int, int], tuple[Any, ...]] = (None, (0, 0), ())

    def fill(self, first: int, count: int) -> Array:
        """Return the tables for steps `first` to `first + count - 1`."""
        values = np.zeros(self.size)
        times = [
            self._grid.clock.segment.at(first + s) for s in range(count + 1 if self.varies else 1)
        ]
        levels = {side: [side.level(time) for time in times] for side in self._given}
        for side, (level, sweep) in zip(self._sides, self._places, strict=True):
            if side.kind == PERIODIC:
                continue
            for s, found in enumerate(levels[side]):
                if s == 0 or level[1]:
                    _put(values, level, s, found)
            if sweep not in (level, _NOWHERE) and not self._sweep_varies(side):
                _put(values, sweep, 0, levels[side][0] / 2)
        for s in range(count if self.varies else 0):
            self._fill_sweeps(values, s, {side: (v[s], v[s + 1]) for side, v in levels.items()})
        return values

    def level_of(self, side: Side) -> slice:
        """Return where the value or the inflow of a side lies that does not change with time."""
        start, _, node_step = self._places[self._sides.index(side)][0]
        return slice(start, start + (prod(side.shape) if node_step else 1))

    def arguments(self, kinds: dict[str, int], *, first: int = 0, row: int = 0) -> tuple[Any, ...]:
        """Return all sides as the backend takes them.

        Parameters
        ----------
        kinds : dict of str to int
            The codes of the backend.
        first : int
            Number of the first step, in the tables.
        row : int
            First row of the field, along its first axis.
        """
        segment, begin = self._grid.clock.segment, (first, row)
        if self._last[0] is not segment or self._last[1] != begin:
            found = [
                (kinds[side.kind], side.exchange, *(self._moved(side, p, *begin) for p in places))
                for side, places in zip(self._sides, self._places, strict=True)
            ]
            self._last = segment, begin, tuple(found)
        return self._last[2]

    def _moved(self, side: Side, places: Places, first: int, row: int) -> Places:
        """Return the places from a step and a row on."""
        start, level_step, node_step = places
        if row and side.axis < self._grid.axes - 1:
            start += row * prod(side.shape[1:]) * node_step
        return start + first * level_step, level_step, node_step

    def _sweep_varies(self, side: Side) -> bool:
        """Return whether sweeps take a value of their own at a side in each step."""
        return side.varies or any(other.varies and other.axis > side.axis for other in self._fluxes)

    def _place(self, side: Side) -> tuple[Places, Places]:
        """Reserve room for what a side prescribes: its level, and what its sweep takes."""
        if side.kind == PERIODIC:
            return _NOWHERE, _NOWHERE
        level = self._reserve(side, side.varies, side.is_uniform)
        if self._sweep_varies(side):
            return level, self._reserve(side, True, False)
        if self._is_delta:
            return level, _NOWHERE
        return level, level if side.kind == "value" else self._reserve(side, False, side.is_uniform)

    def _reserve(self, side: Side, varies: bool, is_uniform: bool) -> Places:
        """Reserve room for a value for each node or for all, in each step or in all steps."""
        nodes = 1 if is_uniform else prod(side.shape)
        start = self.size
        self.size += nodes * (self._steps + 1 if varies else 1)
        return start, nodes if varies else 0, 0 if is_uniform else 1

    def _fill_sweeps(self, values: Array, s: int, levels: dict[Side, tuple[Array, Array]]) -> None:
        """Write what the sweeps of step s take, from the levels before and after it."""
        if self._is_delta:
            sweeps = self.differences(levels)
        else:
            sweeps = {side: self._intermediate(side, *levels[side], levels) for side in levels}
        for side, (_, sweep) in zip(self._sides, self._places, strict=True):
            if side.kind != PERIODIC and self._sweep_varies(side):
                _put(values, sweep, s, sweeps[side])

    def changes(self, before: dict[Side, Array], after: dict[Side, Array]) -> dict[Side, Array]:
        """Return what `HeatOperators` take of the sides, from their levels at both times."""
        found = self.differences({side: (before[side], after[side]) for side in before})
        return {side: d if side.kind == "value" else 2 * d for side, d in found.items()}

    def differences(self, levels: dict[Side, tuple[Array, Array]]) -> dict[Side, Array]:
        """Return Douglas and Gunn's differences at the sides, from their levels at both times."""
        sweeps: dict[Side, Array] = {}
        for side in sorted(levels, key=lambda side: -side.axis):
            before, after = levels[side]
            sweeps[side] = self._difference(side, after - before, sweeps)
        return sweeps

    def _intermediate(
        self, side: Side, before: Array, after: Array, levels: dict[Side, tuple[Array, Array]]
    ) -> Array:
        """Peaceman and Rachford's T* or half an inflow; after the second sweep, T+."""
        found = after
        if side.axis == 0:
            found = (before + after) / 2 + self._k_times(side, 1, after - before) / 4
            if side.kind == "value":
                for other in self._fluxes:
                    if other.axis == 1:
                        change = levels[other][1] - levels[other][0]
                        side.edge(found, other)[...] -= other.edge(change, side) / 4
        return found if side.kind == "value" else found / 2

    def _difference(self, side: Side, change: Array, sweeps: dict[Side, Array]) -> Array:
        """Douglas and Gunn's difference at a side, or what half an inflow makes of it."""
        found = change if side.kind == "value" else change / 2
        for axis in range(self._grid.axes - 1, side.axis, -1):
            found = found + self._k_times(side, axis, found) / 2
            for other in self._fluxes if side.kind == "value" else ():
                if other.axis == axis:
                    side.edge(found, other)[...] -= other.edge(sweeps[other], side)
        return found

    def _k_times(self, side: Side, axis: int, values: Array) -> Array:
        """K along an axis of the side, without inflow.

        0 where values are given, and for a side that is a flux where another one begins.
        """
        place = side.place_of(axis)
        v = np.moveaxis(values, place, -1)
        k = None if self._grid.k is None else np.moveaxis(side.of(self._grid.k), place, -1)
        ends = [other for other in self._sides if other.axis == axis]
        if ends[0].kind == PERIODIC:
            v = np.concatenate([v, v[..., :1]], -1)
            k = None if k is None else np.concatenate([k, k[..., :1]], -1)
        flow = self._grid.pair_ratio(axis) * np.diff(v)
        if k is not None:
            flow = flow * 2 * k[..., 1:] * k[..., :-1] / (k[..., 1:] + k[..., :-1])
        found = np.zeros_like(values)
        out = np.moveaxis(found, place, -1)
        if ends[0].kind == PERIODIC:
            out[...] = (np.roll(flow, 1, -1) - flow) * self._grid.row_factors(axis, ends)
            if self._grid.relative is not None:
                found /= side.of(self._grid.relative)
            return found
        out[..., 1:-1] = flow[..., :-1] - flow[..., 1:]
        has_ends = [end for end in ends if end.kind == "flux" and side.kind == "value"]
        for end in has_ends:
            out[..., end.index] = (1 if end.index else -1) * flow[..., end.index]
        out *= self._grid.row_factors(axis, ends)
        if self._grid.relative is not None:
            found /= side.of(self._grid.relative)
        for end in has_ends:
            exchange = end.exchange
            if np.ndim(exchange):
                exchange = end.edge(exchange, side)
            out[..., end.index] += exchange * v[..., end.index]
        return found


def _put(values: Array, places: Places, step: int, found: Array) -> None:
    """Write one level of a table."""
    start = places[0] + step * places[1]
    if places[2] == 0:
        values[start] = found.flat[0]
    else:
        values[start : start + found.size] = found.ravel()
