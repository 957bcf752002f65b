r"""The parts of a parabolic equation: rows of three-point differences, and mixed derivatives.

Along an axis with the distances h- and h+ to the neighbours

    u'' = 2 (u- / h- - (1/h- + 1/h+) u + u+ / h+) / (h- + h+),
    u'  = (h-/h+ u+ + (h+/h- - h-/h+) u - h+/h- u-) / (h- + h+).

At a side the node beyond it lies at the distance of the neighbour inside, h:

    flux q = a u_n, n outward    u'' = 2 (u_inside - u + h q / a) / h^2,  u_n = q / a
    linear, u_nn = 0             u'' = 0,  u_n from three nodes, of order 2

The third node of a linear side is a corner of the matrix: before a solve the multiple m of the next
row that removes it is subtracted. The row of the end is then that of two nodes where the next row
does not contain the third node.
A mixed derivative is the product of the first derivatives along two axes: nine points. At a side
with a flux it is the derivative of q/a along the side.

Words moved per unknown for a mixed derivative: 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from .._data import NodeData
from .._split import LINEAR, Grid, Level, LineOperators, Side
from .._split.lines import Field, Rows, Weights
from .._split.solver import node_data
from .._steps import tridiagonal_matvec

Array = NDArray[np.float64]

# Of the next row: a third node that needs a larger multiple of it is left out.
_LARGEST_FACTOR = 4.0
_ROUNDING = 1e-10  # of the product of two diffusion coefficients


class Coefficients:
    """The coefficients of the equation at the nodes.

    Parameters
    ----------
    grid : Grid
        The nodes.
    diffusion : mapping
        By the names of two axes, as ``"xx"`` and ``"xy"``.
    advection : mapping
        By the names of the axes.
    reaction : object
        A number, an array or a function.
    time : float
        The first time.
    """

    def __init__(
        self,
        grid: Grid,
        diffusion: Mapping[str, Any],
        advection: Mapping[str, Any],
        reaction: Any,
        time: float,
    ) -> None:
        names = grid.names

        def data(name: str, value: Any, least: float = -np.inf) -> NodeData:
            return node_data(grid, name, value, time, least)

        self.second = [
            data(f"diffusion {name * 2}", diffusion.get(name * 2, 0.0), 0.0) for name in names
        ]
        self.first = [data(f"advection {name}", advection.get(name, 0.0)) for name in names]
        self.reaction = data("reaction", reaction)
        pairs = [(one, two) for two in range(grid.axes) for one in range(two)]
        self.mixed = {
            (one, two): data(f"diffusion {names[one]}{names[two]}", diffusion[key])
            for one, two in pairs
            if (key := names[one] + names[two]) in diffusion
        }
        for (one, two), each in self.mixed.items():
            square = each.at(time) ** 2
            most = 4 * self.second[one].at(time) * self.second[two].at(time)
            axes = names[one] * 2, names[two] * 2
            require(
                bool((square <= most * (1 + _ROUNDING)).all()),
                f"diffusion: the square of {names[one]}{names[two]} minus 4 times {axes[0]} times "
                f"{axes[1]} must be at most 0, or the equation is not parabolic",
                float((square - most).max()),
            )


class ParabolicOperators(LineOperators):
    """The parts of the equation u_t = sum a_ij u_ij + sum b_i u_i + c u + f."""

    _explicit_is_mixed = True

    def __init__(
        self,
        grid: Grid,
        sides: list[Side],
        coefficients: Coefficients,
        source: NodeData | None,
        dtype: Any,
        device: str | None,
        threads: int | None,
    ) -> None:
        super().__init__(grid, sides, source, dtype, device, threads)
        self._coefficients = coefficients
        self.has_explicit = bool(coefficients.mixed)
        if self.has_explicit:
            self._first = [self._first_derivative(axis) for axis in range(grid.axes)]
            self._slopes: tuple[Any, ...] = ()

    def _of_axis(self, axis: int) -> tuple[NodeData, NodeData, NodeData]:
        """Return the coefficients of u_xx, u_x and u along an axis."""
        given = self._coefficients
        return given.second[axis], given.first[axis], given.reaction

    def _rows_vary(self, axis: int) -> bool:
        return any(each.varies for each in self._of_axis(axis))

    def _inflow_varies(self, side: Side) -> bool:
        second, first, _ = self._of_axis(side.axis)
        return side.varies or second.varies or first.varies

    def _make_rows(self, axis: int, time: float) -> tuple[list[Any], list[tuple[int, Any, Any]]]:
        grid = self.grid
        second, first, reaction = (each.at(time) for each in self._of_axis(axis))
        described = grid.described[axis]
        (lower2, upper2), (lower1, upper1) = described.whole_rows, described.slopes
        diag1 = -(lower1 + upper1)
        inside = np.ones(len(lower2))
        linear = []
        for end in () if grid.periodic[axis] else (0, 1):
            kind, h = grid.kinds[grid.names[axis] + "-+"[end]], grid.end_gap(axis, end)
            inner2, inner1 = (lower2, lower1) if end else (upper2, upper1)
            if kind == "value":
                inside[-end] = 0
            elif kind == LINEAR:
                sign = 1 if end else -1
                inner1[-end], diag1[-end] = -sign / h, sign / h
                inner2[-end] = 0
                if self._of_axis(axis)[1].varies or first.any():
                    linear.append(end)
        diag2 = -(lower2 + upper2)

        def along(values: Array) -> Array:
            return grid.along(axis, values)

        lower, upper = (
            second * along(two) + first * along(one)
            for two, one in ((lower2, lower1), (upper2, upper1))
        )
        diag = second * along(diag2) + first * along(diag1) + reaction / grid.axes * along(inside)
        for side in self._fluxes_of(axis):
            if side.coefficient:
                self._require_diffusion(side, self._at_side(side, time)[0])
                at_end = self._at_end(axis, side.end)
                diag = diag - side.coefficient * self._gain(side, time) * along(at_end)
        corners = []
        for end in linear:
            weights, entry, factor = self._third_node(axis, end, first, (lower, upper)[1 - end])
            # Weights of two nodes are exchanged for those of three.
            diag = diag + weights[0] * along(self._at_end(axis, end))
            if end:
                lower = lower + weights[1] * along(self._at_end(axis, end))
            else:
                upper = upper + weights[1] * along(self._at_end(axis, end))
            corners.append((end, entry, factor))
        return [lower, diag, upper], corners

    def _at_end(self, axis: int, end: int) -> Array:
        """Return 1 at the node of an end of an axis, 0 elsewhere."""
        found = np.zeros(self.grid.lines[axis].size)
        found[-end] = 1
        return found

    def _third_node(
        self, axis: int, end: int, first: Array, outward: Array
    ) -> tuple[tuple[Array, Array], Array, Array]:
        """Return what the third node of a linear side changes.

        That are the changes of the entries of the row of the end for the node and for its
        neighbour, the entry for the third node, and the multiple of the next row that removes it.
        `first` is the coefficient of the first derivative; `outward` has the entries of the rows
        for the neighbours that are farther from the side.
        """
        grid, sign = self.grid, -1 if end else 1
        gaps = grid.gaps[axis][::-1] if end else grid.gaps[axis]
        h, k = float(gaps[0]), float(gaps[1])
        at = (slice(-1, None), slice(-2, -1)) if end else (slice(1), slice(1, 2))
        own, neighbour = (
            grid.part(a, grid.index({axis: p, **self._others(axis)}))
            for a, p in zip((first, outward), at, strict=True)
        )
        # The slope of the parabola through three nodes, less that of the line through two.
        bend = sign * own * h / (h + k)
        entry = -bend / k
        is_used = neighbour > np.abs(entry) / _LARGEST_FACTOR
        entry = np.where(is_used, entry, 0.0)
        factor = entry / np.where(is_used, neighbour, 1.0)
        change = np.where(is_used, bend, 0.0)
        return (-change / h, change / h + change / k), entry, factor

    def _others(self, axis: int) -> dict[int, slice]:
        """Return all nodes along the other axes."""
        return {other: slice(None) for other in range(self.grid.axes) if other != axis}

    def _gain(self, side: Side, time: float) -> Array:
        """Return what a flux of 1 adds to the rates at the nodes of a side."""
        second, first = self._at_side(side, time)
        factor = self.grid.described[side.axis].side_factor(side.end)
        if not first.any():
            return np.full((1,) * self.grid.ndim, factor)
        self._require_diffusion(side, second)
        return factor + side.sign * first / second

    def _at_side(self, side: Side, time: float) -> tuple[Array, Array]:
        """Return the coefficients of u_nn and u_n at a side, whose axis has length 1."""
        index = self.grid.side(side.axis, side.end, whole=True)
        second, first, _ = self._of_axis(side.axis)
        return self.grid.part(second.at(time), index), self.grid.part(first.at(time), index)

    def _require_diffusion(self, side: Side, second: Array) -> None:
        """Raise unless the coefficient of u_nn is positive at a side with a flux."""
        require(
            bool((second > 0).all()),
            f"boundary {side.name}: a flux other than 0 needs a positive diffusion coefficient "
            f"{side.name[0] * 2} at the side",
            float(second.min()),
        )

    def _inflow(self, side: Side, time: float) -> Any:
        flux = side.coefficient * side.at(time) if side.is_robin else side.at(time)
        if not side.varies and not flux.any():
            return None
        if flux.any():
            self._require_diffusion(side, self._at_side(side, time)[0])
        return flux * self._gain(side, time)

    def _first_derivative(self, axis: int) -> Rows:
        """Return the rows of the first derivative, one-sided at the ends."""
        grid = self.grid
        lower, upper = grid.described[axis].slopes
        diag = -(lower + upper)
        for end in () if grid.periodic[axis] else (0, 1):
            h, sign = grid.end_gap(axis, end), 1 if end else -1
            (lower if end else upper)[-end] = -sign / h
            diag[-end] = sign / h
        return Rows(*(self.array(grid.along(axis, each)) for each in (lower, diag, upper)))

    def _make_explicit(self, time: float, before: Any) -> Any:
        given = self._coefficients
        if not given.mixed:
            return None
        if before and not (
            any(each.varies for each in given.mixed.values())
            or any(self._inflow_varies(side) for side in self._fluxes)
        ):
            return before
        mixed = {
            pair: before[0][pair]
            if before and not each.varies
            else self.array(self.grid.part(each.at(time), self.grid.inner))
            for pair, each in given.mixed.items()
        }
        slopes = {}
        for side in self._fluxes:
            if before and not self._inflow_varies(side):
                slopes[side] = before[1][side]
                continue
            flux, (second, _) = side.at(time), self._at_side(side, time)
            if not side.varies and not flux.any() and not side.coefficient:
                slopes[side] = None
                continue
            if flux.any() or side.coefficient:
                self._require_diffusion(side, second)
            # Of the derivative along the axis, not along the normal: a number, and one per u.
            per = side.sign / np.where(second > 0, second, 1.0)
            if side.is_robin:
                per = side.coefficient * per
                slopes[side] = self.array(per * flux), self.array(per)
            else:
                slopes[side] = self.array(per * flux), None
        return mixed, slopes

    def _mixed_for_kernel(self, explicit: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        if explicit is None:
            return super()._mixed_for_kernel(explicit)
        if not self._slopes:
            self._slopes = tuple(
                self._for_kernel(self._at_free(self._without_fluxes(axis, each), axis))
                for axis, rows in enumerate(self._first)
                for each in rows.diagonals
            )
        mixed = explicit[0]
        pairs = ((0, 1), (0, 2), (1, 2))
        found = (self._for_kernel(mixed[p]) if p in mixed else None for p in pairs)
        return self._slopes, tuple(found)

    def _without_fluxes(self, axis: int, values: Field) -> Field:
        """Return values along an axis with 0 at the sides whose flux is given."""
        found = values.copy()
        for side in self._fluxes_of(axis):
            found[(..., -side.end, *(slice(None) for _ in range(axis)))] = 0
        return found

    def _add_explicit_sides(
        self, level: Level, u: Field, d: Field | None, outs: Sequence[tuple[Field, Weights]]
    ) -> None:
        """Add mixed derivatives at sides with a flux: those along the sides of the slopes."""
        mixed, slopes = level.explicit
        grid = self.grid
        for (one, two), coefficient in mixed.items():
            for axis, other in ((two, one), (one, two)):
                for side in self._fluxes_of(axis):
                    if slopes[side] is None:
                        continue
                    end = slice(-1, None) if side.end else slice(1)
                    at = grid.index({axis: end, other: slice(None)})
                    y = u[at] if d is None else u[at] + d[at]
                    values = self.xp.empty(y.shape, self.dtype)
                    values[...] = self._slope(slopes[side], y, at)
                    along: Field = self.xp.empty_like(values)
                    self._derivative(other, values, along)
                    if axis == two:  # the side of the earlier axis decides where two meet
                        for across in self._fluxes_of(other):
                            along[(..., -across.end, *(slice(None) for _ in range(other)))] = 0
                    along = self._at_free(along, other)
                    own = [slice(None)] * grid.axes  # of the coefficient, that of free nodes
                    own[grid.axes - 1 - axis] = end
                    along *= grid.part(coefficient, (..., *own))
                    index = grid.side(axis, side.end)
                    for out, weights in outs:
                        out[index] += weights.explicit * along

    def _derivative(self, axis: int, u: Field, out: Field) -> None:
        """Write the first derivative along an axis to an array."""
        lower, diag, upper = self._first[axis].diagonals
        tridiagonal_matvec(
            lower,
            diag,
            upper,
            u,
            axis=-1 - axis,
            periodic=self.grid.periodic[axis],
            out=out,
            threads=self._threads,
        )

    def _slope(self, slope: Any, u: Field, at: Any) -> Any:
        """Return the derivative across a side, along the axis, at some of its nodes; u there."""
        if slope is None:
            return 0.0
        fixed, per = slope
        found = self.grid.part(fixed, at)
        return found if per is None else found - self.grid.part(per, at) * u

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_slopes": ()}
