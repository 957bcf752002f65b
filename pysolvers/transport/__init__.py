"""Convection and diffusion on the batched tridiagonal lines."""

from ._limits import SuggestedStep, suggest_dt
from ._result import TransportResult
from .advection_diffusion import AdvectionDiffusion, AdvectionDiffusionResult
from .gceidd import GCEIDD
from .problem import ConvectionDiffusion

__all__ = [
    "GCEIDD",
    "AdvectionDiffusion",
    "AdvectionDiffusionResult",
    "ConvectionDiffusion",
    "SuggestedStep",
    "TransportResult",
    "suggest_dt",
]
