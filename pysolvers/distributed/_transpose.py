"""A field of two axes, divided over the ranks by rows or by columns.

A sweep along an axis needs complete lines. Rows of complete lines along x and columns of complete
lines along y are exchanged for each other in one message from each rank to each other one.

Words per node and exchange: (size - 1)/size through the network, and two copies in memory.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._group import Group
from ._slab import Slab

__all__ = ["Transposition"]

Array = NDArray[Any]


class Transposition:
    """How the nodes of a field are divided by rows, and by columns.

    Parameters
    ----------
    group : Group
        The ranks.
    shape : (int, int)
        Number of rows and of columns; each at least the number of ranks.
    operation : str
        Of the caller, for messages.
    """

    def __init__(self, group: Group, shape: tuple[int, int], operation: str) -> None:
        self._group, self._operation = group, operation
        #: Rows and columns of each rank.
        self.rows, self.columns = (
            [Slab(axis).part(shape[axis], rank, group.size) for rank in range(group.size)]
            for axis in (0, 1)
        )

    def to_columns(self, rows: Array, columns: Array) -> None:
        """Set the columns of this rank, all rows of them, from the rows of all ranks."""
        sends = {r: np.ascontiguousarray(rows[:, held]) for r, held in enumerate(self.columns)}
        self._group.exchange(
            self._operation, sends, {r: columns[held] for r, held in enumerate(self.rows)}
        )

    def to_rows(self, columns: Array, rows: Array) -> None:
        """Set the rows of this rank, all columns of them, from the columns of all ranks."""
        found = {
            r: np.empty((len(rows), held.stop - held.start), rows.dtype)
            for r, held in enumerate(self.columns)
        }
        self._group.exchange(
            self._operation, {r: columns[held] for r, held in enumerate(self.rows)}, found
        )
        for r, held in enumerate(self.columns):
            rows[:, held] = found[r]
