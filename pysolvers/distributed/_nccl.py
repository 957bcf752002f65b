"""Messages between the devices of all ranks by NCCL, on one host or on several.

A barrier of MPI precedes each exchange, so that a rank that raised an error raises on all ranks and
no device waits for a message of it. The order of the stream is enough after that: messages are
enqueued behind the work that makes them and before the work that uses them. Then the host waits
until the device has completed both, which is bounded by the timeout of the group: no other wait is.

NCCL itself waits without a bound, when it starts and when two ranks first exchange a message. Both
happen in a thread of their own.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import BackendError, DistributedError
from .._runtime.device import Device
from .._runtime.nccl import NcclCommunicator
from ._group import Group

Array = NDArray[Any]

# Seconds of waiting for a device without a pause: those of a large solve, to which pauses would add
# some 0.1 ms. Then the processor is left to others.
_SPIN = 2e-2
_PAUSE = 1e-4  # seconds
_FIRST = 512  # bytes of the first message between two ranks
_OCTET = np.dtype(np.uint8)


class Nccl:
    """Messages between the devices of all ranks.

    Parameters
    ----------
    group : Group
        The ranks.
    communicator : NcclCommunicator
        Of these ranks; the device of each is that of the arrays.
    """

    def __init__(self, group: Group, communicator: NcclCommunicator) -> None:
        self._group, self._communicator = group, communicator

    def exchange(
        self,
        operation: str,
        sends: Mapping[int, Array],
        receives: Mapping[int, Array],
        device: Device,
    ) -> None:
        """Enqueue messages; collective, after the ranks have met, and before `wait`.

        Parameters
        ----------
        operation : str
            Of the caller, for messages.
        sends, receives : mapping of int to array
            Device arrays by rank, contiguous; none of this rank.
        device : Device
            Where to enqueue.

        Raises
        ------
        DistributedError
            If NCCL reports an error. The group cannot be used after that.
        """
        with self._lost_after_errors(operation):
            self._communicator.exchange(sends, receives, device.stream.address)

    def wait(self, operation: str, device: Device) -> None:
        """Wait until the device has completed what was enqueued on its stream.

        Parameters
        ----------
        operation : str
            Of the caller, for messages.
        device : Device
            The device.

        Raises
        ------
        DistributedError
            If this takes longer than the timeout of the group, or NCCL reports an error. The group
            cannot be used after that.
        """
        with self._lost_after_errors(operation):
            mark, begun = device.mark(), time.monotonic()
            while not mark.passed:
                waited = time.monotonic() - begun
                if waited > self._group.timeout:
                    raise BackendError(f"waited {self._group.timeout:g} s")
                if waited > _SPIN:
                    time.sleep(_PAUSE)
                    if reason := self._communicator.failure():
                        raise BackendError(reason)
                    if fault := self._group._fault():
                        raise _Fault(*fault)

    @contextmanager
    def _lost_after_errors(self, operation: str) -> Iterator[None]:
        """Abort the communicator and lose the group after an error, or an interrupt."""
        group = self._group
        here = f"{operation}: rank {group.rank} of {group.size}"
        try:
            yield
        except _Fault as fault:
            self._end(f"{here} gets no message from rank {fault.rank}: {fault}")
            raise DistributedError(self._group._lost, (fault.rank,)) from None
        except BackendError as error:
            self._end(f"{here} gets no message by NCCL: {error}")
            raise DistributedError(self._group._lost, ()) from error
        except BaseException:
            self._end(f"{here} was interrupted")
            raise

    def _end(self, text: str) -> None:
        """Abort the communicator and mark the group as lost."""
        self._communicator.abort()
        self._group._lose(text)


class _Fault(Exception):
    """A rank ended by an error."""

    def __init__(self, rank: int, reason: str) -> None:
        super().__init__(reason)
        self.rank = rank


def nccl_of(group: Group, operation: str, device: Device) -> Nccl | None:
    """Return what brings messages by NCCL, or None if it cannot be used; collective.

    If there is none, ``group.reasons["nccl"]`` has the reason, the same on all ranks.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    device : Device
        That of this rank.
    """
    if group.size == 1:
        return None
    with group.agreement(operation) as agreed:
        agreed.own = device.ordinal, *_tried(NcclCommunicator.version)
    ordinals, versions, reasons = zip(*agreed.found, strict=True)
    kept: dict[tuple[int, ...], Nccl | str] = group.kept.setdefault("nccl", {})
    if ordinals not in kept:
        reason = _first(reasons) or _difference(versions)
        kept[ordinals] = reason or _started(group, operation, device)
    found = kept[ordinals]
    if isinstance(found, str):
        group.reasons["nccl"] = found
        return None
    return found


def _started(group: Group, operation: str, device: Device) -> Nccl | str:
    """Return what brings messages by NCCL, or why it cannot be used; collective."""
    with group.agreement(operation) as made:
        own = Device(device.backend, device.ordinal, "the first messages of NCCL")
        messages = own.empty((2 * group.size, _FIRST), _OCTET, lasting=True)
        made.own = _tried(NcclCommunicator.unique_id) if group.rank == 0 else (None, "")
    unique, reason = made.found[0]
    if reason:
        return f"rank 0: {reason}"
    start = _Start(group, unique, own, messages)
    with group.agreement(operation) as outcome:
        outcome.own = start.run()
    if reason := _first(outcome.found):
        start.abandon()
        return reason
    assert start.communicator is not None
    return Nccl(group, start.communicator)


class _Start:
    """The start of NCCL and the first messages, in a thread of their own.

    Parameters
    ----------
    group : Group
        The ranks.
    unique : bytes
        That of rank 0.
    device : Device
        That of this rank.
    messages : array, shape (2 * group.size, bytes)
        For the first messages: those that are sent, and those that are received.
    """

    def __init__(self, group: Group, unique: bytes, device: Device, messages: Array) -> None:
        self._group, self._unique = group, unique
        self._device, self._messages = device, messages
        self._is_abandoned = Event()
        self._reason: str | None = None  # None until the thread has ended
        self.communicator: NcclCommunicator | None = None

    def run(self) -> str:
        """Return why NCCL has not started; empty if it has.

        This waits for half of the timeout of the group, so that the ranks wait for each other when
        they then compare their outcomes.
        """
        most = self._group.timeout / 2
        thread = Thread(target=self._connect, daemon=True)
        thread.start()
        thread.join(most)
        if self._reason is None:
            return f"waited {most:g} s for its start"
        return self._reason

    def abandon(self) -> None:
        """Abort the communicator, also one that the thread makes later."""
        self._is_abandoned.set()
        if self.communicator is not None:
            self.communicator.abort()

    def _connect(self) -> None:
        """Connect and exchange the first messages; an error becomes the reason."""
        try:
            group, device = self._group, self._device
            communicator = NcclCommunicator(self._unique, group.rank, group.size, device.ordinal)
            self.communicator = communicator
            if self._is_abandoned.is_set():
                communicator.abort()
            others = [rank for rank in range(group.size) if rank != group.rank]
            communicator.exchange(
                {rank: self._messages[rank] for rank in others},
                {rank: self._messages[group.size + rank] for rank in others},
                device.stream.address,
            )
            device.wait()
            self._reason = ""
        except Exception as error:
            self._reason = str(error) or type(error).__name__


def _tried(function: Callable[[], Any]) -> tuple[Any, str]:
    """Return what a function returns, or the reason why it does not."""
    try:
        return function(), ""
    except BackendError as error:
        return None, str(error)


def _first(reasons: Sequence[str]) -> str:
    """Return the first reason, with its rank; empty if there is none."""
    return next((f"rank {rank}: {reason}" for rank, reason in enumerate(reasons) if reason), "")


def _difference(versions: Sequence[int]) -> str:
    """Return that the ranks have different versions of NCCL; empty if not."""
    return (
        f"the ranks have different versions of NCCL: {', '.join(map(str, versions))}"
        if len(set(versions)) > 1
        else ""
    )
