"""Inboxes: memory of the device of each rank, into which the other ranks of the host copy arrays.

They are opened by CUDA IPC. An inbox has two slots, which are used in turn. A message is sent in
three steps: each rank copies what it sends into the inboxes of the others; a barrier, which a rank
enters when its device has completed the copies; and each rank copies what it got to its place. A
rank writes into a slot again only after the barrier of the other one, and so after the first one
was read: one barrier per message is enough.
"""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from numpy.typing import NDArray

from .._errors import BackendError
from .._runtime.device import Device, device_array
from .._runtime.fields import DeviceFields
from .._runtime.mailboxes import MailboxAddress, SharedMemory
from ._group import Group, host_name

Array = NDArray[Any]

_SLOTS = 2
_ALIGNMENT = 512  # bytes


class Receiver(Protocol):
    """Who receives a message."""

    def take(self) -> None:
        """Copy what has arrived to its place, unless this was done."""


class Inbox:
    """Memory of a device into which the other ranks copy arrays, and theirs.

    Parameters
    ----------
    group : Group
        The ranks.
    device : Device
        That of this rank.
    """

    name = "peers"

    def __init__(self, group: Group, device: Device) -> None:
        self._group, self._device = group, device
        #: Bytes of a slot: the same on all ranks.
        self.capacity = 0
        self._memory: SharedMemory | None = None
        self._addresses: list[int] = []  # by rank
        self._slot = 0  # of what arrived last
        self._last: weakref.ref[Receiver] | None = None  # whose message this is

    def reserve(self, operation: str, nbytes: int) -> bool:
        """Make room for messages of some bytes, the most of all ranks; collective.

        Returns whether the devices of all ranks can use each other's memory. If not, and after an
        error, the inbox is as before.
        """
        if nbytes <= self.capacity:
            return True
        capacity = -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        with self._group.agreement(operation) as made:
            memory = SharedMemory(self._device, _SLOTS * capacity, self._group.rank)
            made.own = memory.own
        with self._group.agreement(operation) as opened:
            addresses = self._open(memory, made.found)
            opened.own = bool(addresses)
            self.prepare()  # what has arrived is read
        unused: SharedMemory | None = memory
        if all(opened.found):
            unused, self._memory = self._memory, memory
            self._addresses, self.capacity = addresses, capacity
        if unused is not None:
            # The other ranks close memory before it is freed here.
            with self._group.agreement(operation):
                unused.close()
        return unused is not memory

    def _open(self, memory: SharedMemory, found: Sequence[MailboxAddress]) -> list[int]:
        """Open the inboxes of the other ranks; return the addresses, none if it is not possible."""
        own = self._group.rank
        try:
            return [
                memory.address if rank == own else memory.open(there)
                for rank, there in enumerate(found)
            ]
        except BackendError:
            return []

    def there(self, rank: int, offset: int, like: Array) -> Array:
        """Return where a rank gets an array of the next message, from an offset in bytes on."""
        return self._place(self._addresses[rank], 1 - self._slot, offset, like)

    def here(self, offset: int, like: Array) -> Array:
        """Return an array of the message that has arrived."""
        return self._place(self._addresses[self._group.rank], self._slot, offset, like)

    def _place(self, base: int, slot: int, offset: int, like: Array) -> Array:
        """Return an array in a slot of an inbox, whose address on this device is `base`."""
        address = base + slot * self.capacity + offset
        return device_array(address, like.shape, None, like.dtype, self._memory)

    def prepare(self) -> None:
        """Bring the message that has arrived to its place, before the next one is sent."""
        last = None if self._last is None else self._last()
        if last is not None:
            last.take()
        self._last = None

    @contextmanager
    def barrier(self, operation: str, source: DeviceFields) -> Iterator[None]:
        """Wait for the copies that are enqueued in this context, on all ranks; collective.

        A rank that raises in the context raises on all ranks.
        """
        with self._group._barrier(operation):
            yield
            source.wait()

    def passed(self, receiver: Receiver) -> None:
        """Take note of a barrier after a message for this receiver was sent."""
        self._slot = 1 - self._slot
        self._last = weakref.ref(receiver)


def inbox_of(group: Group, operation: str, device: Device, nbytes: int) -> Inbox | None:
    """Return the inbox of this rank, or None if the ranks can have none; collective.

    If there is none, ``group.reasons["peers"]`` has the reason, the same on all ranks.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    device : Device
        That of this rank.
    nbytes : int
        Size of the messages that this rank gets.
    """
    if group.size == 1:
        return None
    if not hasattr(device.backend, "share"):
        group.reasons["peers"] = "the backend cannot share memory between processes"
        return None
    with group.agreement(operation) as agreed:
        agreed.own = host_name(), device.ordinal, nbytes
    hosts, ordinals, sizes = zip(*agreed.found, strict=True)
    inboxes: dict[tuple[int, ...], Inbox | None] = group.kept.setdefault("inboxes", {})
    inbox = inboxes.setdefault(ordinals, Inbox(group, device))
    if inbox is None or len(set(hosts)) > 1 or not inbox.reserve(operation, max(sizes)):
        inboxes[ordinals] = None
        group.reasons["peers"] = (
            "the ranks are on several hosts"
            if len(set(hosts)) > 1
            else "the devices cannot use each other's memory"
        )
        return None
    return inbox
