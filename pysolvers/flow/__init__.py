"""Flow solvers on the batched tridiagonal lines."""

from ._cylinder_result import CylinderHistory, CylinderResult, Strouhal
from ._forces import ForceBalance, SurfacePressure
from ._result import CavityHistory, CavityResult, Vortex
from .cavity import LidDrivenCavity
from .cylinder import SquareCylinder

__all__ = [
    "CavityHistory",
    "CavityResult",
    "CylinderHistory",
    "CylinderResult",
    "ForceBalance",
    "LidDrivenCavity",
    "SquareCylinder",
    "Strouhal",
    "SurfacePressure",
    "Vortex",
]
