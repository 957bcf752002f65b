"""Parameters of a solver: a frozen dataclass whose annotations are the checks."""

from dataclasses import asdict, dataclass
from typing import Any

from .._domain import AXES, checked_domain
from .._runtime import backends
from .schema import Device, Threads, checks_of


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Parameters of a solver, checked by their annotations; see `schema`.

    A subclass adds the other parameters, without defaults, and overrides `_check`. An instance
    contains the values in their standard form, and can be made on a host without the device.
    """

    device: Device | None
    threads: Threads | None

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, check in checks_of(kind).items():
            self._set(name, check(name, getattr(self, name)))
        self._check()

    def _check(self) -> None:
        """Raise if parameters contradict each other; complete those that depend on others."""

    def _set(self, name: str, value: Any) -> None:
        """Set a parameter while the object is made."""
        object.__setattr__(self, name, value)

    @property
    def is_on_device(self) -> bool:
        """Whether a device computes, not the host."""
        return backends.parse_device(self.device)[0] != "cpu"

    @property
    def backend(self) -> Any:
        """The extension module that computes; BackendError if it is not available."""
        if self.device is None:
            return backends.host()
        return backends.require(backends.parse_device(self.device)[0])

    @property
    def is_small(self) -> bool:
        """Whether to wake threads costs more than they save."""
        return False

    @property
    def call_threads(self) -> int:
        """Threads for the backend: 0 leaves the choice to it."""
        return self.threads or int(self.is_small)

    def facts(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)

    def agreed(self) -> dict[str, Any]:
        """Return what all ranks of a group must have: not the threads, and the kind of device."""
        facts = self.facts() | {"device": backends.parse_device(self.device)[0]}
        del facts["threads"]
        return facts


@dataclass(frozen=True, kw_only=True)
class TimeSettings(Settings):
    """Parameters of a solver of a problem that changes with time."""

    start_time: float


@dataclass(frozen=True, kw_only=True)
class DomainSettings(TimeSettings):
    """Parameters of a solver whose nodes `shape` and `spacing`, `extent` or `coordinates` give."""

    shape: Any
    spacing: Any
    extent: Any
    coordinates: Any

    def _check_domain(self, solver: str) -> None:
        """Set the parameters of the places in their standard form; `shape` has it already."""
        places = self.spacing, self.extent, self.coordinates
        found = checked_domain(solver, *places, self.shape, self.axes)
        for name, value in zip(("spacing", "extent", "coordinates"), found, strict=True):
            self._set(name, value)

    @property
    def axes(self) -> str:
        """Names of the axes of space, from x on."""
        return AXES[: len(self.shape)]
