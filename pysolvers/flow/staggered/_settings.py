"""Checked parameters of a cavity on a staggered grid."""

from dataclasses import dataclass
from math import pi, sin
from typing import Annotated, Literal

from ..._solver.schema import Count, Positive, number, whole
from ..._solver.settings import TimeSettings
from .._fields import SERIAL_BELOW

Pressure = Literal["fast", "sor"]


@dataclass(frozen=True, kw_only=True)
class StaggeredSettings(TimeSettings):
    """Parameters of `StaggeredCavity`; see there."""

    reynolds: Positive
    n: Annotated[int, whole(4)]
    pressure: Pressure
    gamma: Literal["auto"] | Annotated[float, number(least=0, most=1)]
    tau: Positive
    dt: Positive | None
    pressure_tol: Positive | None
    max_sweeps: Count
    omega: Annotated[float, number(above=0, below=2)] | None

    kernels = "auto"  # an option of pysolvers.papers.survey2014, whose settings have it as a field

    @property
    def codes(self) -> tuple[int, int]:
        """Codes of the kernels and of the pressure for the backend."""
        backend = self.backend
        pressure = "given" if self.pressure == "fast" else "sor"
        return backend.STAGGERED_KERNELS[self.kernels], backend.PRESSURES[pressure]

    @property
    def is_small(self) -> bool:
        return self.n < SERIAL_BELOW

    @property
    def relaxation(self) -> float:
        """Relaxation factor of SOR."""
        return 2 / (1 + sin(pi / self.n)) if self.omega is None else self.omega

    @property
    def longest_step(self) -> float:
        """Length of a step of the fluid at rest."""
        return self.dt or self.tau * min(self.reynolds / 4 / self.n**2, 1 / (2 * self.n))

    def numbers(self, until: float, steady: float) -> tuple[float, ...]:
        """Return the numbers of a call of the backend."""
        return (
            float(self.reynolds),
            float(self.tau),
            -1.0 if isinstance(self.gamma, str) else self.gamma,
            0.0 if self.dt is None else float(self.dt),
            until,
            steady,
            -1.0 if self.pressure_tol is None else float(self.pressure_tol),
            self.relaxation,
        )
