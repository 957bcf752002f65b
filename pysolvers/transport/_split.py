"""GCEIDD on slabs: each rank of a group steps its part of the nodes.

Where what a step depends on is local along the cut axis, each rank steps a window: its nodes and
some layers of its neighbours, by the kernels of one process and for several steps, before the
layers are exchanged (_plan.py). Otherwise the ranks exchange rows for columns:

A line of a sweep is then complete on one rank, so that strips, predictions from distant feet and
corrections are those of one process. Each rank holds rows of the grid for the sweep along x, and
columns for the sweep along y; the solution is exchanged between the two before the second sweep,
and once more for the next step. The kernels make both sweeps of a step: velocity and diffusion
along the other axis are 0, and what the other sweep adds, half of the source, is taken away again.
Without a source, the kernels leave the other sweep out.

The first sweep of the kernels, which is without effect in a sweep along y, makes its input u the
half level S1 of ``'mu'``. The prediction U + (U - S1) or U + (S1 - S2) is therefore made by the
printed one, U + (u - S), with the field S = u - (U - S1) or u - (S1 - S2).

On devices the fields stay there, unless the ranks exchange rows for columns and there is a source
or half levels, which the host changes.

Words per node and step: those of the kernels, and in windows 2 per call for a copy of the field.
With rows for columns, with a source or ``'mu'`` twice these, and two exchanges of the field
(Transposition).
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from .._clock import Leg
from .._counter import Counter
from .._runtime.backends import parse_device
from .._runtime.state import DeviceState, Index, State
from ..distributed import (
    Border,
    Group,
    Layers,
    Slab,
    Transposition,
    layers_of,
    met_after_steps,
    way_of,
)
from ._plan import Coefficients, Plan, plan_windows
from ._settings import Settings
from ._state import TransportState, field_names
from .problem import ConvectionDiffusion, GridData

__all__ = ["SplitState"]

Array = NDArray[Any]

_OPERATION = "GCEIDD"
_LEAST = 4  # nodes of a part along each axis
_SAME_DT = 1 + 1e-12  # a window is made anew for steps that are longer by this factor


class SplitState:
    """The solution on the nodes of this rank.

    Parameters
    ----------
    problem : ConvectionDiffusion
        The problem.
    settings : Settings
        The method, of the whole grid.
    group : Group
        The ranks.
    split : Slab
        The axis along which the solution is split.
    """

    def __init__(
        self, problem: ConvectionDiffusion, settings: Settings, group: Group, split: Slab
    ) -> None:
        require(
            settings.kernels == "fused" or parse_device(settings.device)[0] == "cpu",
            "with a group on a device kernels must be 'fused'",
            settings.kernels,
        )
        least = _LEAST * group.size
        require(
            min(settings.shape) >= least,
            f"shape must be at least {least} along both axes, {_LEAST} nodes for each of "
            f"{group.size} ranks",
            settings.shape,
        )
        self.group, self.axis = group, split.of(2)
        self._problem, self._settings = problem, settings
        self._parts = [
            split.part(settings.shape[self.axis], rank, group.size) for rank in range(group.size)
        ]
        own, every = self._parts[group.rank], slice(0, settings.shape[1 - self.axis])
        #: Nodes of this rank, along y and x.
        self.part = (own, every) if self.axis == 0 else (every, own)
        #: The problem at these nodes.
        self.data = problem.grid_data(settings.shape, self.part)
        self._longest = 0.0  # step that the windows are made for
        self._leg: Leg | None = None  # of the last steps
        self._way: _Windows | _Transposed

    def connect(self) -> None:
        """Find how the nodes travel from rank to rank, and make the fields; collective."""
        self._longest = self._settings.dt
        self._way = self._made(self._longest)

    def _made(self, dt: float) -> "_Windows | _Transposed":
        """Return the fields of this rank, for steps that are not longer; collective."""
        group, s = self.group, self._settings
        plan = self._plan(dt)
        with group.agreement(_OPERATION) as agreed:  # a rank can have too little memory
            found: _Windows | _Transposed
            if plan is None:
                found = _Transposed(self._problem, s, group, self.axis)
            else:
                found = _Windows(self._problem, s, group, self.axis, plan)
            agreed.same = {"steps between two exchanges": plan.steps if plan else 0}
        found.connect()
        return found

    def _plan(self, dt: float) -> Plan | None:
        """Return the windows of all ranks, or None if there are none; collective."""
        group, s, data, axis = self.group, self._settings, self.data, self.axis
        way = "none" if group.size == 1 else way_of(group, _OPERATION, s.device)
        varies = any(b.varies for b in data.velocity) or any(a.varies for a in data.diffusion)
        with group.agreement(_OPERATION) as agreed:  # functions of the caller, which can raise
            agreed.own = None if varies else [Extremes.of(data, k, axis) for k in (0, 1)]
            agreed.same = {"whether velocity or diffusion change with time": varies}
        if varies:  # what a step reads can be farther away later
            return None
        scaled = []
        for number, h in enumerate(data.spacing):
            extremes = Extremes.joined([own[number] for own in agreed.found])
            b, least = extremes.velocity, extremes.least_diffusion
            if least > 0 and s.scheme != "cfd" and s.upwind == "modified":
                least /= 1 + h * b / (2 * least)
            scaled.append(
                Coefficients(
                    b * dt / h,
                    extremes.diffusion * dt / h**2,
                    least * dt / h**2,
                    extremes.difference * dt / h,
                )
            )
        along = 1 - axis  # counted from x on
        return plan_windows(
            self._parts,
            s.shape[axis] - 1,
            s.strips[along],
            s.shape[1 - axis],
            scaled[along],
            scaled[1 - along],
            s.dtype,
            scheme=s.scheme,
            foot=s.foot,
            strips_across=s.strips[1 - along],
            way=way,
        )

    @property
    def exchange(self) -> str:
        """How the nodes travel from rank to rank: as `exchange` of a result."""
        return self._way.exchange

    @property
    def is_in_windows(self) -> bool:
        """Whether the ranks exchange layers, and not rows for columns."""
        return isinstance(self._way, _Windows)

    @property
    def most_steps(self) -> int:
        """Largest number of steps in a call of `advance`."""
        return self._way.most_steps

    @property
    def reports(self) -> tuple[dict[str, Any], ...]:
        """The reports of the last call of `advance`."""
        return self._way.reports

    @property
    def u(self) -> Array:
        """The solution at the nodes of this rank, to be read."""
        return self._way.u

    def forget(self) -> None:
        """Replace the half levels before the solution by the solution, as at time 0."""
        self._way.forget()

    def over_ranks(self, value: float) -> float:
        """Return the largest value of all ranks, NaN if one is; collective."""
        return over_ranks(self.group, value)

    def gather(self) -> Array | None:
        """Return the whole solution on rank 0, None on the others; collective."""
        return self.group.gather(_OPERATION, self.u, self.axis)

    def fields(self) -> dict[str, Array] | None:
        """Return all that the next step depends on, on rank 0, None on the others; collective."""
        whole = {
            name: self.group.gather(_OPERATION, part, axis)
            for name, (part, axis) in self._way.parts().items()
        }
        return {name: values for name, values in whole.items() if values is not None} or None

    def set_fields(self, fields: dict[str, Array]) -> None:
        """Replace what `fields` returned."""
        self._way.set(fields)

    def advance(
        self, leg: Leg, first: int, end: int, bound: float, threads: int
    ) -> tuple[int, bool]:
        """Make some of the steps from `first` up to `end`; collective.

        Return their number, and whether abs(u) <= bound on all ranks after the last one.
        """
        if leg is not self._leg:
            self._way.agree(leg, first)
            if self.is_in_windows and leg.dt > self._longest * _SAME_DT:
                self._make_anew(leg.dt)
            self._leg = leg
        return self._way.advance(leg, first, end, bound, threads)

    def _make_anew(self, dt: float) -> None:
        """Make windows for longer steps; collective."""
        before, way = self._way, self._made(dt)
        if isinstance(way, _Windows):
            way.set_own({name: part for name, (part, _) in before.parts().items()})
        else:
            way.set(self.group.objects(_OPERATION, self.fields())[0])
        if before.forgets:
            way.forget()
        self._way, self._longest = way, dt


class Extremes(NamedTuple):
    """Extremes of the coefficients along an axis.

    Attributes
    ----------
    velocity : float
        Largest abs(b).
    diffusion, least_diffusion : float
        Largest and smallest a.
    difference : float
        Largest difference of b of neighbours along the axis.
    ends : tuple of array
        b at the first nodes and at the last ones along the cut axis of the solution, if this is
        the axis of the coefficients; empty otherwise.
    """

    velocity: float
    diffusion: float
    least_diffusion: float
    difference: float
    ends: tuple[Array, ...]

    @classmethod
    def of(cls, data: GridData, number: int, cut: int) -> "Extremes":
        """Return those of the nodes of a rank, along an axis counted from x on."""
        b, a = data.velocity[number].at(0.0), data.diffusion[number].at(0.0)
        axis = 1 - number  # of the solution
        ends = (np.take(b, 0, axis), np.take(b, -1, axis)) if axis == cut else ()
        difference = float(np.abs(np.diff(b, axis=axis)).max(initial=0.0))
        return cls(float(np.abs(b).max()), float(a.max()), float(a.min()), difference, ends)

    @classmethod
    def joined(cls, ranks: "Sequence[Extremes]") -> "Extremes":
        """Return those of the nodes of all ranks."""
        between = [
            float(np.abs(after.ends[0] - before.ends[1]).max())
            for before, after in pairwise(ranks)
            if after.ends
        ]
        return cls(
            max(one.velocity for one in ranks),
            max(one.diffusion for one in ranks),
            min(one.least_diffusion for one in ranks),
            max([*between, *(one.difference for one in ranks)]),
            (),
        )


def over_ranks(group: Group, value: float) -> float:
    """Return the largest value of all ranks, NaN if one is; collective."""
    return float(group.allgather(_OPERATION, np.array(value, float)).max())


class _Windows:
    """The nodes of a rank and layers of its neighbours, and their steps.

    Parameters
    ----------
    problem : ConvectionDiffusion
        The problem.
    settings : Settings
        The method, of the whole grid.
    group : Group
        The ranks.
    axis : int
        The axis of the solution that is cut.
    plan : Plan
        The windows of all ranks.
    """

    def __init__(
        self,
        problem: ConvectionDiffusion,
        settings: Settings,
        group: Group,
        axis: int,
        plan: Plan,
    ) -> None:
        self._group, self._axis, self._plan = group, axis, plan
        cut = plan.cuts[group.rank]
        self._held = self._across(cut.held, settings.shape)
        self._own = self._across(
            slice(cut.own.start - cut.held.start, cut.own.stop - cut.held.start), settings.shape
        )
        strips = list(settings.strips)
        strips[1 - axis] = cut.strips
        self._settings = replace(
            settings,
            shape=tuple(held.stop - held.start for held in self._held),
            strips=tuple(strips),
        )
        self._data = problem.grid_data(settings.shape, self._held, is_window=True)
        self._names = field_names(settings.scheme)
        self._state = TransportState(self._data, self._settings, plan.steps, keeps=plan.steps > 1)
        self._varies = self._data.varies
        self._layers: Layers | None = None
        self._left = plan.steps
        self._is_stale = False
        #: Whether the half levels before the solution are to be replaced by it.
        self.forgets = False
        self.most_steps = self._state.most_steps
        self.reports: tuple[dict[str, Any], ...] = ()

    def _across(self, held: slice, shape: tuple[int, int]) -> tuple[slice, slice]:
        """Return the indices along y and x of nodes along the cut axis."""
        every = slice(0, shape[1 - self._axis])
        return (held, every) if self._axis == 0 else (every, held)

    def connect(self) -> None:
        """Find how the layers travel; collective."""
        group = self._group
        facts = np.array([self.most_steps, -int(self._varies)])
        self.most_steps, varies = group.allgather(_OPERATION, facts).min(axis=0).tolist()
        self._varies = varies < 0
        if group.size > 1:
            like = np.broadcast_to(np.empty((), self._settings.dtype), (1, *self._settings.shape))
            self._layers = layers_of(group, _OPERATION, self._store, self._borders(), like)

    def _borders(self) -> list[Border]:
        """Return what this rank exchanges with its neighbours."""
        rank, cuts = self._group.rank, self._plan.cuts
        own, held = cuts[rank].own, cuts[rank].held
        found = []
        if rank > 0:
            sent = slice(own.start - held.start, cuts[rank - 1].held.stop - held.start)
            received = slice(0, own.start - held.start)
            found.append(Border(0, rank - 1, self._at(sent), self._at(received)))
        if rank < self._group.size - 1:
            sent = slice(cuts[rank + 1].held.start - held.start, own.stop - held.start)
            received = slice(own.stop - held.start, held.stop - held.start)
            found.append(Border(1, rank + 1, self._at(sent), self._at(received)))
        return found

    def _at(self, held: slice) -> Index:
        """Return the indices in a field of nodes along the cut axis."""
        return (slice(None),) * (1 + self._axis) + (held,)

    @property
    def _store(self) -> State:
        return self._state.store

    @property
    def exchange(self) -> str:
        """How the layers travel."""
        return "none" if self._layers is None else self._layers.way

    @property
    def u(self) -> Array:
        """The solution at the nodes of this rank, to be read."""
        return self._state.u[self._own]

    def parts(self) -> dict[str, tuple[Array, int]]:
        """Return the fields at the nodes of this rank, and the axis that is cut."""
        return {
            name: (values[self._own], self._axis) for name, values in self._state.fields().items()
        }

    def set(self, whole: dict[str, Array]) -> None:
        """Replace the fields, of which those of all nodes are given."""
        self._state.set_fields({name: whole[name][self._held] for name in self._names})
        self._left, self._is_stale = self._plan.steps, False

    def set_own(self, parts: dict[str, Array]) -> None:
        """Replace the fields, of which those at the nodes of this rank are given; collective."""
        for name, values in self._state.fields().items():
            field = values.copy()
            field[self._own] = parts[name]
            self._store.set(name, field)
        self._refresh(self._names)

    def forget(self) -> None:
        """Replace the half levels before the solution by the solution."""
        self.forgets = len(self._names) > 1

    def agree(self, leg: Leg, first: int) -> None:
        """Require that all ranks begin steps of one length; collective.

        A rank that does not begin such steps compares the same facts in `advance`.
        """
        if self._varies:
            with self._group.agreement(_OPERATION) as agreed:
                agreed.same = {"dt": leg.dt}
        else:
            met_after_steps(self._group, _OPERATION, leg.dt, first, 0, 0.0)

    def advance(
        self, leg: Leg, first: int, end: int, bound: float, threads: int
    ) -> tuple[int, bool]:
        """Make some of the steps from `first` up to `end`; see `SplitState.advance`."""
        group, state = self._group, self._state
        if self.forgets:
            self._refresh(("u",))
            state.forget()
            self.forgets = False
        elif self._left == 0:
            self._complete()
        count = min(end - first, self._left, self.most_steps)
        times = [leg.at(first + k + 1) for k in range(count)]
        if self._varies:  # functions of the caller, which can raise
            with group.agreement(_OPERATION) as agreed:
                state.prepare(times)
                agreed.same = {"dt": leg.dt, "steps": (first, count)}
        else:
            state.prepare(times)
        if count > 1:
            state.keep()
        report = state.step(leg.dt, bound, count, threads, Counter().begin())
        self.reports = (report,)
        self._left -= count
        posts = self._left == 0 and self._layers is not None and len(self._names) == 1
        if posts and self._layers is not None:
            self._layers.post("u")
            if isinstance(self._store, DeviceState):
                self._store.wait()
        grown = met_after_steps(group, _OPERATION, leg.dt, first, count, report["grown"])
        if grown.any():
            return self._make_singly(leg, first, count, bound, threads)
        if posts and self._layers is not None:
            self._layers.met()
        return count, True

    def _make_singly(
        self, leg: Leg, first: int, count: int, bound: float, threads: int
    ) -> tuple[int, bool]:
        """Make steps anew, one after the other: a window of a rank has grown.

        What has grown can be a node of a neighbour, where values can be wrong.
        """
        group, state = self._group, self._state
        self._is_stale = True  # layers that were sent are not those of the next exchange
        if count > 1:
            state.restore()
        for made in range(1, count + 1):
            if count > 1:
                state.prepare([leg.at(first + made)])
                self.reports = (state.step(leg.dt, np.inf, 1, threads, Counter().begin()),)
            if not over_ranks(group, float(np.abs(self.u).max())) <= bound:
                return made, False
        return count, True

    def _complete(self) -> None:
        """Get the layers of the neighbours; collective."""
        if self._layers is None:
            self._left = self._plan.steps
        elif self._is_stale or len(self._names) > 1:
            self._refresh(self._names)
        else:
            self._layers.complete("u")
            self._left = self._plan.steps

    def _refresh(self, names: Sequence[str]) -> None:
        """Exchange the layers of fields now; collective."""
        if self._layers is not None:
            for name in names:
                self._layers.refresh(name)
        self._left, self._is_stale = self._plan.steps, False


class _Transposed:
    """Rows of complete lines along x, and columns of complete lines along y.

    Parameters as of `_Windows`.
    """

    most_steps = 1

    def __init__(
        self, problem: ConvectionDiffusion, settings: Settings, group: Group, axis: int
    ) -> None:
        self._group, self._axis = group, axis
        self._transposition = Transposition(group, settings.shape, _OPERATION)
        self._place = settings.device, settings.dtype
        held = (
            (self._transposition.rows[group.rank], slice(0, settings.shape[1])),
            (slice(0, settings.shape[0]), self._transposition.columns[group.rank]),
        )
        self._names = field_names(settings.scheme)
        self._sweeps = [
            _Sweep(problem, settings, part, axis) for part, axis in zip(held, "xy", strict=True)
        ]
        #: Whether the half levels before the solution are to be replaced by it.
        self.forgets = False
        self.reports: tuple[dict[str, Any], ...] = ()

    def connect(self) -> None:
        """Find how the nodes travel from rank to rank; collective."""
        self._transposition.connect(*self._place)

    @property
    def exchange(self) -> str:
        """How the nodes travel from rank to rank."""
        return self._transposition.way

    @property
    def u(self) -> Array:
        """The solution at the nodes of this rank, to be read."""
        return self._sweeps[self._axis].u

    def forget(self) -> None:
        """Replace the half levels before the solution by the solution."""
        self.forgets = True

    def agree(self, leg: Leg, first: int) -> None:
        """Do nothing: each step requires that all ranks make the same one."""

    def parts(self) -> dict[str, tuple[Array, int]]:
        """Return the fields at the nodes of this rank, and the axis that is cut."""
        return {"u": (self.u, self._axis)} | {
            name: (self._sweeps[0].field(name), 0) for name in self._names[1:]
        }

    def set(self, whole: dict[str, Array]) -> None:
        """Replace the fields, of which those of all nodes are given."""
        along_x, along_y = self._sweeps
        along_x.set({name: whole[name] for name in self._names})
        # The sweep along y comes half a step later.
        levels = [whole[name] for name in ("u", *self._names[:-1])]
        along_y.set(dict(zip(self._names, levels, strict=False)))

    def advance(
        self, leg: Leg, first: int, end: int, bound: float, threads: int
    ) -> tuple[int, bool]:
        """Make a step; see `SplitState.advance`."""
        del end
        time, dt = leg.at(first + 1), leg.dt
        along_x, along_y = self._sweeps
        with self._group.agreement(_OPERATION) as agreed:
            for sweep in self._sweeps:
                sweep.prepare(time)
            agreed.same = {"time and dt": (time, dt)}
        if self._axis == 1:
            self._transposition.to_rows(along_y.store, along_x.store, "u")
        if self.forgets:
            along_x.forget()
            along_y.forget()
            self.forgets = False
        first_report = along_x.make(time, dt, np.inf, threads)
        self._transposition.to_columns(along_x.store, along_y.store, "u")
        second = along_y.make(time, dt, bound, threads)
        self.reports = first_report, second
        if self._axis == 0:
            self._transposition.to_rows(along_y.store, along_x.store, "u")
        return 1, not over_ranks(self._group, second["grown"])


class _Sweep:
    """The lines of one sweep that are on this rank.

    Parameters
    ----------
    problem : ConvectionDiffusion
        The problem.
    settings : Settings
        The method, of the whole grid.
    part : (slice, slice)
        Indices of the nodes along y and x.
    axis : {'x', 'y'}
        The axis of the sweep.
    """

    def __init__(
        self, problem: ConvectionDiffusion, settings: Settings, part: tuple[slice, slice], axis: str
    ) -> None:
        along_x, along_y = settings.strips
        self._settings = replace(
            settings,
            shape=tuple(held.stop - held.start for held in part),
            strips=(along_x, 1) if axis == "x" else (1, along_y),
            predictor=settings.predictor if axis == "x" else "printed",
        )
        self._is_newest = settings.predictor == "newest"
        self._axis, self._part = axis, part
        self._data = problem.grid_data(settings.shape, part, sweep=axis)
        self._state = TransportState(self._data, self._settings, 1)
        self._has_levels = len(field_names(settings.scheme)) > 1
        given = {side: kind == "dirichlet" for side, kind in self._data.kinds.items()}
        self._unknown = tuple(
            slice(int(given[name + "-"]), -1 if given[name + "+"] else None) for name in "yx"
        )
        rows = self._settings.shape[0]
        self._given_rows = [
            (slice(None), slice(at, at + 1))
            for side, at in (("y-", 0), ("y+", rows - 1))
            if axis == "x" and given[side]
        ]

    @property
    def u(self) -> Array:
        """The field before or after the sweep."""
        return self._state.u

    @property
    def store(self) -> State:
        """Where the fields lie."""
        return self._state.store

    def field(self, name: str) -> Array:
        """Return a field that the next sweep depends on."""
        return self._state.fields()[name]

    def set(self, whole: dict[str, Array]) -> None:
        """Replace the fields, of which those of all nodes are given."""
        self._state.set_fields({name: values[self._part] for name, values in whole.items()})

    def forget(self) -> None:
        """Replace the half levels before the field by the field."""
        self._state.forget()

    def prepare(self, time: float) -> None:
        """Evaluate the data of the step that ends at a time."""
        self._state.prepare([time])

    def make(self, time: float, dt: float, bound: float, threads: int) -> dict[str, Any]:
        """Make the sweep of the step that ends at a time; return the report of the backend."""
        state, store = self._state, self._state.store
        before = state.u.copy() if self._has_levels else None
        # The sweep along x does not change the rows of given values.
        kept = [(at, store.part("u", at)) for at in self._given_rows]
        if self._axis == "y":
            self._take_away(time, dt)
            if before is not None:
                self._set_printed(before)
        found = state.step(dt, bound, 1, threads, Counter().begin())
        if self._axis == "x":
            self._take_away(time, dt)
        for at, values in kept:
            store.set_part("u", at, values)
        if before is not None:
            store.set("older", state.u)
            store.set("oldest", before)
        return found

    def _set_printed(self, field: Array) -> None:
        """Set the half level with which the printed prediction from `field` is the wanted one."""
        older, oldest = self.field("older"), self.field("oldest")
        older[...] = self.u - (field - older if self._is_newest else older - oldest)
        self.store.changed("older")

    def _take_away(self, time: float, dt: float) -> None:
        """Subtract what the sweep along the other axis adds: half of the source."""
        if not self._data.fields:
            return
        field = self._state.u
        for term, source in enumerate(self._data.fields):
            values = np.broadcast_to(source.at(time), field.shape)[self._unknown]
            field[self._unknown] -= (dt / 2 * self._data.factor(term, time)) * values
        self.store.changed("u")
