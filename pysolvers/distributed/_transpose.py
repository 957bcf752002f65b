"""A field of two axes, divided over the ranks by rows or by columns.

A sweep along an axis needs complete lines. Rows of complete lines along x and columns of complete
lines along y are exchanged for each other in one message from each rank to each other one.

Words per node and exchange: (size - 1)/size over the link, and the copies of _exchange.py.
"""

from collections.abc import Sequence

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
    operation : str
        Of the caller, for messages.
    rows, columns : sequence of slice
        Those of each rank.
    axes : (int, int), default: (1, 2)
        The axes of the arrays along which rows, and columns, follow each other.
    """

    to_columns: Exchange
    """Sets the columns of each rank, all rows of them, from the rows of all ranks."""
    to_rows: Exchange
    """Sets the rows of each rank, all columns of them, from the columns of all ranks."""

    def __init__(
        self,
        group: Group,
        operation: str,
        rows: Sequence[slice],
        columns: Sequence[slice],
        axes: tuple[int, int] = (1, 2),
    ) -> None:
        self._group, self._operation, self._axes = group, operation, axes
        #: Rows and columns of each rank.
        self.rows, self.columns = rows, columns

    def connect(self, rows: Fields, columns: Fields, name: str) -> None:
        """Find how a field travels; collective.

        Parameters
        ----------
        rows, columns : Fields
            Where the field lies: the rows, and the columns of this rank.
        name : str
            The field.

        Raises
        ------
        BackendError
            If none of the links of the group is possible.
        """
        # Of the rows of this rank the columns of each other one, and vice versa.
        by_rows, by_columns = (
            {rank: [_along(axis, held)] for rank, held in enumerate(parts)}
            for axis, parts in zip(self._axes, (self.rows, self.columns), strict=True)
        )
        where = self._group, self._operation
        self.to_columns = exchange_of(*where, rows, columns, by_columns, by_rows, name)
        self.to_rows = exchange_of(*where, columns, rows, by_rows, by_columns, name)


def even_parts(group: Group, size: int) -> list[slice]:
    """Return the indices of each rank if they are divided evenly."""
    return [Slab(0).part(size, rank, group.size) for rank in range(group.size)]


def _along(axis: int, held: slice) -> Index:
    """Return the index of a part along one axis."""
    return (*(slice(None),) * axis, held)
