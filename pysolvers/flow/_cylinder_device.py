"""Steps of the flow around the cylinder on a device: tables, state and calls of the backend.

The schemes are those of _cylinder_steps.py; cuda/flow/cylinder.h describes the kernels. Fields and
scalars stay on the device. A call makes many steps and leaves a row of numbers for each of them:
the bounds of psi, the forces, the velocities at the probes.
"""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import BackendError, raise_for_status
from .._runtime.fields import DeviceFields, make_fields
from ._channel import ChannelGrid
from ._cylinder_steps import CylinderState, SteadyStep, UnsteadyStep
from ._force_table import ForceTable
from ._line_poisson import LinePoisson
from ._probes import Probes

__all__ = ["DeviceCylinderState", "DeviceSteps"]

Array = NDArray[Any]

_FIELDS = ("psi", "psi_old", "omega", "omega_old")
_SCALARS = ("value", "circulation", "rate")
_LONGEST = 4097  # nodes of a line that fit into a block of the kernels
_ALIGNMENT = 256  # bytes between the starts of two tables
_OWNER = "SquareCylinder"


class DeviceCylinderState:
    """As `CylinderState`, with the fields on a device.

    A call of the backend changes the state. The backend itself counts the steps that it made, so
    that the state is consistent after an interrupt, too.

    Parameters
    ----------
    shape : (int, int)
        Of the fields.
    dtype : dtype
        Of the fields.
    device : str
        The device.
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype, device: str) -> None:
        layout: dict[str, Any] = dict.fromkeys(_FIELDS, (shape, dtype))
        layout["scalars"] = (len(_SCALARS),), np.float64
        self._options = shape, dtype, device
        self._state = make_fields(layout, device, _OWNER)
        self._made = np.zeros(1, np.int64)
        self._first = 0  # number of steps before the last call
        self._swapped = False  # whether the fields had changed their places before the last call
        # Length and origin before the last call, and after its first step.
        self._before = self._after = (1.0, (0.0, 0))

    @property
    def arguments(self) -> tuple[int, ...]:
        """What every call of the backend takes last."""
        return self._state.arguments

    @property
    def psi(self) -> Array:
        """psi now, on the host."""
        return self._state.get(self._names()[0])

    @property
    def psi_old(self) -> Array:
        """psi one step before."""
        return self._state.get(self._names()[1])

    @property
    def omega(self) -> Array:
        """omega now."""
        return self._state.get(self._names()[2])

    @property
    def omega_old(self) -> Array:
        """omega one step before."""
        return self._state.get(self._names()[3])

    @property
    def value(self) -> float:
        """psi on the body."""
        return float(self._state.get("scalars")[0])

    @property
    def circulation(self) -> float:
        """Circulation around the box."""
        return float(self._state.get("scalars")[1])

    @property
    def rate(self) -> float:
        """Its rate of change one step before; NaN before the first step."""
        return float(self._state.get("scalars")[2])

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self._first + int(self._made[0])

    @property
    def dt_old(self) -> float:
        """Length of the last step."""
        return (self._after if self._made[0] else self._before)[0]

    @property
    def origin(self) -> tuple[float, int]:
        """Time and number of steps when the current length of a step was first used."""
        return (self._after if self._made[0] else self._before)[1]

    @property
    def time(self) -> float:
        """Time of the fields."""
        time, steps = self.origin
        return time + (self.steps - steps) * self.dt_old

    def begin(self, dt: float) -> NDArray[np.int64]:
        """Return the array to which a call with steps of this length writes their number."""
        now = self.dt_old, self.origin
        after = dt, self.origin if dt == self.dt_old else (self.time, self.steps)
        first, swapped, made = self.steps, self._is_swapped(), np.zeros(1, np.int64)
        # One statement without a call: no signal handler runs within it.
        self._before, self._after, self._first, self._swapped, self._made = (
            now,
            after,
            first,
            swapped,
            made,
        )
        return made

    def operands(self) -> tuple[tuple[Array, ...], Array]:
        """Return the fields, in the order psi, psi_old, omega, omega_old, and the scalars."""
        fields = tuple(self._state.operand(name) for name in self._names())
        return fields, self._state.operand("scalars")

    def set(self, state: CylinderState) -> None:
        """Take the values of a state on the host."""
        for name in _FIELDS:
            self._state.set(name, getattr(state, name))
        self._state.set("scalars", [getattr(state, name) for name in _SCALARS])
        self._made = np.zeros(1, np.int64)
        self._first, self._swapped = state.steps, False
        self._before = self._after = state.dt_old, state.origin

    def copy(self, into: "DeviceCylinderState | None" = None) -> "DeviceCylinderState":
        """Return a state with memory of its own; that of `into`, if it is given."""
        other = DeviceCylinderState(*self._options) if into is None else into
        to, source = other._state, self._state
        assert isinstance(to, DeviceFields)
        assert isinstance(source, DeviceFields)
        for name, own in zip(_FIELDS, self._names(), strict=True):
            to.copy_from(name, source, own)
        to.copy_from("scalars", source, "scalars")
        other._made = np.zeros(1, np.int64)
        other._first, other._swapped = self.steps, False
        other._before = other._after = self.dt_old, self.origin
        return other

    def _is_swapped(self) -> bool:
        return self._swapped != (int(self._made[0]) % 2 == 1)

    def _names(self) -> tuple[str, ...]:
        """Return the names of the fields in the order psi, psi_old, omega, omega_old."""
        psi, psi_old, omega, omega_old = _FIELDS
        return (psi_old, psi, omega_old, omega) if self._is_swapped() else _FIELDS


class DeviceSteps:
    """Makes the steps of one solver.

    Parameters
    ----------
    grid : ChannelGrid
        The grid.
    host : UnsteadyStep or SteadyStep
        The steps on the host, in float64: for the start, and for the numbers of the body.
    dtype : dtype
        float32 or float64.
    forces : ForceTable
        The weights of the forces.
    device : str
        The device.
    """

    on_device = True
    backend_name = "cuda"
    threads = 0
    #: Steps between two checks of the change of a steady flow.
    interval = 20

    def __init__(
        self,
        grid: ChannelGrid,
        host: UnsteadyStep | SteadyStep,
        dtype: np.dtype,
        forces: ForceTable,
        device: str,
    ) -> None:
        if max(grid.shape) > _LONGEST:
            raise BackendError(
                f"SquareCylinder on a device takes at most {_LONGEST} nodes along an axis, got "
                f"shape={grid.shape}: use device='cpu'"
            )
        self._grid, self._host, self._dtype, self._device = grid, host, dtype, device
        state = make_fields({"none": ((1,), np.float64)}, device, _OWNER)  # checks the device
        assert isinstance(state, DeviceFields)
        self._backend, self._arguments = state.device.backend, state.arguments
        self._codes: dict[str, int] = self._backend.CYLINDER_COLUMNS
        #: Time of each stage of all steps.
        self.seconds = dict.fromkeys(("omega", "psi", "walls", "forces"), 0.0)
        self._columns = len(self._codes)
        tables = _tables(grid, host, dtype) | {
            "force_nodes": forces.nodes,
            "force_weights": forces.weights,
        }
        self._unit_sum = float(tables["unit"].sum())
        self._sizes = len(tables["surface"]), len(forces.nodes)
        self._buffer, self._addresses = self._upload(tables)
        self._probes: Probes | None = None
        self._probe_buffer: Any = None
        self._probe_addresses: dict[str, int] = {}
        self._history: Any = None
        self._capacity = 0
        # The last call: its state, its number of steps before, and the columns of its history.
        self._last: tuple[DeviceCylinderState, int, int] | None = None

    def start(self, psi: Array, omega: Array, dt: float) -> DeviceCylinderState:
        """Return the state of a vorticity at time 0, as the steps on the host do."""
        wide = np.float64
        return self.resume(self._host.start(psi.astype(wide), omega.astype(wide), dt))

    def resume(self, state: CylinderState) -> DeviceCylinderState:
        """Return a state on the device."""
        there = DeviceCylinderState(self._grid.shape, self._dtype, self._device)
        there.set(state)
        return there

    def make(self, state: DeviceCylinderState, dt: float, count: int, probes: Probes) -> None:
        """Make steps; the backend counts them in `state`."""
        self._set_probes(probes)
        columns = self._columns + 2 * len(probes.places)
        self._reserve(count * columns)
        names = sorted(self._backend.CYLINDER_TABLES, key=self._backend.CYLINDER_TABLES.get)
        addresses = {"unit_psi": 0} | self._addresses | self._probe_addresses
        dt_old = state.dt_old
        fields, scalars = state.operands()
        first = state.steps
        self._last = None
        made = state.begin(dt)
        self._last = state, first, columns
        surface, force_nodes = self._sizes
        status, seconds = self._backend.cylinder_step(
            *self._constants(dt, dt_old),
            (first, surface, len(probes.places), force_nodes),
            fields,
            scalars,
            (*(addresses[name] for name in names), self._history.address),
            count,
            made,
            *state.arguments,
        )
        raise_for_status(status, self._backend.STATUS, _OWNER)
        for name, value in seconds.items():
            self.seconds[name] += value

    def rows(self, state: DeviceCylinderState, known: int) -> tuple[int, Array, dict[str, int]]:
        """Return the rows of the steps of the last call after step number `known`.

        Parameters
        ----------
        state : DeviceCylinderState
            The current state.
        known : int
            Number of steps of which the rows are known.

        Returns
        -------
        first : int
            Number of the step of the first row.
        rows : ndarray
            One row for each step.
        columns : dict of str to int
            The columns by name; u and v of each probe follow them.
        """
        columns = self._columns
        if self._last is not None and self._last[0] is state:
            _, first, columns = self._last
            begin, end = max(known - first, 0), state.steps - first
            if end > begin:
                rows = np.empty((end - begin, columns))
                address = self._history.address + begin * columns * rows.itemsize
                status = self._backend.download(rows, address, *state.arguments)
                raise_for_status(status, self._backend.STATUS, _OWNER)
                return first + begin + 1, rows, self._codes
        return state.steps + 1, np.empty((0, columns)), self._codes

    def _constants(self, dt: float, dt_old: float) -> tuple[Any, ...]:
        """Return switches, numbers and ranges of a call."""
        grid, host = self._grid, self._host
        is_steady, poisson = isinstance(host, SteadyStep), host.poisson
        numbers: tuple[float, ...] = (0.0, 0.0)
        shifts: tuple[float, ...] = ()
        if isinstance(poisson, LinePoisson):
            numbers = poisson.tolerance, poisson.unit_circulation
            shifts = tuple(poisson.shifts)
        box_rows, box_columns = grid.box
        ranges = (grid.rows, grid.columns, box_rows, box_columns)
        return (
            (int(is_steady), int(isinstance(host, UnsteadyStep) and host.is_free)),
            (
                *(grid.hx, grid.hy, host.viscosity, dt, dt_old),
                *host.wall,
                host.wall_weight(dt),
                self._unit_sum,
                *numbers,
            ),
            shifts,
            tuple(end for r in ranges for end in (r.first, r.last)),
        )

    def _set_probes(self, probes: Probes) -> None:
        if probes is not self._probes:
            self._probe_buffer, self._probe_addresses = self._upload(
                {"probe_nodes": probes.nodes.astype(np.int32), "probe_weights": probes.weights}
            )
            self._probes = probes

    def _reserve(self, numbers: int) -> None:
        """Provide memory for the history of a call."""
        if numbers > self._capacity:
            self._last = None
            self._history = self._backend.Buffer(8 * numbers, *self._arguments, True)
            self._capacity = numbers

    def _upload(self, tables: Mapping[str, Array]) -> tuple[Any, dict[str, int]]:
        """Copy arrays to the device: the memory, and their addresses."""
        places, end = {}, 0
        for name, table in tables.items():
            places[name] = end
            end += -(-table.nbytes // _ALIGNMENT) * _ALIGNMENT
        buffer = self._backend.Buffer(max(end, _ALIGNMENT), *self._arguments, True)
        addresses = {name: buffer.address + place for name, place in places.items()}
        for name, table in tables.items():
            if table.size:
                block = np.array(table, order="C")
                status = self._backend.upload(addresses[name], block, *self._arguments)
                raise_for_status(status, self._backend.STATUS, _OWNER)
        status = self._backend.wait(*self._arguments)
        raise_for_status(status, self._backend.STATUS, _OWNER)
        return buffer, addresses


def _tables(
    grid: ChannelGrid, host: UnsteadyStep | SteadyStep, dtype: np.dtype
) -> dict[str, Array]:
    """Return the tables of csrc/include/ps_cylinder.h, without those of probes and forces."""
    ny, hx, hy = grid.shape[0], grid.hx, grid.hy
    intervals = ny - 1
    half = intervals // 2
    ends = np.arange(1, half + 1)

    def sines(waves: Array, places: Array) -> Array:
        """Return sin(pi k j / n) with an argument below 2 pi, 0 where it must be."""
        product = np.outer(waves, places) % (2 * intervals)
        return np.where(product % intervals == 0, 0.0, np.sin(np.pi / intervals * product))

    parities = sines(2 * ends - 1, ends), sines(2 * ends, ends)
    both = np.stack([hx**2 * np.stack(parities), 2 / intervals * np.stack([s.T for s in parities])])
    waves = np.arange(ny)
    excess = 2 * (hx / hy) ** 2 * np.sin(np.pi * waves / (2 * intervals)) ** 2
    body_rows = np.arange(grid.rows.first, grid.rows.last + 1)
    places = sines(body_rows, waves)
    poisson = host.poisson
    lines = {}
    if isinstance(poisson, LinePoisson):
        lines["unit_psi"] = poisson.unit.astype(dtype)
        poisson = poisson.direct
    (rows, columns), inverse = poisson.surface, poisson.inverse()
    width = grid.columns.last - grid.columns.first + 1
    response = np.zeros((2 * ny + 2 * width, len(rows)))
    for k, column in enumerate((0, width - 1)):
        nodes = columns == column
        response[k * ny : (k + 1) * ny] = places[rows[nodes]].T @ inverse[nodes]
    for k, row in enumerate((0, len(body_rows) - 1)):
        nodes = (rows == row) & (columns > 0) & (columns < width - 1)
        response[2 * ny + k * width + columns[nodes]] = inverse[nodes]
    return {
        "sines": both.astype(dtype),
        "decays": 1 / (1 + excess + np.sqrt(excess * (excess + 2))),
        "body_sines": 2 / intervals * places,
        "surface": np.stack([rows, columns], axis=1).astype(np.int32),
        "response": -(hx**2) * response,
        "unit": inverse.sum(axis=0),
    } | lines


def history_rows(
    first: int,
    rows: Array,
    columns: Mapping[str, int],
    state: DeviceCylinderState,
    forces_every: int,
    *,
    steady: bool,
) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    """Return the rows of the histories of the probes and of the forces.

    Parameters
    ----------
    first, rows, columns
        As returned by `DeviceSteps.rows`.
    state : DeviceCylinderState
        The state after the last row.
    forces_every : int
        Steps from one row of the forces to the next.
    steady : bool
        Whether the change of psi is recorded; otherwise it is 0.
    """
    start, begun = state.origin
    dt = state.dt_old
    probes: list[tuple[float, ...]] = []
    forces: list[tuple[float, ...]] = []
    names: Sequence[str] = ("drag", "lift", "surface_drag", "surface_lift")
    for step, row in enumerate(rows.tolist(), first):
        time = start + (step - begun) * dt
        change = row[columns["change"]] / dt if steady else 0.0
        probes.append((time, change, *row[len(columns) :]))
        if step % forces_every == 0:
            forces.append((time - dt / 2, *(row[columns[name]] for name in names)))
    return probes, forces


def extremes(rows: Array, columns: Mapping[str, int]) -> tuple[float, float]:
    """Return the largest absolute value of psi and its largest change in the last step."""
    if not len(rows):
        return nan, nan
    return float(rows[-1, columns["largest"]]), float(rows[-1, columns["change"]])
