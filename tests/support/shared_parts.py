"""Devices made of host memory that solve cut lines together, as csrc/include/ps_part.h says.

A kernel waits for the messages of other ranks while these ranks do something else: a thread of each
device makes what is enqueued. A message is the rows of a rank; each rank solves the whole systems.
"""

import contextlib
import pickle
import threading
import time
from unittest import mock

import fake_device
import numpy as np
import shared_device
from rank_hooks import answer, clock_at

from pysolvers import _core
from pysolvers._runtime import interop

MESSAGE = 1 << 16  # bytes
TAG = np.dtype([("tag", "u8"), ("nbytes", "u8")])
ENTRY = np.dtype([("key", "u8"), ("call", "u8")])
STATUS = {text: code for code, (text, _) in _core.STATUS.items()}
ROUND_BITS = 0xFFFF
PERIODIC = _core.PERIODIC


def at(address, dtype, count=1):
    """Return an array over memory of a device that this process has opened."""
    return fake_device._as_host(address, dtype.itemsize * count).view(dtype)


class Part:
    """One call of `part_solve`."""

    def __init__(self, *arguments):
        flags, *self.lines, self.info, self.part, self.count, self.last_rows = arguments[:10]
        self.mailboxes, self.logs, self.key, self.clock, self.patience, self.marks = arguments[
            10:16
        ]
        self.periodic = bool(flags & PERIODIC)
        self.received = None

    def __call__(self):
        """Begin, or go on; False while a message is missing."""
        clock = clock_at(self.clock)
        if self.received is None:
            self.round = int(clock["calls"][0]) + 1
            self.tag = self.key & ~ROUND_BITS & (1 << 64) - 1 | self.round & ROUND_BITS
            self.begun, self.received = time.monotonic_ns(), {}
            self.announce(self.key)
            message = pickle.dumps([np.array(line) for line in self.lines[:4]])
            assert len(message) < MESSAGE
            for other in self.others():
                self.post(other, message)
        missing = [k for k in self.others() if k not in self.received]
        for k in missing:
            self.poll(k, clock)
        if clock["late"][0] == 0 and len(self.received) < self.count - 1:
            return False
        self.finish(clock)
        return True

    def others(self):
        return [k for k in range(self.count) if k != self.part]

    def log(self, owner, part):
        """Return the entry of a part in the log of another one."""
        return at(self.logs[owner] + 16 + 16 * part, ENTRY)

    def calls(self):
        return at(self.logs[self.part], np.dtype("u8"))

    def announce(self, key):
        for other in self.others() if self.logs[self.part] else ():
            self.log(other, self.part)[0] = key, self.calls()[0] + 1

    def place(self, owner, sender):
        half = self.round & 1
        return self.mailboxes[owner] + (half * self.count + sender) * MESSAGE

    def post(self, other, message):
        address = self.place(other, self.part)
        octets = np.frombuffer(message, np.uint8)
        at(address + TAG.itemsize, np.dtype("u1"), len(octets))[:] = octets
        place = at(address, TAG)
        place["nbytes"] = len(octets)
        place["tag"] = self.tag  # after what it stands for: the other rank polls for it

    def poll(self, sender, clock):
        address = self.place(self.part, sender)
        elsewhere = False
        if self.logs[self.part]:
            entry, call = self.log(self.part, sender)[0].copy(), int(self.calls()[0]) + 1
            elsewhere = entry["call"] > call or (entry["call"] == call and entry["key"] != self.key)
        tag, nbytes = at(address, TAG)[0]
        if tag == self.tag:
            octets = at(address + TAG.itemsize, np.dtype("u1"), int(nbytes))
            self.received[sender] = pickle.loads(octets.tobytes())
        elif clock["late"][0] == 0:
            reason = (
                shared_device.ELSEWHERE
                if elsewhere
                else 0
                if time.monotonic_ns() - self.begun > self.patience
                else None
            )
            if reason is not None:
                clock["late"] = reason + 1 + sender
                self.announce(0)

    def finish(self, clock):
        x = self.lines[4]
        info = None if self.info is None else self.info.reshape(x.shape[:2])
        if clock["late"][0]:
            if self.marks == 0:
                x[...] = np.nan
            if info is not None:
                info[...] = -(int(clock["late"][0]) % shared_device.ELSEWHERE)
            failed = True
        else:
            failed = self.solve(x, info)
        if failed:
            clock["failed"] = self.round
        clock["calls"] = self.round
        if self.logs[self.part]:
            self.calls()[0] += 1
        answer(clock)

    def solve(self, x, info):
        """Solve the whole systems without row exchanges; return whether one failed."""
        parts = [self.received.get(k, self.lines[:4]) for k in range(self.count)]
        sizes = [part[1].shape[-1] for part in parts]
        lower, diag, upper, rhs = (np.concatenate(rows, -1) for rows in zip(*parts, strict=True))
        if not self.periodic:
            lower[..., 0] = upper[..., -1] = 0
        dominant = (abs(diag) >= abs(lower) + abs(upper)).all(-1)
        start = sum(sizes[: self.part])
        failed = False
        marks = at(self.marks, np.dtype("u1"), dominant.size) if self.marks else None
        for place in np.ndindex(*dominant.shape):
            a, b, c = lower[place], diag[place], upper[place]
            matrix = np.diag(b) + np.diag(a[1:], -1) + np.diag(c[:-1], 1)
            matrix[0, -1] += a[0]
            matrix[-1, 0] += c[-1]
            row = next((k for k in range(len(b)) if a[k] == b[k] == c[k] == 0), -1)
            number = np.ravel_multi_index(place, dominant.shape)
            if info is not None:
                info[place] = 0
            if marks is not None:
                marks[number] = not dominant[place]
            failed |= row >= 0 or (marks is not None and not dominant[place])
            if row >= 0:
                rank = int(np.searchsorted(np.cumsum(sizes), row, "right"))
                within = row - sum(sizes[:rank])
                first = self.last_rows[rank - 1] + 1 if rank else 0
                info[place] = 1 + (
                    self.last_rows[rank] if within == sizes[rank] - 1 else first + within
                )
            elif marks is None or dominant[place]:
                x[place] = np.linalg.solve(matrix, rhs[place])[start : start + x.shape[-1]]
        return failed


class Answer:
    """Memory of the host, which can be read while a kernel waits."""

    def __init__(self, ordinal=0, stream=0, /):
        self._octets = np.zeros(64, np.uint8)
        self.address = self._octets.ctypes.data

    def read(self, nbytes, /):
        return self._octets[:nbytes].tobytes()

    def end(self):
        pass


class PartsDevice(shared_device.SharedDevice):
    """A device that has the functions of ps_part.h."""

    PERIODIC = PERIODIC
    MOST_ROWS = 1000

    def __init__(self, **options):
        super().__init__(**options)
        self.PART_STEPS = {"whole": 0, "send": 1, "receive": 2}
        self.Answer = Answer
        self.parts = 0  # calls of part_solve
        self.orders = []
        self._ends = False
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        while not self._ends:
            self._advance()
            time.sleep(2e-4)

    def end(self):
        self._ends = True

    def upload(self, address, host, ordinal=0, stream=0, /):
        self.calls.append(("upload", host.nbytes))  # which an `Array` takes back
        return super().upload(address, host)

    def part_mailbox(self, dtype, systems, count, step, /):
        return 0, 2 * count * MESSAGE

    def reach(self, other, ordinal, /):
        return 0

    def part_check(self, *arguments):
        assert len(arguments) == 19
        is_long = arguments[1].shape[-1] > self.MOST_ROWS
        return STATUS["PS_UNSUPPORTED"] if is_long else 0

    def part_solve(self, *arguments):
        assert len(arguments) == 20
        assert arguments[16] == 0
        self.parts += 1
        self.sharing = arguments[19]
        self.enqueue(Part(*arguments))
        return 0

    def part_leave(self, part, count, logs, ends, ordinal, stream, /):
        if ends:
            at(logs[part] + 16, ENTRY, 8)["call"] = (1 << 64) - 1
            return 0

        def leave():
            calls = at(logs[part], np.dtype("u8"))
            for other in range(count):
                if other != part:
                    at(logs[other] + 16 + 16 * part, ENTRY)[0] = 0, calls[0] + 1
            calls += 1

        self.enqueue(leave)
        return 0

    def order(self, first, second, ordinal=0, /):
        self.orders.append((first, second))
        return 0


class Library(interop.Library):
    """The library of the arrays, with one stream that a test sets."""

    has_fast_access = True
    captured = False

    def __init__(self, device):
        self.current = 0
        self.fast_access = None, None, lambda _: self.current, self._empty
        self._device = device

    def _empty(self, like, ordinal):
        shape, dtype = like.__cuda_array_interface__["shape"], like.get().dtype
        return self._device.array(np.zeros(shape, dtype))

    def identity(self, value):
        found = value.__cuda_array_interface__
        return found["data"][0], found["shape"], found["strides"], found["typestr"]

    def is_captured(self, ordinal):
        return self.captured


@contextlib.contextmanager
def in_place_of_cuda():
    """Use a new device as the backend "cuda"; yield it and the library of its arrays."""
    device = PartsDevice()
    library = Library(device)
    try:
        libraries = mock.patch.dict(interop._LIBRARIES, {"fake_device": library})
        interop._library_of_type.cache_clear()
        with fake_device.in_place_of_cuda(device), libraries:
            yield device, library
    finally:
        device.end()
        interop._library_of_type.cache_clear()
        device.path.unlink(missing_ok=True)
