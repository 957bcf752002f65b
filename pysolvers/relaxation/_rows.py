"""Rows of a red-black grid that one rank of a group relaxes.

An iteration relaxes the red nodes, then the black ones, so that a node depends on nodes two rows
away. Each rank therefore holds two rows of its neighbours at every cut, relaxes the inner one of
them as well, and gets both anew after the iteration. On a device it makes d iterations between two
exchanges and holds 2 d rows: after k iterations the outer 2 k of them are not those of one process.
The first row that a rank holds has an even number in the whole grid, so that the colours are those
of the whole: below a cut there can be one row more. The own rows have the same bits as with one
process.

A measured iteration counts the own rows only, whose residuals and changes are those of one process,
and the ranks combine one number each.

Words per node and iteration: those of the iteration with one process; 2 exchanged rows per cut.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from .._runtime.backends import parse_device
from .._runtime.fields import Fields
from ..distributed import Border, Group, Layers, Slab, layers_of

__all__ = ["SplitRows"]

Array = NDArray[Any]

_REACH = 2  # rows that an iteration depends on
_LEAST = 3  # rows of a rank: as many as its neighbours can hold of them
# Iterations between two exchanges on a device, if the ranks have rows for them. An exchange and the
# start of a call take the time of several iterations: with 8 iterations between two exchanges, two
# H100 took 0.283 ms per iteration of 8192 x 8192 nodes in float64, and one 0.294 ms. A rank holds
# 64 more rows at a cut for 32 iterations, 1.6 % of its 4096. The rows that are exchanged per
# iteration are as many with any number.
_ON_DEVICE = 32
_PAIRS = 8  # iterations of two blocked sweeps, after which the field is in its place


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
        #: Iterations between two exchanges.
        self.depth = _iterations(least, on_device=parse_device(device)[0] != "cpu")
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
        #: First and number of the own interior rows: those that a measurement counts.
        self.counted = self._counted_rows() if group.size > 1 else (0, 0)
        self._interior = rows - 2 * (1 - frame)
        self._reach = reach

    def _counted_rows(self) -> tuple[int, int]:
        held = self.held.stop - self.held.start
        first, last = max(self.own.start, 1), min(self.own.stop, held - 1)
        return first, last - first

    def layers(self, state: Fields, like: Array) -> Layers:
        """Return the rows of the neighbours in packed fields of a state; collective.

        Parameters
        ----------
        state : Fields
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

    def join(self, measure: float, norm: str) -> float:
        """Return the norm over all rows from those of the ranks over their own rows; collective."""
        if self.group.size == 1:
            return measure
        squares = measure * measure * self.counted[1]  # of the nodes of a row on average
        own = np.array(measure if norm == "max" else squares)
        every = self.group.allgather(self._operation, own)
        return float(every.max() if norm == "max" else np.sqrt(every.sum() / self._interior))


def _iterations(least: int, *, on_device: bool) -> int:
    """Return the number of iterations between two exchanges if a rank has `least` rows."""
    if not on_device:
        return 1
    most = min(_ON_DEVICE, (least - 1) // _REACH)
    return most - most % _PAIRS if most > _PAIRS else most
