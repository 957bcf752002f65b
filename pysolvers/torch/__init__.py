"""Tridiagonal solves and heat conduction with gradients, for PyTorch."""

from ._solve import solve_tridiagonal

__all__ = ["solve_tridiagonal"]
