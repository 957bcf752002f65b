r"""Steps of the flow around the cylinder: unsteady and towards the steady state.

Unsteady (Peaceman and Rachford 1955), from level n to n + 1, with the velocity of
psi* = psi[n] + (psi[n] - psi[n-1]) dt / (2 dt_old) at the half step:

    (1 + dt/2 (u delta_x - nu delta_xx)) w*     = (1 - dt/2 (v delta_y - nu delta_yy)) w[n]
    (1 + dt/2 (v delta_y - nu delta_yy)) w[n+1] = (1 - dt/2 (u delta_x - nu delta_xx)) w*

for the vorticity w. The right side of the second line is 2 w* minus that of the first line. Walls
and body have values extrapolated to the half step as psi* is. The outlet is convected before, w by
u and psi by 1, with the scheme of Warming and Beam (1976). The circulation around the box is
advanced by the second-order method of Adams and Bashforth; psi follows from w and the circulation
(_body_poisson.py), and the vorticity on the walls and the body from psi. At a corner of the body it
is the mean of Thom's formulas of both faces, for every wall formula: psi grows as r^1.54 there, so
that the values farther away, which the formulas of second order read, make the corner worse.

Steady: backward Euler in delta form,

    (1 + dt (u delta_x - nu delta_xx)) (1 + dt (v delta_y - nu delta_yy)) D
        = dt (nu lap w - u delta_x w - v delta_y w),    w += D,

D = 0 on walls and body, zero gradient at the outlet, psi = 0 on the body by symmetry, and walls
relaxed, w_w += (formula - w_w) / (1 + g sqrt(dt nu)/h), with g = 2 for Thom's formula.

Rows of the body are identities. Stability: the implicit half steps are stable for any dt; the
walls, whose values a step extrapolates, require dt of the order of the spacing and of Re times its
square.

A backend makes the steps: csrc/cpu/flow/cylinder.c on the host, cuda/flow/cylinder.cu on a device.
Fields and scalars stay where it computes. A call makes many steps and leaves a row of numbers for
each of them: the bounds of psi, the forces, the velocities at the probes.
"""

from collections.abc import Mapping, Sequence
from math import nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._errors import BackendError, raise_for_status
from ..._runtime.device import address_of
from ..._runtime.fields import DeviceFields, make_fields, memory_of
from .._walls import WALLS
from ._body_poisson import BodyPoisson
from ._channel import ChannelGrid
from ._force_table import ForceTable
from ._line_poisson import LineCycle
from ._probes import Probes
from ._settings import CylinderSettings
from ._start import CylinderValues, start_values
from ._tables import tables_of

Array = NDArray[Any]

_FIELDS = ("psi", "psi_old", "omega", "omega_old")
_SCALARS = ("value", "circulation", "rate")
_STAGES = ("omega", "psi", "walls", "forces")
_LONGEST = 4097  # nodes of a line that fit into a block of the kernels of a device
_OWNER = "SquareCylinder"


class CylinderState:
    """Everything that the next step depends on; see `CylinderValues`.

    A call of the backend changes the state. The backend itself counts the steps that it made, so
    that the state is consistent after an interrupt, too.

    Parameters
    ----------
    shape : (int, int)
        Of the fields.
    dtype : dtype
        Of the fields.
    device : str or None
        Where they lie.
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype, device: str | None) -> None:
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
        """psi now."""
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

    def set(self, values: CylinderValues) -> None:
        """Take values on the host."""
        for name in _FIELDS:
            self._state.set(name, getattr(values, name))
        self._state.set("scalars", [getattr(values, name) for name in _SCALARS])
        self._made = np.zeros(1, np.int64)
        self._first, self._swapped = values.steps, False
        self._before = self._after = values.dt_old, values.origin

    def copy(self, into: "CylinderState | None" = None) -> "CylinderState":
        """Return a state with memory of its own; that of `into`, if it is given."""
        other = CylinderState(*self._options) if into is None else into
        to, source = other._state, self._state
        for name, own in zip((*_FIELDS, "scalars"), (*self._names(), "scalars"), strict=True):
            if isinstance(to, DeviceFields):
                assert isinstance(source, DeviceFields)
                to.copy_from(name, source, own)
            else:
                to.set(name, source.get(own))
        other._made = np.zeros(1, np.int64)
        other._first, other._swapped = self.steps, False
        other._before = other._after = self.dt_old, self.origin
        return other

    def _is_swapped(self) -> bool:
        """Return whether the present fields are in the places of the old ones."""
        return self._swapped != (int(self._made[0]) % 2 == 1)

    def _names(self) -> tuple[str, ...]:
        """Return the names of the fields in the order psi, psi_old, omega, omega_old."""
        psi, psi_old, omega, omega_old = _FIELDS
        return (psi_old, psi, omega_old, omega) if self._is_swapped() else _FIELDS


class CylinderSteps:
    """Makes the steps of one solver.

    Parameters
    ----------
    grid : ChannelGrid
        The grid.
    settings : CylinderSettings
        The parameters.
    forces : ForceTable
        The weights of the forces.
    """

    def __init__(self, grid: ChannelGrid, settings: CylinderSettings, forces: ForceTable) -> None:
        self._grid, self._settings = grid, settings
        self.on_device = settings.is_on_device
        if self.on_device and max(grid.shape) > _LONGEST:
            raise BackendError(
                f"SquareCylinder on a device takes at most {_LONGEST} nodes along an axis, got "
                f"shape={grid.shape}: use device='cpu'"
            )
        self._memory = memory_of(settings.device, _OWNER)
        self._wall = WALLS[settings.wall]
        self._poisson = BodyPoisson(grid, settings.call_threads, free_outlet=settings.steady)
        self._cycle = LineCycle(grid, self._poisson) if settings.psi_solver == "lines" else None
        backend = settings.backend
        self._codes: dict[str, int] = backend.CYLINDER_COLUMNS
        #: Time of each stage of all steps.
        self.seconds = dict.fromkeys(_STAGES, 0.0)
        #: Number of host threads of the last call; 0 on a device and before the first call.
        self.threads = 0
        self._columns = len(self._codes)
        tables = tables_of(grid, self._poisson, np.dtype(settings.dtype))
        if self._cycle is not None:
            tables["unit_psi"] = self._cycle.unit.astype(settings.dtype)
        tables |= {"force_nodes": forces.nodes, "force_weights": forces.weights}
        self._unit_sum = float(tables["unit"].sum())
        self._sizes = len(tables["surface"]), len(forces.nodes)
        self._tables = self._memory.pack(tables)
        self._probes: Probes | None = None
        self._probe_tables: dict[str, Array] = {}
        #: Rows of the history of a call.
        self._history = self._memory.empty((0,), np.dtype(float))
        # The last call: its state, its number of steps before, and the columns of its history.
        self._last: tuple[CylinderState, int, int] | None = None

    @property
    def interval(self) -> int:
        """Steps between two checks of the change of a steady flow."""
        return 20 if self.on_device else 1

    def start(
        self,
        psi: Array,
        omega: Array,
        dt: float,
        origin: tuple[float, int],
        circulation: float = 0.0,
    ) -> CylinderState:
        """Return the state of a vorticity before a step; parameters as of `start_values`."""
        found = start_values(
            self._grid, self._poisson, self._wall, psi, omega, dt, origin, circulation
        )
        return self.resume(found)

    def resume(self, values: CylinderValues) -> CylinderState:
        """Return a state with given values."""
        s = self._settings
        state = CylinderState(self._grid.shape, np.dtype(s.dtype), s.device)
        state.set(values)
        return state

    def make(self, state: CylinderState, dt: float, count: int, probes: Probes) -> None:
        """Make steps; the backend counts them in `state`."""
        if probes is not self._probes:
            nodes = probes.nodes.astype(np.int32)
            tables = {"probe_nodes": nodes, "probe_weights": probes.weights}
            self._probe_tables, self._probes = self._memory.pack(tables), probes
        backend = self._settings.backend
        columns = self._columns + 2 * len(probes.places)
        self._last = None
        if count * columns > self._history.size:
            self._history = self._memory.empty((count * columns,), np.dtype(float), lasting=True)
        names = sorted(backend.CYLINDER_TABLES, key=backend.CYLINDER_TABLES.get)
        tables = self._tables | self._probe_tables
        addresses = {"unit_psi": 0} | {k: address_of(t) if t.size else 0 for k, t in tables.items()}
        dt_old = state.dt_old
        fields, scalars = state.operands()
        first = state.steps
        made = state.begin(dt)
        self._last = state, first, columns
        surface, force_nodes = self._sizes
        status, report = backend.cylinder_step(
            *self._constants(dt, dt_old),
            (first, surface, len(probes.places), force_nodes),
            fields,
            scalars,
            (*(addresses[name] for name in names), address_of(self._history)),
            count,
            self._settings.call_threads,
            made,
            *state.arguments,
        )
        raise_for_status(status, backend.STATUS, _OWNER)
        self.threads = report["threads"]
        for name, value in report["seconds"].items():
            self.seconds[name] += value

    def rows(self, state: CylinderState, known: int) -> tuple[int, Array, dict[str, int]]:
        """Return the rows of the steps of the last call after step number `known`.

        Parameters
        ----------
        state : CylinderState
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
                rows = self._memory.download(self._history[begin * columns : end * columns])
                return first + begin + 1, rows.reshape(-1, columns), self._codes
        return state.steps + 1, np.empty((0, columns)), self._codes

    def _constants(self, dt: float, dt_old: float) -> tuple[Any, ...]:
        """Return switches, numbers, parameters of a cycle and ranges of a call."""
        grid, s, cycle = self._grid, self._settings, self._cycle
        numbers: tuple[float, ...] = (0.0, 0.0)
        shifts: tuple[float, ...] = ()
        if cycle is not None:
            numbers, shifts = (s.psi_tol, cycle.unit_circulation), tuple(cycle.shifts)
        box_rows, box_columns = grid.box
        ranges = (grid.rows, grid.columns, box_rows, box_columns)
        return (
            (
                *(int(s.steady), int(not s.steady and s.cylinder == "free")),
                *(int(s.line_method == "pta"), s.block or 0),
            ),
            (
                *(grid.hx, grid.hy, 1 / s.reynolds, dt, dt_old),
                *self._wall,
                self._wall_weight(dt),
                self._unit_sum,
                *numbers,
            ),
            shifts,
            tuple(end for r in ranges for end in (r.first, r.last)),
        )

    def _wall_weight(self, dt: float) -> float:
        """Return the share of the change to the formula of the walls that a step makes."""
        grid, s = self._grid, self._settings
        if not s.steady:
            return 1.0
        return 1 / (1 + self._wall.gain * sqrt(dt / s.reynolds) / min(grid.hx, grid.hy))


def history_rows(
    first: int,
    rows: Array,
    columns: Mapping[str, int],
    state: CylinderState,
    forces_every: int,
    *,
    steady: bool,
) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    """Return the rows of the histories of the probes and of the forces.

    Parameters
    ----------
    first, rows, columns
        As returned by `CylinderSteps.rows`.
    state : CylinderState
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
