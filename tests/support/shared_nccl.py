"""A communicator in place of that of NCCL, for the devices of shared_device.py.

Messages are sent by MPI, in the order of the stream of the device: what was enqueued before them is
done first, and what comes after them waits until all have arrived.
"""

import contextlib
import os
from threading import Event
from unittest import mock

from mpi4py import MPI

from pysolvers import BackendError
from pysolvers._runtime import nccl, nvidia
from pysolvers.distributed import _nccl

_ID = 128  # bytes


class Communicator:
    """`NcclCommunicator` for one device; `device` is set by `in_place_of_nccl`."""

    device = None

    def __init__(self, unique, rank, size, ordinal):
        assert len(unique) == _ID
        assert (rank, size) == (MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size)
        self._tag = int.from_bytes(unique, "little") % 30000  # no other one has its messages
        self._is_aborted = False
        self._unfinished = []

    @staticmethod
    def version():
        return 22809

    @staticmethod
    def unique_id():
        return os.urandom(_ID)

    def exchange(self, sends, receives, stream):
        assert all(array.flags.c_contiguous for array in (*sends.values(), *receives.values()))
        requests, expected = [], [array.nbytes for array in receives.values()]

        def advance():
            if self._is_aborted:
                return True
            if not requests:
                for begin, arrays in (
                    (MPI.COMM_WORLD.Irecv, receives),
                    (MPI.COMM_WORLD.Isend, sends),
                ):
                    for rank, array in arrays.items():
                        octets = [array.reshape(-1).view("u1"), MPI.BYTE]
                        requests.append(begin(octets, rank, self._tag))
                self._unfinished = requests[: len(receives)]
            statuses = [MPI.Status() for _ in requests]
            if not MPI.Request.Testall(requests, statuses):
                return False
            self._unfinished = []
            found = [status.Get_count(MPI.BYTE) for status in statuses[: len(expected)]]
            assert found == expected
            return True

        self.device.enqueue(advance)

    def failure(self):
        return ""

    def abort(self):
        self._is_aborted = True
        for request in self._unfinished:
            request.Cancel()
            request.Wait()


class RefusedCommunicator(Communicator):
    """NCCL refuses, as for two ranks on one device."""

    def __init__(self, *arguments):
        raise BackendError("ncclCommInitRank of NCCL failed: invalid usage")


class HangingCommunicator(Communicator):
    """The start never ends."""

    def __init__(self, *arguments):
        Event().wait()


class SilentCommunicator(Communicator):
    """The messages after the first ones are not sent."""

    _count = 0

    def exchange(self, sends, receives, stream):
        self._count += 1
        if self._count == 1:
            super().exchange(sends, receives, stream)
        else:
            self.device.enqueue(lambda: self._is_aborted)


class FailingCommunicator(SilentCommunicator):
    """NCCL reports an error of messages that were enqueued."""

    def failure(self):
        return "remote process exited or there was a network error"


@contextlib.contextmanager
def in_place_of_nccl(device, kind=Communicator):
    """Use a class of communicators for a device."""
    own = type(kind.__name__, (kind,), {"device": device})
    with mock.patch.object(_nccl, "NcclCommunicator", own):
        yield


@contextlib.contextmanager
def missing():
    """Let NCCL be not installed."""
    kept = nvidia.shared_library, nccl._library
    for function in kept:
        function.cache_clear()
    missing = mock.patch.object(nvidia, "import_module", side_effect=ImportError("no module"))
    try:
        with missing, mock.patch.object(_nccl, "NcclCommunicator", nccl.NcclCommunicator):
            yield
    finally:
        for function in kept:
            function.cache_clear()
