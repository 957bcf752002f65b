"""CUDA streams of any library, as the address that the backend takes, and streams of our own."""

import ctypes
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .._errors import BackendError


class Stream(NamedTuple):
    """A stream, and what keeps it alive.

    Attributes
    ----------
    address : int
        The ``cudaStream_t``; 0 is the legacy default stream.
    owner : object
        The caller's object.
    """

    address: int
    owner: object = None

    @property
    def number(self) -> int:
        """The stream as DLPack writes it: the legacy default stream is 1."""
        return self.address or 1


LEGACY = Stream(0)

#: The calling thread's own default stream: cudaStreamPerThread.
PER_THREAD = Stream(2)

_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_MOST_KEEPERS = 16  # streams of kept memory of a device
_BETWEEN_STREAMS = 256  # at most the distance of the addresses of two streams
# Streams of each device that no capture uses. They exist as long as the process, because plans of
# libraries keep the stream of their last call.
_free: dict[int, list[Stream]] = {}


@contextmanager
def private_stream(ordinal: int) -> Iterator[Stream]:
    """Return a stream of a device that no other thread uses in this context.

    It does not wait for the legacy default stream, and the legacy default stream does not wait for
    it. While a stream that does so is captured, any use of the legacy default stream, in any
    thread, is an error of CUDA (cudaErrorStreamCaptureImplicit) and ends the capture.

    Raises
    ------
    BackendError
        If the driver cannot make a stream.
    """
    free = _free.setdefault(ordinal, [])
    try:
        stream = free.pop()
    except IndexError:
        stream = _new_stream(ordinal)
    yield stream
    free.append(stream)  # after an error its capture may not have ended


def keeping_stream(ordinal: int, creator: int) -> Stream:
    """Return the stream in whose order memory is allocated and freed that any stream can read.

    It exists as long as the process, and contains nothing but the ends of the calls that read the
    memory. A stream that creates such memory, at the address `creator`, shares it with few others,
    so that a call does not wait for all readers of what other streams created.

    Raises
    ------
    BackendError
        If the driver cannot make a stream.
    """
    return _keeping_stream(ordinal, creator // _BETWEEN_STREAMS % _MOST_KEEPERS)


@cache
def _keeping_stream(ordinal: int, number: int) -> Stream:
    """Return the stream of a number."""
    return _new_stream(ordinal)


def _new_stream(ordinal: int) -> Stream:
    """Make a stream by the driver: the array libraries need not be installed."""
    device, context, stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    _call("cuInit", ctypes.c_uint(0))
    _call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(ordinal))
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)  # that of the CUDA runtime
    _call("cuCtxPushCurrent_v2", context)
    try:
        _call("cuStreamCreate", ctypes.byref(stream), ctypes.c_uint(_NON_BLOCKING))
    finally:
        _call("cuCtxPopCurrent_v2", ctypes.byref(context))
    return Stream(stream.value or 0)


@cache
def device_id(ordinal: int) -> bytes:
    """Return the UUID of a device, the same in all processes; empty if there is no driver."""
    device, name = ctypes.c_int(), ctypes.create_string_buffer(16)
    try:
        _call("cuInit", ctypes.c_uint(0))
        _call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(ordinal))
        _call("cuDeviceGetUuid", name, device)
    except BackendError:
        return b""
    return name.raw


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the driver, or raise BackendError with its status."""
    status = getattr(_driver(), name)(*arguments)
    if status:
        raise BackendError(f"{name} of the CUDA driver failed with status {status}")


@cache
def _driver() -> Any:
    """Return the library of the driver."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise BackendError(f"the library of the CUDA driver is missing: {error}") from error


def as_stream(stream: object) -> Stream:
    """Return the stream that a caller gave.

    Parameters
    ----------
    stream : int or object
        An address, or an object with ``__cuda_stream__()``, ``ptr`` or ``cuda_stream``.

    Raises
    ------
    TypeError
        If it is none of them.
    ValueError
        If its address is negative.
    """
    address = _address(stream)
    if address is None or isinstance(address, bool | np.bool_):
        raise TypeError(
            "stream must be an int or have __cuda_stream__(), ptr or cuda_stream, "
            f"got {type(stream).__name__}"
        )
    try:
        number = operator.index(address)  # type: ignore[arg-type]
    except TypeError:
        kind = type(address).__name__
        raise TypeError(f"the address of stream must be an int, got {kind}") from None
    if number < 0:
        raise ValueError(f"stream must not be negative, got {number}")
    return Stream(number, stream)


def _address(stream: object) -> object:
    """Return what stands for the address; None if there is nothing."""
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _, address = protocol() if callable(protocol) else protocol
        return address
    for attribute in ("cuda_stream", "ptr"):
        address = getattr(stream, attribute, None)
        if address is not None:
            return address
    return stream if hasattr(stream, "__index__") else None
