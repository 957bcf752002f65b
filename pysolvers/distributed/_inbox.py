"""Inboxes: memory of the device of each rank, into which the other ranks of the host copy arrays.

They are opened by CUDA IPC. An inbox has two slots, which are used in turn. A message is sent in
three steps: each rank copies what it sends into the inboxes of the others; a barrier, which a rank
enters when its device has completed the copies; and each rank copies what it got to its place. A
rank writes into a slot again only after the barrier of the other one, and so after the first one
was read: one barrier per message is enough.

The barrier is one of the ranks, by the transport of the group, or one of the streams of their
devices (`Inbox.cross`), for which no host waits. A rank whose device does not get the messages of
another one within the timeout finds this in `Inbox.check`; a rank that fails lets the devices of
the others go on at once (`Inbox.give_up`).
"""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._errors import BackendError, DistributedError
from .._runtime.device import Device, address_of, device_array
from .._runtime.fields import DeviceFields
from .._runtime.mailboxes import CLOCK_BYTES, MailboxAddress, Outcome, SharedMemory, answer_of
from ._group import Group, host_name

Array = NDArray[Any]

_SLOTS = 2
#: Of arrays in a message between devices, in bytes.
ALIGNMENT = 512
_SLOT_BYTES = 16  # PS_PART_SLOT_BYTES of ps_part.h
_MOST_PARTS = 8  # PS_MOST_PARTS
_CALLS = 8  # bytes of the number of the last round in ps_part_clock
_LATE = slice(3, 4)  # of its words of 4 bytes


def padded(nbytes: int) -> int:
    """Return the bytes from the start of an array in a message to that of the next one."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


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
        #: Number of the barriers of the streams so far.
        self.round = 0
        self._crossed: Device | None = None  # with the stream of the last of them
        self._is_checked = True  # whether no rank was late in them
        self._answer: Any = None  # memory of the host that has their outcome

    def reserve(self, operation: str, nbytes: int) -> bool:
        """Make room for messages of some bytes, the most of all ranks; collective.

        Returns whether the devices of all ranks can use each other's memory. If not, and after an
        error, the inbox is as before.
        """
        if nbytes <= self.capacity:
            return True
        capacity = padded(nbytes)
        with self._group.agreement(operation) as made:
            memory, answer = self._memory_of(capacity)
            made.own = memory.own
        with self._group.agreement(operation) as opened:
            addresses = self._open(memory, made.found)
            opened.own = bool(addresses)
            self.prepare()  # what has arrived is read
        unused: tuple[SharedMemory | None, Any] = memory, answer
        if all(opened.found):
            unused = self._memory, self._answer
            self._memory, self._answer = memory, answer
            self._addresses, self.capacity, self.round = addresses, capacity, 0
        if unused[0] is not None:
            # The other ranks close memory before it is freed here.
            with self._group.agreement(operation):
                unused[0].close()
                if unused[1] is not None:
                    unused[1].end()
        return unused[0] is not memory

    def _memory_of(self, capacity: int) -> tuple[SharedMemory, Any]:
        """Return memory for slots of some bytes and for the barriers of streams; and an answer."""
        size = self._group.size * _SLOT_BYTES
        memory = SharedMemory(
            self._device, _SLOTS * capacity + size + CLOCK_BYTES, self._group.rank
        )
        octets = np.zeros(size + CLOCK_BYTES, np.uint8)
        answer = answer_of(self._device, octets[size:])
        self._device.write(memory.octets[_SLOTS * capacity :], octets)
        self._device.wait()
        return memory, answer

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

    def prepare(self, device: Device | None = None) -> None:
        """Bring the message that has arrived to its place, before the next one is sent.

        The stream of the next one follows that of the last one; without it, the host waits.
        """
        last = None if self._last is None else self._last()
        if last is not None:
            last.take()
        self._last, before = None, self._crossed
        if before is None:
            return
        if device is None:
            before.wait()
            self._crossed = None
        elif device.stream.address != before.stream.address:
            device.follow(before)

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

    @property
    def crosses(self) -> bool:
        """Whether there are barriers of streams for so many ranks."""
        return self._group.size <= _MOST_PARTS

    def cross(self, device: Device) -> None:
        """Let the stream of each rank wait for those of all ranks; all ranks do."""
        self.round += 1
        self._is_checked, self._crossed = False, device
        self._barrier(device, is_failed=False)

    def give_up(self, device: Device, last: int) -> None:
        """Let the devices of the other ranks wait for this one no more, up to a round."""
        if (last - self.round) % _SLOTS:
            self._slot = 1 - self._slot
        self.round, self._last = last, None
        with suppress(BackendError):  # the error of this rank is another one
            self._barrier(device, is_failed=True)
            device.wait()

    def check(self, operation: str, device: Device, *, waits: bool) -> None:
        """Raise if a rank did not take part in a barrier of streams.

        If the barriers need not be complete, because this does not wait for the device, a later
        call checks them.

        Raises
        ------
        DistributedError
            The group cannot be used after that.
        """
        if self._is_checked:
            return
        if waits or self._answer is None:
            octets = device.download(self._clock)
        else:
            octets = np.frombuffer(self._answer.read(CLOCK_BYTES), np.uint8)
            if int(octets[:_CALLS].view(np.uint64)[0]) != self.round:
                return
        outcome = Outcome.of(octets)
        self._is_checked = True
        if outcome.late < 0:
            return
        self.forget(device)
        group = self._group
        reason = "it failed" if outcome.is_elsewhere else f"waited {group.timeout:g} s"
        group._lose(
            f"{operation}: rank {group.rank} of {group.size} gets no message from rank "
            f"{outcome.late}: {reason}"
        )
        raise DistributedError(group._lost, (outcome.late,))

    def forget(self, device: Device) -> None:
        """Take no note of ranks that failed, after their errors have been raised."""
        self._is_checked = True
        octets = self._clock.view(np.uint32)[_LATE]
        with suppress(BackendError):
            device.write(octets, np.zeros(1, np.uint32))
            device.wait()

    @property
    def _clock(self) -> Array:
        """What the device notes of the barriers of streams."""
        own = self._addresses[self._group.rank] + _SLOTS * self.capacity
        address = own + self._group.size * _SLOT_BYTES
        return device_array(address, (CLOCK_BYTES,), None, np.dtype(np.uint8), self._memory)

    def _barrier(self, device: Device, *, is_failed: bool) -> None:
        device.enqueue(
            device.backend.part_barrier,
            self._group.rank,
            self._group.size,
            tuple(base + _SLOTS * self.capacity for base in self._addresses),
            self.round,
            is_failed,
            int(self._group.timeout * 1e9),
            address_of(self._clock),
        )


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
