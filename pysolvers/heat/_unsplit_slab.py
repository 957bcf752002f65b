"""Implicit steps that are not split along the axes, for a group of ranks.

On hosts the equations are solved for rows of the field, all nodes at one place along its first
axis, which are divided over the ranks (_row_levels.py); if the field is cut along another axis, T
is exchanged for rows before the first step, and back after each one. Each rank makes the step of
the whole field if it has few nodes. In both cases the bits are those of one process.

On devices each rank solves them at its nodes and at a halo (_unsplit_halo.py), up to the tolerance
of one process. Each rank makes the step of the whole field if it has few nodes, if the halo would
be deeper than the nodes of a rank, or save little, and for a steady state, which is not local.

T stays where the equations are solved. It is gathered, or spread to the halo, through the memory of
the hosts: before the first step, after steps of alternating directions, and for steps that need a
deeper halo. A step of the whole field then exchanges no nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial
from math import inf, isinf, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data import NodeData
from .._runtime.fields import DeviceFields, Fields, Index, make_fields
from ..distributed import Group, Slab
from ..distributed._group import Agreement
from ._levels import Levels
from ._row_levels import RowLevels, is_divided
from ._rows import Rows
from ._settings import HeatSettings
from ._sides import PERIODIC, Grid, Side
from ._split import Cut, SplitState
from ._unsplit import GAMMA, Unsplit
from ._unsplit_device import DeviceUnsplit
from ._unsplit_halo import SENT, HaloUnsplit, Whole, depth_for

Array = NDArray[Any]

_OPERATION = "HeatADI"
_START = 0.5  # t of a half-step of the start, in multiples of dt

# Nodes up to which each device makes the step of the whole field: a stage with a halo takes two
# barriers of the ranks and an exchange more, some 0.3 ms, and an iteration of a million nodes takes
# 0.3 ms, a third of which are latencies (an estimate for an H200).
_HELD_BY_ALL = 1 << 20
_SAVES = 0.9  # largest part of the nodes along the cut axis that a device holds with a halo
_KEPT = 1.5  # what is held is kept if it has at most so many times the nodes of the least one


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

    @property
    def exchange(self) -> str:
        """How the ranks exchange nodes: as `exchange` of a result."""
        return "none" if self._group.size == 1 else "host"

    def separate(self) -> UnsplitSlab:
        """Return a solver of the same problem whose calls do not change this one."""
        other = copy(self)
        other._known = None
        return other

    def step(
        self,
        own: Array | None,
        first: int,
        longest: float,
        *,
        is_fresh: bool,
        follows_start: bool,
    ) -> None:
        """Make step `first`; `take` goes on from it.

        Parameters
        ----------
        own : array or None
            T of this rank; None if it is `t`.
        first : int
            Number of steps before.
        longest : float
            Length of the steps, of which this one can be a shorter last one.
        is_fresh : bool
            Whether T was not made by the step before this one.
        follows_start : bool
            Whether the step before was a damped start.
        """
        solver, field = self._begun(own, first, GAMMA * self._stretch(longest))
        recent = () if is_fresh else self._recent
        with self._agreed() as agreed:
            field, recent = solver.step(field, recent, first, follows_start=follows_start)
            facts = self._facts(solver, field, agreed)
        self._recent = recent  # on all ranks, or on none after an error of one
        self._ended(solver, field, facts, agreed)

    def start(self, own: Array | None, longest: float) -> None:
        """Make the first step, of two half-steps; `take` goes on from it. Parameters: `step`."""
        solver, field = self._begun(own, 0, _START * self._stretch(longest))
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
        solver, field = self._begun(own, time, inf)
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

    def _begun(self, own: Array | None, when: float, share: float) -> tuple[Unsplit, Array]:
        """Return the solver of equations with t = share dt at most, and T where it solves.

        All ranks have the same `when`: the number of steps before, or the time of a steady state.
        """
        del share
        self._compare(when)
        if self._known is None:
            self._problem = self._gathered()
            self._known = self._made(self._problem)
        return self._known, self._field if own is None else self._moved(own)

    def _stretch(self, longest: float) -> float:
        """Return a length of steps, at least that of the next one, in multiples of this."""
        return max(1.0, longest / self._grid.dt)

    def _compare(self, when: float) -> None:
        """Raise unless all ranks make the same step; collective."""
        with self._group.agreement(_OPERATION) as agreed:
            agreed.same = {"dt": self._grid.dt, "steps or time": when}

    def _gathered(self) -> _Problem:
        """Return the problem of the nodes that this rank solves for."""
        grid, own, source, rows = self._grid, self._own, self._given, self._rows
        grid.diffusivity, grid.capacity = own.diffusivity, own.capacity
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
                data = grid.heating(source)
        return _Problem(grid, sides, data)

    def _made(self, problem: _Problem) -> Unsplit:
        """Return a solver."""
        levels: Callable[..., Levels] = Levels
        if self._rows is not None:
            levels = partial(RowLevels, self._rows, self._settings.shape[::-1])
        return Unsplit(self._settings, *problem, levels)

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


class _Held(NamedTuple):
    """What a device holds: its nodes, with a halo of this depth; 0 if these are all nodes."""

    depth: int
    solver: DeviceUnsplit
    store: DeviceFields
    own: Index  # the nodes of the rank
    spread: Callable[[Array], Array]  # returns T at the nodes that are held, from T of each rank


class DeviceUnsplitSlab(UnsplitSlab):
    """Steps of the equation that is not split, with fields on devices.

    Parameters
    ----------
    slab : SplitState
        The nodes of this rank.
    arguments
        As of `UnsplitSlab`.
    """

    def __init__(self, slab: SplitState, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._slab = slab
        self._held: _Held | None = None

    @property
    def t(self) -> Array:
        if self._t is None:
            assert self._held is not None
            self._t = self._held.store.part("t", self._held.own)
        return self._t

    @property
    def exchange(self) -> str:
        solver = None if self._held is None else self._held.solver
        return solver.link if isinstance(solver, HaloUnsplit) else "none"

    def separate(self) -> UnsplitSlab:
        other = copy(self)
        if self._held is not None:
            other._t = self.t
        other._held = None
        return other

    def take(self) -> None:
        assert self._held is not None
        store = self._held.store
        store.write("t", (slice(None),) * self._next.ndim, self._next)
        store.wait()
        self._t = None

    def _divides(self, rows: Sequence[slice]) -> bool:
        return False

    def _begun(self, own: Array | None, when: float, share: float) -> tuple[Unsplit, Array]:
        self._compare(when)
        depth = self._depth(share)
        if self._held is None or not self._is_enough(self._held.depth, depth):
            own = self.t if own is None else own
            self._held = None  # its memory is needed
            self._held = self._hold(depth)
            self._recent = ()
        held = self._held
        if own is not None:
            held.store.set("t", held.spread(own))
        return held.solver, held.store.operand("t", changes=False)

    def _depth(self, share: float) -> int:
        """Return the depth of the halo for equations with t = share dt; 0 for all nodes."""
        slab, shape = self._slab, self._settings.shape
        if self._group.size == 1 or isinf(share) or prod(shape) <= _HELD_BY_ALL:
            return 0
        depth = depth_for(share * slab.ratio, self._settings.dtype)
        is_worth = self._count(depth) <= _SAVES * shape[self._axis]
        return depth if depth <= slab.least and is_worth else 0

    def _count(self, depth: int) -> int:
        """Return how many nodes along the cut axis a device holds at most."""
        if depth == 0:
            return self._settings.shape[self._axis]
        return self._slab.most + self._slab.cuts * depth

    def _is_enough(self, known: int, wanted: int) -> bool:
        """Whether a halo is deep enough, and not much deeper than needed."""
        if known == wanted:
            return True
        is_deep = known == 0 or 0 < wanted < known
        return is_deep and self._count(known) <= _KEPT * self._count(wanted)

    def _hold(self, depth: int) -> _Held:
        """Return what the device holds; collective."""
        s, group = self._settings, self._group
        if depth:
            nodes = self._slab.extended(depth, Cut)
            shape = nodes.grid.nodes[::-1]
            store = self._fields(shape, "t", SENT)
            whole = Whole(self._grid, self._sides)
            solver = HaloUnsplit(s, nodes, store, group, self._axis, whole)
            spread = partial(self._slab.spread, ops=nodes.ops, grid=nodes.grid)
            return _Held(depth, solver, store, solver.own, spread)
        if self._problem is None:
            self._problem = self._gathered()
        store = self._fields(s.shape, "t")
        own = (*(slice(None),) * self._axis, self._parts[group.rank])
        return _Held(0, DeviceUnsplit(s, *self._problem, store), store, own, self._moved)

    def _fields(self, shape: tuple[int, ...], *names: str) -> DeviceFields:
        """Return fields on the device of each rank; collective."""
        s = self._settings
        with self._group.agreement(_OPERATION):  # a rank can have too little memory
            store: Fields = make_fields(
                dict.fromkeys(names, (shape, s.dtype)), s.device, _OPERATION
            )
            assert isinstance(store, DeviceFields)
            return store

    def _agreed(self) -> AbstractContextManager[Agreement | None]:
        is_whole = self._held is None or self._held.depth == 0
        return self._group.agreement(_OPERATION) if is_whole else nullcontext()


def unsplit_slab_for(
    settings: HeatSettings,
    slab: SplitState,
    whole: Grid,
    sides: Mapping[str, Side],
    source: Any,
    group: Group,
    split: Slab,
) -> UnsplitSlab:
    """Return the steps of the equation that is not split; parameters as of `UnsplitSlab`."""
    given = settings, whole, slab.own, sides, source, group, split
    return (
        UnsplitSlab(*given) if settings.backend.NAME == "cpu" else DeviceUnsplitSlab(slab, *given)
    )
