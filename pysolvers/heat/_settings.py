"""Checked parameters of a heat solver."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, Literal

from .._checks import index, require, short
from .._domain import AXES, checked_extent, exactly_one, per_axis
from .._solver.schema import Positive, Real
from .._solver.settings import Settings

Scheme = Literal["auto", "implicit", "peaceman-rachford", "douglas-gunn"]

_DEFAULT_SCHEME: dict[int, Scheme] = {2: "peaceman-rachford", 3: "douglas-gunn"}
_CHOSEN = ("auto", "implicit")  # schemes that a backend does not know
_LEAST = 2  # nodes along an axis; sides other than fluxes need one more
_SERIAL_BELOW = 1 << 15  # nodes: below, waking threads costs more than they save


@dataclass(frozen=True, kw_only=True)
class HeatSettings(Settings):
    """Parameters of `HeatADI`; see there."""

    shape: Any
    spacing: Any
    extent: Any
    dt: Positive
    scheme: Scheme
    dtype: Real
    damped_start: bool | None

    # Options of pysolvers.papers.wei2013, whose settings have them as fields.
    kernels = "fused"
    mapping = "C1"
    memory = "baseline"
    block: ClassVar[Any] = None
    timed = False

    def _check(self) -> None:
        self._set("shape", _checked_shape(self.shape))
        require(
            len(self.shape) == 2 or self.scheme in (*_CHOSEN, "douglas-gunn"),
            "with three axes scheme must be 'auto', 'implicit' or 'douglas-gunn'",
            self.scheme,
        )
        self._set_domain(self.axes)

    def _set_domain(self, axes: str) -> None:
        exactly_one("HeatADI", self.spacing, self.extent)
        if self.spacing is not None:
            self._set("spacing", per_axis("spacing", self.spacing, axes))
        else:
            pairs = tuple(checked_extent(self.extent, axes).values())
            self._set("extent", pairs)

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
        return False

    @property
    def codes(self) -> tuple[int, int, int, int, int]:
        """Scheme, kernels, memory, mapping and block for the backend."""
        b = self.backend
        return (
            b.HEAT_SCHEMES[str(self.scheme)],
            b.HEAT_KERNELS[self.kernels],
            b.HEAT_MEMORY[self.memory],
            int(self.mapping[1]),
            self.block or 0,
        )

    @property
    def call_threads(self) -> int:
        """Threads for the backend: 0 leaves the choice to it."""
        if self.threads is None:
            return 1 if prod(self.shape) < _SERIAL_BELOW else 0
        return self.threads


def _checked_shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise TypeError(f"shape must be a tuple of 2 or 3 int, got {short(shape)}")
    require(len(shape) in _DEFAULT_SCHEME, "shape must have 2 or 3 axes", shape)
    return tuple(index("shape", n, _LEAST) for n in shape)
