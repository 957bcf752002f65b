"""Red-black relaxation: LMSOR for convection and diffusion, SOR for a plate."""

from ._result import RelaxationHistory, RelaxationResult
from .laplace import RedBlackSOR, solve_laplace
from .lmsor import LMSOR
from .problem import SteadyConvectionDiffusion

__all__ = [
    "LMSOR",
    "RedBlackSOR",
    "RelaxationHistory",
    "RelaxationResult",
    "SteadyConvectionDiffusion",
    "solve_laplace",
]
