"""Messages between ranks through mpi4py.

The messages of one rank arrive in the order in which they were sent. So a rank that waits for a
message, and finds one of another tag or of another size, knows that the sender makes another call.
A rank that ends says so to the others: with its error if the others have not agreed upon it, and
with an empty message otherwise. A rank that has ended is missing only in an exchange with it.
"""

import atexit
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import DistributedError
from .._extras import extra_module

_SPIN = 1e-3  # seconds of waiting without a pause; then the processor is left to others
_PAUSE = 1e-4  # seconds
_GRACE = 2.0  # seconds
_OTHER = 0.5  # seconds for which another call or an end is seen before a message counts as missing
_FAULT = 0  # tag of the message of a rank that ends; those of calls are larger
_LONGEST = 1000  # characters of a reason

_AGREED = "raised on rank "
_ANOTHER_CALL = "it makes another call"
_ENDED = "it has ended"

Array = NDArray[Any]


class MpiTransport:
    """Messages of host arrays between all pairs of ranks of an mpi4py communicator.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        An intracommunicator. It is duplicated, so that its own messages are not mixed up. The copy
        is kept until `close`, or until MPI is finalized: `MPI_Comm_free` is collective, and ranks
        collect garbage at different times.
    """

    name = "mpi"

    def __init__(self, comm: Any) -> None:
        self._mpi = extra_module("mpi4py.MPI", "mpi")
        self._comm = comm.Dup()
        self.rank: int = comm.rank
        self.size: int = comm.size
        self._unfinished: list[Any] = []  # requests and buffers that MPI may still write to
        self._ended: set[int] = set()  # ranks that have ended without an error
        _open.append(self)

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
            ranks = [rank for rank, _ in pairs]
            if self._wait(requests, statuses, timeout, ranks, len(expected)):
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
        self,
        requests: list[Any],
        statuses: list[Any],
        timeout: float,
        ranks: list[int],
        receives: int,
    ) -> bool:
        """Wait for all requests, each with one of `ranks`; return whether they are finished.

        The first `receives` requests are those of messages from other ranks. Raises `_Fault` if a
        rank ended, or makes another call.
        """
        begun = time.monotonic()
        missing, since = None, 0.0  # the rank and reason that were seen, and when first
        while not self._mpi.Request.Testall(requests, statuses):
            waited = time.monotonic() - begun
            if waited > timeout:
                return False
            if waited > _SPIN:
                fault = self.fault()
                if fault is not None:
                    raise _Fault(*fault)
                found = self._missing(requests, ranks, receives)
                if found != missing:
                    missing, since = found, waited
                if missing is not None and waited - since > _OTHER:
                    raise _Fault(*missing)
            time.sleep(_PAUSE if waited > _SPIN else 0)
        return True

    def fault(self) -> tuple[int, str] | None:
        """Return a rank that ended by an error, and the error; None if none did."""
        status = self._mpi.Status()
        while self._comm.Iprobe(self._mpi.ANY_SOURCE, _FAULT, status):
            text = bytearray(status.Get_count(self._mpi.BYTE))
            self._comm.Recv([text, self._mpi.BYTE], status.source, _FAULT)
            if text:
                return status.source, f"it raised {text.decode(errors='replace')}"
            self._ended.add(status.source)
        return None

    def ended(self) -> tuple[int, str] | None:
        """Return a rank that has ended without an error, of which `fault` has found the note."""
        return next(((rank, _ENDED) for rank in self._ended), None)

    def _missing(
        self, requests: list[Any], ranks: list[int], receives: int
    ) -> tuple[int, str] | None:
        """Return a rank of an open request that has ended, or whose other message waits."""
        for k, (rank, request) in enumerate(zip(ranks, requests, strict=True)):
            if rank in self._ended and not request.Get_status():
                return rank, _ENDED
            waits = k < receives and self._comm.Iprobe(rank, self._mpi.ANY_TAG)
            if waits and not request.Get_status():
                return rank, _ANOTHER_CALL
        return None

    def report(self, text: str) -> None:
        """Send the other ranks the error by which this rank ends, or an empty text."""
        if self._mpi.Is_finalized():
            return
        octets = text[:_LONGEST].encode()
        for rank in range(self.size):
            if rank != self.rank:
                request = self._comm.Isend([octets, self._mpi.BYTE], rank, _FAULT)
                self._unfinished += [request, octets]

    def close(self) -> None:
        """Free the communicator, unless MPI is finalized or messages are not complete."""
        if self in _open and not self._unfinished and not self._mpi.Is_finalized():
            _open.remove(self)
            self._comm.Free()

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


# Of this process, so that what MPI may still write to outlives the groups.
_open: list[MpiTransport] = []


def _report_end() -> None:
    """At the end of the process, say so to the other ranks, with an error that they do not know."""
    error = getattr(sys, "last_value", None)
    is_known = error is None or is_agreed(error)
    for transport in _open:
        transport.report("" if is_known else f"{type(error).__name__}: {error}")


atexit.register(_report_end)


def agree(error: BaseException, rank: int, size: int) -> None:
    """Note that all ranks know an error of this one."""
    error.add_note(f"{_AGREED}{rank} of {size}")


def is_agreed(error: BaseException) -> bool:
    """Whether all ranks know an error: one of another rank, or one noted by `agree`."""
    notes = getattr(error, "__notes__", ())
    return isinstance(error, DistributedError) or any(n.startswith(_AGREED) for n in notes)


def _octets(array: Array) -> NDArray[np.uint8]:
    """Return the bytes of an array, which MPI can send without a type of its own."""
    return array.reshape(-1).view(np.uint8)
