"""Checks of the arguments of splines, which the libraries share; the errors are those of SciPy."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._checks import axis_number, require

Condition = Literal["not-a-knot", "clamped", "natural"] | tuple[int, ArrayLike]
Conditions = Literal["not-a-knot", "clamped", "natural", "periodic"] | tuple[Condition, Condition]
Extrapolate = bool | Literal["periodic"]

# Kinds of the backends by the names and by the orders of derivatives of the caller.
_NAMED = {
    "not-a-knot": "not-a-knot",
    "clamped": "slope",
    "natural": "curvature",
    "periodic": "periodic",
}
_DERIVATIVES = {1: "slope", 2: "curvature"}

# Tuples: torch.compile of torch 2.7 does not trace unions of types.
_NUMBERS = (int, float, complex)
_ARRAYS = (np.ndarray, np.generic)
_LISTS = (list, tuple)

#: Names of the values of derivatives at the ends, for messages.
ENDS = ("bc_type[0]", "bc_type[1]")


def conditions_of(bc_type: Any) -> tuple[tuple[str, str], dict[str, Any]]:
    """Return the kinds of the ends, as the backends name them, and the given derivatives."""
    if isinstance(bc_type, str):
        kind = _named(bc_type)
        return (kind, kind), {}
    try:
        first, last = bc_type
    except (TypeError, ValueError):
        raise ValueError(
            "`bc_type` must contain 2 elements to specify start and end conditions, got "
            f"{bc_type!r}"
        ) from None
    if any(isinstance(end, str) and end == "periodic" for end in (first, last)):
        raise ValueError(
            "'periodic' `bc_type` is defined for both curve ends and cannot be used with other "
            "boundary conditions"
        )
    given: dict[str, Any] = {}
    kinds = []
    for end, name in zip((first, last), ENDS, strict=True):
        if isinstance(end, str):
            kinds.append(_named(end))
            continue
        try:
            order, value = end
        except (TypeError, ValueError):
            raise ValueError(
                f"{name}: a specified derivative value must be given in the form (order, value)"
            ) from None
        if order not in tuple(_DERIVATIVES):
            raise ValueError(
                f"{name}: the specified derivative order must be 1 or 2, got {order!r}"
            )
        kinds.append(_DERIVATIVES[order])
        check_finite(name, value)
        given[name] = value
    return (kinds[0], kinds[1]), given


def check_finite(name: str, value: Any) -> None:
    """Raise unless numbers and arrays of NumPy are finite; others can be traced or on a device."""
    if isinstance(value, _LISTS):
        for each in value:
            check_finite(name, each)
        return
    if isinstance(value, _NUMBERS):
        is_finite = value - value == 0  # torch.compile has numbers for which isfinite fails
    elif isinstance(value, _ARRAYS):
        is_finite = value.dtype.kind not in "fc" or bool(np.isfinite(value).all())
    else:
        return
    require(
        is_finite,
        f"{name}: `deriv_value` must contain only finite values; write 'not-a-knot' in place of "
        "(order, value) where no derivative is known",
        value,
    )


def _named(condition: str) -> str:
    """Return the condition at an end that a name stands for, or raise."""
    if condition not in _NAMED:
        raise ValueError(
            f"bc_type={condition} is not allowed: need {', '.join(map(repr, _NAMED))} or a "
            "pair (order, value)"
        )
    return _NAMED[condition]


def checked_axis(axis: int, ndim: int) -> int:
    """Return the axis of the knots among the axes of y, at least 0."""
    return axis_number(axis, ndim, f"y of {ndim} axes")


def check_knots(x: tuple[int, ...], y: tuple[int, ...], axis: int) -> None:
    """Raise unless knots of shape `x` fit values of shape `y`."""
    if len(x) != 1 and len(x) != len(y):
        raise ValueError(
            f"`x` must be 1-dimensional, or have the {len(y)} axes of `y`; its shape is {x}"
        )
    own = axis if len(x) == len(y) else 0
    if x[own] < 2:
        raise ValueError(f"`x` must contain at least 2 elements, got {x[own]}")
    if x[own] != y[axis]:
        raise ValueError(
            f"The length of `y` along `axis`={axis} doesn't match the length of `x`: {y[axis]} and "
            f"{x[own]}"
        )
    if len(x) > 1 and any(a not in (1, b) for a, b in zip(x, y, strict=True)):
        raise ValueError(f"`x` of shape {x} does not broadcast to `y` of shape {y}")


def check_given(name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Raise unless the values of a derivative at an end have the shape of the batch."""
    if shape != expected:
        raise ValueError(f"{name}: `deriv_value` shape {shape} is not the expected one {expected}")


def check_points(points: tuple[int, ...], batch: tuple[int, ...], axis: int) -> None:
    """Raise unless each spline of a batch can have points of its own from an array of a shape."""
    rest = (*points[:axis], *points[axis + 1 :])
    require(
        len(points) == len(batch) + 1
        and all(own in (1, n) for own, n in zip(rest, batch, strict=True)),
        f"x must broadcast to {batch} except along axis {axis} with per_spline=True; x has shape",
        points,
    )


def outside_of(extrapolate: Any) -> str:
    """Return the name that the backends have for the option `extrapolate`."""
    if isinstance(extrapolate, str):
        require(extrapolate == "periodic", "extrapolate must be a bool or 'periodic'", extrapolate)
        return extrapolate
    return "extrapolate" if extrapolate else "nan"
