r"""Elimination of the rows of one rank onto the ends of its part of a line.

Rank p holds the rows 0 .. m - 1 of its part. Its last unknown, y_p, is a separator. The interior
rows 0 .. m - 2 form a system T of their own, and give

    x_i = g_i - l_i y_{p-1} - u_i y_p,   T g = r,   T l = lower_0 e_0,   T u = upper_{m-2} e_{m-2}.

In the last row they leave, with i = m - 2 and z the first unknown of the next rank,

    a y_{p-1} + b y_p + c z = d,
    a = -lower l_i,   b = diag - lower u_i,   c = upper,   d = r - lower g_i.

With z = g_0 - l_0 y_p - u_0 y_{p+1} of the next rank, the separators of all ranks form a reduced
system, tridiagonal, with one row per rank, and periodic if the lines are. Each rank knows it after
one exchange of 7 numbers per line, and 2 of them, g_0 and d, if all lines have one matrix. The
reduced system is solved on every rank, and the formula above gives the other unknowns. It takes the
same g, l and u as the equations of the ends: another solve with T would leave its own rounding
errors, up to m of them, in the rows of the separators.

In dominant matrices l decays from the first row on, and u from the last one. l is computed from the
first k rows of T alone, and is zero in the others, if the only row that this does not satisfy, row
k, has the residual |lower_k l_{k-1}| <= eps^2 |lower_0| in all systems; for u likewise. That adds
eps^2 to the normwise backward error of x. k follows from the decay in a first attempt. Where l or u
decays too slowly, k = m - 1.

Operations and words per unknown of a line with its own matrix: 8 operations and 5 words, as on one
device, and 10 operations and 9 words per row of l and of u. On the CPU, those of l and u that count
in all rows are computed with g in one pass (csrc/cpu/lines/spikes.inc), for which the attempts come
before g: at most 17 operations and 11 words, or 9 with one of l and u. In systems of more than 32
KB per operand, with other methods than Thomas', and on a GPU, they are solves of their own: at most
28 operations and 21 words. With one matrix for all lines 5 operations and 2 words, and 2 words per
row of l and of u; at most 4 words. On a GPU, where products are added one after the other, at most
23 words and 6. If the solution of a solve replaces the right-hand sides, 2 words more: they are
kept until all ranks know that no row is exchanged.

No row exchanges across the ends: stable for diagonally dominant systems, where l and u are at most
1 in magnitude and the reduced system is dominant, too. The other systems are solved as whole lines
(_whole.py).

Matrices that are given by row sums s (`pysolvers.RowSums`) keep these: with T S = s
the reduced system has the row sums s_{m-1} - lower S_{m-2} - c S_0, with S_0 of the next rank. S_0
takes the place of l_0, and s_{m-1} - lower S_{m-2} that of b.

With a mask the interior is solved for its rows inside, and g outside is the right-hand side; l and
u are 0 there. The rows at the ends are taken as those of the identity, uncoupled, with right-hand
sides of 0, so that nothing from outside enters the reduced system.

Source: Wang, ACM Trans. Math. Softw. 7 (1981) 170-183; Polizzi and Sameh, Parallel Computing 32
(2006) 177-194.
"""

from collections.abc import Callable, Sequence
from math import log, prod
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._lines.masks import Beyond
from .._runtime.arrays import real_of
from .._runtime.device import is_device_array
from .._runtime.lines import Shape
from .._runtime.targets import Target

Array = NDArray[Any]
S = TypeVar("S")

# Solves interior rows, of right-hand sides, and writes the solution to the last array, which can
# be the one before; returns whether no row was exchanged and no pivot was bad.
Solve = Callable[[slice, Array, Array], bool]

_FIRST_ROWS = 64  # in which l and u are computed at first: to read fewer rows is hardly faster
_WORTH = 2  # they are computed in all rows if there are fewer than this times the rows needed
_MARGIN = 1.25  # of the rows that a decay by equal factors would need


class Spike(NamedTuple):
    """l or u in the interior rows in which it is not negligible."""

    rows: slice
    values: Array | None  # None: all rows, and not yet computed


Spikes = tuple[Spike | None, Spike | None]  # l and u; None if it is zero


class Coefficients(NamedTuple):
    """What the elimination of a matrix leaves, of one rank or of all along a new first axis."""

    l: Array  # noqa: E741 - the names of the formulas
    u: Array
    a: Array
    b: Array
    c: Array


class Matrices:
    """The rows of one rank of the matrices.

    Parameters
    ----------
    target : Target
        Where the operands are.
    views : sequence of ndarray
        lower, diag and upper, the rows last.
    shape : Shape
        Of the rows of this rank.
    ranks : (int, int)
        Number of this rank, and of all ranks.
    periodic : bool
        Whether the first row of all couples to the last one.
    has_sums : bool
        Whether `diag` has the row sums of the whole matrices.
    mask : (ndarray, (ndarray, ndarray)), optional
        Rows that are inside, the rows last, and those of the rows beyond the ends. The functions
        that solve keep the right-hand sides outside.
    """

    def __init__(
        self,
        target: Target,
        views: Sequence[Array],
        shape: Shape,
        ranks: tuple[int, int],
        *,
        periodic: bool,
        has_sums: bool = False,
        mask: tuple[Array, Beyond] | None = None,
    ) -> None:
        rows, (rank, size) = shape.rows, ranks
        has_left, has_right = periodic or rank > 0, periodic or rank < size - 1
        self._target, self._views, self._m = target, views, rows
        self._has_sums = has_sums
        self._mask = mask
        given = views if mask is None else (*views, mask[0])
        self.batch = np.broadcast_shapes(*(view.shape[:-1] for view in given))
        self._starts = (int(shape.short[0] and views[0].shape[-1] > 1), 0, 0)
        self._is_open = (not has_left, False, not has_right)
        self._sums_of_interior: Array | None = None
        ends = [i for i in (0, rows - 2, rows - 1) if i >= 0]
        self._end_masks = {i: self._mask_of(i) for i in ends}
        self._rows = {i: self._row(i) for i in ends}

    @property
    def is_dominant(self) -> bool:
        """Whether the rows are dominant that have entries outside of the interior."""
        return all(
            bool((np.abs(diag) >= np.abs(lower) + np.abs(upper)).all())
            for lower, diag, upper in self._rows.values()
        )

    @property
    def interior(self) -> slice:
        """The interior rows."""
        return slice(0, self._m - 1)

    def diagonals(self, rows: slice) -> tuple[list[Array], bool]:
        """Return the diagonals of consecutive interior rows, and whether `lower` lacks a row.

        Diagonals of one entry along the rows are views as given: the entry is that of all rows.
        """
        views = [
            view
            if view.shape[-1] == 1
            else view[..., max(rows.start - first, 0) : rows.stop - first]
            for view, first in zip(self._views, self._starts, strict=True)
        ]
        if self._has_sums and rows == self.interior and self._sums_of_interior is not None:
            views[1] = self._sums_of_interior
        elif self._has_sums:
            sums = self._sums(rows)
            sums[..., 0] -= self._row(rows.start)[0]
            sums[..., -1] -= self._row(rows.stop - 1)[2]
            views[1] = self._target.upload(sums)
            if rows == self.interior:
                self._sums_of_interior = views[1]
        return views, self._starts[0] == 1 and rows.start == 0 and rows.stop > 2

    def spikes(self, solve: Solve) -> Spikes:
        """Compute l and u in the rows in which they count, unless these are all rows."""
        if self._m == 1:
            return None, None
        return self._spike(solve, is_left=True), self._spike(solve, is_left=False)

    def eliminate(self, solve: Solve, spikes: Spikes | None = None) -> tuple[Coefficients, Spikes]:
        """Return the coefficients of the ends, and l and u in the rows in which they count.

        `spikes` is the answer of the method `spikes`, also with values for all rows.
        """
        m = self._m
        lower, diag, upper = self._rows[m - 1]
        if m == 1:
            zero = np.zeros(self.batch, diag.dtype)
            return self._full(zero, zero - 1, lower, diag, upper), (None, None)
        left, right = self.spikes(solve) if spikes is None else spikes
        spikes = (
            self._complete(solve, left, is_left=True),
            self._complete(solve, right, is_left=False),
        )
        (l_first, l_last), (u_first, u_last) = (self._ends(spike) for spike in spikes)
        after, other = l_first, u_last
        if self._has_sums:
            view = self._views[1]
            given = view if view.shape[-1] == 1 else view[..., self.interior]
            sums = self._target.empty((*self.batch, m - 1), view.dtype)
            solve(self.interior, np.broadcast_to(given, sums.shape), sums)
            after, other = (
                self._counted(self._target.download(sums[..., i]), i) for i in (0, m - 2)
            )
        return self._full(after, u_first, -lower * l_last, diag - lower * other, upper), spikes

    def reduce(
        self, rhs: Array, g: Array, solve: Solve, target: Target | None = None
    ) -> tuple[Array, Array]:
        """Return g_0 and d of right-hand sides, and write g of the interior; `g` can be `rhs`.

        `target` is that of the right-hand sides, if it is not that of the matrices: it can have
        another stream.
        """
        target, m = target or self._target, self._m
        last = self._counted(target.download(rhs[..., m - 1]), m - 1)
        if m == 1:
            last = np.broadcast_to(last, g.shape[:-1])
            return np.zeros_like(last), last
        solve(self.interior, rhs[..., : m - 1], g[..., : m - 1])
        g_first, g_last = (self._counted(target.download(g[..., i]), i) for i in (0, m - 2))
        return g_first, last - self._rows[m - 1][0] * g_last

    def substitute(
        self,
        x: Array,
        g: Array,
        spikes: Spikes,
        left: Array,
        own: Array,
        target: Target | None = None,
        *,
        rhs: Array,
    ) -> None:
        """Write the solution, from the separators of the rank before and of this rank.

        `rhs` and `g` are those of `reduce`, and so is `target`; `g` can be `x`.
        """
        target, m = target or self._target, self._m
        interior = x[..., : m - 1]
        inside = interior if g is x else g[..., : m - 1]
        separators = [left, own]
        is_finite = np.isfinite(left) & np.isfinite(own)
        spoiled: list[tuple[Array, Array]] = []
        if not is_finite.all():  # then it is not finite in any row, also not where l and u vanish
            bad = np.where(is_finite, 0, np.inf).astype(real_of(x.dtype))[..., None]
            if self._mask is None:
                nothing = target.zeros((1,) * x.ndim, self._views[1].dtype)
                spoiled.append((nothing, bad.astype(x.dtype)))
            else:  # rows outside keep the right-hand sides
                bad = np.where(self._mask_on_host(slice(0, m - 1)), bad, np.zeros_like(bad))
                zero = np.zeros((1,) * x.ndim, x.dtype)
                spoiled.append((target.upload(np.ascontiguousarray(bad)), zero))
                separators = [np.where(is_finite, y, np.zeros_like(y)) for y in separators]
        pairs = [
            (spike, -separator[..., None])
            for spike, separator in zip(spikes, separators, strict=True)
            if spike is not None
        ]
        everywhere = [(values_of(spike), by) for spike, by in pairs if spike.rows == self.interior]
        everywhere += spoiled
        with np.errstate(invalid="ignore"):
            if m > 1 and (everywhere or g is not x):
                target.write_sum(interior, inside, everywhere)
            for spike, by in pairs:
                if spike.rows != self.interior:
                    part = x[..., spike.rows]
                    target.write_sum(part, part, [(values_of(spike), by)])
        mask = self._end_masks[m - 1]
        if mask is not None:
            own = np.where(mask, own, target.download(rhs[..., m - 1]))
        _put(target, x, m - 1, own)

    def _spike(self, solve: Solve, *, is_left: bool) -> Spike | None:
        """Solve for l or u, in as many rows as it takes to vanish; None if it is zero."""
        rows, entry = self._m - 1, 0 if is_left else 2
        coupling = self._coupling(is_left=is_left)
        if not np.any(coupling):
            return None

        def attempt(count: int) -> tuple[Spike, float, float]:
            part = slice(0, count) if is_left else slice(rows - count, rows)
            values, is_sound = self._column(solve, part, is_left=is_left)
            order = range(count) if is_left else range(count)[::-1]  # from the coupling on
            start, middle, end = (
                self._target.download(values[..., order[i]]) for i in (0, count // 2, count - 1)
            )
            beyond = self._row(count if is_left else part.start - 1)[entry]
            spike = Spike(part, values)
            if not is_sound:
                return spike, 1.0, 1.0
            return spike, _largest_ratio(beyond * end, coupling), _largest_ratio(middle, start)

        eps = float(np.finfo(coupling.dtype).eps)
        return until_negligible(rows, eps, attempt) or Spike(self.interior, None)

    def _complete(self, solve: Solve, spike: Spike | None, *, is_left: bool) -> Spike | None:
        """Return l or u with its values."""
        if spike is None or spike.values is not None:
            return spike
        return Spike(spike.rows, self._column(solve, spike.rows, is_left=is_left)[0])

    def _sums(self, rows: slice) -> Array:
        """Return a copy of the row sums of the whole matrices, in host memory."""
        view = self._views[1]
        part = self._target.download(view if view.shape[-1] == 1 else view[..., rows])
        full = (*self.batch, rows.stop - rows.start)
        return part if part.shape == full else np.array(np.broadcast_to(part, full))

    def _coupling(self, *, is_left: bool) -> Array:
        """Return the entries of the interior rows that couple to the unknown on one side."""
        return self._rows[0][0] if is_left else self._rows[self._m - 2][2]

    def _column(self, solve: Solve, part: slice, *, is_left: bool) -> tuple[Array, bool]:
        """Solve a part of the rows for l or u; also return the answer of `solve`."""
        count = part.stop - part.start
        values = self._target.zeros((*self.batch, count), self._views[1].dtype)
        coupling = self._coupling(is_left=is_left)
        at = 0 if is_left else count - 1
        _put(self._target, values, at, np.broadcast_to(coupling, self.batch))
        return values, solve(part, values, values)

    def _ends(self, spike: Spike | None) -> list[Array]:
        """Return l or u in the first and in the last interior row."""
        return [
            np.zeros(self.batch, self._views[1].dtype)
            if spike is None or i not in range(spike.rows.start, spike.rows.stop)
            else self._target.download(values_of(spike)[..., i - spike.rows.start])
            for i in (0, self._m - 2)
        ]

    def _row(self, i: int) -> list[Array]:
        """Return one row, in host memory; entries that couple to no row are zero."""
        row = []
        for k, (view, start) in enumerate(zip(self._views, self._starts, strict=True)):
            at = 0 if view.shape[-1] == 1 else i - start
            if self._is_open[k] and i == (0 if k == 0 else self._m - 1):
                row.append(np.zeros(view.shape[:-1], view.dtype))
            else:
                row.append(self._target.download(view[..., at]))
        inside, above, below = (self._mask_of(k) for k in (i, i - 1, i + 1))
        if inside is None or above is None or below is None:
            return row
        counts, outside = (inside & above, inside, inside & below), (0, 1, 0)
        return [
            np.where(count, part, np.asarray(value, part.dtype))
            for count, part, value in zip(counts, row, outside, strict=True)
        ]

    def _mask_of(self, i: int) -> Array | None:
        """Return the mask of a row, also of those beyond the ends; None without a mask."""
        if self._mask is None:
            return None
        if not 0 <= i < self._m:
            return np.asarray(self._mask[1][i >= 0][..., 0])
        return self._mask_on_host(i)

    def _mask_on_host(self, rows: int | slice) -> Array:
        """Return rows of the mask in host memory."""
        assert self._mask is not None
        part = np.asarray(self._mask[0][..., rows])
        return self._target.download(part) if is_device_array(part) else part

    def _counted(self, values: Array, i: int) -> Array:
        """Return values of a row at an end, 0 outside of the mask: NaN times 0 is NaN."""
        mask = self._end_masks[i]
        return values if mask is None else np.where(mask, values, np.asarray(0, values.dtype))

    def _full(self, *parts: Array) -> Coefficients:
        """Return coefficients for each system, of parts that broadcast to them."""
        return Coefficients(*(np.broadcast_to(part, self.batch) for part in parts))


def until_negligible(
    rows: int, eps: float, attempt: Callable[[int], tuple[S, float, float]]
) -> S | None:
    """Return what an attempt finds in the rows in which l or u counts; None: these are all rows.

    An attempt computes the first so many rows of l, or the last ones of u. It also returns the
    residual of the row after them over the coupling that l or u comes from, and its decay over half
    of the rows.
    """
    count = _FIRST_ROWS
    while _WORTH * count <= rows:
        found, residual, decay = attempt(count)
        if residual <= eps**2:
            return found
        half = count // 2
        least = eps**2
        needed = _MARGIN * half * log(least) / log(max(decay, least)) if decay < 1 else rows
        count = max(count + half, int(min(needed, rows)))
    return None


def values_of(spike: Spike) -> Array:
    """Return the values of l or u, which `Matrices.eliminate` has completed."""
    assert spike.values is not None
    return spike.values


def _largest_ratio(parts: Array, wholes: Array) -> float:
    """Return the largest magnitude of a part of its whole, 1 if there is one that is not finite."""
    with np.errstate(all="ignore"):
        ratios = np.abs(parts) / np.abs(np.broadcast_to(wholes, np.shape(parts)))
    ratios = np.where(np.equal(wholes, 0), 0, ratios)
    return float(ratios.max()) if np.isfinite(ratios).all() else 1.0


def _put(target: Target, view: Array, i: int, values: Array) -> None:
    """Write one row of all systems."""
    values = np.asarray(values, view.dtype)  # np.ascontiguousarray adds an axis to numbers
    target.write(view[..., i : i + 1], target.upload(values[..., None]))


def reduced_matrix(found: Coefficients, *, periodic: bool) -> tuple[Array, Array, Array]:
    """Return lower, diag and upper of the reduced system, shapes (ranks, ...)."""
    c = found.c if periodic else _without_last(found.c)
    l_next, u_next = (np.roll(part, -1, axis=0) for part in (found.l, found.u))
    return found.a, found.b - c * l_next, -c * u_next


def reduced_rhs(found: Coefficients, g: Array, d: Array, *, periodic: bool) -> Array:
    """Return the right-hand sides of the reduced system, shapes (ranks, ...)."""
    c = found.c if periodic else _without_last(found.c)
    c = c.reshape(len(c), *(1,) * (d.ndim - c.ndim), *c.shape[1:])
    return np.asarray(d - c * np.roll(g, -1, axis=0))


def _without_last(c: Array) -> Array:
    """Return c of all ranks with 0 for the last one, which has no next rank."""
    return np.concatenate([c[:-1], np.zeros_like(c[-1:])])


def packed(parts: Sequence[Array], dtype: np.dtype) -> Array:
    """Return all numbers of some arrays in one array."""
    return np.concatenate([np.ravel(part).astype(dtype) for part in parts])


def unpacked(numbers: Array, shapes: Sequence[Sequence[int]]) -> list[Array]:
    """Return the arrays of `packed` of all ranks, shape (ranks, ...), from their numbers."""
    bounds = np.cumsum([0, *(prod(shape) for shape in shapes)])
    return [
        numbers[:, start:stop].reshape(len(numbers), *shape)
        for start, stop, shape in zip(bounds, bounds[1:], shapes, strict=False)
    ]
