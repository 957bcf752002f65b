"""Cubic splines in batches, and piecewise polynomials."""

from .cubic import CubicSpline
from .piecewise import PiecewisePolynomial

__all__ = ["CubicSpline", "PiecewisePolynomial"]
