"""Data of a problem, given as numbers, arrays or functions, evaluated at the nodes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._checks import real_array, require_all_finite
from ._functions import arguments_of, call_with_arrays, protected

Array = NDArray[np.float64]


def dependence(name: str, value: Any, axes: str = "xy") -> str:
    """Return the variables of a value, in the order of `axes` and "t"; none for a non-function.

    Parameters
    ----------
    name : str
        For messages.
    value : object
        A function whose parameters are named among the coordinates and t, in any order; or any
        other object.
    axes : str, default: 'xy'
        Names of the coordinates.

    Raises
    ------
    TypeError
        If a parameter of a function has another name.
    """
    if not callable(value):
        return ""
    return "".join(arguments_of(name, value, (*axes, "t")))


class NodeData:
    """One quantity at the nodes of a grid, or of one side of a grid.

    Parameters
    ----------
    name : str
        For messages.
    value : number, array or callable
        A number, an array that broadcasts to the nodes, or a function as in `dependence`.
    *places : ndarray of float
        Coordinates of the nodes along x, y and so on, which broadcast to the shape of the
        nodes.
    least : float, optional
        Smallest value that is accepted.
    line : int, default: -1
        Axis of the nodes along which an array of one dimension lies.
    time : float, default: 0
        The first time at which the values are needed, and are checked.
    nodes : tuple of int, optional
        Shape of the nodes, if axes of a batch come before those of the coordinates.
    """

    def __init__(
        self,
        name: str,
        value: Any,
        *places: Array,
        least: float = -np.inf,
        line: int = -1,
        time: float = 0.0,
        nodes: tuple[int, ...] | None = None,
    ) -> None:
        self.name, self._least, self._line = name, least, line
        axes = "xyz"[: len(places)]
        depends = dependence(name, value, axes)
        #: Whether the quantity depends on time.
        self.varies = "t" in depends
        if nodes is None:
            nodes = np.broadcast_shapes(*(place.shape for place in places))
        self._nodes = nodes
        self._value = value
        self._arguments = protected(
            {axis: place for axis, place in zip(axes, places, strict=True) if axis in depends}
        )
        found = self._shaped(self._call(time), time)
        if not callable(value):
            self._value = found.copy()  # the caller can change an array later
        #: Shape of the values; 1 along an axis along which they are constant.
        self.shape = found.shape
        if self.varies and self._arguments:
            # Values that are equal along an axis at one time can differ later.
            used = np.broadcast_shapes(*(place.shape for place in self._arguments.values()))
            self.shape = np.broadcast_shapes(self.shape, used)

    def at(self, time: float) -> Array:
        """Return the values at a time, in an array of `shape`.

        Raises
        ------
        ValueError
            If the values do not broadcast to the nodes, or some are not finite or too small.
        """
        return np.broadcast_to(self._shaped(self._call(time), time), self.shape)

    def _call(self, time: float) -> Any:
        """Return the value, or that of the function at a time."""
        if not callable(self._value):
            return self._value
        when = {"t": time} if self.varies else {}
        return call_with_arrays(self.name, self._value, self._arguments | when)

    def _shaped(self, found: Any, time: float) -> Array:
        """Return values that broadcast to the nodes; those of one axis lie along the line."""
        when = f" at time {time:g}" if self.varies else ""
        values = given = real_array(self.name, found, when)
        if values.ndim == 1:
            values = np.moveaxis(
                values.reshape((1,) * (len(self._nodes) - 1) + (-1,)), -1, self._line
            )
        values = values.reshape((1,) * (len(self._nodes) - values.ndim) + values.shape)
        try:
            fits = np.broadcast_shapes(values.shape, self._nodes) == self._nodes
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"{self.name}{when} must broadcast to {self._nodes}, got shape {values.shape}"
            )
        require_all_finite(self.name, given, when)
        if (values < self._least).any():
            raise ValueError(
                f"{self.name} must be at least {self._least:g}{when}, got {values.min():g}"
            )
        return values
