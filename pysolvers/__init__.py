"""Batched tridiagonal solves on a C core, and solvers for implicit steps on structured grids."""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from ._blocks import (
        BlockTridiagonalFactor,
        PentadiagonalFactor,
        factor_block_tridiagonal,
        factor_pentadiagonal,
        solve_block_tridiagonal,
        solve_pentadiagonal,
    )
    from ._blocks.split_factor import SplitBlockFactor
    from ._boundary import Dirichlet, Neumann, Robin
    from ._building import get_include
    from ._derivatives import compact_derivative
    from ._errors import (
        BackendError,
        CoarseGridWarning,
        ConvergenceError,
        DistributedError,
        PysolversError,
        SingularSystemError,
        SingularSystemWarning,
    )
    from ._memory import clear_cache
    from ._recurrence import linear_recurrence
    from ._row_sums import RowSums
    from ._steps import (
        ThetaFactor,
        factor_theta,
        implicit_diffusion,
        residual,
        theta_step,
        tridiagonal_matvec,
    )
    from ._version import __version__
    from .factor import TridiagonalFactor, factor_tridiagonal
    from .flow import LidDrivenCavity, SquareCylinder, StaggeredCavity
    from .heat import HeatADI
    from .parabolic import ParabolicADI
    from .poisson import FastPoisson
    from .relaxation import LMSOR, RedBlackSOR, SteadyConvectionDiffusion, solve_laplace
    from .spline import CubicSpline
    from .transport import GCEIDD, AdvectionDiffusion, ConvectionDiffusion
    from .tridiagonal import SolveInfo, from_banded, solve_tridiagonal

__all__ = [
    "GCEIDD",
    "LMSOR",
    "AdvectionDiffusion",
    "BackendError",
    "BlockTridiagonalFactor",
    "CoarseGridWarning",
    "ConvectionDiffusion",
    "ConvergenceError",
    "CubicSpline",
    "Dirichlet",
    "DistributedError",
    "FastPoisson",
    "HeatADI",
    "LidDrivenCavity",
    "Neumann",
    "ParabolicADI",
    "PentadiagonalFactor",
    "PysolversError",
    "RedBlackSOR",
    "Robin",
    "RowSums",
    "SingularSystemError",
    "SingularSystemWarning",
    "SolveInfo",
    "SplitBlockFactor",
    "SquareCylinder",
    "StaggeredCavity",
    "SteadyConvectionDiffusion",
    "ThetaFactor",
    "TridiagonalFactor",
    "__version__",
    "clear_cache",
    "compact_derivative",
    "factor_block_tridiagonal",
    "factor_pentadiagonal",
    "factor_theta",
    "factor_tridiagonal",
    "from_banded",
    "get_include",
    "implicit_diffusion",
    "linear_recurrence",
    "residual",
    "solve_block_tridiagonal",
    "solve_laplace",
    "solve_pentadiagonal",
    "solve_tridiagonal",
    "theta_step",
    "tridiagonal_matvec",
]

# A module is imported at the first use of one of its names: a program uses few of them.
_PLACES = {
    "_blocks": (
        "BlockTridiagonalFactor",
        "PentadiagonalFactor",
        "factor_block_tridiagonal",
        "factor_pentadiagonal",
        "solve_block_tridiagonal",
        "solve_pentadiagonal",
    ),
    "_blocks.split_factor": ("SplitBlockFactor",),
    "_boundary": ("Dirichlet", "Neumann", "Robin"),
    "_building": ("get_include",),
    "_derivatives": ("compact_derivative",),
    "_errors": (
        "BackendError",
        "CoarseGridWarning",
        "ConvergenceError",
        "DistributedError",
        "PysolversError",
        "SingularSystemError",
        "SingularSystemWarning",
    ),
    "_memory": ("clear_cache",),
    "_row_sums": ("RowSums",),
    "_version": ("__version__",),
    "factor": ("TridiagonalFactor", "factor_tridiagonal"),
    "flow": ("LidDrivenCavity", "SquareCylinder", "StaggeredCavity"),
    "heat": ("HeatADI",),
    "parabolic": ("ParabolicADI",),
    "poisson": ("FastPoisson",),
    "_recurrence": ("linear_recurrence",),
    "relaxation": ("LMSOR", "RedBlackSOR", "SteadyConvectionDiffusion", "solve_laplace"),
    "spline": ("CubicSpline",),
    "_steps": (
        "ThetaFactor",
        "factor_theta",
        "implicit_diffusion",
        "residual",
        "theta_step",
        "tridiagonal_matvec",
    ),
    "transport": ("GCEIDD", "AdvectionDiffusion", "ConvectionDiffusion"),
    "tridiagonal": ("SolveInfo", "from_banded", "solve_tridiagonal"),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

_SUBPACKAGES = (
    *("distributed", "flow", "heat", "parabolic", "poisson", "relaxation", "smoothing"),
    *("scipy", "spline", "transport"),
)

# Their libraries take seconds to import, or are missing.
_LATE_SUBPACKAGES = ("jax", "lineax", "numba", "papers", "plots", "torch")


def __dir__() -> list[str]:
    """Return the public names only."""
    return sorted([*__all__, *_SUBPACKAGES])


if not _typing.TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> _typing.Any:
        """Import a subpackage, or the module of a name, at its first use."""
        if name in _SUBPACKAGES or name in _LATE_SUBPACKAGES:
            return _importlib.import_module(f"{__name__}.{name}")
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(_importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = found
        return found
