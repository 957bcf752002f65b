"""Flow solvers on the batched tridiagonal lines."""

from ._centrelines import CentrelineExtrema, Vortex
from ._cylinder_result import CylinderHistory, CylinderResult, Strouhal
from ._forces import ForceBalance, SurfacePressure
from ._result import CavityHistory, CavityResult
from ._staggered_result import StaggeredHistory, StaggeredResult
from .cavity import LidDrivenCavity
from .cylinder import SquareCylinder
from .staggered import StaggeredCavity

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
