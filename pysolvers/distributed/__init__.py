"""Solves of lines that are split over processes: groups of ranks, and how arrays are split."""

from ._factor import SplitFactor
from ._group import Group
from ._slab import Slab

__all__ = ["Group", "Slab", "SplitFactor"]
