"""Checked parameters of GCEIDD."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from .._checks import index, require, require_finite, require_number
from .._options import check_choice, check_threads
from .._runtime import backends

__all__ = [
    "Foot",
    "Scheme",
    "Settings",
    "Upwind",
    "check_pair",
    "check_shape",
]

Scheme = Literal["cp", "cfd", "mu"]
Upwind = Literal["modified", "plain"]
Foot = Literal["clamp", "extrapolate"]

_LEAST_STRIP = 3  # cells: what the correction reads stays within a strip


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Parameters of `GCEIDD`; see there."""

    shape: Any
    dt: float
    scheme: str
    strips: Any
    upwind: str
    predictor: str
    foot: str
    kernels: str
    strategy: str
    dtype: Any
    bound: float | None
    device: str | None
    threads: int | None

    def __post_init__(self) -> None:
        backend = self.backend
        require_finite("dt", self.dt)
        require(self.dt > 0, "dt must be positive", self.dt)
        if self.bound is not None:
            require_number("bound", self.bound)
            require(self.bound > 0, "bound must be positive", self.bound)
        for name, table in choices(backend).items():
            check_choice(name, getattr(self, name), table)
        check_threads(self.threads)
        kind = np.dtype(self.dtype)
        if kind not in (np.float32, np.float64):
            raise TypeError(f"dtype must be float32 or float64, got {kind}")
        shape = check_shape(self.shape, _LEAST_STRIP + 1)
        strips = check_pair("strips", self.strips, 1)
        object.__setattr__(self, "shape", shape)
        for axis, cells, count in zip("xy", self.cells, strips, strict=True):
            require(
                cells // count >= _LEAST_STRIP,
                f"strips along {axis} must have at least {_LEAST_STRIP} cells each, "
                f"so at most {cells // _LEAST_STRIP} strips of {cells} cells",
                count,
            )
        object.__setattr__(self, "dtype", kind.name)
        object.__setattr__(self, "strips", strips)

    @property
    def cells(self) -> tuple[int, int]:
        """Number of cells along x and y."""
        return self.shape[1] - 1, self.shape[0] - 1

    @property
    def has_range(self) -> bool:
        """Whether the data limit the solution: see _range.py."""
        has_feet = self.scheme == "cfd" or (self.scheme == "cp" and max(self.strips) > 1)
        return self.bound is None and not (has_feet and self.foot == "extrapolate")

    @property
    def backend(self) -> Any:
        """The extension module that steps."""
        return backends.require(backends.parse_device(self.device)[0])

    @property
    def codes(self) -> tuple[int, ...]:
        """The backend's codes of the options, in the order of its call."""
        return tuple(table[getattr(self, name)] for name, table in choices(self.backend).items())

    def facts(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)


def choices(backend: Any) -> dict[str, Mapping[str, int]]:
    """Return the options that are one of some texts, in the order of the backend's call."""
    return {
        "scheme": backend.GCEIDD_SCHEMES,
        "upwind": backend.GCEIDD_UPWINDS,
        "predictor": backend.GCEIDD_PREDICTORS,
        "foot": backend.GCEIDD_FEET,
        "kernels": backend.GCEIDD_KERNELS,
        "strategy": backend.GCEIDD_STRATEGIES,
    }


def check_shape(shape: Any, least: int) -> tuple[int, int]:
    """Return the numbers of nodes along y and x, each at least `least`, or raise."""
    require(
        isinstance(shape, tuple | list) and len(shape) == 2,
        "shape must be (ny, nx), the number of nodes along y and x",
        shape,
    )
    return index("shape along y", shape[0], least), index("shape along x", shape[1], least)


def check_pair(name: str, value: Any, least: int) -> tuple[int, int]:
    """Return two integers of at least `least`, from one for both axes or a pair."""
    values = tuple(value) if isinstance(value, tuple | list) else (value, value)
    require(len(values) == 2, f"{name} must be an int or a pair", value)
    return index(f"{name} along x", values[0], least), index(f"{name} along y", values[1], least)
