"""Implicit steps that are not split along the axes, for a group of ranks.

The equations are solved for rows of the field, all nodes at one place along its first axis, which
are divided over the ranks (_row_levels.py); if the field is cut along another axis, T is exchanged
for rows before the first step, and back after each one. Each rank makes the step of the whole field
if it has few nodes, and on devices. In both ways the bits are those of one process.

T stays where the equations are solved. A rank that makes the step of the whole field gathers T
through the memory of the hosts before the first step, and after steps of alternating directions; a
step then exchanges no nodes. On a device each rank needs the memory of one process for the whole
field, and a step takes the time of one device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data import NodeData
from .._runtime.fields import DeviceFields, Fields, make_fields
from ..distributed import Group, Slab
from ..distributed._group import Agreement
from ._levels import Levels
from ._row_levels import RowLevels, is_divided
from ._rows import Rows
from ._settings import HeatSettings
from ._sides import PERIODIC, Grid, Side
from ._unsplit import Unsplit
from ._unsplit_device import DeviceUnsplit

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


class _Problem(NamedTuple):
    """The nodes that a rank solves for, the sides by name, and the source there."""

    grid: Grid
    sides: Mapping[str, Side]
    source: NodeData | None


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
        self._settings, self._sides = settings, sides
        self._grid, self._own, self._given = copy(whole), own, source
        shape = settings.shape
        self._parts = self._divided(self._axis)
        rows = self._divided(0) if shape[0] >= group.size else []
        self._rows: Rows | None = None  # of the ranks; None if all of them have all
        if self._divides(rows):
            wraps = sides["xyz"[whole.axes - 1] + "-"].kind == PERIODIC
            self._rows = Rows(group, _OPERATION, [0, *(part.stop for part in rows)], wraps)
        self._recent: Sequence[Array] = ()
        self._known: Unsplit | None = None
        self._problem: _Problem | None = None
        # T where it is solved for: after the last step that was taken, and after one that was made.
        self._field = self._next = np.empty(0)
        self._t: Array | None = None  # of this rank; None if it is to be found
        #: Iterations of the last step.
        self.iterations = 0
        #: Kernel and threads of the last step.
        self.run_by: dict[str, Any] = {"kernel": "", "threads": 0}
        #: Whether all equations of the last step were solved to the tolerance.
        self.converged = True
        #: Whether T is finite on all ranks after the last step.
        self.is_finite = True

    @property
    def t(self) -> Array:
        """T of this rank after the last step that was taken, to be read."""
        assert self._t is not None
        return self._t

    def separate(self) -> UnsplitSlab:
        """Return a solver of the same problem whose calls do not change this one."""
        other = copy(self)
        other._known = None
        return other

    def step(self, own: Array | None, first: int, *, is_fresh: bool, follows_start: bool) -> None:
        """Make step `first`; `take` goes on from it.

        Parameters
        ----------
        own : array or None
            T of this rank; None if it is `t`.
        first : int
            Number of steps before.
        is_fresh : bool
            Whether T was not made by the step before this one.
        follows_start : bool
            Whether the step before was a damped start.
        """
        solver, field = self._begun(own, first)
        recent = () if is_fresh else self._recent
        with self._agreed() as agreed:
            field, self._recent = solver.step(field, recent, first, follows_start=follows_start)
            facts = self._facts(solver, field, agreed)
        self._ended(solver, field, facts, agreed)

    def start(self, own: Array | None) -> None:
        """Make the first step, of two half-steps; `take` goes on from it. `own` as of `step`."""
        solver, field = self._begun(own, 0)
        with self._agreed() as agreed:
            field = solver.start(field)
            facts = self._facts(solver, field, agreed)
        self._ended(solver, field, facts, agreed)

    def take(self) -> None:
        """Go on from T after the last step; collective."""
        self._field = self._next
        self._t = self._part_of(self._field)

    def steady(
        self, own: Array | None, time: float, rtol: float, most: int
    ) -> tuple[Array, tuple[float, float]]:
        """Return T of this rank in the steady state, and the balance, as `Unsplit.steady`.

        `own` as of `step`.
        """
        solver, field = self._begun(own, time)
        with self._agreed() as agreed:
            field, balance = solver.steady(field, time, rtol, most)
            facts = self._facts(solver, field, agreed)
        self._ended(solver, field, facts, agreed)
        return self._part_of(field), balance

    def _divides(self, rows: Sequence[slice]) -> bool:
        """Return whether each rank has these rows, not all nodes."""
        sizes = [part.stop - part.start for part in rows]
        return bool(sizes) and is_divided(self._settings.shape, sizes, is_first=True)

    def _divided(self, axis: int) -> list[slice]:
        """Return the nodes of each rank, if an axis is divided over the ranks."""
        size, nodes = self._group.size, self._settings.shape[axis]
        return [Slab(axis).part(nodes, rank, size) for rank in range(size)]

    def _begun(self, own: Array | None, place: float) -> tuple[Unsplit, Array]:
        """Return the solver, and T where it solves."""
        with self._group.agreement(_OPERATION) as agreed:
            agreed.same = {"dt": self._grid.dt, "steps and time": place}
        if self._problem is None:
            self._problem = self._gathered()
        if self._known is None:
            self._known = self._made(self._problem)
        return self._known, self._field if own is None else self._held(self._moved(own))

    def _gathered(self) -> _Problem:
        """Return the problem of the nodes that this rank solves for."""
        grid, own, source, rows = self._grid, self._own, self._given, self._rows
        grid.diffusivity = own.diffusivity
        grid.k = None if own.k is None else self._moved(own.k)
        if source is not None and not callable(source) and np.ndim(source):
            values = np.broadcast_to(np.asarray(source, np.float64), own.nodes[::-1])
            source = self._moved(values)
        sides, axis = self._sides, grid.axes - 1
        if rows is not None:
            sides = {name: _SideOfRows(side, rows, axis) for name, side in sides.items()}
            grid.nodes = (*self._settings.shape[:0:-1], rows.stop - rows.start)
            grid.numbers = {axis: np.arange(rows.start, rows.stop)}
        data = None
        with self._group.agreement(_OPERATION):
            if source is not None:
                data = NodeData("source", source, *grid.places(range(grid.axes)))
        return _Problem(grid, sides, data)

    def _made(self, problem: _Problem) -> Unsplit:
        """Return a solver."""
        levels: Callable[..., Levels] = Levels
        if self._rows is not None:
            levels = partial(RowLevels, self._rows, self._settings.shape[::-1])
        return Unsplit(self._settings, *problem, levels)

    def _held(self, field: Array) -> Array:
        """Return T of the host where it is solved for."""
        return field

    def _agreed(self) -> AbstractContextManager[Agreement | None]:
        """Return the context of a step, after which ranks that have all nodes compare errors."""
        return nullcontext() if self._rows is not None else self._group.agreement(_OPERATION)

    def _facts(self, solver: Unsplit, field: Array, agreed: Agreement | None) -> tuple[int, ...]:
        """Return what the ranks compare after a step: iterations, convergence, finiteness."""
        facts = solver.iterations, int(solver.converged), int(solver.is_finite(field))
        if agreed is not None:
            agreed.own = facts
        return facts

    def _ended(
        self, solver: Unsplit, field: Array, facts: tuple[int, ...], agreed: Agreement | None
    ) -> None:
        """Take note of a step. Devices that are not alike can differ in the iterations."""
        if agreed is None:
            found = self._group.allgather(_OPERATION, np.array(facts))
        else:
            found = np.array(agreed.found)
        self.iterations = int(found[:, 0].max())
        self.converged, self.is_finite = bool(found[:, 1].all()), bool(found[:, 2].all())
        self.run_by, self._next = solver.run_by, field

    def _part_of(self, field: Array) -> Array:
        """Return T of this rank from that of its rows or of all nodes; collective."""
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


class DeviceUnsplitSlab(UnsplitSlab):
    """Steps of the equation that is not split, of which each rank makes all on its device.

    Parameters and functions are those of `UnsplitSlab`.
    """

    _store: DeviceFields | None = None  # T of all nodes, after the last step that was taken

    @property
    def t(self) -> Array:
        if self._t is None:
            at = (slice(None),) * self._axis
            self._t = self._fields.part("t", (*at, self._parts[self._group.rank]))
        return self._t

    def take(self) -> None:
        store = self._fields
        store.write("t", (slice(None),) * self._next.ndim, self._next)
        store.wait()
        self._field, self._t = store.operand("t"), None

    def _divides(self, rows: Sequence[slice]) -> bool:
        return False

    @property
    def _fields(self) -> DeviceFields:
        assert self._store is not None
        return self._store

    def _made(self, problem: _Problem) -> Unsplit:
        s = self._settings
        with self._group.agreement(_OPERATION):  # a rank can have too little memory
            if self._store is None:
                store: Fields = make_fields({"t": (s.shape, s.dtype)}, s.device, _OPERATION)
                assert isinstance(store, DeviceFields)
                self._store = store
            return DeviceUnsplit(s, *problem, self._store)

    def _held(self, field: Array) -> Array:
        self._fields.set("t", field)
        return self._fields.operand("t", changes=False)


def unsplit_slab_for(
    settings: HeatSettings,
    whole: Grid,
    own: Grid,
    sides: Mapping[str, Side],
    source: Any,
    group: Group,
    split: Slab,
) -> UnsplitSlab:
    """Return the steps of the equation that is not split; parameters as of `UnsplitSlab`."""
    kind = UnsplitSlab if settings.backend.NAME == "cpu" else DeviceUnsplitSlab
    return kind(settings, whole, own, sides, source, group, split)
