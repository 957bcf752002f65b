"""Rows of a red-black grid that one rank of a group relaxes.

An iteration relaxes the red nodes, then the black ones, so that a node depends on nodes two rows
away. Each rank therefore holds two rows of its neighbours at every cut, relaxes the inner one of
them as well, and gets both anew after the iteration. On a device, where an exchange takes as long
as several iterations of a small field, it holds as many rows as some iterations need. The first row
that it holds has an even number in the whole grid, so that the colours are those of the whole:
below a cut there can be one row more. The field has the same bits as with one process.

Words per node and iteration: those of the iteration with one process; 2 exchanged rows per cut. An
iteration that is measured moves the own rows to the host, before and after it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from .._runtime.backends import parse_device
from .._runtime.state import State
from ..distributed import Border, Group, Layers, Slab, layers_of
from ._colours import ColourGrid

__all__ = ["SplitRows"]

Array = NDArray[Any]

_REACH = 2  # rows that an iteration depends on
_LEAST = 3  # rows of a rank: as many as its neighbours can hold of them
_ON_DEVICE = 8  # iterations between two exchanges on a device, if the ranks have rows for them


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
    device : str or None
        As in `solve_tridiagonal`.
    frame : {0, 1}, default: 0
        Number of further rows before the first and after the last one, which belong to the first
        and to the last rank.
    """

    def __init__(
        self,
        group: Group,
        split: Slab,
        rows: int,
        operation: str,
        device: str | None,
        *,
        frame: int = 0,
    ) -> None:
        require(split.of(2) == 0, "split must be Slab(0), the axis of the rows", split)
        self.group, self._operation = group, operation
        #: Number of rows that are split.
        self.total = rows
        parts = [split.part(rows, rank, group.size) for rank in range(group.size)]
        least = min(part.stop - part.start for part in parts)
        require(least >= _LEAST, f"every rank needs at least {_LEAST} rows of nodes", least)
        most = _ON_DEVICE if parse_device(device)[0] != "cpu" else 1
        #: Iterations between two exchanges.
        self.depth = min(most, (least - 1) // _REACH)
        reach = _REACH * self.depth
        #: Numbers of the own rows among those that are split.
        self.part = parts[group.rank]
        last = group.size - 1
        parts = [
            slice(p.start + frame * (rank > 0), p.stop + frame * (1 + (rank == last)))
            for rank, p in enumerate(parts)
        ]
        part = parts[group.rank]
        self._below = [reach + p.start % 2 if rank else 0 for rank, p in enumerate(parts)]
        below = self._below[group.rank]
        above = reach if group.rank < last else 0
        #: Numbers of all rows that this rank holds, in the whole grid with its frame.
        self.held = slice(part.start - below, part.stop + above)
        #: The own rows among those that are held, with the frame.
        self.own = slice(below, below + part.stop - part.start)
        #: The same without the frame.
        self.inner = slice(
            self.own.start + frame * (group.rank == 0), self.own.stop - frame * (group.rank == last)
        )
        self._reach = reach
        self._inside: Array = np.zeros(0, bool)
        self._gain: Array = np.zeros(0)
        self._nodes = 0

    def set_gain(self, gain: Array, grid: ColourGrid) -> None:
        """Take what an iteration multiplies residuals by: a whole field, 0 where none is."""
        self._nodes = int(np.count_nonzero(gain))
        packed = grid.pack(gain[self.held], gain.dtype)[:, self.own]
        self._inside = packed != 0
        self._gain = packed[self._inside]

    def layers(self, state: State, like: Array) -> Layers:
        """Return the rows of the neighbours in packed fields of a state; collective.

        Parameters
        ----------
        state : State
            The fields.
        like : array, shape (2, rows, pitch)
            An array of shape and dtype of the fields; its elements are not read.
        """
        rank, own, every = self.group.rank, self.own, slice(None)
        borders = []
        if rank > 0:
            sent = slice(own.start, own.start + self._reach)
            borders.append(Border(0, rank - 1, (every, sent), (every, slice(own.start))))
        if rank < self.group.size - 1:
            sent = slice(own.stop - self._below[rank + 1], own.stop)
            received = slice(own.stop, like.shape[1])
            borders.append(Border(1, rank + 1, (every, sent), (every, received)))
        return layers_of(self.group, self._operation, state, borders, like)

    @property
    def own_part(self) -> tuple[slice, slice]:
        """The own rows of a packed field, with the frame."""
        return slice(None), self.own

    def measure(self, before: Array, after: Array, criterion: str, norm: str) -> float:
        """Return what a stop test measures at the nodes of all ranks.

        `before` and `after` have the own rows of the field before and after an iteration.
        """
        values = after[self._inside]
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
