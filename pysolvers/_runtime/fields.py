"""Fields of a solver: named arrays on the host, or on a device."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .backends import parse_device, require_device
from .device import Device, Host

Array = NDArray[Any]
Index = tuple[slice, ...]  # of a part of a field
Layout = tuple[tuple[int, ...], Any]

_ALL: Any = (...,)  # of an array of any number of axes

_CACHE_LINE = 64  # bytes that the start of a field on the host is a multiple of

# Updates of nodes in a call of a backend: those of one to two seconds on two cores (2.5e8 to 5e8
# nodes per second) or on a large GPU (3e10 to 6e10).
_UPDATES = {"cpu": 1 << 29, "cuda": 1 << 36}
_LEAST = 16  # steps in a call: what a call does once costs a few percent of them


class Fields:
    """Named fields of fixed shapes and dtypes, zero at first.

    The host's copy of a field is updated when it is read, so that fields stay on the device between
    calls.
    """

    #: What every call of the backend takes last.
    arguments: tuple[int, ...] = ()

    @property
    def memory(self) -> Host | Device:
        """What copies and combines the arrays that `operand` returns; a device only enqueues."""
        raise NotImplementedError

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


class HostFields(Fields):
    """Fields in arrays of the host.

    Parameters
    ----------
    layout : mapping of str to (shape, dtype)
        The fields.
    """

    def __init__(self, layout: Mapping[str, Layout]) -> None:
        self._arrays = {name: _zeros(shape, dtype) for name, (shape, dtype) in layout.items()}

    @property
    def memory(self) -> Host:
        return Host()

    def operand(self, name: str, *, changes: bool = True) -> Array:
        del changes
        return self._arrays[name]

    def get(self, name: str) -> Array:
        return self._arrays[name]

    def set(self, name: str, values: ArrayLike) -> None:
        self._arrays[name][...] = values

    def copy(self, to: str, source: str) -> None:
        self._arrays[to][...] = self._arrays[source]

    def swap(self, one: str, other: str) -> None:
        arrays = self._arrays
        arrays[one], arrays[other] = arrays[other], arrays[one]

    def blank(self, name: str) -> Array:
        return self._arrays[name]

    def changed(self, name: str) -> None:
        pass

    def part(self, name: str, at: Index) -> Array:
        return np.array(self._arrays[name][at])

    def set_part(self, name: str, at: Index, values: Array) -> None:
        self._arrays[name][at] = values

    def hold(self, values: Array) -> Array:
        return values

    def add_product(self, name: str, at: Index, factor: Array, values: Array) -> None:
        self.memory.add_product(self._arrays[name][at], factor, values)


class DeviceFields(Fields):
    """Fields on a device.

    Between two calls nothing is in flight, so that they may come from any thread.

    Parameters
    ----------
    layout : mapping of str to (shape, dtype)
        The fields.
    device : Device
        Where they lie; its `operation` names the owner.
    """

    def __init__(self, layout: Mapping[str, Layout], device: Device) -> None:
        self.device, self.arguments = device, device.arguments
        self._host = {name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()}
        self._current = set(self._host)  # fields of which the array of the host is right
        self._there = device.pack(self._host)

    @property
    def memory(self) -> Device:
        """What copies and combines its arrays."""
        return self.device

    def __reduce__(self) -> tuple[Any, ...]:
        owner = self.device.operation
        raise TypeError(
            f"a {owner} on a device cannot be pickled or copied: write its state with "
            f"save() and read it with {owner}.load()"
        )

    def operand(self, name: str, *, changes: bool = True) -> Array:
        if changes:
            self._current.discard(name)
        return self._there[name]

    def get(self, name: str) -> Array:
        if name not in self._current:
            self.device.read(self._there[name], self._host[name])
            self._current.add(name)
        return self._host[name]

    def set(self, name: str, values: ArrayLike) -> None:
        self._host[name][...] = values
        self.changed(name)

    def copy(self, to: str, source: str) -> None:
        self.copy_from(to, self, source)

    def swap(self, one: str, other: str) -> None:
        for arrays in (self._host, self._there):
            arrays[one], arrays[other] = arrays[other], arrays[one]
        current = {one: other, other: one}
        self._current = {current.get(name, name) for name in self._current}

    def copy_from(self, to: str, other: "DeviceFields", source: str) -> None:
        """Make a field equal to one of the same layout of other fields on the device."""
        self._write(to, _ALL, other._there[source])

    def blank(self, name: str) -> Array:
        return self._host[name]

    def changed(self, name: str) -> None:
        self._write(name, _ALL, self._host[name])
        self._current.add(name)

    def part(self, name: str, at: Index) -> Array:
        if name in self._current:
            return np.array(self._host[name][at])
        return self.device.download(self._there[name][at])

    def set_part(self, name: str, at: Index, values: Array) -> None:
        self._write(name, at, values)

    def hold(self, values: Array) -> Array:
        return self.device.hold(values)

    def add_product(self, name: str, at: Index, factor: Array, values: Array) -> None:
        self._current.discard(name)
        self.device.add_product(self._there[name][at], factor, values)
        self.device.wait()

    def array(self, name: str) -> Array:
        """Return a field on the device, to be read there."""
        return self._there[name]

    def write(self, name: str, at: Index, source: Array) -> None:
        """Enqueue a copy of a device array to a part of a field."""
        self._current.discard(name)
        self.device.write(self._there[name][at], source)

    def read(self, name: str, at: Index, to: Array) -> None:
        """Enqueue a copy of a part of a field to a device array."""
        self.device.write(to, self._there[name][at])

    def wait(self) -> None:
        """Wait for the end of what was enqueued."""
        self.device.wait()

    def _write(self, name: str, at: Index, source: Array) -> None:
        """Copy to a part of a field, and wait."""
        self.write(name, at, source)
        self.wait()


class DeviceViews(DeviceFields):
    """Arrays on a device that lie elsewhere in each call, without copies on the host.

    Parameters
    ----------
    device : Device
        Where they lie.
    """

    def __init__(self, device: Device) -> None:
        self._host, self._current = {}, set()
        self.take(device, {})

    def take(self, device: Device, arrays: Mapping[str, Array]) -> None:
        """Take the arrays, and the stream, of a call."""
        self.device, self.arguments = device, device.arguments
        self._there = dict(arrays)


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


def make_fields(layout: Mapping[str, Layout], device: str | None, owner: str) -> Fields:
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
    fields : Fields
        All zero.

    Raises
    ------
    BackendError
        If the device is not available.
    """
    memory = memory_of(device, owner)
    return HostFields(layout) if isinstance(memory, Host) else DeviceFields(layout, memory)


def memory_of(device: str | None, owner: str) -> Host | Device:
    """Return where arrays of a solver lie; arguments and errors as of `make_fields`."""
    name, ordinal = parse_device(device)
    return Host() if name == "cpu" else Device(require_device(ordinal), ordinal, owner)


def _zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array of zeros that begins with a cache line."""
    empty = np.empty(0, dtype)
    size = prod(shape) * empty.itemsize
    block = np.zeros(size + _CACHE_LINE, np.uint8)
    start = -block.ctypes.data % _CACHE_LINE
    return block[start : start + size].view(empty.dtype).reshape(shape)
