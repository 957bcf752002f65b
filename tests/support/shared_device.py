"""Devices made of host memory that the ranks of a job share, as GPUs of one host do.

Copies are made as late as a GPU can make them: when somebody waits, or asks whether they are made.
The kernels of the solvers are those of the CPU.
"""

import contextlib
import ctypes
import gc
import mmap
import os
import tempfile
import time
from functools import partial
from pathlib import Path
from threading import RLock
from unittest import mock

import fake_device
import numpy as np
import transform_device
from rank_hooks import answer, clock_at

from pysolvers import _core
from pysolvers.heat._cut_lines import cut_of_host
from pysolvers.poisson import _device, _mirrored, _waves

ELSEWHERE = 256  # PS_PART_ELSEWHERE
_NAME = 64  # bytes of the name of shared memory


class SharedDevice(transform_device.Device):
    """A device whose memory other ranks can open, unless `is_shared` is False."""

    SIZE = 1 << 29  # a file with holes
    STATUS = _core.STATUS

    def __init__(self, *, is_shared=True):
        folder = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self._file, name = tempfile.mkstemp(prefix=f"pysolvers-{os.getpid()}-", dir=folder)
        self.path = Path(name)
        self._is_shared = is_shared
        self._queue = []
        self._lock = RLock()
        self._is_busy = False  # with the first operation of the queue
        self._opened = {}
        self._free = []  # [address, bytes] of memory, in the order of addresses
        self._dead = []  # (address, bytes) of memory that was released
        self.transferred = 0  # bytes between host and device
        super().__init__()
        self._free.append([self._base, self.SIZE])
        device = self

        class Mark:
            def __init__(self, ordinal=0, stream=0, /):
                pass

            @property
            def passed(self):
                return device._advance()

        self.Mark = Mark

    def _protect(self, how):
        """Leave the memory open: to protect it for each call takes long if it is large."""

    def _new_memory(self):
        os.ftruncate(self._file, self.SIZE)
        return mmap.mmap(self._file, self.SIZE)

    def _allocate(self, nbytes):
        size = fake_device.block_size(nbytes)
        self._merge()
        if not any(block[1] >= size for block in self._free):
            gc.collect()
            self._merge()
        block = next((block for block in self._free if block[1] >= size), None)
        if block is None:
            raise MemoryError
        address = block[0]
        block[:] = address + size, block[1] - size
        return address if nbytes else 0

    def _release(self, address, nbytes):
        if nbytes:  # the collector calls this function at any time
            self._dead.append((address, nbytes))

    def _merge(self):
        """Make memory that was released free again, after all copies."""
        self._flush()
        while self._dead:
            address, nbytes = self._dead.pop()
            self._free = sorted([*self._free, [address, fake_device.block_size(nbytes)]])
            for k in range(len(self._free) - 1, 0, -1):
                before, block = self._free[k - 1 : k + 1]
                if sum(before) == block[0]:
                    before[1] += block[1]
                    del self._free[k]

    def waves_fit(self, is_float32, planes, ordinal):
        return 1 < planes <= 40  # more take long here

    def open(self, *_arguments):
        """Memory that may be touched, for a call that can read the memory of other ranks."""
        self._flush()  # what a kernel reads has been written
        return super().open()

    def enqueue(self, operation):
        """Enqueue a function that returns False as long as it must be called again."""
        self._queue.append(operation)

    def _advance(self):
        """Do what is enqueued, as far as it needs no waiting; return whether it is done."""
        with self._lock:  # NCCL starts in a thread of its own
            while self._queue and not self._is_busy:
                self._is_busy = True  # an operation opens the memory
                try:
                    if self._queue[0]() is False:
                        return False
                finally:
                    self._is_busy = False
                self._queue.pop(0)
        return True

    def _flush(self):
        while not self._advance():
            time.sleep(1e-4)

    def upload(self, address, host, ordinal=0, stream=0, /):
        values = np.array(host)
        self.transferred += host.nbytes
        self._queue.append(lambda: super(SharedDevice, self).upload(address, values))
        return 0

    def download(self, host, address, ordinal=0, stream=0, /):
        self._flush()
        self.transferred += host.nbytes
        return super().download(host, address)

    def relayout(self, to, source, ordinal=0, stream=0, /):
        self._queue.append(lambda: super(SharedDevice, self).relayout(to, source))
        return 0

    def add_product(self, to, factor, source, ordinal=0, stream=0, /):
        self._queue.append(lambda: super(SharedDevice, self).add_product(to, factor, source))
        return 0

    def wait(self, ordinal=0, stream=0, /):
        self._flush()
        return 0

    def heat_step(self, *arguments):
        return self._step(_core.heat_step, *arguments)

    def heat_keep(self):
        return _core.heat_keep()

    def heat_cut(self, *arguments):
        *operands, _ordinal, _stream = arguments
        self._queue.append(lambda: self._cut(*operands))
        return 0

    def _cut(self, *operands):
        with self.open():
            cut_of_host(*operands)

    def lmsor_iterate(self, *arguments):
        return self._step(_core.lmsor_iterate, *arguments)

    def laplace_iterate(self, *arguments):
        return self._step(_core.laplace_iterate, *arguments)

    def gceidd_step(self, *arguments):
        return self._step(_core.gceidd_step, *arguments)

    def diffusion_apply(self, *arguments):
        return self._step(_core.diffusion_apply, *arguments)

    def diffusion_solve(self, limits, ends, system, levels, *arguments):
        levels = tuple(
            (*level[:5], tuple(fake_device.core_factor(f) for f in level[5]), level[6])
            for level in levels
        )
        return self._step(_core.diffusion_solve, limits, ends, system, levels, *arguments)

    def diffusion_centre(self, ends, system, x, mean, ordinal=0, stream=0, /):
        """Add a constant at the unknown nodes, so that the mean with volumes is `mean`."""
        _, first, end, _, _ = system
        with self.open():
            at = tuple(slice(a, b) for a, b in zip(first, end, strict=True))[::-1]
            volumes = np.ones(x.shape)
            for axis, (_, *half) in enumerate(ends):
                line = np.moveaxis(volumes, x.ndim - 1 - axis, 0)
                for index, is_half in zip((0, -1), half, strict=True):
                    line[index] *= 0.5 if is_half else 1.0
            found = (volumes * x)[at].sum() / volumes[at].sum()
            x[at] += x.dtype.type(mean - found)
        return 0

    def _step(self, function, *arguments):
        with self.open():
            return function(*arguments)

    def share(self, address, ordinal, /):
        return 0, f"{self.path} {address - self._base}".encode().ljust(_NAME)

    def open_shared(self, name, ordinal, /):
        if not self._is_shared:
            return next(k for k, (text, _) in self.STATUS.items() if text == "PS_UNSUPPORTED"), 0
        path, offset = name.decode().split()
        with open(path, "r+b") as file:
            memory = mmap.mmap(file.fileno(), self.SIZE)
        view = ctypes.c_char.from_buffer(memory)
        address = ctypes.addressof(view) + int(offset)
        self._opened[address] = view  # which keeps the memory
        return 0, address

    def part_barrier(
        self, own, count, slots, number, fails, patience, clock, ordinal=0, stream=0, /
    ):
        """Wait for other devices, as csrc/include/ps_part.h says."""
        others = [k for k in range(count) if k != own]
        began = []

        def pair(owner, sender):
            """Return the slot of a device in the memory of another one."""
            return fake_device._as_host(slots[owner] + 16 * sender, 16).view(np.uint64)

        def advance():
            with self.open():
                noted = clock_at(clock)["late"]
                if not began:
                    began.append(time.monotonic_ns())
                    for other in others:
                        pair(other, own)[0] = fails
                        pair(other, own)[1] = number
                for other in others if not fails else ():
                    word, found = pair(own, other).tolist()
                    if noted[0] == 0 and found >= number and word:
                        noted[0] = ELSEWHERE + 1 + other
                    if noted[0] == 0 and found < number:
                        if time.monotonic_ns() - began[0] <= patience:
                            return False
                        noted[0] = 1 + other
                answered = clock_at(clock).copy()
                answered["calls"] = number
                answer(answered)
            return True

        self._queue.append(advance)
        return 0

    def close_shared(self, address, ordinal, /):
        self._flush()
        del self._opened[address]
        return 0


@contextlib.contextmanager
def in_place_of_cuda(*, is_shared=True):
    """Use a new device as the backend "cuda"."""
    device = SharedDevice(is_shared=is_shared)
    try:
        plans = mock.patch.multiple(
            _device,
            CufftPlan=transform_device.Plan,
            products=lambda _: transform_device.Products(device),
        )
        plan = partial(transform_device.PlanOfWaves, device)
        of_waves = mock.patch.object(_waves, "CufftPlan", plan)
        of_planes = mock.patch.multiple(
            _mirrored,
            CufftPlan=plan,
            products=lambda _: transform_device.Products(device),
        )
        with fake_device.in_place_of_cuda(device), plans, of_waves, of_planes:
            yield device
    finally:
        device.path.unlink(missing_ok=True)
