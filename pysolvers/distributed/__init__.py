"""Solves of lines that are split over processes: groups of ranks, and how arrays are split."""

from ._cost import CostModel
from ._factor import SplitFactor
from ._group import Group
from ._group import agreement_of as agreement_of
from ._launch import launch_command as launch_command
from ._launch import launched as launched
from ._slab import Slab
from ._systems import checked_group as checked_group
from ._transpose import Transposition as Transposition

__all__ = ["CostModel", "Group", "Slab", "SplitFactor"]
