"""Figures that are independent of pyplot and of windows."""

from typing import TYPE_CHECKING

from .._extras import extra_module

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["new_figure"]


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure; width and height are in inches."""
    figure = extra_module("matplotlib.figure", "plot").Figure
    return figure(figsize=(width, height), layout="constrained")
