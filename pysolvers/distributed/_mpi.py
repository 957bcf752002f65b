"""Messages between ranks through mpi4py."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._extras import extra_module

__all__ = ["MpiTransport"]

_SPIN = 1e-3  # seconds of waiting without a pause; then the processor is left to others
_PAUSE = 1e-4  # seconds
_GRACE = 2.0  # seconds

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

    def exchange(
        self, sends: Mapping[int, Array], receives: Mapping[int, Array], timeout: float
    ) -> tuple[tuple[int, ...], str]:
        """Send contiguous arrays to ranks, and receive into contiguous arrays.

        Returns the ranks whose messages did not arrive, or were not received, within `timeout`
        seconds, and the error of MPI if there is one; no ranks if all is well. The number of
        bytes must agree at both ends.
        """
        start = [(self._comm.Irecv, receives), (self._comm.Isend, sends)]
        pairs = [
            (rank, begin([_octets(array), self._mpi.BYTE], rank))
            for begin, arrays in start
            for rank, array in arrays.items()
            if array.size
        ]
        requests = [request for _, request in pairs]
        try:
            if self._wait(requests, timeout):
                return (), ""
            reason = ""
        except self._mpi.Exception as error:
            reason = str(error)
        except BaseException:  # an interrupt
            self._unfinished += [requests, sends, receives]
            raise
        self._unfinished += [requests, sends, receives]
        late = {rank for rank, request in pairs if reason or not request.Test()}
        return tuple(sorted(late)), reason

    def _wait(self, requests: list[Any], timeout: float) -> bool:
        """Wait for all requests; return whether they were finished in time."""
        begun = time.monotonic()
        while not self._mpi.Request.Testall(requests):
            waited = time.monotonic() - begun
            if waited > timeout:
                return False
            time.sleep(_PAUSE if waited > _SPIN else 0)
        return True

    def abandon(self) -> None:
        """End all processes: after a rank is lost, MPI cannot be finalized.

        The others, which wait for that rank as well, get time to raise their errors.
        """
        time.sleep(_GRACE)
        self._mpi.COMM_WORLD.Abort(1)


def _octets(array: Array) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)
