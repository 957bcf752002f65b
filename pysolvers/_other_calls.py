"""Calls in the style of other packages, which lack operands or have other names: what to write."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

# Names of a number of steps.
_STEPS = ("steps", "n_steps", "nsteps", "num_steps", "count", "n", "max_steps")

# Names of arguments in SciPy and LAPACK.
_NAMES = {
    "b": "the right-hand sides are called rhs",
    "a": "pass three diagonals",
    "ab": "pass three diagonals, lower, diag, upper = pysolvers.from_banded(ab)",
    "l_and_u": "pass three diagonals, lower, diag, upper = pysolvers.from_banded(ab)",
    "d": "the diagonal is called diag",
    "dl": "the lower diagonal is called lower",
    "du": "the upper diagonal is called upper",
    "overwrite_b": "write out=rhs",
    "overwrite_ab": "matrices are never overwritten",
    "overwrite_a": "matrices are never overwritten",
    "transposed": "write factor_tridiagonal(...).solve(rhs, trans='T')",
    "trans": "write factor_tridiagonal(...).solve(rhs, trans='T')",
}


def call_error(
    operation: str, names: Sequence[str], given: Sequence[Any], other: Mapping[str, Any]
) -> TypeError:
    """Return the error for a call without some operands or with unknown arguments.

    Parameters
    ----------
    operation : str
        The function.
    names : sequence of str
        Its operands.
    given : sequence of object
        The operands of the call, None for those that are missing.
    other : mapping
        Unknown arguments, by name.
    """
    call = f"{operation}({', '.join(names)})"
    sides = ", b" if "rhs" in names else ""
    first, second = given[0], given[1]
    if isinstance(first, tuple) and len(first) == 2:
        return TypeError(
            f"{operation} takes three diagonals, not (1, 1) and the array of solve_banded: write "
            f"{operation}(*pysolvers.from_banded(ab){sides and sides + ', axis=0'}); see 'Coming "
            "from SciPy' in the documentation"
        )
    if given[-1] is None and hasattr(first, "diagonal"):
        offset = "k" if hasattr(first, "nnz") or hasattr(first, "tocsr") else "offset"
        shape = np.shape(first) if offset == "offset" else first.shape
        if len(shape) >= 2 and shape[-1] == shape[-2] and (second is None or given[2] is None):
            axes = ", axis1=-2, axis2=-1" if len(shape) > 2 else ""
            diagonals = ", ".join(f"a.diagonal({k}{axes})" for k in (-1, 0, 1))
            return TypeError(
                f"{operation} takes three diagonals, not a matrix: write "
                f"{operation}({diagonals}{sides}{', axis=0' if sides and not axes else ''}); see "
                "'Coming from SciPy' in the documentation"
            )
    if other:
        name = next(iter(other))
        advice = f": {_NAMES[name]}" if name in _NAMES else ""
        return TypeError(f"{operation} has no argument {name!r}{advice}; it is called as {call}")
    missing = [name for name, value in zip(names, given, strict=True) if value is None]
    return TypeError(
        f"{operation} needs {', '.join(names[:-1])} and {names[-1]}, but {', '.join(missing)} "
        f"{'are' if len(missing) > 1 else 'is'} missing or None: pass three diagonals"
        f"{' and right-hand sides' if sides else ''}, 0.0 for a diagonal of zeros"
    )


def explain_run(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate ``run(until, ...)`` of a solver: errors for other arguments say what to write."""
    names = tuple(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        unknown = [name for name in options if name not in names]
        if unknown:
            name, kind = unknown[0], type(args[0]).__name__
            advice = f"it is called as run({names[0]}, {'=, '.join(names[1:])}=)"
            if name in _STEPS:
                advice = (
                    f"run({names[0]}) steps to a time; for a number of steps write "
                    f"step({options[name]!r})"
                )
            raise TypeError(f"{kind}.run has no argument {name!r}: {advice}")
        return method(*args, **options)

    return checked


def hide_other(function: Callable[..., Any]) -> None:
    """Let the signature of a function have its operands without defaults, and no ``**other``."""
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(default=parameter.empty)
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        else parameter
        for parameter in signature.parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
