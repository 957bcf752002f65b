"""Implicit steps that are not split along the axes, for a group of ranks.

The equations are solved for rows of the field, all nodes at one place along its first axis, which
are divided over the ranks (_row_levels.py); if the field is cut along another axis, T is exchanged
for rows before a step, and back after it. Each rank makes the step of the whole field if it has few
nodes. In both ways the bits are those of one process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data import NodeData
from ..distributed import Group, Slab
from ._levels import Levels
from ._row_levels import RowLevels, is_divided
from ._rows import Rows
from ._settings import HeatSettings
from ._sides import PERIODIC, Grid, Side
from ._unsplit import Unsplit

Array = NDArray[Any]

_OPERATION = "HeatADI"


class _SideOfRows(Side):
    """A side, and of it the nodes of a rank.

    Parameters
    ----------
    side : Side
        All nodes.
    rows : Rows
        The rows of this rank.
    axis : int
        The axis through the rows.
    """

    def __init__(self, side: Side, rows: Rows, axis: int) -> None:
        self.__dict__.update(side.__dict__)
        self._rows, self._across = rows, axis

    def level(self, time: float) -> Array:
        values = super().level(time)
        if self.axis == self._across:
            return values
        return values[self._rows.start : self._rows.stop]

    def of(self, field: NDArray[Any]) -> NDArray[Any]:
        if self.axis != self._across:
            return super().of(field)
        at_end = self._rows.start == 0 if self.index == 0 else self._rows.stop == self._rows.count
        return field[self.index] if at_end else field[:0]


class UnsplitSlab:
    """Steps of the equation that is not split, for the part of a rank; all calls are collective.

    Parameters
    ----------
    settings : HeatSettings
        Of the whole field.
    whole, own : Grid
        All nodes, and those of this rank with their conductivity.
    sides : mapping
        All sides of the whole field, by name.
    source : Any
        The source as the caller gave it: an array is that of the part of this rank.
    group : Group
        The ranks.
    split : Slab
        The axis of the field that is cut.
    """

    def __init__(
        self,
        settings: HeatSettings,
        whole: Grid,
        own: Grid,
        sides: Mapping[str, Side],
        source: Any,
        group: Group,
        split: Slab,
    ) -> None:
        self._group, self._axis = group, split.of(whole.axes)
        nodes = settings.shape
        self._parts, rows = (
            [Slab(axis).part(nodes[axis], rank, group.size) for rank in range(group.size)]
            if nodes[axis] >= group.size
            else []
            for axis in (self._axis, 0)
        )
        self._rows: Rows | None = None  # of the ranks; None if all of them have all
        starts = [0, *(part.stop for part in rows)]
        if rows and is_divided(nodes, np.diff(starts).tolist(), is_first=True):
            wraps = sides["xyz"[whole.axes - 1] + "-"].kind == PERIODIC
            self._rows = Rows(group, _OPERATION, starts, wraps)
        self._settings, self._sides = settings, sides
        self._grid, self._own, self._given = copy(whole), own, source
        self._recent: Sequence[Array] = ()
        self._known: Unsplit | None = None
        #: Iterations of the last step.
        self.iterations = 0
        #: Kernel and threads of the last step.
        self.run_by: dict[str, Any] = {"kernel": "", "threads": 0}
        #: Whether all equations of the last step were solved to the tolerance.
        self.converged = True

    def separate(self) -> UnsplitSlab:
        """Return a solver of the same problem whose calls do not change this one."""
        other = copy(self)
        other._known = copy(self._known)
        return other

    def step(self, own: Array, first: int, *, is_fresh: bool, follows_start: bool) -> Array:
        """Return T of this rank after step `first`.

        Parameters
        ----------
        own : array
            T of this rank.
        first : int
            Number of steps before.
        is_fresh : bool
            Whether T was not made by the step before this one.
        follows_start : bool
            Whether the step before was a damped start.
        """
        solver, field = self._begun(own, first)
        recent = () if is_fresh else self._recent
        with self._agreed():
            field, self._recent = solver.step(field, recent, first, follows_start=follows_start)
        return self._ended(solver, field)

    def start(self, own: Array) -> Array:
        """Return T of this rank after the first step, made of two half-steps."""
        solver, field = self._begun(own, 0)
        with self._agreed():
            field = solver.start(field)
        return self._ended(solver, field)

    def steady(
        self, own: Array, time: float, rtol: float, most: int
    ) -> tuple[Array, tuple[float, float]]:
        """Return T of this rank in the steady state, and the balance, as `Unsplit.steady`."""
        solver, field = self._begun(own, time)
        with self._agreed():
            field, balance = solver.steady(field, time, rtol, most)
        return self._ended(solver, field), balance

    def _begun(self, own: Array, place: float) -> tuple[Unsplit, Array]:
        """Return the solver, and T where it solves."""
        with self._group.agreement(_OPERATION) as agreed:
            agreed.same = {"dt": self._grid.dt, "steps and time": place}
        if self._known is None:
            self._known = self._made()
        return self._known, self._moved(own)

    def _made(self) -> Unsplit:
        grid, own, source, rows = self._grid, self._own, self._given, self._rows
        grid.diffusivity = own.diffusivity
        grid.k = None if own.k is None else self._moved(own.k)
        if source is not None and not callable(source) and np.ndim(source):
            values = np.broadcast_to(np.asarray(source, np.float64), own.nodes[::-1])
            source = self._moved(values)
        levels: Callable[..., Levels] = Levels
        sides, axis = self._sides, grid.axes - 1
        if rows is not None:
            levels = partial(RowLevels, rows, self._settings.shape[::-1])
            sides = {name: _SideOfRows(side, rows, axis) for name, side in sides.items()}
            grid.nodes = (*self._settings.shape[:0:-1], rows.stop - rows.start)
            grid.numbers = {axis: np.arange(rows.start, rows.stop)}
        data = None
        with self._group.agreement(_OPERATION):
            if source is not None:
                data = NodeData("source", source, *grid.places(range(grid.axes)))
        return Unsplit(self._settings, grid, sides, data, levels)

    def _agreed(self) -> AbstractContextManager[Any]:
        """Return the context of a step, after which ranks that have all nodes compare errors."""
        return nullcontext() if self._rows is not None else self._group.agreement(_OPERATION)

    def _ended(self, solver: Unsplit, field: Array) -> Array:
        """Return T of this rank."""
        self.iterations, self.converged = solver.iterations, solver.converged
        self.run_by = solver.run_by
        part, axis = self._parts[self._group.rank], self._axis
        at = (slice(None),) * axis
        if self._rows is None:
            return field[(*at, part)].copy()
        if axis == 0:
            return field
        sends = {
            rank: np.ascontiguousarray(field[(*at, part)]) for rank, part in enumerate(self._parts)
        }
        shape = list(self._settings.shape)
        shape[axis] = part.stop - part.start
        own, starts = np.empty(shape, field.dtype), self._rows.starts
        found = {rank: own[starts[rank] : starts[rank + 1]] for rank in sends}
        self._group.exchange(_OPERATION, sends, found)
        return own

    def _moved(self, own: Array) -> Array:
        """Return an array of the rows of this rank, or of all nodes, from all parts."""
        rows, axis = self._rows, self._axis
        if rows is not None and axis == 0:
            return own
        own, ranks = np.ascontiguousarray(own), range(self._group.size)
        sends, count = dict.fromkeys(ranks, own), own.shape[0]
        if rows is not None:
            sends = {q: own[rows.starts[q] : rows.starts[q + 1]] for q in ranks}
            count = rows.stop - rows.start
        shapes = [[count, *own.shape[1:]] for _ in ranks]
        for shape, part in zip(shapes, self._parts, strict=True):
            shape[axis] = part.stop - part.start
        found = {q: np.empty(shape, own.dtype) for q, shape in zip(ranks, shapes, strict=True)}
        self._group.exchange(_OPERATION, sends, found)
        return np.concatenate(list(found.values()), axis)
