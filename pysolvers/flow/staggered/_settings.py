"""Checked parameters of a cavity on a staggered grid."""

from dataclasses import dataclass
from math import inf, pi, sin, sqrt
from typing import Annotated, Literal

from ..._solver.schema import Count, Positive, number, whole
from ..._solver.settings import TimeSettings
from .._fields import SERIAL_BELOW

Pressure = Literal["fast", "sor"]

_LARGEST_SPEED = 100.0  # lid speeds: of a flow that grows without bound


@dataclass(frozen=True, kw_only=True)
class StaggeredSettings(TimeSettings):
    """Parameters of `StaggeredCavity`; see there."""

    reynolds: Positive
    lid_velocity: float
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
    def start_speed(self) -> float:
        """Largest speed of the fluid at rest: of the ghosts above the lid."""
        return 2 * abs(self.lid_velocity)

    def longest_step(self, force: float) -> float:
        """Return the length of a step of the fluid at rest, with a largest force."""
        speed, h = self.start_speed, 1 / self.n
        crossing = 2 * h / (speed + sqrt(speed**2 + 2 * force * h)) if speed or force else inf
        return self.dt or self.tau * min(self.reynolds * h**2 / 4, crossing)

    def largest_speed(self, *, is_forced: bool) -> float:
        """Return the speed above which a flow is regarded as unstable.

        Without a lid that moves, or with a force, no speed is known beforehand.
        """
        return inf if is_forced else _LARGEST_SPEED * abs(self.lid_velocity) or inf

    def numbers(self, until: float, steady: float, force: float | None) -> tuple[float, ...]:
        """Return the numbers of a call of the backend; `force` is the largest one, or None."""
        return (
            float(self.reynolds),
            float(self.tau),
            -1.0 if isinstance(self.gamma, str) else self.gamma,
            0.0 if self.dt is None else float(self.dt),
            until,
            steady,
            -1.0 if self.pressure_tol is None else float(self.pressure_tol),
            self.relaxation,
            self.lid_velocity,
            (force or 0.0) if self.dt is None else 0.0,  # only the automatic length depends on it
            self.largest_speed(is_forced=force is not None),
        )
