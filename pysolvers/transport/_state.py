"""The fields of GCEIDD and the data of its steps, on the host or on a device."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import raise_for_status
from .._runtime.fields import Fields, count_of_a_call, make_fields
from ._range import NO_ROW, bounds_of, rows_of
from ._settings import TransportSettings
from .problem import SIDES, GridData, Quantity

Array = NDArray[Any]

_MOST_STEPS = 64
_MOST_STEPS_WITHOUT_TABLES = 1024
_TABLE_NODES = 2**22  # what a table over nodes and steps may hold
_FIELDS = ("u", "older", "oldest")


def _kept(name: str) -> str:
    """Return the name of the copy of a field."""
    return f"kept {name}"


def field_names(scheme: str) -> tuple[str, ...]:
    """Return the names of the fields that the next step depends on."""
    return _FIELDS if scheme == "mu" else _FIELDS[:1]


class TransportState:
    """u, the half levels before it where the scheme needs them, and tables of the data.

    What does not change with time is there once; tables of what does are filled for the steps
    of each call.

    Parameters
    ----------
    data : GridData
        The problem on the grid.
    settings : TransportSettings
        The method, with the shape of the part of the grid that `data` has.
    most_steps : int, optional
        Largest number of steps in a call.
    keeps : bool, optional
        Whether `restore` is called.
    """

    def __init__(
        self,
        data: GridData,
        settings: TransportSettings,
        most_steps: int = _MOST_STEPS_WITHOUT_TABLES,
        *,
        keeps: bool = False,
    ) -> None:
        self._data, self._nodes, self._device = data, data.nodes, settings.device
        self._settings = settings
        self._names = field_names(settings.scheme)
        self._tables: dict[str, Quantity] = {
            **{f"velocity {axis}": b for axis, b in zip("xy", data.velocity, strict=True)},
            **{f"diffusion {axis}": a for axis, a in zip("xy", data.diffusion, strict=True)},
            **{f"source {k}": field for k, field in enumerate(data.fields)},
            **data.edges,
            **{f"exchange {side}": c for side, c in data.exchange.items()},
        }
        self.most_steps = min(most_steps, self._steps_at_once())
        kept = [_kept(name) for name in self._names] if keeps else []
        layout = dict.fromkeys((*self._names, *kept), ((1, *self._nodes), settings.dtype))
        for name, table in self._tables.items():
            steps = self.most_steps if table.varies else 1
            layout[name] = ((steps, *table.shape), settings.dtype)
        self._state = make_fields(layout, settings.device, "GCEIDD")
        for name, table in self._tables.items():
            if not table.varies:
                self._state.set(name, table.at(0.0)[None])
        for name in self._names:
            self._state.set(name, data.wrapped(data.initial))
        self._kinds = settings.backend.GCEIDD_KINDS
        self._factors: Sequence[Array] = (
            ()
            if data.varies
            else [np.array([data.factor(k, 0.0)]) for k in range(len(data.fields))]
        )
        self._even: dict[str, NDArray[np.bool_]] = {}
        self._bounds: dict[str, NDArray[np.float64]] = {}
        if settings.has_range:
            for name, table in self._tables.items():
                if not table.varies:
                    self._note(name, table.at(0.0)[None])
        #: Of the steps that `prepare` prepared: see `Range.begin`.
        self.rows: NDArray[np.float64] = np.array([NO_ROW])
        if not data.varies:
            self._set_rows()

    @property
    def store(self) -> Fields:
        """Where the fields lie."""
        return self._state

    @property
    def u(self) -> Array:
        """The solution, to be read."""
        field: Array = self._state.get("u")[0][self._data.shown]
        return field

    def fields(self) -> dict[str, Array]:
        """Return everything that the next step depends on."""
        return {name: self._state.get(name)[0][self._data.shown] for name in self._names}

    def set_fields(self, fields: dict[str, Array]) -> None:
        """Replace what `fields` returned."""
        for name in self._names:
            self._state.set(name, self._data.wrapped(fields[name]))

    def forget(self) -> None:
        """Replace the half levels before the solution by the solution, as at time 0."""
        if len(self._names) > 1:
            u = self._state.get("u")[0].copy()
            for name in self._names[1:]:
                self._state.set(name, u)

    def restore(self) -> None:
        """Make the fields those before the last call of `step` that kept them."""
        for name in self._names:
            self._state.copy(name, _kept(name))

    def prepare(self, times: Sequence[float]) -> None:
        """Evaluate the data of steps that end at these times: no later call does."""
        self._factors = [
            np.array([self._data.factor(term, time) for time in times])
            for term in range(len(self._data.fields))
        ]
        for name, table in self._tables.items():
            if table.varies:
                values = np.zeros((self.most_steps, *table.shape))
                for k, time in enumerate(times):
                    values[k] = table.at(time)
                self._state.set(name, values)
                if self._settings.has_range:
                    self._note(name, values[: len(times)])
        if self._data.varies:
            self._set_rows()

    def _note(self, name: str, values: Array) -> None:
        """Note what the range of the solution depends on, of the values in some steps."""
        kind, _, axis = name.partition(" ")
        if kind == "velocity":
            b = values if axis == "x" else values.transpose(0, 2, 1)
            self._even[name] = (b == b[..., :1]).all(axis=(1, 2))
        elif kind not in ("diffusion", "exchange"):
            self._bounds[name] = bounds_of(values)

    def _set_rows(self) -> None:
        """Set the rows of the steps that are prepared."""
        if self._settings.has_range:
            is_even = np.logical_and(*self._even.values())
            self.rows = rows_of(self._data, self._bounds, self._factors, is_even=is_even)

    def step(
        self,
        dt: float,
        limits: tuple[float, float],
        count: int,
        threads: int,
        made: NDArray[np.int64],
        *,
        lost: tuple[int, int] = (0, 0),
        keeps: bool = False,
    ) -> dict[str, Any]:
        """Make the steps that `prepare` prepared; return the report of the backend.

        `limits` are the smallest and the largest value of u that are accepted. `made` receives the
        number of steps. `lost` are the strips along y that the grid loses at
        each end after a step. With `keeps`, the fields before the steps are kept for `restore`.
        """
        s, before = self._settings, None
        if keeps:
            before = self._keep()
        status, report = s.backend.gceidd_step(
            s.codes,
            s.strips,
            lost,
            self._data.spacing,
            dt,
            limits,
            self._fields(),
            before,
            *self._operands(count),
            count,
            threads,
            made,
            *self._state.arguments,
        )
        raise_for_status(status, s.backend.STATUS, "GCEIDD")
        found: dict[str, Any] = report
        return found

    def _keep(self) -> Array | None:
        """Keep the fields; return u if the next step is to begin from it, and not from "u"."""
        if len(self._names) == 1:
            self._state.swap("u", _kept("u"))
            return self._state.operand(_kept("u"), changes=False)
        for name in self._names:
            self._state.copy(_kept(name), name)
        return None

    def _fields(self) -> tuple[Array | None, ...]:
        """Return the fields as the backend takes them."""
        names = [*self._names, *(None,) * (len(_FIELDS) - len(self._names))]
        return tuple(None if name is None else self._state.operand(name) for name in names)

    def _operands(self, count: int) -> tuple[Any, ...]:
        """Return what the backend takes between the fields and the number of steps."""
        ny, nx = self._nodes
        shapes = {"x": (ny, 1), "y": (1, nx)}
        return (
            tuple(self._table(f"velocity {axis}", count, self._nodes) for axis in "xy"),
            tuple(self._table(f"diffusion {axis}", count, self._nodes) for axis in "xy"),
            tuple(
                (self._table(f"source {k}", count, self._nodes), self._factors[k])
                for k in range(len(self._data.fields))
            ),
            tuple(self._kinds[self._data.kinds[side]] for side in SIDES),
            tuple(self._table(side, count, shapes[side[0]]) for side in SIDES),
            tuple(
                self._table(f"exchange {side}", count, shapes[side[0]])
                if side in self._data.exchange
                else None
                for side in SIDES
            ),
        )

    def _table(self, name: str, count: int, shape: tuple[int, ...]) -> Array:
        """Return the values of some steps at nodes: what is the same is there once."""
        values = self._state.operand(name, changes=False)
        return np.broadcast_to(values[:count], (count, *shape))

    def _steps_at_once(self) -> int:
        """Return for how many steps the tables are filled at a time."""
        shapes = [table.shape for table in self._tables.values() if table.varies]
        if not shapes:
            most = _MOST_STEPS_WITHOUT_TABLES
            return count_of_a_call(most, prod(self._nodes), self._device)
        largest = max(rows * columns for rows, columns in shapes)
        return max(1, min(_MOST_STEPS, _TABLE_NODES // largest))
