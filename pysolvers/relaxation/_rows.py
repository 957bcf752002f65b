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
        Number of rows of the whole grid, boundary included.
    operation : str
        Of the caller, for messages.
    """

    def __init__(self, group: Group, split: Slab, rows: int, operation: str) -> None:
        require(split.of(2) == 0, "split must be Slab(0), the axis of the rows", split)
        self.group, self._operation = group, operation
        parts = [split.part(rows, rank, group.size) for rank in range(group.size)]
        least = min(part.stop - part.start for part in parts)
        require(least >= _LEAST, f"every rank needs at least {_LEAST} rows of nodes", least)
        #: Numbers of the own rows in the whole grid.
        self.part = part = parts[group.rank]
        self._below = [_REACH + p.start % 2 if rank else 0 for rank, p in enumerate(parts)]
        below = self._below[group.rank]
        above = _REACH if group.rank < group.size - 1 else 0
        #: Numbers of all rows that this rank holds.
        self.held = slice(part.start - below, part.stop + above)
        #: Whether the places of a packed field are nodes inside the boundary of the whole grid.
        self.inside: Array = np.zeros(0, bool)
        #: The own rows among those that are held.
        self.own = slice(below, below + part.stop - part.start)

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

    def measure(self, values: Array, norm: str, nodes: int) -> float:
        """Return the largest magnitude or the root mean square of the values of all ranks."""
        if norm == "max":
            own = np.abs(values).max(initial=0.0)
            return float(self.group.allgather(self._operation, own).max())
        with np.errstate(over="ignore"):  # of an iteration that diverges
            own = np.sum(np.square(values, dtype=float))
            total = self.group.allgather(self._operation, own).sum()
        return float(np.sqrt(total / nodes))
