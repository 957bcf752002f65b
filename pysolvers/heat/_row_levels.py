"""The unsplit operator of an implicit step for ranks that hold rows of a field.

The levels of _levels.py, and the conjugate gradients and the V-cycle of ps_diffusion.h, with the
same operations on each node in the same order: the bits are those of one process, for any number of
ranks.

The finest levels are divided over the ranks by rows. The operator and the transfers between levels
read a halo of one row; lines in a row, or across rows of a rank, are solved where they lie; for
lines through the rows of all ranks, the ranks exchange parts of lines for whole ones. The rows of a
rank that a coarser level keeps are its rows there. Levels of few nodes are gathered, and every rank
computes all of them.

Operations per node and iteration: those of ps_diffusion.h. Between ranks, per divided level and
iteration: 4 words per node for whole lines, and 6 halos with two axes, 8 with three.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from copy import copy
from math import frexp, inf, ldexp, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import raise_for_status
from ._levels import MOST_LEVELS, Level, Levels, across_lines, coarse_axes, with_change
from ._rows import Rows
from ._sides import Grid, Side

Array = NDArray[Any]

# Nodes of a level up to which every rank computes all of them: a divided level takes some ten
# messages in an iteration, 0.6 ms, and saves 20 ns per node with four ranks.
_GATHERED = 1 << 15
# The same for the whole field, if the ranks are few. A divided level takes three to four times the
# processor time per node of the kernels of one process, so that few ranks save memory, but no time;
# so many nodes take 1 GB in each rank.
_FEW, _GATHERED_BY_FEW = 8, 1 << 22
_LEAST_ROWS = 2  # of a rank in a divided level
_PARTS = 8  # of a sum along a row of nodes
_BLOCK = 1 << 14  # products that are made at once, so that they stay in a cache


def is_divided(nodes: Sequence[int], rows: Sequence[int], *, is_first: bool = False) -> bool:
    """Whether a level is divided over the ranks.

    Parameters
    ----------
    nodes : sequence of int
        Its nodes along each axis.
    rows : sequence of int
        The number of rows of each rank.
    is_first : bool, default: False
        Whether the alternative is to solve the whole problem on every rank.
    """
    most = _GATHERED_BY_FEW if is_first and len(rows) < _FEW else _GATHERED
    return len(rows) > 1 and min(rows) >= _LEAST_ROWS and prod(nodes) > most


class RowLevels(Levels):
    """The operator A of a step, and its factors; all calls are collective.

    Parameters
    ----------
    rows : Rows
        The rows of the ranks.
    nodes : sequence of int
        Nodes of the whole field along each axis.
    grid : Grid
        The nodes of this rank, and the conductivity there.
    sides, share, backend, dtype, threads, is_steady
        As in `Levels`.
    """

    def __init__(
        self,
        rows: Rows,
        nodes: Sequence[int],
        grid: Grid,
        sides: Sequence[Side],
        share: float,
        backend: Any,
        dtype: str,
        threads: int,
        *,
        is_steady: bool = False,
    ) -> None:
        self._rows, self._nodes, self._last = rows, tuple(nodes), grid.axes - 1
        around = copy(grid)
        around.nodes = (*grid.nodes[:-1], rows.numbers.size)
        around.numbers = {self._last: rows.numbers}
        around.k = None if grid.k is None else rows.extended(grid.k)
        self._with_halo: Grid | None = around
        super().__init__(grid, sides, share, backend, dtype, threads, is_steady=is_steady)
        self._with_halo = None

    def _set_levels(self, start: Level, exchange: Array, dtype: str, cycle: str) -> None:
        start = start._replace(faces=[np.ascontiguousarray(face) for face in start.faces])
        self._of_fields = _Divided(self, self._rows, start, dtype)
        self._of_rates = self._of_fields.with_sums(exchange)
        self._of_cycle = self._made(start, cycle)
        self.inner = self._of_fields.inner

    def agreement(self) -> AbstractContextManager[Any]:
        return self._rows.group.agreement(self._rows.operation)

    def total(self, values: Array) -> float:
        values = np.broadcast_to(values, self.volumes.shape)
        return self._rows.total(values.sum(axis=-1, dtype=np.float64)[None])[0]

    def _whole(self, grid: Grid) -> tuple[int, ...]:
        return self._nodes

    def _largest(self, values: Sequence[float]) -> list[float]:
        return self._rows.largest(values)

    def _faces(self, grid: Grid, axis: int) -> Array:
        assert self._with_halo is not None
        return self._rows.own(super()._faces(self._with_halo, axis))

    def _line(self, grid: Grid, axis: int) -> Array:
        whole = copy(grid)
        whole.nodes = self._nodes
        line = super()._line(whole, axis)
        return line[grid.numbers[axis]] if axis in grid.numbers else line

    def apply(self, field: Array, out: Array) -> None:
        out[self.inner] = self._of_rates.applied(self._rows.padded(field))[self.inner]

    def _made(self, level: Level, dtype: str) -> list[_Whole]:
        """Return the levels of the V-cycle, from that with the rows of this object on."""
        rows, found = self._rows, list[_Whole]()
        while True:
            nodes = (*level.sums.shape[:0:-1], rows.count)
            if not is_divided(nodes, rows.sizes):
                break
            divided = _Divided(self, rows, level, dtype)
            divided.factor(level)
            found.append(divided)
            largest = rows.largest([float(v.max()) for v in (level.sums, *level.faces)])
            coarse = coarse_axes(nodes, largest)
            if not coarse or len(found) == MOST_LEVELS:
                return found
            for axis in reversed(coarse):
                if axis == self._last:
                    rows, level = divided.coarsen(level)
                else:
                    level, divided.weights[axis] = self._coarser_rows(rows, level, axis)
            divided.end_at(rows)
        whole = Level(
            [rows.joined(face) for face in level.faces], rows.joined(level.sums), *level[2:]
        )
        rest = self._coarsened(whole, MOST_LEVELS - len(found))
        return [*found, *(_Whole(self, rows, *pair, dtype) for pair in rest)]

    def _coarser_rows(self, rows: Rows, level: Level, axis: int) -> tuple[Level, Array]:
        """Return what `_coarser` returns for the rows of this rank; reads adjacent rows, too."""
        faces = [rows.extended(face) for face in level.faces]
        if rows.halo[1]:
            faces[-1][-1] = 0  # to a row that is not here
        around, weight = self._coarser(
            level._replace(faces=faces, sums=rows.padded(level.sums)), axis
        )
        faces = [np.ascontiguousarray(rows.own(face)) for face in around.faces]
        sums = np.ascontiguousarray(rows.own(around.sums))
        coarse = Level(faces, sums, around.first, around.end)
        return coarse, np.ascontiguousarray(rows.own(weight))

    def _iterated(
        self,
        rhs: Array,
        x: Array,
        scale: Array | None,
        basis: Sequence[Array],
        limits: tuple[float, float, int],
    ) -> dict[str, Any]:
        with np.errstate(all="ignore"):  # what is not finite ends the iteration
            if basis:
                self._span(rhs, x, basis)
            found = self._solved(rhs, x, scale, limits)
        return found | {
            "threads": self._factored_by["threads"],
            "kernel": self._factored_by["kernel"],
        }

    def _span(self, rhs: Array, x: Array, basis: Sequence[Array]) -> None:
        """Move x to the point of x + span of the basis with the least error in the norm of A."""
        inner, system, rows = self.inner, self._of_fields, self._rows
        r = rhs[inner] - system.applied(rows.padded(x))[inner]
        products = []
        for i, field in enumerate(basis):
            q = system.applied(rows.padded(field))[inner]
            others = (_dots(before[inner], q) for before in basis[: i + 1])
            products.append(tuple(self._total(*others, _dots(field[inner], r))))
        factors = self._backend.diffusion_combine(tuple(products), x.dtype == np.float32)
        for factor, field in zip(factors, basis, strict=True):
            if factor:
                x[inner] += x.dtype.type(factor) * field[inner]

    def _solved(
        self, rhs: Array, x: Array, scale: Array | None, limits: tuple[float, float, int]
    ) -> dict[str, Any]:
        """Solve A x = rhs by conjugate gradients; return the numbers of the report."""
        (rtol, ratio, most), inner, system = limits, self.inner, self._of_fields
        backend = self._backend
        around = self._rows.padded(np.zeros_like(x))
        p, a = self._rows.own(around)[inner], x.dtype.type
        r, scratch = np.zeros_like(p), np.empty_like(p)
        applied = system.applied(self._rows.padded(x))
        np.subtract(rhs[inner], applied[inner], out=r)
        given = () if scale is None else (self._squares(scale[inner]),)
        xx, rr, *ss = self._total(self._squares(x[inner]), _dots(r, r), *given)
        atol, beta, iterations = ratio * np.sqrt(ss[0]) if ss else ratio, 0.0, 0
        limit = np.fmax(rtol * np.sqrt(xx), atol)
        size = self._scale(rr)
        z, rz, zz = self._corrected(r, size)
        error = np.sqrt(zz)
        share = error / np.sqrt(rr)  # an estimate of the next |z|/|r|
        converged = bool(error <= limit)
        state, least = (0.0,) * 4, inf
        while not converged and iterations < most and rz > 0:
            p *= a(beta)
            p += z
            q = system.applied(around)[inner]
            (pq,) = self._total(_dots(p, q))
            alpha = np.float64(rz) / pq
            if not alpha > 0 or not np.isfinite(alpha):
                break
            state, least = backend.diffusion_least(state, float(alpha), float(beta))
            x[inner] += np.multiply(p, a(alpha), out=scratch)
            r -= np.multiply(q, a(alpha), out=scratch)
            xx, rr = self._total(self._squares(x[inner]), _dots(r, r))
            iterations, before = iterations + 1, rz
            limit, norm = np.fmax(rtol * np.sqrt(xx), atol), np.sqrt(rr)
            error = backend.DIFFUSION_MARGIN * share * norm
            if error <= limit:
                converged = True
                break
            z, rz, zz = self._corrected(r, size)
            size = self._scale(rr)  # for the residual of the next iteration
            error = np.sqrt(zz)
            converged = bool(error <= limit)
            share = np.fmax(share * backend.DIFFUSION_KEPT, error / norm)
            beta = rz / before
        return {
            "iterations": iterations,
            "converged": converged,
            "error": float(error),
            "norm": float(np.sqrt(xx)),
            "limit": float(limit),
            "least": least,
        }

    def _scale(self, squares: float) -> float:
        """Return the power of two that brings a residual of this sum of squares near 1."""
        most, exponent = (126 if self._of_fields.dtype == "float32" else 1022), 0
        if squares > 0 and np.isfinite(squares):
            exponent = frexp(np.sqrt(squares))[1]
        return ldexp(1.0, -max(-most, min(most, exponent)))

    def _corrected(self, r: Array, scale: float) -> tuple[Array, float, float]:
        """Return z = P r, and the sums of r z and of z^2 with volumes.

        The residual enters the V-cycle times `scale`.
        """
        top, a = self._of_cycle[0], r.dtype.type
        top.own(top.r)[self.inner] = a(scale) * r
        self._precondition()
        z = top.own(top.x)[self.inner].astype(r.dtype)
        z *= a(1 / scale)
        rz, zz = self._total(_dots(r, z), self._squares(z))
        return z, rz, zz

    def _precondition(self) -> None:
        """Make a V-cycle from r of the first level on."""
        levels = self._of_cycle
        axes = range(self._last + 1)
        for number, level in enumerate(levels):
            level.lines(0, level.r, level.x)
            for axis in axes[1:]:
                level.relax(axis)
            if number + 1 < len(levels):
                level.restrict(levels[number + 1])
        for number in reversed(range(len(levels))):
            level = levels[number]
            if number + 1 < len(levels):
                level.interpolate(levels[number + 1])
            for axis in reversed(axes):
                level.relax(axis)

    def _squares(self, v: Array) -> Array:
        """Return the sums of v^2 with volumes along axis 0, of the unknown nodes of this rank."""
        sums = _dots(v, v)
        for end, index in ((1, 0), (2, -1)):
            if self._ends[0][end]:
                one = v[..., index].astype(np.float64)
                sums -= 0.5 * one * one
        for axis in range(1, self._last + 1):
            nodes, start = self._nodes[axis], self._rows.start if axis == self._last else 0
            place, along = self.inner[self._last - axis], self._last - axis
            numbers = start + np.arange(place.start, place.stop)
            for end, node in ((1, 0), (2, nodes - 1)):
                if self._ends[axis][end]:
                    sums[(slice(None),) * along + (numbers == node,)] *= 0.5
        return sums

    def _total(self, *sums: Array) -> list[float]:
        """Return sums over the unknown nodes of all ranks, from those along axis 0."""
        return self._rows.total(np.stack(sums), *self._of_fields.unknown)


class _Kept:
    """The rows of a rank that the next level keeps, and those that are interpolated.

    Kept rows have even numbers; where the axis is not periodic, the last row is kept as well.

    Parameters
    ----------
    rows : Rows
        Those of the finer level.
    """

    def __init__(self, rows: Rows) -> None:
        n, before = rows.count, rows.halo[0]
        size, odd = rows.stop - rows.start, rows.start % 2
        is_ring = rows.wraps and n % 2 == 0
        #: Whether the last own row is kept although its number is odd.
        self.is_last = not rows.wraps and n % 2 == 0 and rows.stop == n
        self.even = slice(odd, size, 2)
        count = len(range(size)[self.even])
        last = rows.start + odd + 2 * (count - 1)  # the largest even number
        end = n - 1 if not rows.wraps and n % 2 == 0 else n
        lo = int(rows.start == 0 and not is_ring)
        hi = count - int(last + 1 >= end and not is_ring)
        #: Of the even rows, those with an interpolated row before, and after.
        self.has_below, self.has_above = slice(lo, count), slice(0, hi)
        first = before + odd
        #: In an extended array, these interpolated rows.
        self.below = slice(first + 2 * lo - 1, first + 2 * count - 2, 2) if count > lo else _NONE
        self.above = slice(first + 1, first + 2 * hi, 2) if hi > 0 else _NONE
        #: The interpolated own rows.
        self.odd = slice(1 - odd, size - int(self.is_last), 2)
        number = len(range(size)[self.odd])
        # Rows of the next level before and after them, in an extended array.
        coarse = (rows.start + 1 - odd) // 2 - (rows.start + 1) // 2 + before
        self.left = slice(coarse, coarse + number)
        self.right = slice(coarse + 1, coarse + 1 + number)
        self.count = count

    def taken(self, own: Array) -> Array:
        """Return the kept rows."""
        kept = own[self.even]
        return np.concatenate([kept, own[-1:]]) if self.is_last else kept.copy()


_NONE = slice(0, 0)


class _Whole:
    """A level that every rank has as a whole.

    Parameters
    ----------
    levels : RowLevels
        What the level belongs to.
    rows : Rows
        Those of each rank, if the level were divided.
    level : Level
        All nodes.
    weights : sequence of (array or None)
        As `Levels` makes them.
    dtype : str
        Of the fields.
    """

    def __init__(
        self,
        levels: RowLevels,
        rows: Rows,
        level: Level,
        weights: Sequence[Array | None],
        dtype: str,
    ) -> None:
        self.levels, self.rows, self.dtype = levels, rows, dtype
        packed = levels._packed(level, list(weights), dtype)
        self.operator, self.factors, self.weights = packed[:5], list(packed[5]), list(packed[6])
        self.ends = levels._ends
        self.inner = tuple(slice(a, b) for a, b in zip(level.first, level.end, strict=True))[::-1]
        self.out = np.zeros(level.sums.shape, dtype)
        self.x, self.r, self.t = (np.zeros_like(self.out) for _ in range(3))

    def own(self, field: Array) -> Array:
        """Return the nodes of this rank in a field: a view."""
        return field

    def around(self, rows: Rows) -> Array:
        """Return x in rows of this rank and their halo."""
        return self.x[rows.numbers]

    def receive(self, own: Array) -> None:
        """Set r from that of the rows of each rank."""
        self.r[...] = own if len(own) == len(self.r) else self.rows.joined(own)

    def applied(self, field: Array) -> Array:
        """Return A x at the unknown nodes, in an array that the next call uses again."""
        levels = self.levels
        status = levels._backend.diffusion_apply(
            self.ends, self.operator, field, self.out, levels._threads
        )
        raise_for_status(status, levels._backend.STATUS, "HeatADI")
        return self.own(self.out)

    def _remainder(self) -> None:
        """Set t to r - A x at the nodes inside."""
        applied, at = self.applied(self.x), self.inner
        np.subtract(self.own(self.r)[at], applied[at], out=self.own(self.t)[at])

    def lines(self, axis: int, source: Array, to: Array) -> None:
        """Solve the lines along an axis."""
        rhs, x = (self.own(field)[self.inner] for field in (source, to))
        along = rhs.ndim - 1 - axis
        order = [a for a in range(rhs.ndim) if a != along] + [along]
        pair = [a.transpose(order) if a.ndim == 3 else a.transpose(order)[None] for a in (rhs, x)]
        self._solve(self.factors[axis], *pair)

    def _solve(self, factor: Any, rhs: Array, x: Array) -> None:
        """Solve systems with stored factors, one right side for each."""
        backend = self.levels._backend
        status = factor.solve(backend.TRANS["N"], rhs, x, 1, 1, self.levels._threads)
        raise_for_status(status, backend.STATUS, "HeatADI")

    def relax(self, axis: int) -> None:
        """Correct x on the lines along an axis."""
        self._remainder()
        self.lines(axis, self.t, self.t)
        self.x += self.t

    def restrict(self, coarse: _Whole) -> None:
        """Set r of the next level."""
        self._remainder()
        coarse.receive(self._restricted(self.own(self.t), self.weights))

    def _restricted(self, field: Array, weights: Sequence[Array | None]) -> Array:
        """Restrict along each axis with weights, the first axis of the array first."""
        for axis, weight in reversed(list(enumerate(weights))):
            if weight is not None:
                field = _restricted(field, weight, field.ndim - 1 - axis)
        return field

    def interpolate(self, coarse: _Whole) -> None:
        """Add the interpolated x of the next level."""
        self.x += self._interpolated(coarse.x, self.weights)

    def _interpolated(self, field: Array, weights: Sequence[Array | None]) -> Array:
        """Interpolate along each axis with weights, x first."""
        for axis, weight in enumerate(weights):
            if weight is not None:
                field = _interpolated(field, weight, field.ndim - 1 - axis)
        return field


class _Divided(_Whole):
    """A level of which each rank has rows.

    Parameters
    ----------
    levels : RowLevels
        What the level belongs to.
    rows : Rows
        Those of each rank.
    level : Level
        The nodes of this rank; along the axis through the rows, the unknown ones are those of the
        whole field.
    dtype : str
        Of the fields.
    """

    def __init__(self, levels: RowLevels, rows: Rows, level: Level, dtype: str) -> None:
        self.levels, self.rows, self.dtype = levels, rows, dtype
        #: The first unknown row of the field, and the one after the last.
        self.unknown = level.first[-1], level.end[-1]
        start, stop = max(level.first[-1], rows.start), min(level.end[-1], rows.stop)
        first = (*level.first[:-1], start - rows.start)
        end = (*level.end[:-1], stop - rows.start)
        self.inner = tuple(slice(a, b) for a, b in zip(first, end, strict=True))[::-1]
        self.operator = levels._operator(self._extended(level), dtype)
        self.ends = (*levels._ends[:-1], (0, 0, 0))
        self.weights = [None] * len(first)
        self._kept: _Kept | None = None
        self.out = np.zeros(self.operator[0][::-1], dtype)

    def _extended(self, level: Level) -> Level:
        """Return a level with the halo of this rank."""
        rows, before = self.rows, self.rows.halo[0]
        across = rows.extended(level.faces[-1])
        if rows.halo[1]:
            across[-1] = 0  # not used; 0 as after the last row of the field
        faces = [*(rows.padded(face) for face in level.faces[:-1]), across]
        inner = self.inner[::-1]
        first = (*(at.start for at in inner[:-1]), inner[-1].start + before)
        end = (*(at.stop for at in inner[:-1]), inner[-1].stop + before)
        return Level(faces, rows.padded(level.sums), first, end)

    def with_sums(self, sums: Array) -> _Divided:
        """Return the same operator with other row sums."""
        other = copy(self)
        padded = self.rows.padded(sums).astype(self.dtype)
        other.operator = (*self.operator[:4], padded)
        return other

    def own(self, field: Array) -> Array:
        return self.rows.own(field)

    def around(self, rows: Rows) -> Array:
        self.rows.refresh(self.x)
        return self.x

    def receive(self, own: Array) -> None:
        self.own(self.r)[...] = own

    def applied(self, field: Array) -> Array:
        self.rows.refresh(field)
        return super().applied(field)

    def factor(self, level: Level) -> None:
        """Make the fields, and the factors of the lines along all axes."""
        self.x, self.r, self.t = (np.zeros_like(self.out) for _ in range(3))
        levels, around = self.levels, self._extended(level)
        last = len(level.faces) - 1
        self.factors = [levels._factor(around, axis, self.dtype) for axis in range(last)]
        sums = level.sums.copy()
        for axis, face in enumerate(level.faces[:-1]):
            sums += face
            sums += np.roll(face, 1, last - axis)
        across = level.faces[-1].copy()
        given = np.ones(sums.shape[1:], bool)
        given[self.inner[1:]] = False
        sums[:, given], across[:, given] = 1, 0  # lines that are not used
        sums, across = (self.rows.to_lines(values) for values in (sums, across))
        if not sums.size:  # no line is left for this rank
            self.factors.append(None)
            return
        sums, across = (self._columns(values) for values in (sums, across))
        zeros = [np.zeros_like(sums)] * last
        first, end = (*[0] * last, level.first[-1]), (*sums.shape[:0:-1], level.end[-1])
        self.factors.append(
            levels._factor(Level([*zeros, across], sums, first, end), last, self.dtype)
        )

    def _columns(self, lines: Array) -> Array:
        """Return whole lines as a field whose lines go through the rows."""
        return lines if len(self.weights) == 2 else lines[..., None]

    def lines(self, axis: int, source: Array, to: Array) -> None:
        if axis + 1 < len(self.weights):
            super().lines(axis, source, to)
            return
        lines = self.rows.to_lines(self.own(source))
        unknown = lines[slice(*self.unknown)].T
        if lines.size:
            unknown = unknown[None] if len(self.weights) == 2 else unknown[:, None]
            self._solve(self.factors[axis], unknown, unknown)
        self.rows.from_lines(lines, self.own(to), self.inner)

    def coarsen(self, level: Level) -> tuple[Rows, Level]:
        """Return the next level with the kept rows of this one, of its `level`."""
        rows, kept = self.rows, _Kept(self.rows)
        self._kept, last = kept, len(level.faces) - 1
        own = level.faces[last]
        around = rows.extended(own)
        series = kept.taken(own)
        below, above = own[kept.even][kept.has_above], around[kept.above]
        # The weight of an interpolated row is computed by its rank.
        weight = np.zeros_like(own)
        odd, before = kept.odd, rows.halo[0]
        under = around[odd.start + before - 1 : odd.stop + before - 1 : 2]
        weight[odd] = under / (under + own[odd])
        around = rows.extended(weight)
        self._of_kept = [around[part].astype(self.dtype) for part in (kept.below, kept.above)]
        self._of_odd = weight[odd].astype(self.dtype)

        def added(values: Array, share: Array | float) -> Array:
            """Return the values of the kept rows, with those between them divided by `share`."""
            both = [np.zeros_like(values) for _ in range(2)]
            both[0][odd], both[1][odd] = share * values[odd], (1 - share) * values[odd]
            out = kept.taken(values)
            out[kept.has_above] += rows.extended(both[0])[kept.above]
            out[kept.has_below] += rows.extended(both[1])[kept.below]
            return out

        faces, change = list(level.faces), np.zeros_like(own)
        for axis, face in enumerate(level.faces[:-1]):
            mean, part = across_lines(weight[odd], face[odd], last - axis)
            faces[axis] = added(face, mean)
            change[odd] += part
        change = rows.extended(change)[kept.above]
        series[kept.has_above] = with_change(below * (above / (below + above)), change)
        if not rows.wraps and rows.stop == rows.count:
            series[-1] = 0
        faces[last] = series
        coarse = rows.coarser()
        end = (*level.end[:-1], coarse.count - (rows.count - level.end[-1]))
        return coarse, Level(faces, added(level.sums, 0.5), level.first, end)

    def end_at(self, rows: Rows) -> None:
        """Complete the level, of which the next one has these rows."""
        self._next = rows
        self._of_own = [None if w is None else w.astype(self.dtype) for w in self.weights]
        # Also at the halo, whose nodes are interpolated along the other axes as well.
        self.weights = [
            None if w is None else rows.extended(np.ascontiguousarray(w)) for w in self._of_own
        ]

    def restrict(self, coarse: _Whole) -> None:
        self._remainder()
        own, kept = self.own(self.t), self._kept
        if kept is not None:
            self.rows.refresh(self.t)
            (below, above), field = self._of_kept, kept.taken(own)
            field[kept.has_below] += (1 - below) * self.t[kept.below]
            field[kept.has_above] += above * self.t[kept.above]
            own = field
        coarse.receive(self._restricted(own, self._of_own))

    def interpolate(self, coarse: _Whole) -> None:
        field = self._interpolated(coarse.around(self._next), self.weights)
        own, kept = self.own(self.x), self._kept
        found = self._next.own(field)
        if kept is None:
            own += found
            return
        own[kept.even] += found[: kept.count]
        if kept.is_last:
            own[-1] += found[-1]
        weight = self._of_odd
        own[kept.odd] += weight * field[kept.left] + (1 - weight) * field[kept.right]


def _restricted(fine: Array, weight: Array, axis: int) -> Array:
    """Return the restriction along an axis of an array that has whole lines along it."""
    n, between = fine.shape[axis], weight.shape[axis]
    shape = list(fine.shape)
    shape[axis] = coarse = n - between
    found = np.empty(shape, fine.dtype)
    out, fine, weight = (np.moveaxis(a, axis, 0) for a in (found, fine, weight))
    out[: (n + 1) // 2] = fine[::2]
    out[-1] = fine[min(2 * (coarse - 1), n - 1)]
    number = min(between, coarse - 1)
    out[1 : number + 1] += (1 - weight[:number]) * fine[1 : 2 * number : 2]
    if between == coarse:  # the axis is periodic: the last node lies before the first one
        out[0] += (1 - weight[-1]) * fine[-1]
    out[:between] += weight * fine[1 : 2 * between : 2]
    return found


def _interpolated(coarse: Array, weight: Array, axis: int) -> Array:
    """Return the interpolation along an axis of an array that has whole lines along it."""
    between = weight.shape[axis]
    shape = list(coarse.shape)
    shape[axis] = n = shape[axis] + between
    found = np.empty(shape, coarse.dtype)
    out, coarse, weight = (np.moveaxis(a, axis, 0) for a in (found, coarse, weight))
    out[::2] = coarse[: (n + 1) // 2]
    out[-1] = coarse[-1]
    after = np.roll(coarse, -1, 0)[:between]
    out[1 : 2 * between : 2] = weight * coarse[:between] + (1 - weight) * after
    return found


def _dots(a: Array, b: Array) -> Array:
    """Return the sums of a b along the last axis, in float64: in eight parts, as the kernels."""
    if a.ndim > 2:
        return np.stack([_dots(*pair) for pair in zip(a, b, strict=True)])
    rows, m = a.shape
    sums, whole, step = np.empty(rows), m // _PARTS * _PARTS, max(1, _BLOCK // m)
    product = np.empty((step, m))
    for k in range(0, rows, step):
        now = product[: min(step, rows - k)]
        np.multiply(a[k : k + step], b[k : k + step], out=now, dtype=np.float64)
        parts = now[:, :whole].reshape(len(now), -1, _PARTS).sum(axis=1)
        parts[:, : m - whole] += now[:, whole:]
        while parts.shape[1] > 1:
            parts = parts[:, ::2] + parts[:, 1::2]
        sums[k : k + step] = parts[:, 0]
    return sums
