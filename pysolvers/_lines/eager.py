"""Programs that a library compiles for calls with its arrays that repeat shapes and options.

The package for such a library has a module of them, which is imported at the first such call. It
has a function ``solve(operands, options, *, asks)``, which returns None where a program would not
save time, and a class ``CompiledFactor`` with such a method.
"""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from math import prod
from types import ModuleType
from typing import Any

from .._runtime.interop import library_of

# Diagonals of more bytes are not kept: a solve with them takes about as long as a call.
_MOST_BYTES = 256 << 20


def programs_for(array: Any) -> ModuleType | None:
    """Return the programs for arrays of the library of `array`, or None if it has none."""
    name = library_of(array).programs
    return None if name is None else _loaded(name)


def kept_for_programs(diagonals: Iterable[Any]) -> tuple[Any, ...] | None:
    """Return diagonals if a factor may keep them for programs: numbers, and small arrays."""
    given = tuple(diagonals)
    arrays = [a for a in given if type(a) not in (int, float)]
    if not all(library_of(a).programs for a in arrays):
        return None
    size = sum(prod(a.shape) * a.dtype.itemsize for a in arrays)
    return given if size <= _MOST_BYTES else None


@cache
def _loaded(name: str) -> ModuleType | None:
    """Return the package's module for a library, or None if the library is too old for it."""
    try:
        return import_module(name)
    except ImportError:  # the library is not one that the package for it accepts
        return None
