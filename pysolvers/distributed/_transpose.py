"""A field of two axes, divided over the ranks by rows or by columns.

A sweep along an axis needs complete lines. Rows of complete lines along x and columns of complete
lines along y are exchanged for each other in one message from each rank to each other one.

Between devices of one host, each rank copies its nodes directly into the inboxes of the others
(_inbox.py). Otherwise they travel between devices by NCCL (_parts.py), or through the memory of the
host.

Words per node and exchange: (size - 1)/size through the network, and two copies in memory; by NCCL
one, as rows of complete lines lie without gaps.
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._runtime.backends import parse_device, require
from .._runtime.device import Device
from .._runtime.fields import DeviceFields, Fields, Index
from ._group import Group
from ._inbox import Inbox
from ._parts import NcclParts
from ._slab import Slab
from ._ways import link_of, name_of

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
        # By rank: what it holds of a field with axes (1, y, x), and shape of that.
        self._by_rows: list[Index] = [(slice(None), held) for held in self.rows]
        self._by_columns: list[Index] = [(slice(None), slice(None), held) for held in self.columns]
        self._row_shapes: list[tuple[int, ...]] = [
            (1, held.stop - held.start, shape[1]) for held in self.rows
        ]
        self._column_shapes: list[tuple[int, ...]] = [
            (1, shape[0], held.stop - held.start) for held in self.columns
        ]
        self._link: Inbox | NcclParts | None = None
        self._arrived: tuple[DeviceFields, str] | None = None

    def connect(self, device: str | None, dtype: Any) -> None:
        """Find the way between devices; collective.

        Parameters
        ----------
        device : str or None
            That of this rank, as in `solve_tridiagonal`; on all ranks a device, or on none.
        dtype : dtype
            Of the fields.

        Raises
        ------
        BackendError
            If none of the ways of the group is possible.
        """
        name, ordinal = parse_device(device)
        if name == "cpu":
            return
        group = self._group
        shapes = self._row_shapes[group.rank], self._column_shapes[group.rank]
        nbytes = max(map(prod, shapes)) * np.dtype(dtype).itemsize
        own = Device(require(name), ordinal, self._operation)
        self._link = link_of(group, self._operation, own, nbytes)

    @property
    def way(self) -> str:
        """How the nodes travel: ``'peers'``, ``'nccl'``, ``'host'``; ``'none'`` with one rank."""
        return "none" if self._group.size == 1 else name_of(self._link)

    def to_columns(self, rows: Fields, columns: Fields, name: str) -> None:
        """Set the columns of this rank, all rows of them, from the rows of all ranks; collective.

        Parameters
        ----------
        rows, columns : Fields
            Where the field lies with the shape (1, rows, columns).
        name : str
            The field.
        """
        self._move(rows, columns, name, self._by_columns, self._by_rows, self._column_shapes)

    def to_rows(self, columns: Fields, rows: Fields, name: str) -> None:
        """Set the rows of this rank, all columns of them, from the columns of all ranks.

        Parameters as of `to_columns`; collective.
        """
        self._move(columns, rows, name, self._by_rows, self._by_columns, self._row_shapes)

    def _move(
        self,
        source: Fields,
        target: Fields,
        name: str,
        sent: list[Index],
        received: list[Index],
        shapes: list[tuple[int, ...]],
    ) -> None:
        """Send a part of a field to each rank, and set the field of another state.

        Parameters
        ----------
        source, target : Fields
            Where the field is read and written.
        name : str
            The field.
        sent, received : list of tuple of slice
            Its part for each rank, and that of each rank.
        shapes : list of tuple of int
            Shape of the field that each rank sets.
        """
        if isinstance(self._link, Inbox):
            self._move_by_inbox(self._link, source, target, name, sent, received, shapes)
        elif self._link is not None:
            self._move_by_nccl(self._link, source, target, name, sent, received)
        else:
            self._move_by_host(source, target, name, sent, received)

    def _move_by_host(
        self, source: Fields, target: Fields, name: str, sent: list[Index], received: list[Index]
    ) -> None:
        field, found = source.get(name), target.blank(name)
        parts = [found[at] for at in received]
        messages = [
            part if part.flags.c_contiguous else np.empty(part.shape, part.dtype) for part in parts
        ]
        self._group.exchange(
            self._operation,
            {rank: np.ascontiguousarray(field[at]) for rank, at in enumerate(sent)},
            dict(enumerate(messages)),
        )
        for part, message in zip(parts, messages, strict=True):
            if part is not message:
                part[...] = message
        target.changed(name)

    def _move_by_nccl(
        self,
        link: NcclParts,
        source: Fields,
        target: Fields,
        name: str,
        sent: list[Index],
        received: list[Index],
    ) -> None:
        assert isinstance(source, DeviceFields) and isinstance(target, DeviceFields)
        own = self._group.rank
        sends, receives = (
            {rank: [at] for rank, at in enumerate(parts) if rank != own}
            for parts in (sent, received)
        )
        with self._group._meeting(self._operation):
            messages = link.pack(source, name, sends)
            source.read(name, sent[own], target.operand(name)[received[own]])
        link.exchange(self._operation, messages, target, name, receives)

    def _move_by_inbox(
        self,
        inbox: Inbox,
        source: Fields,
        target: Fields,
        name: str,
        sent: list[Index],
        received: list[Index],
        shapes: list[tuple[int, ...]],
    ) -> None:
        """Copy each part to its place in an array of the shape of the field that its rank sets."""
        assert isinstance(source, DeviceFields) and isinstance(target, DeviceFields)
        dtype, place = target.array(name).dtype, received[self._group.rank]
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
        assert isinstance(self._link, Inbox)
        target, name = self._arrived
        field = target.array(name)
        target.write(name, (slice(None),), self._link.here(0, field))
        target.wait()
        self._arrived = None
