"""Checked parameters of GCEIDD."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from .._checks import index, require
from .._solver.schema import Positive, Real, number
from .._solver.settings import TimeSettings

Scheme = Literal["cp", "cfd", "mu"]
Upwind = Literal["modified", "plain"]

_LEAST_STRIP = 3  # cells: what the correction reads stays within a strip


@dataclass(frozen=True, kw_only=True)
class TransportSettings(TimeSettings):
    """Parameters of `GCEIDD`; see there."""

    shape: Any
    dt: Positive
    scheme: Scheme
    strips: Any
    upwind: Upwind
    dtype: Real
    bound: Annotated[float, number(above=0, finite=False)] | None

    # Options of pysolvers.papers.gceidd2022, whose settings have them as fields.
    predictor = "newest"
    foot = "clamp"
    kernels = "fused"
    strategy = "3s"
    few_strips = 512
    short_strip = 32
    throttle = 48 * 1024

    def _check(self) -> None:
        self._set("shape", check_shape(self.shape, _LEAST_STRIP + 1))
        self._set("strips", check_pair("strips", self.strips, 1))

    def check_strips(self, of_axes: tuple[int, int]) -> None:
        """Raise ValueError unless the strips of so many cells along x and y are long enough."""
        for axis, cells, count in zip("xy", of_axes, self.strips, strict=True):
            require(
                cells // count >= _LEAST_STRIP,
                f"strips along {axis} must have at least {_LEAST_STRIP} cells each, "
                f"so at most {cells // _LEAST_STRIP} strips of {cells} cells",
                count,
            )

    @property
    def has_range(self) -> bool:
        """Whether the data limit the solution: see _range.py."""
        has_feet = self.scheme == "cfd" or (self.scheme == "cp" and max(self.strips) > 1)
        return self.bound is None and not (has_feet and self.foot == "extrapolate")

    def with_given_levels(self) -> Self:
        """Return these settings with the prediction of ``'mu'`` from half levels of the caller."""
        found = replace(self)
        found._set("predictor", "printed")
        return found

    @property
    def codes(self) -> tuple[int, ...]:
        """The backend's codes of the options, and the stages of 3S, in the order of its call."""
        codes = (table[getattr(self, name)] for name, table in choices(self.backend).items())
        return (*codes, self.few_strips, self.short_strip, self.throttle)


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
