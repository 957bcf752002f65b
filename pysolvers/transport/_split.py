"""GCEIDD on slabs: each rank of a group makes the sweeps of its own lines.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from .._counter import Counter
from .._errors import raise_for_status
from .._runtime.backends import parse_device
from .._runtime.state import State
from ..distributed import Group, Slab, Transposition
from ._settings import Settings
from ._state import TransportState, field_names
from .problem import ConvectionDiffusion

__all__ = ["SplitState"]

Array = NDArray[Any]

_OPERATION = "GCEIDD"
_LEAST = 4  # nodes of a part along each axis


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
        self._transposition = Transposition(group, settings.shape, _OPERATION)
        self._place = settings.device, settings.dtype
        held = (
            (self._transposition.rows[group.rank], slice(0, settings.shape[1])),
            (slice(0, settings.shape[0]), self._transposition.columns[group.rank]),
        )
        #: Nodes of this rank, along y and x.
        self.part = held[self.axis]
        #: The problem at these nodes.
        self.data = problem.grid_data(settings.shape, self.part)
        self._names = field_names(settings.scheme)
        self._sweeps = [
            _Sweep(problem, settings, part, axis) for part, axis in zip(held, "xy", strict=True)
        ]
        self._forgets = False
        self.reports: tuple[dict[str, Any], ...] = ()

    def connect(self) -> None:
        """Find how the nodes travel from rank to rank; collective."""
        self._transposition.connect(*self._place)

    @property
    def exchange(self) -> str:
        """How the nodes travel from rank to rank: as `exchange` of a result."""
        return self._transposition.way

    @property
    def u(self) -> Array:
        """The solution at the nodes of this rank, to be read."""
        return self._sweeps[self.axis].u

    def forget(self) -> None:
        """Replace the half levels before the solution by the solution, as at time 0."""
        self._forgets = True

    def over_ranks(self, value: float) -> float:
        """Return the largest value of all ranks, NaN if one is; collective."""
        return float(self.group.allgather(_OPERATION, np.array(value, float)).max())

    def gather(self) -> Array | None:
        """Return the whole solution on rank 0, None on the others; collective."""
        return self.group.gather(_OPERATION, self.u, self.axis)

    def fields(self) -> dict[str, Array] | None:
        """Return all that the next step depends on, on rank 0, None on the others; collective."""
        parts = [(self.u, self.axis)]
        parts += [(self._sweeps[0].field(name), 0) for name in self._names[1:]]
        whole = [self.group.gather(_OPERATION, *part) for part in parts]
        return {
            name: values
            for name, values in zip(self._names, whole, strict=True)
            if values is not None
        } or None

    def set_fields(self, fields: dict[str, Array]) -> None:
        """Replace what `fields` returned."""
        along_x, along_y = self._sweeps
        along_x.set({name: fields[name] for name in self._names})
        # The sweep along y comes half a step later.
        levels = [fields[name] for name in ("u", *self._names[:-1])]
        along_y.set(dict(zip(self._names, levels, strict=False)))

    def step(self, time: float, dt: float, bound: float, threads: int) -> bool:
        """Make the step that ends at a time; return whether abs(u) <= bound on all ranks.

        Collective; then `reports` has the reports of both sweeps.
        """
        along_x, along_y = self._sweeps
        with self.group.agreement(_OPERATION) as agreed:
            for sweep in self._sweeps:
                sweep.prepare(time)
            agreed.same = {"time and dt": (time, dt)}
        if self.axis == 1:
            self._transposition.to_rows(along_y.store, along_x.store, "u")
        if self._forgets:
            along_x.forget()
            along_y.forget()
            self._forgets = False
        first = along_x.make(time, dt, np.inf, threads)
        self._transposition.to_columns(along_x.store, along_y.store, "u")
        second = along_y.make(time, dt, bound, threads)
        self.reports = first, second
        if self.axis == 0:
            self._transposition.to_rows(along_y.store, along_x.store, "u")
        return not self.over_ranks(second["grown"])


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
        s, state, store = self._settings, self._state, self._state.store
        before = state.u.copy() if self._has_levels else None
        # The sweep along x does not change the rows of given values.
        kept = [(at, store.part("u", at)) for at in self._given_rows]
        if self._axis == "y":
            self._take_away(time, dt)
            if before is not None:
                self._set_printed(before)
        status, report = s.backend.gceidd_step(
            s.codes,
            s.strips,
            self._data.spacing,
            dt,
            bound,
            *state.operands(1),
            1,
            threads,
            Counter().begin(),
            *state.arguments,
        )
        raise_for_status(status, s.backend.STATUS, _OPERATION)
        if self._axis == "x":
            self._take_away(time, dt)
        for at, values in kept:
            store.set_part("u", at, values)
        if before is not None:
            store.set("older", state.u)
            store.set("oldest", before)
        found: dict[str, Any] = report
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
