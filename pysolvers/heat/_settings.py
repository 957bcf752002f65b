"""Checked parameters of a heat solver."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

import numpy as np

from .._checks import index, integer, require, require_finite, require_flag, short
from .._domain import AXES, checked_extent, exactly_one, per_axis
from .._options import check_choice, check_threads
from .._runtime import backends

__all__ = ["HeatSettings"]

_DEFAULT_SCHEME = {2: "peaceman-rachford", 3: "douglas-gunn"}
_CHOSEN = ("auto", "implicit")  # schemes that a backend does not know
_MAPPINGS = {"C1": 1, "C2": 2, "C3": 3, "C4": 4}
_BLOCKS = (32, 64, 128, 256, 512)
_LEAST = 2  # nodes along an axis; sides other than fluxes need one more
_SERIAL_BELOW = 1 << 15  # nodes: below, waking threads costs more than they save


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatSettings:
    """Parameters of `HeatADI`; see there."""

    shape: Any
    spacing: Any
    extent: Any
    dt: Any
    scheme: str | None
    dtype: Any
    kernels: str
    mapping: str
    memory: str
    block: int | None
    timed: bool
    damped_start: bool | None
    device: str | None
    threads: int | None

    def __post_init__(self) -> None:
        backend = self.backend
        shape = _checked_shape(self.shape)
        if self.dt is None:
            raise TypeError("HeatADI needs a time step: dt must be given")
        require_finite("dt", self.dt)
        require(self.dt > 0, "dt must be positive", self.dt)
        scheme = "auto" if self.scheme is None else self.scheme
        check_choice("scheme", scheme, dict.fromkeys(_CHOSEN, 0) | backend.HEAT_SCHEMES)
        check_choice("kernels", self.kernels, backend.HEAT_KERNELS)
        check_choice("memory", self.memory, backend.HEAT_MEMORY)
        check_choice("mapping", self.mapping, _MAPPINGS)
        check_threads(self.threads)
        require_flag("timed", self.timed)
        if self.damped_start is not None:
            require_flag("damped_start", self.damped_start, "a bool or None")
        if self.block is not None:
            block = integer("block", self.block, "an int or None")
            require(block in _BLOCKS, f"block must be one of {_BLOCKS}", self.block)
            object.__setattr__(self, "block", block)
        kind = np.dtype(self.dtype)
        if kind not in (np.float32, np.float64):
            raise TypeError(f"dtype must be float32 or float64, got {kind}")
        require(
            len(shape) == 2 or scheme in (*_CHOSEN, "douglas-gunn"),
            "with three axes scheme must be 'auto', 'implicit' or 'douglas-gunn'",
            scheme,
        )
        paper = self.kernels == "wei2013"
        require(
            not paper or scheme not in ("implicit", "douglas-gunn"),
            "kernels 'wei2013' are for schemes 'peaceman-rachford' and 'wei2013'",
            scheme,
        )
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dt", float(self.dt))
        self._set_domain(AXES[: len(shape)])
        object.__setattr__(self, "scheme", scheme)
        object.__setattr__(self, "dtype", kind.name)
        require(
            not (self.is_paper and self.damped_start),
            "damped_start must be None or False with the scheme and the kernels 'wei2013'",
            self.damped_start,
        )

    def _set_domain(self, axes: str) -> None:
        exactly_one("HeatADI", self.spacing, self.extent)
        if self.spacing is not None:
            object.__setattr__(self, "spacing", per_axis("spacing", self.spacing, axes))
        else:
            pairs = tuple(checked_extent(self.extent, axes).values())
            object.__setattr__(self, "extent", pairs)

    @property
    def axes(self) -> str:
        """Names of the axes of space, from x on."""
        return AXES[: len(self.shape)]

    @property
    def alternating(self) -> "HeatSettings":
        """The same settings with a scheme of alternating directions."""
        if self.scheme not in _CHOSEN:
            return self
        return replace(self, scheme=_DEFAULT_SCHEME[len(self.shape)])

    @property
    def is_paper(self) -> bool:
        """Whether the scheme or the kernels are those of Wei et al., for constant data."""
        return self.scheme == "wei2013" or self.kernels == "wei2013"

    @property
    def backend(self) -> Any:
        """The extension module that steps."""
        return backends.require(backends.parse_device(self.device)[0])

    @property
    def codes(self) -> tuple[int, int, int, int, int]:
        """Scheme, kernels, memory, mapping and block for the backend."""
        b = self.backend
        return (
            b.HEAT_SCHEMES[str(self.scheme)],
            b.HEAT_KERNELS[self.kernels],
            b.HEAT_MEMORY[self.memory],
            _MAPPINGS[self.mapping],
            self.block or 0,
        )

    @property
    def call_threads(self) -> int:
        """Threads for the backend: 0 leaves the choice to it."""
        if self.threads is None:
            return 1 if prod(self.shape) < _SERIAL_BELOW else 0
        return check_threads(self.threads)

    def facts(self) -> dict[str, Any]:
        """Return the parameters by name, but for where to run."""
        return {k: v for k, v in asdict(self).items() if k not in ("device", "threads")}


def _checked_shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise TypeError(f"shape must be a tuple of 2 or 3 int, got {short(shape)}")
    require(len(shape) in _DEFAULT_SCHEME, "shape must have 2 or 3 axes", shape)
    return tuple(index("shape", n, _LEAST) for n in shape)
