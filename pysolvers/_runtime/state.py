"""Where the fields of a solver lie: in arrays of the host, or on a device."""

from collections.abc import Callable, Mapping
from math import prod
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._errors import raise_for_status
from .._views import read_only
from .backends import parse_device, require_device
from .lines import contiguous_strides
from .shadows import address_of, shadow
from .streams import PER_THREAD

__all__ = [
    "DeviceState",
    "HostState",
    "Index",
    "State",
    "count_of_a_call",
    "make_state",
    "read_only",
]

Array = NDArray[Any]
Index = tuple[slice, ...]  # of a part of a field
Layout = tuple[tuple[int, ...], Any]

_ALIGNMENT = 256  # bytes between the starts of two fields on a device
_CACHE_LINE = 64  # bytes that the start of a field on the host is a multiple of

# Updates of nodes in a call of a backend: those of one to two seconds on two cores (2.5e8 to 5e8
# nodes per second) or on a large GPU (3e10 to 6e10).
_UPDATES = {"cpu": 1 << 29, "cuda": 1 << 36}
_LEAST = 16  # steps in a call: what a call does once costs a few percent of them
_BLOCK = 1 << 14  # elements of a product that are computed at once: they stay in a cache


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

    def swap(self, one: str, other: str) -> None:
        """Exchange two fields of the same layout, without a copy."""
        raise NotImplementedError

    def blank(self, name: str) -> Array:
        """Return the array of the host for a field, to be filled before `changed`."""
        raise NotImplementedError

    def changed(self, name: str) -> None:
        """Take what was written to the array that `get` or `blank` returned."""
        raise NotImplementedError

    def part(self, name: str, at: Index) -> Array:
        """Return a copy of a part of a field, on the host."""
        raise NotImplementedError

    def set_part(self, name: str, at: Index, values: Array) -> None:
        """Replace a part of a field by values of the host, of its shape and dtype."""
        raise NotImplementedError

    def hold(self, values: Array) -> Array:
        """Return values of the host as an array that `add_product` takes."""
        raise NotImplementedError

    def add_product(self, name: str, at: Index, factor: Array, values: Array) -> None:
        """Add the product of an array of `hold` and of values of the host to a part of a field.

        Both broadcast to the part, and have its number of axes and its dtype.
        """
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

    def swap(self, one: str, other: str) -> None:
        fields = self._fields
        fields[one], fields[other] = fields[other], fields[one]

    def blank(self, name: str) -> Array:
        return self._fields[name]

    def changed(self, name: str) -> None:
        pass

    def part(self, name: str, at: Index) -> Array:
        return np.array(self._fields[name][at])

    def set_part(self, name: str, at: Index, values: Array) -> None:
        self._fields[name][at] = values

    def hold(self, values: Array) -> Array:
        return values

    def add_product(self, name: str, at: Index, factor: Array, values: Array) -> None:
        to = self._fields[name][at]
        pair = [np.broadcast_to(a, to.shape) for a in (factor, values)]
        rows = max(1, _BLOCK * len(to) // max(to.size, 1))
        for k in range(0, len(to), rows):
            to[k : k + rows] += pair[0][k : k + rows] * pair[1][k : k + rows]


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
        self._staging: Any = None  # memory of the device for parts of fields on their way
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

    def swap(self, one: str, other: str) -> None:
        for fields in (self._fields, self._shadows):
            fields[one], fields[other] = fields[other], fields[one]
        current = {one: other, other: one}
        self._current = {current.get(name, name) for name in self._current}

    def copy_from(self, to: str, other: "DeviceState", source: str) -> None:
        """Make a field equal to one of the same layout of another state on the device."""
        self._current.discard(to)
        self._call(self._backend.relayout, self._shadows[to], other._shadows[source])

    def blank(self, name: str) -> Array:
        return self._fields[name]

    def changed(self, name: str) -> None:
        self._upload(name, self._fields[name])
        self._current.add(name)

    def part(self, name: str, at: Index) -> Array:
        if name in self._current:
            return np.array(self._fields[name][at])
        view = self._shadows[name][at]
        values = np.empty(view.shape, view.dtype)
        if values.size:
            if not view.flags.c_contiguous:
                self._enqueue(self._backend.relayout, packed := self._packed(view), view)
                view = packed
            self._enqueue(self._backend.download, values, address_of(view))  # waits
        return values

    def set_part(self, name: str, at: Index, values: Array) -> None:
        view = self._shadows[name][at]
        if not view.size:
            return
        self._current.discard(name)
        values = np.ascontiguousarray(values, view.dtype)
        if view.flags.c_contiguous:
            self._call(self._backend.upload, address_of(view), values)
            return
        packed = self._packed(view)
        self._enqueue(self._backend.upload, address_of(packed), values)
        self._call(self._backend.relayout, view, packed)

    def hold(self, values: Array) -> Array:
        values = np.ascontiguousarray(values)
        buffer = self._backend.Buffer(max(values.nbytes, _ALIGNMENT), *self.arguments, True)
        held = shadow(buffer.address, values.shape, values.strides, values.dtype, buffer)
        if values.size:
            self._call(self._backend.upload, address_of(held), values)
        return held

    def add_product(self, name: str, at: Index, factor: Array, values: Array) -> None:
        view = self._shadows[name][at]
        if not view.size:
            return
        self._current.discard(name)
        values = np.ascontiguousarray(values, view.dtype)
        packed = self._packed(values)
        self._enqueue(self._backend.upload, address_of(packed), values)
        operands = (np.broadcast_to(a, view.shape) for a in (factor, packed))
        self._call(self._backend.add_product, view, *operands)

    def shadow(self, name: str) -> Array:
        """Return a field on the device, to be read: its elements cannot be read here."""
        return self._shadows[name]

    def write(self, name: str, at: Index, source: Array) -> None:
        """Enqueue a copy of an array on the device, a shadow, to a part of a field."""
        self._current.discard(name)
        self._enqueue(self._backend.relayout, self._shadows[name][at], source)

    def read(self, name: str, at: Index, to: Array) -> None:
        """Enqueue a copy of a part of a field to an array on the device, a shadow."""
        self._enqueue(self._backend.relayout, to, self._shadows[name][at])

    def wait(self) -> None:
        """Wait for the end of what was enqueued."""
        self._enqueue(self._backend.wait)

    @property
    def ordinal(self) -> int:
        """Number of the device."""
        return self.arguments[0]

    @property
    def backend(self) -> ModuleType:
        """The extension that has the device."""
        return self._backend

    def _packed(self, like: Array) -> Array:
        """Return an array without gaps, of the shape of another one, on the device.

        It is valid until the next call of this function.
        """
        if self._staging is None or self._staging.nbytes < like.nbytes:
            self._staging = self._backend.Buffer(like.nbytes, *self.arguments, True)
        strides = contiguous_strides(like.shape, like.itemsize)
        return shadow(self._staging.address, like.shape, strides, like.dtype, self._staging)

    def _upload(self, name: str, values: Array) -> None:
        if values.size:
            self._call(self._backend.upload, address_of(self._shadows[name]), values)

    def _enqueue(self, function: Callable[..., int], *operands: Any) -> None:
        """Enqueue a call."""
        raise_for_status(function(*operands, *self.arguments), self._backend.STATUS, self._owner)

    def _call(self, function: Callable[..., int], *operands: Any) -> None:
        """Enqueue a call and wait for its end."""
        self._enqueue(function, *operands)
        self._enqueue(self._backend.wait)


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
    if name == "cpu":
        return HostState(layout)
    return DeviceState(layout, require_device(ordinal), ordinal, owner)


def _zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array of zeros that begins with a cache line."""
    empty = np.empty(0, dtype)
    size = prod(shape) * empty.itemsize
    block = np.zeros(size + _CACHE_LINE, np.uint8)
    start = -block.ctypes.data % _CACHE_LINE
    return block[start : start + size].view(empty.dtype).reshape(shape)
