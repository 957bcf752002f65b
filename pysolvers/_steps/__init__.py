"""Products with tridiagonal matrices, and implicit steps in time."""

from .calls import (
    ThetaFactor as ThetaFactor,
    factor_theta as factor_theta,
    implicit_diffusion as implicit_diffusion,
    residual as residual,
    theta_step as theta_step,
    tridiagonal_matvec as tridiagonal_matvec,
)
