"""Flow solvers on the batched tridiagonal lines."""

from ._result import CavityHistory, CavityResult, Vortex
from .cavity import LidDrivenCavity

__all__ = ["CavityHistory", "CavityResult", "LidDrivenCavity", "Vortex"]
