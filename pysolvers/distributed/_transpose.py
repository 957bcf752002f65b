"""A field of two axes, divided over the ranks by rows or by columns.

A sweep along an axis needs complete lines. Rows of complete lines along x and columns of complete
lines along y are exchanged for each other in one message from each rank to each other one.

Between devices of one host, each rank copies its nodes directly into the inboxes of the others
(_inbox.py); otherwise, the nodes pass through the memory of the host.

Words per node and exchange: (size - 1)/size through the network, and two copies in memory.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._runtime.backends import parse_device, require
from .._runtime.state import DeviceState, Index, State
from ._group import Group
from ._inbox import Inbox, inbox_of
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
        self._group, self._operation, self._shape = group, operation, shape
        #: Rows and columns of each rank.
        self.rows, self.columns = (
            [Slab(axis).part(shape[axis], rank, group.size) for rank in range(group.size)]
            for axis in (0, 1)
        )
        self._inbox: Inbox | None = None
        self._arrived: tuple[DeviceState, str] | None = None

    def connect(self, device: str | None, dtype: Any) -> None:
        """Find the way between devices, if there is one; collective.

        Parameters
        ----------
        device : str or None
            That of this rank, as in `solve_tridiagonal`; on all ranks a device, or on none.
        dtype : dtype
            Of the fields.
        """
        name, ordinal = parse_device(device)
        if name == "cpu":
            return
        group = self._group
        rows, columns = self.rows[group.rank], self.columns[group.rank]
        nodes = max(
            (rows.stop - rows.start) * self._shape[1],
            self._shape[0] * (columns.stop - columns.start),
        )
        nbytes = nodes * np.dtype(dtype).itemsize
        self._inbox = inbox_of(group, self._operation, require(name), ordinal, nbytes)

    @property
    def way(self) -> str:
        """How the nodes travel: ``'peers'``, ``'host'``, or ``'none'`` with one rank."""
        return "none" if self._group.size == 1 else "peers" if self._inbox else "host"

    def to_columns(self, rows: State, columns: State, name: str) -> None:
        """Set the columns of this rank, all rows of them, from the rows of all ranks; collective.

        Parameters
        ----------
        rows, columns : State
            Where the field lies with the shape (1, rows, columns).
        name : str
            The field.
        """
        own = self.rows[self._group.rank]
        if self._inbox is not None:
            self._send(
                self._inbox,
                rows,
                columns,
                name,
                [(slice(None), slice(None), held) for held in self.columns],
                [(1, self._shape[0], held.stop - held.start) for held in self.columns],
                (slice(None), own),
            )
            return
        source, target = rows.get(name)[0], columns.blank(name)[0]
        sends = {r: np.ascontiguousarray(source[:, held]) for r, held in enumerate(self.columns)}
        self._group.exchange(
            self._operation, sends, {r: target[held] for r, held in enumerate(self.rows)}
        )
        columns.changed(name)

    def to_rows(self, columns: State, rows: State, name: str) -> None:
        """Set the rows of this rank, all columns of them, from the columns of all ranks.

        Parameters as of `to_columns`; collective.
        """
        own = self.columns[self._group.rank]
        if self._inbox is not None:
            self._send(
                self._inbox,
                columns,
                rows,
                name,
                [(slice(None), held) for held in self.rows],
                [(1, held.stop - held.start, self._shape[1]) for held in self.rows],
                (slice(None), slice(None), own),
            )
            return
        source, target = columns.get(name)[0], rows.blank(name)[0]
        found = {
            r: np.empty((len(target), held.stop - held.start), target.dtype)
            for r, held in enumerate(self.columns)
        }
        self._group.exchange(
            self._operation, {r: source[held] for r, held in enumerate(self.rows)}, found
        )
        for r, held in enumerate(self.columns):
            target[:, held] = found[r]
        rows.changed(name)

    def _send(
        self,
        inbox: Inbox,
        source: State,
        target: State,
        name: str,
        sent: list[Index],
        shapes: list[tuple[int, ...]],
        place: Index,
    ) -> None:
        """Send a part of a field to each rank, to a place in an array of its shape; receive it.

        Each rank gets all of its field.
        """
        assert isinstance(source, DeviceState) and isinstance(target, DeviceState)
        dtype = target.shadow(name).dtype
        with inbox.meeting(self._operation, source):
            inbox.prepare()
            for rank, (part, shape) in enumerate(zip(sent, shapes, strict=True)):
                like = np.broadcast_to(np.empty((), dtype), shape)
                source.read(name, part, inbox.there(rank, 0, like)[place])
        inbox.met(self)
        self._arrived = target, name
        self.take()

    def take(self) -> None:
        """Copy what has arrived to its place."""
        if self._arrived is None:
            return
        assert self._inbox is not None
        target, name = self._arrived
        field = target.shadow(name)
        target.write(name, (slice(None),), self._inbox.here(0, field))
        target.wait()
        self._arrived = None
