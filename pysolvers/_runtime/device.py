"""Arrays on a CUDA device: how they are made, copied and combined.

A device array is a NumPy array over memory of the device. It has the shape, strides, dtype and
address of that memory, so that whatever plans with NumPy views plans for devices too. Its elements
must never be read or written here: all that touches them is the backend. Its memory lasts as long
as the array or a view of it.

`Device` is the one place that allocates such memory, copies to it and from it, and checks what the
backend returns. All work of one object is enqueued on one stream.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from math import prod
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import BackendError, raise_for_status
from .lines import pairs
from .streams import PER_THREAD, Stream, private_stream

Array = NDArray[Any]

_ALIGNMENT = 256  # bytes between the starts of two arrays in one block of memory
_BLOCK = 1 << 14  # elements of a product that are computed at once: they stay in a cache


class _Memory:
    """The base of a device array: what NumPy asks for, and the owner of the memory."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, interface: dict[str, Any], owner: object) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def device_array(
    address: int,
    shape: Sequence[int],
    strides: Sequence[int] | None,
    dtype: np.dtype,
    owner: object,
    *,
    readonly: bool = False,
) -> Array:
    """Return an array over memory of a device.

    Parameters
    ----------
    address : int
        Of the element with index 0.
    shape, strides : sequence of int
        As of an ndarray; strides in bytes, None for C order.
    dtype : dtype
        Of the elements.
    owner : object
        What keeps the memory; kept by the array and all views of it.
    readonly : bool
        Whether nothing may be written there.
    """
    interface = {
        "data": (address, readonly),
        "shape": tuple(shape),
        "strides": None if strides is None else tuple(strides),
        "typestr": dtype.str,
        "version": 3,
    }
    return np.asarray(_Memory(interface, owner))


def address_of(array: Array) -> int:
    """Address of the element with index 0."""
    return array.__array_interface__["data"][0]


def is_device_array(array: Array) -> bool:
    """Whether an array is a device array, or a view of one."""
    base = array.base
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, _Memory)


def memory_order(array: Array) -> list[int]:
    """Axes of an array, the slowest in its memory first."""
    return sorted(range(array.ndim), key=lambda axis: (-abs(array.strides[axis]), axis))


def packed_strides(array: Array) -> tuple[int, ...]:
    """Strides of an array without gaps that has its axes in the same order."""
    strides = [0] * array.ndim
    step = array.itemsize
    for axis in reversed(memory_order(array)):
        strides[axis] = step
        step *= max(array.shape[axis], 1)
    return tuple(strides)


def aligned(nbytes: int) -> int:
    """Return the bytes from the start of an array to the next place for one in its block."""
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def without_repeats(array: Array) -> Array:
    """Return an array with length 1 along the axes that repeat its elements."""
    own = (
        slice(1) if stride == 0 and size > 1 else slice(None)
        for size, stride in zip(array.shape, array.strides, strict=True)
    )
    return array[(*own, ...)]


def has_gaps(array: Array) -> bool:
    """Return whether the elements of an array are not one block of memory in a rising order."""
    own = without_repeats(array)
    return not own.transpose(memory_order(own)).flags.c_contiguous


class Host:
    """The memory of the host, by those functions of `Device` that solvers of both need."""

    #: What every call of the backend takes last.
    arguments: tuple[int, ...] = ()

    def empty(self, shape: Sequence[int], dtype: Any, *, lasting: bool = False) -> Array:
        """Allocate an array in C order."""
        del lasting
        return np.empty(shape, dtype)

    def pack(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return copies of arrays in C order."""
        return {name: np.array(array, order="C") for name, array in arrays.items()}

    def download(self, view: Array) -> Array:
        """Return a copy of an array."""
        return np.array(view)

    def hold(self, array: Array) -> Array:
        """Return an array."""
        return array

    def write(self, view: Array, values: Array) -> None:
        """Copy values to a view, to whose shape they broadcast."""
        view[...] = values

    def add_product(self, view: Array, factor: Array, values: Array) -> None:
        """Add the product of two arrays to a view, to which both broadcast."""
        pair = [np.broadcast_to(a, view.shape) for a in (factor, values)]
        rows = max(1, _BLOCK * len(view) // max(view.size, 1))
        for k in range(0, len(view), rows):
            view[k : k + rows] += pair[0][k : k + rows] * pair[1][k : k + rows]


class Device:
    """A CUDA device, and the stream on which its work is enqueued.

    Memory that is not lasting is freed in the order of the stream, and can be used on no other one.

    Parameters
    ----------
    backend : module
        The extension that has the device.
    ordinal : int
        Number of the device.
    operation : str
        Who asks, for messages.
    stream : Stream
        By default that of the calling thread.
    """

    def __init__(
        self,
        backend: ModuleType,
        ordinal: int,
        operation: str,
        stream: Stream = PER_THREAD,
    ) -> None:
        self.backend, self.ordinal, self.stream = backend, ordinal, stream
        self.operation = operation
        #: What every call of the backend takes last.
        self.arguments: tuple[int, ...] = (ordinal, stream.address)

    def check(self, status: int) -> None:
        """Raise the exception for what a call of the backend returned."""
        raise_for_status(status, self.backend.STATUS, self.operation)

    def enqueue(self, function: Callable[..., int], *operands: Any) -> None:
        """Call the backend, which enqueues work; raise what it reports."""
        self.check(function(*operands, *self.arguments))

    def wait(self) -> None:
        """Wait for the end of what was enqueued."""
        self.enqueue(self.backend.wait)

    def follow(self, other: "Device") -> None:
        """Let what is enqueued from now on follow what another device has on its stream."""
        addresses = other.stream.address, self.stream.address
        self.check(self.backend.order(*addresses, self.ordinal))

    def mark(self) -> Any:
        """Return what says whether all that was enqueued so far is complete."""
        return self.backend.Mark(*self.arguments)

    def captured(self, work: Callable[["Device"], object]) -> Any:
        """Return a graph of the work that a function enqueues on the device that it is given.

        The device has a stream of its own, so that the capture contains no other work, and no work
        of other threads can end it. Memory of the work that is not lasting belongs to the graph.
        """
        with private_stream(self.ordinal) as stream:
            own = _Captured(self.backend, self.ordinal, self.operation, stream)
            own.enqueue(self.backend.capture)
            try:
                work(own)
            finally:
                graph = self.backend.Graph(*own.arguments)  # ends the capture in any case
        return graph

    def branches(
        self, count: int, *, at_once: bool = False
    ) -> AbstractContextManager[list["Device"]]:
        """Return a context with devices for work that has no order, and follows all before it.

        What is enqueued after the context follows the work of all. On a stream that is not captured
        they are all this device, and the work has the order of the calls, unless `at_once`.
        """
        return self._branches(count) if at_once else nullcontext([self] * count)

    @contextmanager
    def _branches(self, count: int) -> Iterator[list["Device"]]:
        """Return devices with streams of their own but for the first one."""
        with ExitStack() as streams:
            others = [
                Device(
                    self.backend,
                    self.ordinal,
                    self.operation,
                    streams.enter_context(private_stream(self.ordinal)),
                )
                for _ in range(count - 1)
            ]
            for other in others:
                other.follow(self)
            try:
                yield [self, *others]
            except BaseException:
                with suppress(BackendError):  # the error of an invalid capture
                    for other in others:
                        self.follow(other)
                raise
            for other in others:
                self.follow(other)

    def launch(self, graph: Any) -> None:
        """Enqueue a graph."""
        self.enqueue(graph.launch)

    def memory(self, nbytes: int, *, lasting: bool = False) -> Any:
        """Allocate bytes of the device; a lasting buffer can be used on any stream."""
        return self.backend.Buffer(nbytes, *self.arguments, lasting)

    def empty(
        self,
        shape: Sequence[int],
        dtype: np.dtype,
        strides: Sequence[int] | None = None,
        *,
        lasting: bool = False,
    ) -> Array:
        """Allocate an array without gaps, by default in C order."""
        buffer = self.memory(prod(shape) * dtype.itemsize, lasting=lasting)
        return device_array(buffer.address, shape, strides, dtype, buffer)

    def packed(self, like: Array) -> Array:
        """Allocate an array without gaps that has its axes in the order of `like`."""
        return self.empty(like.shape, like.dtype, packed_strides(like))

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """Allocate an array without gaps, of zeros."""
        target = self.empty(shape, dtype)
        self.write(target, np.zeros((1,) * len(shape), dtype))
        return target

    def upload(self, array: Array, *, lasting: bool = False) -> Array:
        """Return a copy of an array of the host, without gaps and with its axes in its order.

        Axes that repeat elements repeat them in the copy, too.
        """
        own = without_repeats(array)
        block = np.ascontiguousarray(own.transpose(memory_order(own))) if own.ndim else own
        target = self.empty(own.shape, own.dtype, packed_strides(own), lasting=lasting)
        if own.size:
            self.enqueue(self.backend.upload, address_of(target), block)
        return target if own.shape == array.shape else np.broadcast_to(target, array.shape)

    def move(self, *operands: Array) -> list[Array]:
        """Bring inputs of the host to the device."""
        self.begins_copy()
        moved = [self.upload(a) if a.size and not is_device_array(a) else a for a in operands]
        self.ends("copy")
        return moved

    def begins_copy(self) -> None:
        """Take note of the begin of copies, where their time is measured."""

    def ends(self, part: str) -> None:
        """Take note of the end of a part of a call, ``"copy"`` or ``"solve"``, where measured."""

    def hold(self, array: Array) -> Array:
        """Return a copy of an array of the host or of the device, which any stream can use.

        The copy of an array of the host is in C order. Axes of an array of the device that repeat
        elements repeat them in the copy as well.
        """
        if is_device_array(array):
            own = without_repeats(array)
            held = self.empty(own.shape, own.dtype, packed_strides(own), lasting=True)
            self.write(held, own)
            held = np.broadcast_to(held, array.shape)
        else:
            held = self.upload(np.asarray(array, order="C"), lasting=True)
        self.wait()
        return held

    def pack(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return copies of arrays of the host in C order, in one block that any stream can use."""
        starts, end = {}, 0
        for name, array in arrays.items():
            starts[name] = end
            end += aligned(array.nbytes)
        buffer = self.memory(aligned(max(end, 1)), lasting=True)
        found = {}
        for name, array in arrays.items():
            address = buffer.address + starts[name]
            found[name] = device_array(address, array.shape, None, array.dtype, buffer)
            if array.size:
                self.enqueue(self.backend.upload, address, np.ascontiguousarray(array))
        self.wait()
        return found

    def write(self, view: Array, values: Array) -> None:
        """Copy values of the device or of the host to a view, to whose shape they broadcast."""
        if not view.size:
            return
        if not is_device_array(values):
            if values.shape == view.shape and view.flags.c_contiguous:
                block = np.ascontiguousarray(values, view.dtype)
                self.enqueue(self.backend.upload, address_of(view), block)
                return
            values = self.upload(np.asarray(values, view.dtype))
        if values.shape != view.shape:
            values = np.broadcast_to(values, view.shape)
        self.enqueue(self.backend.relayout, view, values)

    def read(self, view: Array, to: Array) -> None:
        """Copy a view to a C-contiguous array of the host, waiting for its elements."""
        if view.size:
            source = view if view.flags.c_contiguous else self.copied(view)
            self.enqueue(self.backend.download, to, address_of(source))

    def download(self, view: Array) -> Array:
        """Return the elements of a view in a new array of the host, waiting for them."""
        found = np.empty(view.shape, view.dtype)
        self.read(view, found)
        return found

    def download_info(self, info: Array) -> Array:
        """Return the numbers of systems, waiting for them; without a copy if all are 0."""
        found = np.empty(info.shape, info.dtype)
        if found.size:
            self.enqueue(self.backend.download_info, found, address_of(info))
        return found

    def copied(self, view: Array) -> Array:
        """Return a copy of a view in C order, on the device."""
        target = self.empty(view.shape, view.dtype)
        self.enqueue(self.backend.relayout, target, view)
        return target

    def add_product(self, view: Array, factor: Array, values: Array) -> None:
        """Add the product of an array of the device and of values to a view.

        The values are on the host, or, if they are real, on the device. Both broadcast to the view.
        """
        if view.dtype.kind == "c":
            # The product of complex numbers, in pairs of real products.
            parts, own = pairs(view), [values.real, values.imag]
            sides = pairs(factor) if factor.dtype.kind == "c" else factor[None]
            for side, turned in zip(sides, (own, [-own[1], own[0]]), strict=False):
                for part, value in zip(parts, turned, strict=True):
                    self.add_product(part, side, value)
            return
        if not view.size:
            return
        if not is_device_array(values):
            values = self.upload(np.ascontiguousarray(values, view.dtype))
        operands = (np.broadcast_to(a, view.shape) for a in (factor, values))
        self.enqueue(self.backend.add_product, view, *operands)


class _Captured(Device):
    """A device whose stream is captured: branches of a graph can run at the same time."""

    def branches(
        self, count: int, *, at_once: bool = False
    ) -> AbstractContextManager[list[Device]]:
        return self._branches(count)
