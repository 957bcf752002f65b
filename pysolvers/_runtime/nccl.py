"""NCCL: messages between devices of several processes, also on several hosts.

The library is loaded when it is first used: nvidia.py. A communicator of this file is blocking: the
calling thread enqueues the messages of a group. With a communicator that is not, another thread
does, which has another default stream.
"""

import _thread
import atexit
import ctypes
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from threading import Thread
from typing import Any

from numpy.typing import NDArray

from .._errors import BackendError
from .device import address_of
from .nvidia import current_device, shared_library

Array = NDArray[Any]

_SUCCESS, _IN_PROGRESS = 0, 7  # of ncclResult_t
_OCTETS = 1  # ncclUint8
_ID = 128  # bytes of ncclUniqueId
_GRACE = 5.0  # seconds that an abort may take, and the end of the process


class _UniqueId(ctypes.Structure):
    """ncclUniqueId, which is passed by value."""

    _fields_ = (("internal", ctypes.c_char * _ID),)


class NcclCommunicator:
    """A communicator of NCCL; the constructor is collective and waits for all ranks.

    Parameters
    ----------
    unique : bytes
        The `unique_id` that one of the ranks made.
    rank, size : int
        Number of this process, and of how many.
    ordinal : int
        Number of the device of this rank.

    Raises
    ------
    BackendError
        If NCCL is missing, or refuses: two ranks on one device, for example.
    """

    def __init__(self, unique: bytes, rank: int, size: int, ordinal: int) -> None:
        self._comm: ctypes.c_void_p | None = None
        self._ordinal = ordinal
        comm = ctypes.c_void_p()
        with current_device(ordinal):
            _call(
                "ncclCommInitRank",
                ctypes.byref(comm),
                size,
                _UniqueId.from_buffer_copy(unique),
                rank,
            )
        self._comm = comm

    @staticmethod
    def version() -> int:
        """Return the version of NCCL: 22809 is 2.28.9."""
        found = ctypes.c_int()
        _call("ncclGetVersion", ctypes.byref(found))
        return found.value

    @staticmethod
    def unique_id() -> bytes:
        """Return 128 bytes by which the ranks of a new communicator find each other."""
        unique = _UniqueId()
        _call("ncclGetUniqueId", ctypes.byref(unique))
        return bytes(unique)

    def exchange(
        self, sends: Mapping[int, Array], receives: Mapping[int, Array], stream: int
    ) -> None:
        """Enqueue messages to other ranks and from them.

        Parameters
        ----------
        sends, receives : mapping of int to array
            Shadows by rank, contiguous; those of no elements are left out.
        stream : int
            Where to enqueue.

        Raises
        ------
        BackendError
            If NCCL reports an error.
        """
        comm = self._comm
        if comm is None:
            raise BackendError("the communicator of NCCL was aborted")
        calls = [("ncclSend", *item) for item in sends.items()]
        calls += [("ncclRecv", *item) for item in receives.items()]
        if not all(array.flags.c_contiguous for *_, array in calls):
            raise ValueError("arrays that NCCL sends or receives must be contiguous")
        with current_device(self._ordinal):
            _call("ncclGroupStart")
            try:
                for name, rank, array in calls:
                    if array.nbytes:
                        _call(name, address_of(array), array.nbytes, _OCTETS, rank, comm, stream)
            finally:
                _call("ncclGroupEnd")

    def failure(self) -> str:
        """Return what has failed since the messages were enqueued; empty if nothing has."""
        if self._comm is None:
            return "the communicator of NCCL was aborted"
        status = ctypes.c_int()
        _call("ncclCommGetAsyncError", self._comm, ctypes.byref(status))
        return "" if status.value in (_SUCCESS, _IN_PROGRESS) else _text(status.value)

    def abort(self) -> None:
        """End all messages that are enqueued; the communicator cannot be used after that."""
        comm, self._comm = self._comm, None
        if comm is not None:
            ending = Thread(target=_library().ncclCommAbort, args=(comm,), daemon=True)
            ending.start()
            ending.join(_GRACE)

    def __del__(self) -> None:
        # ncclCommDestroy can wait for other ranks: a thread calls it. When the process ends, it has
        # no new threads, and the system frees what the communicator has.
        comm = getattr(self, "_comm", None)
        if comm is not None and not sys.is_finalizing():
            ending = _thread.allocate_lock()
            ending.acquire()
            with suppress(RuntimeError):
                _thread.start_new_thread(_destroy, (_library(), comm, ending))
                _endings[:] = [*filter(_thread.LockType.locked, _endings), ending]


# Locks of threads that destroy communicators; each is released at the end of the thread.
_endings: list[_thread.LockType] = []


def _destroy(library: Any, comm: ctypes.c_void_p, ending: _thread.LockType) -> None:
    """Destroy a communicator, and release a lock after that."""
    try:
        library.ncclCommDestroy(comm)
    finally:
        ending.release()


@atexit.register
def _wait_for_endings() -> None:
    """At the end of the process, give the threads in NCCL some time to leave it."""
    end = time.monotonic() + _GRACE
    for ending in _endings:
        ending.acquire(timeout=max(end - time.monotonic(), 0.0))


def _call(name: str, *arguments: Any) -> None:
    """Call a function of NCCL; raise BackendError for a status that is not success."""
    status = getattr(_library(), name)(*arguments)
    if status != _SUCCESS:
        raise BackendError(f"{name} of NCCL failed: {_text(status)}")


def _text(status: int) -> str:
    """Return what a status of NCCL means, and the last error that NCCL reported."""
    library = _library()
    texts = library.ncclGetErrorString(status), library.ncclGetLastError(None)
    return "; ".join(text.decode(errors="replace").strip() for text in texts if text)


@cache
def _library() -> Any:
    """Return the shared library."""
    packages = "nvidia-nccl-cu13 cuda-pathfinder"
    library = shared_library("nccl", "messages by 'nccl' need NCCL", packages)
    integer, size, pointer = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
    message = (pointer, size, integer, integer, pointer, pointer)
    for name, arguments in {
        "ncclGetVersion": (ctypes.POINTER(integer),),
        "ncclGetUniqueId": (ctypes.POINTER(_UniqueId),),
        "ncclCommInitRank": (ctypes.POINTER(pointer), integer, _UniqueId, integer),
        "ncclSend": message,
        "ncclRecv": message,
        "ncclGroupStart": (),
        "ncclGroupEnd": (),
        "ncclCommGetAsyncError": (pointer, ctypes.POINTER(integer)),
        "ncclCommAbort": (pointer,),
        "ncclCommDestroy": (pointer,),
    }.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, integer
    for name, argument in {"ncclGetErrorString": integer, "ncclGetLastError": pointer}.items():
        function = getattr(library, name)
        function.argtypes, function.restype = (argument,), ctypes.c_char_p
    return library
