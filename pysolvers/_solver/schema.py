"""Annotations that are checks: of settings in a constructor, and of the contents of files.

A check is a function of a name and a value. It returns the value in its standard form: a number as
float, a sequence as tuple; or it raises TypeError or ValueError with the name, the rule and the
value. `check_of` returns the check of an annotation:

    float, int, str, bool         a finite number, an integer from 0, a text, a flag
    Literal["a", "b"]             one of these
    tuple[int, ...], dict[str, X] all entries are checked
    X | None, Literal["a"] | X    None, or a text, or what the check of X accepts
    a dataclass                   an object with its fields, or one of it
    Annotated[X, check]           `check`: the types of this module, and own ones
    Annotated[X, Member(...)]     no check: an array of a file with this shape and dtype
"""

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

from .._checks import integer, require, require_finite, require_flag, require_number, require_scale
from .._options import check_threads
from .._runtime.backends import parse_device

Check = Callable[..., Any]

_LARGEST = 2**63 - 1


class Member(NamedTuple):
    """Shape, with None for lengths that are not checked, and dtypes of an array of a file."""

    shape: tuple[int | None, ...] | None
    dtypes: tuple[Any, ...] = (np.float64,)
    is_optional: bool = False


class RunBy(NamedTuple):
    """Instruction set or kernel, and number of host threads, of the last call of a backend."""

    kernel: str = ""
    threads: int = 0


def flag(name: str, value: Any, other: str = "") -> bool:
    """Accept True and False. `other` names what else an option can be."""
    require_flag(name, value, f"a bool{other}")
    return bool(value)


def whole(least: int = 0, most: int = _LARGEST) -> Check:
    """Accept integers from `least` to `most`."""

    def check(name: str, value: Any, other: str = "") -> int:
        found = integer(name, value, f"an int{other}")
        require(found >= least, f"{name} must be at least {least}", value)
        require(found <= most, f"{name} must be at most {most}", value)
        return found

    return check


def number(
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
    finite: bool = True,
    scale: bool = False,
) -> Check:
    """Accept numbers in a range; with `scale` those whose products do not overflow."""

    def check(name: str, value: Any, other: str = "") -> float:
        (require_finite if finite else require_number)(name, value)
        if above is not None and below is not None:
            require(above < value < below, f"{name} must be between {above:g} and {below:g}", value)
        elif least is not None and most is not None:
            rule = f"{name} must be in {least:g} .. {most:g}{other}"
            require(least <= value <= most, rule, value)
        elif above is not None and most is not None:
            rule = f"{name} must be above {above:g} and at most {most:g}{other}"
            require(above < value <= most, rule, value)
        elif above is not None:
            rule = "positive" if above == 0 else f"above {above:g}"
            require(value > above, f"{name} must be {rule}{other}", value)
        elif least is not None:
            require(value >= least, f"{name} must be at least {least:g}", value)
        if scale:
            require_scale(name, value)
        return float(value)

    return check


def text(name: str, value: Any, other: str = "") -> str:
    """Accept a text."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str{other}, got {type(value).__name__}")
    return value


def choice(choices: tuple[Any, ...]) -> Check:
    """Accept one of some texts and integers."""
    are_texts = all(isinstance(each, str) for each in choices)
    are_integers = not any(isinstance(each, str) for each in choices)
    listed = ", ".join(map(str, choices))

    def check(name: str, value: Any, other: str = "") -> Any:
        if are_texts:
            text(name, value, other)
        elif are_integers:
            value = integer(name, value, f"an int{other}")
        is_known = isinstance(value, str | int) and not isinstance(value, bool)
        if not is_known or value not in choices:
            raise ValueError(f"{name} must be one of {listed}{other}; got {reprlib.repr(value)}")
        return value

    return check


def device(name: str, value: Any, other: str = "") -> str:
    """Accept the text of a device."""
    del name, other
    parse_device(value)
    return str(value)


def threads(name: str, value: Any, other: str = "") -> int:
    """Accept a number of threads."""
    del name, other
    return check_threads(value)


def real_dtype(name: str, value: Any, other: str = "") -> str:
    """Accept float32 and float64, and return the name."""
    del other
    kind = np.dtype(None if isinstance(value, list | dict | tuple) else value)
    if value is None or isinstance(value, list | dict | tuple) or kind not in _REAL:
        found = kind if isinstance(value, type | str | np.dtype) else reprlib.repr(value)
        raise TypeError(f"{name} must be float32 or float64, got {found}")
    return kind.name


def either(parts: tuple[Any, ...]) -> Any:
    """Accept None where it is a part, texts by the part for texts, and else what the rest does."""
    has_none = NoneType in parts
    named = [part for part in parts if part is not NoneType]
    texts = [check_of(part) for part in named if get_origin(part) is Literal or part is str]
    rest = [check_of(part) for part in named if get_origin(part) is not Literal and part is not str]
    if rest and isinstance(rest[0], Member):
        return rest[0]._replace(is_optional=True)
    names = [n for part in named if get_origin(part) is Literal for n in get_args(part)]
    more = [*map(repr, names if rest else ()), *(["None"] if has_none else [])]
    also = ", ".join(["", *more[:-1]]) + "".join(f" or {last}" for last in more[-1:])

    def check(name: str, value: Any, other: str = "") -> Any:
        if value is None and has_none:
            return None
        if not rest:
            return texts[0](name, value, other + (" or None" if has_none else ""))
        if isinstance(value, str) and texts:
            if names and value not in names:
                raise ValueError(f"{name} must be a number{also}, got {reprlib.repr(value)}")
            return texts[0](name, value, other)
        return rest[0](name, value, other + also)

    return check


def sequence(checks: Sequence[Check], *, is_open: bool = False) -> Check:
    """Accept a sequence with an entry for each check; if it is open, any number for the first."""

    def check(name: str, value: Any, other: str = "") -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise TypeError(f"{name} must be a tuple{other}, got {reprlib.repr(value)}")
        of_entries = [checks[0]] * len(value) if is_open else checks
        require(len(of_entries) == len(value), f"{name} must have {len(checks)} entries", value)
        pairs = enumerate(zip(of_entries, value, strict=True))
        return tuple(each(f"{name}[{k}]", entry) for k, (each, entry) in pairs)

    return check


def mapping(each: Check) -> Check:
    """Accept an object with any keys, whose values `each` accepts."""

    def check(name: str, value: Any, other: str = "") -> dict[str, Any]:
        if not isinstance(value, dict):
            raise TypeError(f"{name} must be an object{other}, got {reprlib.repr(value)}")
        return {key: each(f"{name}.{key}", entry) for key, entry in value.items()}

    return check


def record(checks: Mapping[str, Check], make: Callable[..., Any] = dict) -> Check:
    """Accept an object with exactly these keys, each with a check of its own, and `make` it."""

    def check(name: str, value: Any, other: str = "") -> Any:
        if isinstance(make, type) and make is not dict and isinstance(value, make):
            return value
        if not isinstance(value, dict):
            what = name or "the whole"
            raise TypeError(f"{what} must be an object{other}, got {reprlib.repr(value)}")
        prefix = f"{name}." if name else ""
        if missing := checks.keys() - value.keys():
            raise ValueError(f"{prefix}{min(missing)} is missing")
        if unknown := value.keys() - checks.keys():
            raise ValueError(f"{prefix}{reprlib.repr(min(unknown))[1:-1]} is unknown")
        return make(**{key: check(f"{prefix}{key}", value[key]) for key, check in checks.items()})

    return check


_REAL = (np.float32, np.float64)
Positive = Annotated[float, number(above=0)]
NotNegative = Annotated[float, number(least=0)]
Scale = Annotated[float, number(above=0, scale=True)]
AnyFloat = Annotated[float, number(finite=False)]
Elapsed = NotNegative
Count = Annotated[int, whole(1)]
Device = Annotated[str, device]
Threads = Annotated[int, threads]
Real = Annotated[Any, real_dtype]
Seconds = dict[str, Elapsed]
Field = Annotated[NDArray[Any], Member((None, None), _REAL)]
Table = Annotated[NDArray[np.float64], Member((None, None))]
Line = Annotated[NDArray[np.float64], Member((None,))]
Steps = Annotated[NDArray[np.int64], Member((None,), (np.int64,))]

_CHECKS: dict[Any, Any] = {
    float: number(),
    int: whole(),
    str: text,
    bool: flag,
    Any: lambda name, value, other="": value,
}


def check_of(hint: Any) -> Any:
    """Return the check, or the `Member`, of an annotation."""
    kind, arguments = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return arguments[1]
    if kind is Literal:
        return choice(arguments)
    if kind in (Union, UnionType):
        return either(arguments)
    if kind is tuple:
        entries = [check_of(each) for each in arguments if each is not ...]
        return sequence(entries, is_open=arguments[-1] is ...)
    if kind is dict:
        return mapping(check_of(arguments[1]))
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return record(checks_of(hint), hint)
    return _CHECKS[hint]


@cache
def checks_of(kind: Any) -> dict[str, Any]:
    """Return the check of each field of a dataclass or a named tuple."""
    hints = get_type_hints(kind, include_extras=True)
    names = [f.name for f in fields(kind)] if is_dataclass(kind) else kind._fields
    return {name: check_of(hints[name]) for name in names}
