"""GCEIDD with rows for columns: each rank makes the sweeps of complete lines.

A line of a sweep is complete on one rank, so that strips, predictions from distant feet and
corrections are those of one process. Each rank holds rows of the grid for the sweep along x, and
columns for the sweep along y; the solution is exchanged between the two before the second sweep,
and once more for the next step. The kernels make both sweeps of a step: velocity and diffusion
along the other axis are 0, and what the other sweep adds, half of the source, is taken away again.
Without a source, the kernels leave the other sweep out.

The first sweep of the kernels, which is without effect in a sweep along y, makes its input u the
half level S1 of ``'mu'``. The prediction U + (U - S1) or U + (S1 - S2) is therefore made by the
printed one, U + (u - S), with the field S = u - (U - S1) or u - (S1 - S2).

On devices the fields stay there, unless there is a source or half levels, which the host changes.

Words per node and step: those of the kernels, with a source or ``'mu'`` twice these, and two
exchanges of the field (Transposition).
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
from ..distributed._transpose import Transposition, even_parts
from ._halo import OPERATION
from ._range import Range, joined
from ._settings import TransportSettings
from ._state import TransportState, field_names
from .problem import ConvectionDiffusion

Array = NDArray[Any]


class Transposed:
    """Rows of complete lines along x, and columns of complete lines along y.

    Parameters as of `TransportHalo`, without the plan.
    """

    most_steps = 1

    def __init__(
        self, problem: ConvectionDiffusion, settings: TransportSettings, group: Group, axis: int
    ) -> None:
        self._group, self._axis = group, axis
        rows, columns = (even_parts(group, size) for size in settings.shape)
        self._transposition = Transposition(group, OPERATION, rows, columns)
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

    def start(self) -> None:
        """Find how the nodes travel from rank to rank; collective."""
        along_x, along_y = self._sweeps
        self._transposition.connect(along_x.store, along_y.store, "u")

    @property
    def exchange(self) -> str:
        """How the nodes travel from rank to rank."""
        return self._transposition.to_columns.link

    @property
    def u(self) -> Array:
        """The solution at the nodes of this rank, to be read."""
        return self._sweeps[self._axis].u

    def restart(self, own: Array) -> None:
        """Replace the solution at the nodes of this rank, and the half levels; collective."""
        there = self._transposition
        self._sweeps[self._axis].store.set("u", own[None])
        (there.to_columns if self._axis == 0 else there.to_rows).refresh("u")
        for sweep in self._sweeps:
            sweep.forget()
        self.forgets = False

    def forget(self) -> None:
        """Replace the half levels before the solution by the solution."""
        self.forgets = True

    def agree(self, segment: Segment, first: int) -> None:
        """Require that all ranks begin steps of one length; collective."""
        del first
        with self._group.agreement(OPERATION) as agreed:
            agreed.same = {"dt": segment.dt}

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
        self, segment: Segment, first: int, end: int, allowed: Range, threads: int
    ) -> tuple[int, bool]:
        """Make a step; return 1, and whether u is within its limits."""
        del end
        time, dt = segment.at(first + 1), segment.dt
        along_x, along_y = self._sweeps
        with self._group.agreement(OPERATION) as agreed:
            for sweep in self._sweeps:
                sweep.prepare(time)
            agreed.own = joined(row for sweep in self._sweeps for row in sweep.rows)
            agreed.same = {"time and dt": (time, dt)}
        limits = allowed.begin(first, 1, dt, np.array([joined(agreed.found)]))
        if self._axis == 1:
            self._transposition.to_rows.refresh("u")
        if self.forgets:
            along_x.forget()
            along_y.forget()
            self.forgets = False
        first_report = along_x.make(time, dt, (-inf, inf), threads)
        self._transposition.to_columns.refresh("u")
        second = along_y.make(time, dt, limits, threads)
        self.reports = first_report, second
        if self._axis == 0:
            self._transposition.to_rows.refresh("u")
        return 1, not self._group.allgather(OPERATION, np.array(second["grown"], float)).any()


class _Sweep:
    """The lines of one sweep that are on this rank.

    Parameters
    ----------
    problem : ConvectionDiffusion
        The problem.
    settings : TransportSettings
        The method, of the whole grid.
    part : (slice, slice)
        Indices of the nodes along y and x.
    axis : {'x', 'y'}
        The axis of the sweep.
    """

    def __init__(
        self,
        problem: ConvectionDiffusion,
        settings: TransportSettings,
        part: tuple[slice, slice],
        axis: str,
    ) -> None:
        along_x, along_y = settings.strips
        self._settings = replace(
            settings,
            shape=tuple(held.stop - held.start for held in part),
            strips=(along_x, 1) if axis == "x" else (1, along_y),
        )
        if axis == "y":
            self._settings = self._settings.with_given_levels()
        self._is_newest = settings.predictor == "newest"
        self._axis, self._part = axis, part
        self._data = problem._grid_data(settings.shape, part, sweep=axis, time=settings.start_time)
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
    def store(self) -> Fields:
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

    @property
    def rows(self) -> list[list[float]]:
        """What the range of u depends on in the step that is prepared: see `Range`."""
        found: list[list[float]] = self._state.rows.tolist()
        return found

    def make(
        self, time: float, dt: float, limits: tuple[float, float], threads: int
    ) -> dict[str, Any]:
        """Make the sweep of the step that ends at a time; return the report of the backend."""
        state, store = self._state, self._state.store
        before = state.u.copy() if self._has_levels else None
        # The sweep along x does not change the rows of given values.
        kept = [(at, store.part("u", at)) for at in self._given_rows]
        if self._axis == "y":
            self._take_away(time, dt)
            if before is not None:
                self._set_printed(before)
        found = state.step(dt, limits, 1, threads, Counter().begin())
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
