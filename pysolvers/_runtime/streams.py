"""CUDA streams of any library, as the address that the backend takes."""

import operator
from typing import NamedTuple

import numpy as np


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
