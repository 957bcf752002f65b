"""Flow solvers on the batched tridiagonal lines."""

from ._result import CavityHistory, CavityResult, Vortex
from ._staggered_result import CentrelineExtrema, StaggeredHistory, StaggeredResult
from .cavity import LidDrivenCavity
from .staggered import StaggeredCavity

__all__ = [
    "CavityHistory",
    "CavityResult",
    "CentrelineExtrema",
    "LidDrivenCavity",
    "StaggeredCavity",
    "StaggeredHistory",
    "StaggeredResult",
    "Vortex",
]
