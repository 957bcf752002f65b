"""Implicit steps that are not split along the axes, for a group of ranks.

Each rank gathers T, and makes the step of the whole field: the bits are those of one process.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data import NodeData
from ..distributed import Group, Slab
from ._settings import HeatSettings
from ._sides import Grid, Side
from ._unsplit import Unsplit

__all__ = ["UnsplitSlab"]

Array = NDArray[Any]

_OPERATION = "HeatADI"


class UnsplitSlab:
    """Steps of the equation that is not split, for the part of a rank; all calls are collective.

    Parameters
    ----------
    settings : HeatSettings
        Of the whole field.
    whole, own : Grid
        All nodes, and those of this rank with their conductivity.
    sides : mapping
        All sides of the whole field, by name.
    source : Any
        The source as the caller gave it: an array is that of the part of this rank.
    group : Group
        The ranks.
    split : Slab
        The axis of the field that is cut.
    """

    def __init__(
        self,
        settings: HeatSettings,
        whole: Grid,
        own: Grid,
        sides: Mapping[str, Side],
        source: Any,
        group: Group,
        split: Slab,
    ) -> None:
        self._group, self._axis = group, split.of(whole.axes)
        nodes = settings.shape[self._axis]
        self._parts = [split.part(nodes, rank, group.size) for rank in range(group.size)]
        self._settings, self._sides = settings, sides
        self._grid, self._own, self._given = copy(whole), own, source
        self._slope: Array | None = None
        self._known: Unsplit | None = None
        #: Iterations of the last step.
        self.iterations = 0
        #: Kernel and threads of the last step.
        self.run_by: dict[str, Any] = {"kernel": "", "threads": 0}
        #: Whether all equations of the last step were solved to the tolerance.
        self.converged = True

    def separate(self) -> UnsplitSlab:
        """Return a solver of the same problem whose calls do not change this one."""
        other = copy(self)
        other._known = copy(self._known)
        return other

    def step(self, own: Array, first: int, *, is_fresh: bool) -> Array:
        """Return T of this rank after step `first`.

        Parameters
        ----------
        own : array
            T of this rank.
        first : int
            Number of steps before.
        is_fresh : bool
            Whether T was not made by the step before this one.
        """
        solver, field = self._begun(own, first)
        if is_fresh or self._slope is None:
            self._slope = np.zeros_like(field)
        with self._group.agreement(_OPERATION):
            field, self._slope = solver.step(field, self._slope, first)
        return self._ended(solver, field)

    def start(self, own: Array) -> Array:
        """Return T of this rank after the first step, made of two half-steps."""
        solver, field = self._begun(own, 0)
        with self._group.agreement(_OPERATION):
            field = solver.start(field)
        return self._ended(solver, field)

    def steady(
        self, own: Array, time: float, rtol: float, most: int
    ) -> tuple[Array, tuple[float, float]]:
        """Return T of this rank in the steady state, and the balance, as `Unsplit.steady`."""
        solver, field = self._begun(own, time)
        with self._group.agreement(_OPERATION):
            field, balance = solver.steady(field, time, rtol, most)
        return self._ended(solver, field), balance

    def _begun(self, own: Array, place: float) -> tuple[Unsplit, Array]:
        """Return the solver of the whole field, and T."""
        with self._group.agreement(_OPERATION) as agreed:
            agreed.same = {"dt": self._grid.dt, "steps and time": place}
        if self._known is None:
            self._known = self._made()
        return self._known, self._whole(own)

    def _made(self) -> Unsplit:
        grid, own, source = self._grid, self._own, self._given
        grid.diffusivity = own.diffusivity
        grid.k = None if own.k is None else self._whole(own.k)
        if source is not None and not callable(source) and np.ndim(source):
            values = np.broadcast_to(np.asarray(source, np.float64), own.nodes[::-1])
            source = self._whole(values)
        data = None
        with self._group.agreement(_OPERATION):
            if source is not None:
                data = NodeData("source", source, *grid.places(range(grid.axes)))
            return Unsplit(self._settings, grid, self._sides, data)

    def _ended(self, solver: Unsplit, field: Array) -> Array:
        self.iterations, self.converged = solver.iterations, solver.converged
        self.run_by = solver.run_by
        return field[(slice(None),) * self._axis + (self._parts[self._group.rank],)].copy()

    def _whole(self, own: Array) -> Array:
        """Return an array of all nodes from those of all ranks."""
        shapes = [list(own.shape) for _ in self._parts]
        for shape, part in zip(shapes, self._parts, strict=True):
            shape[self._axis] = part.stop - part.start
        found = {rank: np.empty(shape, own.dtype) for rank, shape in enumerate(shapes)}
        self._group.exchange(_OPERATION, dict.fromkeys(found, np.ascontiguousarray(own)), found)
        return np.concatenate(list(found.values()), self._axis)
