"""Flow solvers on the batched tridiagonal lines."""

from ._centrelines import CentrelineExtrema, Vortex
from .cavity._result import CavityHistory, CavityResult
from .cavity.solver import LidDrivenCavity
from .cylinder._forces import ForceBalance, SurfacePressure
from .cylinder._result import CylinderHistory, CylinderResult, Strouhal
from .cylinder.solver import SquareCylinder
from .staggered._result import StaggeredHistory, StaggeredResult
from .staggered.solver import StaggeredCavity

__all__ = [
    "CavityHistory",
    "CavityResult",
    "CentrelineExtrema",
    "CylinderHistory",
    "CylinderResult",
    "ForceBalance",
    "LidDrivenCavity",
    "SquareCylinder",
    "StaggeredCavity",
    "StaggeredHistory",
    "StaggeredResult",
    "Strouhal",
    "SurfacePressure",
    "Vortex",
]
