r"""Block tridiagonal and pentadiagonal systems of arrays that are split over the ranks of a group.

The partition method of _ends.py with blocks of s x s numbers in place of numbers. Rank p holds the
rows 0 .. m - 1 of its part; its last unknowns y_p, those of one block row, or of two rows of five
diagonals, are a separator. The interior rows form a matrix T of their own, and give

    x = g - l y_{p-1} - u y_p,   T g = r,   T l = L_0 in the first block,   T u = U in the last one,

with s columns l and u. What they leave in the last rows, and the first unknowns of the next rank,
form a reduced system: block tridiagonal, one row per rank, periodic if the lines are. Each rank
knows it after one exchange of 5 s^2 numbers for each matrix and 2 s for each right-hand side, and
solves it: as one batch of all lines.

l and u decay in dominant and in definite matrices from their end on; they are computed in the rows
at this end that count alone, by factors of these rows, or, if these are most rows, of the interior.
Words per row of blocks with one right-hand side: those of a solve, 3 s^2 + 2 s, and for each row of
l and of u the factors, s^2 written and s^2 + 2 s of their sum with g.

No row exchanges across the ends: stable for block diagonally dominant matrices, where l and u are
at most 1 in norm and the reduced system is dominant, and for positive definite ones, whose
interiors and reduced systems are definite with condition numbers at most that of the whole. Other
systems are solved as whole lines: each rank gets a share of them, complete. So are those of which
one is singular, as this finds their first bad pivots.

Parts of arrays on a device are eliminated there. If all ranks have such arrays, what they exchange
stays on the devices (_device_ends.py), which solve the reduced systems, too; those of factors, and
periodic ones of more than two ranks, are solved on the host, as are whole lines. What the host
reads of each line then are the norms by which l and u are cut off.

Source: Wang, ACM Trans. Math. Softw. 7 (1981) 170-183.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from .._checks import axis_number, require_flag
from .._errors import SingularSystemError
from .._options import OnSingular, check_policy, check_threads
from .._runtime.arrays import real_of
from .._runtime.device import is_device_array
from .._runtime.interop import shape_of
from .._runtime.singular import Singular
from .._runtime.targets import DeviceTarget, Target, host_target
from ..distributed import Group, Slab
from ..distributed._device_ends import ends_of
from ..distributed._ends import unpacked, until_negligible
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
# Couplings of systems that differ by no larger factor: all norms say where l and u vanish.
_ALIKE = 1e3
_SLICE = 2048  # systems whose norms are found at once, in memory that a processor caches
_MOST_SUMS = 4  # the largest side of blocks whose products with vectors are sums of arrays
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
    target = found.target
    ordinal = None if target.name == "cpu" else target.ordinal
    agreed.own = call.shape[call.along], None if part is None else part.half, ordinal
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
    sizes, halves, ordinals = zip(*agreed.found, strict=True)
    check_sizes(call.along, sizes)
    if call.is_cut and call.options.periodic:
        systems.require_periodic_rows(call.kind.operation, sum(sizes), call.kind.least_periodic)
    if part is not None:
        part.complete(halves)
        part.are_all_on_devices = None not in ordinals
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
    """What the elimination of a matrix leaves, (s, s, ...), of one rank or of all, (ranks, ...)."""

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
        #: Whether the arrays of all ranks are on devices.
        self.are_all_on_devices = False
        self._blocks: dict[tuple[int, int], Array] = {}
        self._on_host: dict[int, tuple[Array, Array]] = {}  # blocks and their copies
        self._memory = [np.empty(0, self.dtype)] * 3  # of the host
        first = self.left(0) if self._has_left else self._zero()
        last = self.right(self._last) if self._has_right else self._zero()
        #: Blocks that couple the first row to the rank before, and the last row to the next rank.
        self.coupling = [first, last]
        names = kind.names
        missing = [k for k, name in enumerate(names) if call.named[name] is None]
        self._lacks_lower = bool(missing) and missing[0] < len(names) // 2
        #: Where one half of symmetric matrices is given, the block that a neighbour needs for its
        #: other half; None where both halves are given.
        self.half = None if not missing else self._host(self.coupling[self._lacks_lower])

    def complete(self, halves: Sequence[Array | None]) -> None:
        """Take the block of the half that is not given from `half` of all ranks.

        The block is the conjugate transpose of that of the neighbour.
        """
        rank, size = self._ranks
        other = halves[(rank + (-1 if self._lacks_lower else 1)) % size]
        if other is not None:
            block = np.ascontiguousarray(np.swapaxes(other.conj(), 0, 1))
            self.coupling[not self._lacks_lower] = self._target.upload(block)

    def keep(self, spikes: Sequence[Spike | None]) -> list[Spike | None]:
        """Return l and u for solves on any stream; keep no operands of the matrices."""
        self._matrices = self._matrices.without_operands()
        self._target = self._target.without_operands()
        self._blocks = {place: self._target.hold(block) for place, block in self._blocks.items()}
        self._on_host = {}
        for name in ("_nothing", "_minus_lower"):  # which other streams do not have
            self.__dict__.pop(name, None)
        return [s and s._replace(values=self._target.hold(s.values)) for s in spikes]

    @property
    def target(self) -> Target:
        """Where the rows are."""
        return self._target

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
        for place in {0, max(self._last - step, 0), self._last}:
            row = (
                self.coupling[0] if place == 0 else self.left(place),
                self.middle(place),
                self.coupling[1] if place == self._last else self.right(place),
            )
            seen = [_flat(self._seen(block, k)) for k, block in enumerate(row)]
            for start in range(0, seen[0].shape[2], _SLICE):
                if not _is_dominant(*(block[..., start : start + _SLICE] for block in seen)):
                    return False
        return True

    def _all_are_dominant(self) -> bool:
        """Whether all rows are dominant, of blocks on the host."""
        lower, diag, upper = (
            np.moveaxis(np.asarray(self._operand(number)), (-2, -1), (0, 1)) for number in range(3)
        )
        first, last = (block[..., None] for block in self.coupling)
        if self._rows == 1:
            return _is_dominant(first, diag, last)
        before = lower[..., lower.shape[-1] - self._rows + 1 :]
        after = upper[..., : self._rows - 1]
        return (
            _is_dominant(first, diag[..., :1], after[..., :1])
            and _is_dominant(before[..., :-1], diag[..., 1:-1], after[..., 1:])
            and _is_dominant(before[..., -1:], diag[..., -1:], last)
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
            if not self._last or (is_left and not self._has_left):
                found.append(None)
                continue
            coupling = self.coupling[0] if is_left else self.right(self._last - self._kind.ends)
            found.append(self._spike(coupling, code, threads, is_left=is_left))
        return found

    def coefficients(self, spikes: Sequence[Spike | None], to: Coefficients) -> None:
        """Write the coefficients of the ends, (s, s, ...)."""
        last, target = self._last, self._target
        target.write(to.c, self.coupling[1])
        if not last:
            identity = -np.eye(self.side, dtype=self.dtype)
            axes = (..., *(None,) * len(self.batch))
            target.write(to.l, self._nothing)
            target.write(to.u, target.upload(identity[axes]))
            target.write(to.a, self.coupling[0])
            target.write(to.b, self.middle(last))
            return
        (l_first, l_last), (u_first, u_last) = (self._ends_of(spike) for spike in spikes)
        lower = self.left(last)
        if l_last is None and u_last is None:
            u_last = self._zero()  # the product is not finite if `lower` is not
        for part, value in ((to.l, l_first), (to.u, u_first)):
            target.write(part, self._nothing if value is None else value)
        for part, base, value in (
            (to.a, self._nothing, l_last),
            (to.b, self.middle(last), u_last),
        ):
            target.write(part, base)
            if value is not None:
                less_product(target, part, part, lower, value, self._minus_lower)

    def reduce(
        self, rhs: Array, x: Array, to: Sequence[Array], code: int, threads: int
    ) -> Array | None:
        """Return g of the interior, and write g_0 and d of right-hand sides (s, columns, ...).

        x is the interior of the solution: g is there, unless it would replace the right-hand sides.
        None if a row is exchanged or a pivot is bad.
        """
        last, target = self._last, self._target
        first, d = to
        target.write(d, np.moveaxis(self._at(rhs, last), -1, 0))
        if not last:
            target.write(first, target.zeros((1,) * first.ndim, first.dtype))
            return rhs
        g = self._solved(self._rows_of(rhs), x, code, threads)
        if g is None:
            return None
        target.write(first, np.moveaxis(self._at(g, 0), -1, 0))
        before = np.moveaxis(self._at(g, last - self._kind.ends), -1, 0)
        less_product(target, d, d, self.left(last), before, self._minus_lower)
        return g

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
        """Write the solution, from the separators (s, columns, ...) before and of this rank.

        `interior` and `g` are those of `reduce`. The separators are where the rows are, or on the
        host.
        """
        target, last = self._target, self._last
        if last:
            more = (None,) * (1 if self._kind.tail == 1 else 2)
            everywhere: list[tuple[Array, Array]] = []
            # Unknowns before that are not finite are so in all rows, also where l and u vanish.
            if not all(np.isfinite(_largest(self._seen(end))) for end in ends):
                known = np.isfinite([_host(target, end) for end in ends]).all((0, 1))
                bad = np.where(known, 0, np.inf).astype(real_of(x.dtype)).astype(x.dtype)
                nothing = target.zeros((1,) * x.ndim, x.dtype)
                everywhere.append((nothing, bad[(..., *more)]))
            some = []
            for spike, end in zip(spikes, ends, strict=True):
                if spike is None:
                    continue
                minus = _minus(target, end)
                pairs = [(spike.values[q], minus[q][(..., *more)]) for q in range(self.side)]
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
        target.write(self._at(x, last), np.moveaxis(ends[1], 0, -1))

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
        """Return a block (s, s, ...) of the first, the second or the third diagonal of blocks."""
        found = self._blocks.get((number, row))
        if found is None:
            found = self._zero()
            if self._kind.ends == 1:
                self._put(found, number, row)
            else:
                for p, q, diagonal in _PLACES[number]:
                    self._put(found[p : p + 1, q : q + 1], diagonal, row + p)
            self._blocks[number, row] = found
        return found

    def _put(self, to: Array, number: int, row: int) -> None:
        """Write an entry, or a block, of a diagonal in a row; nothing where the diagonal has none.

        Such a row is coupled to no other one.
        """
        view, tail = self._operand(number), self._kind.tail
        rows = view.shape[-tail]
        place = row - (self._rows - rows if number < len(self._kind.names) // 2 else 0)
        if 0 <= place < rows:
            if tail == 1:
                entry = view[..., place][None, None]
            else:
                entry = np.moveaxis(view[..., place, :, :], (-2, -1), (0, 1))
            missing = (None,) * (to.ndim - entry.ndim)
            self._target.write(to, entry[(slice(None), slice(None), *missing)])

    def _seen(self, view: Array, place: int = 0) -> Array:
        """Return an array in memory of the host, which the next call uses for another one.

        The allocation of new memory would take longer than the copy. `place`: which of three.
        """
        if not is_device_array(view):
            return view
        if self._memory[place].size < view.size:
            self._memory[place] = np.empty(view.size, view.dtype)
        seen = self._memory[place][: view.size].reshape(view.shape)
        cast(DeviceTarget, self._target).read(view, seen)
        return seen

    def _host(self, block: Array) -> Array:
        """Return a block of the target in the memory of the host."""
        if id(block) not in self._on_host:
            self._on_host[id(block)] = block, _host(self._target, block)
        return self._on_host[id(block)][1]

    def _operand(self, number: int) -> Array:
        operand = self._matrices.operands[number]
        assert operand is not None
        return operand

    @cached_property
    def _nothing(self) -> Array:
        """A zero that broadcasts to blocks."""
        return self._target.zeros((1,) * (2 + len(self.batch)), self.dtype)

    @cached_property
    def _minus_lower(self) -> Array | None:
        """The negative of the block before the separator, on a device."""
        return None if self._target.name == "cpu" else _minus(self._target, self.left(self._last))

    def _zero(self) -> Array:
        found = self._target.empty((self.side, self.side, *self.batch), self.dtype)
        self._target.write(found, self._nothing)
        return found

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
        return columns > 1 or not is_decided

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
        largest, least = _bounds(self._seen(coupling))
        if largest == 0:
            return None
        rows, ends, target = self._last, self._kind.ends, self._target
        eps = float(np.finfo(self.dtype).eps)

        def solved(part: slice, made: Factors | None, code: int) -> tuple[Array, bool]:
            count = part.stop - part.start
            rest = (self.side,) * (self._kind.tail > 1)
            right = target.zeros((self.side, *self.batch, count, *rest), self.dtype)
            place = self._at(right, 0 if is_left else count - ends)
            target.write(place, np.moveaxis(coupling, (1, 0), (0, -1)))
            if made is None and self.side <= _MOST_SOLVED:
                return right, self._solve(part, right, right, code, threads)
            made = self._factored(part, code, threads) if made is None else made
            return self._apply(made, right, right, threads), not len(made.singular.rows)

        def attempt(count: int) -> tuple[Spike, float, float]:
            part = slice(0, count) if is_left else slice(rows - count, rows)
            # Right for dominant and definite matrices; the solve of all rows refuses others.
            values, is_sound = solved(part, None, target.backend.PIVOTS["never"])
            spike = Spike(part, values)
            if not is_sound:
                return spike, 1.0, 1.0
            places = (0, count // 2, count - ends) if is_left else (count - ends, count // 2, 0)
            start, middle, end = (self._columns_at(values, place) for place in places)
            beyond = self.left(count) if is_left else self.right(part.start - ends)
            size = self.side * _largest(self._seen(end)) * _largest(self._seen(beyond))
            if size <= eps**2 * least:
                return spike, 0.0, 0.0
            if largest <= _ALIKE * least:
                start_size, middle_size = (_largest(self._seen(view)) for view in (start, middle))
                return spike, 1.0, middle_size / start_size if start_size else 1.0
            with np.errstate(all="ignore"):
                product = product_of(self._host(beyond), target.download(end))
                residual = _largest_ratio(product, self._host(coupling))
                if residual <= eps**2:
                    return spike, residual, 0.0
                decay = _largest_ratio(target.download(middle), target.download(start))
            return spike, residual, decay

        found = until_negligible(rows, eps, attempt)
        if found is not None:
            return found
        if self.factors is None and (self.side > _MOST_SOLVED or self._needs_factors(1, code)):
            self.factors = self._factored(self.interior, code, threads)
        return Spike(self.interior, solved(self.interior, self.factors, code)[0])

    def _ends_of(self, spike: Spike | None) -> list[Array | None]:
        """View l or u, (s, s, ...), in the first and in the last interior row; None for 0."""
        found: list[Array | None] = []
        for row in (0, self._last - self._kind.ends):
            if spike is None or not spike.rows.start <= row < spike.rows.stop:
                found.append(None)
            else:
                found.append(self._columns_at(spike.values, row - spike.rows.start))
        return found

    def _columns_at(self, values: Array, row: int) -> Array:
        """View the columns of l or u in a block row, or two rows: (s, s, ...)."""
        return np.moveaxis(self._at(values, row), (-1, 0), (0, 1))

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
    target : Target
        Where the ends are.
    spikes : list
        l and u, None for those that are 0.
    found : Coefficients
        Of all ranks.
    kept : list
        For each part of the right-hand sides the solution, its interior rows, and their g.
    sides : list of arrays
        g_0 and d of each part of the right-hand sides, (ranks, s, columns, ...).
    """

    target: Target
    spikes: list[Spike | None]
    found: Coefficients
    kept: list[tuple[Array, Array, Array]]
    sides: list[Array]

    def rhs(self, *, periodic: bool) -> list[Array]:
        """Return right-hand sides of the reduced system, (ranks, s, columns, ...)."""
        target, right = self.target, []
        for g, d in zip(self.sides[::2], self.sides[1::2], strict=True):
            to = target.packed(d)
            _less_next(target, to, d, self.found.c, g, periodic=periodic)
            right.append(to)
        return right

    def substitute(self, part: Part, solutions: Sequence[Array], rank: int) -> None:
        """Write the solutions of this rank, from those of the reduced system."""
        for (x, interior, g), ends in zip(self.kept, solutions, strict=True):
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
    of all ranks, if the matrices were eliminated. `keeps`: whether the part gets factors; then the
    ends are on the host.
    """
    operation, target, threads = call.kind.operation, part.target, call.options.threads
    shapes = [(part.side, part.side, *part.batch)] * NUMBERS if known is None else []
    for rhs, _ in parts:
        shapes += [(part.side, *part.batch_of(rhs))] * 2
    spikes, found = known or ([], None)
    kept, count = [], sum(map(prod, shapes))
    is_on_host = keeps or known is not None or not has_ends_on_devices(call, part, group.size)
    ends = None
    if not is_on_host:
        assert isinstance(target, DeviceTarget)
        ends = ends_of(group, operation, target, count * part.dtype.itemsize)
    with group._agreed_numbers(operation, count * is_on_host, part.dtype) as eliminated:
        mine = target.empty((1, count), part.dtype)
        numbers = [of_one[0] for of_one in unpacked(mine, shapes)]
        try:
            is_usable = known is not None or part.is_suited(call.code, threads, keeps=keeps)
            if is_usable and known is None:
                spikes = part.spikes(call.code, threads)
                with np.errstate(all="ignore"):
                    part.coefficients(spikes, Coefficients(*numbers[:NUMBERS]))
                numbers = numbers[NUMBERS:]
            for to, (rhs, x) in zip(_in_pairs(numbers), parts, strict=True) if is_usable else ():
                interior = part.interior_of(x)
                with np.errstate(all="ignore"):
                    g = part.reduce(rhs, interior, to, call.code, threads)
                if g is None:
                    is_usable = False
                    break
                kept.append((x, interior, g))
        except systems.ExchangesNeededError:
            is_usable = False
        if is_usable:
            eliminated.mine = _host(target, mine[0]) if is_on_host else np.empty(0, part.dtype)
    if eliminated.numbers is None:
        return None
    where, of_all = host_target() if is_on_host else target, eliminated.numbers
    if ends is not None:
        of_all = ends.allgather(mine[0])
    sides = unpacked(of_all, shapes)
    if found is None:
        found, sides = Coefficients(*sides[:NUMBERS]), sides[NUMBERS:]
    return Eliminated(where, spikes, found, kept, sides)


def _in_pairs(numbers: Sequence[Array]) -> list[tuple[Array, Array]]:
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def has_ends_on_devices(call: Call, part: Part, ranks: int) -> bool:
    """Whether the reduced systems are solved on the devices: not on one that is periodic."""
    is_ring = call.options.periodic and ranks > 2
    return part.are_all_on_devices and not is_ring


def _solve_by_ends(
    group: Group, call: Call, part: Part, parts: Sequence[tuple[Array, Array]]
) -> bool:
    """Solve by the partition method; False if the systems must be solved as whole lines."""
    left = eliminate(group, call, part, parts)
    if left is None:
        return False
    right = left.rhs(periodic=call.options.periodic)
    if left.target.name == "cpu":
        y = of_reduced(call, left.found, partial(_solved_on_host, call.kind.solve_blocks, right))
    else:
        y = _solved_on_device(call, left, right)
    if y is None:
        return False
    left.substitute(part, y, group.rank)
    return True


def _solved_on_device(call: Call, left: Eliminated, right: Sequence[Array]) -> list[Array] | None:
    """Return the solutions of the reduced systems; None if one is singular."""
    target = left.target
    blocks, _ = reduced_matrix(target, left.found, periodic=call.options.periodic)
    operands = tuple(np.moveaxis(block, (0, 1, 2), (-3, -2, -1)) for block in blocks)
    ranks, side = blocks[0].shape[:2]
    is_definite = call.found.matrices.definite
    code = target.backend.PIVOTS["never" if is_definite else "auto"]
    solutions = []
    for rhs in right:
        x = target.packed(rhs)
        matrices = Matrices(
            operation=call.kind.operation,
            side=side,
            rows=ranks,
            batch=rhs.shape[2:],
            dtype=np.dtype(rhs.dtype),
            names=("lower", "diag", "upper"),
            operands=operands,
            definite=is_definite,
        )
        own, to = (np.moveaxis(a, (0, 1), (-2, -1)) for a in (rhs, x))
        if len(systems.solve(target, matrices, own, to, code, call.options.threads).rows):
            return None
        solutions.append(x)
    return solutions


def _solved_on_host(
    solve: Callable[..., Array], right: Sequence[Array], *blocks: Array, **options: Any
) -> list[Array]:
    """Return the solutions of reduced systems for right-hand sides of `Eliminated.rhs`."""
    return in_parts(solve(*blocks, as_one(right), **options), right)


def as_one(right: Sequence[Array]) -> Array:
    """Return right-hand sides of reduced systems, (..., ranks, s, columns)."""
    return np.moveaxis(np.concatenate(right, 2), (0, 1, 2), (-3, -2, -1))


def in_parts(y: Array, right: Sequence[Array]) -> list[Array]:
    """Return solutions of right-hand sides that were `as_one`, (ranks, s, columns, ...)."""
    bounds = np.cumsum([d.shape[2] for d in right])[:-1]
    return np.split(np.moveaxis(y, (-3, -2, -1), (0, 1, 2)), bounds, 2)


def of_reduced(call: Call, found: Coefficients, make: Callable[..., Any]) -> Any:
    """Return what a function makes of the reduced matrix on the host; None if this fails."""
    blocks, is_ring = reduced_matrix(host_target(), found, periodic=call.options.periodic)
    if not all(np.isfinite(block).all() for block in blocks):
        return None
    options: dict[str, Any] = {"assume": call.options.assume, "periodic": is_ring}
    operands = (np.moveaxis(block, (0, 1, 2), (-3, -2, -1)) for block in blocks)
    try:
        return make(*operands, threads=call.options.threads or None, **options)
    except SingularSystemError:  # the same numbers on all ranks, and so the same outcome
        return None


def reduced_matrix(
    target: Target, found: Coefficients, *, periodic: bool
) -> tuple[list[Array], bool]:
    """Return the blocks of the reduced matrix, (ranks, s, s, ...), and whether it is periodic."""
    lower, diag, upper = found.a, target.packed(found.b), target.packed(found.u)
    zero = target.zeros((1,) * upper.ndim, upper.dtype)
    _less_next(target, diag, found.b, found.c, found.l, periodic=periodic)
    _less_next(target, upper, zero, found.c, found.u, periodic=periodic)
    ranks = len(lower)
    is_ring = periodic and ranks > 2
    if periodic and not is_ring:  # both neighbours are one rank
        one = np.ones((1,) * upper.ndim, upper.dtype)
        target.write_sum(upper, upper, [(lower, one)])
        lower = upper
    return [lower, diag, upper], is_ring


def _less_next(
    target: Target, to: Array, base: Array, c: Array, of: Array, *, periodic: bool
) -> None:
    """Write `base` less c times the number of the next rank, for each rank that has one."""
    target.write(to, base)
    count = len(c) if periodic else len(c) - 1
    minus = None if target.name == "cpu" else _minus(target, c[:count])
    with np.errstate(all="ignore"):
        for rank in range(count):
            own, less = to[rank], None if minus is None else minus[rank]
            less_product(target, own, own, c[rank], of[(rank + 1) % len(c)], less)


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
    """Return products of blocks (s, s, ...) of the host, and blocks or columns (s, columns, ...).

    Products of small blocks are sums of arrays, which many systems share.
    """
    side = len(a)
    if side > _MOST_SUMS:
        one, other = (np.ascontiguousarray(np.moveaxis(v, (0, 1), (-2, -1))) for v in (a, b))
        return np.moveaxis(one @ other, (-2, -1), (0, 1))
    columns = _columns_of(a, b)
    total = columns[0] * b[0]
    for k in range(1, side):
        total += columns[k] * b[k]
    return total


def less_product(
    target: Target, to: Array, base: Array, a: Array, b: Array, minus: Array | None = None
) -> None:
    """Write `base` less a product, as of `product_of`, where the operands are used.

    `minus`: -a on a device, if it is known.
    """
    if target.name == "cpu":
        np.subtract(base, product_of(a, b), out=to)
        return
    columns = _columns_of(_minus(target, a) if minus is None else minus, b)
    target.write_sum(to, base, [(column, b[k][None]) for k, column in enumerate(columns)])


def _columns_of(a: Array, b: Array) -> list[Array]:
    """View the columns of blocks with the axes of a product with b."""
    more = (None,) * (b.ndim + 1 - a.ndim)
    return [a[(slice(None), k, *more)] for k in range(len(a))]


def _minus(target: Target, a: Array) -> Array:
    """Return -a, where a is."""
    if not is_device_array(a):
        return np.asarray(-a)
    found = target.zeros(a.shape, a.dtype)
    target.write_sum(found, found, [(a, -np.ones((1,) * a.ndim, a.dtype))])
    return found


def _host(target: Target, a: Array) -> Array:
    """Return an array in the memory of the host."""
    return target.download(a) if is_device_array(a) else a


def _is_dominant(lower: Array, diag: Array, upper: Array) -> bool:
    """Whether ||D^-1|| (||L|| + ||U||) <= 1 in rows, with the largest row sum as norm.

    Or whether each scalar row is dominant, which is also enough. Blocks (s, s, ...).
    """
    with np.errstate(all="ignore"):
        pivots = 2 * np.abs(np.moveaxis(np.diagonal(diag), -1, 0))
        if (pivots >= sum(np.abs(a).sum(1) for a in (lower, diag, upper))).all():
            return True
        try:
            inverse = np.linalg.inv(np.moveaxis(diag, (0, 1), (-2, -1)))
        except np.linalg.LinAlgError:
            return False
        left, right = (np.abs(a).sum(1).max(0) for a in (lower, upper))
        return bool((np.abs(inverse).sum(-1).max(-1) * (left + right) <= 1).all())


def _largest(a: Array) -> float:
    """Return the largest magnitude, NaN if there is one, without copies of real numbers."""
    if a.dtype.kind == "c":
        return float(np.abs(a).max(initial=0))
    return float(np.maximum(a.max(initial=0), -a.min(initial=0)))


def _bounds(blocks: Array) -> tuple[float, float]:
    """Return the largest and the least norm of blocks (s, s, ...)."""
    flat = _flat(blocks)
    norms = [
        np.abs(flat[..., start : start + _SLICE]).max((0, 1))
        for start in range(0, flat.shape[2], _SLICE)
    ]
    return float(np.max([own.max() for own in norms])), float(np.min([own.min() for own in norms]))


def _flat(blocks: Array) -> Array:
    """View blocks (s, s, ...) with one axis for the batch."""
    return blocks.reshape(*blocks.shape[:2], -1)


def _largest_ratio(parts: Array, wholes: Array) -> float:
    """Return the largest norm of a block over that of another one, 1 if one is not finite."""
    own, whole = (np.abs(a).max((0, 1)) for a in (parts, wholes))
    ratios = np.where(np.equal(whole, 0), 0, own / whole)
    return float(ratios.max()) if np.isfinite(ratios).all() else 1.0
