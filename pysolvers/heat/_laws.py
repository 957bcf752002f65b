"""Conductivities and sources that depend on the temperature, and conductivities of time.

In a step they are those at the middle of the step and at the temperature there, extrapolated from
the last two steps, T* = T + (T - T-) dt/(2 dt-): the equation of the step is linear, and the order
two is kept. The first step, and the step after a damped one, take T* = T, an error of the order
dt^2 once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import real_array, require, require_all_finite
from .._functions import arguments_of, call_with_arrays, protected
from ._extremes import check_conductivity
from ._sides import Grid, Heating

Array = NDArray[np.float64]

_TIME, _LEVEL = "t", "T"
_DIFFERENCE = 1e-6  # of T: for the slope of a source


class Law:
    """A quantity at the nodes, by a function of coordinates, time and temperature.

    Parameters
    ----------
    name : str
        For messages.
    function : callable
        Its parameters are among the names of the axes, t and T.
    axes : str
        Names of the axes.
    """

    def __init__(self, name: str, function: Callable[..., Any], axes: str) -> None:
        self._name, self._function, self._axes = name, function, axes
        self._names = arguments_of(name, function, (*axes, _TIME, _LEVEL))

    @property
    def text(self) -> str:
        """The variables of the function: `t`, `T`, or both."""
        return "a function of " + " and ".join(n for n in (_TIME, _LEVEL) if n in self._names)

    def depends_on(self, names: str) -> bool:
        """Return whether the function has one of these parameters."""
        return any(name in self._names for name in names)

    def at(self, grid: Grid, time: float, temperature: NDArray[Any]) -> Array:
        """Return the values at a time and a temperature, which broadcast to the nodes."""
        known: dict[str, Any] = dict(zip(self._axes, grid.everywhere, strict=False))
        known |= {_TIME: time, _LEVEL: np.asarray(temperature, np.float64)}
        arguments = protected({name: known[name] for name in self._names})
        when = f" at time {time:g}"
        values = real_array(
            self._name, call_with_arrays(self._name, self._function, arguments), when
        )
        nodes = grid.nodes[: grid.named][::-1]
        try:
            values = np.broadcast_to(values, nodes)
        except ValueError:
            raise ValueError(
                f"{self._name}{when} must broadcast to {nodes}, got shape {values.shape}"
            ) from None
        require_all_finite(self._name, values, when)
        return values


class LawHeating(Heating):
    """A source that depends on the temperature: the values of the step that is made.

    Parameters
    ----------
    grid : Grid
        The nodes.
    law : Law
        The source.
    """

    def __init__(self, grid: Grid, law: Law) -> None:
        self._grid, self._law = grid, law
        self.name, self.varies, self.shape = "source", True, grid.nodes[::-1]

    def set(self, time: float, temperature: NDArray[Any]) -> None:
        """Evaluate the source for a step."""
        values = self._law.at(self._grid, time, temperature) / self._grid.heat_of_nodes
        self._values = np.broadcast_to(values, self.shape)

    def falls(self, time: float, temperature: NDArray[Any]) -> Array:
        """Return -dq/dT over the heat capacity where it is positive, otherwise 0."""
        t = np.asarray(temperature, np.float64)
        step = _DIFFERENCE * max(float(np.abs(t).max()), 1e-3)
        change = self._law.at(self._grid, time, t + step) - self._law.at(self._grid, time, t - step)
        slope = np.maximum(0.0, -change / (2 * step)) / self._grid.heat_of_nodes
        return np.array(np.broadcast_to(slope, self.shape))

    def at(self, time: float) -> Array:
        """Return the values of the step; `time` is one in it."""
        del time
        return self._values


class Laws:
    """The conductivity and the source of a solver, as far as they are laws.

    Parameters
    ----------
    grid : Grid
        The nodes.
    conductivity : Law or None
        The conductivity.
    source : LawHeating or None
        The source.
    dtype : str
        Of the solution.
    """

    def __init__(
        self, grid: Grid, conductivity: Law | None, source: LawHeating | None, dtype: str
    ) -> None:
        self._grid, self._dtype = grid, dtype
        self.conductivity, self.source = conductivity, source

    def set_steady(self, time: float, temperature: NDArray[Any]) -> None:
        """Evaluate for an approximation of a steady state, with the slope of a source that falls.

        A source that falls with T, as heat that is lost to air, is taken at the temperature that is
        solved for: without it the iteration would not converge where it is larger than conduction.
        """
        self.set(time, temperature)
        if self.source is not None:
            self._grid.sink = self.source.falls(time, temperature)

    def set(self, time: float, temperature: NDArray[Any]) -> None:
        """Evaluate for a step, or leave all as it is after an error."""
        grid, k = self._grid, None
        if self.conductivity is not None:
            k = conductivity_of(self.conductivity.at(grid, time, temperature), grid, self._dtype)
        if self.source is not None:
            self.source.set(time, temperature)
        if k is not None:
            grid.k = k


def laws_of(grid: Grid, conductivity: Law | None, source: Law | None, dtype: str) -> Laws | None:
    """Return the laws of a solver, None if there is none."""
    if conductivity is None and source is None:
        return None
    return Laws(grid, conductivity, None if source is None else LawHeating(grid, source), dtype)


def law_of(name: str, value: Any, axes: str, depends: str) -> Law | None:
    """Return the law that a value of the caller is, or None.

    Parameters
    ----------
    name : str
        For messages.
    value : object
        The value.
    axes : str
        Names of the axes.
    depends : str
        Names of which a law has one at least.
    """
    if not callable(value):
        return None
    law = Law(name, value, axes)
    return law if law.depends_on(depends) else None


def conductivity_of(values: NDArray[Any], grid: Grid, dtype: str) -> Array:
    """Return conductivities at all nodes over the heat capacity, or raise ValueError."""
    k = np.array(np.broadcast_to(values, grid.nodes[::-1]), np.float64)
    require(bool((k > 0).all()), "diffusivity must be positive", float(k.min()))
    k /= grid.capacity
    check_conductivity(k, dtype)
    return grid.insulated(k, dtype)
