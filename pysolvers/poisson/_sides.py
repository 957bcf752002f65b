"""Conditions on the sides of a rectangle or a box, and values given at places of a grid."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._boundary import Dirichlet, Neumann, Robin
from .._checks import require
from ._axes import DIRICHLET, NEUMANN, PERIODIC

__all__ = ["broadcasts", "condition_value", "kind_of_condition", "sides_of", "values_at"]

Array = NDArray[Any]

_ENDS = "-+"


def sides_of(boundary: Any, axes: str, *, complete: bool = True) -> dict[str, Any]:
    """Return the condition of each side, by ``"x-"``, ``"x+"``, ``"y-"``, ...

    Parameters
    ----------
    boundary : condition or mapping
        One condition for all sides, or a mapping with the keys of sides or axes.
    axes : str
        Names of the axes.
    complete : bool, default: True
        Whether each side must be given.

    Raises
    ------
    ValueError
        If a key is unknown, or a side is given twice or not at all.
    """
    names = [axis + end for axis in axes for end in _ENDS]
    if not isinstance(boundary, Mapping):
        return dict.fromkeys(names, boundary)
    unknown = [key for key in boundary if key not in names and key not in list(axes)]
    require(
        not unknown,
        f"boundary: the sides are {', '.join(names)}, and {', '.join(axes)} for both sides of an "
        "axis",
        unknown,
    )
    twice = [name for name in names if name in boundary and name[0] in boundary]
    require(not twice, "boundary: a side must be given once; given twice", twice)
    found = {
        name: boundary[name] if name in boundary else boundary[name[0]]
        for name in names
        if name in boundary or name[0] in boundary
    }
    missing = [name for name in names if name not in found]
    require(
        not (complete and missing),
        "boundary: each side must be given, for example {'x': 'periodic', 'y': Neumann()}; missing",
        missing,
    )
    return found


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
            f"got {condition!r}"
        )
    return DIRICHLET


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
    found = _call(name, given, places) if callable(given) else given
    if isinstance(found, np.ma.MaskedArray | np.matrix):
        raise TypeError(f"{name} must be a plain array, got {type(found).__name__}")
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
    if not broadcasts(array.shape, shape):
        raise ValueError(f"{name} must broadcast to shape {tuple(shape)}, got shape {array.shape}")
    return array


def broadcasts(own: Sequence[int], shape: Sequence[int]) -> bool:
    """Return whether an array of shape `own` broadcasts to `shape`."""
    try:
        return np.broadcast_shapes(tuple(own), tuple(shape)) == tuple(shape)
    except ValueError:
        return False


def _call(name: str, function: Callable[..., Any], places: Mapping[str, Array]) -> Any:
    """Call a function of coordinates, its arguments matched by name."""
    known = ", ".join(places)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        raise TypeError(
            f"{name}: the parameters of {function!r} cannot be determined: "
            f"write lambda {known}: ..."
        ) from None
    named = [p.name for p in parameters if p.name in places and p.kind != p.VAR_POSITIONAL]
    other = [
        p.name
        for p in parameters
        if p.name not in places
        and p.default is p.empty
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    positional = [p.name for p in parameters if p.kind == p.POSITIONAL_ONLY]
    if other or positional:
        raise TypeError(
            f"{name}: the parameters of a function must be among {known}, "
            f"got {', '.join(other or positional)}: write lambda {known}: ..."
        )
    return function(**{parameter: places[parameter] for parameter in named})
