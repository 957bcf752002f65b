"""Array libraries on a CUDA device, under one set of names for the tests.

One of them needs no GPU: the arrays of `fake_device`, which lie in protected host memory.
"""

import contextlib
import importlib
import warnings

import availability
import fake_device
import numpy as np
import pytest

# Warnings of the libraries among themselves.
IGNORED = [
    pytest.mark.filterwarnings(f"ignore::{name}")
    for name in ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning")
]


class HostMemory:
    """A device made of host memory, whose arrays have no DLPack."""

    mutable = computes = has_any_order = True
    converts = False

    def __init__(self, device):
        self.device = device

    def array(self, values):
        return self.device.array(values)

    def view(self, array, index):
        return array.view(index)

    def get(self, array):
        return array.get()

    def strides(self, array):
        return array.__cuda_array_interface__["strides"]

    def is_kind(self, array):
        return isinstance(array, fake_device.Array)


class Cupy:
    """CuPy."""

    mutable = computes = has_any_order = converts = True

    def __init__(self):
        self.cupy = _quietly("cupy")

    def array(self, values):
        array = self.cupy.asarray(values)
        self.cupy.cuda.get_current_stream().synchronize()  # for the use on any other stream
        return array

    def view(self, array, index):
        return array[index]

    def get(self, array):
        return array.get()

    def strides(self, array):
        return array.strides

    def stream(self):
        return self.cupy.cuda.Stream(non_blocking=True)

    def current(self, stream):
        return stream

    def address(self, stream):
        return stream.ptr

    def is_done(self, stream):
        return stream.done

    def assign(self, array, values):
        array[...] = values

    def is_kind(self, array):
        return isinstance(array, self.cupy.ndarray)


class Torch:
    """PyTorch."""

    mutable = computes = has_any_order = converts = True

    def __init__(self):
        self.torch = _quietly("torch")

    def array(self, values):
        return self.torch.from_numpy(np.array(values, order="K")).cuda()

    def view(self, array, index):
        axes = [axis for axis, part in enumerate(index) if (part.step or 1) < 0]
        if axes:
            raise NotImplementedError("negative strides")
        return array[index]

    def get(self, array):
        return array.cpu().numpy()

    def strides(self, array):
        return array.stride()

    def stream(self):
        return self.torch.cuda.Stream()

    def current(self, stream):
        return self.torch.cuda.stream(stream)

    def address(self, stream):
        return stream.cuda_stream

    def is_done(self, stream):
        return stream.query()

    def assign(self, array, values):
        array.copy_(values)

    def is_kind(self, array):
        return isinstance(array, self.torch.Tensor)


class Jax:
    """JAX: immutable, and with streams of its own."""

    mutable = has_any_order = False
    computes = converts = True

    def __init__(self):
        self.jax = _quietly("jax")
        self.jax.config.update("jax_enable_x64", True)

    def array(self, values):
        return self.jax.device_put(np.asarray(values, order="C"))

    def view(self, array, index):
        return array[index]

    def get(self, array):
        return np.asarray(array)

    def is_kind(self, array):
        return isinstance(array, self.jax.Array)


class Numba:
    """Numba, whose arrays have no DLPack and no arithmetic."""

    mutable = True
    computes = has_any_order = converts = False

    def __init__(self):
        self.cuda = _quietly("numba.cuda")

    def array(self, values):
        return self.cuda.to_device(np.array(values, order="K"))

    def view(self, array, index):
        return array[index]

    def get(self, array):
        return array.copy_to_host()

    def strides(self, array):
        return array.strides

    def is_kind(self, array):
        return self.cuda.is_cuda_array(array) and type(array).__module__.startswith("numba")


LIBRARIES = {"cupy": Cupy, "torch": Torch, "jax": Jax, "numba": Numba}


def library(name, config):
    """Return one of LIBRARIES; without it skip, or fail if a GPU is required."""
    try:
        return LIBRARIES[name]()
    except ImportError as error:
        if "cuda" in availability.required(config):
            pytest.fail(str(error))
        pytest.skip(str(error))


def _quietly(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


@contextlib.contextmanager
def delayed(address, seconds=0.3):
    """Keep a stream busy for about so long with what comes before the body."""
    torch = _quietly("torch")
    with torch.cuda.stream(torch.cuda.ExternalStream(address)):
        torch.cuda._sleep(int(seconds * 1.5e9))
    yield
