"""Checks of single numbers that the solvers' settings share; messages name rule and value."""

import operator
from math import isfinite

__all__ = ["index", "require", "require_finite"]


def require(condition: bool, rule: str, value: object) -> None:
    """Raise ValueError with the rule and the value unless the condition holds."""
    if not condition:
        raise ValueError(f"{rule}, got {value!r}")


def require_finite(name: str, value: float) -> None:
    """Raise TypeError unless `value` is a real number, ValueError unless it is finite."""
    if isinstance(value, bool | str):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    try:
        finite = isfinite(value)
    except TypeError:
        raise TypeError(f"{name} must be a number, got {type(value).__name__}") from None
    require(finite, f"{name} must be finite", value)


def index(name: str, value: int, smallest: int) -> int:
    """Return an integer of at least `smallest`, or raise TypeError or ValueError."""
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, got {type(value).__name__}") from None
    require(found >= smallest, f"{name} must be at least {smallest}", value)
    return found
