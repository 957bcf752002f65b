"""Solution of split lines as whole lines: each rank gets a share of them, complete.

All parts of a line go to one rank, which solves it as on one device; the parts of the solution go
back. Systems that are not diagonally dominant need this: rows are exchanged across the ranks, and
the rows that one rank holds can be singular although the system is not. It also gives the row of
a zero pivot in the order of elimination of one device.

Words per unknown: 5 through the network (4 there, 1 back), in addition to those of the solve.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._options import SolveInfo
from .._runtime.lines import Shape
from .._runtime.singular import Singular
from .._runtime.targets import Target
from ._group import Group
from ._systems import failures_of, numbered

Array = NDArray[Any]


_DIAGONALS = 3
_COUNTS = ("pivoted", "repeated")


def whole_lines(
    group: Group,
    operation: str,
    target: Target,
    shape: Shape,
    views: Sequence[Array],
    sizes: Sequence[int],
) -> tuple["Shares", list[Array], bool]:
    """Share out the lines, and return what this rank has of them, in host memory; collective.

    Parameters
    ----------
    group, operation
        As of `Shares`.
    target : Target
        Where the operands are.
    shape : Shape
        Of the rows of this rank.
    views : sequence of array
        lower, diag and upper, and further operands, which broadcast to all lines; the rows last.
    sizes : sequence of int
        Number of rows of each rank.

    Returns
    -------
    shares : Shares
        The shares; of one line, if there is nothing but one matrix for all lines.
    lines : list of array
        Complete operands: (lines of the share, n), or (1, n) for a diagonal that all lines have.
    is_shared : bool
        Whether there is one line, which every rank has.
    """
    full = (*shape.batch, shape.rows)
    with group.agreement(operation) as gathered:
        parts = [_whole_rows(target, shape, k, v) for k, v in enumerate(views[:_DIAGONALS])]
        gathered.own = [(len(part) == 1, part.dtype) for part in parts]
        downloaded = (np.broadcast_to(target.download(v), full) for v in views[_DIAGONALS:])
        others = [part.reshape(-1, shape.rows) for part in downloaded]
    forms = [tuple(zip(*found, strict=True)) for found in zip(*gathered.found, strict=True)]
    are_one = [all(is_one) for is_one, _ in forms]
    is_shared = all(are_one) and not others
    shares = Shares(group, operation, sizes, 1 if is_shared else prod(shape.batch))
    lines = []
    for part, is_one, (_, dtypes) in zip(parts, are_one, forms, strict=True):
        # Not all ranks make a real matrix complex: it depends on strides.
        alike = part.astype(np.result_type(*dtypes), copy=False)
        lines.append(shares.to_lines(alike, is_shared=is_one))
    return shares, lines + [shares.to_lines(other) for other in others], is_shared


def _whole_rows(target: Target, shape: Shape, k: int, view: Array) -> Array:
    """Return diagonal k of lower, diag and upper: (lines, rows), or (1, rows), in host memory.

    `view` has the rows last, and broadcasts to the batch of `shape`.
    """
    part = target.download(view)
    if shape.short[k]:
        missing = np.zeros((*part.shape[:-1], 1), part.dtype)
        part = np.concatenate([missing, part] if k == 0 else [part, missing], axis=-1)
    batch = (1,) if prod(view.shape[:-1]) == 1 else shape.batch
    part = part.reshape(1, -1) if batch == (1,) else part
    return np.array(np.broadcast_to(part, (*batch, shape.rows))).reshape(-1, shape.rows)


def solve_whole_lines(
    group: Group,
    operation: str,
    target: Target,
    shape: Shape,
    views: Sequence[Array],
    x: Array,
    sizes: Sequence[int],
    solve: Callable[[list[Array]], tuple[Array, SolveInfo]],
    *,
    periodic: bool,
    names: Sequence[str],
    explains: bool = True,
) -> tuple[SolveInfo, dict[str, int], Singular]:
    """Solve every line on one rank, as on one device, and write the part of this rank; collective.

    Parameters
    ----------
    group, operation, target, shape, views, sizes
        As of `whole_lines`.
    x : array
        Where the part of the solution of this rank is written, the rows last.
    solve : callable
        Solves complete lines of the host, without an error for singular systems.
    periodic : bool
        Whether the first entry of ``lower`` and the last one of ``upper`` count.
    names : sequence of str
        Names of the diagonals in messages.
    explains : bool
        Whether an entry of the diagonals that is not finite is why a system is singular.

    Returns
    -------
    info : SolveInfo
        That of the lines of this rank.
    counts : dict of str to int
        Counts of all ranks.
    singular : Singular
        The singular systems of all ranks.
    """
    shares, lines, _ = whole_lines(group, operation, target, shape, views, sizes)
    with group.agreement(operation) as done:
        solution, info = solve(lines)
        counted = {key: getattr(info, key) or 0 for key in _COUNTS}
        own = info, lines[:_DIAGONALS] if explains else (), shares.own.start
        done.own = failures_of(*own, periodic=periodic, names=names), counted
    part = shares.from_lines(solution).reshape(*shape.batch, shape.rows)
    with group.agreement(operation):
        target.write(x, target.upload(part))
    failed, counts = zip(*done.found, strict=True)
    total = {key: sum(own[key] for own in counts) for key in _COUNTS}
    return info, total, numbered(failed, shape.batch)


class Shares:
    """How lines are shared out; lines are numbered over the batch in C order.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    rows : sequence of int
        Number of rows that each rank holds of every line.
    lines : int
        Number of lines.
    """

    def __init__(self, group: Group, operation: str, rows: Sequence[int], lines: int) -> None:
        self._group, self._operation, self._rows = group, operation, rows
        self._bounds = [lines * rank // group.size for rank in range(group.size + 1)]
        self._starts = np.cumsum([0, *rows])

    @property
    def own(self) -> range:
        """The lines of this rank."""
        return self._share(self._group.rank)

    def to_lines(self, part: Array, *, is_shared: bool = False) -> Array:
        """Return the complete lines of this rank, shape (lines of the share, ..., n).

        `part` has the rows of this rank of all lines, shape (lines, ..., rows), or of one line
        that stands for all. Then, if `is_shared`, on all ranks, this line is returned once.
        """
        if not is_shared:
            part = np.broadcast_to(part, (self._bounds[-1], *part.shape[1:]))
        ranks = range(self._group.size)
        count = 1 if is_shared else len(self.own)
        found = {
            rank: np.empty((count, *part.shape[1:-1], self._rows[rank]), part.dtype)
            for rank in ranks
        }
        sends = {}
        for rank in ranks:
            share = self._share(rank)
            own = part if is_shared else part[share.start : share.stop]
            sends[rank] = np.ascontiguousarray(own)
        self._group.exchange(self._operation, sends, found)
        return np.concatenate([found[rank] for rank in ranks], axis=-1)

    def from_lines(self, lines: Array) -> Array:
        """Return the rows of this rank of all lines, from the complete lines of each rank."""
        ranks = range(self._group.size)
        starts = self._starts
        sends = {r: np.ascontiguousarray(lines[..., starts[r] : starts[r + 1]]) for r in ranks}
        own = self._rows[self._group.rank]
        found = np.empty((self._bounds[-1], *lines.shape[1:-1], own), lines.dtype)
        parts = {r: found[self._share(r).start : self._share(r).stop] for r in ranks}
        self._group.exchange(self._operation, sends, parts)
        return found

    def _share(self, rank: int) -> range:
        """Return the numbers of the lines of a rank."""
        return range(self._bounds[rank], self._bounds[rank + 1])
