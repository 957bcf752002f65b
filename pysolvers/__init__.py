"""Batched tridiagonal solves on a C core, and flow solvers on top of them."""

from importlib.metadata import PackageNotFoundError, version

from ._errors import (
    BackendError,
    ConvergenceError,
    PysolversError,
    SingularSystemError,
    SingularSystemWarning,
)
from .tridiagonal import SolveInfo, TridiagonalFactor, factor_tridiagonal, solve_tridiagonal

__all__ = [
    "BackendError",
    "ConvergenceError",
    "PysolversError",
    "SingularSystemError",
    "SingularSystemWarning",
    "SolveInfo",
    "TridiagonalFactor",
    "__version__",
    "factor_tridiagonal",
    "solve_tridiagonal",
]

try:
    __version__ = version("pysolvers")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"
