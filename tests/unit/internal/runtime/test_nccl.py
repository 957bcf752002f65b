"""How the communicator calls NCCL, with a library that takes notes in its place."""

import ctypes
from threading import Event
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from pysolvers import BackendError
from pysolvers._runtime import nccl, nvidia
from pysolvers._runtime.nccl import NcclCommunicator

INVALID_USAGE, REMOTE_ERROR = 5, 6
UNIQUE = bytes(range(128))


class Notes:
    """The functions of NCCL; `status` has those that fail."""

    def __init__(self):
        self.calls = []
        self.status = {}
        self.asynchronous = 0

    def __getattr__(self, name):
        def function(*arguments):
            self.calls.append((name, *arguments))
            return self.status.get(name, 0)

        return function

    def ncclCommInitRank(self, comm, size, unique, rank):
        self.calls.append(("ncclCommInitRank", size, bytes(unique), rank))
        ctypes.cast(comm, ctypes.POINTER(ctypes.c_void_p))[0] = 1000
        return self.status.get("ncclCommInitRank", 0)

    def ncclCommGetAsyncError(self, comm, status):
        ctypes.cast(status, ctypes.POINTER(ctypes.c_int))[0] = self.asynchronous
        return 0

    def ncclGetErrorString(self, status):
        return {INVALID_USAGE: b"invalid usage", REMOTE_ERROR: b"remote error"}[status]

    def ncclGetLastError(self, comm):
        return b"Duplicate GPU detected\n"


@pytest.fixture
def library():
    notes = Notes()
    cuda = mock.patch.object(
        nvidia, "require", return_value=SimpleNamespace(device_count=lambda: 1)
    )
    with mock.patch.object(nccl, "_library", return_value=notes), cuda:
        yield notes


def test_messages_are_enqueued_in_one_group(library):
    communicator = NcclCommunicator(UNIQUE, 1, 3, 0)
    first, second, nothing = np.zeros((2, 3)), np.zeros(5, np.float32), np.zeros((0, 4))

    communicator.exchange({0: first, 2: nothing}, {2: second}, 2)

    name, size, unique, rank = library.calls[0]
    assert (name, size, unique, rank) == ("ncclCommInitRank", 3, UNIQUE, 1)
    names = [name for name, *_ in library.calls[1:]]
    assert names == ["ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd"]
    for call, array, other in ((2, first, 0), (3, second, 2)):
        _, address, nbytes, kind, peer, comm, stream = library.calls[call]
        assert (address, nbytes, peer) == (array.ctypes.data, array.nbytes, other)
        assert (kind, comm.value, stream) == (1, 1000, 2)


def test_group_is_ended_after_an_error(library):
    communicator = NcclCommunicator(UNIQUE, 0, 2, 0)
    library.status = {"ncclRecv": INVALID_USAGE}

    with pytest.raises(BackendError, match="ncclRecv of NCCL failed: invalid usage; Duplicate GPU"):
        communicator.exchange({1: np.zeros(2)}, {1: np.zeros(2)}, 2)

    assert library.calls[-1] == ("ncclGroupEnd",)


def test_arrays_with_gaps_are_refused(library):
    communicator = NcclCommunicator(UNIQUE, 0, 2, 0)

    with pytest.raises(ValueError, match="must be contiguous"):
        communicator.exchange({}, {1: np.zeros((3, 4))[:, 1:]}, 2)

    assert library.calls[1:] == []


def test_refused_start_has_the_reason_and_nothing_to_destroy(library):
    library.status = {"ncclCommInitRank": INVALID_USAGE}

    with pytest.raises(BackendError, match="ncclCommInitRank of NCCL failed: invalid usage"):
        NcclCommunicator(UNIQUE, 0, 2, 0)

    assert [name for name, *_ in library.calls] == ["ncclCommInitRank"]


def test_failure_is_that_of_the_messages(library):
    communicator = NcclCommunicator(UNIQUE, 0, 2, 0)
    assert communicator.failure() == ""
    library.asynchronous = REMOTE_ERROR
    assert "remote error" in communicator.failure()

    communicator.abort()

    assert library.calls[-1][0] == "ncclCommAbort"
    assert "was aborted" in communicator.failure()
    with pytest.raises(BackendError, match="was aborted"):
        communicator.exchange({}, {1: np.zeros(2)}, 2)


@pytest.mark.parametrize("is_aborted", [False, True])
def test_communicator_is_destroyed_once_and_nobody_waits(library, is_aborted):
    destroyed, others, done = [], Event(), Event()

    def destroy(comm):
        others.wait(60)
        destroyed.append(comm.value)
        done.set()

    library.ncclCommDestroy = destroy
    communicator = NcclCommunicator(UNIQUE, 0, 2, 0)
    if is_aborted:
        communicator.abort()

    del communicator  # does not wait for the others

    assert destroyed == []
    others.set()
    assert is_aborted or done.wait(60)
    assert destroyed == ([] if is_aborted else [1000])
