"""Smooth curves through noisy values: penalised differences, baselines, smoothing splines."""

from .baselines import BaselineResult, arpls
from .penalised import hodrick_prescott, whittaker
from .splines import make_smoothing_spline

__all__ = [
    "BaselineResult",
    "arpls",
    "hodrick_prescott",
    "make_smoothing_spline",
    "whittaker",
]
