"""Conditions on the sides of a rectangle or a box, and values given at places of a grid."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._axis import DIRICHLET, NEUMANN, ON_AXIS, PERIODIC, ROBIN
from .._boundary import Dirichlet, Neumann, Robin, sides_of
from .._checks import broadcasts, require, require_finite, short
from .._functions import call
from .._plain import require_plain

Array = NDArray[Any]


class _OnAxis:
    """The condition of the end r = 0: there is none."""


_NO_SIDE = _OnAxis()


def conditions_of(
    boundary: Any, names: str, *, from_axis: bool, complete: bool = True
) -> dict[str, Any]:
    """Return the condition of each side as `sides_of`; with `from_axis` x- is the axis r = 0.

    Raises
    ------
    TypeError, ValueError
        As `sides_of`, or if the axis r = 0 has a condition.
    """
    if not from_axis:
        return sides_of(boundary, names, complete=complete)
    if not isinstance(boundary, Mapping):
        boundary = {"x+": boundary, **dict.fromkeys(names[1:], boundary)}
    if "x-" in boundary:
        raise ValueError(
            "boundary x-: the axis r = 0 is no side and needs no condition, "
            f"got {short(boundary['x-'])}: leave out x-"
        )
    given = dict(boundary)
    if "x" in given and "x+" not in given:
        given["x+"] = given.pop("x")
    if complete:
        given["x-"] = _NO_SIDE
    return sides_of(given, names, complete=complete)


def coefficient_of(name: str, condition: Any) -> float:
    """Return the coefficient of a Robin condition; 0 of others."""
    if not isinstance(condition, Robin):
        return 0.0
    what = f"boundary {name}: the coefficient of Robin"
    require_finite(what, condition.coefficient)
    require(condition.coefficient >= 0, f"{what} must be at least 0", condition.coefficient)
    return float(condition.coefficient)


def kind_of_condition(name: str, condition: Any) -> str:
    """Return the kind of a condition; a number, an array or a function is Dirichlet.

    Raises
    ------
    TypeError
        If the solver does not offer the condition.
    """
    if isinstance(condition, Neumann):
        return NEUMANN
    if isinstance(condition, Robin):
        return ROBIN
    if isinstance(condition, _OnAxis):
        return ON_AXIS
    if isinstance(condition, str):
        require(
            condition == PERIODIC,
            f"boundary {name}: a condition given as text must be 'periodic'",
            condition,
        )
        return PERIODIC
    if condition is None:
        raise TypeError(
            f"boundary {name}: the condition must be Dirichlet, Neumann, Robin or 'periodic', "
            f"got {short(condition)}"
        )
    return DIRICHLET


def require_kind(side: str, condition: Any, kind: str, coefficient: float = 0.0) -> None:
    """Raise unless a condition is of the kind, and has the coefficient, of a side in a solver."""
    found = kind_of_condition(side, condition)
    if found != kind:
        raise TypeError(
            f"boundary {side} is {kind} in this solver, but {condition!r} is "
            f"{found}: create another FastPoisson"
        )
    given = coefficient_of(side, condition)
    require(
        given == coefficient,
        f"boundary {side}: the coefficient of Robin is {coefficient:g} in this solver, and another "
        "one needs another FastPoisson",
        given,
    )


def condition_value(condition: Any) -> Any:
    """Return the value, the ambient value of Robin, or the outward derivative of Neumann."""
    if isinstance(condition, Dirichlet):
        return condition.value
    if isinstance(condition, Robin):
        return condition.ambient
    return condition.flux if isinstance(condition, Neumann) else condition


def values_at(
    name: str,
    given: Any,
    places: Mapping[str, Array],
    shape: Sequence[int],
    dtype: np.dtype,
    *,
    batch: bool = False,
    remedy: str = "",
) -> Array:
    """Return values on a grid as an array that broadcasts to `shape`.

    Parameters
    ----------
    name : str
        For messages.
    given : number, array_like or callable
        A function is called with the coordinates whose names its parameters have.
    places : mapping of str to ndarray
        Coordinates, which broadcast to `shape`.
    shape : sequence of int
        Shape of the values.
    dtype : dtype
        float32, float64, complex64 or complex128.
    batch : bool, default: False
        Whether the values can have leading axes of a batch.
    remedy : str, optional
        What messages say about lists that are no such values.

    Raises
    ------
    TypeError
        If the values are not numbers, or complex where `dtype` is real.
    ValueError
        If they do not broadcast to `shape`.
    """
    in_order = dict(sorted(places.items()))
    found = call(name, given, in_order) if callable(given) else given
    require_plain(name, found)
    advice = remedy if isinstance(found, list | tuple) else ""
    try:
        array = np.asarray(found)
    except ValueError:
        raise ValueError(
            f"{name} must be a number, an array of numbers or a function, but the entries of "
            f"{short(found)} have different shapes{advice}"
        ) from None
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"{name} must be a number, an array of numbers or a function, got {short(found)}"
            f"{advice}"
        )
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(
            f"{name} is {array.dtype}, but the solver is {dtype}: "
            "create FastPoisson with dtype=np.complex128"
        )
    own = array.shape[max(array.ndim - len(shape), 0) :] if batch else array.shape
    if not broadcasts(own, shape):
        raise ValueError(
            f"{name} must broadcast to shape {tuple(shape)}, got shape {tuple(own)}{advice}"
        )
    return array
