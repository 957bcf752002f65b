"""The floating-point mode of the parts of the solvers that compute with NumPy and SciPy.

The backend for the CPU computes in the default mode (rounding to nearest, gradual underflow) by
itself. What a solver computes around its calls runs in this mode, too, so that the result has the
same bits in a program or a callback that flushes subnormal numbers to zero, as callbacks of JAX on
the CPU do.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from .backends import require

P = ParamSpec("P")
Result = TypeVar("Result")


def call_in_default_fp_mode(
    function: Callable[P, Result], *args: P.args, **kwargs: P.kwargs
) -> Result:
    """Call a function in the default floating-point mode of this thread, and restore the mode."""
    found: Result = _caller()(function, *args, **kwargs)
    return found


def in_default_fp_mode(function: Callable[P, Result]) -> Callable[P, Result]:
    """Make a function run in the default floating-point mode, also in threads that it starts."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Result:
        found: Result = _caller()(function, *args, **kwargs)
        return found

    return call


@cache
def _caller() -> Callable[..., Any]:
    """Return the function of the backend that calls a function in the default mode."""
    found: Callable[..., Any] = require("cpu").in_default_fp_mode
    return found
