"""Checked parameters of a cavity on a staggered grid."""

from dataclasses import asdict, dataclass
from math import pi, sin
from typing import Any, Literal

from .._checks import index, require, require_finite
from .._options import check_choice, check_threads
from .._runtime import backends, directive

__all__ = ["Kernels", "Pressure", "StaggeredSettings"]

Pressure = Literal["fast", "sor"]
Kernels = Literal["auto", "serial", "openmp", "cuda", "directive", "directive-openmp"]

_PRESSURES = {"fast": 0, "sor": 1}
_KERNELS = dict.fromkeys(("auto", "serial", "openmp", "cuda", *directive.MODELS), 0)
_SERIAL_BELOW = 200  # cells a side: below, waking threads costs more than they save


@dataclass(frozen=True, kw_only=True, slots=True)
class StaggeredSettings:
    """Parameters of `StaggeredCavity`; see there."""

    re: float
    n: int
    pressure: str
    gamma: float | str
    tau: float
    dt: float | None
    pressure_tol: float | None
    max_sweeps: int
    omega: float | None
    kernels: str
    device: str | None
    threads: int | None

    def __post_init__(self) -> None:
        require_finite("re", self.re)
        require(self.re > 0, "re must be positive", self.re)
        object.__setattr__(self, "n", index("n", self.n, 4))
        check_choice("pressure", self.pressure, _PRESSURES)
        check_choice("kernels", self.kernels, _KERNELS)
        check_threads(self.threads)
        self._check_step()
        self._check_sor()
        self._check_place()

    def _check_step(self) -> None:
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, {"auto": 0})
        else:
            require_finite("gamma", self.gamma)
            require(0 <= self.gamma <= 1, "gamma must be in 0 .. 1, or 'auto'", self.gamma)
        require_finite("tau", self.tau)
        require(self.tau > 0, "tau must be positive", self.tau)
        if self.dt is not None:
            require_finite("dt", self.dt)
            require(self.dt > 0, "dt must be positive, or None", self.dt)

    def _check_sor(self) -> None:
        if self.pressure_tol is not None:
            require_finite("pressure_tol", self.pressure_tol)
            require(self.pressure_tol > 0, "pressure_tol must be positive", self.pressure_tol)
        object.__setattr__(self, "max_sweeps", index("max_sweeps", self.max_sweeps, 1))
        if self.omega is not None:
            require_finite("omega", self.omega)
            require(0 < self.omega < 2, "omega must be between 0 and 2", self.omega)

    def _check_place(self) -> None:
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
        if self.is_on_device:
            backends.require("cuda")
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
    def step_threads(self) -> int:
        """Threads for the backend: 0 leaves the choice to it."""
        if self.kernels == "serial":
            return 1
        if self.threads is None:
            return 1 if self.n < _SERIAL_BELOW and self.kernels == "auto" else 0
        return check_threads(self.threads)

    @property
    def relaxation(self) -> float:
        """Relaxation factor of SOR."""
        return 2 / (1 + sin(pi / self.n)) if self.omega is None else float(self.omega)

    @property
    def longest_step(self) -> float:
        """Length of a step of the fluid at rest."""
        return self.dt or self.tau * min(self.re / 4 / self.n**2, 1 / (2 * self.n))

    def numbers(self, until: float, steady: float) -> tuple[float, ...]:
        """Return the numbers of a call of the backend."""
        return (
            float(self.re),
            float(self.tau),
            -1.0 if isinstance(self.gamma, str) else float(self.gamma),
            0.0 if self.dt is None else float(self.dt),
            until,
            steady,
            -1.0 if self.pressure_tol is None else float(self.pressure_tol),
            self.relaxation,
        )

    def facts(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)
