r"""Block tridiagonal and pentadiagonal systems of arrays that are split over the ranks of a group.

The partition method of _ends.py with blocks of s x s numbers in place of numbers. Rank p holds the
rows 0 .. m - 1 of its part; its last unknowns y_p, those of one block row, or of two rows of five
diagonals, are a separator. The interior rows form a matrix T of their own, and give

    x = g - l y_{p-1} - u y_p,   T g = r,   T l = L_0 in the first block,   T u = U in the last one,

with s columns l and u. What they leave in the last rows, and the first unknowns of the next rank,
form a reduced system: block tridiagonal, one row per rank, periodic if the lines are. Each rank
knows it after one exchange of 5 s^2 numbers for each matrix and 2 s for each right-hand side, and
solves it.

l and u decay in dominant and in definite matrices from their end on; they are computed in the rows
at this end that count alone, by factors of these rows, or, if these are most rows, of the interior.
Words per row of blocks with one right-hand side: those of a solve, 3 s^2 + 2 s, and for each row of
l and of u the factors, s^2 written and s^2 + 2 s of their sum with g.

No row exchanges across the ends: stable for block diagonally dominant matrices, where l and u are
at most 1 in norm and the reduced system is dominant, and for positive definite ones, whose
interiors and reduced systems are definite with condition numbers at most that of the whole. Other
systems are solved as whole lines: each rank gets a share of them, complete. So are those of which
one is singular, as this finds their first bad pivots.

Parts of arrays on a device are eliminated there. What the ranks exchange, the reduced systems and
whole lines are on the host.

Source: Wang, ACM Trans. Math. Softw. 7 (1981) 170-183.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import axis_number, require_flag
from .._errors import SingularSystemError
from .._options import OnSingular, check_policy, check_threads
from .._runtime.arrays import real_of
from .._runtime.interop import shape_of
from .._runtime.singular import Singular
from .._runtime.targets import Target
from ..distributed import Group, Slab
from ..distributed._ends import packed, unpacked, until_negligible
from ..distributed._group import Agreement, own_device
from ..distributed._systems import (
    NO_FAILURES,
    Failures,
    check_sizes,
    checked_group,
    merged,
    numbered,
)
from ..distributed._whole import Shares
from . import formulas, systems
from .systems import Factors, Matrices

Array = NDArray[Any]

# The largest side of blocks whose l and u are found by solves, one for each column, instead of
# factors: 0.88 of the time of cut systems with 2 (4096 lines of 512 rows, one thread; 0.83 to 1 in
# other sizes), 1 to 1.4 with 4.
_MOST_SOLVED = 2
_MOST_SUMS = 4  # the largest side of blocks whose products with vectors are sums of arrays
# As many systems of a device are solved with factors, which divide long ones into chunks: 64 of
# 524288 rows take 9 in place of 82 ms in float32 (H200, with the join of two ranks), 8192 of 4096
# rows 40 in place of 29 ms in float64.
_FEW = 256
# Row and column of the entries of a block of five diagonals, and their diagonals, for the blocks of
# two rows with those before, with themselves, and with those after.
_PLACES = (
    ((0, 0, 0), (0, 1, 1), (1, 1, 0)),
    ((0, 0, 2), (0, 1, 3), (1, 0, 1), (1, 1, 2)),
    ((0, 0, 4), (1, 0, 3), (1, 1, 4)),
)
NUMBERS = 5  # blocks of a matrix that the ranks exchange


# Right-hand sides and where their solutions are written, columns first; and a function to call
# when these are written.
Columns = tuple[list[tuple[Array, Array]], Callable[[], None]]


class Kind(NamedTuple):
    """What the systems of a function are.

    Attributes
    ----------
    operation : str
        The function.
    names : tuple of str
        The diagonals.
    tail : int
        Number of axes of an operand from that of the rows on.
    ends : int
        Number of rows of a separator.
    least : int
        The fewest rows of a part that is eliminated.
    least_periodic : int
        The fewest rows of a periodic system.
    function : callable
        The function, for systems that are not split.
    resolve, require, columns, solve : callable
        Parts of the function: checks of the operands; the error for what a device does not offer;
        views of right-hand sides; the solution.
    solve_blocks : callable
        Solves the reduced systems.
    solve_on_host, factor, apply : callable
        The functions of these names in systems.py, or for five diagonals in pairs.py.
    factor_function, factor_blocks : callable
        Makes factors of matrices that are not split, and of reduced ones.
    wide : callable
        The method of such factors that views right-hand sides with all batch axes.
    """

    operation: str
    names: tuple[str, ...]
    tail: int
    ends: int
    least: int
    least_periodic: int
    function: Callable[..., Any]
    resolve: Callable[..., tuple[Any, Array, Array]]
    require: Callable[..., None]
    columns: Callable[[Any, Array, Array], Columns]
    solve: Callable[..., Singular]
    solve_blocks: Callable[..., Array]
    solve_on_host: Callable[..., tuple[Singular, int]]
    factor: Callable[..., Factors]
    apply: Callable[..., Array]
    factor_function: Callable[..., Any]
    factor_blocks: Callable[..., Any]
    wide: Callable[[Any, Array, int], Array]


class Options(NamedTuple):
    """The options of a call, checked."""

    assume: Any
    periodic: bool
    pivot: bool | None
    policy: OnSingular
    threads: int

    @property
    def of_matrices(self) -> dict[str, Any]:
        """Those that say what the matrices are, and how they are eliminated."""
        return {"assume": self.assume, "periodic": self.periodic, "pivot": self.pivot}

    @property
    def policy_of_parts(self) -> OnSingular:
        """The policy of a call for a part, whose singular systems all ranks report."""
        return "nan" if self.policy == "nan" else "ignore"


class Call(NamedTuple):
    """A call of this rank, checked.

    Attributes
    ----------
    shape : tuple of int
        Of the part of the rows and of the batch, and of what each row has in right-hand sides.
    axis : int
        That of the rows of all axes but those of a block, negative.
    along : int
        The axis along which the shape is split.
    is_cut : bool
        Whether it is that of the rows, and there are several ranks.
    code : int
        Of the pivoting.
    """

    kind: Kind
    named: dict[str, Any]
    found: Any
    options: Options
    shape: tuple[int, ...]
    axis: int
    along: int
    is_cut: bool
    code: int

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch shape of the matrices, of as many axes as that of the solutions."""
        matrices: Matrices = self.found.matrices
        given = [v for v in matrices.operands if v is not None]
        own = np.broadcast_shapes(*(view.shape[: -matrices.tail] for view in given))
        return (1,) * (len(matrices.batch) - len(own)) + own


def checked_options(
    operation: str,
    named: dict[str, Any],
    *,
    assume: Any,
    periodic: bool,
    pivot: bool | None,
    on_singular: OnSingular,
    threads: int | None,
) -> Options:
    """Return the options of a call, or raise; also for an operand that is None and may not be."""
    require_flag("periodic", periodic)
    policy, count = check_policy(on_singular), check_threads(threads)
    systems.require_operands(operation, named)
    return Options(assume, bool(periodic), pivot, policy, count)


def facts_of(named: dict[str, Any], options: Options, *, is_cut: bool) -> dict[str, Any]:
    """Return what must be the same on all ranks before operands are looked at."""
    return {
        "operands": [name for name, value in named.items() if value is not None],
        **options.of_matrices,
        "on_singular": options.policy,
        "whether systems are cut": is_cut,
    }


def own_part(
    agreed: Agreement, group: Group, call: Call, dtype: np.dtype
) -> tuple[Call, Part | None]:
    """Return the call with constant operands in all rows, and the part of this rank.

    There is no part where no system is cut, or where there is none. What the ranks compare, also
    the dtype of solutions, and what they need of each other is added to their agreement.
    """
    part, found = None, call.found
    if call.is_cut:
        call = with_all_rows(call, group)
        if prod(call.shape):
            part = Part(call, (group.rank, group.size))
    agreed.own = call.shape[call.along], None if part is None else part.half
    agreed.same |= {
        "dtype": str(dtype),
        "complex matrices": found.is_complex,
        "side of the blocks": found.matrices.side,
        "shape": tuple(":" if k == call.along else size for k, size in enumerate(call.shape)),
        "axis": call.axis,
        "batch shape of the matrices": call.batch if call.is_cut else None,
    }
    return call, part


def completed(agreed: Agreement, call: Call, part: Part | None) -> tuple[int, ...]:
    """Return how many rows, or systems, the ranks hold, and give the part what it needs of them."""
    sizes, halves = zip(*agreed.found, strict=True)
    check_sizes(call.along, sizes)
    if call.is_cut and call.options.periodic:
        systems.require_periodic_rows(call.kind.operation, sum(sizes), call.kind.least_periodic)
    if part is not None:
        part.complete(halves)
    return tuple(sizes)


def solve_split(
    kind: Kind,
    group: Group | None,
    split: Slab | None,
    named: dict[str, Any],
    *,
    axis: int,
    out: Any,
    device: str | None,
    stream: object,
    **given_options: Any,
) -> Any:
    """Solve with operands of which each rank holds its part."""
    operation, rhs = kind.operation, named["rhs"]
    group, split = checked_group(group, split)
    by_formulas = False
    with group.agreement(operation) as agreed:
        options = checked_options(operation, named, **given_options)
        given = {name: value for name, value in named.items() if value is not None}
        device = own_device(device, group, given if out is None else {**given, "out": out})
        ndim = max(1, *(len(shape_of(value)) - kind.tail + 1 for value in given.values()))
        along = split.of(ndim)
        place = axis_number(axis, ndim, f"operands of {ndim} axes before those of the blocks")
        is_cut = along == place and group.size > 1
        by_formulas = not is_cut and formulas.is_needed(named, stream, periodic=options.periodic)
        agreed.same = facts_of(named, options, is_cut=is_cut)
        if not by_formulas:
            is_whole_ring = options.periodic and not is_cut
            where = {"device": device, "stream": stream}
            found, sides, result = kind.resolve(
                operation, named, axis, options.assume, out, periodic=is_whole_ring, **where
            )
            code = systems.pivoting(found.target.backend, options.assume, options.pivot)
            kind.require(operation, found, periodic=is_whole_ring)
            axes = place - ndim, along, is_cut
            call = Call(kind, named, found, options, result.shape, *axes, code)
            call, part = own_part(agreed, group, call, result.dtype)
            if part is not None:
                columns = kind.columns(found, sides, result)
    if by_formulas:
        with group.agreement(operation):
            return kind.function(
                **named, axis=axis, out=out, device=device, stream=stream, **given_options
            )
    sizes = completed(agreed, call, part)
    singular, policy = None, options.policy
    if part is not None:
        singular = _solve_cut(group, call, part, sizes, columns)
    elif result.size:
        with group.agreement(operation) as done:
            own = kind.solve(found, sides, result, code, options.threads, policy)
            done.own = systems.explained(own, found.matrices, policy, found.target)
        singular = done.found[0]
        if group.size > 1:
            singular = merged(done.found, sizes, along - (along > place))
    answer = found.target.finish(result, rhs, out)
    if singular is not None:
        systems.report(singular, found.matrices, policy, 3)
    return answer


def with_all_rows(call: Call, group: Group) -> Call:
    """Return a call with constant operands in all rows, or raise if one lacks rows of a neighbour.

    An operand with one row is one of all rows also where a part has no more rows than it could
    omit.
    """
    matrices, tail, axis = call.found.matrices, call.kind.tail, call.axis
    half, operands = len(matrices.operands) // 2, []
    for number, (name, view) in enumerate(zip(call.kind.names, matrices.operands, strict=True)):
        shape = () if call.named[name] is None else shape_of(call.named[name])
        lead = shape[: len(shape) - tail + 1]
        length = 1 if len(lead) < -axis else lead[axis]
        length = lead[0] if len(lead) == 1 else length
        is_constant = length == 1 and (tail > 1 or len(lead) != 1)
        if call.named[name] is None:
            pass
        elif is_constant and view.shape[-tail] < matrices.rows:
            rest = view.shape[view.ndim - tail + 1 :]
            view = systems.expanded(view, (*view.shape[:-tail], matrices.rows, *rest))
        elif not is_constant and length < matrices.rows:
            _require_end(call, group, name, number < half, length)
        operands.append(view)
    matrices = matrices._replace(operands=tuple(operands))
    return call._replace(found=call.found._replace(matrices=matrices))


def _require_end(call: Call, group: Group, name: str, is_lower: bool, length: int) -> None:
    """Raise unless this rank may omit entries of an off-diagonal."""
    rows = call.found.matrices.rows
    end = 0 if is_lower else group.size - 1
    if group.rank == end and not call.options.periodic:
        return
    rule = (
        f"only rank {end}, which holds the {'first' if is_lower else 'last'} row, may omit entries"
    )
    if call.options.periodic:
        rule = "a periodic system has all entries"
    raise ValueError(f"{name}: {rule}; rank {group.rank} has {length} for {rows} rows: pass {rows}")


def _solve_cut(
    group: Group, call: Call, part: Part, sizes: Sequence[int], columns: Columns
) -> Singular | None:
    """Solve systems that are cut: by the partition method, or as whole lines."""
    parts, finish = columns
    singular = None
    if not has_ends(call, sizes) or not _solve_by_ends(group, call, part, parts):
        singular = _solve_whole(group, call, parts, sizes)
    finish()
    return singular


class Spike(NamedTuple):
    """The columns of l or u in the interior rows in which they are not negligible."""

    rows: slice
    values: Array  # (s, ..., rows[, s])


class Coefficients(NamedTuple):
    """What the elimination of a matrix leaves, (..., s, s), of one rank or of all, (ranks, ...)."""

    l: Array  # noqa: E741 - the names of the formulas
    u: Array
    a: Array
    b: Array
    c: Array


class Part:
    """The rows of one rank of the matrices.

    Parameters
    ----------
    call : Call
        The call of this rank.
    ranks : (int, int)
        Number of this rank, and of all ranks.
    """

    def __init__(self, call: Call, ranks: tuple[int, int]) -> None:
        kind, matrices = call.kind, call.found.matrices
        rank, size = self._ranks = ranks
        self._kind, self._target = kind, call.found.target
        self._matrices = matrices._replace(batch=call.batch, periodic=())
        self._rows = matrices.rows
        self._has_left = call.options.periodic or rank > 0
        self._has_right = call.options.periodic or rank < size - 1
        self.batch, self.dtype = call.batch, np.dtype(matrices.dtype)
        self.side = matrices.side or kind.ends
        self._last = self._rows - kind.ends  # the first row of the separator
        self.interior = slice(0, self._last)
        #: Factors of the interior rows, where they are needed.
        self.factors: Factors | None = None
        self._blocks: dict[tuple[int, int], Array] = {}
        # Of each diagonal the first and the last rows, in the memory of the host.
        width, axis = 2 * kind.ends, -kind.tail
        self._first, self._final = [], []
        for view in (self._operand(number) for number in range(len(kind.names))):
            rows = np.moveaxis(view, axis, 0)
            self._first.append(self._target.download(rows[:width]))
            self._final.append(self._target.download(rows[max(len(rows) - width, 0) :]))
        first = self.left(0) if self._has_left else self._zero()
        last = self.right(self._last) if self._has_right else self._zero()
        #: Blocks that couple the first row to the rank before, and the last row to the next rank.
        self.coupling = [first, last]
        names = kind.names
        missing = [k for k, name in enumerate(names) if call.named[name] is None]
        self._lacks_lower = bool(missing) and missing[0] < len(names) // 2
        #: Where one half of symmetric matrices is given, the block that a neighbour needs for its
        #: other half; None where both halves are given.
        self.half = None if not missing else self.coupling[self._lacks_lower]

    def complete(self, halves: Sequence[Array | None]) -> None:
        """Take the block of the half that is not given from `half` of all ranks.

        The block is the conjugate transpose of that of the neighbour.
        """
        rank, size = self._ranks
        other = halves[(rank + (-1 if self._lacks_lower else 1)) % size]
        if other is not None:
            self.coupling[not self._lacks_lower] = np.swapaxes(other.conj(), -1, -2)

    def keep(self, spikes: Sequence[Spike | None]) -> list[Spike | None]:
        """Return l and u for solves on any stream; keep no operands of the matrices."""
        self._matrices = self._matrices.without_operands()
        self._target = self._target.without_operands()
        return [s and s._replace(values=self._target.hold(s.values)) for s in spikes]

    def on(self, target: Target) -> Part:
        """Return the part for a solve on a target."""
        part = copy(self)
        part._target = target
        return part

    def is_dominant(self) -> bool:
        """Whether those rows are dominant that the factors of the interior do not test."""
        step = self._kind.ends
        if not self._is_fast:  # they test no such blocks
            return self._all_are_dominant()
        return all(
            _is_dominant(
                self.coupling[0] if place == 0 else self.left(place),
                self.middle(place),
                self.coupling[1] if place == self._last else self.right(place),
            )
            for place in {0, max(self._last - step, 0), self._last}
        )

    def _all_are_dominant(self) -> bool:
        """Whether all rows are dominant, of blocks on the host."""
        lower, diag, upper = (np.asarray(self._operand(number)) for number in range(3))
        first, last = (block[..., None, :, :] for block in self.coupling)
        before = lower[..., lower.shape[-3] - self._rows + 1 :, :, :]
        after = upper[..., : self._rows - 1, :, :]
        return (
            _is_dominant(first, diag[..., :1, :, :], after[..., :1, :, :])
            and _is_dominant(before[..., -1:, :, :], diag[..., -1:, :, :], last)
            and _is_dominant(before[..., :-1, :, :], diag[..., 1:-1, :, :], after[..., 1:, :, :])
            if self._rows > 1
            else _is_dominant(first, diag, last)
        )

    def is_suited(self, code: int, threads: int, *, keeps: bool) -> bool:
        """Whether no row has to be exchanged, as far as it is known before rows are eliminated.

        `keeps`: also factor the interior, which knows of all its rows, and of bad pivots.
        """
        if code == self._target.backend.PIVOTS["auto"] and not self.is_dominant():
            return False
        if not keeps or not self._last:
            return True
        self.factors = self._factored(self.interior, code, threads)
        return self._is_sound(self.factors)

    def spikes(self, code: int, threads: int) -> list[Spike | None]:
        """Return l and u in the rows in which they count; None for those that are 0."""
        found: list[Spike | None] = []
        for is_left in (True, False):
            if not self._last:
                found.append(None)
                continue
            coupling = self.coupling[0] if is_left else self.right(self._last - self._kind.ends)
            found.append(self._spike(coupling, code, threads, is_left=is_left))
        return found

    def coefficients(self, spikes: Sequence[Spike | None]) -> Coefficients:
        """Return the coefficients of the ends."""
        last, middle = self._last, self.middle(self._last)
        if not last:
            identity = np.eye(self.side, dtype=self.dtype)
            return self._full(self._zero(), -identity, self.coupling[0], middle, self.coupling[1])
        (l_first, l_last), (u_first, u_last) = (self._ends_of(spike) for spike in spikes)
        lower = self.left(last)
        return self._full(
            l_first,
            u_first,
            -product_of(lower, l_last),
            middle - product_of(lower, u_last),
            self.coupling[1],
        )

    def reduce(
        self, rhs: Array, x: Array, code: int, threads: int
    ) -> tuple[Array, Array, Array] | None:
        """Return g of the interior, and g_0 and d of right-hand sides (columns, ..., s).

        x is the interior of the solution: g is there, unless it would replace the right-hand sides.
        None if a row is exchanged or a pivot is bad.
        """
        last, target = self._last, self._target
        end = target.download(self._at(rhs, last))
        if not last:
            return rhs, np.zeros_like(end), end
        g = self._solved(self._rows_of(rhs), x, code, threads)
        if g is None:
            return None
        first, before = (target.download(self._at(g, k)) for k in (0, last - self._kind.ends))
        with np.errstate(all="ignore"):
            return g, first, end - _times(self.left(last), before)

    def _solved(self, rhs: Array, x: Array, code: int, threads: int) -> Array | None:
        """Return the solution of the interior, or None as `reduce`.

        With factors where there are several right-hand sides, as one process.
        """
        if self.factors is None and self._needs_factors(len(rhs), code):
            self.factors = self._factored(self.interior, code, threads)
        made = self.factors
        if made is not None:
            return self._apply(made, rhs, x, threads) if self._is_sound(made) else None
        to = self._target.packed(x) if np.may_share_memory(rhs, x) else x
        return to if self._solve(self.interior, rhs, to, code, threads) else None

    def substitute(
        self,
        x: Array,
        interior: Array,
        g: Array,
        spikes: Sequence[Spike | None],
        ends: Sequence[Array],
    ) -> None:
        """Write the solution, from the separators (columns, ..., s) before and of this rank.

        `interior` and `g` are those of `reduce`.
        """
        target, last = self._target, self._last
        if last:
            more = (None,) * (1 if self._kind.tail == 1 else 2)
            known = np.isfinite(ends[0]).all(-1) & np.isfinite(ends[1]).all(-1)
            everywhere: list[tuple[Array, Array]] = []
            if not known.all():  # then it is not finite in any row, also not where l and u vanish
                bad = np.where(known, 0, np.inf).astype(real_of(x.dtype)).astype(x.dtype)
                nothing = target.zeros((1,) * x.ndim, x.dtype)
                everywhere.append((nothing, bad[(..., *more)]))
            some = []
            for spike, end in zip(spikes, ends, strict=True):
                if spike is None:
                    continue
                pairs = [
                    (spike.values[q], np.ascontiguousarray(-end[..., q])[(..., *more)])
                    for q in range(self.side)
                ]
                if spike.rows == self.interior:
                    everywhere += pairs
                else:
                    some.append((spike.rows, pairs))
            with np.errstate(all="ignore"):
                if g is not interior or everywhere:
                    target.write_sum(interior, g, everywhere)
                for rows, pairs in some:
                    part = self._rows_of(x, rows)
                    target.write_sum(part, part, pairs)
        own = np.ascontiguousarray(ends[1], dtype=x.dtype)
        target.write(self._at(x, last), target.upload(own))

    def interior_of(self, x: Array) -> Array:
        """View the interior rows of solutions."""
        return self._rows_of(x)

    def left(self, row: int) -> Array:
        """Return the block of a row, or of two rows, and of those before."""
        return self._block(0, row)

    def middle(self, row: int) -> Array:
        """Return the diagonal block of a row, or of two rows."""
        return self._block(1, row)

    def right(self, row: int) -> Array:
        """Return the block of a row, or of two rows, and of those after."""
        return self._block(2, row)

    def _block(self, number: int, row: int) -> Array:
        """Return a block, of the first, the second or the third diagonal of blocks."""
        found = self._blocks.get((number, row))
        if found is None:
            if self._kind.ends == 1:
                found = self._entry(number, row)
            else:
                found = self._zero()
                for p, q, diagonal in _PLACES[number]:
                    found[..., p, q] = self._entry(diagonal, row + p)
            self._blocks[number, row] = found
        return found

    def _entry(self, number: int, row: int) -> Array:
        """Return an entry, or a block, of a diagonal in a row, with all batch axes of the matrices.

        It is 0 where the diagonal has none: it couples to no row.
        """
        view, tail = self._operand(number), self._kind.tail
        rows = view.shape[-tail]
        place = row - (self._rows - rows if number < len(self._kind.names) // 2 else 0)
        shape = (*self.batch, *view.shape[view.ndim - tail + 1 :])
        if not 0 <= place < rows:
            return np.zeros(shape, self.dtype)
        first, final = self._first[number], self._final[number]
        if place < len(first):
            value = first[place]
        elif place >= rows - len(final):
            value = final[place - rows + len(final)]
        else:
            at = (..., place) if tail == 1 else (..., place, slice(None), slice(None))
            value = self._target.download(view[at])
        return np.broadcast_to(value, shape)

    def _operand(self, number: int) -> Array:
        operand = self._matrices.operands[number]
        assert operand is not None
        return operand

    def _zero(self) -> Array:
        return np.zeros((*self.batch, self.side, self.side), self.dtype)

    def _full(self, *parts: Array) -> Coefficients:
        """Return coefficients with the batch axes of the matrices."""
        shape = (*self.batch, self.side, self.side)
        return Coefficients(*(np.broadcast_to(part, shape) for part in parts))

    def _factored(self, rows: slice, code: int, threads: int) -> Factors:
        """Factor consecutive interior rows."""
        made: Factors = self._kind.factor(self._target, self._part_of(rows), code, threads)
        return made

    def _part_of(self, rows: slice) -> Matrices:
        """Return the matrices of consecutive interior rows."""
        operands, tail = [], self._kind.tail
        for number in range(len(self._kind.names)):
            view = self._operand(number)
            is_lower = number < len(self._kind.names) // 2
            missing = self._rows - view.shape[-tail] if is_lower else 0
            part = slice(max(rows.start - missing, 0), rows.stop - missing)
            operands.append(view[..., part] if tail == 1 else view[..., part, :, :])
        return self._matrices._replace(rows=rows.stop - rows.start, operands=tuple(operands))

    def batch_of(self, rhs: Array) -> tuple[int, ...]:
        """Return the batch axes of right-hand sides, their columns first."""
        return rhs.shape[: -min(self._kind.tail, 2)]

    @property
    def _is_fast(self) -> bool:
        """Whether blocks are small: rows of others are always exchanged."""
        return self._matrices.side <= self._target.backend.FAST_SIDE

    def _is_sound(self, made: Factors) -> bool:
        """Whether factors have no bad pivot, and no exchanged rows, as `reduce`."""
        is_exchanged = self._is_fast and made.pivot == self._target.backend.PIVOTS["always"]
        return not is_exchanged and not len(made.singular.rows)

    def _needs_factors(self, columns: int, code: int) -> bool:
        """Whether the interior is solved with factors.

        A device says only of factors whether rows are exchanged.
        """
        is_decided = code != self._target.backend.PIVOTS["auto"]
        if self._target.name == "cpu":
            return columns > 1 and is_decided
        return columns > 1 or not is_decided or prod(self.batch) <= _FEW

    def _solve(self, rows: slice, rhs: Array, x: Array, code: int, threads: int) -> bool:
        """Solve in consecutive interior rows; return whether no row was exchanged, as `reduce`."""
        target, pivoted = self._target, 0
        matrices = self._part_of(rows)._replace(batch=self.batch_of(rhs))
        if target.name != "cpu":
            singular = systems.solve(target, matrices, rhs, x, code, threads)
        else:
            singular, pivoted = self._kind.solve_on_host(target, matrices, rhs, x, code, threads)
        return not len(singular.rows) and not (self._is_fast and pivoted)

    def _apply(self, made: Factors, rhs: Array, x: Array, threads: int) -> Array:
        """Solve for right-hand sides; a device writes to x, unless x is another view of them."""
        if self._target.name == "cpu":
            return self._kind.apply(self._target, made, "N", rhs, threads)
        if x is not rhs and np.may_share_memory(rhs, x):
            x = self._target.packed(x)
        return systems.apply(self._target, made, "N", rhs, threads, x)

    def _spike(self, coupling: Array, code: int, threads: int, *, is_left: bool) -> Spike | None:
        """Solve for l or u, in as many rows as it takes to vanish; None if it is zero."""
        if not coupling.any():
            return None
        rows, ends, target = self._last, self._kind.ends, self._target

        def solved(part: slice, made: Factors | None, code: int) -> tuple[Array, bool]:
            count = part.stop - part.start
            rest = (self.side,) * (self._kind.tail > 1)
            right = target.zeros((self.side, *self.batch, count, *rest), self.dtype)
            columns = np.ascontiguousarray(np.moveaxis(coupling, -1, 0), dtype=self.dtype)
            place = self._at(right, 0 if is_left else count - ends)
            target.write(place, target.upload(columns))
            if made is None and self.side <= _MOST_SOLVED:
                return right, self._solve(part, right, right, code, threads)
            made = self._factored(part, code, threads) if made is None else made
            return self._apply(made, right, right, threads), not len(made.singular.rows)

        def attempt(count: int) -> tuple[Spike, float, float]:
            part = slice(0, count) if is_left else slice(rows - count, rows)
            # Right for dominant and definite matrices; the solve of all rows refuses others.
            values, is_sound = solved(part, None, target.backend.PIVOTS["never"])
            half = count // 2
            places = (0, half, count - ends) if is_left else (count - ends, half, 0)
            start, middle, end = (
                np.moveaxis(target.download(self._at(values, place)), 0, -1) for place in places
            )
            beyond = self.left(count) if is_left else self.right(part.start - ends)
            with np.errstate(all="ignore"):
                residual = _largest_ratio(product_of(beyond, end), coupling) if is_sound else 1.0
                decay = _largest_ratio(middle, start) if is_sound else 1.0
            return Spike(part, values), residual, decay

        found = until_negligible(rows, float(np.finfo(self.dtype).eps), attempt)
        if found is not None:
            return found
        if self.factors is None and (self.side > _MOST_SOLVED or self._needs_factors(1, code)):
            self.factors = self._factored(self.interior, code, threads)
        return Spike(self.interior, solved(self.interior, self.factors, code)[0])

    def _ends_of(self, spike: Spike | None) -> list[Array]:
        """Return l or u, (..., s, s), in the first and in the last interior row."""
        found = []
        for row in (0, self._last - self._kind.ends):
            if spike is None or not spike.rows.start <= row < spike.rows.stop:
                found.append(self._zero())
            else:
                part = self._at(spike.values, row - spike.rows.start)
                found.append(np.moveaxis(self._target.download(part), 0, -1))
        return found

    def _rows_of(self, view: Array, rows: slice | None = None) -> Array:
        """View rows, the interior ones by default, of right-hand sides or solutions."""
        rows = self.interior if rows is None else rows
        return view[..., rows] if self._kind.tail == 1 else view[..., rows, :]

    def _at(self, view: Array, row: int) -> Array:
        """View a block row, or two rows, of right-hand sides or solutions: (..., s)."""
        return view[..., row : row + 2] if self._kind.tail == 1 else view[..., row, :]


class Eliminated(NamedTuple):
    """What the elimination of the parts leaves: of this rank, and the ends of all ranks.

    Attributes
    ----------
    spikes : list
        l and u, None for those that are 0.
    found : Coefficients
        Of all ranks.
    kept : list
        For each part of the right-hand sides the solution, its interior rows, and their g.
    sides : list of arrays
        g_0 and d of each part of the right-hand sides, (ranks, columns, ..., s).
    """

    spikes: list[Spike | None]
    found: Coefficients
    kept: list[tuple[Array, Array, Array]]
    sides: list[Array]

    def rhs(self, *, periodic: bool) -> Array:
        """Return right-hand sides of the reduced system, (..., ranks, s, columns)."""
        c, right = _inner(self.found.c, periodic=periodic), []
        with np.errstate(all="ignore"):
            for g, d in zip(self.sides[::2], self.sides[1::2], strict=True):
                wide = c.reshape(len(c), *(1,) * (d.ndim + 1 - c.ndim), *c.shape[1:])
                right.append(d - _times(wide, np.roll(g, -1, axis=0)))
        return np.concatenate([np.moveaxis(d, (0, 1), (-3, -1)) for d in right], -1)

    def substitute(self, part: Part, y: Array, rank: int) -> None:
        """Write the solutions of this rank, from those of the reduced system."""
        bounds = np.cumsum([d.shape[1] for d in self.sides[1::2]])[:-1]
        for (x, interior, g), own in zip(self.kept, np.split(y, bounds, -1), strict=True):
            ends = np.moveaxis(own, (-3, -1), (0, 1))  # (ranks, columns, ..., s)
            part.substitute(x, interior, g, self.spikes, (ends[rank - 1], ends[rank]))


def has_ends(call: Call, sizes: Sequence[int]) -> bool:
    """Whether the parts, of so many rows, can be eliminated, as far as all ranks know."""
    always = call.found.target.backend.PIVOTS["always"]
    return call.code != always and min(sizes) >= call.kind.least


def eliminate(
    group: Group,
    call: Call,
    part: Part,
    parts: Sequence[tuple[Array, Array]],
    known: tuple[list[Spike | None], Coefficients] | None = None,
    *,
    keeps: bool = False,
) -> Eliminated | None:
    """Eliminate the parts of all ranks; None if systems must be solved as whole lines.

    `parts`: right-hand sides and solutions, columns first. `known`: l and u, and the coefficients
    of all ranks, if the matrices were eliminated. `keeps`: whether the part gets factors.
    """
    shapes = [(*part.batch, part.side, part.side)] * NUMBERS if known is None else []
    for rhs, _ in parts:
        shapes += [(*part.batch_of(rhs), part.side)] * 2
    spikes, found = known or ([], None)
    kept, threads = [], call.options.threads
    count = sum(map(prod, shapes))
    with group._agreed_numbers(call.kind.operation, count, part.dtype) as eliminated:
        numbers: list[Array] = []
        try:
            is_usable = known is not None or part.is_suited(call.code, threads, keeps=keeps)
            if is_usable and known is None:
                spikes = part.spikes(call.code, threads)
                numbers += part.coefficients(spikes)
            for rhs, x in parts if is_usable else ():
                interior = part.interior_of(x)
                reduced = part.reduce(rhs, interior, call.code, threads)
                if reduced is None:
                    is_usable = False
                    break
                g, *ends = reduced
                kept.append((x, interior, g))
                numbers += ends
        except systems.ExchangesNeededError:
            is_usable = False
        if is_usable:
            eliminated.mine = packed(numbers, part.dtype)
    if eliminated.numbers is None:
        return None
    sides = unpacked(eliminated.numbers, shapes)
    if found is None:
        found, sides = Coefficients(*sides[:NUMBERS]), sides[NUMBERS:]
    return Eliminated(spikes, found, kept, sides)


def _solve_by_ends(
    group: Group, call: Call, part: Part, parts: Sequence[tuple[Array, Array]]
) -> bool:
    """Solve by the partition method; False if the systems must be solved as whole lines."""
    left = eliminate(group, call, part, parts)
    if left is None:
        return False
    right = left.rhs(periodic=call.options.periodic)
    y = of_reduced(call, left.found, partial(call.kind.solve_blocks, rhs=right))
    if y is None:
        return False
    left.substitute(part, y, group.rank)
    return True


def of_reduced(call: Call, found: Coefficients, make: Callable[..., Any]) -> Any:
    """Return what a function makes of the reduced matrix; None if this fails."""
    blocks, is_ring = reduced_matrix(found, periodic=call.options.periodic)
    if not all(np.isfinite(block).all() for block in blocks):
        return None
    options: dict[str, Any] = {"assume": call.options.assume, "periodic": is_ring}
    try:
        return make(*blocks, threads=call.options.threads or None, **options)
    except SingularSystemError:  # the same numbers on all ranks, and so the same outcome
        return None


def reduced_matrix(found: Coefficients, *, periodic: bool) -> tuple[list[Array], bool]:
    """Return the blocks of the reduced matrix, (..., ranks, s, s), and whether it is periodic."""
    c = _inner(found.c, periodic=periodic)
    with np.errstate(all="ignore"):
        lower, upper = found.a, -product_of(c, np.roll(found.u, -1, axis=0))
        diag = found.b - product_of(c, np.roll(found.l, -1, axis=0))
    is_ring = periodic and len(c) > 2
    if periodic and not is_ring:  # both neighbours are one rank
        lower = upper = lower + upper
    return [np.moveaxis(part, 0, -3) for part in (lower, diag, upper)], is_ring


def _inner(c: Array, *, periodic: bool) -> Array:
    """Return c of all ranks, 0 for the last one if no rank follows it."""
    return c if periodic else np.concatenate([c[:-1], np.zeros_like(c[-1:])])


def _solve_whole(
    group: Group, call: Call, parts: Sequence[tuple[Array, Array]], sizes: Sequence[int]
) -> Singular:
    """Solve every line on one rank of the host, as on one device."""
    kind, options, target = call.kind, call.options, call.found.target
    operation, tail = kind.operation, kind.tail
    matrices: Matrices = call.found.matrices
    batch = matrices.batch
    shares = Shares(group, operation, sizes, prod(batch))
    with group.agreement(operation):
        given = lines_of_matrices(call)
        rights = []
        for rhs, _ in parts:
            own = np.moveaxis(target.download(rhs), 0, len(batch))  # (..., columns, rows[, s])
            own = own if tail == 1 else np.moveaxis(own, -2, -1)
            rights.append(_as_lines(own, batch, own.ndim - len(batch) - 1))
    whole = {name: shares.to_lines(own) for name, own in given.items()}
    sides = [shares.to_lines(right) for right in rights]
    singular, solutions, failures = None, sides, NO_FAILURES
    with group.agreement(operation) as done:
        if len(shares.own):
            solutions, found = [], None
            for right in sides:
                columns = np.moveaxis(right, 1, -1)  # ([s,] rows, columns)
                columns = np.moveaxis(columns, 1, 2) if tail > 1 else columns[..., 0]
                named = whole_matrices(kind, whole)
                found, view, result = kind.resolve(
                    operation, {**named, "rhs": columns}, -1, options.assume, None,
                    periodic=options.periodic,
                )  # fmt: skip
                code = systems.pivoting(found.target.backend, options.assume, options.pivot)
                policy = options.policy_of_parts
                answer = kind.solve(found, view, result, code, options.threads, policy)
                singular = answer if singular is None else singular
                x = np.moveaxis(result, 1, 2) if tail > 1 else result[..., None]
                solutions.append(np.moveaxis(x, -1, 1))
            assert found is not None and singular is not None
            known = systems.explained(singular, found.matrices, options.policy)
            entry = known.entry
            first = shares.own.start
            if entry is not None:
                entry = replace(entry, system=(entry.system[0] + first,))
            failures = Failures(first + known.systems[:, 0], known.rows, entry)
        done.own = failures
    for (_, x), own in zip(parts, solutions, strict=True):
        part = shares.from_lines(np.ascontiguousarray(own))
        part = part.reshape(*batch, *part.shape[1:])
        part = part if tail == 1 else np.moveaxis(part, -1, -2)
        part = np.moveaxis(part, len(batch), 0)
        with group.agreement(operation):
            target.write(x, target.upload(np.ascontiguousarray(part)))
    return numbered(done.found, batch)


def lines_of_matrices(call: Call) -> dict[str, Array]:
    """Return the diagonals that are given, on the host, one axis for the batch, the rows last."""
    kind, matrices, given = call.kind, call.found.matrices, {}
    half, rows = len(kind.names) // 2, matrices.rows
    for number, (name, view) in enumerate(zip(kind.names, matrices.operands, strict=True)):
        if call.named[name] is None:
            continue
        own = _rows_last(call.found.target.download(view), kind.tail)
        if own.shape[-1] < rows:
            missing = np.zeros((*own.shape[:-1], rows - own.shape[-1]), own.dtype)
            own = np.concatenate([missing, own] if number < half else [own, missing], -1)
        given[name] = _as_lines(own, matrices.batch, kind.tail - 1)
    return given


def whole_matrices(kind: Kind, lines: dict[str, Array]) -> dict[str, Array | None]:
    """Return the operands of complete lines: those of `lines_of_matrices`, the rows second."""
    named = {name: lines.get(name) for name in kind.names}
    if kind.tail == 1:
        return named
    return {n: None if v is None else np.moveaxis(v, -1, 1) for n, v in named.items()}


def _rows_last(view: Array, tail: int) -> Array:
    """Move the rows behind the axes of a block."""
    return view if tail == 1 else np.moveaxis(view, -3, -1)


def _as_lines(view: Array, batch: tuple[int, ...], blocks: int) -> Array:
    """Return an operand with one axis for the batch, of length 1 if all lines share it.

    `blocks` is the number of axes between those of the batch and the last one.
    """
    rest = view.shape[view.ndim - blocks - 1 :]
    if prod(view.shape[: view.ndim - blocks - 1]) == 1:
        return view.reshape(1, *rest)
    return np.ascontiguousarray(np.broadcast_to(view, (*batch, *rest))).reshape(-1, *rest)


def product_of(a: Array, b: Array) -> Array:
    """Return products of blocks."""
    return np.ascontiguousarray(a) @ np.ascontiguousarray(b)


def _times(block: Array, vector: Array) -> Array:
    """Return products of blocks and vectors; of small ones by sums of arrays, which many share."""
    side = block.shape[-1]
    if side > _MOST_SUMS:
        return (block @ vector[..., None])[..., 0]
    return sum(
        (block[..., q] * vector[..., q, None] for q in range(1, side)),
        start=block[..., 0] * vector[..., :1],
    )


def _is_dominant(lower: Array, diag: Array, upper: Array) -> bool:
    """Whether ||D^-1|| (||L|| + ||U||) <= 1 in rows, with the largest row sum as norm.

    Or whether each scalar row is dominant, which is also enough.
    """
    with np.errstate(all="ignore"):
        pivots = 2 * np.abs(np.diagonal(diag, axis1=-2, axis2=-1))
        if (pivots >= sum(np.abs(a).sum(-1) for a in (lower, diag, upper))).all():
            return True
        try:
            inverse = np.linalg.inv(diag)
        except np.linalg.LinAlgError:
            return False
        own, left, right = (np.abs(a).sum(-1).max(-1) for a in (inverse, lower, upper))
        return bool((own * (left + right) <= 1).all())


def _largest_ratio(parts: Array, wholes: Array) -> float:
    """Return the largest norm of a block over that of another one, 1 if one is not finite."""
    own, whole = (np.abs(a).max((-2, -1)) for a in (parts, wholes))
    ratios = np.where(np.equal(whole, 0), 0, own / whole)
    return float(ratios.max()) if np.isfinite(ratios).all() else 1.0
