"""Solution of split lines as whole lines: each rank gets a share of them, complete.

All parts of a line go to one rank, which solves it as on one device; the parts of the solution go
back. Systems that are not diagonally dominant need this: rows are exchanged across the ranks, and
the rows that one rank holds can be singular although the system is not. It also gives the row of
a zero pivot in the order of elimination of one device.

Words per unknown: 5 through the network (4 there, 1 back), in addition to those of the solve.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._runtime.arrays import Shape
from .._runtime.targets import Target
from ._group import Group

Array = NDArray[Any]


_DIAGONALS = 3


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
        lower, diag and upper, and further operands, which have rows for each line; the rows last.
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
    with group.agreement(operation) as gathered:
        parts = [_whole_rows(target, shape, k, v) for k, v in enumerate(views[:_DIAGONALS])]
        gathered.own = [(len(part) == 1, part.dtype) for part in parts]
        others = [target.download(v).reshape(-1, shape.rows) for v in views[_DIAGONALS:]]
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
