"""Halo exchange between neighbouring ranks.

A rank steps its part of a field and a halo: nodes of its neighbours, which the ranks exchange
after some steps. Halos travel through the memory of the host by MPI, or, between devices of one
host, directly into the inbox of the neighbour (_inbox.py), or between devices by NCCL (_parts.py).

Words moved per node of a halo: 2 for the copy on the device, 1 over the link and 2 for the copy
from the inbox; by NCCL, 1 over the link and 4 for copies if the nodes lie with gaps; through the
memory of the host, 4 over the link of the host and 4 in its memory.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from .._runtime.fields import DeviceFields, Fields, Index
from ._group import Group
from ._inbox import Inbox
from ._parts import NcclParts
from ._slab import Slab
from ._ways import link_of

Array = NDArray[Any]

_ENDS = 2


class HaloFace(NamedTuple):
    """Nodes that this rank exchanges with a neighbour.

    Attributes
    ----------
    end : {0, 1}
        At which end of the part of this rank: before its first node or after its last one.
    rank : int
        The neighbour.
    sent, received : tuple of slice
        The nodes of this rank that the neighbour holds, and those of the neighbour, in a field.
    """

    end: int
    rank: int
    sent: Index
    received: Index


def faces_of(
    group: Group,
    axis: int,
    nodes: int,
    held: tuple[int, int],
    given: tuple[int, int] | None = None,
) -> list[HaloFace]:
    """Return the faces of the halo of a field.

    Parameters
    ----------
    group : Group
        The ranks; the first one follows the last one.
    axis : int
        Axis of the field that is cut.
    nodes : int
        Number of its nodes along this axis, the halo included.
    held : (int, int)
        How many nodes of the rank before and of the next one the field has; 0 where there is none.
    given : (int, int), optional
        How many nodes of this rank they hold. By default the halos of all ranks are as deep as
        that of this one.
    """
    at: Index = (slice(None),) * axis
    first, last = held
    low, high = given or (max(held) * (first > 0), max(held) * (last > 0))
    found = []
    if first or low:
        sent, received = slice(first, first + low), slice(first)
        found.append(HaloFace(0, (group.rank - 1) % group.size, (*at, sent), (*at, received)))
    if last or high:
        sent, received = slice(nodes - last - high, nodes - last), slice(nodes - last, nodes)
        found.append(HaloFace(1, (group.rank + 1) % group.size, (*at, sent), (*at, received)))
    return found


class SlabNodes:
    """Nodes along the axis that is cut: those of this rank, and a halo of its neighbours.

    Parameters
    ----------
    group, axis
        As of `faces_of`.
    part : slice
        The nodes of this rank, among all.
    halo, given
        Nodes of the neighbours, and what they hold of this rank: `held` and `given` of `faces_of`.
    """

    def __init__(
        self,
        group: Group,
        axis: int,
        part: slice,
        halo: tuple[int, int],
        given: tuple[int, int] | None = None,
    ) -> None:
        first, last = halo
        nodes = part.stop - part.start
        #: The nodes of this rank, among all and among those that it holds.
        self.part, self.own = part, slice(first, first + nodes)
        #: The nodes that this rank holds, among all.
        self.held = slice(part.start - first, part.stop + last)
        self.faces = faces_of(group, axis, nodes + first + last, halo, given)


def slab_nodes(group: Group, split: Slab, shape: Sequence[int], depth: int) -> SlabNodes:
    """Return the nodes of this rank of a field of this shape, split evenly, with a halo."""
    axis = split.of(len(shape))
    parts = [split.part(shape[axis], rank, group.size) for rank in range(group.size)]
    least = min(part.stop - part.start for part in parts)
    require(least >= depth, f"every rank needs at least {depth} nodes along axis {axis}", least)
    halo = depth * (group.rank > 0), depth * (group.rank < group.size - 1)
    return SlabNodes(group, axis, parts[group.rank], halo)


def exchange_halo(
    group: Group,
    operation: str,
    faces: Sequence[HaloFace],
    like: Array,
    take: Callable[[Index], Array],
    put: Callable[[Index, Array], None],
) -> None:
    """Exchange a halo through the memory of the host; collective.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    faces : sequence of HaloFace
        The halo.
    like : array
        An array of shape and dtype of the field; its elements are not read.
    take, put : callable
        What returns a part of the field, and what replaces one.
    """
    sends, receives = _by_rank(faces)
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
    faces: Sequence[HaloFace],
) -> tuple[dict[int, list[Index]], dict[int, list[Index]]]:
    """Return the parts in the message to each rank, and in that of each rank, in their order.

    With two ranks both neighbours can be one rank. The nodes at the first end of the sender come
    first in the message: they are those at the last end of the receiver.
    """
    sends: dict[int, list[Index]] = {}
    receives: dict[int, list[Index]] = {}
    for face in sorted(faces, key=lambda face: face.end):
        sends.setdefault(face.rank, []).append(face.sent)
        receives.setdefault(face.rank, []).insert(0, face.received)
    return sends, receives


class Halo:
    """The halo of fields, which travels through the memory of the host.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    fields : Fields
        The fields that have it, of one shape and dtype.
    faces : sequence of HaloFace
        The nodes.
    like : array
        One of these fields; its elements are not read.
    """

    #: How the nodes travel.
    way = "host"

    def __init__(
        self, group: Group, operation: str, fields: Fields, faces: Sequence[HaloFace], like: Array
    ) -> None:
        self._group, self._operation, self._fields = group, operation, fields
        self._faces, self._like = faces, like

    def refresh(self, name: str) -> None:
        """Exchange the halo of a field; collective."""
        exchange_halo(
            self._group,
            self._operation,
            self._faces,
            self._like,
            lambda at: self._fields.part(name, at),
            lambda at, values: self._fields.set_part(name, at, values),
        )

    def post(self, name: str) -> None:
        """Begin to exchange a halo that `complete` will ask for; it waits for nothing.

        The ranks then meet, each after its device has completed what was enqueued.
        """

    def met(self) -> None:
        """Take note that the ranks met after `post`."""

    def complete(self, name: str) -> None:
        """Get the halo of a field that does not change since `post`; collective."""
        self.refresh(name)


class _PeerHalo(Halo):
    """A halo that travels between devices of one host."""

    way = "peers"

    def __init__(
        self,
        group: Group,
        operation: str,
        fields: DeviceFields,
        faces: Sequence[HaloFace],
        like: Array,
        inbox: Inbox,
    ) -> None:
        super().__init__(group, operation, fields, faces, like)
        self._there, self._inbox = fields, inbox
        self._arrived: str | None = None  # the field whose halo is in the inbox

    def refresh(self, name: str) -> None:
        with self._inbox.meeting(self._operation, self._there):
            self.post(name)
        self.met()
        self.complete(name)

    def _place(self, end: int) -> int:
        """Return where the nodes at an end of a part lie in an inbox."""
        return end * (self._inbox.capacity // _ENDS)

    def post(self, name: str) -> None:
        self._inbox.prepare()
        field = self._there.array(name)
        for face in self._faces:
            part = field[face.sent]
            there = self._inbox.there(face.rank, self._place(1 - face.end), part)
            self._there.read(name, face.sent, there)
        self._posted = name

    def met(self) -> None:
        self._arrived = self._posted
        self._inbox.met(self)

    def take(self) -> None:
        """Copy the nodes that have arrived to their places."""
        if self._arrived is None:
            return
        for face in self._faces:
            part = self._there.array(self._arrived)[face.received]
            here = self._inbox.here(self._place(face.end), part)
            self._there.write(self._arrived, face.received, here)
        self._there.wait()
        self._arrived = None

    def complete(self, name: str) -> None:
        if self._arrived == name:
            self.take()
        else:
            self.refresh(name)


class _NcclHalo(Halo):
    """A halo that travels between devices by NCCL."""

    way = "nccl"

    def __init__(
        self,
        group: Group,
        operation: str,
        fields: DeviceFields,
        faces: Sequence[HaloFace],
        like: Array,
        parts: NcclParts,
    ) -> None:
        super().__init__(group, operation, fields, faces, like)
        self._there, self._parts = fields, parts
        self._sends, self._receives = _by_rank(faces)
        self._posted = self._met = ""  # fields whose halo may travel after a meeting, or now

    def refresh(self, name: str) -> None:
        with self._group._meeting(self._operation):
            messages = self._parts.pack(self._there, name, self._sends)
        self._exchange(name, messages)

    def post(self, name: str) -> None:
        self._posted = name

    def met(self) -> None:
        self._met = self._posted

    def complete(self, name: str) -> None:
        if self._met == name:
            self._exchange(name, self._parts.pack(self._there, name, self._sends))
        else:
            self.refresh(name)

    def _exchange(self, name: str, messages: dict[int, Array]) -> None:
        self._met = ""
        self._parts.exchange(self._operation, messages, self._there, name, self._receives)


def halo_of(
    group: Group, operation: str, fields: Fields, faces: Sequence[HaloFace], name: str
) -> Halo:
    """Return the halo of fields; collective.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    fields : Fields
        On all ranks on a device, or on all in the memory of the host.
    faces : sequence of HaloFace
        The nodes.
    name : str
        One of the fields that have the halo.
    """
    like = fields.operand(name, changes=False)
    if isinstance(fields, DeviceFields):
        most = max((like[face.received].nbytes for face in faces), default=0)
        link = link_of(group, operation, fields.device, _ENDS * most)
        if isinstance(link, Inbox):
            return _PeerHalo(group, operation, fields, faces, like, link)
        if link is not None:
            return _NcclHalo(group, operation, fields, faces, like, link)
    return Halo(group, operation, fields, faces, like)
