"""Checked parameters of a lid-driven cavity."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ..._checks import require, require_finite, require_scale
from ..._extras import extra_module
from ..._options import check_choice
from ..._solver.schema import Scale, whole
from ..._solver.settings import Settings
from .._fields import SERIAL_BELOW
from .._walls import Wall

Direction = Literal["alternate", "x", "y"]
LineMethod = Literal["auto", "thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "partition", "pivoted"]
Method = Literal["adi", "line-jacobi"]
Psi = Literal["adi", "fast"]

_HOST_METHODS = ("auto", "thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "pivoted")
_MOST_SWEEPS = 2**31 - 1


def _velocity(name: str, value: Any, other: str = "") -> float:
    """Accept numbers that are not 0."""
    del other
    require_finite(name, value)
    require(value != 0, f"{name} must not be 0", value)
    require_scale(name, value)
    return float(value)


@dataclass(frozen=True, kw_only=True)
class CavitySettings(Settings):
    """Parameters of `LidDrivenCavity`; see there."""

    reynolds: Scale
    n: Annotated[int, whole(5)]
    lid_velocity: Annotated[float, _velocity]
    wall: Wall
    method: Method
    line_method: LineMethod
    direction: Direction
    psi_solver: Psi
    psi_sweeps: Annotated[int, whole(1, _MOST_SWEEPS)]
    pseudo_dt: Scale | None

    # Option of pysolvers.papers.pta2020, whose settings have it as a field.
    block: ClassVar[Any] = None

    def _check(self) -> None:
        if not self.is_on_device:
            check_choice("line_method", self.line_method, dict.fromkeys(_HOST_METHODS, 0))
        if self.method == "line-jacobi":
            require(self.psi_solver == "adi", "psi_solver needs method 'adi'", self.psi_solver)
            require(self.pseudo_dt is None, "pseudo_dt needs method 'adi'", self.pseudo_dt)
        if self.is_on_device:
            rule = "on a device psi_solver must be 'adi'"
            require(self.psi_solver == "adi", rule, self.psi_solver)
        if self.psi_solver == "fast":
            extra_module("scipy.fft", "poisson")

    @property
    def is_small(self) -> bool:
        return self.n < SERIAL_BELOW

    @property
    def speed(self) -> float:
        """Speed of the lid."""
        return abs(self.lid_velocity)
