"""The sides of the box: what they prescribe, level by level and sweep by sweep."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._boundary import Boundary, Dirichlet, Neumann, Robin
from .._checks import require, require_finite
from .._data import NodeData
from ._settings import AXES, HeatSettings

__all__ = ["Grid", "Side", "boundary_by_side"]

Array = NDArray[np.float64]

PERIODIC = "periodic"


class Grid:
    """Nodes, steps and conductivity of a box; axes are counted from x on.

    Parameters
    ----------
    settings : HeatSettings
        Nodes and spacings.
    diffusivity : tuple of float
        Along each axis, as a factor of `k`.
    k : ndarray or None
        Conductivity at the nodes; None is 1.
    """

    def __init__(
        self, settings: HeatSettings, diffusivity: tuple[float, ...], k: Array | None
    ) -> None:
        self.axes = len(settings.shape)
        self.nodes = settings.shape[::-1]
        self.spacing = settings.spacing[::-1]
        self.dt = float(settings.dt)
        self.ratio = tuple(
            self.dt * a / h**2 for a, h in zip(diffusivity[::-1], self.spacing, strict=True)
        )
        self.k = k

    def places(self, keep: Sequence[int]) -> tuple[Array, ...]:
        """Return coordinates along x, y, ... that broadcast to the nodes of these axes."""
        found = []
        for axis in range(self.axes):
            shape = [1] * len(keep)
            line = np.zeros(1)
            if axis in keep:
                shape[len(keep) - 1 - sorted(keep).index(axis)] = -1
                line = np.arange(self.nodes[axis]) * self.spacing[axis]
            found.append(line.reshape(shape))
        return tuple(found)


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
        self.axis = AXES.index(name[0])
        self.index = 0 if name[1] == "-" else -1
        self.others = [axis for axis in range(grid.axes) if axis != self.axis]
        self.kind, self.exchange = "value", 0.0
        self._data: NodeData | None = None
        self._factor = 1.0
        places = list(grid.places(self.others))
        if self.index < 0:
            last = (grid.nodes[self.axis] - 1) * grid.spacing[self.axis]
            places[self.axis] = places[self.axis] + last
        inflow = 2 * grid.dt / grid.spacing[self.axis]
        if boundary == PERIODIC:
            self.kind = PERIODIC
        elif isinstance(boundary, Dirichlet):
            self._data = NodeData(f"boundary {name}", boundary.value, *places)
        elif isinstance(boundary, Neumann):
            self.kind, self._factor = "flux", inflow
            self._data = NodeData(f"boundary {name}", boundary.flux, *places)
        elif isinstance(boundary, Robin):
            require_finite("coefficient of Robin", boundary.coefficient)
            require(
                boundary.coefficient >= 0,
                f"boundary {name}: the coefficient must be at least 0",
                boundary.coefficient,
            )
            self.kind, self.exchange = "flux", inflow * boundary.coefficient
            self._factor = self.exchange
            self._data = NodeData(f"boundary {name}", boundary.ambient, *places)
        else:
            raise TypeError(
                f"boundary {name} must be Dirichlet, Neumann, Robin or 'periodic', got {boundary!r}"
            )
        self.shape = tuple(grid.nodes[axis] for axis in reversed(self.others))

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

    def of(self, field: NDArray[Any]) -> NDArray[Any]:
        """Return the nodes of the side in a field: a view that may be written."""
        at: list[Any] = [slice(None)] * field.ndim
        at[field.ndim - 1 - self.axis] = self.index
        return field[tuple(at)]

    def place_of(self, axis: int) -> int:
        """Return which axis of an array over the side is this axis of the box."""
        return len(self.others) - 1 - self.others.index(axis)

    def edge(self, values: NDArray[Any], other: "Side") -> NDArray[Any]:
        """Return the nodes of an array over this side that lie on another one: a view."""
        at: list[Any] = [slice(None)] * values.ndim
        at[self.place_of(other.axis)] = other.index
        return values[(*at, ...)]


def boundary_by_side(boundary: Any, axes: str) -> dict[str, Any]:
    """Return what each side prescribes, ``"x-"``, ``"x+"``, ``"y-"``, ...

    Parameters
    ----------
    boundary : Boundary, 'periodic' or mapping
        For all sides, or by side or axis.
    axes : str
        Names of the axes.

    Raises
    ------
    TypeError, ValueError
        If a side is missing, unknown, or periodic without the other one.
    """
    names = [axis + end for axis in axes for end in "-+"]
    if isinstance(boundary, Boundary) or boundary == PERIODIC:
        return dict.fromkeys(names, boundary)
    if not isinstance(boundary, Mapping):
        raise TypeError(
            "boundary must be Dirichlet, Neumann, Robin, 'periodic' or a mapping of sides to "
            f"these, got {type(boundary).__name__}"
        )
    unknown = set(boundary) - set(names) - set(axes)
    require(not unknown, f"boundary: sides are {', '.join(names)}", sorted(map(str, unknown)))
    found = {}
    for name in names:
        require(
            not (name in boundary and name[0] in boundary),
            f"boundary: {name} must be given once",
            sorted(boundary),
        )
        require(
            name in boundary or name[0] in boundary,
            f"boundary: side {name} must be given",
            sorted(boundary),
        )
        found[name] = boundary.get(name, boundary.get(name[0]))
    for axis in axes:
        one, other = (isinstance(found[axis + end], str) for end in "-+")
        require(one == other, f"boundary: both sides along {axis} must be periodic, or none", axis)
    return found
