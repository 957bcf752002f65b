"""Memory of a device into which other devices and other processes of the host write.

Mailboxes are such memory, by which the parts of systems on several devices of one host send their
numbers: csrc/include/ps_part.h says what a part is and what it sends.
"""

import time
from collections.abc import Callable, Sequence
from struct import Struct
from sys import byteorder
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .device import Device, address_of
from .streams import Stream, device_id

CLOCK_BYTES = 64  # as in ps_part.h
LOG_BYTES = 256  # as in ps_part.h
_ELSEWHERE = 256  # PS_PART_ELSEWHERE
# Its ps_part_clock: calls, blocks, late, tickets, failed, answer.
_CLOCK = Struct("=QIIII")
_ANSWER = Struct("=QIIIIQ")
Array = NDArray[Any]

_PAUSE = 1e-4  # seconds
_CALLS_BYTES = 8  # of ps_part_clock: the number of calls, which a kernel writes last
_POLLS = 64  # of an answer, between two looks at the stream


class MailboxAddress(NamedTuple):
    """Where the other parts find the mailbox, or the shared memory, of a part."""

    process: int  # a number that no other process of the group has
    device: int
    address: int  # in that process
    name: bytes  # for other processes
    device_id: bytes  # of the device, in all processes


class SharedMemory:
    """Memory of a device that other processes use, and the addresses of theirs.

    Parameters
    ----------
    device : Device
        The device of this process.
    nbytes : int
        Size of the memory.
    process : int
        The number of this process.

    Raises
    ------
    MemoryError
        If the device has too little memory.
    """

    def __init__(self, device: Device, nbytes: int, process: int) -> None:
        self._device, self._process = device, process
        self._opened: list[int] = []
        #: The memory, in this process.
        self.octets = device.empty((nbytes,), np.dtype(np.uint8), lasting=True)

    @property
    def address(self) -> int:
        """Address of the memory in this process."""
        return address_of(self.octets)

    @property
    def own(self) -> MailboxAddress:
        """Where other processes find the memory."""
        address = self.address
        status, name = self._device.backend.share(address, self._device.ordinal)
        self._device.check(status)
        ordinal = self._device.ordinal
        return MailboxAddress(self._process, ordinal, address, name, device_id(ordinal))

    def open(self, there: MailboxAddress) -> int:
        """Return the address of the memory of another process, or device, in this process.

        Raises
        ------
        BackendError
            If the device cannot use the memory of the other one.
        """
        backend, ordinal = self._device.backend, self._device.ordinal
        if there.process == self._process:
            self._device.check(backend.reach(there.device, ordinal))
            return there.address
        status, address = backend.open_shared(there.name, ordinal)
        self._device.check(status)
        self._opened.append(address)
        return int(address)

    def close(self) -> None:
        """Close the memory of the other processes, which must exist until then."""
        backend, ordinal = self._device.backend, self._device.ordinal
        while self._opened:
            self._device.check(backend.close_shared(self._opened.pop(), ordinal))


class Outcome(NamedTuple):
    """What a part notes of its last call.

    Attributes
    ----------
    calls : int
        Number of calls so far, with those of graphs.
    late : int
        The part that did not answer; -1 if all did.
    is_elsewhere : bool
        Whether that part makes another call, or gave up.
    has_failed : bool
        Whether info or marks of a system are not 0.
    """

    calls: int
    late: int
    is_elsewhere: bool
    has_failed: bool

    @classmethod
    def of(cls, clock: Any) -> Self:
        """Return what the octets of a clock say, after the call is complete."""
        calls, _, late, _, failed = _CLOCK.unpack_from(clock)
        return cls(calls, late % _ELSEWHERE - 1, late > _ELSEWHERE, failed == calls & 0xFFFFFFFF)


class CallLog(SharedMemory):
    """What the parts of one process, of all their mailboxes, know of each other's calls.

    Parameters
    ----------
    device : Device
        That of this part.
    part, count : int
        Which part this is, and of how many.
    process : int
        The number of this process.
    """

    def __init__(self, device: Device, part: int, count: int, process: int) -> None:
        super().__init__(device, LOG_BYTES, process)
        self._part, self._count = part, count
        #: Of all parts, as `part_solve` takes them.
        self.addresses: tuple[int, ...] = (0,) * count
        # The streams of the last call, and of the last one that was not captured.
        self._last = self._order = Stream(-1)
        device.write(self.octets, np.zeros(LOG_BYTES, np.uint8))
        device.wait()

    def connect(self, all_parts: Sequence[MailboxAddress]) -> None:
        """Open the logs of the other parts, as `Mailboxes.connect`."""
        self.addresses = tuple(self.open(there) for there in all_parts)
        # CUDA loads a kernel when it is first launched, and waits for those that run, perhaps for
        # one that waits for this message.
        self._leave(False, self._device.stream.address)
        self._device.wait()

    def follow(self, stream: int, owner: Callable[[], object], *, is_captured: bool) -> None:
        """Let a call on a stream follow the call before: each one counts in the log.

        `owner` returns what keeps the stream. A captured call follows what the caller lets it
        follow.
        """
        if stream != self._last.address:
            self._last = Stream(stream, owner())
        if is_captured or stream == self._order.address:
            return
        if self._order.address >= 0:
            device = self._device
            device.check(device.backend.order(self._order.address, stream, device.ordinal))
        self._order = self._last

    def leave(self) -> None:
        """Enqueue the message that the next call of this part is of another kind."""
        self._leave(False, self._last.address)

    def give_up(self) -> None:
        """Let a kernel of this part that waits for others end its wait."""
        self._leave(True, 0)

    def _leave(self, ends: bool, stream: int) -> None:
        device = self._device
        arguments = self._part, self._count, self.addresses, ends, device.ordinal, stream
        device.check(device.backend.part_leave(*arguments))


def answer_of(device: Device, clock: Array) -> Any:
    """Return memory of the host whose address is written to the octets of a clock, or None."""
    try:
        answer = device.backend.Answer(*device.arguments)
    except RuntimeError:  # none is free
        return None
    _ANSWER.pack_into(clock.data, 0, 0, 0, 0, 0, 0, answer.address)
    return answer


def mailbox_bytes(device: Device, dtype: np.dtype, systems: int, count: int, step: str) -> int:
    """Return the size of the mailbox of a part of `count` parts, for a step of `PART_STEPS`."""
    backend = device.backend
    status, size = backend.part_mailbox(
        backend.DTYPES[str(dtype)], systems, count, backend.PART_STEPS[step]
    )
    device.check(status)
    return int(size)


class Mailboxes(SharedMemory):
    """The mailbox of a part, and the addresses of those of the other parts.

    Parameters
    ----------
    device : Device
        That of this part.
    dtype : dtype
        Of the systems.
    systems : int
        Number of the systems.
    part, count : int
        Which part this is, and of how many.
    process : int
        The number of this process.

    Raises
    ------
    MemoryError
        If the device has too little memory.
    """

    def __init__(
        self,
        device: Device,
        dtype: np.dtype,
        systems: int,
        part: int,
        count: int,
        process: int,
    ) -> None:
        size = mailbox_bytes(device, dtype, systems, count, "whole")
        super().__init__(device, CLOCK_BYTES + size, process)
        self.part, self.count = part, count
        self._marks: dict[int, Any] = {}  # by stream
        #: The mailboxes and the clock, as `part_solve` takes them.
        self.arguments: tuple[tuple[int, ...], int] = (), self.address
        #: Number of parts that have the device of this part, if that is known.
        self.sharing = 1
        # The number of calls that the answer has: before the next solve, if all solves before it
        # are complete; and the octets of the number that it has when the last solve is complete,
        # if the number before that solve was known. Otherwise None.
        self._calls: int | None = 0
        self._wanted: bytes | None = None
        octets = np.zeros(CLOCK_BYTES + size, np.uint8)
        #: Memory of the host that has the outcome of the last call; None if none was free.
        self.answer = answer_of(device, octets)
        device.write(self.octets, octets)
        device.wait()

    def connect(self, all_parts: Sequence[MailboxAddress]) -> None:
        """Open the mailboxes of the other parts.

        Parameters
        ----------
        all_parts : sequence of MailboxAddress
            `own` of every part, in their order.

        Raises
        ------
        BackendError
            If the device cannot use the memory of another one.
        """
        addresses = tuple(self.open(there) + CLOCK_BYTES for there in all_parts)
        self.arguments = addresses, self.address
        name = device_id(self._device.ordinal)
        if name:
            self.sharing = sum(there.device_id == name for there in all_parts)

    def close(self) -> None:
        super().close()
        if self.answer is not None:
            self.answer.end()
            self.answer = None

    @property
    def clock(self) -> Array:
        """The clock, in the memory of the device."""
        return self.octets[:CLOCK_BYTES]

    def used(self, stream: int, *, is_counted: bool) -> None:
        """Take note that all solves so far have been enqueued on a stream.

        `is_counted`: whether the clock counts no other solves, as those of graphs.
        """
        calls = self._calls if is_counted else None
        self._wanted = None if calls is None else (calls + 1).to_bytes(_CALLS_BYTES, byteorder)
        self._calls = None
        self._marks[stream] = self._device.backend.Mark(self._device.ordinal, stream)

    def poll(self) -> bool:
        """Read the answer up to `_POLLS` times; return whether the last solve is complete.

        The kernel of a solve writes the answer some us before the stream passes the mark, and also
        when the kernel gives up. If the device fails there is no answer, but the mark has passed.
        """
        answer, wanted = self.answer, self._wanted
        if answer is not None and wanted is not None:
            for _ in range(_POLLS):
                if answer.read(_CALLS_BYTES) == wanted:
                    return True
        return self.is_done

    def completed(self, outcome: Outcome) -> None:
        """Take note of the outcome of the last solve, which is complete."""
        self._calls = outcome.calls

    @property
    def is_done(self) -> bool:
        """Whether the device has completed all solves."""
        return all(mark.passed for mark in self._marks.values())

    def wait(self) -> None:
        """Wait until the device has completed all solves."""
        while not self.is_done:
            time.sleep(_PAUSE)
        self._marks.clear()
