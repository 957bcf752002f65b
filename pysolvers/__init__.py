"""Batched tridiagonal solves on a C core, and solvers for implicit steps on structured grids."""

from importlib.metadata import PackageNotFoundError, version

from ._boundary import Dirichlet, Neumann, Robin
from ._errors import (
    BackendError,
    ConvergenceError,
    PysolversError,
    SingularSystemError,
    SingularSystemWarning,
)
from .heat import HeatADI
from .relaxation import LMSOR, RedBlackSOR, SteadyConvectionDiffusion, solve_laplace
from .transport import GCEIDD, ConvectionDiffusion
from .tridiagonal import SolveInfo, TridiagonalFactor, factor_tridiagonal, solve_tridiagonal

__all__ = [
    "GCEIDD",
    "LMSOR",
    "BackendError",
    "ConvectionDiffusion",
    "ConvergenceError",
    "Dirichlet",
    "HeatADI",
    "Neumann",
    "PysolversError",
    "RedBlackSOR",
    "Robin",
    "SingularSystemError",
    "SingularSystemWarning",
    "SolveInfo",
    "SteadyConvectionDiffusion",
    "TridiagonalFactor",
    "__version__",
    "factor_tridiagonal",
    "solve_laplace",
    "solve_tridiagonal",
]

try:
    __version__ = version("pysolvers")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"
