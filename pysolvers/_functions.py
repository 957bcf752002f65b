"""Functions of coordinates and time, whose arguments are matched by name."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ._views import read_only


def arguments_of(name: str, function: Callable[..., Any], known: Iterable[str]) -> tuple[str, ...]:
    """Return the known names among the parameters of a function, in the order of `known`.

    Parameters
    ----------
    name : str
        For messages.
    function : callable
        Parameters with a default value can have any name; only those with a known name are
        passed. A ufunc has no names; one of one argument is accepted where one name is known.
    known : iterable of str
        Names of the values that can be passed.

    Raises
    ------
    TypeError
        If a parameter without a default value has another name, or if the names of the
        parameters cannot be determined.
    """
    known = tuple(known)
    if isinstance(function, np.ufunc) and function.nin == len(known) == 1:
        return known
    example = f"write lambda {', '.join(known)}: ..."
    try:
        parameters = tuple(inspect.signature(function).parameters.values())
    except ValueError:
        raise TypeError(
            f"{name}: the parameters of {function!r} cannot be determined: {example}"
        ) from None
    nameless = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    optional = (inspect.Parameter.VAR_KEYWORD,)
    wrong = [
        str(p) if p.kind in nameless else p.name
        for p in parameters
        if p.kind in nameless
        or (p.name not in known and p.default is p.empty and p.kind not in optional)
    ]
    if wrong:
        raise TypeError(
            f"{name}: the parameters of a function must be among {', '.join(known)}, "
            f"got {', '.join(wrong)}: {example}"
        )
    named = {p.name for p in parameters if p.kind not in optional}
    return tuple(each for each in known if each in named)


def call(name: str, function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Call a function with those of the values that its parameters name, as read-only views.

    Raises
    ------
    TypeError
        As `arguments_of` and `call_with_arrays`.
    """
    names = arguments_of(name, function, values)
    return call_with_arrays(name, function, protected({each: values[each] for each in names}))


def call_with_arrays(name: str, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call a function of arrays.

    Raises
    ------
    TypeError
        If the function takes its arguments for numbers, as those of `math` do.
    """
    try:
        return function(**arguments)
    except TypeError as error:
        if "can be converted to Python scalars" not in str(error):
            raise
        raise TypeError(
            f"{name}: functions get arrays: use numpy.sin instead of math.sin, and "
            f"numpy.where instead of if ({error})"
        ) from error


def protected(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function, arrays as views that the function cannot change.

    A function that works in place, as ``x -= t``, would change the coordinates of the solver.
    """
    return {
        name: read_only(value) if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }
