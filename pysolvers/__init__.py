"""Batched tridiagonal solves on a C core, and solvers for implicit steps on structured grids."""

from ._boundary import Dirichlet, Neumann, Robin
from ._errors import (
    BackendError,
    ConvergenceError,
    DistributedError,
    PysolversError,
    SingularSystemError,
    SingularSystemWarning,
)
from ._memory import clear_cache
from ._version import __version__
from .flow import LidDrivenCavity, SquareCylinder, StaggeredCavity
from .heat import HeatADI
from .poisson import FastPoisson
from .relaxation import LMSOR, RedBlackSOR, SteadyConvectionDiffusion, solve_laplace
from .spline import CubicSpline
from .transport import GCEIDD, ConvectionDiffusion
from .tridiagonal import SolveInfo, TridiagonalFactor, factor_tridiagonal, solve_tridiagonal

__all__ = [
    "GCEIDD",
    "LMSOR",
    "BackendError",
    "ConvectionDiffusion",
    "ConvergenceError",
    "CubicSpline",
    "Dirichlet",
    "DistributedError",
    "FastPoisson",
    "HeatADI",
    "LidDrivenCavity",
    "Neumann",
    "PysolversError",
    "RedBlackSOR",
    "Robin",
    "SingularSystemError",
    "SingularSystemWarning",
    "SolveInfo",
    "SquareCylinder",
    "StaggeredCavity",
    "SteadyConvectionDiffusion",
    "TridiagonalFactor",
    "__version__",
    "clear_cache",
    "factor_tridiagonal",
    "solve_laplace",
    "solve_tridiagonal",
]

_SUBPACKAGES = ("distributed", "flow", "heat", "poisson", "relaxation", "spline", "transport")


def __dir__() -> list[str]:
    """Return the public names only."""
    return sorted([*__all__, *_SUBPACKAGES])
