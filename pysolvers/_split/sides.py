"""Sides of a box: what they prescribe, and its values in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._boundary import Dirichlet, Neumann, Robin, parts_of
from .._data import NodeData

if TYPE_CHECKING:
    from .grid import Grid

Array = NDArray[np.float64]

LINEAR = "linear"
"""Name of the condition that the second derivative across a side is 0."""

_KINDS = {Dirichlet: "value", Neumann: "flux", Robin: "flux"}

KIND_TEXTS = {"value": "Dirichlet", "flux": "Neumann or Robin"}
"""Kinds of sides as users write them, where these are other names."""


def kind_of(condition: Any) -> str:
    """Return the kind of a condition: ``'value'``, ``'flux'``, or the name that it is."""
    return condition if isinstance(condition, str) else _KINDS[type(condition)]


class Side:
    """One side that prescribes a value or a flux.

    Parameters
    ----------
    name : str
        As ``"x-"``.
    condition : Dirichlet, Neumann or Robin
        What it prescribes.
    grid : Grid
        The nodes.
    time : float
        The first time at which its values are needed.
    """

    def __init__(self, name: str, condition: Any, grid: Grid, time: float) -> None:
        self.name, self.kind = name, kind_of(condition)
        self.axis, self.end = grid.names.index(name[0]), "-+".index(name[1])
        #: 1 if the outward normal has the direction of the axis, otherwise -1.
        self.sign = 1 if self.end else -1
        _, self.coefficient, given = parts_of(name, condition)
        self.is_robin = isinstance(condition, Robin)
        places = grid.places({self.axis: slice(-1, None) if self.end else slice(1)})
        nodes = list(grid.nodes)
        self._place = grid.ndim - 1 - self.axis
        if callable(given):
            nodes[self._place] = 1
            self._is_kept = True
        else:
            del nodes[self._place]
            places = tuple(np.squeeze(place, self._place) for place in places)
            self._is_kept = False
        self._data = NodeData(f"boundary {name}", given, *places, time=time, nodes=tuple(nodes))
        #: Whether its values change with time.
        self.varies = self._data.varies

    def at(self, time: float) -> Array:
        """Return the value, the flux or the ambient value; the axis of the side has length 1."""
        values = self._data.at(time)
        return values if self._is_kept else np.expand_dims(values, self._place)
