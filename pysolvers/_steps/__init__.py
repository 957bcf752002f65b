"""Products with tridiagonal matrices, and implicit steps in time."""

from .calls import (
    ThetaFactor,
    factor_theta,
    implicit_diffusion,
    residual,
    theta_step,
    tridiagonal_matvec,
)

__all__ = [
    "ThetaFactor",
    "factor_theta",
    "implicit_diffusion",
    "residual",
    "theta_step",
    "tridiagonal_matvec",
]
