r"""How accurate a step is: what it makes of the slowest wave.

A wave decays by E = exp(-lambda dt) in a step, lambda = sum k kappa^2 over the axes; the scheme
multiplies it by a factor G. Fast waves are gone after a short time whatever G is (if the start is
damped); the slowest one is the solution, and |G - E| is the relative error of a step.

The wave number kappa along an axis of length L is pi/L between two given values and between two
fluxes, pi/(2 L) between a given value and a flux, and 2 pi/L on a periodic axis. k is the mean
conductivity. A Robin side counts as a given value if its Biot number h L/k is at least 1, and as a
flux otherwise. Where values are given along some axes, the slowest wave varies along these axes
and is constant along the others; otherwise it varies along the axis of the smallest k kappa^2.

With a = k kappa^2 dt/2 along each axis

    G = prod (1 - a)/(1 + a)                         Peaceman and Rachford, Douglas and Gunn (2-D)
    G = 1 - 2 sum a / prod (1 + a)                   Douglas and Gunn
    G = 1/(prod (1 + a) (1 + sum a))                 damped start: two half-steps of backward Euler,
                                                     the first one of them split
    G = (1 - (1 - 2 g) 2 s) / (1 + 2 g s)^2          implicit: SDIRK2, g = 1 - 1/sqrt 2, s = sum a
    G = 1/(1 + s)^2                                  its damped start
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require, require_finite
from ._sides import PERIODIC, Grid, Side

if TYPE_CHECKING:
    from ..distributed import Group

Array = NDArray[np.float64]

_SCHEMES = (
    "crank-nicolson",
    "peaceman-rachford",
    "douglas-gunn",
    "implicit",
)  # whose factors are known
_GAMMA = 1 - 1 / sqrt(2)
_BIOT = 1.0  # of a Robin side that counts as a given value, at least
_MOST_ERROR, _LEAST_FACTOR = 0.1, 0.1  # warn if |G - E| > _MOST_ERROR max(E, _LEAST_FACTOR)
_LARGEST = 1e100  # of a: G has reached its limit
_STEPS = np.geomspace(1e-8, 1e8, 1601)  # lambda dt in which the first large error is searched
_HALVINGS = 60


class Accuracy:
    """The slowest wave of a problem, and the accuracy of steps.

    Parameters
    ----------
    scheme : str
        As in `HeatADI`.
    grid : Grid
        All nodes, those of other ranks included, and the conductivity along each axis.
    k : array or None
        Conductivities at the nodes of this rank, None if 1; collective with a group.
    sides : mapping
        All sides.
    group : Group, optional
        The ranks.
    """

    def __init__(
        self,
        scheme: str,
        grid: Grid,
        diffusivity: Sequence[float],
        k: Array | None,
        sides: Mapping[str, Side],
        group: Group | None,
    ) -> None:
        #: The scheme of the steps; it can be changed.
        self.scheme = scheme
        self._grid, self._sides, self._group = grid, list(sides.values()), group
        self._diffusivity = tuple(diffusivity[: grid.named])
        self._judged: set[tuple[float, bool]] = set()
        self._warned: set[float] = set()
        self.take(k)

    def take(self, k: Array | None) -> None:
        """Take other conductivities at the nodes; collective with a group."""
        grid = self._grid
        mean, largest = _mean_and_largest(k, grid, self._group)
        #: Largest k/h^2 along each axis.
        self.numbers = tuple(
            a * largest / h / h for a, h in zip(self._diffusivity, grid.finest, strict=False)
        )
        #: k kappa^2 along each axis.
        self.rates = _rates(grid, [a * mean for a in self._diffusivity], self._sides)

    def diffusion_number(self, dt: float) -> float:
        """Return the largest k dt/h^2."""
        return max(self.numbers) * dt

    def factor(self, dt: Any, *, is_damped: bool = False) -> Any:
        """Return G for one dt or an array of them."""
        a = [np.minimum(0.5 * rate * dt, _LARGEST) for rate in self.rates]
        total = sum(a)
        if self.scheme == "implicit":
            if is_damped:
                return 1 / (1 + total) / (1 + total)
            one = 1 + 2 * _GAMMA * total
            return (1 - 2 * (1 - 2 * _GAMMA) * total) / one / one
        product = np.prod([1 + each for each in a], axis=0)
        if is_damped:
            return 1 / (product * (1 + total))
        if len(a) == 2:
            return (1 - a[0]) / (1 + a[0]) * ((1 - a[1]) / (1 + a[1]))
        return 1 - 2 * total / product

    def exact(self, dt: Any) -> Any:
        """Return E for one dt or an array of them."""
        return np.exp(-np.minimum(sum(self.rates) * dt, _LARGEST))

    def suggest_dt(self, error: float, *, is_damped: bool = False) -> float:
        """Return the largest dt up to which abs(G - E) is at most `error`, between 0 and 1.

        Parameters
        ----------
        error : float
            The largest relative error of a step.
        is_damped : bool, default: False
            Whether the damped step counts, too.
        """
        require_finite("error", error)
        require(0 < error < 1, "error must be between 0 and 1", error)

        def is_large(dt: Any) -> Any:
            """Return where a step, also a damped one, has a larger error."""
            exact = self.exact(dt)
            found = np.abs(self.factor(dt) - exact) > error
            if is_damped:
                found = found | (np.abs(self.factor(dt, is_damped=True) - exact) > error)
            return found

        times = _STEPS / sum(self.rates)
        at = int(np.argmax(is_large(times)))
        low, high = (times[at - 1] if at else 0.0), times[at]
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if is_large(middle) else (middle, high)
        return float(low)

    def message(self, dt: float, *, is_damped: bool) -> str:
        """Return the warning for steps of this length, once for each; otherwise ''."""
        if (dt, is_damped) in self._judged:
            return ""
        self._judged.add((dt, is_damped))
        if self.scheme not in _SCHEMES or dt in self._warned:
            return ""
        made, exact = float(self.factor(dt, is_damped=is_damped)), float(self.exact(dt))
        if abs(made - exact) <= _MOST_ERROR * max(exact, _LEAST_FACTOR):
            return ""
        self._warned.add(dt)
        step = "damped first step" if is_damped else "step"
        return (
            f"HeatADI: a {step} of dt = {dt:.3g} multiplies the slowest wave by {made:.3g}, the "
            f"equation by {exact:.3g}: the step is too large for the solution in time. Take "
            f"dt <= {self.suggest_dt(0.01):.3g} (suggest_dt()), or filter this warning if only "
            "the steady state matters"
        )


def _mean_and_largest(k: Array | None, grid: Grid, group: Group | None) -> tuple[float, float]:
    """Return the mean conductivity, and the largest over the relative heat capacity, of all ranks.

    The mean of the relative heat capacities is 1. Nodes in holes do not count.
    """
    relative, holes = grid.relative, grid.holes
    if holes is not None:
        k = None if k is None else k[~holes]
        relative = None if relative is None else relative[~holes]
    if relative is not None:
        return (1.0 if k is None else float(k.mean())), float(
            (1 / relative * (1.0 if k is None else k)).max()
        )
    if k is None:
        return 1.0, 1.0
    found: Any = np.array([[k.mean(), k.size, k.max()]])
    if group is not None:
        found = group.allgather("HeatADI", found[0])
    return float(np.average(found[:, 0], weights=found[:, 1])), float(found[:, 2].max())


def _rates(grid: Grid, k: Sequence[float], sides: Sequence[Side]) -> tuple[float, ...]:
    """Return k kappa^2 along each axis; 0 where the slowest wave is constant."""
    rates, has_values = [], []
    for axis, own in enumerate(k):
        ends = [side for side in sides if side.axis == axis]
        is_periodic = ends[0].kind == PERIODIC
        length = grid.spacing[axis] * (grid.nodes[axis] - (not is_periodic))
        given = sum(
            side.kind == "value" or side.coefficient / grid.capacity * length / own >= _BIOT
            for side in ends
        )
        wave = pi / length * (2 if is_periodic else 0.5 if given == 1 else 1)
        rates.append(own * wave * wave)
        has_values.append(given > 0)
    if not any(has_values):
        slowest = rates.index(min(rates))
        has_values[slowest] = True
    return tuple(
        rate if is_varying else 0.0 for rate, is_varying in zip(rates, has_values, strict=True)
    )
