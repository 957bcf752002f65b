r"""The unsplit operator of an implicit step on a sequence of grids, for `diffusion_solve`.

With the volumes W of the nodes (1, half at each side that is a flux, times the heat capacity of a
volume over the mean one), the operator

    A = W (s + t K),    K T = -d_x k d_x T - d_y k d_y T [- d_z k d_z T] + exchange,

is symmetric: between two nodes lies a conductance t k/h^2 times the area of their face, k the
harmonic mean. s is 1 for a step and 0 for the steady state.

The next grid has every other node along each axis, and the last one. Along one axis after the other
its operator is P^T A P, where P interpolates a node between two others with the weights w and 1 - w
(`ps_diffusion.h`), reduced to neighbours: half of a coupling of diagonal neighbours goes to each of
the four sides of their square, which keeps the energy of fields that vary along one axis. Between
two nodes of the next grid lie f and h along the axis, w = f/(f + h), and across it g to a line with
the weight v. The next grid has

    along the axis    f h/(f + h) + the sum over g of g/2 (v - w) (1 - 2 w), at least a tenth of the
                      first term,
    across it         g (w + v)/2 more at the node before, g (1 - (w + v)/2) at the node after.

Row sums are added by halves: by w it takes 2 to 4 percent more iterations. With halves of g and no
sum over g, the network of the finer grid, nodes of two values at random take 1.2 times as many
iterations on 128^2 nodes for a ratio of 100, and five times as many for 1e4.

Axes are made coarser while t k/h^2 is so large that a node depends on more than its neighbours.

The levels are in float32 also for fields in float64, unless the conductances differ by so much that
rounding would cost more iterations than half the memory saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from math import inf, log2
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._errors import raise_for_status
from .._runtime.fields import Fields, HostFields
from ._sides import PERIODIC, Grid, Side

Array = NDArray[Any]

# Of the line relaxation, definite below 1: 7334, 7212 and 7144 iterations with 0.85, 0.9 and 0.95
# in 81 problems on 64^2, 128^2 and 33^3 nodes (a bar, a disc and random k of ratio 100).
_OMEGA = 0.9
_LEAST_NODES = 5  # of an axis that is made coarser
_PINNED = 1e15  # row sums from here on are those of nodes of a given temperature
_WEAK = 0.3  # t k/h^2: lines across such an axis are solved by a relaxation
MOST_LEVELS = 24
#: Fields of a basis. With 1, 2, 3, 4 and 5 of the last solutions a stage on 64^2 nodes, a diagonal
#: bar of ratio 100 and dt/h^2 = 1000 takes 7.8, 6.9, 6.1, 4.9 and 4.6 iterations; 9.4 without.
BASIS = 4

# Ratio of conductances up to which a V-cycle in float32 takes at most a tenth more iterations than
# one in float64, which takes 1.1 to 1.6 times the time; at 1e5 and random k it takes a fifth more.
# The largest conductance is far below overflow.
_FLOAT32_RATIO, _FLOAT32_LARGEST = 1e4, 1e30


# Least eigenvalue of P A down to which the limits are those of the correction. It is 0.12 to 0.8
# for k of ratio 100. It decreases as the inverse of the ratio where a coarse grid joins what the
# fine one separates: 1.6e-5 and 2.3e-5 for a bar in three dimensions and for nodes of two values at
# random, of ratio 1e6. Without this factor the field is up to 1e-3 from the solution in float32.
_LEAST = 0.1


class Level(NamedTuple):
    """Coefficients of one level of the grid."""

    faces: list[Array]  # from x on; at a node, between it and the next one
    sums: Array
    first: tuple[int, ...]  # unknown nodes, from x on
    end: tuple[int, ...]


class Levels:
    """The operator A of a step, and its factors.

    Parameters
    ----------
    grid : Grid
        The nodes, and the conductivity.
    sides : sequence of Side
        All sides.
    share : float
        t in multiples of dt of the grid; a steady state takes its own.
    backend : module
        The backend that solves.
    dtype : str
        Of the fields.
    threads : int
        As the backend takes it.
    store : Fields, optional
        Where the fields lie; by default on the host.
    is_steady : bool, default: False
        Whether s is 0.
    """

    def __init__(
        self,
        grid: Grid,
        sides: Sequence[Side],
        share: float,
        backend: Any,
        dtype: str,
        threads: int,
        *,
        store: Fields | None = None,
        is_steady: bool = False,
    ) -> None:
        self._backend, self._threads = backend, threads
        self._least = inf  # eigenvalue of P A that a solve has found
        self._store = HostFields({}) if store is None else store
        self._periodic = tuple(
            any(side.axis == axis and side.kind == PERIODIC for side in sides)
            for axis in range(grid.axes)
        )
        flux = {(side.axis, side.index) for side in sides if side.kind == "flux"}
        self._ends = tuple(
            (int(wraps), int((axis, 0) in flux), int((axis, -1) in flux))
            for axis, wraps in enumerate(self._periodic)
        )
        #: W at the nodes, or numbers that broadcast to them.
        self.volumes = self._volumes(grid, range(grid.axes))
        if grid.relative is not None:
            self.volumes = self.volumes * grid.relative
        #: Whether W is not what the backend takes it for, from the sides alone.
        self.is_weighted = any(v is not None for v in (grid.relative, grid.holes)) or bool(
            grid.gaps
        )
        self.holes = grid.holes
        #: W, but 0 in holes: what the heat of a node counts.
        self.weights = self.volumes
        if grid.holes is not None:
            self.weights = np.where(grid.holes, 0.0, self.volumes)
        nodes = self._whole(grid)
        first = tuple(_given(sides, axis, 0) for axis in range(grid.axes))
        end = tuple(n - _given(sides, axis, -1) for axis, n in enumerate(nodes))
        #: The sum of W over the nodes.
        self.volume = self.total(self.weights)
        #: The unknown nodes of a field.
        self.inner = tuple(slice(a, b) for a, b in zip(first, end, strict=True))[::-1]
        faces = [self._faces(grid, axis) for axis in range(grid.axes)]
        if is_steady:  # t is arbitrary: a power of two such that entries are near 1
            (largest,) = self._largest([max(float(face.max()) for face in faces)])
            share = 2.0 ** -round(log2(largest or 1.0))
        faces = [share * face for face in faces]
        #: t in multiples of dt of the grid.
        self.share = share
        exchange = np.zeros(grid.nodes[::-1])
        for side in sides:
            if side.kind == "flux":
                side.of(exchange)[...] += share * side.exchange
        exchange *= self.volumes
        #: W s, or in a steady state W t times the slope of a source that falls; None if it is 0.
        self.inertia: Array | None = None if is_steady else self.volumes
        if is_steady and grid.sink is not None:
            self.inertia = share * grid.dt * grid.sink * self.volumes
        sums = exchange if self.inertia is None else exchange + self.inertia
        has_values = bool(any(first) or end != nodes or grid.hole_values is not None)
        is_open = has_values or bool(sums.any() if is_steady else exchange.any())
        if is_steady and grid.holes is not None:  # T in holes stays
            self.inertia = np.where(
                grid.holes, self.volumes, 0.0 if self.inertia is None else self.inertia
            )
            sums = exchange + self.inertia
        #: Whether nothing but sources and inflows changes the heat: no exchange, no given value.
        self.is_closed = not any(self._largest([is_open]))
        #: Whether A has the constant as null vector.
        self.is_singular = is_steady and self.is_closed
        largest = max(float(face.max()) for face in faces)
        least = min(
            float(face[self._is_joint(face, axis)].min(initial=inf))
            for axis, face in enumerate(faces)
        )
        largest, least = self._largest([largest, -least])
        fits = largest <= min(_FLOAT32_LARGEST, -_FLOAT32_RATIO * least)
        #: Whether s is 0.
        self.is_steady = is_steady
        #: About how much larger rounding errors of A x can be than those of x.
        self.growth = inf if is_steady else largest
        if self.is_weighted:
            self.growth /= float(self.volumes.min())
        start = Level(faces, np.ascontiguousarray(sums), first, end)
        self._set_levels(start, exchange, dtype, "float32" if fits else dtype)

    def _is_joint(self, face: Array, axis: int) -> NDArray[np.bool_]:
        """Return whether each face lies between two nodes that are not in holes."""
        found = face > 0
        if self.holes is not None:
            found &= ~(self.holes | np.roll(self.holes, -1, face.ndim - 1 - axis))
        return found

    def _set_levels(self, start: Level, exchange: Array, dtype: str, cycle: str) -> None:
        """Make the operators in `dtype`, and the levels in `cycle`."""
        self._system = self._operator(start, dtype)
        self._rates = (*self._system[:4], self._held(exchange, dtype))
        self._levels = tuple(self._packed(*pair, cycle) for pair in self._coarsened(start))

    def _whole(self, grid: Grid) -> tuple[int, ...]:
        """Return the nodes of the field along each axis."""
        return grid.nodes

    def _largest(self, values: Sequence[float]) -> list[float]:
        """Return numbers that are the largest of the field, from those of the nodes here."""
        return list(values)

    def apply(self, field: Array, out: Array) -> None:
        """Set `out` to W t K of a field at the unknown nodes."""
        status = self._backend.diffusion_apply(
            self._ends, self._rates, field, out, self._threads, *self._store.arguments
        )
        raise_for_status(status, self._backend.STATUS, "HeatADI")

    def solve(
        self,
        rhs: Array,
        x: Array,
        scale: Array | None,
        basis: Sequence[Array],
        limits: tuple[float, float, int],
    ) -> dict[str, Any]:
        """Solve A x = rhs from `x` on, which has the given values; return the report.

        First, x moves to the point of x + span of the basis whose error is smallest in the norm of
        A. `basis` has at most `BASIS` fields, which are 0 at nodes with given values.

        With (rtol, ratio, most) = `limits`, the iteration ends when the error has at most `rtol`
        times the norm of x, or `ratio` times that of `scale` (1 without one), or after `most`
        iterations. The error is that of a correction P (rhs - A x), or more if P A has small
        eigenvalues: if a solve finds smaller ones than those before, it goes on.
        """
        (rtol, ratio, most), count = limits, 0
        while True:
            trust = self._trust
            now = (rtol * trust, ratio * trust, most - count)
            report = self._iterated(rhs, x, scale, basis, now)
            self._least = min(self._least, report["least"])
            count, basis = count + report["iterations"], ()
            if not report["converged"] or self._trust > 0.5 * trust or count >= most:
                return report | {"iterations": count, "limit": report["limit"] / trust}

    @property
    def _trust(self) -> float:
        """The correction at the end over the limit of the error, at most 1."""
        return min(1.0, self._least / _LEAST)

    def _iterated(
        self,
        rhs: Array,
        x: Array,
        scale: Array | None,
        basis: Sequence[Array],
        limits: tuple[float, float, int],
    ) -> dict[str, Any]:
        """Solve A x = rhs as `solve`, with limits of the correction."""
        status, report = self._backend.diffusion_solve(
            limits,
            self._ends,
            self._system,
            self._levels,
            rhs,
            x,
            scale,
            tuple(basis),
            self._threads,
            *self._store.arguments,
        )
        raise_for_status(status, self._backend.STATUS, "HeatADI")
        found: dict[str, Any] = report
        return found

    def centre(self, x: Array, mean: float) -> None:
        """Add a constant to a field on a device, such that its mean with volumes is `mean`."""
        status = self._backend.diffusion_centre(
            self._ends, self._system, x, mean, *self._store.arguments
        )
        raise_for_status(status, self._backend.STATUS, "HeatADI")

    def _held(self, values: Array, dtype: str) -> Array:
        """Return values of the host in C order, where the backend reads them."""
        return self._store.hold(np.ascontiguousarray(values, dtype))

    def agreement(self) -> AbstractContextManager[Any]:
        """Return the context in which data of the caller are evaluated."""
        return nullcontext()

    def total(self, values: Array) -> float:
        """Return the sum over the nodes: of the rows along x, and of these in order."""
        return in_order(values.sum(axis=-1, dtype=np.float64).ravel())

    def total_of(self, side: Side, values: Array) -> float:
        """Return the sum of values over a side."""
        return float(values.sum(dtype=np.float64))

    def _volumes(self, grid: Grid, axes: Sequence[int]) -> Array:
        """Return the product over some axes of 1, or of 1/2 at the sides that are fluxes."""
        product = np.ones((1,) * grid.axes)
        for axis in axes:
            line = self._line(grid, axis)
            shape = [1] * grid.axes
            shape[grid.axes - 1 - axis] = -1
            product = product * line.reshape(shape)
        return product

    def _line(self, grid: Grid, axis: int) -> Array:
        """Return the factors of the volumes along an axis."""
        if axis in grid.gaps:
            return grid.widths(axis, self._periodic[axis]) / grid.spacing[axis]
        line = np.ones(grid.nodes[axis])
        for end, index in ((1, 0), (2, -1)):
            if self._ends[axis][end]:
                line[index] *= 0.5
        return line

    def _faces(self, grid: Grid, axis: int) -> Array:
        """Return dt k/h^2 times the area, between each node and the next one along an axis."""
        along = grid.axes - 1 - axis
        ratio = grid.pair_ratio(axis)
        if np.ndim(ratio):
            ratio = np.resize(ratio, (grid.nodes[axis], *(1,) * axis))  # the last one is not used
        if grid.k is None:
            faces = np.full(grid.nodes[::-1], ratio)
        else:
            after = np.roll(grid.k, -1, along)
            faces = ratio * 2 * grid.k * (after / (grid.k + after))
        if not self._periodic[axis]:
            np.moveaxis(faces, along, 0)[-1] = 0
        return faces * self._volumes(grid, [a for a in range(grid.axes) if a != axis])

    def _coarsened(
        self, level: Level, most: int = MOST_LEVELS
    ) -> list[tuple[Level, list[Array | None]]]:
        """Return at most so many levels, each with the weights of interpolated nodes by axis."""
        found: list[tuple[Level, list[Array | None]]] = []
        while True:
            axes = level.sums.ndim
            weights: list[Array | None] = [None] * axes
            found.append((level, weights))
            sums = level.sums[level.sums < _PINNED]
            largest = [float(values.max(initial=0.0)) for values in (sums, *level.faces)]
            coarse = coarse_axes(level.sums.shape[::-1], largest)
            if not coarse or len(found) >= most:
                return found
            for axis in reversed(coarse):
                level, weights[axis] = self._coarser(level, axis)

    def _coarser(self, level: Level, axis: int) -> tuple[Level, Array]:
        """Return a level with every other node along an axis, and the weights between them."""
        axes, wraps = level.sums.ndim, self._periodic[axis]
        along = axes - 1 - axis
        n = level.sums.shape[along]
        kept = np.arange(0, n, 2)
        if not wraps and n % 2 == 0:
            kept = np.append(kept, n - 1)
        between = n - kept.size
        odd = slice(1, 2 * between, 2)
        own = np.moveaxis(level.faces[axis], along, 0)
        below, above = own[0 : 2 * between : 2], own[odd]
        weight = below / (below + above)
        series = own[kept]
        if not wraps:
            series[-1] = 0
            if n % 2 == 0:
                series[-2] = own[n - 2]

        def added(values: Array, share: Array | float) -> Array:
            """Return the values of the kept nodes, with those between them divided by `share`."""
            moved = np.moveaxis(values, along, 0)
            out = moved[kept]
            out[:between] += share * moved[odd]
            rest = (1 - share) * moved[odd]
            next_one = out[1 : between + 1]
            next_one += rest[: len(next_one)]
            if len(next_one) < between:  # the next node of the last one is the first
                out[0] += rest[-1]
            return np.ascontiguousarray(np.moveaxis(out, 0, along))

        faces, change = list(level.faces), np.zeros_like(weight)
        for a, face in enumerate(level.faces):
            if a != axis:
                # Of an array whose first axis is the one that is made coarser.
                across = axes - 1 - a + (axes - 1 - a < along)
                mean, part = across_lines(weight, np.moveaxis(face, along, 0)[odd], across)
                faces[a] = added(face, mean)
                change += part
        series[:between] = with_change(below * (above / (below + above)), change)
        faces[axis] = np.ascontiguousarray(np.moveaxis(series, 0, along))
        end = list(level.end)
        end[axis] = kept.size - (n - level.end[axis])
        coarse = Level(faces, added(level.sums, 0.5), level.first, tuple(end))
        return coarse, np.ascontiguousarray(np.moveaxis(weight, 0, along))

    def _operator(self, level: Level, dtype: str) -> tuple[Any, ...]:
        """Return the nodes, the conductances and the row sums as the backend takes them."""
        faces = tuple(self._held(face, dtype) for face in level.faces)
        sums = self._held(level.sums, dtype)
        return level.sums.shape[::-1], level.first, level.end, faces, sums

    def _packed(self, level: Level, weights: list[Array | None], dtype: str) -> tuple[Any, ...]:
        """Return a level as the backend takes it."""
        factors = tuple(self._factor(level, axis, dtype) for axis in range(level.sums.ndim))
        packed = tuple(None if w is None else self._held(w, dtype) for w in weights)
        return (*self._operator(level, dtype), factors, packed)

    def _factor(self, level: Level, axis: int, dtype: str) -> Any:
        """Return the factors of the lines along an axis, divided by omega."""
        axes = level.sums.ndim
        inner = tuple(slice(a, b) for a, b in zip(level.first, level.end, strict=True))[::-1]
        sums = level.sums.copy()
        for a, face in enumerate(level.faces):
            if a != axis:
                sums += face
                sums += np.roll(face, 1, axes - 1 - a)
        along = axes - 1 - axis
        before = np.roll(level.faces[axis], 1, along)
        line, ends = np.moveaxis(sums, along, 0), np.moveaxis(level.faces[axis], along, 0)
        if level.first[axis]:
            line[1] += ends[0]
        if level.end[axis] < len(line):
            line[-2] += ends[-2]
        # Batch axes in the order of memory, and the lines last.
        order = [a for a in range(axes) if a != along] + [along]
        operands = []
        for values in (-before, sums, -level.faces[axis]):
            lines = self._store.hold((values[inner] / _OMEGA).astype(dtype)).transpose(order)
            operands.append(lines if axes == 3 else lines[None])
        backend = self._backend
        flags = backend.ROW_SUMS | (backend.PERIODIC if self._periodic[axis] else 0)
        flags |= backend.COLUMNS if axis else 0
        status, report, factor = backend.factor_make(
            *(backend.PIVOTS["never"], flags, *operands, None, self._threads),
            *self._store.arguments,
        )
        raise_for_status(status, backend.STATUS, "HeatADI")
        self._factored_by = report
        return factor


def in_order(values: Array) -> float:
    """Return a sum whose order does not depend on how the values are divided over ranks."""
    return float(np.add.accumulate(values)[-1]) if values.size else 0.0


def across_lines(weight: Array, face: Array, axis: int) -> tuple[Array, Array]:
    """Return shares of faces between lines that are made coarser, and changes along the lines.

    Parameters
    ----------
    weight : array
        Of the nodes that are interpolated along the lines.
    face : array
        Conductances between them and those of the next line along an axis.
    axis : int
        This axis of both arrays.

    Returns
    -------
    mean : array
        What the next level has of each face at the node before, in the order of the lines.
    change : array
        What is added to its conductances along the lines, which are sums in series otherwise.
    """
    other = np.roll(weight, -1, axis)
    step = 0.5 * face * (other - weight)
    change = step * (1 - 2 * weight) + np.roll(-step * (1 - 2 * other), 1, axis)
    return 0.5 * (weight + other), change


def with_change(series: Array, change: Array) -> Array:
    """Return conductances in series with a change, but at least a tenth of them."""
    return np.maximum(series + change, 0.1 * series)


def coarse_axes(nodes: Sequence[int], largest: Sequence[float]) -> list[int]:
    """Return the axes that the next level is coarser along.

    `largest` is the largest row sum, and the largest conductance along each axis.
    """
    return [
        axis
        for axis, n in enumerate(nodes)
        if n >= _LEAST_NODES and largest[1 + axis] > _WEAK * largest[0]
    ]


def _given(sides: Sequence[Side], axis: int, index: int) -> int:
    """Return whether the values of a side are given, as the number of its nodes on a line.

    So are those at the end of a halo, whose kind is "cut": they do not change.
    """
    found = (side for side in sides if side.axis == axis and side.index == index)
    return int(next(found).kind in ("value", "cut"))
