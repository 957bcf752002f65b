"""Checked parameters of a parabolic solver."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Annotated, Any

from .._checks import index, short
from .._domain import checked_shape
from .._solver.schema import Positive, Real, number
from .._solver.settings import DomainSettings
from .._split import Scheme

_LEAST = 3  # nodes along an axis
_SERIAL_BELOW = 1 << 15  # nodes: below, waking threads costs more than they save

Theta = Annotated[float, number(above=0, most=1)]


@dataclass(frozen=True, kw_only=True)
class ParabolicSettings(DomainSettings):
    """Parameters of `ParabolicADI`; see there."""

    batch: Any
    dt: Positive
    scheme: Scheme
    theta: Theta | None
    damped_start: bool | None
    dtype: Real

    def _check(self) -> None:
        self._set("shape", checked_shape(self.shape, _LEAST))
        self._set("batch", _checked_batch(self.batch))
        self._check_domain("ParabolicADI")

    @property
    def is_small(self) -> bool:
        return prod(self.batch) * prod(self.shape) < _SERIAL_BELOW


def _checked_batch(batch: Any) -> tuple[int, ...]:
    """Return the batch axes as a tuple, or raise."""
    if isinstance(batch, int):
        batch = (batch,)
    if not isinstance(batch, tuple | list):
        raise TypeError(f"batch must be an int or a tuple of int, got {short(batch)}")
    return tuple(index("batch", n, 1) for n in batch)
