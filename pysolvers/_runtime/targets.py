"""Where a call runs: host arrays, device arrays, or host arrays staged on a device.

A target checks and promotes the operands of a call, returns arrays of the host or of the device for
the planning code, makes the copies that a plan needs where the operands lie, and returns the result
as an array of the caller's library.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import DTYPES, as_array, as_operands, check_out, promote, weak_names
from .backends import parse_device, require, require_device
from .device import (
    Device,
    address_of,
    device_array,
    has_gaps,
    is_device_array,
    memory_order,
)
from .fp_mode import call_in_default_fp_mode
from .interop import Library, keep_until, kind_of, library_of, locate, view
from .lines import write_lines
from .singular import Singular
from .streams import PER_THREAD, Stream, as_stream, keeping_stream

Array = NDArray[Any]

_INFO = np.dtype(np.int32)
_ANY_DEVICE = ("cuda", "gpu")  # that of the arrays, whatever its number
# Bytes of a product that are computed at once: they stay in a cache, and are fewer than those for
# which the C library asks the system for new memory.
_BLOCK = 1 << 16


def report_of_nothing() -> dict[str, Any]:
    """Return what a backend reports of a call, for one that has no systems to solve."""
    return {"method": "auto", "pivoted": 0, "repeated": 0, "kernel": "", "threads": 0}


class Target:
    """The CPU: operands are used where they lie.

    Attributes
    ----------
    name : str
        Of the backend.
    ordinal : int
        Number of the device.
    backend : module
        The extension.
    arguments : tuple of int
        What every call of the backend takes last.
    is_synchronous : bool
        Whether the result is complete when the call returns, so that reading from the device what
        went wrong costs no further waiting.
    fills_nan : bool
        Whether `fill_nan` writes NaN where the operands are used.
    seconds : dict or None
        Time spent on copies and on solving, where they are apart.
    """

    name = "cpu"
    is_synchronous = True
    fills_nan = False

    def __init__(self, backend: ModuleType, ordinal: int = 0) -> None:
        self.backend = backend
        self.ordinal = ordinal
        self.arguments: tuple[int, ...] = (0, 0)
        self.seconds: dict[str, float] | None = None

    def without_operands(self) -> "Target":
        """Return a target for later calls, which keeps nothing of this one."""
        return self

    @property
    def device_name(self) -> str:
        """As the argument `device` of a call: ``'cpu'`` or ``'cuda:N'``."""
        return self.name if self.name == "cpu" else f"{self.name}:{self.ordinal}"

    def reports_singular(self, policy: str) -> bool:
        """Whether a call with this `on_singular` reports which systems are singular."""
        return self.is_synchronous or policy in ("raise", "warn")

    def description(self, report: Mapping[str, Any], singular: Singular | None) -> dict[str, Any]:
        """Return what a SolveInfo says of the target, from the report of its backend."""
        return {
            **report,
            "pivoted": report["pivoted"] if report["pivoted"] >= 0 else None,
            "repeated": report["repeated"] if report["repeated"] >= 0 else None,
            "backend": self.name,
            "device": self.ordinal,
            "seconds": self.seconds,
            "singular": None if singular is None else singular.systems,
            "singular_rows": None if singular is None else singular.rows,
        }

    def operands(
        self,
        named: Mapping[str, Any],
        like: Mapping[str, Array] | None = None,
        *,
        widens: bool = False,
        vectors: Collection[str] = ("rhs",),
    ) -> tuple[list[Array], np.dtype, tuple[str, ...]]:
        """Return arrays of the promoted dtypes, as `as_operands` does."""
        return as_operands(named, like, widens=widens, vectors=vectors)

    def mask(self, name: str, value: Any) -> Array:
        """Return an operand of booleans."""
        return _booleans(name, as_array(name, value))

    @property
    def copier(self) -> Callable[[Array], Array] | None:
        """What copies an array of a device; None on the host."""
        return None

    @property
    def converts(self) -> bool:
        """Whether `widen` works for all operands."""
        return True

    def widen(self, name: str, operand: Array, dtype: np.dtype) -> Array:
        """Return a complex copy of a real operand."""
        return call_in_default_fp_mode(operand.astype, dtype)

    def result(
        self,
        out: Any,
        named: Mapping[str, Any],
        rhs: Array,
        shape: tuple[int, ...],
        dtype: np.dtype,
        *,
        leader: str = "rhs",
        replaces: str = "rhs",
    ) -> Array:
        """Return where the result is written: in `out`, or in a new array like the leader, `rhs`.

        `out` may be the operand that it replaces; '*': it may overlap any.
        """
        if out is not None:
            given = {} if replaces == "*" else named
            inputs = {name: np.asarray(value) for name, value in given.items()}
            return check_out(library_of(out).host_view(out), shape, dtype, inputs, replaces)
        if rhs.shape == shape:
            return np.empty_like(rhs)
        return np.empty(shape, dtype)

    def move(self, *operands: Array) -> list[Array]:
        """Bring inputs to where they are used."""
        return list(operands)

    def destination(self, x: Array) -> Array:
        """Return where the backend writes the result."""
        return x

    def empty(self, shape: tuple[int, ...], dtype: np.dtype, *, lasting: bool = False) -> Array:
        """Allocate a C-contiguous array; a lasting one can be used on any stream."""
        return np.empty(shape, dtype)

    @property
    def keeper(self) -> Stream | None:
        """The stream of kept arrays that this call creates; None on the host."""
        return None

    def kept(self, shape: tuple[int, ...], dtype: np.dtype, keeper: Stream | None) -> Array:
        """Allocate a C-contiguous array that calls on any stream can read until it is freed.

        A call that has enqueued its work on such arrays calls `has_read_kept`, so that the memory
        is not used for other arrays before. To allocate it costs less than a lasting array does.
        """
        return np.empty(shape, dtype)

    def has_read_kept(self, keeper: Stream | None) -> None:
        """Let the end of kept arrays follow what this call has enqueued."""

    def extreme(self, name: str, index: tuple[Any, ...], *, largest: bool) -> float | None:
        """Return the largest or the smallest element of a part of an operand on a device.

        Waits for it; None if the library of the operand cannot do this on the stream of the call.
        """
        return None

    def wait(self) -> None:
        """Wait until all that was enqueued is done."""

    def info(self, count: int, *, lasting: bool = False) -> Array:
        """Allocate what the backend writes a number for each system to."""
        return np.zeros(count, _INFO)

    def flags(self, count: int) -> Array:
        """Allocate numbers, 0 at first, that a call sets; `flags_on_host` must follow."""
        return np.zeros(count, _INFO)

    def flags_on_host(self, flags: Array) -> list[int]:
        """Return what `flags` allocated, waiting for all that was enqueued."""
        found: list[int] = flags.tolist()
        return found

    def on_host(self, array: Array) -> Array:
        """Return an array on the host, waiting for its elements; it is not to be changed."""
        return array

    def info_on_host(self, info: Array) -> Array:
        """Return what `info` allocated on the host, waiting for its numbers."""
        return info

    def merged(
        self, view: Array, tail: int, batch: Sequence[int], groups: Sequence[Sequence[int]]
    ) -> Array | None:
        """View with each group of batch axes as one; None if only a copy has such a view.

        The last `tail` axes are not batch axes. Axes of length 1 broadcast to the batch.
        """
        raise NotImplementedError

    def copied(self, view: Array) -> Array:
        """Return a copy in C order where the operands are used."""
        return np.array(view, order="C")

    def reversed_rows(self, lines: Array) -> Array:
        """View lines (outer, inner, rows) from the last row to the first."""
        return lines[..., ::-1]

    def restore(self, lines: Array, operand: Array, order: Sequence[int]) -> None:
        """Write lines, their axes in this order, to the operand if they are a copy of it."""
        if not np.may_share_memory(lines, operand):
            write_lines(lines, operand, order)

    def fill_nan(self, lines: Array, info: Array) -> None:
        """Write NaN to the lines (outer, inner, rows) whose `info`, (outer, inner), is not 0."""
        raise NotImplementedError

    def packed(self, like: Array) -> Array:
        """Allocate an array without gaps that has its axes in the order of `like`."""
        return np.empty_like(like)

    def write(self, view: Array, values: Array) -> None:
        """Copy values to a view, to whose shape they broadcast."""
        view[...] = values

    def selected(self, values: Array, where: Array, other: Array | float) -> Array:
        """Return a new array: values where a mask of the host is True, and others elsewhere.

        The mask has the shape of the array, to which the values and the others broadcast.
        """
        return np.where(where, values, np.asarray(other, values.dtype))

    def upload(self, array: Array) -> Array:
        """Return an array of the host as one that `write` takes."""
        return array

    def hold(self, array: Array) -> Array:
        """Return an array of the host where calls on any stream can use it."""
        return array

    def download(self, view: Array) -> Array:
        """Return the elements of a view in a new array of the host, waiting for them."""
        return np.array(view)

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """Allocate an array without gaps, of zeros."""
        return np.zeros(shape, dtype)

    def write_sum(self, view: Array, base: Array, products: Sequence[tuple[Array, Array]]) -> None:
        """Write `base` and the sum of products of an array and of values of the host to a view.

        The arrays broadcast to the view, which has one axis at least. `base` can be the view.
        """
        order = memory_order(view)
        to, first = view.transpose(order), base.transpose(order)
        pairs = [
            [np.broadcast_to(part, view.shape).transpose(order) for part in product]
            for product in products
        ]
        count = max(1, _BLOCK * len(to) // max(view.nbytes, 1))
        product = np.empty_like(to[:count])
        for start in range(0, len(to), count):
            block = slice(start, start + count)
            total, part = to[block], product[: len(to[block])]
            if base is not view:
                total[...] = first[block]
            for factor, values in pairs:
                np.multiply(factor[block], values[block], out=part)
                total += part

    def release_inputs(self) -> None:
        """Take note that all work on the inputs has been enqueued."""

    def finish(self, x: Array, like: Any = None, out: Any = None) -> Any:
        """Return the result to the caller: `out`, or an array of the library of `like`."""
        if out is not None:
            return out
        return x if type(like) is np.ndarray else library_of(like).from_host(x, like)


class DeviceTarget(Device, Target):
    """A CUDA device: everything is enqueued on one stream."""

    name = "cuda"
    fills_nan = True

    def __init__(self, backend: ModuleType, ordinal: int, stream: Stream, operation: str) -> None:
        Target.__init__(self, backend, ordinal)
        Device.__init__(self, backend, ordinal, operation, stream)
        self._answer: Any = None  # memory of the host that has the flags

    def without_operands(self) -> Target:
        return DeviceTarget(self.backend, self.ordinal, self.stream, self.operation)

    @property
    def copier(self) -> Callable[[Array], Array] | None:
        return self.copied

    @property
    def is_captured(self) -> bool:
        """Whether what is enqueued becomes a part of a graph of the caller."""
        return False

    @property
    def keeper(self) -> Stream | None:
        return keeping_stream(self.ordinal, self.stream.address)

    def kept(self, shape: tuple[int, ...], dtype: np.dtype, keeper: Stream | None) -> Array:
        assert keeper is not None
        device = Device(self.backend, self.ordinal, self.operation, keeper)
        array = device.empty(shape, dtype)
        self.follow(device)
        return array

    def has_read_kept(self, keeper: Stream | None) -> None:
        assert keeper is not None
        if not self.is_captured:  # the caller keeps what a graph of its own reads
            Device(self.backend, self.ordinal, self.operation, keeper).follow(self)

    def info(self, count: int, *, lasting: bool = False) -> Array:
        return self.empty((count,), _INFO, lasting=lasting)

    def flags(self, count: int) -> Array:
        try:
            self._answer = self.backend.Answer(*self.arguments)
        except RuntimeError:  # none is free
            return self.upload(np.zeros(count, _INFO))
        return device_array(self._answer.address, (count,), None, _INFO, self._answer)

    def flags_on_host(self, flags: Array) -> list[int]:
        if self._answer is None:
            found = self.on_host(flags)
        else:
            self.wait()
            found = np.frombuffer(self._answer.read(flags.nbytes), flags.dtype)
            self._answer.end()
        return super().flags_on_host(found)

    def on_host(self, array: Array) -> Array:
        return self.download(array)

    def info_on_host(self, info: Array) -> Array:
        return self.download_info(info)

    def merged(
        self, view: Array, tail: int, batch: Sequence[int], groups: Sequence[Sequence[int]]
    ) -> Array | None:
        shape, steps = view.shape[-tail:], view.strides[-tail:]
        sizes, strides = [], []
        for group in groups:
            step, size = 0, 1
            for axis in reversed([axis for axis in group if batch[axis] > 1]):
                own = view.strides[axis] if view.shape[axis] > 1 else 0
                if size > 1 and own != step * size:
                    return None
                step, size = step if size > 1 else own, size * batch[axis]
            sizes.append(size)
            strides.append(step)
        return self._like(view, (*sizes, *shape), (*strides, *steps))

    def restore(self, lines: Array, operand: Array, order: Sequence[int]) -> None:
        if address_of(lines) == address_of(operand):
            return
        rows = operand.shape[-1]
        shape = (*(operand.shape[axis] for axis in order), rows)
        steps = (*(operand.strides[axis] for axis in order), operand.strides[-1])
        self.write(self._like(operand, shape, steps), self._like(lines, shape, None))

    def fill_nan(self, lines: Array, info: Array) -> None:
        self.enqueue(self.backend.fill_nan, lines, info)

    def selected(self, values: Array, where: Array, other: Array | float) -> Array:
        if not is_device_array(values):
            return super().selected(values, where, other)
        found = self._inside_alone(values, where)
        if not found.size or (isinstance(other, float) and other == 0):
            return found
        if isinstance(other, float):
            other = self.upload(np.full((1,) * where.ndim, other, values.dtype))
        one = np.ones((1,) * where.ndim, values.dtype)
        self.add_product(found, self._inside_alone(other, ~where), one)  # one of both is 0
        return found

    def _inside_alone(self, values: Array, where: Array) -> Array:
        """Return a new array: values where a mask of the host is True, and 0 elsewhere.

        It is a step of 0 whose matrix is 0 and whose source are the values. No element depends on
        another one: all arrays have the order of the mask in memory.
        """
        order = memory_order(where)
        flat = np.ascontiguousarray(where.transpose(order)) if where.ndim else where
        found = self.zeros(flat.shape, values.dtype)
        if not found.size:
            return found.transpose(np.argsort(order))
        lines = (1, -1, where.shape[-1] if where.ndim else 1)
        x, mask = found.reshape(lines), self.upload(flat).reshape(lines)
        source = self.copied(np.broadcast_to(values, where.shape).transpose(order)).reshape(lines)
        zero = np.broadcast_to(self.zeros((1, 1, 1), values.dtype), x.shape)
        backend = self.backend
        status, _ = backend.step_solve(
            *(backend.STEP_KINDS["theta"], backend.PIVOTS["never"], 0, zero, zero, zero),
            *(x, x, None, 1.0, 1.0, source, None, mask, (None,) * 4, 0, *self.arguments, False),
        )
        self.check(status)
        return found.transpose(np.argsort(order))

    def _like(self, array: Array, shape: Sequence[int], strides: Sequence[int] | None) -> Array:
        """View the memory of a device array with another shape, by default in C order."""
        readonly = not array.flags.writeable
        return device_array(
            address_of(array), shape, strides, array.dtype, array, readonly=readonly
        )

    def write_sum(self, view: Array, base: Array, products: Sequence[tuple[Array, Array]]) -> None:
        if base is not view:
            self.write(view, base)
        for factor, values in products:
            self.add_product(view, factor, values)


def _booleans(name: str, array: Array) -> Array:
    """Return an array of booleans, or raise TypeError."""
    if array.dtype != np.bool_:
        raise TypeError(f"{name}: need booleans, got {array.dtype}: write {name} != 0")
    return array


def _in_memory_order(array: Array) -> Array:
    """Return an array with its slowest axis first: C-contiguous if it has no gaps."""
    return array.transpose(memory_order(array))


class _DeviceArrays(DeviceTarget):
    """A device that holds the operands: nothing waits, unless for what went wrong."""

    is_synchronous = False

    def __init__(
        self,
        backend: ModuleType,
        ordinal: int,
        stream: Stream,
        operation: str,
        names: Collection[str],
    ) -> None:
        super().__init__(backend, ordinal, stream, operation)
        self._names = names
        self._named: Mapping[str, Any] = {}
        self._views: dict[str, Array] = {}
        self._converted: dict[str, Any] = {}  # copies of another dtype
        self._libraries: set[Library] = set()
        self._library = Library()
        self._result: Any = None

    def operands(
        self,
        named: Mapping[str, Any],
        like: Mapping[str, Array] | None = None,
        *,
        widens: bool = False,
        vectors: Collection[str] = ("rhs",),
    ) -> tuple[list[Array], np.dtype, tuple[str, ...]]:
        self._named = {**self._named, **named}
        arrays = {name: self._view_or_scalar(name, value) for name, value in named.items()}
        dtype, dtypes = promote(arrays, weak_names(named), like, widens=widens, vectors=vectors)
        operands = [
            array if array.dtype == wanted else self.widen(name, array, wanted)
            for (name, array), wanted in zip(arrays.items(), dtypes, strict=True)
        ]
        return operands, dtype, tuple(self._converted)

    def mask(self, name: str, value: Any) -> Array:
        self._named = {**self._named, name: value}
        return _booleans(name, self._view_or_scalar(name, value))

    @property
    def is_captured(self) -> bool:
        return any(library.is_captured(self.ordinal) for library in self._libraries)

    @property
    def converts(self) -> bool:
        return all(library.converts for library in self._libraries)

    def widen(self, name: str, operand: Array, dtype: np.dtype) -> Array:
        if name not in self._views:
            return operand.astype(dtype)
        value = self._named[name]
        self._converted[name] = library_of(value).converted(name, value, dtype)
        return view(name, self._converted[name], self.stream)

    def result(
        self,
        out: Any,
        named: Mapping[str, Any],
        rhs: Array,
        shape: tuple[int, ...],
        dtype: np.dtype,
        *,
        leader: str = "rhs",
        replaces: str = "rhs",
    ) -> Array:
        if out is None:
            like = named[leader]
            self._library = library_of(like)
            self._result = self._library.empty(like, rhs, shape, self.ordinal)
            x = view("the result", self._result, self.stream)
            if x.flags.writeable:
                return x
            return device_array(address_of(x), x.shape, x.strides, x.dtype, x)
        self._library = library_of(out)
        if not self._library.mutable:
            raise TypeError(f"out must be writeable, a {kind_of(out)} never is")
        self._result = out
        inputs = {} if replaces == "*" else self._views
        return check_out(view("out", out, self.stream), shape, dtype, inputs, replaces)

    def extreme(self, name: str, index: tuple[Any, ...], *, largest: bool) -> float | None:
        value = self._named[name]
        library = library_of(value)
        if library.stream(value, self.ordinal).address != self.stream.address:
            return None
        return library.extreme(value[index], largest=largest)

    def release_inputs(self) -> None:
        if self._converted or not all(library.ordered for library in self._libraries):
            keep_until(self.mark(), self._views | self._converted)

    def finish(self, x: Array, like: Any = None, out: Any = None) -> Any:
        if not x.size:
            return self._result
        self.release_inputs()
        return self._library.publish(self._result, self.stream, self.ordinal, self.backend)

    def _view_or_scalar(self, name: str, value: Any) -> Array:
        """Return a view of a device array, or an argument of the host as an array."""
        if isinstance(value, np.ndarray) and is_device_array(value):
            return value
        if name not in self._names:
            return as_array(name, value)
        array = view(name, value, self.stream)
        is_number = array.dtype.num in DTYPES or array.dtype.kind in "biu"
        if not is_number or not array.dtype.isnative:
            raise TypeError(
                f"{name}: need float32, float64, complex64, complex128, integers or booleans "
                f"on a device, got {array.dtype}"
            )
        self._views[name] = array
        self._libraries.add(library_of(value))
        return array


class _Staged(DeviceTarget):
    """A device that NumPy arrays are copied to, and the result from."""

    def __init__(
        self, backend: ModuleType, ordinal: int, stream: Stream, operation: str, *, timed: bool
    ) -> None:
        super().__init__(backend, ordinal, stream, operation)
        self._moved: Array | None = None
        self._started = perf_counter()
        if timed:
            self.seconds = {"copy": 0.0, "solve": 0.0}

    def operands(
        self,
        named: Mapping[str, Any],
        like: Mapping[str, Array] | None = None,
        *,
        widens: bool = False,
        vectors: Collection[str] = ("rhs",),
    ) -> tuple[list[Array], np.dtype, tuple[str, ...]]:
        operands, dtype, converted = super().operands(named, like, widens=widens, vectors=vectors)
        scattered = (name for name, a in zip(named, operands, strict=True) if has_gaps(a))
        return operands, dtype, (*converted, *scattered)

    def destination(self, x: Array) -> Array:
        self._moved = self.packed(x)
        return self._moved

    def release_inputs(self) -> None:
        self.ends("solve")

    def finish(self, x: Array, like: Any = None, out: Any = None) -> Any:
        if self._moved is None:
            return super().finish(x, like, out)
        self.release_inputs()
        block = _in_memory_order(x)
        if block.flags.c_contiguous:
            self.enqueue(self.backend.download, block, address_of(self._moved))
        else:
            dense = np.empty(block.shape, block.dtype)
            self.enqueue(self.backend.download, dense, address_of(self._moved))
            block[...] = dense
        self.ends("copy")
        return super().finish(x, like, out)

    def begins_copy(self) -> None:
        self._started = perf_counter()

    def ends(self, part: str) -> None:
        if self.seconds is not None:
            self.wait()
            now = perf_counter()
            self.seconds[part] += now - self._started
            self._started = now


def find_target(
    device: str | None,
    stream: object,
    named: Mapping[str, Any],
    out: object = None,
    *,
    operation: str,
    leader: str,
    timed: bool = False,
) -> Target:
    """Return where a call runs, from its operands and options.

    Parameters
    ----------
    device : str or None
        As the caller gave it: None is the CPU, or the device that holds the operands.
    stream : object
        As the caller gave it.
    named : mapping
        Name and value of all operands.
    out : object, optional
        As the caller gave it.
    operation : str
        Who asks, for messages.
    leader : str
        The operand whose library has the current stream, if it is on a device.
    timed : bool, default: False
        Whether to measure copies and solving apart, which waits for each.

    Raises
    ------
    TypeError
        If the call mixes arrays of the host and arrays on a device.
    ValueError
        If arrays are on two devices, or not on the requested device.
    BackendError
        If the backend or the device is missing.
    """
    name, ordinal = parse_device(device)
    values = named if out is None else {**named, "out": out}
    where = {key: at for key, value in values.items() if (at := locate(value)) is not None}
    if where:
        ordinal = _common_device(device, values, where)
        backend = require_device(ordinal)
        if stream is not None:
            return _DeviceArrays(backend, ordinal, as_stream(stream), operation, where)
        first = values[leader if leader in where else next(iter(where))]
        current = library_of(first).stream(first, ordinal)
        return _DeviceArrays(backend, ordinal, current, operation, where)
    if name == "cuda":
        backend = require_device(ordinal)
        own = PER_THREAD if stream is None else as_stream(stream)
        return _Staged(backend, ordinal, own, operation, timed=timed)
    if stream is not None:
        raise ValueError(f"stream must be None on the CPU, got {stream!r}")
    return host_target()


def fast_access_of(like: Any, device: str | None) -> tuple[ModuleType, Any, int] | None:
    """Return how the extension takes arrays of the library of `like` that are on a device.

    Returns
    -------
    backend : module
        The extension.
    functions : tuple
        Of the library, `Library.fast_access`.
    ordinal : int
        Number of the device, -1 for any.

    None for arrays of host memory and of libraries without fast access: they need `find_target`.
    """
    library = library_of(like)
    if not library.has_fast_access or not library.on_device(like):
        return None
    if device is None or device in _ANY_DEVICE:
        return require("cuda"), library.fast_access, -1
    name, ordinal = parse_device(device)
    return None if name == "cpu" else (require("cuda"), library.fast_access, ordinal)


@cache
def host_target() -> Target:
    """Return the target of calls whose arrays are all on the host."""
    return Target(require("cpu"))


def _common_device(device: str | None, values: Mapping[str, Any], where: Mapping[str, int]) -> int:
    """Return the number of the device that holds all arrays; raise if one is elsewhere."""
    first, ordinal = next(iter(where.items()))
    error: type[Exception]
    name, asked = parse_device(device)
    if device is not None and (name == "cpu" or (device not in _ANY_DEVICE and asked != ordinal)):
        error, other = ValueError, f"device is {device!r}"
    elif wrong := [key for key, at in where.items() if at != ordinal]:
        error, other = ValueError, f"{wrong[0]} is on cuda:{where[wrong[0]]}"
    elif wrong := [key for key in values if key not in where and np.ndim(values[key])]:
        error, other = TypeError, f"{wrong[0]} is a {kind_of(values[wrong[0]])}"
    else:
        return ordinal
    text = f"{first} is a {kind_of(values[first])} on cuda:{ordinal}, but {other}"
    raise error(f"{text}: move all arrays to one device")
