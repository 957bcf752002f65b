"""Heat conduction by alternating directions."""

from ._result import HeatResult
from .adi import HeatADI

__all__ = ["HeatADI", "HeatResult"]
