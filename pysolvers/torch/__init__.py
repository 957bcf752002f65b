"""Tridiagonal solves, splines and steps of heat conduction for PyTorch, with gradients."""

from .._extras import extra_module

extra_module("torch", "torch")

from ._factor import TridiagonalFactor, factor_tridiagonal  # noqa: E402
from ._heat import heat_step  # noqa: E402
from ._solve import solve_tridiagonal  # noqa: E402
from ._spline import CubicSpline, PiecewisePolynomial  # noqa: E402

__all__ = [
    "CubicSpline",
    "PiecewisePolynomial",
    "TridiagonalFactor",
    "factor_tridiagonal",
    "heat_step",
    "solve_tridiagonal",
]
