"""Checked parameters of a cavity on a staggered grid."""

from dataclasses import dataclass
from math import pi, sin
from typing import Annotated, Any, Literal

from .._checks import require
from .._runtime import backends, directive
from .._solver.schema import Count, Positive, number, whole
from .._solver.settings import Settings

__all__ = ["Kernels", "Pressure", "StaggeredSettings"]

Pressure = Literal["fast", "sor"]
Kernels = Literal["auto", "serial", "openmp", "cuda", "directive", "directive-openmp"]

_SERIAL_BELOW = 200  # cells a side: below, waking threads costs more than they save


@dataclass(frozen=True, kw_only=True)
class StaggeredSettings(Settings):
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
    kernels: Kernels

    def _check(self) -> None:
        name, _ = backends.parse_device(self.device)
        require(
            name == "cpu" or self.kernels in ("auto", "cuda"),
            f"kernels must be 'auto' or 'cuda' with device={self.device!r}",
            self.kernels,
        )
        require(
            self.device is None or name == "cuda" or self.kernels != "cuda",
            "device must be None or a CUDA device with kernels='cuda'",
            self.device,
        )
        if self.has_directives:
            require(
                self.pressure == "sor",
                f"pressure must be 'sor' with kernels={self.kernels!r}",
                self.pressure,
            )
            directive.load(self.kernels)
        require(
            self.kernels != "serial" or self.threads in (None, 1),
            "threads must be None or 1 with kernels='serial'",
            self.threads,
        )

    @property
    def has_directives(self) -> bool:
        """Whether the steps are made by kernels with compiler directives."""
        return self.kernels in directive.MODELS

    @property
    def place(self) -> str:
        """Where the fields lie: ``'cpu'``, ``'cuda'`` or ``'cuda:N'``."""
        return self.device or ("cuda" if self.kernels == "cuda" else "cpu")

    @property
    def is_on_device(self) -> bool:
        """Whether the steps are made on a device."""
        return self.place != "cpu"

    @property
    def backend(self) -> Any:
        """The extension module that makes the steps."""
        return backends.require("cuda" if self.is_on_device else "cpu")

    @property
    def codes(self) -> tuple[int, int]:
        """Codes of the kernels and of the pressure for the backend."""
        backend = self.backend
        kernels = "auto" if self.is_on_device else self.kernels
        pressure = "given" if self.pressure == "fast" else "sor"
        return backend.STAGGERED_KERNELS[kernels], backend.PRESSURES[pressure]

    @property
    def call_threads(self) -> int:
        """Threads for the backend: 0 leaves the choice to it."""
        if self.kernels == "serial":
            return 1
        if self.threads is None:
            return 1 if self.n < _SERIAL_BELOW and self.kernels == "auto" else 0
        return self.threads

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
