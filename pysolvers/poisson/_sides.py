"""Conditions on the sides of a rectangle or a box, and values given at places of a grid."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._boundary import Dirichlet, Neumann, Robin
from .._checks import require, require_broadcast, short
from .._functions import call
from .._plain import require_plain
from ._axes import DIRICHLET, NEUMANN, PERIODIC

Array = NDArray[Any]


def kind_of_condition(name: str, condition: Any) -> str:
    """Return the kind of a condition; a number, an array or a function is Dirichlet.

    Raises
    ------
    TypeError
        If the solver does not offer the condition.
    """
    if isinstance(condition, Neumann):
        return NEUMANN
    if isinstance(condition, str):
        require(
            condition == PERIODIC,
            f"boundary {name}: a condition given as text must be 'periodic'",
            condition,
        )
        return PERIODIC
    if condition is None or isinstance(condition, Robin):
        raise TypeError(
            f"boundary {name}: the condition must be Dirichlet, Neumann or 'periodic', "
            f"got {short(condition)}"
        )
    return DIRICHLET


def require_kind(side: str, condition: Any, kind: str) -> None:
    """Raise TypeError unless a condition is of the kind that the side has in a solver."""
    found = kind_of_condition(side, condition)
    if found != kind:
        raise TypeError(
            f"boundary {side} is {kind} in this solver, but {condition!r} is "
            f"{found}: create another FastPoisson"
        )


def condition_value(condition: Any) -> Any:
    """Return the value of a Dirichlet condition or the outward derivative of a Neumann one."""
    if isinstance(condition, Dirichlet):
        return condition.value
    return condition.flux if isinstance(condition, Neumann) else condition


def values_at(
    name: str, given: Any, places: Mapping[str, Array], shape: Sequence[int], dtype: np.dtype
) -> Array:
    """Return values on a grid as an array of this dtype that broadcasts to `shape`.

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
    try:
        array = np.asarray(found)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if array.dtype.kind not in "biufc":
        raise TypeError(f"{name} must be numbers, got dtype {array.dtype}")
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(
            f"{name} is {array.dtype}, but the solver is {dtype}: "
            "create FastPoisson with dtype=np.complex128"
        )
    require_broadcast(name, array.shape, shape)
    return array
