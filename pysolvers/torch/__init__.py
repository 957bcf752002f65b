"""Tridiagonal solves and steps of heat conduction as functions of PyTorch, with gradients."""

from .._extras import extra_module

extra_module("torch", "torch")

from ._factor import TridiagonalFactor, factor_tridiagonal  # noqa: E402
from ._heat import heat_step  # noqa: E402
from ._solve import solve_tridiagonal  # noqa: E402

__all__ = ["TridiagonalFactor", "factor_tridiagonal", "heat_step", "solve_tridiagonal"]
