"""Rows of a red-black grid that one rank of a group relaxes.

An iteration relaxes the red nodes, then the black ones, so that a node depends on nodes two rows
away. Each rank therefore holds two rows of its neighbours at every cut, relaxes the inner one of
them as well, and gets both anew after the iteration. The first row that it holds has an even number
in the whole grid, so that the colours are those of the whole: below a cut these are two or three
rows. The field has the same bits as with one process.

Words per node and iteration: those of the iteration with one process; 2 exchanged rows per cut.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from ..distributed import Group, Slab
from ._colours import ColourGrid

__all__ = ["SplitRows"]

Array = NDArray[Any]

_REACH = 2  # rows that an iteration depends on
_LEAST = 3  # rows of a rank: as many as its neighbours can hold of them


class SplitRows:
    """The rows of one rank, and those that it holds of its neighbours.

    Parameters
    ----------
    group : Group
        The ranks.
    split : Slab
        The axis of the rows.
    rows : int
        Number of rows that are split.
    operation : str
        Of the caller, for messages.
    frame : {0, 1}, default: 0
        Number of further rows before the first and after the last one, which belong to the first
        and to the last rank.
    """

    def __init__(
        self, group: Group, split: Slab, rows: int, operation: str, *, frame: int = 0
    ) -> None:
        require(split.of(2) == 0, "split must be Slab(0), the axis of the rows", split)
        self.group, self._operation = group, operation
        #: Number of rows that are split.
        self.total = rows
        parts = [split.part(rows, rank, group.size) for rank in range(group.size)]
        least = min(part.stop - part.start for part in parts)
        require(least >= _LEAST, f"every rank needs at least {_LEAST} rows of nodes", least)
        #: Numbers of the own rows among those that are split.
        self.part = parts[group.rank]
        last = group.size - 1
        parts = [
            slice(p.start + frame * (rank > 0), p.stop + frame * (1 + (rank == last)))
            for rank, p in enumerate(parts)
        ]
        part = parts[group.rank]
        self._below = [_REACH + p.start % 2 if rank else 0 for rank, p in enumerate(parts)]
        below = self._below[group.rank]
        above = _REACH if group.rank < last else 0
        #: Numbers of all rows that this rank holds, in the whole grid with its frame.
        self.held = slice(part.start - below, part.stop + above)
        #: The own rows among those that are held, with the frame.
        self.own = slice(below, below + part.stop - part.start)
        #: The same without the frame.
        self.inner = slice(
            self.own.start + frame * (group.rank == 0), self.own.stop - frame * (group.rank == last)
        )
        self._inside: Array = np.zeros(0, bool)
        self._gain: Array = np.zeros(0)
        self._nodes = 0

    def set_gain(self, gain: Array, grid: ColourGrid) -> None:
        """Take what an iteration multiplies residuals by: a whole field, 0 where none is."""
        self._nodes = int(np.count_nonzero(gain))
        packed = grid.pack(gain[self.held], gain.dtype)[:, self.own]
        self._inside = packed != 0
        self._gain = packed[self._inside]

    def refresh(self, field: Array) -> None:
        """Exchange rows of a packed field, shape (2, rows, pitch)."""
        rank, own = self.group.rank, field[:, self.own]
        sends, receives, targets = {}, {}, {}
        if rank > 0:
            sends[rank - 1] = np.ascontiguousarray(own[:, :_REACH])
            targets[rank - 1] = field[:, : self.own.start]
        if rank < self.group.size - 1:
            sends[rank + 1] = np.ascontiguousarray(own[:, -self._below[rank + 1] :])
            targets[rank + 1] = field[:, self.own.stop :]
        receives = {there: np.empty(rows.shape, rows.dtype) for there, rows in targets.items()}
        self.group.exchange(self._operation, sends, receives)
        for there, rows in targets.items():
            rows[...] = receives[there]

    def measure(self, before: Array, field: Array, criterion: str, norm: str) -> float:
        """Return what a stop test measures at the nodes of all ranks.

        `before` has the own rows of the field before an iteration.
        """
        values = field[:, self.own][self._inside]
        with np.errstate(all="ignore"):  # of an iteration that diverges
            if criterion != "solution":
                values = values - before[self._inside]
            if criterion == "residual":
                values = values / self._gain
            return self._norm(values, norm)

    def _norm(self, values: Array, norm: str) -> float:
        """Return the largest magnitude or the root mean square of the values of all ranks."""
        if norm == "max":
            own = np.abs(values).max(initial=0.0)
            return float(self.group.allgather(self._operation, own).max())
        own = np.sum(np.square(values, dtype=float))
        total = self.group.allgather(self._operation, own).sum()
        return float(np.sqrt(total / self._nodes))
