r"""Heat conduction on slabs: each rank of a group steps its part of the nodes.

Each rank also has a halo of nodes of its neighbours at every cut. If the data of a step spread
over few nodes, that is for moderate k dt/h^2 along the cut axis, the halo is so deep that the
kernels can make several steps before it is exchanged: _halo.py. If the first axis of the field is
cut, along which the last sweep goes, the kernels step with a halo of one node, and what the other
ranks change is added: _cut_lines.py. The cheaper of these methods is taken.

On devices, the halo travels between them, or through the memory of the host. Steps for
which neither is possible raise an error there.

Otherwise the halo has one node, and a step is Douglas and Gunn's, in differences; with two axes it
has the solution of Peaceman and Rachford's step up to rounding errors:

    A_x D_1 = dt (div k grad T + q),   A_y D_2 = D_1,   A_z D_3 = D_2,   T <- T + D_3.

Lines along the cut axis are solved by `solve_tridiagonal` with the group, and the halo is
exchanged after it; every other operation is that of a whole field. Values and inflows of the sides
are those of _tables.py.

Operations and words per node and step of it, two axes: 45 operations and about 60 words, by
array operations; 2 exchanges of a halo and one of 2 numbers per line. Stability, source:
_damped_start.py and `HeatADI`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._boundary import Dirichlet, Neumann
from .._checks import require
from .._data import NodeData
from .._runtime.backends import parse_device, require_device
from .._solver.clock import Segment
from .._split.schemes import SplitSteps
from ..distributed import Group, Slab
from ..distributed._halo import faces_of, refresh_halo
from ..distributed._links import link_name
from ..tridiagonal import solve_tridiagonal
from ._cut_lines import CutLines
from ._damped_start import FieldOps, damped_step, needs_damping
from ._halo import COSTS, HeatHalo, Plan, Stage, cost_of_cuts, depth_for, plan_halo
from ._operators import HeatOperators
from ._settings import HeatSettings
from ._sides import PERIODIC, Grid, Side
from ._state import HeatState
from ._tables import SideTables

Array = NDArray[Any]

_OPERATION = "HeatADI"
_ALL = 1 << 62  # steps between two exchanges of one rank
_KEPT = 1.1  # a run for longer steps is kept if its cost is at most so many times the least one


class Cut(Side):
    """The outer nodes at a cut: they belong to another rank, and are nowhere changed."""

    def __init__(self, name: str, grid: Grid) -> None:
        super().__init__(name, Dirichlet(0.0), grid)
        self.kind = "cut"


class SlabOps(FieldOps):
    """A field of which this rank holds a slab, and a halo.

    Parameters
    ----------
    group : Group
        The ranks.
    axis : int
        Axis of the field that is cut.
    halo : (int, int)
        Nodes of the rank before and of the next one along the axis; those that are not 0 are equal
        on all ranks.
    periodic : bool
        Whether the cut axis is periodic.
    device, threads
        As in `solve_tridiagonal`.
    """

    def __init__(
        self,
        group: Group,
        axis: int,
        halo: tuple[int, int],
        *,
        periodic: bool,
        device: str | None,
        threads: int | None,
    ) -> None:
        super().__init__(device, threads)
        self._group, self._axis, self._periodic = group, axis, periodic
        #: Nodes of the rank before and of the next one.
        self.halo = halo

    def own(self, field: Array, axis: int | None = None) -> Array:
        """Return the nodes of this rank: a view."""
        axis = self._axis if axis is None else axis
        first, last = self.halo
        return field[(slice(None),) * axis + (slice(first, field.shape[axis] - last),)]

    def refresh(self, field: Array, axis: int | None = None) -> None:
        """Exchange the halo; `axis` is the cut axis of the field."""
        axis = self._axis if axis is None else axis
        faces = faces_of(self._group, axis, field.shape[axis], self.halo)
        refresh_halo(self._group, _OPERATION, faces, field)

    def largest(self, field: Array) -> float:
        return self.largest_own(self.own(field))

    def largest_own(self, own: Array) -> float:
        """Return the largest magnitude of a field whose nodes of this rank are given."""
        found = np.array(super().largest(own))
        return float(self._group.allgather(_OPERATION, found).max())

    def total(self, field: Array) -> float:
        found = np.array(super().total(self.own(field)))
        return float(self._group.allgather(_OPERATION, found).sum())

    def range(self, fields: Sequence[Array]) -> tuple[float, float]:
        found = np.array(super().range(fields))
        low, high = self._group.allgather(_OPERATION, found).T
        return float(low.min()), float(high.max())

    def solve(
        self, lower: Array, diag: Array, upper: Array, field: Array, axis: int, *, periodic: bool
    ) -> None:
        if axis != self._axis:
            super().solve(lower, diag, upper, field, axis, periodic=periodic)
            return
        own = self.own(field)
        own[...] = solve_tridiagonal(
            self.own(lower),
            self.own(diag),
            self.own(upper),
            own,
            axis=axis,
            periodic=self._periodic,
            device=self._device,
            threads=self._threads,
            group=self._group,
            split=Slab(axis),
        )
        self.refresh(field)


class Extended(NamedTuple):
    """The nodes of a rank with a halo, the sides by name, and the source there."""

    ops: SlabOps
    grid: Grid
    sides: dict[str, Side]
    source: NodeData | None


class SplitState:
    """T on the nodes of this rank.

    Parameters
    ----------
    settings : HeatSettings
        The method, of the whole field.
    whole : Grid
        All nodes.
    boundary : dict of str to condition
        What each side prescribes, by its name.
    group : Group
        The ranks.
    split : Slab
        The axis of the field that is cut.
    """

    def __init__(
        self,
        settings: HeatSettings,
        whole: Grid,
        boundary: dict[str, Any],
        group: Group,
        split: Slab,
    ) -> None:
        require(
            not settings.is_paper,
            "a HeatADI of pysolvers.papers runs in one process: group must be None",
            group,
        )
        name, ordinal = parse_device(settings.device)
        if name != "cpu":
            require_device(ordinal)
        self._settings, self._boundary, self.group = settings, boundary, group
        self._axis = split.of(whole.axes)
        self._across = whole.axes - 1 - self._axis  # the cut axis, counted from x on
        self._name = settings.axes[self._across]
        self._part = part = split.part(settings.shape[self._axis], group.rank, group.size)
        self._is_periodic = boundary[self._name + "-"] == PERIODIC
        cut = group.size > 1
        self._neighbours = (
            int(cut and (self._is_periodic or group.rank > 0)),
            int(cut and (self._is_periodic or group.rank < group.size - 1)),
        )
        sizes = [
            part.stop - part.start
            for part in (
                split.part(settings.shape[self._axis], r, group.size) for r in range(group.size)
            )
        ]
        #: Smallest and largest number of nodes of a rank along the cut axis.
        self.least, self.most = min(sizes), max(sizes)
        #: The nodes of this rank.
        self.own = self._moved(whole, part.start, part.stop - part.start)
        self._whole = whole
        self._largest_k = 1.0
        self._link = "cpu"  # of the halo, and of its costs
        self._run: HeatHalo | None = None
        self._steps: SplitSteps[HeatOperators] | None = None  # those by array operations
        self._plan: Plan | None = None  # of the run, for steps of this length
        self._plan_dt = 0.0
        self._segment: Segment | None = None  # of the steps that the run is made for, or none is

    @property
    def own_shape(self) -> tuple[int, ...]:
        """Shape of the part of this rank."""
        return self.own.nodes[::-1]

    def start(self, initial: Array, source: NodeData | None, given: Any) -> None:
        """Begin from the values at the nodes of this rank; collective.

        `given` is the source as the caller gave it.
        """
        first, last = self._neighbours
        n = self.own.nodes[self._across]
        self._grid = grid = self._moved(self.own, -first, n + first + last)
        self._ops = self._made_ops(1)
        self._link = link_name(self.group, _OPERATION, self._settings.device)
        if self.own.k is not None:
            grid.k = self._extended(self.own.k)
            self._largest_k = self._ops.largest(grid.k)
        self._given = given
        self._source = None if source is None else _ExtendedSource(source, self)
        self._sides = {name: self._side(name, one) for name, one in self._boundary.items()}
        self._real = [s for s in self._sides.values() if s.kind not in ("cut", PERIODIC)]
        self._tables = SideTables(grid, self._sides, True, 1)
        self.begin(initial.astype(self._settings.dtype))

    def begin(self, own: Array) -> None:
        """Begin from T at the nodes of this rank, at the begin of the segment; collective."""
        self.set_own(own)
        self._set_sides(self._levels(self._grid.clock.segment.time))

    def check_steps(self) -> None:
        """Raise if no step of this length can be made."""
        self._planned()

    @property
    def ratio(self) -> float:
        """Largest k dt/h^2 along the cut axis."""
        return self.own.ratio[self._across] * self._largest_k

    @property
    def cuts(self) -> int:
        """How many neighbours a rank has at most."""
        size = self.group.size
        return 0 if size == 1 else 1 if size == 2 and not self._is_periodic else 2

    @property
    def exchange(self) -> str:
        """How the halo travels: as `exchange` of a result."""
        if self.group.size == 1:
            return "none"
        if self._run is not None:
            return self._run.exchange
        return "host" if self._link == "cpu" else self._link

    @property
    def most_steps(self) -> int:
        """Largest number of steps in a call of the kernels, as far as it is known."""
        return 1 if self._run is None else self._run.most_steps

    @property
    def k(self) -> Array | None:
        """Conductivity at the nodes of this rank and of its halo."""
        return self._grid.k

    @property
    def t(self) -> Array:
        """T at the nodes of this rank."""
        if self._run is not None:
            return self._run_ops.own(self._run.t)
        return self._ops.own(self._t)

    def needs_damping(self) -> bool:
        """Whether an explicit step would leave the range of the data; collective."""
        return needs_damping(self._grid, self._sides, self._t, self._ops)

    def is_finite(self) -> bool:
        """Whether T is finite on all ranks; collective."""
        return bool(np.isfinite(self._ops.largest_own(self.t)))

    def set_fields(self, fields: dict[str, Array]) -> None:
        """Go on from the whole T; collective."""
        self.set_own(fields["t"][(slice(None),) * self._axis + (self._part,)])

    def set_own(self, own: Array) -> None:
        """Go on from T at the nodes of this rank; collective."""
        self._run = self._segment = None
        self._t = self._extended(own)

    def release(self) -> None:
        """Give up T; `set_own` comes before the next step."""
        self._run = self._segment = None
        self._t = np.empty(0)

    def start_damped(self) -> bool:
        """Make the first step, damped; return whether T is finite on all ranks. Collective."""
        field = damped_step(self._grid, self._sides, self._source, self._t, self._ops)
        self._t = field.astype(self._t.dtype)
        return self.is_finite()

    def step(self, first: int, end: int) -> tuple[int, bool, dict[str, Any] | None]:
        """Make some of the steps from `first` up to `end`; collective.

        Returns their number, whether T is finite on all ranks, and the report of the backend, or
        None if the step was made by array operations.
        """
        if self._segment is not self._grid.clock.segment:
            self._begin_segment()
        if self._run is None:
            return 1, self._step_once(first), None
        made, largest, report = self._run.step(first, end)
        return made, bool(np.isfinite(largest)), report

    def _begin_segment(self) -> None:
        """Prepare steps of another length, or from another state; collective."""
        grid = self._grid
        with self.group.agreement(_OPERATION) as agreed:
            agreed.same = {"dt": grid.dt}
        segment, known = grid.clock.segment, self._plan
        plan = self._planned()
        if self._run is not None and known is not None and self._is_enough(known, plan):
            self._run.begin()
        elif plan is not None:
            self._make_run(plan, self.t)
            self._plan, self._plan_dt = plan, grid.dt
        elif self._run is not None:
            self._t = self._extended(self.t)
            self._run = None
        self._segment = segment

    def _is_enough(self, known: Plan, wanted: Plan | None) -> bool:
        """Whether the run can make the steps: its halo is for steps that are not shorter."""
        if self._plan_dt == self._grid.dt:
            return True
        is_cut = known.has_cut_lines or (wanted is not None and wanted.has_cut_lines)
        if wanted is None or is_cut or self._plan_dt < self._grid.dt:
            return False
        return known.cost <= _KEPT * wanted.cost

    def _planned(self) -> Plan | None:
        """Return how steps are made, or None for array operations: the same on all ranks."""
        if self.group.size == 1:
            return Plan(_ALL, 0, 1.0, [Stage(_ALL, 0)])
        ratio = self.ratio
        lines = prod(self.own_shape) // self.own.nodes[self._across]
        about = ratio, self.least, lines, str(self._settings.scheme), self._settings.dtype
        plan = plan_halo(*about, COSTS[self._link], cuts=self.cuts, shrinks=self._axis == 0)
        if self._axis == 0 and self.least > 1:  # the lines of the last sweep are cut
            cost = cost_of_cuts(*about, COSTS[self._link])
            if plan is None or plan.cost > cost:
                plan = Plan.of_cut_lines(cost)
        if plan is None and self._link != "cpu":
            remedy = "fewer ranks" if self._axis == 0 else "split=Slab(0), fewer ranks"
            raise ValueError(
                f"{_OPERATION}: on a device each rank needs {depth_for(ratio, 1, about[-1])} nodes "
                f"along {self._name} for k dt/h^2 = {ratio:.3g}, got {self.least}: take "
                f"{remedy}, a smaller dt, scheme='implicit' or device='cpu'"
            )
        return plan

    def _make_run(self, plan: Plan, own: Array) -> None:
        """Begin to step with the halo of a plan; collective."""
        is_delta = self._settings.scheme == "douglas-gunn"
        end: Dirichlet | Neumann = Neumann(0.0)
        if plan.has_cut_lines:  # an array, if the values are to be replaced
            end = Dirichlet(0.0 if is_delta else np.zeros(self.own_shape[1:]))
        ops, grid, sides, source = self.extended(
            plan.depth, lambda name, grid: Side(name, end, grid)
        )
        settings = replace(self._settings, shape=grid.nodes[::-1])
        with self.group.agreement(_OPERATION):  # a rank can have too little memory
            state = HeatState(settings, grid, sides, source)
        state.set_t(self.spread(own, ops, grid))
        exchanged = "t" if is_delta else "w"
        faces = faces_of(self.group, self._axis, settings.shape[self._axis], ops.halo)
        run: HeatHalo
        if plan.has_cut_lines:
            cuts = [
                sides[self._name + one] if self._is_cut(self._name + one) else None for one in "-+"
            ]
            run = CutLines(self.group, state, faces, exchanged, grid, cuts, list(sides.values()))
        else:
            at_cuts = ops.halo[0] > 0, ops.halo[1] > 0
            run = HeatHalo(self.group, state, faces, plan, exchanged, at_cuts)
        self._run, self._run_ops = run, ops
        self._t = np.empty(0)

    def extended(self, depth: int, cut: Callable[[str, Grid], Side]) -> Extended:
        """Return the nodes of this rank with a halo of some depth; collective.

        `cut` makes the side of a name at the end of a halo.
        """
        ops = self._made_ops(depth)
        first, last = ops.halo
        grid, across = copy(self.own), self._across
        numbers = np.arange(self._part.start - first, self._part.stop + last)
        nodes = list(grid.nodes)
        nodes[across] = numbers.size
        grid.nodes = tuple(nodes)
        grid.numbers = {across: numbers % self._whole.nodes[across]}
        if self.own.k is not None:
            grid.k = self.spread(self.own.k, ops, grid)
        sides = {
            name: cut(name, grid) if self._is_cut(name) else Side(name, one, grid)
            for name, one in self._boundary.items()
        }
        source = None
        if self._given is not None:
            values = self._given
            if not callable(values) and np.ndim(values):
                whole = np.broadcast_to(np.asarray(values, np.float64), self.own_shape)
                values = self.spread(whole, ops, grid)
            source = grid.heating(values)
        return Extended(ops, grid, sides, source)

    def _made_ops(self, depth: int) -> SlabOps:
        """Return the operations on a field with a halo of this depth."""
        first, last = self._neighbours
        return SlabOps(
            self.group,
            self._axis,
            (depth * first, depth * last),
            periodic=self._is_periodic,
            device=self._settings.device,
            threads=self._settings.threads,
        )

    def _step_once(self, first: int) -> bool:
        """Make step `first` by array operations; return whether T is finite. Collective."""
        grid, segment = self._grid, self._grid.clock.segment
        if self._steps is None or not self._steps.operators.are_those_of(grid):
            changes = self._tables.changes
            about = grid, self._sides, self._source, changes, self._levels, self._ops
            self._steps = SplitSteps(HeatOperators(*about), "douglas", 0.5)
        times = segment.at(first), segment.at(first + 1)
        field = self._steps.step(self._t.astype(np.float64), *times, grid.dt)
        self._t = field.astype(self._t.dtype)
        self._set_sides(self._steps.level_at(times[1]).sides)
        return self.is_finite()

    def gather(self, own: Array) -> Array | None:
        """Return the whole field on rank 0, None on the others, from all parts; collective."""
        return self.group.gather(_OPERATION, own, self._axis)

    def _moved(self, grid: Grid, start: int, nodes: int) -> Grid:
        """Return the grid of `nodes` nodes from node `start` on along the cut axis."""
        moved, across = copy(grid), self._across
        counts = list(grid.nodes)
        counts[across] = nodes
        first = int(grid.numbers.get(across, np.zeros(1, np.int64))[0]) + start
        moved.nodes, moved.numbers = tuple(counts), {across: np.arange(first, first + nodes)}
        return moved

    def _extended(self, own: Array) -> Array:
        """Return values with the halo of one node; collective."""
        return self.spread(own, self._ops, self._grid)

    @staticmethod
    def spread(own: Array, ops: SlabOps, grid: Grid) -> Array:
        """Return values with a halo, from those of all ranks; collective."""
        whole = np.zeros(grid.nodes[::-1], own.dtype)
        ops.own(whole)[...] = own
        ops.refresh(whole)
        return whole

    def _is_cut(self, name: str) -> bool:
        """Whether the nodes beyond a side of the part are those of another rank."""
        end = "-+".index(name[1])
        return name[0] == self._name and bool(self._neighbours[end])

    def _side(self, name: str, one: Any) -> Side:
        """Return a side of the nodes with one node of halo: a cut, or a side of the domain."""
        if self._is_cut(name):
            return Cut(name, self._grid)
        return Side(name, one, self._grid)

    def _levels(self, time: float) -> dict[Side, Array]:
        """Return values and inflows of the sides, those of the halo as well."""
        levels = {}
        for side in self._real:
            level = np.array(side.level(time), np.float64)
            if side.axis != self._across and any(self._neighbours):
                self._ops.refresh(level, side.place_of(self._across))
            levels[side] = level
        return levels

    def _set_sides(self, levels: dict[Side, Array]) -> None:
        """Write the given values, also in the halo of a rank whose neighbour has no other nodes.

        This is one more exchange of the halo.
        """
        for side in self._real:
            if side.kind == "value":
                side.of(self._t)[...] = levels[side]
        self._ops.refresh(self._t)


class _ExtendedSource:
    """A source that is zero in the halo."""

    def __init__(self, source: NodeData, state: SplitState) -> None:
        self._source, self._state = source, state

    def at(self, time: float) -> Array:
        """Return the values at a time."""
        state = self._state
        values = np.zeros(state._grid.nodes[::-1])
        state._ops.own(values)[...] = self._source.at(time)
        return values
