"""Checked parameters of a heat solver."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, Literal

from .._checks import require
from .._domain import checked_shape
from .._solver.schema import Positive, Real
from .._solver.settings import DomainSettings

Scheme = Literal["auto", "implicit", "crank-nicolson", "peaceman-rachford", "douglas-gunn"]

# Schemes by the number of axes; the first one is the default for steps that are split.
_SCHEMES: dict[int, tuple[Scheme, ...]] = {
    1: ("crank-nicolson",),
    2: ("peaceman-rachford", "douglas-gunn"),
    3: ("douglas-gunn",),
}
_CHOSEN = ("auto", "implicit")  # schemes that a backend does not know
_WIDTH = 2  # lines of the plate that has the nodes of a rod
_LEAST = 2  # nodes along an axis; sides other than fluxes need one more
_SERIAL_BELOW = 1 << 15  # nodes: below, waking threads costs more than they save


@dataclass(frozen=True, kw_only=True)
class HeatSettings(DomainSettings):
    """Parameters of `HeatADI`; see there."""

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
        self._set("shape", checked_shape(self.shape, _LEAST))
        if not self.is_paper:
            known = (*_CHOSEN, *_SCHEMES[len(self.shape)])
            axes = ("one axis", "two axes", "three axes")[len(self.shape) - 1]
            text = ", ".join(map(repr, known[:-1])) + f" or {known[-1]!r}"
            require(self.scheme in known, f"with {axes} scheme must be {text}", self.scheme)
        self._check_domain("HeatADI")

    @property
    def alternating(self) -> "HeatSettings":
        """The same settings with a scheme of alternating directions."""
        if self.scheme not in _CHOSEN:
            return self
        return replace(self, scheme=_SCHEMES[len(self.shape)][0])

    @property
    def plate(self) -> "HeatSettings":
        """The same settings for the plate of the nodes of a rod; without a rod this object.

        A rod is a plate of two equal lines between insulated sides, on which Peaceman and
        Rachford's steps are those of Crank and Nicolson: the kernels of plates step it.
        """
        if len(self.shape) > 1:
            return self
        scheme = "peaceman-rachford" if self.scheme == "crank-nicolson" else self.scheme
        shape = (_WIDTH, *self.shape)
        domain: dict[str, Any] = {"spacing": 1.0, "extent": None, "coordinates": None}
        return replace(self, shape=shape, scheme=scheme, **domain)

    @property
    def is_paper(self) -> bool:
        """Whether the scheme or the kernels are those of Wei et al., for constant data."""
        return False

    def codes(self, backend: Any) -> tuple[int, int, int, int, int]:
        """Return scheme, kernels, memory, mapping and block for the backend."""
        return (
            backend.HEAT_SCHEMES[str(self.scheme)],
            backend.HEAT_KERNELS[self.kernels],
            backend.HEAT_MEMORY[self.memory],
            int(self.mapping[1]),
            self.block or 0,
        )

    @property
    def is_small(self) -> bool:
        return prod(self.shape) < _SERIAL_BELOW
