"""Parts of fields that the ranks exchange: of a halo, or of rows for columns.

What a rank sends and receives is known before: `Exchange` has the parts of a field for each rank,
and those of each rank. They travel by one of three links, which `exchange_of` chooses: between the
devices of one host directly into the inbox of the receiver (_inbox.py), between devices by NCCL
(_parts.py), or through the memory of the host by the transport of the group.

Words moved per node: 2 for the copy on the device, 1 over the link and 2 for the copy from the
inbox; by NCCL, 1 over the link and 4 for copies if the nodes lie with gaps; through the memory of
the host, 4 over the link of the host and 4 in its memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import DistributedError
from .._runtime.fields import DeviceFields, Fields, Index
from ._group import Group
from ._inbox import Inbox, padded
from ._links import link_of
from ._parts import NcclParts

Array = NDArray[Any]
Parts = Mapping[int, Sequence[Index]]  # of a field, by rank


def exchange_arrays(
    group: Group, operation: str, source: Array, sends: Parts, target: Array, receives: Parts
) -> None:
    """Exchange parts of arrays of the host; collective.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    source, target : array
        Where the parts are read and written; they can be one array.
    sends, receives : mapping of int to sequence of tuple of slice
        The parts for each rank, and those of each rank, in the order in which that rank sends them.
        The parts for this rank are copied.
    """
    own = {rank: [source[at] for at in parts] for rank, parts in sends.items()}
    found = {rank: [target[at] for at in parts] for rank, parts in receives.items()}
    messages = {
        rank: parts[0]
        if len(parts) == 1 and parts[0].flags.c_contiguous
        else np.empty(sum(part.size for part in parts), target.dtype)
        for rank, parts in found.items()
    }
    group.exchange(operation, {rank: _joined(parts) for rank, parts in own.items()}, messages)
    for rank, parts in found.items():
        if messages[rank] is not parts[0]:
            for part, values in zip(parts, _split(messages[rank], parts), strict=True):
                part[...] = values


def _joined(parts: Sequence[Array]) -> Array:
    """Return a message with these parts."""
    if len(parts) == 1:
        return np.ascontiguousarray(parts[0])
    return np.concatenate([part.ravel() for part in parts])


def _split(message: Array, like: Sequence[Array]) -> list[Array]:
    """Return the parts of a message, in the shapes of others."""
    bounds = np.cumsum([part.size for part in like])[:-1]
    return [
        values.reshape(part.shape)
        for values, part in zip(np.split(message, bounds), like, strict=True)
    ]


class Exchange:
    """Parts of fields, which travel through the memory of the host.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    source, target : Fields
        Where parts are read and written, both on one device or both on the host; they can be one
        object.
    sends, receives : mapping of int to sequence of tuple of slice
        As of `exchange_arrays`.
    """

    _link = "host"
    #: Whether the devices wait for each other in `in_order`.
    is_in_order = False

    def __init__(
        self,
        group: Group,
        operation: str,
        source: Fields,
        target: Fields,
        sends: Parts,
        receives: Parts,
    ) -> None:
        self._group, self._operation = group, operation
        self._source, self._target = source, target
        self._sends, self._receives = sends, receives

    @property
    def link(self) -> str:
        """How the parts travel: as `exchange` of a result."""
        return "none" if self._group.size == 1 else self._link

    def refresh(self, name: str) -> None:
        """Exchange the parts of a field; collective."""
        source, target = self._source, self._target
        here = source.operand(name, changes=False), target.operand(name, changes=False)
        if not isinstance(source, DeviceFields):
            arguments = here[0], self._sends, here[1], self._receives
            exchange_arrays(self._group, self._operation, *arguments)
            return
        messages = {
            rank: np.empty(sum(here[1][at].size for at in parts), here[1].dtype)
            for rank, parts in self._receives.items()
        }
        own = {
            rank: _joined([source.part(name, at) for at in parts])
            for rank, parts in self._sends.items()
        }
        self._group.exchange(self._operation, own, messages)
        for rank, parts in self._receives.items():
            found = _split(messages[rank], [here[1][at] for at in parts])
            for at, values in zip(parts, found, strict=True):
                target.set_part(name, at, values)

    def post(self, name: str) -> None:
        """Begin to exchange parts that `complete` will ask for; it waits for nothing.

        A barrier follows, which a rank enters when its device has completed what was enqueued.
        """

    def passed(self) -> None:
        """Take note of a barrier after `post`."""

    def complete(self, name: str) -> None:
        """Get the parts of a field that does not change since `post`; collective."""
        self.refresh(name)

    @contextmanager
    def in_order(self, count: int, *, waits: bool = True) -> Iterator[Callable[[str], None]]:
        """Return a context with a function that exchanges the parts of a field; collective.

        All ranks call the function `count` times. If `is_in_order`, the devices wait for each
        other, the host waits for them at the end of the context only, or not at all, and a rank
        that raises in the context raises on all ranks.
        """
        del count, waits
        yield self.refresh


class _OnDevices(Exchange):
    """Parts of fields on devices, which travel between them."""

    _source: DeviceFields
    _target: DeviceFields

    def _copy_own(self, name: str) -> None:
        """Enqueue the copy of the parts for this rank."""
        rank = self._group.rank
        to = self._target.operand(name) if rank in self._sends else None
        for at, there in zip(self._sends.get(rank, ()), self._receives.get(rank, ()), strict=True):
            assert to is not None
            self._source.read(name, at, to[there])

    def _others(self, parts: Parts) -> Parts:
        """Return the parts of the other ranks."""
        return {rank: own for rank, own in parts.items() if rank != self._group.rank}


class _PeerExchange(_OnDevices):
    """Parts that travel between the devices of one host, into inboxes.

    `places` are where the parts of each rank lie in the inbox of this rank, `places_there` where
    the parts of this rank lie in those of each rank.
    """

    _link = "peers"

    def __init__(
        self,
        *arguments: Any,
        inbox: Inbox,
        places: Mapping[int, Sequence[int]],
        places_there: Mapping[int, Sequence[int]],
    ) -> None:
        super().__init__(*arguments)
        self._inbox, self._places, self._places_there = inbox, places, places_there
        self.is_in_order = inbox.crosses
        self._posted = ""
        self._arrived: str | None = None  # the field whose parts are in the inbox

    def refresh(self, name: str) -> None:
        with self._inbox.barrier(self._operation, self._source):
            self.post(name)
        self.passed()
        self.take()

    def post(self, name: str) -> None:
        self._inbox.prepare(self._source.device)
        field = self._source.array(name)
        for rank, parts in self._others(self._sends).items():
            for at, place in zip(parts, self._places_there[rank], strict=True):
                self._source.read(name, at, self._inbox.there(rank, place, field[at]))
        self._copy_own(name)
        self._posted = name

    def passed(self) -> None:
        self._arrived = self._posted
        self._inbox.passed(self)

    @contextmanager
    def in_order(self, count: int, *, waits: bool = True) -> Iterator[Callable[[str], None]]:
        inbox = self._inbox
        if not self.is_in_order:
            yield self.refresh
            return
        inbox.check(self._operation, self._source.device, waits=False)
        last = inbox.round + count
        try:
            with self._group._barrier(self._operation):
                try:
                    yield self._refresh_in_order
                except BaseException:
                    inbox.give_up(self._source.device, last)
                    raise
        except DistributedError:
            inbox.forget(self._source.device)
            raise
        inbox.check(self._operation, self._source.device, waits=waits)

    def _refresh_in_order(self, name: str) -> None:
        """Exchange the parts of a field in the order of the streams."""
        self.post(name)
        self._inbox.cross(self._source.device)
        self.passed()
        self.take(waits=False)

    def take(self, *, waits: bool = True) -> None:
        """Copy the parts that have arrived to the field."""
        if self._arrived is None:
            return
        field = self._target.array(self._arrived)
        for rank, parts in self._others(self._receives).items():
            for at, place in zip(parts, self._places[rank], strict=True):
                self._target.write(self._arrived, at, self._inbox.here(place, field[at]))
        if waits:
            self._target.wait()
        self._arrived = None

    def complete(self, name: str) -> None:
        if self._arrived == name:
            self.take()
        else:
            self.refresh(name)


class _NcclExchange(_OnDevices):
    """Parts that travel between devices by NCCL."""

    _link = "nccl"

    def __init__(self, *arguments: Any, parts: NcclParts) -> None:
        super().__init__(*arguments)
        self._parts = parts
        self._posted = self._ready = ""  # fields whose parts may travel after a barrier, or now

    def refresh(self, name: str) -> None:
        with self._group._barrier(self._operation):
            messages = self._packed(name)
        self._exchange(name, messages)

    def post(self, name: str) -> None:
        self._posted = name

    def passed(self) -> None:
        self._ready = self._posted

    def complete(self, name: str) -> None:
        if self._ready == name:
            self._exchange(name, self._packed(name))
        else:
            self.refresh(name)

    def _packed(self, name: str) -> dict[int, Array]:
        """Enqueue the messages to the other ranks, and the copy of the own parts."""
        self._copy_own(name)
        return self._parts.pack(self._source, name, self._others(self._sends))

    def _exchange(self, name: str, messages: dict[int, Array]) -> None:
        """Exchange messages that `_packed` returned; collective."""
        self._ready = ""
        receives = self._others(self._receives)
        self._parts.exchange(self._operation, messages, self._target, name, receives)


def exchange_of(
    group: Group,
    operation: str,
    source: Fields,
    target: Fields,
    sends: Parts,
    receives: Parts,
    name: str,
) -> Exchange:
    """Return the exchange of parts of fields; collective.

    Parameters
    ----------
    group, operation, source, target, sends, receives
        As of `Exchange`; all ranks on devices, or all on the host.
    name : str
        One of the fields.

    Raises
    ------
    BackendError
        As `link_of`.
    """
    arguments = group, operation, source, target, sends, receives
    if not isinstance(source, DeviceFields):
        return Exchange(*arguments)
    field, found = source.array(name), target.operand(name, changes=False)
    sent = sum(field[at].nbytes for parts in sends.values() for at in parts)
    others = {rank: parts for rank, parts in receives.items() if rank != group.rank}
    places, end = _places(found, others)
    link = link_of(group, operation, source.device, max(sent, end))
    if isinstance(link, Inbox):
        with group.agreement(operation) as agreed:
            agreed.own = places
        there = {rank: own.get(group.rank, ()) for rank, own in enumerate(agreed.found)}
        return _PeerExchange(*arguments, inbox=link, places=places, places_there=there)
    return Exchange(*arguments) if link is None else _NcclExchange(*arguments, parts=link)


def _places(field: Array, receives: Parts) -> tuple[dict[int, list[int]], int]:
    """Return where the parts of each rank lie in an inbox, in bytes, and the end of the last."""
    places: dict[int, list[int]] = {}
    end = 0
    for rank, parts in receives.items():
        for at in parts:
            places.setdefault(rank, []).append(end)
            end += padded(field[at].nbytes)
    return places, end
