"""Data of a problem, given as numbers, arrays or functions, as arrays over nodes."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NodeData", "dependence"]

Array = NDArray[np.float64]

_CALLS = {1: "t", 2: "xy", 3: "xyt"}


def dependence(name: str, value: Any) -> str:
    """Return what a value depends on: ``"t"``, ``"xy"``, ``"xyt"`` or, if no function, nothing.

    Raises
    ------
    TypeError
        If a function takes another number of arguments.
    """
    if not callable(value):
        return ""
    needed = value.nin if isinstance(value, np.ufunc) else _needed_arguments(name, value)
    if needed not in _CALLS:
        raise TypeError(f"{name} must be a function of (t), (x, y) or (x, y, t): {value!r}")
    return _CALLS[needed]


def _needed_arguments(name: str, function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        raise TypeError(f"{name}: the arguments of {function!r} cannot be told") from None
    return sum(p.kind <= p.POSITIONAL_OR_KEYWORD and p.default is p.empty for p in parameters)


class NodeData:
    """One quantity at the nodes of a grid, or of a side of it.

    Parameters
    ----------
    name : str
        For messages.
    value : number, array or callable
        What broadcasts to the nodes; or a function of time, place, or place and time.
    x, y : ndarray of float
        Coordinates of the nodes, which broadcast to the shape of the nodes.
    least : float, optional
        Values below it are refused.
    """

    def __init__(
        self, name: str, value: Any, x: Array, y: Array, *, least: float = -np.inf
    ) -> None:
        self.name, self._least = name, least
        depends = dependence(name, value)
        #: Whether it changes with time.
        self.varies = "t" in depends
        self._call: Callable[[float], Any] = {
            "": lambda t: value,
            "t": lambda t: value(t),
            "xy": lambda t: value(x, y),
            "xyt": lambda t: value(x, y, t),
        }[depends]
        self._nodes = np.broadcast_shapes(x.shape, y.shape)
        #: Shape of the values: 1 along an axis over which they are the same.
        self.shape = self._nodes if depends == "xyt" else self._shaped(self._call(0.0), 0.0).shape

    def at(self, time: float) -> Array:
        """Return the values at a time, in an array of `shape`.

        Raises
        ------
        ValueError
            If the values do not broadcast to the nodes, or some are not finite or too small.
        """
        return np.broadcast_to(self._shaped(self._call(time), time), self.shape)

    def _shaped(self, found: Any, time: float) -> Array:
        when = f" at time {time:g}" if self.varies else ""
        try:
            values = np.asarray(found, np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{self.name} must be real numbers{when}, got {found!r}") from None
        values = values.reshape((1,) * (len(self._nodes) - values.ndim) + values.shape)
        try:
            fits = np.broadcast_shapes(values.shape, self._nodes) == self._nodes
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"{self.name}{when} must broadcast to {self._nodes}, got shape {values.shape}"
            )
        if not np.isfinite(values).all():
            raise ValueError(f"{self.name} must be finite{when}")
        if (values < self._least).any():
            raise ValueError(
                f"{self.name} must be at least {self._least:g}{when}, got {values.min():g}"
            )
        return values
