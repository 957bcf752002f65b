"""Checked parameters of a lid-driven cavity."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .._checks import index, require, require_finite, require_scale
from .._extras import extra_module
from .._options import check_choice, check_threads
from .._runtime import backends

__all__ = ["CavitySettings"]

_LINE_METHODS = ("auto", "thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "pivoted")
_MOST_SWEEPS = 2**31 - 1
_SERIAL_BELOW = 200  # nodes a side: below, waking threads costs more than they save


@dataclass(frozen=True, kw_only=True, slots=True)
class CavitySettings:
    """Parameters of `LidDrivenCavity`; see there."""

    re: float
    n: int
    lid_velocity: float
    wall: str
    method: str
    line_method: str
    direction: str
    psi: str
    psi_sweeps: int
    step: float | None
    device: str | None
    threads: int | None

    def __post_init__(self) -> None:
        require_finite("re", self.re)
        require_finite("lid_velocity", self.lid_velocity)
        require(self.re > 0, "re must be positive", self.re)
        require(self.lid_velocity != 0, "lid_velocity must not be 0", self.lid_velocity)
        require_scale("re", self.re)
        require_scale("lid_velocity", self.lid_velocity)
        object.__setattr__(self, "n", index("n", self.n, 5))
        object.__setattr__(self, "psi_sweeps", index("psi_sweeps", self.psi_sweeps, 1))
        require(
            self.psi_sweeps <= _MOST_SWEEPS,
            f"psi_sweeps must be at most {_MOST_SWEEPS}",
            self.psi_sweeps,
        )
        backend = self.backend
        check_choice("wall", self.wall, backend.WALLS)
        check_choice("method", self.method, backend.SCHEMES)
        check_choice("direction", self.direction, backend.DIRECTIONS)
        check_choice("line_method", self.line_method, _codes(self._line_methods()))
        check_choice("psi", self.psi, _codes(("adi", "fast")))
        check_threads(self.threads)
        self._check_method()

    def _check_method(self) -> None:
        if self.step is not None:
            require_finite("step", self.step)
            require(self.step > 0, "step must be positive", self.step)
            require_scale("step", self.step)
        if self.method == "line-jacobi":
            require(self.psi == "adi", "psi needs method 'adi'", self.psi)
            require(self.step is None, "step needs method 'adi'", self.step)
        if self.on_device:
            require(self.psi == "adi", "on a device psi must be 'adi'", self.psi)
        if self.psi == "fast":
            extra_module("scipy.fft", "poisson")

    def _line_methods(self) -> tuple[str, ...]:
        return (*_LINE_METHODS, "partition") if self.on_device else _LINE_METHODS

    @property
    def on_device(self) -> bool:
        """Whether a device iterates, not the host."""
        return backends.parse_device(self.device)[0] != "cpu"

    @property
    def backend(self) -> Any:
        """The extension module that iterates."""
        return backends.require(backends.parse_device(self.device)[0])

    @property
    def line_threads(self) -> int:
        """Threads for the backend: 0 leaves the choice to it."""
        if self.threads is None:
            return 1 if self.n < _SERIAL_BELOW else 0
        return check_threads(self.threads)

    @property
    def speed(self) -> float:
        """Speed of the lid."""
        return abs(self.lid_velocity)

    def facts(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)


def _codes(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: code for code, name in enumerate(names)}
