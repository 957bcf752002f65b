"""GCEIDD on the nodes of a rank and its halo, together the held grid.

The held grid is stepped by the kernels of one process, for several steps, before the halo is
exchanged: _plan.py says how many, and why. A call of several steps keeps the fields before them, so
that all ranks can end after the step in which the solution of one of them leaves the limits.

Words per node and step: those of the kernels, and with ``'mu'`` 2 per field and call for copies of
the fields that are kept; per exchange those of the halo of u, and with ``'mu'`` of the half levels.
"""

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._runtime.fields import Fields
from .._solver.clock import Segment
from .._solver.counter import Counter
from ..distributed import Group
from ..distributed._halo import SlabNodes
from ..distributed._halo_run import HaloRun
from ._plan import Plan
from ._range import NO_ROW, Range, joined
from ._settings import TransportSettings
from ._state import TransportState, field_names
from .problem import ConvectionDiffusion

Array = NDArray[Any]

OPERATION = "GCEIDD"
_NO_LIMITS = -inf, inf


def is_inside(group: Group, u: Array, limits: tuple[float, float]) -> bool:
    """Return whether u is within limits, ends included, on all ranks; collective."""
    ends = group.allgather(OPERATION, np.array([-u.min(), u.max()], float)).max(axis=0)
    return bool(limits[0] <= -ends[0] and ends[1] <= limits[1])


class TransportHalo(HaloRun):
    """Steps on the nodes of a rank and its halo.

    Parameters as of `SplitRun`; `axis` of the solution is cut, and `plan` has the held grids of all
    ranks.
    """

    def __init__(
        self,
        problem: ConvectionDiffusion,
        settings: TransportSettings,
        group: Group,
        axis: int,
        plan: Plan,
    ) -> None:
        names = field_names(settings.scheme)
        super().__init__(group, OPERATION, plan.steps, names)
        self._axis, self._plan = axis, plan
        cut, nodes = plan.cuts[group.rank], self._nodes()
        self._faces = nodes.faces
        self._held = self._across(nodes.held, settings.shape)
        self._own = self._across(nodes.own, settings.shape)
        strips = list(settings.strips)
        strips[1 - axis] = cut.strips
        self._settings = replace(
            settings,
            shape=tuple(held.stop - held.start for held in self._held),
            strips=tuple(strips),
        )
        self._data = problem._grid_data(
            settings.shape, self._held, is_held=True, time=settings.start_time
        )
        self._state = TransportState(self._data, self._settings, plan.steps, keeps=plan.steps > 1)
        self._varies = self._data.varies
        self._row = NO_ROW  # data of all ranks, if they do not change with time
        #: Whether the half levels before the solution are to be replaced by it.
        self.forgets = False
        self.most_steps = self._state.most_steps
        self.reports: tuple[dict[str, Any], ...] = ()

    def _across(self, held: slice, shape: tuple[int, int]) -> tuple[slice, slice]:
        """Return the indices along y and x of nodes along the cut axis."""
        every = slice(0, shape[1 - self._axis])
        return (held, every) if self._axis == 0 else (every, held)

    def start(self) -> None:
        """Find how the halo travels; collective."""
        group = self._group
        below, above, least, most = joined(self._state.rows.tolist())
        facts = np.array([self.most_steps, -float(self._varies), below, -above, least, -most])
        steps, varies, below, above, least, most = group.allgather(OPERATION, facts).min(axis=0)
        self.most_steps, self._varies = int(steps), bool(varies < 0)
        self._row = float(below), -float(above), float(least), -float(most)
        self.connect(self._store, self._faces)

    def _nodes(self) -> SlabNodes:
        """Return the nodes of this rank and its halo, along the cut axis of the packed fields."""
        rank, cuts = self._group.rank, self._plan.cuts
        own, held = cuts[rank].own, cuts[rank].held
        low = cuts[rank - 1].held.stop - own.start if rank > 0 else 0
        high = own.stop - cuts[rank + 1].held.start if rank < self._group.size - 1 else 0
        halo = own.start - held.start, held.stop - own.stop
        return SlabNodes(self._group, 1 + self._axis, own, halo, (low, high))

    @property
    def _store(self) -> Fields:
        """The fields of the held grid."""
        return self._state.store

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
        self._left, self._is_stale = self.steps, False

    def set_own(self, parts: dict[str, Array]) -> None:
        """Replace the fields, of which those at the nodes of this rank are given; collective."""
        for name, values in self._state.fields().items():
            field = values.copy()
            field[self._own] = parts[name]
            self._store.set(name, field)
        self.refresh()

    def restart(self, own: Array) -> None:
        """Replace the solution at the nodes of this rank, and the half levels; collective."""
        self.set_own(dict.fromkeys(self._names, own))
        self.forgets = False

    def forget(self) -> None:
        """Replace the half levels before the solution by the solution."""
        self.forgets = len(self._names) > 1

    def agree(self, segment: Segment, first: int) -> None:
        """Require that all ranks begin steps of one length; collective.

        A rank that does not begin such steps compares the same facts in `advance`.
        """
        if self._varies:
            with self._group.agreement(OPERATION) as agreed:
                agreed.same = {"dt": segment.dt}
        else:
            self.compare(segment.dt, first, 0, 0.0)

    def advance(
        self, segment: Segment, first: int, end: int, allowed: Range, threads: int
    ) -> tuple[int, bool]:
        """Make some of the steps; return their number, and whether u is within its limits."""
        group, state = self._group, self._state
        if self.forgets:
            self.refresh("u")
            state.forget()
            self.forgets = False
        count = self.begin_steps(min(end - first, self.most_steps))
        times = [segment.at(first + k + 1) for k in range(count)]
        if self._varies:  # functions of the caller, which can raise
            with group.agreement(OPERATION) as agreed:
                state.prepare(times)
                agreed.own = joined(state.rows.tolist())
                agreed.same = {"dt": segment.dt, "steps": (first, count)}
            row = joined(agreed.found)
        else:
            row = self._row
            state.prepare(times)
        lost = self._plan.cuts[group.rank].lost
        made = Counter().begin()
        limits = allowed.begin(first, count, segment.dt, np.array([row]))
        with self.kernels():
            report = state.step(
                segment.dt, limits, count, threads, made, lost=lost, keeps=count > 1
            )
        self.reports = (report,)
        grown = self.end_steps(segment.dt, first, count, lambda: report["grown"])
        if grown.any():
            return self._make_singly(segment, first, count, allowed, threads)
        return count, True

    def _make_singly(
        self, segment: Segment, first: int, count: int, allowed: Range, threads: int
    ) -> tuple[int, bool]:
        """Make steps anew, one after the other: the held grid of a rank has left the limits.

        What has left them can be a node of a neighbour, where values can be wrong.
        """
        group, state = self._group, self._state
        self._is_stale = True  # the halo that was posted is not that of the next step
        if count > 1:
            state.restore()
        for made in range(1, count + 1):
            if count > 1:
                state.prepare([segment.at(first + made)])
                report = state.step(segment.dt, _NO_LIMITS, 1, threads, Counter().begin())
                self.reports = (report,)
            if not is_inside(group, self.u, allowed.limits(first + made)):
                return made, False
        return count, True
