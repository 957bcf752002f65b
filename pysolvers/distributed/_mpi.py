"""Messages between ranks through mpi4py.

The messages of one rank arrive in the order in which they were sent. So a rank that waits for a
message, and finds one of another tag or of another size, knows that the sender makes another call.
A rank that ends by an error which the others have not agreed upon reports it to them.
"""

import atexit
import sys
import time
from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from .._errors import DistributedError
from .._extras import extra_module

__all__ = ["MpiTransport", "agree"]

_SPIN = 1e-3  # seconds of waiting without a pause; then the processor is left to others
_PAUSE = 1e-4  # seconds
_GRACE = 2.0  # seconds
_OTHER = 0.5  # seconds for which a message of another tag waits before it counts as another call
_FAULT = 0  # tag of the message of a rank that ends; those of calls are larger
_LONGEST = 1000  # characters of a reason

_AGREED = "raised on rank "
_ANOTHER_CALL = "it makes another call"

Array = NDArray[Any]


class MpiTransport:
    """Messages of host arrays between all pairs of ranks of an mpi4py communicator.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        An intracommunicator. It is duplicated, so that its own messages are not mixed up.
    """

    name = "mpi"

    def __init__(self, comm: Any) -> None:
        self._mpi = extra_module("mpi4py.MPI", "mpi")
        self._comm = comm.Dup()
        self.rank: int = comm.rank
        self.size: int = comm.size
        self._unfinished: list[Any] = []  # requests and buffers that MPI may still write to
        _open.add(self)

    def exchange(
        self, sends: Mapping[int, Array], receives: Mapping[int, Array], timeout: float, tag: int
    ) -> tuple[tuple[int, ...], str]:
        """Send contiguous arrays to ranks, and receive into contiguous arrays.

        Returns the ranks whose messages did not arrive, or were not received, within `timeout`
        seconds, and the reason if one is known; no ranks if all is well. The tag and the number
        of bytes must agree at both ends.
        """
        start = [(self._comm.Irecv, receives), (self._comm.Isend, sends)]
        pairs = [
            (rank, begin([_octets(array), self._mpi.BYTE], rank, tag + 1))
            for begin, arrays in start
            for rank, array in arrays.items()
            if array.size
        ]
        expected = [(rank, array.nbytes) for rank, array in receives.items() if array.size]
        requests = [request for _, request in pairs]
        statuses = [self._mpi.Status() for _ in requests]
        late: set[int] = set()
        reason = ""
        try:
            if self._wait(requests, statuses, timeout, [rank for rank, _ in expected]):
                found = [status.Get_count(self._mpi.BYTE) for status in statuses[: len(expected)]]
                late = {rank for (rank, n), m in zip(expected, found, strict=True) if m != n}
                return tuple(sorted(late)), _ANOTHER_CALL if late else ""
        except _Fault as fault:
            late, reason = {fault.rank}, fault.reason
        except self._mpi.Exception as error:
            reason = str(error)
            kinds = [self._mpi.Get_error_class(status.error) for status in statuses]
            cut = self._mpi.ERR_TRUNCATE
            late = {rank for (rank, _), kind in zip(pairs, kinds, strict=True) if kind == cut}
            reason = _ANOTHER_CALL if late else reason
        except BaseException:  # an interrupt
            self._unfinished += [requests, sends, receives]
            raise
        self._unfinished += [requests, sends, receives]
        late = late or {rank for rank, request in pairs if reason or not request.Test()}
        return tuple(sorted(late)), reason

    def _wait(
        self, requests: list[Any], statuses: list[Any], timeout: float, senders: list[int]
    ) -> bool:
        """Wait for all requests, the first ones from `senders`; return whether they are finished.

        Raises `_Fault` if a rank ended by an error, or makes another call.
        """
        begun = time.monotonic()
        other: float | None = None  # when a message of another call was first seen
        while not self._mpi.Request.Testall(requests, statuses):
            waited = time.monotonic() - begun
            if waited > timeout:
                return False
            if waited > _SPIN:
                fault = self.fault()
                if fault is not None:
                    raise _Fault(*fault)
                rank = self._other_call(requests, senders)
                other = None if rank is None else other or waited
                if rank is not None and other is not None and waited - other > _OTHER:
                    raise _Fault(rank, _ANOTHER_CALL)
            time.sleep(_PAUSE if waited > _SPIN else 0)
        return True

    def fault(self) -> tuple[int, str] | None:
        """Return a rank that ended by an error, and the error; None if none did."""
        status = self._mpi.Status()
        if self._comm.Iprobe(self._mpi.ANY_SOURCE, _FAULT, status):
            text = bytearray(status.Get_count(self._mpi.BYTE))
            self._comm.Recv([text, self._mpi.BYTE], status.source, _FAULT)
            return status.source, f"it raised {text.decode(errors='replace')}"
        return None

    def _other_call(self, requests: list[Any], senders: list[int]) -> int | None:
        """Return a sender whose message is missing while another one of it waits."""
        for rank, request in zip(senders, requests, strict=False):
            if self._comm.Iprobe(rank, self._mpi.ANY_TAG) and not request.Get_status():
                return rank
        return None

    def report(self, text: str) -> None:
        """Send the reason why this rank ends to the other ranks."""
        if self._mpi.Is_finalized():
            return
        octets = text[:_LONGEST].encode()
        for rank in range(self.size):
            if rank != self.rank:
                request = self._comm.Isend([octets, self._mpi.BYTE], rank, _FAULT)
                self._unfinished += [request, octets]

    def abandon(self) -> None:
        """End all processes: after a rank is lost, MPI cannot be finalized.

        The others, which wait for that rank as well, get time to raise their errors.
        """
        time.sleep(_GRACE)
        self._mpi.COMM_WORLD.Abort(1)


class _Fault(Exception):
    """A rank takes no part in an exchange, and the reason is known."""

    def __init__(self, rank: int, reason: str) -> None:
        super().__init__(rank, reason)
        self.rank, self.reason = rank, reason


_open: WeakSet[MpiTransport] = WeakSet()


def _report_error() -> None:
    """At the end of the process, report an error to the other ranks if they do not know it."""
    error = getattr(sys, "last_value", None)
    if error is None or is_agreed(error):
        return
    for transport in list(_open):
        transport.report(f"{type(error).__name__}: {error}")


atexit.register(_report_error)


def agree(error: BaseException, rank: int, size: int) -> None:
    """Note that all ranks know an error of this one."""
    error.add_note(f"{_AGREED}{rank} of {size}")


def is_agreed(error: BaseException) -> bool:
    """Whether all ranks know an error: one of another rank, or one noted by `agree`."""
    notes = getattr(error, "__notes__", ())
    return isinstance(error, DistributedError) or any(n.startswith(_AGREED) for n in notes)


def _octets(array: Array) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)
