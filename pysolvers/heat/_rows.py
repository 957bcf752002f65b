"""Rows of a field that the ranks hold: their halo, sums over all of them, and whole lines.

A row is all nodes at one place along the first axis of the field. Rank 0 holds the first rows, the
next rank the next ones, and so on. An array of a rank has its own rows, and where it is extended
also a halo of one row of each neighbour.

Words moved per node: 1/m for a halo, m the rows of a rank; 2 through the network and 6 in memory
for whole lines and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributed import Group
from ..distributed._halo import faces_of, refresh_halo
from ._levels import in_order

Array = NDArray[Any]


class Rows:
    """The rows of each rank.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    starts : sequence of int
        Number of the first row of each rank, and the number of rows.
    wraps : bool
        Whether the first row follows the last one.
    """

    def __init__(self, group: Group, operation: str, starts: Sequence[int], wraps: bool) -> None:
        self.group, self.operation, self.wraps = group, operation, wraps
        self.starts = tuple(starts)
        rank, size = group.rank, group.size
        #: The own rows: from `start` up to `stop`, of `count`.
        self.start, self.stop, self.count = self.starts[rank], self.starts[rank + 1], starts[-1]
        #: Rows of the rank before and of the next one in an extended array.
        self.halo = (
            int(size > 1 and (wraps or rank > 0)),
            int(size > 1 and (wraps or rank < size - 1)),
        )

    @property
    def sizes(self) -> list[int]:
        """Number of rows of each rank."""
        return np.diff(self.starts).tolist()

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Numbers of the rows of an extended array."""
        before, after = self.halo
        return np.arange(self.start - before, self.stop + after) % self.count

    def coarser(self) -> Rows:
        """Return the rows of even numbers, and the last one unless the axis is periodic."""
        starts = [(start + 1) // 2 for start in self.starts]
        if not self.wraps:
            starts[-1] = self.count // 2 + 1
        return Rows(self.group, self.operation, starts, self.wraps)

    def own(self, extended: Array) -> Array:
        """Return the own rows of an extended array: a view."""
        before, after = self.halo
        return extended[before : len(extended) - after]

    def padded(self, own: Array) -> Array:
        """Return an extended array whose halo is 0."""
        before, after = self.halo
        extended = np.zeros((before + len(own) + after, *own.shape[1:]), own.dtype)
        self.own(extended)[...] = own
        return extended

    def extended(self, own: Array) -> Array:
        """Return an array with its halo; collective."""
        extended = self.padded(own)
        self.refresh(extended)
        return extended

    def refresh(self, extended: Array) -> None:
        """Exchange the halo of an array; collective."""
        faces = faces_of(self.group, 0, len(extended), self.halo)
        refresh_halo(self.group, self.operation, faces, extended)

    def joined(self, own: Array) -> Array:
        """Return the rows of all ranks; collective."""
        whole = np.empty((self.count, *own.shape[1:]), own.dtype)
        parts = {rank: whole[a:b] for rank, (a, b) in enumerate(self._bounds())}
        self.group.exchange(self.operation, dict.fromkeys(parts, np.ascontiguousarray(own)), parts)
        return whole

    def total(self, sums: Array, first: int = 0, end: int | None = None) -> list[float]:
        """Return sums over the rows `first` to `end` - 1 of all ranks; collective.

        `sums`, shape (number of sums, rows, ...), has those of the own rows. They are added in the
        order of the whole field.
        """
        end = self.count if end is None else end
        each = [max(0, min(b, end) - max(a, first)) for a, b in self._bounds()]
        found = {q: np.empty((len(sums), n, *sums.shape[2:])) for q, n in enumerate(each)}
        mine = np.ascontiguousarray(sums, np.float64)
        self.group.exchange(self.operation, dict.fromkeys(found, mine), found)
        whole = np.concatenate(list(found.values()), axis=1)
        return [in_order(values.ravel()) for values in whole]

    def largest(self, values: Sequence[float]) -> list[float]:
        """Return the largest of the numbers of all ranks; collective."""
        mine = np.array(values, np.float64)
        return self.group.allgather(self.operation, mine).max(axis=0).tolist()

    def to_lines(self, own: Array) -> Array:
        """Return whole lines through the rows, shape (rows, lines of this rank); collective.

        The lines are numbered in the order of a row, and each rank has consecutive ones.
        """
        flat = own.reshape(len(own), -1)
        whole = np.empty((self.count, self.lines_of(flat.shape[1])), own.dtype)
        self.group.exchange(
            self.operation,
            {q: np.ascontiguousarray(flat[:, at]) for q, at in self._shares(flat.shape[1])},
            {q: whole[a:b] for q, (a, b) in enumerate(self._bounds())},
        )
        return whole

    def from_lines(self, whole: Array, own: Array, at: tuple[slice, ...]) -> None:
        """Set own rows from the whole lines of all ranks, at some nodes; collective."""
        shares = self._shares(prod(own.shape[1:]))
        parts = {
            q: np.empty((len(own), len(range(at.start, at.stop))), own.dtype) for q, at in shares
        }
        self.group.exchange(
            self.operation, {q: whole[a:b] for q, (a, b) in enumerate(self._bounds())}, parts
        )
        flat = np.concatenate(list(parts.values()), axis=1)
        own[at] = flat.reshape(own.shape)[at]

    def lines_of(self, count: int) -> int:
        """Return how many of the lines through the rows this rank has."""
        share = dict(self._shares(count))[self.group.rank]
        return share.stop - share.start

    def _shares(self, count: int) -> list[tuple[int, slice]]:
        """Return each rank with the numbers of the lines that it solves."""
        size = self.group.size
        return [(q, slice(count * q // size, count * (q + 1) // size)) for q in range(size)]

    def _bounds(self) -> list[tuple[int, int]]:
        """Return the first row of each rank, and the end."""
        return list(zip(self.starts, self.starts[1:], strict=False))
