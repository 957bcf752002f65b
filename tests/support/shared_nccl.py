"""A communicator in place of that of NCCL, for the devices of shared_device.py.

A message is a file that its receiver removes. Messages are sent in the order of the stream of the
device: what was enqueued before them is done first, and what comes after them waits until all of
them have arrived.
"""

import contextlib
import os
import secrets
import shutil
import tempfile
from pathlib import Path
from threading import Event
from unittest import mock

import numpy as np

from pysolvers import BackendError
from pysolvers._runtime import nccl, nvidia
from pysolvers.distributed import _nccl

_ID = 128  # bytes


class Communicator:
    """`NcclCommunicator` for one device; `device` is set by `in_place_of_nccl`."""

    device = None

    def __init__(self, unique, rank, size, ordinal):
        assert len(unique) == _ID
        self._folder = Path(os.fsdecode(unique.rstrip(b"\0")))
        self._rank, self._size = rank, size
        self._count = 0  # of exchanges
        self._is_aborted = False

    @staticmethod
    def version():
        return 22809

    @staticmethod
    def unique_id():
        parent = "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir()
        return os.fsencode(f"{parent}/pysolvers-{secrets.token_hex(8)}").ljust(_ID, b"\0")

    def exchange(self, sends, receives, stream):
        assert all(array.flags.c_contiguous for array in (*sends.values(), *receives.values()))
        assert self._rank not in {*sends, *receives} <= set(range(self._size))
        self._count += 1
        count, left, pending = self._count, dict(receives), dict(sends)

        def advance():
            if self._is_aborted:
                return True
            try:
                self._folder.mkdir(exist_ok=True)
                for rank, array in list(pending.items()):
                    path = self._folder / f"{count} {self._rank} {rank}"
                    path.with_suffix(".part").write_bytes(array.tobytes())
                    path.with_suffix(".part").rename(path)
                    del pending[rank]
            # Another rank aborts, and removes the folder: after mkdir found it, or later.
            except (FileExistsError, FileNotFoundError):
                return False
            for rank, array in list(left.items()):
                path = self._folder / f"{count} {rank} {self._rank}"
                if path.exists():
                    octets = np.fromfile(path, np.uint8)
                    array.reshape(-1).view(np.uint8)[:] = octets  # raises for another size
                    path.unlink()
                    del left[rank]
            return not left

        self.device.enqueue(advance)

    def failure(self):
        return ""

    def abort(self):
        self._is_aborted = True
        shutil.rmtree(self._folder, ignore_errors=True)

    def __del__(self):
        # A rank that has no more messages can end before another one has got its own.
        with contextlib.suppress(OSError, AttributeError):
            self._folder.rmdir()


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

    def exchange(self, sends, receives, stream):
        if self._count == 0:
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
