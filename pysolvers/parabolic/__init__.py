"""Parabolic equations with mixed derivatives by schemes that split along the axes."""

from ._result import ParabolicResult
from .adi import ParabolicADI

__all__ = ["ParabolicADI", "ParabolicResult"]
