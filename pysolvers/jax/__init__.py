"""Solves that JAX compiles and differentiates: tridiagonal systems, heat, Poisson, splines."""

from .._extras import extra_module

extra_module("jax", "jax")

from .blocks import (  # noqa: E402
    block_tridiagonal_logdet,
    solve_block_tridiagonal,
    solve_pentadiagonal,
)
from .heat import heat_step  # noqa: E402
from .poisson import FastPoisson  # noqa: E402
from .recurrence import linear_recurrence  # noqa: E402
from .smoothing import hodrick_prescott, whittaker  # noqa: E402
from .spline import CubicSpline, PiecewisePolynomial  # noqa: E402
from .steps import (  # noqa: E402
    ThetaFactor,
    factor_theta,
    implicit_diffusion,
    residual,
    theta_step,
    tridiagonal_matvec,
)
from .tridiagonal import (  # noqa: E402
    TridiagonalFactor,
    factor_tridiagonal,
    solve_tridiagonal,
)

__all__ = [
    "CubicSpline",
    "FastPoisson",
    "PiecewisePolynomial",
    "ThetaFactor",
    "TridiagonalFactor",
    "block_tridiagonal_logdet",
    "factor_theta",
    "factor_tridiagonal",
    "heat_step",
    "hodrick_prescott",
    "implicit_diffusion",
    "linear_recurrence",
    "residual",
    "solve_block_tridiagonal",
    "solve_pentadiagonal",
    "solve_tridiagonal",
    "theta_step",
    "tridiagonal_matvec",
    "whittaker",
]
