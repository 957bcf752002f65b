"""A field of two axes, divided over the ranks by rows or by columns.

A sweep along an axis needs complete lines. Rows of complete lines along x and columns of complete
lines along y are exchanged for each other in one message from each rank to each other one.

Words per node and exchange: (size - 1)/size over the link, and the copies of _exchange.py.
"""

from .._runtime.fields import Fields, Index
from ._exchange import Exchange, exchange_of
from ._group import Group
from ._slab import Slab


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

    to_columns: Exchange
    """Sets the columns of each rank, all rows of them, from the rows of all ranks."""
    to_rows: Exchange
    """Sets the rows of each rank, all columns of them, from the columns of all ranks."""

    def __init__(self, group: Group, shape: tuple[int, int], operation: str) -> None:
        self._group, self._operation = group, operation
        #: Rows and columns of each rank.
        self.rows, self.columns = (
            [Slab(axis).part(shape[axis], rank, group.size) for rank in range(group.size)]
            for axis in (0, 1)
        )

    def connect(self, rows: Fields, columns: Fields, name: str) -> None:
        """Find how a field travels; collective.

        Parameters
        ----------
        rows, columns : Fields
            Where the field lies with axes (1, y, x): the rows, and the columns of this rank.
        name : str
            The field.

        Raises
        ------
        BackendError
            If none of the links of the group is possible.
        """
        # Of the rows of this rank the columns of each other one, and the other way round.
        by_columns: dict[int, list[Index]] = {
            rank: [(slice(None), slice(None), held)] for rank, held in enumerate(self.columns)
        }
        by_rows: dict[int, list[Index]] = {
            rank: [(slice(None), held)] for rank, held in enumerate(self.rows)
        }
        where = self._group, self._operation
        self.to_columns = exchange_of(*where, rows, columns, by_columns, by_rows, name)
        self.to_rows = exchange_of(*where, columns, rows, by_rows, by_columns, name)
