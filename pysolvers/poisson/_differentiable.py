r"""The Poisson equation by the array operations of a library that differentiates them.

With S the solution for sides of value zero, c the factors of the sides in the rows of the unknowns
next to them, and g their values,

    u = S (f - sum over the sides of c g) at the unknowns,    u = g at the nodes of Dirichlet sides.

S is linear. With v the volumes of the unknowns, S v^-1 is symmetric (see `_axes`), so that

    S^T = v S v^-1,

also in singular cases, where S subtracts means that v weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from .._boundary import sides_of
from .._checks import require_broadcast
from .._domain import AXES
from .._options import check_choice
from .._xp import ArrayLibrary
from ._axes import DIRICHLET, PERIODIC, check_lengths
from ._sides import condition_value, kind_of_condition, require_kind
from .fast import checked_shape, grid_axes

Array = Any

_NUMBERS = (int, float, complex)  # torch.compile of torch 2.7 does not trace unions


class _Side(NamedTuple):
    """A side that is not periodic.

    Attributes
    ----------
    name : str
        ``"x-"``, ``"x+"``, ...
    axis : int
        Axis of the array.
    near : int
        Index of the unknowns next to the side.
    factor : float
        Factor of the values in the rows of these unknowns.
    node : int or None
        Index of the nodes that have the values.
    shape : tuple of int
        Shape of the side.
    """

    name: str
    axis: int
    near: int
    factor: float
    node: int | None
    shape: tuple[int, ...]


class LinearPoisson:
    """The parameters of a solver, and its solution as a function of f and the sides.

    A class of a library has `_library` and `_solve`.
    """

    _library: ClassVar[ArrayLibrary]

    def __init__(
        self,
        shape: int | Sequence[int],
        spacing: Any = None,
        *,
        boundary: Any,
        extent: Sequence[Sequence[float]] | None = None,
        grid: Literal["nodes", "cells"] = "nodes",
    ) -> None:
        check_choice("grid", grid, {"nodes": 0, "cells": 1})
        self.shape = checked_shape(shape)
        conditions = sides_of(boundary, AXES[: len(self.shape)])
        self._kinds = {side: kind_of_condition(side, given) for side, given in conditions.items()}
        self._axes = grid_axes(self.shape, spacing, extent, grid, self._kinds)
        check_lengths(self._axes, np.dtype(np.float64))
        self._sides = self._sides_of_axes()
        self._values = self._checked_values(conditions)
        self.is_singular = all(axis.has_null_vector for axis in self._axes)

    def solve(self, f: Any, *, boundary: Mapping[str, Any] | None = None) -> Any:
        """Solve for one right side.

        Parameters
        ----------
        f : array or number
            Right side, broadcastable to `shape`. The solution has the precision to which f and
            the values of the sides promote.
        boundary : mapping, optional
            New conditions of some sides, of the same kinds, as in `pysolvers.FastPoisson.solve`.

        Returns
        -------
        u : array, shape `shape`
            The solution.

        Raises
        ------
        TypeError
            If the kind of a side changes, or f or a value is a function.
        ValueError
            If f or the values of a side do not broadcast to their place.
        """
        if isinstance(f, FunctionType):
            raise TypeError(
                "f must be a number or an array, not a function: pass the values of the function "
                "at the coordinates of the grid"
            )
        values = dict(self._values)
        if boundary is not None:
            changed = sides_of(boundary, AXES[: len(self.shape)], complete=False)
            values.update(self._checked_values(changed))
        given = {side: value for side, value in values.items() if not _is_zero(value)}
        arrays = self._library.operands({"f": f, **given})
        f = arrays["f"]
        require_broadcast("f", f.shape, self.shape)
        right = self._library.xp.broadcast_to(f, self.shape)
        sides = [side for side in self._sides if side.name in given]
        for side in sides:
            change = -side.factor * arrays[side.name]
            right = self._library.add(right, side.axis, side.near, change)
        u = self._solve(right)
        for side in sides:
            if side.node is not None:
                u = self._library.put(u, side.axis, side.node, arrays[side.name])
        return u

    def _solve(self, right: Array) -> Array:
        """Return the solution for sides of value zero; it is zero on Dirichlet nodes."""
        raise NotImplementedError

    def _sides_of_axes(self) -> list[_Side]:
        """Return the sides in the order x, y, z."""
        found = []
        for k, axis in reversed(list(enumerate(self._axes))):
            inner, others = axis.unknowns, tuple(self.shape[:k] + self.shape[k + 1 :])
            ends = (inner.start, 0), (inner.stop - 1, axis.size - 1)
            for end, (near, last) in enumerate(ends):
                if axis.ends[end] != PERIODIC:
                    node = last if axis.on_nodes and axis.ends[end] == DIRICHLET else None
                    name = axis.name + "-+"[end]
                    found.append(_Side(name, k, near, axis.side_factor(end), node, others))
        return found

    def _checked_values(self, conditions: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of conditions by side: numbers, or arrays of the library."""
        shapes = {side.name: side.shape for side in self._sides}
        found = {}
        for side, condition in conditions.items():
            require_kind(side, condition, self._kinds[side])
            if self._kinds[side] == PERIODIC:
                continue
            value = condition_value(condition)
            if callable(value):
                raise TypeError(f"boundary {side} must be a number or an array, not a function")
            if not isinstance(value, _NUMBERS):
                value = self._library.checked(f"boundary {side}", value)
                require_broadcast(f"boundary {side}", value.shape, shapes[side])
            found[side] = value
        return found


def _is_zero(value: Any) -> bool:
    """Whether a value is a number that is known to be zero."""
    return isinstance(value, _NUMBERS) and value == 0
