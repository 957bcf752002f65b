"""Where the fields of a solver lie: in arrays of the host, or on a device."""

from collections.abc import Callable, Mapping
from math import prod
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._errors import BackendError, raise_for_status
from .backends import parse_device, require
from .shadows import address_of, shadow
from .streams import PER_THREAD

__all__ = ["DeviceState", "HostState", "State", "count_of_a_call", "make_state", "read_only"]

Array = NDArray[Any]
Layout = tuple[tuple[int, ...], Any]

_ALIGNMENT = 256  # bytes between the starts of two fields on a device
_CACHE_LINE = 64  # bytes that the start of a field on the host is a multiple of

# Updates of nodes in a call of a backend: those of one to two seconds on two cores (2.5e8 to 5e8
# nodes per second) or on a large GPU (3e10 to 6e10).
_UPDATES = {"cpu": 1 << 29, "cuda": 1 << 36}
_LEAST = 16  # steps in a call: what a call does once costs a few percent of them


class State:
    """Named fields of fixed shapes and dtypes, zero at first.

    The host's copy of a field is updated when it is read, so that fields
    stay on the device between calls.
    """

    #: What every call of the backend takes last.
    arguments: tuple[int, ...] = ()

    def operand(self, name: str, *, changes: bool = True) -> Array:
        """Return a field for the backend, which can change it unless `changes` is False."""
        raise NotImplementedError

    def get(self, name: str) -> Array:
        """Return a field now, to be read."""
        raise NotImplementedError

    def set(self, name: str, values: ArrayLike) -> None:
        """Replace the values of a field."""
        raise NotImplementedError

    def copy(self, to: str, source: str) -> None:
        """Make one field equal to another of the same layout."""
        raise NotImplementedError


class HostState(State):
    """Fields in arrays of the host.

    Parameters
    ----------
    layout : mapping of str to (shape, dtype)
        The fields.
    """

    def __init__(self, layout: Mapping[str, Layout]) -> None:
        self._fields = {name: _zeros(shape, dtype) for name, (shape, dtype) in layout.items()}

    def operand(self, name: str, *, changes: bool = True) -> Array:
        del changes
        return self._fields[name]

    def get(self, name: str) -> Array:
        return self._fields[name]

    def set(self, name: str, values: ArrayLike) -> None:
        self._fields[name][...] = values

    def copy(self, to: str, source: str) -> None:
        self._fields[to][...] = self._fields[source]


class DeviceState(State):
    """Fields on a device.

    Between two calls nothing is in flight, so that they may come from any thread.

    Parameters
    ----------
    layout : mapping of str to (shape, dtype)
        The fields.
    backend : module
        The extension that has the device.
    ordinal : int
        Number of the device.
    owner : str
        Who asks, for messages.
    """

    def __init__(
        self, layout: Mapping[str, Layout], backend: ModuleType, ordinal: int, owner: str
    ) -> None:
        self._backend, self._owner = backend, owner
        self.arguments = (ordinal, PER_THREAD.address)
        self._fields = {name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()}
        self._current = set(self._fields)
        places, end = {}, 0
        for name, field in self._fields.items():
            places[name] = end
            end += -(-field.nbytes // _ALIGNMENT) * _ALIGNMENT
        self._buffer = backend.Buffer(max(end, _ALIGNMENT), *self.arguments, True)
        self._shadows = {
            name: shadow(
                self._buffer.address + places[name],
                field.shape,
                field.strides,
                field.dtype,
                self._buffer,
            )
            for name, field in self._fields.items()
        }
        for name, field in self._fields.items():
            self._upload(name, field)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            f"a {self._owner} on a device cannot be pickled or copied: write its state with "
            f"save() and read it with {self._owner}.load()"
        )

    def operand(self, name: str, *, changes: bool = True) -> Array:
        if changes:
            self._current.discard(name)
        return self._shadows[name]

    def get(self, name: str) -> Array:
        if name not in self._current:
            values, source = self._fields[name], address_of(self._shadows[name])
            status = self._backend.download(values, source, *self.arguments)
            raise_for_status(status, self._backend.STATUS, self._owner)
            self._current.add(name)
        return self._fields[name]

    def set(self, name: str, values: ArrayLike) -> None:
        self._fields[name][...] = values
        self._upload(name, self._fields[name])
        self._current.add(name)

    def copy(self, to: str, source: str) -> None:
        self._current.discard(to)
        self._call(self._backend.relayout, self._shadows[to], self._shadows[source])

    def copy_from(self, to: str, other: "DeviceState", source: str) -> None:
        """Make a field equal to one of the same layout of another state on the device."""
        self._current.discard(to)
        self._call(self._backend.relayout, self._shadows[to], other._shadows[source])

    @property
    def backend(self) -> ModuleType:
        """The extension that has the device."""
        return self._backend

    def _upload(self, name: str, values: Array) -> None:
        if values.size:
            self._call(self._backend.upload, address_of(self._shadows[name]), values)

    def _call(self, function: Callable[..., int], *operands: Any) -> None:
        """Enqueue a call and wait for its end."""
        for status in (function(*operands, *self.arguments), self._backend.wait(*self.arguments)):
            raise_for_status(status, self._backend.STATUS, self._owner)


def count_of_a_call(most: int, nodes: int, device: str | None) -> int:
    """Return how many steps a call of the backend makes: those of a second or two, at most `most`.

    Between two calls the progress is shown.

    Parameters
    ----------
    most : int
        Largest number.
    nodes : int
        Nodes that a step updates.
    device : str or None
        ``'cpu'``, ``'cuda'`` or ``'cuda:N'``; None is the CPU.
    """
    steps = _UPDATES[parse_device(device)[0]] // max(nodes, 1)
    return min(most, max(steps, _LEAST))


def make_state(layout: Mapping[str, Layout], device: str | None, owner: str) -> State:
    """Return fields where the device, ``'cpu'`` or ``'cuda:N'``, can reach them.

    Parameters
    ----------
    layout : mapping of str to (shape, dtype)
        The fields.
    device : str or None
        As in `solve_tridiagonal`.
    owner : str
        Who asks, for messages.

    Returns
    -------
    state : State
        All zero.

    Raises
    ------
    BackendError
        If the device is not available.
    """
    name, ordinal = parse_device(device)
    backend = require(name)
    if name == "cpu":
        return HostState(layout)
    count = backend.device_count()
    if ordinal >= count:
        raise BackendError(f"there is no device cuda:{ordinal}: {count} in all")
    return DeviceState(layout, backend, ordinal, owner)


def _zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array of zeros that begins with a cache line."""
    empty = np.empty(0, dtype)
    size = prod(shape) * empty.itemsize
    block = np.zeros(size + _CACHE_LINE, np.uint8)
    start = -block.ctypes.data % _CACHE_LINE
    return block[start : start + size].view(empty.dtype).reshape(shape)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of an array that cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view
