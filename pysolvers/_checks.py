"""Checks of single settings of the solvers; the messages name the rule and the value."""

import operator
import reprlib
from collections.abc import Sequence
from math import isfinite
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._plain import require_plain

_SHORT = reprlib.Repr()
_SHORT.maxtuple = _SHORT.maxlist = 12
_SHORT.maxlevel, _SHORT.maxdict, _SHORT.maxset = 4, 12, 12
_SHORT.maxstring = _SHORT.maxlong = 80
_SHORT.maxother = 120
_LONGEST = 200  # characters
_SCALES = 1e-60, 1e60  # products of five of them are float64
# Tuples: torch.compile of torch 2.7 does not trace unions of types.
_FLAGS = (bool, np.bool_)
_NO_NUMBERS = (*_FLAGS, str)


def short(value: object) -> str:
    """Return the repr of a value for a message, abbreviated; of an array its shape and dtype."""
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    text = _SHORT.repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({type(value).__name__})"


def broadcasts(own: Sequence[int], shape: Sequence[int]) -> bool:
    """Return whether an array of shape `own` broadcasts to `shape`."""
    # torch.compile of torch 2.7 does not trace a zip of unequal lengths.
    missing = len(shape) - len(own)
    return missing >= 0 and all(
        size in (1, asked) for size, asked in zip(own, shape[missing:], strict=True)
    )


def require_broadcast(name: str, own: Sequence[int], shape: Sequence[int]) -> None:
    """Raise ValueError unless the argument `name`, of shape `own`, broadcasts to `shape`."""
    if not broadcasts(own, shape):
        raise ValueError(f"{name} must broadcast to shape {tuple(shape)}, got shape {tuple(own)}")


def require(condition: bool, rule: str, value: object) -> None:
    """Raise ValueError with the rule and the value unless the condition holds."""
    if not condition:
        raise ValueError(f"{rule}, got {short(value)}")


def require_number(name: str, value: float) -> None:
    """Raise TypeError unless `value` is a real number; infinity and NaN are accepted."""
    try:
        if isinstance(value, _NO_NUMBERS):
            raise TypeError
        isfinite(value)
    except TypeError:
        raise TypeError(f"{name} must be a number, got {type(value).__name__}") from None
    except OverflowError:
        raise ValueError(
            f"{name} must be at most {float_info.max:g}, got a larger integer"
        ) from None


def require_finite(name: str, value: float) -> None:
    """Raise TypeError unless `value` is a real number, ValueError unless it is finite."""
    require_number(name, value)
    require(isfinite(value), f"{name} must be finite", value)


def require_all_finite(name: str, values: NDArray[Any], when: str = "") -> None:
    """Raise ValueError that names the first entry of an array that is infinite or NaN."""
    finite = np.isfinite(values)
    if not finite.all():
        place = tuple(map(int, np.argwhere(~finite)[0]))
        where = f" at {place}" if values.ndim else ""
        raise ValueError(f"{name} must be finite{when}, got {values[place]}{where}")


def require_scale(name: str, value: float) -> None:
    """Raise ValueError if products of a few such numbers would overflow or underflow."""
    low, high = _SCALES
    require(
        low <= abs(value) <= high, f"{name} must be from {low:g} to {high:g} in magnitude", value
    )


def real_array(name: str, values: object, when: str = "") -> NDArray[np.float64]:
    """Return real numbers as an array of float64, or raise TypeError.

    The mask of a masked array, the unit of a quantity and the imaginary part of complex numbers
    would be lost: they are errors, as are texts.
    """
    require_plain(name, values, when)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biufO":
            return np.asarray(array, np.float64)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name} must be real numbers{when}, got {short(values)}")


def require_flag(name: str, value: object, choices: str = "a bool") -> None:
    """Raise TypeError unless `value` is True or False: Python treats the text "no" as true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be {choices}, got {type(value).__name__}")


def require_callable(name: str, value: object) -> None:
    """Raise TypeError unless `value` is None or can be called."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function or None, got {type(value).__name__}")


def integer(name: str, value: object, choices: str = "an int") -> int:
    """Return an integer, or raise TypeError; a bool is not accepted."""
    try:
        if not isinstance(value, _FLAGS):
            return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise TypeError(f"{name} must be {choices}, got {type(value).__name__}")


def axis_number(
    axis: object, ndim: int, what: str, choices: str = "an int", name: str = "axis"
) -> int:
    """Return the number of an axis of `ndim` axes, at least 0, or raise.

    `what` says for messages what has these axes, and `name` what the number is.
    """
    place = integer(name, axis, choices)
    if not -ndim <= place < ndim:
        raise np.exceptions.AxisError(
            f"{name} must be in {-ndim} .. {ndim - 1} for {what}, got {place}"
        )
    return place % ndim


def index(name: str, value: int, smallest: int) -> int:
    """Return an integer of at least `smallest`, or raise TypeError or ValueError."""
    found = integer(name, value)
    require(found >= smallest, f"{name} must be at least {smallest}", value)
    return found
