"""Solves for PyTorch, with gradients: tridiagonal systems, heat, Poisson, splines."""

from .._extras import extra_module

extra_module("torch", "torch")

from ._blocks import solve_block_tridiagonal, solve_pentadiagonal  # noqa: E402
from ._factor import TridiagonalFactor, factor_tridiagonal  # noqa: E402
from ._heat import heat_step  # noqa: E402
from ._logdet import block_tridiagonal_logdet  # noqa: E402
from ._poisson import FastPoisson  # noqa: E402
from ._recurrence import linear_recurrence  # noqa: E402
from ._smoothing import hodrick_prescott, whittaker  # noqa: E402
from ._solve import solve_tridiagonal  # noqa: E402
from ._spline import CubicSpline, PiecewisePolynomial  # noqa: E402
from ._steps import (  # noqa: E402
    implicit_diffusion,
    residual,
    theta_step,
    tridiagonal_matvec,
)
from ._theta_factor import ThetaFactor, factor_theta  # noqa: E402

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
