"""Where steps of alternating directions can leave the range of the data, and what is done there.

With T the field, K_x = dt d_x k d_x and so on, a step without data of Douglas and Gunn's scheme is

    T+ = T + (1 - K_z/2)^-1 (1 - K_y/2)^-1 (1 - K_x/2)^-1 (K_x + K_y + K_z) T.

If the operators commute, the moduli of its eigenvalues are at most 1 for any dt, and after a damped
start T stays in the range of the data. They commute if k depends on one coordinate only, and nearly
so if k is smooth: no excess was found where k changes by a factor of at most 1.5 from node to node
(1.2 with three axes) and of 10 in all. Otherwise, with

    s = (largest k - smallest k) dt/h^2,   h the smallest spacing,

three axes can grow without bound from s = 3 on: insulated cubes of 4^3 nodes whose conductivities a
search chose for the largest eigenvalue had 1 + 1e-14 for s = 3, 1.6 for s = 4. Two axes are bounded
in the norm of (1 - K_y/2) T, but T itself can grow by the largest K_y before it decays: a plate
with a diagonal bar of 1e4 times the conductivity, between 0 and 1, reaches 69 for dt/h^2 = 10.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..distributed import Group
    from ._settings import HeatSettings

Array = NDArray[np.float64]

# By the number of axes: largest s up to which a search over conductivities found no value outside
# the range of the data by more than 1e-3 of it, for any k; the same for k of a small ratio.
_SPREAD = {2: 1.5, 3: 1.5}
_MILD_SPREAD = {2: 10.0, 3: 3.0}
_MILD = 10.0  # ratio of the largest and the smallest k
# Ratio of k at neighbouring nodes up to which, for k of a small ratio, none was found for any s.
_SMOOTH = {2: 1.5, 3: 1.2}
_GROWTH = 3.0  # largest s for which no growth was found, with three axes


class Choice:
    """The scheme of steps of a length; collective with a group.

    Parameters
    ----------
    settings : HeatSettings
        The scheme that the user wants.
    k : array or None
        Conductivities at the nodes, None if one number for each axis. With a group those of this
        rank and of the next nodes of its neighbours, so that a variation from rank to rank is seen.
    spacing : tuple of float
        Distance of the nodes along each axis.
    group : Group, optional
        The ranks that have the nodes.
    relative : array, optional
        Heat capacities at the nodes over their mean; without a group.
    """

    def __init__(
        self,
        settings: HeatSettings,
        k: Array | None,
        spacing: tuple[float, ...],
        group: Group | None,
        relative: Array | None = None,
    ) -> None:
        self._wanted = str(settings.scheme)
        self._split = str(settings.alternating.scheme)
        self._axes = len(spacing)
        #: s/dt where alternating directions have a limit, otherwise 0.
        self.rate, self._spread = _limits(k, spacing, group, relative)

    @property
    def longest(self) -> float:
        """Largest dt for which alternating directions are known to be good."""
        return self._spread / self.rate if self.rate else inf

    @property
    def stable(self) -> float:
        """Largest dt of steps by alternating directions without a warning."""
        return self._warned / self.rate if self.rate else inf

    @property
    def _warned(self) -> float:
        """Largest s without a warning."""
        return self._spread if self._axes == 2 else _GROWTH

    def scheme(self, dt: float) -> str:
        """Return the name of the scheme of steps of this length."""
        if self._wanted == "implicit":
            return self._wanted
        if self._wanted == "auto" and dt > self.longest:
            return "implicit"
        return self._split

    def message(self, dt: float) -> str:
        """Return the warning for steps of this length; '' if there is none."""
        if self.scheme(dt) == "implicit" or not self.rate:
            return ""
        limit = self._warned
        if self.rate * dt <= limit:
            return ""
        if self._axes == 2:
            harm = "in two dimensions, with a diffusivity that varies along several axes, "
            harm += "alternating directions can leave the range of the data"
        else:
            harm = "in three dimensions, with a diffusivity that varies in several directions, "
            harm += "steps can multiply waves by more than 1"
        return (
            f"HeatADI: {harm} if (largest - smallest diffusivity) dt/h^2 is above {limit:g}; it is "
            f"{self.rate * dt:.3g}: take dt <= {self.stable:.3g}, or scheme='implicit'"
        )


def _limits(
    k: Array | None,
    spacing: tuple[float, ...],
    group: Group | None,
    relative: Array | None = None,
) -> tuple[float, float]:
    """Return s/dt, or 0 without limits, and the largest s; collective with a group."""
    if relative is not None:
        return _limits_of_capacities(np.ones_like(relative) if k is None else k, spacing, relative)
    if k is None:
        return 0.0, inf
    axes = k.ndim
    low, high = k.min(), k.max()
    varies = [bool(np.ptp(k, axis=axis).any()) for axis in range(axes)]
    step = max(_largest_step(k, axis) for axis in range(axes))
    if group is not None:
        found: Any = group.allgather("HeatADI", np.array([low, high, step, *varies]))
        low, high, step = found[:, 0].min(), found[:, 1].max(), found[:, 2].max()
        varies = list(found[:, 3:].any(axis=0))
    is_mild = high <= _MILD * low
    if sum(varies) < 2 or (is_mild and step <= _SMOOTH[axes]):
        return 0.0, inf
    rate = float(high - low) / min(spacing) ** 2
    return rate, (_MILD_SPREAD if is_mild else _SPREAD)[axes]


def _limits_of_capacities(
    k: Array, spacing: tuple[float, ...], relative: Array
) -> tuple[float, float]:
    """Return what `_limits` returns for heat capacities that vary.

    They scale the rows of all axes: the largest a = k/c counts, and the largest of the ratios of k,
    c and a, also where a itself varies little, as k and c of concrete and of insulation do. Layers
    and smooth fields are no exception, as they are for k alone: a search found an excess of 0.05
    for layers of k and c of ratios 800 and 13, and of 0.015 for c at random of ratio 1.3.
    """
    a, axes = k / relative, k.ndim
    ratio = max(float(v.max() / v.min()) for v in (k, relative, a))
    rate = float(a.max()) * (1 - 1 / ratio) / min(spacing) ** 2
    return rate, (_MILD_SPREAD if ratio <= _MILD else _SPREAD)[axes]


def _largest_step(k: Array, axis: int) -> float:
    """Return the largest ratio of k at two neighbouring nodes along an axis of the array."""
    lines = np.moveaxis(k, axis, 0)
    ratio = lines[1:] / lines[:-1]
    return float(max(ratio.max(), 1 / ratio.min())) if ratio.size else 1.0
