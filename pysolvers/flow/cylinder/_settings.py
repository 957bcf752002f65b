"""Checked parameters of the flow around a square cylinder."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..._solver.schema import Positive, Real
from ..._solver.settings import TimeSettings
from .._walls import Wall
from ._channel import ChannelGrid

Body = Literal["free", "fixed"]
PsiSolver = Literal["fast", "lines"]


@dataclass(frozen=True, kw_only=True)
class CylinderSettings(TimeSettings):
    """Parameters of `SquareCylinder`; see there."""

    reynolds: Positive
    shape: Any
    length: float
    dt: Positive | None
    cylinder: Body
    psi_solver: PsiSolver
    psi_tol: Positive
    wall: Wall
    steady: bool
    perturbation: float
    dtype: Real

    # Options of pysolvers.papers.pta2020, whose settings have them as fields.
    line_method = "partition"
    block: ClassVar[Any] = None

    def _check(self) -> None:
        self._set("shape", self.grid.shape)

    @property
    def grid(self) -> ChannelGrid:
        """The nodes."""
        return ChannelGrid(self.shape, self.length)
