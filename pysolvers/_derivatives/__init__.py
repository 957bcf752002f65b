"""Derivatives of values on uniform grids."""

from .compact import compact_derivative as compact_derivative
