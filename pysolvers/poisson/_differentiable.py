r"""The Poisson equation by the array operations of a library that differentiates them.

With S the solution for sides of value zero, c the factors of the sides in the rows of the unknowns
next to them, and g their values,

    u = S (f - sum over the sides of c g) at the unknowns,    u = g at the nodes of Dirichlet sides.

S is linear. With v the volumes of the unknowns, S v^-1 is symmetric (see `_axes`), so that

    S^T = v S v^-1,

also in singular cases, where S subtracts means that v weights. S depends on the number `helmholtz`,
c in A u - c u = f, with the derivative S S at the unknowns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from .._axis import DIRICHLET, ON_AXIS, PERIODIC
from .._checks import require, require_broadcast, require_finite, short
from .._domain import AXES
from .._options import check_choice
from .._xp import ArrayLibrary
from ._axes import check_lengths
from ._grid import Geometry, checked_shape, grid_of
from ._methods import FEW, Method, methods_of
from ._sides import condition_value, conditions_of, require_kind

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
        helmholtz: float = 0.0,
        grid: Literal["nodes", "cells"] = "nodes",
        geometry: Geometry = "cartesian",
        methods: Mapping[str, Method] | None = None,
    ) -> None:
        check_choice("grid", grid, {"nodes": 0, "cells": 1})
        check_choice("geometry", geometry, {"cartesian": 0, "cylinder": 1, "sphere": 2})
        require_finite("helmholtz", helmholtz)
        self.shape = checked_shape(shape)
        self.helmholtz = float(helmholtz)
        place = grid_of(self.shape, spacing, extent, grid, boundary, geometry)
        self._kinds, self._axes = place.kinds, place.axes
        check_lengths(self._axes, np.dtype(np.float64))
        self._methods = methods_of(self._axes, methods, helmholtz=self.helmholtz, few=FEW)
        self._sides = self._sides_of_axes()
        self._values = self._checked_values(place.conditions)
        self._is_closed = all(axis.has_null_vector for axis in self._axes)
        self.is_singular = not self.helmholtz and self._is_closed

    def solve(
        self, f: Any, *, boundary: Mapping[str, Any] | None = None, helmholtz: Any = None
    ) -> Any:
        """Solve for one right side.

        Parameters
        ----------
        f : array or number
            Right side, broadcastable to `shape`; leading axes are a batch. The solution has the
            precision to which f and the values of the sides promote.
        boundary : mapping, optional
            New conditions of some sides, of the same kinds, as in `pysolvers.FastPoisson.solve`.
            Values can have the leading axes of f.
        helmholtz : array of one number, optional
            c instead of the parameter of the solver, to differentiate with respect to it. It is
            not negative, or no axis has lines, and not zero if all sides are Neumann or periodic;
            neither is checked.

        Returns
        -------
        u : array, shape `shape` after the axes of a batch
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
            from_axis = self._kinds["x-"] == ON_AXIS
            changed = conditions_of(
                boundary, AXES[: len(self.shape)], from_axis=from_axis, complete=False
            )
            values.update(self._checked_values(changed))
        given = {side: value for side, value in values.items() if not _is_zero(value)}
        arrays = self._library.operands({"f": f, **given})
        f = arrays["f"]
        batch = tuple(f.shape[: max(len(f.shape) - len(self.shape), 0)])
        require_broadcast("f", f.shape[len(batch) :], self.shape)
        right = self._library.xp.broadcast_to(f, batch + self.shape)
        sides = [side for side in self._sides if side.name in given]
        for side in sides:
            require_broadcast(f"boundary {side.name}", arrays[side.name].shape, batch + side.shape)
            change = -side.factor * arrays[side.name]
            right = self._library.add(right, len(batch) + side.axis, side.near, change)
        u = self._solve(right, self._checked_number(helmholtz, right))
        for side in sides:
            if side.node is not None:
                place = len(batch) + side.axis
                u = self._library.put(u, place, side.node, arrays[side.name])
        return u

    def _solve(self, right: Array, helmholtz: Array | None) -> Array:
        """Return the solution for sides of value zero; it is zero on Dirichlet nodes.

        `helmholtz` is a real array without axes, or None for the parameter of the solver.
        """
        raise NotImplementedError

    def _checked_number(self, helmholtz: Any, like: Array) -> Array | None:
        """Return c of a call as an array of the library, or None."""
        if helmholtz is None:
            return None
        if not isinstance(helmholtz, _NUMBERS):
            helmholtz = self._library.checked("helmholtz", helmholtz)
            require(
                len(helmholtz.shape) == 0,
                "helmholtz must be an array without axes, for example helmholtz[0]",
                tuple(helmholtz.shape),
            )
        if self._library.is_complex(helmholtz):
            raise TypeError(f"helmholtz must be real, got {short(helmholtz)}: pass its real part")
        return self._library.like("helmholtz", helmholtz, like.real)

    def _sides_of_axes(self) -> list[_Side]:
        """Return the sides in the order x, y, z."""
        found = []
        for k, axis in reversed(list(enumerate(self._axes))):
            inner, others = axis.unknowns, tuple(self.shape[:k] + self.shape[k + 1 :])
            ends = (inner.start, 0), (inner.stop - 1, axis.size - 1)
            for end, (near, last) in enumerate(ends):
                if axis.ends[end] not in (PERIODIC, ON_AXIS):
                    node = last if axis.on_nodes and axis.ends[end] == DIRICHLET else None
                    name = axis.name + "-+"[end]
                    found.append(_Side(name, k, near, axis.side_factor(end), node, others))
        return found

    def _checked_values(self, conditions: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of conditions by side: numbers, or arrays of the library."""
        shapes = {side.name: side.shape for side in self._sides}
        found = {}
        for side, condition in conditions.items():
            axis = self._axes[-1 - AXES.index(side[0])]
            require_kind(side, condition, self._kinds[side], axis.exchange["-+".index(side[1])])
            if self._kinds[side] in (PERIODIC, ON_AXIS):
                continue
            value = condition_value(condition)
            if callable(value):
                raise TypeError(f"boundary {side} must be a number or an array, not a function")
            if not isinstance(value, _NUMBERS):
                value = self._library.checked(f"boundary {side}", value)
                own = value.shape[max(len(value.shape) - len(shapes[side]), 0) :]
                require_broadcast(f"boundary {side}", own, shapes[side])
            found[side] = value
        return found


def _is_zero(value: Any) -> bool:
    """Whether a value is a number that is known to be zero."""
    return isinstance(value, _NUMBERS) and value == 0
