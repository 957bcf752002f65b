"""Arguments of the constructor of a solver, which are read back by their names."""

import inspect
from typing import Any

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Argument:
    """An argument of the constructor: data as they were given, or a setting in its standard form.

    Data are the objects of the caller. A solver has values of its own: an array that the caller
    changes later changes what this attribute shows, and nothing else.

    Parameters
    ----------
    name : str
        Of the argument.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.__doc__ = f"Argument `{name}` of the constructor."

    def __get__(self, solver: Any, kind: type[Any]) -> Any:
        if solver is None:
            return self
        data = solver._data_given
        return data[self._name] if self._name in data else getattr(solver._settings, self._name)

    def __set__(self, solver: Any, value: Any) -> None:
        name, kind = self._name, type(solver).__name__
        raise AttributeError(
            f"{name} of a {kind} cannot be set: make a solver, {kind}(..., {name}=...)"
        )


def add_arguments(kind: type[Any]) -> None:
    """Give a class an attribute for each argument of its constructor that has none."""
    for name, parameter in inspect.signature(kind.__init__).parameters.items():
        if name != "self" and parameter.kind in _NAMED and not hasattr(kind, name):
            setattr(kind, name, Argument(name))
