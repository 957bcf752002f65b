"""Solves of lines that are split over processes: groups of ranks, and how arrays are split."""

from ._factor import SplitFactor
from ._group import WAYS as WAYS
from ._group import Group
from ._group import agreement_of as agreement_of
from ._launch import launch_command as launch_command
from ._launch import launched as launched
from ._layers import Border as Border
from ._layers import Layers as Layers
from ._layers import borders_of as borders_of
from ._layers import exchange_layers as exchange_layers
from ._layers import layers_of as layers_of
from ._slab import Slab
from ._steps import met_after_steps as met_after_steps
from ._systems import checked_group as checked_group
from ._transpose import Transposition as Transposition
from ._ways import way_of as way_of
from ._windows import cheapest as cheapest
from ._windows import cost_of_exchange as cost_of_exchange
from ._windows import negligible as negligible

__all__ = ["Group", "Slab", "SplitFactor"]
