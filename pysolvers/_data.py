"""Data of a problem, given as numbers, arrays or functions, evaluated at the nodes."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NodeData", "dependence"]

Array = NDArray[np.float64]


def dependence(name: str, value: Any, axes: str = "xy") -> str:
    """Return the variables of a value: time, coordinates, both, or none for a non-function.

    Parameters
    ----------
    name : str
        For messages.
    value : object
        A function of (t), of the coordinates, or of the coordinates and t. The number of its
        required arguments decides which; their names are not used. Or any other object.
    axes : str, default: 'xy'
        Names of the coordinates.

    Returns
    -------
    depends : str
        ``""``, ``"t"``, `axes`, or `axes` and ``"t"``.

    Raises
    ------
    TypeError
        If a function has another number of required arguments.
    """
    if not callable(value):
        return ""
    needed = value.nin if isinstance(value, np.ufunc) else _needed_arguments(name, value)
    calls = {1: "t", len(axes): axes, len(axes) + 1: axes + "t"}
    if needed not in calls:
        place = ", ".join(axes)
        raise TypeError(f"{name} must be a function of (t), ({place}) or ({place}, t): {value!r}")
    return calls[needed]


def _needed_arguments(name: str, function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        raise TypeError(
            f"{name}: the arguments of {function!r} cannot be determined: wrap it in a lambda"
        ) from None
    return sum(p.kind <= p.POSITIONAL_OR_KEYWORD and p.default is p.empty for p in parameters)


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
    """

    def __init__(self, name: str, value: Any, *places: Array, least: float = -np.inf) -> None:
        self.name, self._least = name, least
        axes = "xyz"[: len(places)]
        depends = dependence(name, value, axes)
        #: Whether the quantity depends on time.
        self.varies = "t" in depends
        self._call: Callable[[float], Any] = {
            "": lambda t: value,
            "t": lambda t: value(t),
            axes: lambda t: value(*places),
            axes + "t": lambda t: value(*places, t),
        }[depends]
        self._nodes = np.broadcast_shapes(*(place.shape for place in places))
        #: Shape of the values; 1 along an axis along which they are constant.
        self.shape = (
            self._nodes if depends == axes + "t" else self._shaped(self._call(0.0), 0.0).shape
        )

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
