"""Checks of the values in the header of a file, which may have been edited.

A check is a function of the name and the value of an entry. It returns the value, sequences as
tuples, or raises ValueError with the name, the rule and the value.
"""

import reprlib
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

__all__ = [
    "Check",
    "anything",
    "count",
    "elapsed",
    "flag",
    "mapping",
    "number",
    "optional",
    "positive",
    "record",
    "sequence",
    "text",
    "text_or",
]

Check = Callable[[str, Any], Any]

_LARGEST = 2**63 - 1


def anything(name: str, value: Any) -> Any:
    """Accept any value."""
    del name
    return value


def flag(name: str, value: Any) -> bool:
    """Accept true and false."""
    if not isinstance(value, bool):
        raise _wrong(name, "true or false", value)
    return value


def count(least: int = 0) -> Check:
    """Accept integers from `least` to the largest of 64 bits."""

    def check(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LARGEST:
            raise _wrong(name, f"an integer of at least {least}", value)
        return value

    return check


def number(*, finite: bool = True) -> Check:
    """Accept numbers, infinity and NaN only where they are legal."""

    def check(name: str, value: Any) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or (abs(value) > _LARGEST and isinstance(value, int)):
            raise _wrong(name, "a number", value)
        if finite and not isfinite(value):
            raise _wrong(name, "a finite number", value)
        return value

    return check


def positive(name: str, value: Any) -> float:
    """Accept finite numbers above 0."""
    found: float = number()(name, value)
    if not found > 0:
        raise _wrong(name, "positive", value)
    return found


def elapsed(name: str, value: Any) -> float:
    """Accept times that were measured: finite numbers from 0."""
    found: float = number()(name, value)
    if found < 0:
        raise _wrong(name, "at least 0", value)
    return found


def text(*choices: str) -> Check:
    """Accept a text, one of `choices` if there are any."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise _wrong(name, "a text", value)
        if choices and value not in choices:
            raise _wrong(name, f"one of {', '.join(choices)}", value)
        return value

    return check


def optional(check: Check) -> Check:
    """Accept null and what `check` accepts."""
    return lambda name, value: None if value is None else check(name, value)


def text_or(check: Check) -> Check:
    """Accept texts and what `check` accepts."""
    return lambda name, value: value if isinstance(value, str) else check(name, value)


def sequence(check: Check, length: int | None = None) -> Check:
    """Accept a list of `length` entries, or of any number, that `check` accepts."""

    def check_all(name: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or (length is not None and len(value) != length):
            entries = "" if length is None else f" of {length} entries"
            raise _wrong(name, f"a list{entries}", value)
        return tuple(check(f"{name}[{k}]", entry) for k, entry in enumerate(value))

    return check_all


def mapping(check: Check) -> Check:
    """Accept an object with any keys, whose values `check` accepts."""

    def check_all(name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(name, "an object", value)
        return {key: check(f"{name}.{key}", entry) for key, entry in value.items()}

    return check_all


def record(checks: Mapping[str, Check]) -> Check:
    """Accept an object with exactly these keys, each with a check of its own."""

    def check_all(name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(name, "an object", value)
        prefix = f"{name}." if name else ""
        if missing := checks.keys() - value.keys():
            raise ValueError(f"{prefix}{min(missing)} is missing")
        if unknown := value.keys() - checks.keys():
            raise ValueError(f"{prefix}{reprlib.repr(min(unknown))[1:-1]} is unknown")
        return {key: check(f"{prefix}{key}", value[key]) for key, check in checks.items()}

    return check_all


def _wrong(name: str, rule: str, value: Any) -> ValueError:
    return ValueError(f"{name or 'the whole'} must be {rule}, got {reprlib.repr(value)}")
