"""A device made of protected host memory: what runs without a GPU of the way to one.

`Device` stands for the extension ``pysolvers._cuda``. Its memory can be touched only
inside its own calls, which the CPU backend answers; whoever else reads or writes there
ends the process. `Array` is an array of a library that lives in this memory.
"""

import contextlib
import ctypes
import ctypes.util
import functools
import itertools
import math
import mmap
import types
import weakref
from unittest import mock

import numpy as np

from pysolvers import _core
from pysolvers._runtime import backends, interop, streams
from pysolvers._runtime.device import device_array

_CLOSED, _OPEN = 0, mmap.PROT_READ | mmap.PROT_WRITE
_ALIGNMENT = 256
NEW_STREAMS = 1000  # numbers of the streams of the package
_ANSWER_BYTES = 64
_MADE_OF = 7  # arguments of factor_make() before the device

_numbers = itertools.count(NEW_STREAMS)

_libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)


def block_size(nbytes):
    """Return the bytes that an allocation takes."""
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def _as_host(address, nbytes):
    return np.frombuffer((ctypes.c_char * nbytes).from_address(address), np.uint8)


class Device:
    """The module, with one method for each function of the binding."""

    NAME = "cuda"
    SIZE = 1 << 27

    def __init__(self):
        self._memory = self._new_memory()
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._next = self._base
        self._depth = 0
        self.live = 0
        self.buffers = weakref.WeakSet()
        self.calls = []
        self._protect(_CLOSED)

        device = self

        class Buffer:
            def __init__(self, nbytes, ordinal=0, stream=0, lasting=False, /):
                self.address = device._allocate(nbytes)
                self.nbytes = nbytes
                self.device = ordinal
                self.stream = None if lasting else stream
                device.live += 1
                device.buffers.add(self)

            def __del__(self):
                device.live -= 1
                device._release(self.address, self.nbytes)

        class Mark:
            passed = False

            def __init__(self, ordinal=0, stream=0, /):
                device.calls.append(("mark", stream))

        class Answer:
            def __init__(self, ordinal=0, stream=0, /):
                self.address = device._allocate(_ANSWER_BYTES)
                with device.open():
                    _as_host(self.address, _ANSWER_BYTES)[:] = 0

            def read(self, nbytes, /):
                with device.open():
                    return _as_host(self.address, nbytes).tobytes()

            def end(self):
                device._release(self.address, _ANSWER_BYTES)

        self.Buffer = Buffer
        self.Mark = Mark
        self.Answer = Answer

    def _new_memory(self):
        return mmap.mmap(-1, self.SIZE)

    def __getattr__(self, name):
        return getattr(_core, name)

    def _protect(self, how):
        if _libc.mprotect(ctypes.c_void_p(self._base), ctypes.c_size_t(self.SIZE), how):
            raise OSError(ctypes.get_errno(), "mprotect")

    def _allocate(self, nbytes):
        address = self._next if nbytes else 0
        self._next += block_size(nbytes)
        if self._next > self._base + self.SIZE:
            raise MemoryError
        return address

    def _release(self, address, nbytes):
        """Take memory back: this device does not use it again."""

    def _has(self, array):
        """Return whether an argument is not an array, or lies in the memory of the device."""
        if not isinstance(array, np.ndarray) or not array.size:
            return True
        return self._base <= array.__array_interface__["data"][0] < self._base + self.SIZE

    @contextlib.contextmanager
    def open(self, *arguments):
        """Memory that may be touched, for a call that reads no array of the host."""
        if not all(map(self._has, arguments)):
            self._protect(_OPEN)  # the report of the error prints the arrays
            raise MemoryError("a call of the device got an array of the host")
        self._depth += 1
        self._protect(_OPEN)
        yield
        self._depth -= 1
        if not self._depth:
            self._protect(_CLOSED)

    def array(self, values):
        """Return an `Array` with these values, its axes in the same order in memory."""
        return Array(self, np.asarray(values))

    def unavailable(self):
        return None

    def device_count(self):
        return 1

    def upload(self, address, host, ordinal=0, stream=0, /):
        assert host.flags.c_contiguous or host.flags.f_contiguous
        self.calls.append(("upload", host.nbytes))
        with self.open():
            _as_host(address, host.nbytes)[:] = np.frombuffer(host.tobytes("A"), np.uint8)
        return 0

    def download(self, host, address, ordinal=0, stream=0, /):
        assert host.flags.c_contiguous and host.flags.writeable
        self.calls.append(("download", host.nbytes))
        with self.open():
            host.reshape(-1).view(np.uint8)[:] = _as_host(address, host.nbytes)
        return 0

    def download_info(self, host, address, ordinal=0, stream=0, /):
        return self.download(host, address, ordinal, stream)

    def relayout(self, to, from_, ordinal=0, stream=0, /):
        self.calls.append(("relayout", to.shape))
        assert to.shape == from_.shape
        with self.open(to, from_):
            to[...] = from_
        return 0

    def add_product(self, to, factor, source, ordinal=0, stream=0, /):
        assert to.shape == factor.shape == source.shape
        assert to.dtype == factor.dtype == source.dtype
        assert to.dtype.kind == "f"
        with self.open(to, factor, source):
            to += factor * source
        return 0

    def fill_nan(self, x, info, ordinal=0, stream=0, /):
        self.calls.append(("fill_nan", stream))
        with self.open(x, info):
            x[info != 0] = np.nan
        return 0

    def order(self, first, second, ordinal=0, /):
        self.calls.append(("order", first, second))
        return 0

    def wait(self, ordinal=0, stream=0, /):
        self.calls.append(("wait", stream))
        return 0

    def tridiag_solve(self, *arguments):
        *arguments, self.variant, _, stream, count = arguments
        self.calls.append(("solve", stream))
        with self.open(*arguments):
            status, report = _core.tridiag_solve(*arguments)
        if status:
            return status, None
        pivoted = report["pivoted"] if count else -1
        return status, {**report, "pivoted": pivoted, "kernel": "fake", "threads": 0}

    def product(self, *arguments):
        return self._run("product", arguments)

    def blocks_run(self, *arguments):
        return self._run("blocks_run", arguments)

    def blocks_store(self, *arguments):
        return _core.blocks_store(*arguments)

    def differences(self, by, factors, *arguments):
        made = tuple(core_factor(factor) for factor in factors)
        return self._run("differences", (by, made, *arguments))

    def recurrence(self, *arguments):
        return self._run("recurrence", arguments)

    def step_solve(self, *arguments):
        *arguments, _, stream, count = arguments
        self.calls.append(("step", stream))
        with self.open(*arguments):
            status, report = _core.step_solve(*arguments)
        if status:
            return status, None
        return status, {**report, "pivoted": report["pivoted"] if count else -1, "kernel": "fake"}

    def masked_rows(self, flags, *arguments):
        *arguments, _ordinal, stream = arguments
        self.calls.append(("masked_rows", stream))
        with self.open(*arguments):
            lower, diag, upper, where, outside, *made = arguments
            above, below = np.roll(where, 1, -1), np.roll(where, -1, -1)
            if not flags & _core.PERIODIC:
                above[..., 0] = below[..., -1] = True  # these entries are ignored
            if flags & _core.SHORT_LOWER:
                lower = np.pad(lower, ((0, 0), (0, 0), (1, 0)))
            if flags & _core.SHORT_UPPER:
                upper = np.pad(upper, ((0, 0), (0, 0), (0, 1)))
            made[0][...] = np.where(where & above, lower, 0)
            made[1][...] = np.where(where, diag, outside)
            made[2][...] = np.where(where & below, upper, 0)
        return 0

    def factor_step(self, factor, *arguments):
        return self._run("factor_step", (core_factor(factor), *arguments))

    def factor_make(self, *arguments):
        arguments, (_, stream, *count) = arguments[:_MADE_OF], arguments[_MADE_OF:]
        count = count and count[0]
        self.calls.append(("make", stream))
        with self.open(*arguments):
            status, report, factor = _core.factor_make(*arguments)
        pivoted = report["pivoted"] if status == 0 and count else -1
        return status, report and {**report, "pivoted": pivoted}, factor and _Factor(self, factor)

    def spline_make(self, *arguments):
        return self._run("spline_make", arguments)

    def spline_create(self, x, y, axis, ends, keeper, threads, ordinal, stream, /):
        real = np.dtype(y.dtype.char.lower())
        is_plain = type(x) is np.ndarray and y.dtype.kind in "fc" and y.flags.c_contiguous
        if not is_plain or x.dtype != real or x.ndim != 1 or not -y.ndim <= axis < y.ndim:
            return None
        shape, axis = y.shape, axis % y.ndim
        if len(x) != shape[axis] or len(x) < 2:
            return None
        lines = y.reshape(-1).view(real).reshape(math.prod(shape[:axis]), len(x), -1)
        buffer = self.Buffer(2 * lines.nbytes + x.nbytes, ordinal, keeper)
        answer = self.Answer(ordinal, stream)
        self.order(keeper, stream)
        at = buffer.address

        def lines_at(address, like):
            return device_array(address, like.shape, None, real, buffer)

        values, slopes = (lines_at(at + k * lines.nbytes, lines) for k in (0, 1))
        status = self.spline_make(
            *(ends, 1 + (y.dtype.kind == "c"), x[None, None], lines.swapaxes(1, 2), (None, None)),
            lines_at(at + 2 * lines.nbytes, x)[None, None],
            (slopes.swapaxes(1, 2), values.swapaxes(1, 2)),
            device_array(answer.address, (4,), None, np.dtype(np.int32), answer),
            *(threads, ordinal, stream),
        )
        return status, buffer, answer

    def spline_pieces(self, *arguments):
        return self._run("spline_pieces", arguments)

    def spline_points(self, *arguments):
        return self._run("spline_points", arguments)

    def rates(self, *arguments):
        return self._run("rates", arguments)

    def _run(self, name, arguments):
        *arguments, _ordinal, stream = arguments
        self.calls.append((name, stream))
        with self.open(*arguments):
            return getattr(_core, name)(*arguments)


class _Factor:
    def __init__(self, device, factor):
        self._device = device
        self._factor = factor
        self.nbytes = factor.nbytes

    def solve(self, *arguments):
        *arguments, stream = arguments
        self._device.calls.append(("solve", stream))
        with self._device.open(*arguments):
            return self._factor.solve(*arguments)


def core_factor(factor):
    """Return the factor of the CPU that answers for one of a device."""
    return factor._factor


class Array:
    """An array of a library without DLPack, in the memory of a device."""

    def __init__(self, device, values, *, stream=None, readonly=False):
        self.device = device
        order = sorted(range(values.ndim), key=lambda k: -abs(values.strides[k]))
        block = np.ascontiguousarray(values.transpose(order))
        address = device._allocate(values.nbytes)
        if values.nbytes:
            device.upload(address, block)
            device.calls.pop()
        step, strides = values.itemsize, [0] * values.ndim
        for axis in reversed(order):
            strides[axis] = step
            step *= values.shape[axis]
        self.__cuda_array_interface__ = {
            "data": (address, readonly),
            "shape": values.shape,
            "strides": tuple(strides),
            "stream": stream,
            "typestr": values.dtype.str,
            "version": 3,
        }

    def view(self, index):
        """Return a view, as indexing does."""
        shadow = self._shadow()[index]
        other = object.__new__(type(self))
        other.device = self.device
        other.__cuda_array_interface__ = {
            **self.__cuda_array_interface__,
            "data": shadow.__array_interface__["data"],
            "shape": shadow.shape,
            "strides": shadow.strides,
        }
        return other

    def reshape(self, shape):
        other = self.view(...)
        step, strides = other._shadow().itemsize, []
        for size in reversed(shape):
            strides.insert(0, step)
            step *= size
        other.__cuda_array_interface__ |= {"shape": shape, "strides": tuple(strides)}
        return other

    def __getitem__(self, index):
        return type(self)(self.device, np.asarray(self.get()[index]))

    def __setitem__(self, index, values):
        shadow = self._shadow()
        with self.device.open():
            shadow[index] = _host(values)

    def any(self, axis):
        return type(self)(self.device, self.get().any(axis))

    def get(self):
        """Return the values."""
        with self.device.open():
            return np.array(self._shadow())

    def _shadow(self):
        memory = types.SimpleNamespace()
        memory.__array_interface__ = {
            key: self.__cuda_array_interface__[key]
            for key in ("data", "shape", "strides", "typestr", "version")
        }
        return np.asarray(memory)

    def __array__(self, *_args, **_options):
        raise TypeError("this array is not to be converted")


def _host(value):
    return value.get() if isinstance(value, Array) else value


def _operator(name):
    """Return an operation of arrays and numbers."""

    def call(self, *others):
        values = getattr(self.get(), name)(*map(_host, others))
        return type(self)(self.device, np.asarray(values))

    return call


for _name in ("add", "sub", "rsub", "rmul", "truediv", "neg"):
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__"))


class FullArray(Array):
    """An array of a library with functions, such as CuPy."""

    @property
    def shape(self):
        return self.__cuda_array_interface__["shape"]

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def dtype(self):
        return np.dtype(self.__cuda_array_interface__["typestr"])


for _name in ("mul", "and", "invert", "gt", "eq"):
    setattr(FullArray, f"__{_name}__", _operator(f"__{_name}__"))


class Functions:
    """The functions of NumPy, for full arrays of a device."""

    def __init__(self, device):
        self.device = device

    def __getattr__(self, name):
        def call(first, *others):
            first = [_host(a) for a in first] if type(first) is list else _host(first)
            values = getattr(np, name)(first, *map(_host, others))
            return FullArray(self.device, np.asarray(values))

        return call


class View:
    """What a StridedMemoryView says of an `Array`."""

    def __init__(self, array, *, stream_ptr):
        interface = array.__cuda_array_interface__
        self.exporting_obj = array
        self.ptr, self.readonly = interface["data"]
        self.shape = interface["shape"]
        self.dtype = np.dtype(interface["typestr"])
        self.strides = tuple(stride // self.dtype.itemsize for stride in interface["strides"])
        self.device_id = 0
        array.device.calls.append(("view", stream_ptr))


def _zeros(shape, like):
    """Return zeros in the memory order of an array of this shape."""
    if like.shape != shape:
        return np.zeros(shape, like.dtype)
    order = sorted(range(len(shape)), key=lambda k: -abs(like.strides[k]))
    return np.zeros([shape[k] for k in order], like.dtype).transpose(np.argsort(order))


def _new_stream(_ordinal):
    """Return a stream that no caller has."""
    return streams.Stream(next(_numbers))


def _kept_stream(ordinal, _number):
    """Return the stream of a number."""
    return _new_stream(ordinal)


@contextlib.contextmanager
def in_place_of_cuda(fake=None):
    """Use a `Device`, by default a new one, as the backend "cuda", with arrays of a library."""
    fake = fake or Device()
    load = backends._load
    with (
        mock.patch.object(backends, "_load", lambda name: fake if name == "cuda" else load(name)),
        mock.patch.object(interop, "_memory_view", return_value=View),
        mock.patch.object(streams, "_new_stream", side_effect=_new_stream),
        # A stream that the package keeps is used no more once there is no fake device.
        mock.patch.object(streams, "_keeping_stream", functools.cache(_kept_stream)),
        mock.patch.dict(streams._free, clear=True),
        mock.patch.object(
            interop.Library,
            "empty",
            lambda self, like, view, shape, ordinal: type(like)(fake, _zeros(shape, view)),
        ),
        mock.patch.object(interop.Library, "functions", Functions(fake)),
    ):
        yield fake


def without_functions():
    """Return a context in which the library has no functions of arrays."""
    return mock.patch.object(interop.Library, "functions", None)
