"""Arrays of other libraries on a CUDA device: how to view, order and allocate them.

An array is viewed through DLPack, or else through ``__cuda_array_interface__``, by the
``StridedMemoryView`` of cuda.core. Both take the stream that will read the array, and
make it wait for what its library still has to do.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import BackendError
from .._plain import require_plain
from .device import device_array, packed_strides
from .lines import contiguous_strides
from .streams import LEGACY, Stream, as_stream

Array = NDArray[Any]

# Types that most operands have, and that live in host memory.
_HOST_TYPES = {np.ndarray, np.float64, np.float32, float, int, complex, list, tuple, type(None)}

# kDLCUDA and kDLCUDAManaged of DLPack.
_DLPACK_CUDA = (2, 13)


def locate(value: Any) -> int | None:
    """Return the number of the CUDA device that holds an array; None for all else."""
    if type(value) in _HOST_TYPES or isinstance(value, np.ndarray | np.generic):
        return None
    if library_of(value).is_abstract:
        return None
    dlpack_device = getattr(value, "__dlpack_device__", None)
    if dlpack_device is not None:
        kind, ordinal = dlpack_device()
        return int(ordinal) if int(kind) in _DLPACK_CUDA else None
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None:
        return None
    if 0 in interface["shape"]:
        return 0
    return int(_memory_view()(value, stream_ptr=-1).device_id)


def kind_of(value: object) -> str:
    """Name the type of an array in a message."""
    kind = type(value)
    root = kind.__module__.partition(".")[0]
    return kind.__name__ if root == "builtins" else f"{root}.{kind.__name__}"


class Library:
    """How to use the arrays of one library; this one knows the two protocols alone."""

    mutable = True  # whether a result may be written to an array of the caller's
    # Whether the extension can take its arrays on a device by itself, on its current stream.
    has_fast_access = False
    converts = False  # whether `converted` makes copies of another dtype
    programs: str | None = None  # module of programs that the library compiles
    is_abstract = False  # whether a value stands for an array that does not exist yet
    ordered = True  # whether the library reuses memory in the order of its current stream

    @property
    def functions(self) -> Any:
        """The module of functions of arrays on a device; None if there is none."""
        return None

    def check(self, name: str, value: Any) -> None:
        """Raise TypeError for an array whose values are not what lies in its memory."""

    def on_device(self, value: Any) -> bool:
        """Whether an array of a library with fast access is on a device."""
        return True

    @cached_property
    def fast_access(self) -> tuple[Any, Any, Any, Any]:
        """The functions through which the extension takes arrays: ``csrc/python/borrowed.h``."""
        return None, None, None, None

    def quick_view(self, value: Any, stream: Stream) -> Array | None:
        """Return what `view` returns, for plain arrays of a library on its current stream.

        None for all else: a stream that is not current may have to wait for the current one.
        """
        return None

    def identity(self, value: Any) -> tuple[Any, ...] | None:
        """Return address, shape, strides and dtype of an array of plain values on a device.

        None if the library has no fast access, or if the values are not what lies in memory.
        """
        return None

    def is_captured(self, ordinal: int) -> bool:
        """Whether the work of the current stream of a device becomes a part of a graph."""
        return False

    def host_array(self, value: Any) -> Array | None:
        """Return an array in host memory as an ndarray without a copy; None for all else."""
        return None

    def host_view(self, out: Any) -> Any:
        """Return an array of host memory as an ndarray, to which a result is written."""
        return out

    def from_host(self, x: Array, like: Any) -> Any:
        """Return a new ndarray as an array of the library, on the host device of `like`."""
        return x

    def converted(self, name: str, value: Any, dtype: np.dtype) -> Any:
        """Return a copy of an array on a device with another dtype."""
        kind = kind_of(value)
        raise TypeError(f"{name}: a {kind} cannot be converted to {dtype} here: convert it")

    def extreme(self, value: Any, *, largest: bool) -> float | None:
        """Return the largest or the smallest element of an array on a device, waiting for it.

        None if the library has no reductions.
        """
        return None

    def exporting(self) -> AbstractContextManager[None]:
        """Return a context in which the library exports an array."""
        return nullcontext()

    def stream(self, value: Any, ordinal: int) -> Stream:
        """Return the caller's current stream."""
        interface = None
        if not hasattr(value, "__dlpack__"):
            interface = value.__cuda_array_interface__.get("stream")
        return LEGACY if interface is None else as_stream(interface)

    def empty(self, like: Any, view: Array, shape: tuple[int, ...], ordinal: int) -> Any:
        """Allocate an array on the device of `like`, in its memory order if of its shape.

        `view` is the device array of `like`, and has the dtype of the new array.
        """
        raise TypeError(f"cannot allocate a result like a {kind_of(like)}: give out")

    def publish(self, result: Any, stream: Stream, ordinal: int, backend: Any) -> Any:
        """Return what the caller gets for a result that `stream` has yet to write."""
        return result


class _Reducing(Library):
    """A library whose arrays have the methods min and max."""

    def extreme(self, value: Any, *, largest: bool) -> float | None:
        return float(value.max() if largest else value.min())


class _Cupy(_Reducing):
    """Arrays of CuPy."""

    has_fast_access = True
    converts = True

    @property
    def functions(self) -> Any:
        return sys.modules["cupy"]

    @cached_property
    def fast_access(self) -> tuple[Any, Any, Any, Any]:
        cupy = sys.modules["cupy"]
        current, ordinal_of = cupy.cuda.get_current_stream, cupy.cuda.runtime.getDevice

        def describe(array: Any) -> tuple[int, int, tuple[int, ...], tuple[int, ...], Any]:
            """Return address, device, shape, strides in bytes and dtype."""
            data = array.data
            return data.ptr, data.device_id, array.shape, array.strides, array.dtype

        def empty(like: Any, ordinal: int) -> Any:
            """Return a new array of the same shape and order on a device."""
            if like.flags.c_contiguous and ordinal_of() == ordinal:
                return cupy.ndarray(like.shape, like.dtype)
            with cupy.cuda.Device(ordinal):
                return cupy.empty_like(like)

        return None, describe, lambda ordinal: current(ordinal).ptr, empty

    def identity(self, value: Any) -> tuple[Any, ...] | None:
        return value.data.ptr, value.shape, value.strides, value.dtype

    def is_captured(self, ordinal: int) -> bool:
        return bool(sys.modules["cupy"].cuda.get_current_stream(ordinal).is_capturing())

    def quick_view(self, value: Any, stream: Stream) -> Array | None:
        data, dtype = value.data, value.dtype
        is_current = self.stream(value, data.device_id).address == stream.address
        steps = (data.ptr, *value.strides)
        if not is_current or not value.size or any(step % dtype.itemsize for step in steps):
            return None
        return device_array(data.ptr, value.shape, value.strides, dtype, value)

    def stream(self, value: Any, ordinal: int) -> Stream:
        stream = sys.modules["cupy"].cuda.get_current_stream(ordinal)
        return Stream(stream.ptr, stream)

    def empty(self, like: Any, view: Array, shape: tuple[int, ...], ordinal: int) -> Any:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(ordinal):
            if like.shape == shape:
                return cupy.empty_like(like, dtype=view.dtype)
            return cupy.empty(shape, view.dtype)

    def converted(self, name: str, value: Any, dtype: np.dtype) -> Any:
        return value.astype(dtype)


class _Torch(_Reducing):
    """Tensors of PyTorch."""

    has_fast_access = True
    converts = True

    @property
    def functions(self) -> Any:
        return sys.modules["torch"]

    def on_device(self, value: Any) -> bool:
        return bool(value.is_cuda)

    @cached_property
    def fast_access(self) -> tuple[Any, Any, Any, Any]:
        torch = sys.modules["torch"]
        empty_like = torch.empty_like

        def current(ordinal: int) -> int:
            """Return the address of the current stream of a device."""
            return int(torch.cuda.current_stream(ordinal).cuda_stream)

        # This function makes no Python object for the stream. Some builds of PyTorch lack it.
        current = getattr(torch._C, "_cuda_getCurrentRawStream", current)
        return _is_plain_tensor, None, current, lambda like, ordinal: empty_like(like)

    def check(self, name: str, value: Any) -> None:
        if value.requires_grad:
            raise TypeError(
                f"{name} requires a gradient: use the functions of pysolvers.torch, or detach() it"
            )
        require_plain(name, value)
        if value.is_conj() or value.is_neg():
            raise TypeError(f"{name} is a lazy conjugate or negative: resolve it")
        if value.layout != sys.modules["torch"].strided:
            raise TypeError(f"{name}: need a dense tensor, got {value.layout}")

    def identity(self, value: Any) -> tuple[Any, ...] | None:
        if not _is_plain_tensor(value):
            return None
        return value.data_ptr(), value.shape, value.stride(), value.dtype

    def is_captured(self, ordinal: int) -> bool:
        return bool(sys.modules["torch"].cuda.is_current_stream_capturing())

    def quick_view(self, value: Any, stream: Stream) -> Array | None:
        dtype = _NUMPY_OF_TORCH.get(str(value.dtype))
        if dtype is None or not value.numel():
            return None
        address, size = value.data_ptr(), dtype.itemsize
        is_current = self.stream(value, value.device.index).address == stream.address
        if not is_current or address % size:
            return None
        strides = tuple(size * step for step in value.stride())
        return device_array(address, tuple(value.shape), strides, dtype, value)

    def stream(self, value: Any, ordinal: int) -> Stream:
        stream = sys.modules["torch"].cuda.current_stream(ordinal)
        return Stream(stream.cuda_stream, stream)

    def empty(self, like: Any, view: Array, shape: tuple[int, ...], ordinal: int) -> Any:
        torch = sys.modules["torch"]
        dtype = _torch_dtype(view.dtype)
        if tuple(like.shape) == shape:
            return torch.empty_like(like, dtype=dtype)
        return torch.empty(shape, dtype=dtype, device=like.device)

    def host_array(self, value: Any) -> Array | None:
        if value.device.type != "cpu" or value.requires_grad or value.is_conj() or value.is_neg():
            return None
        return value.numpy() if value.layout == sys.modules["torch"].strided else None

    def host_view(self, out: Any) -> Any:
        self.check("out", out)
        return out.numpy()

    def from_host(self, x: Array, like: Any) -> Any:
        return sys.modules["torch"].from_numpy(x)

    def converted(self, name: str, value: Any, dtype: np.dtype) -> Any:
        return value.to(_torch_dtype(dtype))


def _is_plain_tensor(tensor: Any) -> bool:
    """Return whether the memory of a tensor has its values, without a gradient."""
    return (
        tensor.layout is sys.modules["torch"].strided
        and not tensor.requires_grad
        and not tensor.is_conj()
        and not tensor.is_neg()
    )


# The dtypes of solvers, by the names of PyTorch.
_NUMPY_OF_TORCH = {
    f"torch.{name}": np.dtype(name) for name in ("float32", "float64", "complex64", "complex128")
}


@cache
def _torch_dtype(dtype: np.dtype) -> Any:
    """Return the dtype of PyTorch with the name of one of NumPy."""
    return getattr(sys.modules["torch"], dtype.name)


class _Jax(_Reducing):
    """JAX exports arrays on one stream and never says what runs on its own."""

    converts = True
    programs = "pysolvers.jax._eager"
    mutable = False
    ordered = False

    @property
    def functions(self) -> Any:
        return sys.modules["jax"].numpy

    def host_array(self, value: Any) -> Array | None:
        devices = value.devices()
        if len(devices) != 1 or next(iter(devices)).platform != "cpu":
            return None
        return np.asarray(value)

    def host_view(self, out: Any) -> Any:
        raise TypeError(f"out must be writeable, a {kind_of(out)} never is")

    def from_host(self, x: Array, like: Any) -> Any:
        place = like.sharding if like.shape == x.shape else next(iter(like.devices()))
        return sys.modules["jax"].device_put(x, place)

    def converted(self, name: str, value: Any, dtype: np.dtype) -> Any:
        with _current_device_kept():
            copy = value.astype(dtype)
        if copy.dtype != dtype:
            raise TypeError(f"{name}: JAX has no {dtype} unless jax_enable_x64 is set")
        return copy

    def exporting(self) -> AbstractContextManager[None]:
        return _current_device_kept()

    def stream(self, value: Any, ordinal: int) -> Stream:
        (device,) = value.devices()
        return Stream(device.get_stream_for_external_ready_events(), device)

    def empty(self, like: Any, view: Array, shape: tuple[int, ...], ordinal: int) -> Any:
        (device,) = like.devices()
        with _current_device_kept():
            return sys.modules["jax"].numpy.empty(shape, view.dtype, device=device)

    def publish(self, result: Any, stream: Stream, ordinal: int, backend: Any) -> Any:
        dlpack = importlib.import_module("jax.dlpack")
        with _current_device_kept():
            return dlpack.from_dlpack(_Pending(result, stream, ordinal, backend))


class _JaxTracer(Library):
    """What a function gets instead of arrays while JAX transforms it."""

    is_abstract = True

    def check(self, name: str, value: Any) -> None:
        raise TypeError(
            f"{name} is a JAX tracer: inside jit, grad or vmap there are no values to solve with; "
            "use pysolvers.jax there, or call this function through jax.pure_callback"
        )


class _Numba(Library):
    """Device arrays of Numba."""

    def empty(self, like: Any, view: Array, shape: tuple[int, ...], ordinal: int) -> Any:
        cuda = sys.modules["numba.cuda"]
        strides = contiguous_strides(shape, view.itemsize)
        if view.shape == shape:
            strides = packed_strides(view)
        with cuda.gpus[ordinal]:
            return cuda.device_array(shape, view.dtype, strides=strides, stream=like.stream)


class _Pending:
    """A JAX array that a stream has yet to write: who takes it waits for this stream."""

    def __init__(self, array: Any, stream: Stream, ordinal: int, backend: Any) -> None:
        self._array = array
        self._stream = stream
        self._ordinal = ordinal
        self._backend = backend

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        reader = stream or 0
        if reader != self._stream.address:
            self._backend.order(self._stream.address, reader, self._ordinal)
        return self._array.__dlpack__(stream=stream, **options)


_LIBRARIES: dict[str, Library] = {
    "cupy": _Cupy(),
    "jax": _Jax(),
    "jaxlib": _Jax(),
    "numba": _Numba(),
    "torch": _Torch(),
}
_JAX_TRACER = _JaxTracer()
_OTHER = Library()


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a number, or of an array, which can have the interface of CUDA alone."""
    if type(value) is np.ndarray:
        return value.shape
    bare = None if hasattr(value, "shape") else getattr(value, "__cuda_array_interface__", None)
    return tuple(np.shape(value) if bare is None else bare["shape"])


def dtype_of(array: Any) -> np.dtype:
    """Return the dtype of an array of any library."""
    if type(array) is np.ndarray:
        return array.dtype
    if not hasattr(array, "dtype"):
        return np.dtype(array.__cuda_array_interface__["typestr"])
    return np.dtype(str(array.dtype).removeprefix("torch."))


def library_of(value: object) -> Library:
    """Return the library of an array, by the package that its type comes from."""
    kind: Any = type(value)
    return _library_of_type(kind)


@cache
def _library_of_type(kind: Any) -> Library:
    """Return the library whose module defines a type or one of its bases."""
    roots = [base.__module__.partition(".")[0] for base in kind.__mro__]
    if any(base.__name__ == "Tracer" for base in kind.__mro__) and "jax" in roots:
        return _JAX_TRACER
    return next((_LIBRARIES[root] for root in roots if root in _LIBRARIES), _OTHER)


def host_array(value: Any) -> Any:
    """Return an array of a known library in host memory as an ndarray; all else as it is."""
    if type(value) in _HOST_TYPES:
        return value
    array = library_of(value).host_array(value)
    return value if array is None else array


def _of_cuda_core(module: str, name: str) -> Any:
    """Return something of the package cuda-core, old or new."""
    reason: Exception
    for package in ("cuda.core", "cuda.core.experimental"):
        try:
            return getattr(importlib.import_module(package + module), name)
        except (ImportError, AttributeError) as error:
            reason = error
    raise BackendError(
        "GPU arrays need the packages cuda-core and cuda-bindings: "
        f"pip install cuda-core cuda-bindings: {reason}"
    )


@cache
def _memory_view() -> Any:
    """Return what makes a StridedMemoryView, called with an array and a stream."""
    kind = _of_cuda_core(".utils", "StridedMemoryView")
    return getattr(kind, "from_any_interface", kind)


@cache
def device_class() -> Any:
    """Return the class whose instance without arguments is the current device."""
    return _of_cuda_core("", "Device")


@contextmanager
def _current_device_kept() -> Iterator[None]:
    """Undo that JAX leaves the device of the last array current."""
    before = device_class()()
    try:
        yield
    finally:
        before.set_current()


def view(name: str, value: Any, stream: Stream) -> Array:
    """Return the device array over an array that `stream` may use from now on.

    Parameters
    ----------
    name : str
        Of the operand, for messages.
    value : array
        For which `locate` gives a device.
    stream : Stream
        Where it will be read or written.

    Raises
    ------
    TypeError
        If it has another dtype than the NumPy ones, or is no plain array.
    ValueError
        If its address or a stride is no multiple of its item size.
    BackendError
        If cuda-core is missing.
    """
    library = library_of(value)
    library.check(name, value)
    quick = library.quick_view(value, stream)
    if quick is not None:
        return quick
    if not hasattr(value, "__dlpack_device__"):
        interface = value.__cuda_array_interface__
        size = np.dtype(interface["typestr"]).itemsize
        if any(stride % size for stride in interface.get("strides") or ()):
            raise ValueError(f"{name}: strides must be multiples of {size} bytes")
        if 0 in interface["shape"]:
            return np.empty(interface["shape"], interface["typestr"])
    try:
        with library.exporting():
            seen = _memory_view()(value, stream_ptr=stream.number)
        dtype = seen.dtype
    except (BufferError, NotImplementedError) as error:
        raise TypeError(f"{name}: cannot use this {kind_of(value)}: {error}") from error
    shape, counts = seen.shape, seen.strides
    if 0 in shape:
        return np.empty(shape, dtype)
    if counts is None:
        strides = contiguous_strides(shape, dtype.itemsize)
    else:
        strides = tuple(_signed(count * dtype.itemsize) for count in counts)
    if seen.ptr % dtype.itemsize:
        raise ValueError(f"{name}: its address must be a multiple of {dtype.itemsize} bytes")
    return device_array(seen.ptr, shape, strides, dtype, seen, readonly=seen.readonly)


def _signed(stride: int) -> int:
    """Return a stride in bytes as a signed number of 64 bits.

    CuPy up to 14.2 divides negative strides as if they were unsigned (cupy/cupy#10172):
    multiplied again they are right, but for a multiple of 2**64.
    """
    return (stride + 2**63) % 2**64 - 2**63


class _KeptArrays:
    """Arrays that a stream may still read, though their library would reuse them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: list[tuple[Any, object]] = []

    def keep_until(self, mark: Any, arrays: object) -> None:
        """Keep arrays until the stream has passed a mark; release those of marks it has passed."""
        past: list[tuple[Any, object]] = []
        ahead: list[tuple[Any, object]] = [(mark, arrays)]
        with self._lock:
            for entry in self._held:
                (past if entry[0].passed else ahead).append(entry)
            self._held = ahead
        del past  # without the lock: a library may run code of its own when arrays go


keep_until = _KeptArrays().keep_until
