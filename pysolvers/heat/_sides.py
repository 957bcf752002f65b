"""The sides of the box: what they prescribe, level by level and sweep by sweep."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._axis import NEUMANN, GridAxis, even_step
from .._boundary import PERIODIC, Neumann, Robin, parts_of
from .._checks import require
from .._data import NodeData
from .._domain import AXES, checked_line, origin_and_step
from .._solver.clock import Clock
from ._settings import HeatSettings

Array = NDArray[np.float64]

# Distance of the lines of a rod in distances of its nodes: a node depends on its line, also in the
# relaxation of lines, and the conductances differ by a factor that float32 can take.
_APART = 32.0
_PINNED = 1e20  # heat capacity of nodes of a given temperature, over the mean one of the others
# Conductivity of insulated holes over the least one: what flows is far below rounding errors.
_INSULATION = {"float64": 1e-20, "float32": 1e-12}
_FLUXES = (Neumann, Robin)  # torch.compile of torch 2.7 does not trace unions


def _axis_of(
    name: str, size: int, edges: Array, step: float | None, *, is_periodic: bool
) -> GridAxis:
    """Return an axis of nodes whose ends, if it has any, have half a volume."""
    ends = (PERIODIC, PERIODIC) if is_periodic else (NEUMANN, NEUMANN)
    return GridAxis(name, size, True, ends, edges, step)


class Grid:
    """Nodes, steps and conductivity of a box; axes are counted from x on.

    The nodes of a rod are those of a plate of two lines along x; see `HeatSettings.plate`.

    Parameters
    ----------
    settings : HeatSettings
        Nodes, and spacing or extent.
    clock : Clock
        Times and lengths of the steps.
    periodic : sequence of str
        Names of the periodic axes.
    """

    def __init__(self, settings: HeatSettings, clock: Clock, periodic: Sequence[str]) -> None:
        #: Number of axes that have a name: 1 for a rod.
        self.named = len(settings.shape)
        self.nodes = settings.plate.shape[::-1]
        self.axes = len(self.nodes)
        #: Those of the whole domain, also where this grid has a part of them.
        self.whole = self.nodes
        self.clock = clock
        #: The axes whose nodes are not evenly spaced.
        self.uneven: dict[int, GridAxis] = {}
        #: Distances of neighbours along these axes, in multiples of `spacing`, which is their mean.
        self.gaps: dict[int, Array] = {}
        if settings.coordinates is None:
            self.origin, self.spacing = origin_and_step(
                settings.shape[::-1], settings.spacing, settings.extent, periodic
            )
        else:
            self._set_lines(settings.coordinates, periodic)
        if self.named < self.axes:
            self.origin, self.spacing = (
                (*self.origin, 0.0),
                (*self.spacing, _APART * self.spacing[0]),
            )
        #: Numbers of the nodes along an axis whose first node is not number 0.
        self.numbers: dict[int, NDArray[np.int64]] = {}
        #: Heat capacity of a volume: a number, or the mean of those at the nodes.
        self.capacity = 1.0
        #: Heat capacities at the nodes divided by `capacity`; None is 1.
        self.relative: Array | None = None
        #: Conductivity along each axis over `capacity`, as a factor of `k`.
        self.diffusivity = (1.0,) * self.axes
        #: Conductivity at the nodes over `capacity`; None is 1.
        self.k: Array | None = None
        #: Whether each node lies in a hole; None without holes.
        self.holes: NDArray[np.bool_] | None = None
        #: Temperature of the nodes in holes, at all nodes; None if holes are insulated.
        self.hole_values: Array | None = None
        #: Of a steady state: how much faster the source falls than T, over the heat capacity.
        self.sink: Array | None = None
        #: Whether the kernels of alternating directions can step the nodes.
        self.has_kernels = True

    def _set_lines(self, coordinates: Sequence[Sequence[float]], periodic: Sequence[str]) -> None:
        """Take the coordinates of the nodes; an axis on which they are even is one of a spacing."""
        origin, spacing = [], []
        for axis, places in enumerate(coordinates):
            name, n = AXES[axis], self.nodes[axis]
            line = checked_line(name, places, n, is_periodic=name in periodic)
            own = _axis_of(name, n, line, even_step(line), is_periodic=name in periodic)
            origin.append(float(line[0]))
            spacing.append(own.spacing)
            if own.step is None:
                self.uneven[axis], self.gaps[axis] = own, own.gaps / own.spacing
        self.origin, self.spacing = tuple(origin), tuple(spacing)

    def described(self, axis: int, is_periodic: bool) -> GridAxis:
        """Return all nodes of an axis of the domain."""
        if axis in self.uneven:
            return self.uneven[axis]
        n, step = self.whole[axis], self.spacing[axis]
        edges = self.origin[axis] + step * np.arange(n + is_periodic)
        return _axis_of(AXES[axis], n, edges, step, is_periodic=is_periodic)

    @property
    def dt(self) -> float:
        """Length of a step."""
        return self.clock.dt

    @property
    def finest(self) -> tuple[float, ...]:
        """Least distance of neighbours along each axis."""
        return tuple(
            h * float(self.gaps[axis].min()) if axis in self.gaps else h
            for axis, h in enumerate(self.spacing)
        )

    def pair_ratio(self, axis: int) -> Any:
        """Return `ratio` for each pair of neighbours along an axis: a number, or an array."""
        ratio = self.ratio[axis]
        return ratio / self.gaps[axis] if axis in self.gaps else ratio

    @property
    def ratio(self) -> tuple[float, ...]:
        """dt/h^2 times the diffusivity along each axis."""
        dt, pairs = self.dt, zip(self.diffusivity, self.spacing, strict=True)
        return tuple([dt * a / h**2 for a, h in pairs])

    @property
    def heat_of_nodes(self) -> Any:
        """Heat capacities of a volume: a number, or those at the nodes; infinite in holes."""
        found = self.capacity if self.relative is None else self.capacity * self.relative
        return found if self.holes is None else np.where(self.holes, np.inf, found)

    def set_holes(self, holes: NDArray[np.bool_], values: Array | None) -> None:
        """Take the holes, and the temperature in them unless they are insulated.

        A node of a given temperature is one of a heat capacity that no flow changes. The nodes of
        an insulated hole conduct so little that T of other nodes does not depend on it.
        """
        self.holes, self.hole_values = holes, values
        if values is not None:
            relative = np.ones(holes.shape) if self.relative is None else self.relative
            self.relative = np.where(holes, _PINNED, relative)

    def insulated(self, k: Array, dtype: str) -> Array:
        """Return conductivities at the nodes with those of insulated holes."""
        if self.holes is None or self.hole_values is not None:
            return k
        return np.where(self.holes, _INSULATION[dtype] * float(k[~self.holes].min()), k)

    def heating(self, source: Any) -> "Heating":
        """Return what a source, as the caller gave it, adds to T in a unit of time."""
        return Heating(self, source)

    def row_factors(self, axis: int, ends: Sequence["Side"]) -> Array:
        """Return spacing over the width of the nodes along an axis: 2 for half a cell at a flux.

        `ends` are the sides of the axis. The factors at given values mean nothing.
        """
        if axis in self.gaps:
            return self.spacing[axis] / self.uneven[axis].widths
        factors = np.ones(self.nodes[axis])
        for side in ends:
            if side.kind == "flux":
                factors[side.index] = 2.0
        return factors

    def widths(self, axis: int, is_periodic: bool) -> Array:
        """Return the widths of the nodes along an axis; half of the spacing at an end."""
        n = self.whole[axis]
        if axis >= self.named:
            return np.full(n, 1 / n)
        widths = self.described(axis, is_periodic).widths
        return widths[self.numbers[axis]] if axis in self.numbers else widths

    def per_capacity(self, rates: Array) -> Array:
        """Return rates at the nodes over the relative heat capacities there, in place."""
        if self.relative is not None:
            rates /= self.relative
        return rates

    def line(self, axis: int) -> Array:
        """Return the coordinates along an axis."""
        if axis in self.uneven:
            return self.uneven[axis].places
        numbers = self.numbers.get(axis, np.arange(self.nodes[axis]))
        return np.asarray(self.origin[axis] + numbers * self.spacing[axis], np.float64)

    @property
    def everywhere(self) -> tuple[Array, ...]:
        """Coordinates along x, y, ... that broadcast to all nodes."""
        return self.places(range(self.named))

    def places(self, keep: Sequence[int]) -> tuple[Array, ...]:
        """Return coordinates along x, y, ... that broadcast to the nodes of these axes."""
        found = []
        for axis in range(self.named):
            shape = [1] * len(keep)
            line = np.full(1, self.origin[axis])
            if axis in keep:
                shape[len(keep) - 1 - sorted(keep).index(axis)] = -1
                line = self.line(axis)
            found.append(line.reshape(shape))
        return tuple(found)


class Heating(NodeData):
    """A source q over the heat capacity of a volume.

    Parameters
    ----------
    grid : Grid
        The nodes.
    source : number, array or callable
        The source, as the caller gave it.
    """

    def __init__(self, grid: Grid, source: Any) -> None:
        now = grid.clock.segment.time
        super().__init__("source", source, *grid.everywhere, time=now)
        self._capacity = grid.heat_of_nodes
        self.shape = np.broadcast_shapes(self.shape, np.shape(self._capacity))

    def at(self, time: float) -> Array:
        return super().at(time) / self._capacity


class Side:
    """One side of the box.

    Parameters
    ----------
    name : str
        For messages, as ``"x-"``.
    boundary : Boundary or 'periodic'
        What it prescribes.
    grid : Grid
        The nodes.
    """

    def __init__(self, name: str, boundary: Any, grid: Grid) -> None:
        self.name = name
        self.axis = AXES.index(name[0])
        self.index = 0 if name[1] == "-" else -1
        self.others = [axis for axis in range(grid.axes) if axis != self.axis]
        self._at: tuple[Any, ...] = (..., self.index, *(slice(None) for _ in range(self.axis)))
        self._grid = grid
        self.kind, self.coefficient = "value", 0.0
        self._data: NodeData | None = None
        places = list(grid.places(self.others))
        if self.axis < grid.named:
            places[self.axis] = grid.line(self.axis)[self.index].reshape(places[self.axis].shape)
        now = grid.clock.segment.time
        if boundary == PERIODIC:
            self.kind = PERIODIC
        else:
            self.kind, self.coefficient, given = parts_of(name, boundary)
            self._data = NodeData(f"boundary {name}", given, *places, time=now)
        self._is_robin = isinstance(boundary, Robin)
        self.shape = tuple(grid.nodes[axis] for axis in reversed(self.others))

    @property
    def spacing(self) -> float:
        """Distance of the nodes of the side from the next ones."""
        grid, axis = self._grid, self.axis
        gap = float(grid.gaps[axis][self.index]) if axis in grid.gaps else 1.0
        return grid.spacing[axis] * gap

    @property
    def exchange(self) -> Any:
        """What a step takes from T per T, by the coefficient of Robin: a number or an array."""
        return self._gain * self.coefficient if self.coefficient else 0.0

    @property
    def loss(self) -> Any:
        """Half of the exchange in a unit of time: that of a whole cell."""
        return self.coefficient / self.spacing / self._capacity

    @property
    def _gain(self) -> Any:
        """What a step adds to T per inflow."""
        return 2 * self._grid.dt / self.spacing / self._capacity

    @property
    def _capacity(self) -> Any:
        """Heat capacity of a volume: a number, or an array over the side."""
        grid = self._grid
        if grid.holes is not None and self.axis < grid.named and self.of(grid.holes).any():
            return self.of(grid.heat_of_nodes)
        return grid.capacity if grid.relative is None else grid.capacity * self.of(grid.relative)

    @property
    def ambient(self) -> NodeData | None:
        """Ambient temperature of a side with an exchange."""
        return self._data if self.coefficient else None

    @property
    def varies(self) -> bool:
        """Whether what it prescribes changes with time."""
        return self._data is not None and self._data.varies

    @property
    def is_uniform(self) -> bool:
        """Whether all its nodes have the same value."""
        return self._data is None or all(n == 1 for n in self._data.shape)

    def level(self, time: float) -> Array:
        """Return the value, or the inflow as the backend takes it: shape of the side."""
        assert self._data is not None
        return np.broadcast_to(self._factor * self._data.at(time), self.shape)

    @property
    def _factor(self) -> float:
        """What the backend takes per value, inflow or ambient temperature."""
        if self.kind == "value":
            return 1.0
        if self._is_robin:
            return self.exchange
        return self._gain

    def of(self, field: NDArray[Any]) -> NDArray[Any]:
        """Return the nodes of the side in a field: a view that may be written."""
        part: NDArray[Any] = field[self._at]
        return part

    def place_of(self, axis: int) -> int:
        """Return which axis of an array over the side is this axis of the box."""
        return len(self.others) - 1 - self.others.index(axis)

    def edge(self, values: NDArray[Any], other: "Side") -> NDArray[Any]:
        """Return the nodes of an array over this side that lie on another one: a view."""
        at: list[Any] = [slice(None)] * values.ndim
        at[self.place_of(other.axis)] = other.index
        return values[(*at, ...)]


def heat_of(grid: Grid, sides: Iterable[Side], t: NDArray[Any]) -> float:
    """Return the sum of volumes times heat capacity times T of the nodes of a grid.

    Parameters
    ----------
    grid : Grid
        The nodes: all, or those of a rank.
    sides : iterable of Side
        The sides of the whole domain.
    t : array
        T at the nodes.
    """
    capacity = grid.heat_of_nodes
    total = np.asarray(t, np.float64) * (
        capacity if grid.holes is None else np.where(grid.holes, 0.0, capacity)
    )
    periodic = {side.axis for side in sides if side.kind == PERIODIC}
    for axis in range(grid.axes):
        total = total @ grid.widths(axis, axis in periodic)
    return float(total)


def check_nodes(what: str, shape: Sequence[int], sides: Mapping[str, Any]) -> None:
    """Raise ValueError if an axis has too few nodes for the conditions at its ends.

    Parameters
    ----------
    what : str
        What has the shape, for messages.
    shape : sequence of int
        Numbers of nodes, x last.
    sides : mapping
        Conditions as `boundary_by_side` returns them.
    """
    for name, nodes in zip(AXES[: len(shape)], shape[::-1], strict=True):
        has_fluxes = all(isinstance(sides[name + end], _FLUXES) for end in "-+")
        least = 2 if has_fluxes else 3
        require(nodes >= least, f"{what} must have at least {least} nodes along {name}", nodes)


def coupling_of(ratio: Any, before: Any, after: Any) -> Any:
    """Return dt/h^2 times the harmonic mean of k at neighbours: arrays of any library."""
    return ratio * 2 * before * after / (before + after)


def check_coefficient(shape: Sequence[int]) -> None:
    """Raise TypeError unless the coefficient of a Robin side is a number: an array of shape ()."""
    if len(shape):
        raise TypeError(
            f"coefficient of Robin must be a number, got an array of shape {tuple(shape)}"
        )
