"""Derivatives of values on uniform grids."""

from .compact import compact_derivative

__all__ = ["compact_derivative"]
