"""Layers of a field that neighbouring ranks hold of each other, and their exchange.

A rank steps its part of a field and some layers of its neighbours, which it gets anew from time to
time. They travel through the memory of the host by MPI, or, between devices of one host, directly
into the inbox of the neighbour (_inbox.py), or between devices by NCCL (_parts.py).

Words moved per layer: 2 for the copy on the device, 1 over the link and 2 for the copy from the
inbox; by NCCL, 1 over the link and 4 for copies if the layers have gaps; through the memory of the
host, 4 over the link of the host and 4 in its memory.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._runtime.fields import DeviceFields, Fields, Index
from ._group import Group
from ._inbox import Inbox
from ._parts import NcclParts
from ._ways import link_of

__all__ = [
    "Border",
    "Layers",
    "borders_of",
    "exchange_layers",
    "layers_of",
]

Array = NDArray[Any]

_ENDS = 2


class Border(NamedTuple):
    """Layers that this rank exchanges with a neighbour.

    Attributes
    ----------
    end : {0, 1}
        At which end of the part of this rank: before its first layer or after its last one.
    rank : int
        The neighbour.
    sent, received : tuple of slice
        The layers of this rank that the neighbour holds, and those of the neighbour, in a field.
    """

    end: int
    rank: int
    sent: Index
    received: Index


def borders_of(
    group: Group, axis: int, layers: tuple[int, int], shape: Sequence[int]
) -> list[Border]:
    """Return the borders of a field with as many layers of the neighbours at each end.

    Parameters
    ----------
    group : Group
        The ranks; the first one follows the last one.
    axis : int
        Axis of the field that is cut.
    layers : (int, int)
        Number of layers of the rank before and of the next one; those that are not 0 are equal on
        all ranks.
    shape : sequence of int
        Shape of the field, the layers included.
    """
    at: Index = (slice(None),) * axis
    (first, last), nodes, depth = layers, shape[axis], max(layers)
    found = []
    if first:
        sent, received = slice(first, first + depth), slice(first)
        found.append(Border(0, (group.rank - 1) % group.size, (*at, sent), (*at, received)))
    if last:
        sent, received = slice(nodes - last - depth, nodes - last), slice(nodes - last, nodes)
        found.append(Border(1, (group.rank + 1) % group.size, (*at, sent), (*at, received)))
    return found


def exchange_layers(
    group: Group,
    operation: str,
    borders: Sequence[Border],
    like: Array,
    take: Callable[[Index], Array],
    put: Callable[[Index, Array], None],
) -> None:
    """Exchange layers through the memory of the host; collective.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    borders : sequence of Border
        The layers.
    like : array
        An array of shape and dtype of the field; its elements are not read.
    take, put : callable
        What returns a part of the field, and what replaces one.
    """
    sends, receives = _by_rank(borders)
    sizes = {rank: [like[at].size for at in own] for rank, own in receives.items()}
    messages = {rank: np.empty(sum(own), like.dtype) for rank, own in sizes.items()}
    taken = {rank: [take(at).ravel() for at in own] for rank, own in sends.items()}
    group.exchange(
        operation,
        {rank: own[0] if len(own) == 1 else np.concatenate(own) for rank, own in taken.items()},
        messages,
    )
    for rank, own in receives.items():
        parts = np.split(messages[rank], np.cumsum(sizes[rank])[:-1])
        for at, part in zip(own, parts, strict=True):
            put(at, part.reshape(like[at].shape))


def _by_rank(
    borders: Sequence[Border],
) -> tuple[dict[int, list[Index]], dict[int, list[Index]]]:
    """Return the layers in the message to each rank, and in that of each rank, in their order.

    With two ranks both neighbours can be one rank. The layers at the first end of the sender come
    first in the message: they are those at the last end of the receiver.
    """
    sends: dict[int, list[Index]] = {}
    receives: dict[int, list[Index]] = {}
    for border in sorted(borders, key=lambda border: border.end):
        sends.setdefault(border.rank, []).append(border.sent)
        receives.setdefault(border.rank, []).insert(0, border.received)
    return sends, receives


class Layers:
    """Layers of the neighbours in fields of a state, which travel through the memory of the host.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    state : Fields
        The fields, of one shape and dtype.
    borders : sequence of Border
        The layers.
    like : array
        An array of shape and dtype of the fields; its elements are not read.
    """

    #: How the layers travel.
    way = "host"

    def __init__(
        self, group: Group, operation: str, state: Fields, borders: Sequence[Border], like: Array
    ) -> None:
        self._group, self._operation, self._state = group, operation, state
        self._borders, self._like = borders, like

    def refresh(self, name: str) -> None:
        """Exchange the layers of a field; collective."""
        exchange_layers(
            self._group,
            self._operation,
            self._borders,
            self._like,
            lambda at: self._state.part(name, at),
            lambda at, values: self._state.set_part(name, at, values),
        )

    def post(self, name: str) -> None:
        """Begin to exchange layers that `complete` will ask for; it waits for nothing.

        The ranks then meet, each after its device has completed what was enqueued.
        """

    def met(self) -> None:
        """Take note that the ranks met after `post`."""

    def complete(self, name: str) -> None:
        """Get the layers of a field that does not change since `post`; collective."""
        self.refresh(name)


class _PeerLayers(Layers):
    """Layers that travel between devices of one host."""

    way = "peers"

    def __init__(
        self,
        group: Group,
        operation: str,
        state: DeviceFields,
        borders: Sequence[Border],
        like: Array,
        inbox: Inbox,
    ) -> None:
        super().__init__(group, operation, state, borders, like)
        self._device_state, self._inbox = state, inbox
        self._arrived: str | None = None  # the field whose layers are in the inbox

    def refresh(self, name: str) -> None:
        with self._inbox.meeting(self._operation, self._device_state):
            self.post(name)
        self.met()
        self.complete(name)

    def _place(self, end: int) -> int:
        """Return where the layers at an end of a part lie in an inbox."""
        return end * (self._inbox.capacity // _ENDS)

    def post(self, name: str) -> None:
        self._inbox.prepare()
        field = self._device_state.array(name)
        for border in self._borders:
            part = field[border.sent]
            there = self._inbox.there(border.rank, self._place(1 - border.end), part)
            self._device_state.read(name, border.sent, there)
        self._posted = name

    def met(self) -> None:
        self._arrived = self._posted
        self._inbox.met(self)

    def take(self) -> None:
        """Copy the layers that have arrived to their places."""
        if self._arrived is None:
            return
        for border in self._borders:
            part = self._device_state.array(self._arrived)[border.received]
            here = self._inbox.here(self._place(border.end), part)
            self._device_state.write(self._arrived, border.received, here)
        self._device_state.wait()
        self._arrived = None

    def complete(self, name: str) -> None:
        if self._arrived == name:
            self.take()
        else:
            self.refresh(name)


class _NcclLayers(Layers):
    """Layers that travel between devices by NCCL."""

    way = "nccl"

    def __init__(
        self,
        group: Group,
        operation: str,
        state: DeviceFields,
        borders: Sequence[Border],
        like: Array,
        parts: NcclParts,
    ) -> None:
        super().__init__(group, operation, state, borders, like)
        self._device_state, self._parts = state, parts
        self._sends, self._receives = _by_rank(borders)
        self._posted = self._met = ""  # fields whose layers may travel after a meeting, or now

    def refresh(self, name: str) -> None:
        with self._group._meeting(self._operation):
            messages = self._parts.pack(self._device_state, name, self._sends)
        self._exchange(name, messages)

    def post(self, name: str) -> None:
        self._posted = name

    def met(self) -> None:
        self._met = self._posted

    def complete(self, name: str) -> None:
        if self._met == name:
            self._exchange(name, self._parts.pack(self._device_state, name, self._sends))
        else:
            self.refresh(name)

    def _exchange(self, name: str, messages: dict[int, Array]) -> None:
        self._met = ""
        self._parts.exchange(self._operation, messages, self._device_state, name, self._receives)


def layers_of(
    group: Group, operation: str, state: Fields, borders: Sequence[Border], like: Array
) -> Layers:
    """Return the layers of the neighbours in fields of a state; collective.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    state : Fields
        The fields: on all ranks on a device, or on all in the memory of the host.
    borders : sequence of Border
        The layers.
    like : array
        An array of shape and dtype of the fields; its elements are not read.
    """
    if isinstance(state, DeviceFields):
        most = max((like[border.received].nbytes for border in borders), default=0)
        link = link_of(group, operation, state.device, _ENDS * most)
        if isinstance(link, Inbox):
            return _PeerLayers(group, operation, state, borders, like, link)
        if link is not None:
            return _NcclLayers(group, operation, state, borders, like, link)
    return Layers(group, operation, state, borders, like)
