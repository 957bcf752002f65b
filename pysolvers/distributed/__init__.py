"""Solves of lines that are split over processes: groups of ranks, and how arrays are split."""

from ._factor import SplitFactor
from ._group import WAYS as WAYS
from ._group import Group
from ._group import agreement_of as agreement_of
from ._halo import HaloFace as HaloFace
from ._halo import exchange_halo as exchange_halo
from ._halo import faces_of as faces_of
from ._halo_run import HaloRun as HaloRun
from ._halo_run import cheapest as cheapest
from ._halo_run import cost_of_exchange as cost_of_exchange
from ._halo_run import negligible as negligible
from ._launch import launch_command as launch_command
from ._launch import launched as launched
from ._slab import Slab
from ._systems import checked_group as checked_group
from ._transpose import Transposition as Transposition
from ._ways import way_of as way_of

__all__ = ["Group", "Slab", "SplitFactor"]
