"""The fields of a heat solver and the data of its steps, on the host or on a device."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data import NodeData
from .._errors import raise_for_status
from .._runtime.fields import DeviceFields, Fields, count_of_a_call, make_fields
from .._solver.clock import Segment
from ._laws import LawHeating
from ._settings import HeatSettings
from ._sides import Grid, Side
from ._tables import SideTables

Array = NDArray[Any]

_MOST_STEPS = 1024  # of a call of the backend, so that it can be interrupted
_MOST_TIMES = 64  # the same, if data change with time
_TABLE_NODES = 1 << 22  # what a table over nodes and steps may hold


class HeatState:
    """T, what Peaceman and Rachford's scheme keeps in addition, and tables of the data.

    Parameters
    ----------
    settings : HeatSettings
        The method.
    grid : Grid
        The nodes.
    sides : dict of str to Side
        By name.
    source : NodeData or None
        The source; None is none.
    """

    def __init__(
        self, settings: HeatSettings, grid: Grid, sides: dict[str, Side], source: NodeData | None
    ) -> None:
        self._settings, self._grid, self._sides = settings, grid, sides
        self._source = source
        self.most_steps = self._steps_at_once()
        self._prepared = 0  # the first of the steps that are prepared
        is_delta = settings.scheme == "douglas-gunn"
        if not grid.has_kernels:
            self.most_steps = 1
        self._tables = SideTables(grid, sides, is_delta, self.most_steps)
        self._share = 1.0 if is_delta else 0.5  # of the source in a sweep
        shape, kind = settings.shape, settings.dtype
        layout = dict.fromkeys(("t", "w"), (shape, kind))
        layout["largest"] = ((1,), "float64")
        if self._tables.size:
            layout["tables"] = ((self._tables.size,), kind)
        if source is not None:
            # One value, or all nodes.
            nodes = source.shape if max(source.shape) == 1 else shape
            layout["source"] = ((self._source_steps, *nodes), kind)
        k = grid.k if grid.has_kernels else None
        if k is not None:
            layout["k"] = (shape, kind)
        self._has = set(layout)
        self._state = make_fields(layout, settings.device, "HeatADI")
        if k is not None:
            self._state.set("k", k)
        self._codes: tuple[int, ...] | None = None  # of the settings, for the backend
        self._segment: Segment | None = None  # of the steps whose data are in the tables
        self._ratio: tuple[float, ...] = ()  # of these steps, for the backend
        # What the backend keeps from call to call, and the settings for which it keeps it.
        self._kept: object = None
        self._kept_for: tuple[Any, ...] = ()

    @property
    def store(self) -> Fields:
        """Where the fields lie."""
        return self._state

    @property
    def device(self) -> str | None:
        """Where the fields lie, as the setting."""
        return self._settings.device

    @property
    def dt(self) -> float:
        """Length of the steps."""
        return self._grid.clock.segment.dt

    @property
    def varies(self) -> bool:
        """Whether data of the problem change with time."""
        source = self._source is not None and self._source.varies
        return source or any(side.varies for side in self._sides.values())

    @property
    def _source_steps(self) -> int:
        """Number of steps for which a call gets values of the source."""
        return self.most_steps if self._source is not None and self._source.varies else 1

    def _steps_at_once(self) -> int:
        """Return how many steps a call makes: fewer if tables for all of them would be large."""
        if isinstance(self._source, LawHeating):
            return 1
        if not self.varies:
            settings = self._settings
            return count_of_a_call(_MOST_STEPS, prod(settings.shape), settings.device)
        nodes = sum(int(np.prod(side.shape)) for side in self._sides.values() if side.varies)
        if self._source is not None and self._source.varies:
            nodes += int(np.prod(self._source.shape))
        return max(1, min(_MOST_TIMES, _TABLE_NODES // max(nodes, 1)))

    def start(self, initial: Array) -> None:
        """Begin from a field; the nodes of a side with given values have these values."""
        time = self._grid.clock.segment.time
        field = np.array(initial, self._settings.dtype)
        grid = self._grid
        if grid.holes is not None and grid.hole_values is not None:
            field[grid.holes] = grid.hole_values[grid.holes]
        for side in self._sides.values():
            if side.kind == "value":
                side.of(field)[...] = side.level(time)
        self._state.set("t", field)

    def set_k(self, k: Array) -> None:
        """Replace the conductivities at the nodes."""
        if "k" in self._has:
            self._kept_for = ()
            self._state.set("k", k)

    def changes(self, before: dict[Side, Array], after: dict[Side, Array]) -> dict[Side, Array]:
        """Return what a step by array operations takes of the sides; see `SideTables.changes`."""
        return self._tables.changes(before, after)

    def prepare(self, first: int, count: int) -> None:
        """Bring the data of steps `first` to `first + count - 1` to where they are read."""
        self._prepared = first
        segment = self._grid.clock.segment
        is_there = self._segment is segment
        if not is_there:
            self._ratio = (*self._grid.ratio, *(0.0,) * (3 - self._grid.axes))
        self._segment = None
        if self._tables.size and (self._tables.varies or not is_there):
            self._state.set("tables", self._tables.fill(first, count))
        if self._source is not None and (self._source.varies or not is_there):
            values = self._state.get("source").copy()
            for s in range(count if self._source.varies else 1):
                values[s] = self._share * segment.dt * self._source.at(segment.at(first + s + 0.5))
            self._state.set("source", values)
        self._segment = segment

    def set_level(self, side: Side, values: Array) -> None:
        """Give the nodes of a side other values for the steps after `prepare`.

        What the side prescribes does not change with time, and is an array.
        """
        self._state.set_part("tables", (self._tables.level_of(side),), values.ravel())

    def step(
        self,
        count: int,
        *,
        is_fresh: bool,
        made: NDArray[np.int64],
        first: int = 0,
        lost: tuple[int, int] = (0, 0),
        measures: bool = True,
        goes_on: bool = False,
    ) -> dict[str, Any]:
        """Make steps that `prepare` prepared; return the report of the backend.

        Parameters
        ----------
        count : int
            Number of steps.
        is_fresh : bool
            Whether w is to be computed from T.
        made : array
            Receives the number of steps.
        first : int
            Number of the first step, of those that are prepared.
        lost : (int, int)
            How many nodes at both ends of the first axis of the field are left out, where the
            sides are fluxes.
        measures : bool
            Whether `largest` is to be that after these steps.
        goes_on : bool
            Whether more steps of the same sides follow before T is read.
        """
        s, backend = self._settings, self._settings.backend
        if self._codes is None:
            self._codes = s.codes(backend)
            if isinstance(self._state, DeviceFields):
                self._kept = backend.heat_keep()
        arguments = self._arguments(backend.HEAT_SIDES, first, lost, measures=measures)
        kept_for = self._ratio, lost, [side[:2] for side in arguments[1]]
        is_changed = kept_for != self._kept_for
        self._kept_for = ()  # what a call keeps that raises is not used
        status, report = backend.heat_step(
            self._codes,
            (int(is_fresh), int(s.timed), int(goes_on), int(is_changed), self._prepared + first),
            *arguments,
            self._kept,
            count,
            s.call_threads,
            made,
            *self.place,
        )
        raise_for_status(status, backend.STATUS, "HeatADI")
        self._kept_for = kept_for
        found: dict[str, Any] = report
        return found

    @property
    def t(self) -> Array:
        """T now, to be read."""
        return self._state.get("t")

    @property
    def largest(self) -> float:
        """Largest magnitude of T after the last call; not finite if T is not."""
        return self._state.get("largest").item()

    def set_t(self, field: Array) -> None:
        """Replace T."""
        self._state.set("t", field)

    def fields(self) -> dict[str, Array]:
        """Return what is needed to go on, to be read."""
        return {name: self._state.get(name) for name in ("t", "w")}

    def set_fields(self, fields: dict[str, Array]) -> None:
        """Go on from what `fields` returned."""
        for name in ("t", "w"):
            self._state.set(name, fields[name])

    def operands(self) -> tuple[Array, Array]:
        """Return T and w where they lie, on the host or on the device, to be read."""
        t, w = (self._state.operand(name, changes=False) for name in ("t", "w"))
        return t, w

    def take(self, fields: dict[str, Array]) -> None:
        """Go on from arrays of the device of this state; to be repeated after an interrupt."""
        assert isinstance(self._state, DeviceFields)
        for name, field in fields.items():
            self._state.write(name, (slice(None),) * field.ndim, field)
        self._state.wait()

    def _arguments(
        self,
        kinds: dict[str, int],
        first: int,
        lost: tuple[int, int],
        *,
        measures: bool,
    ) -> tuple[Any, ...]:
        """Return ratios, sides, tables, source, k, t, w and largest for the backend."""
        source, shape, operand = self._source, self._settings.shape, self._state.operand
        held = slice(lost[0], shape[0] - lost[1])
        values, steps = self._read("source"), (0, 0)
        if source is not None and values is not None:
            nodes = 1 if max(source.shape) == 1 else prod(shape)
            steps = (nodes if source.varies else 0, 0 if nodes == 1 else 1)
            start = first * steps[0] + lost[0] * prod(shape[1:]) * steps[1]
            values = values.reshape(-1)[start:]
        k = self._read("k")
        return (
            self._ratio,
            self._tables.arguments(kinds, first=first, row=lost[0]),
            self._read("tables"),
            values,
            steps,
            None if k is None else k[held],
            operand("t")[held],
            operand("w")[held],
            operand("largest") if measures else None,
        )

    @property
    def place(self) -> tuple[int, ...]:
        """What every call of the backend takes last."""
        return self._state.arguments

    def _read(self, name: str) -> Array | None:
        """Return a field that the backend reads, or None if there is none."""
        return self._state.operand(name, changes=False) if name in self._has else None
