"""Array libraries in host memory under one set of names: arrays, derivatives, batches, programs."""

import contextlib
import functools
import importlib.util
import mmap
import os
import warnings
from pathlib import Path

import numpy as np
import pytest


class Numpy:
    """NumPy."""

    name = "numpy"
    kind = results = np.ndarray  # types of its arrays and of what functions return for them

    def array(self, values):
        return np.array(values, order="K")

    def get(self, array):
        return np.asarray(array)

    def dtype(self, array):
        return array.dtype


class Torch:
    """PyTorch on the CPU or on a GPU, with `pysolvers.torch`."""

    name = "torch"

    def __init__(self, device="cpu"):
        self.module, self.device = _imported("torch"), device
        if device == "cuda" and not self.module.cuda.is_available():
            pytest.skip("a PyTorch without CUDA")
        self.kind = self.results = self.module.Tensor
        self.functions = importlib.import_module("pysolvers.torch")

    def array(self, values):
        return self.module.tensor(values, device=self.device)

    def get(self, array):
        return array.detach().cpu().resolve_conj().numpy()

    def dtype(self, array):
        return np.dtype(str(array.dtype).removeprefix("torch."))

    def value_and_grad(self, function, count=1, has_aux=False):
        """Return a function: a real value, and its gradients with respect to `count` arguments.

        With `has_aux` the function returns the value and more, and both come back as a pair.
        """

        def reverse(*arguments):
            leaves = [a if a.requires_grad else a.clone().requires_grad_() for a in arguments]
            found = function(*leaves)
            options = {"create_graph": True, "materialize_grads": True}
            value = found[0] if has_aux else found
            return found, self.module.autograd.grad(value, leaves[:count], **options)

        return reverse

    def gradient_of(self, function):
        """Return the gradient with respect to the first argument, for `vmap`."""
        return self.module.func.grad(function)

    def vmap(self, function, axes=0):
        return self.module.vmap(function, in_dims=axes)

    def jit(self, function):
        return function

    optimized = jit

    def compiled(self, function):
        """Return a function that is compiled as one graph."""
        self.module._dynamo.reset()
        return self.module.compile(function, fullgraph=True, backend="aot_eager")

    def stack(self, arrays, axis=0):
        return self.module.stack(list(arrays), axis)


# Flags of XLA: as users have them, and as the tests do. Without optimizations XLA compiles a
# program in a seventh of the time, and most programs of the tests run once.
OPTIMIZATIONS = {
    "xla_backend_optimization_level": (3, 0),
    "xla_llvm_disable_expensive_passes": (False, True),
    "xla_cpu_use_fusion_emitters": (True, False),
    "xla_cpu_parallel_codegen_split_count": (32, 1),
}


def switch_off_optimizations():
    """Let XLA, which is not imported yet, compile quickly, unless XLA_FLAGS is set.

    XLA ends a process that gives it a flag that its version does not know. JAX does not note where
    each operation stands in the source, which takes a fifth of the time of tracing.
    """
    os.environ.setdefault("JAX_TRACEBACK_FILTERING", "off")
    os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
    spec = importlib.util.find_spec("jaxlib")
    if spec is None or "XLA_FLAGS" in os.environ:
        return
    files = Path(spec.submodule_search_locations[0]).glob("*.so")
    with max(files, key=lambda path: path.stat().st_size).open("rb") as file:
        code = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        flags = [
            f"--{name}={str(value).lower()}"
            for name, (_, value) in OPTIMIZATIONS.items()
            if code.find(name.encode()) >= 0
        ]
    os.environ["XLA_FLAGS"] = " ".join(flags)


class Jax:
    """JAX on the CPU or on a GPU, with float64 and `pysolvers.jax`."""

    name = "jax"

    def __init__(self, device="cpu"):
        self.module = _imported("jax")
        try:
            self.device = self.module.devices(device)[0]
        except RuntimeError as error:  # a JAX without CUDA
            pytest.skip(str(error))
        self.kind = self.results = self.module.Array
        self.functions = importlib.import_module("pysolvers.jax")

    def array(self, values):
        with self.module.default_device(self.device):
            return self.module.numpy.asarray(values)

    def get(self, array):
        return np.asarray(array)

    def dtype(self, array):
        return array.dtype

    def value_and_grad(self, function, count=1, has_aux=False):
        return self.module.jit(self.module.value_and_grad(function, tuple(range(count)), has_aux))

    def gradient_of(self, function):
        return self.module.grad(function)

    def vmap(self, function, axes=0):
        return self.module.jit(self.module.vmap(function, axes))

    def jit(self, function):
        return self.module.jit(function)

    compiled = jit

    def optimized(self, function):
        """Compile with the optimizations that the tests switch off; for arguments of one shape."""
        made = []

        def call(*arguments):
            if not made:
                program = self.module.jit(function).lower(*arguments)
                flags = os.environ.get("XLA_FLAGS", "")
                on = {name: value for name, (value, _) in OPTIMIZATIONS.items() if name in flags}
                made.append(program.compile(on))
            return made[0](*arguments)

        return call

    def stack(self, arrays, axis=0):
        return self.module.numpy.stack(list(arrays), axis)


class Strict(Numpy):
    """The array API standard alone."""

    name = "array_api_strict"

    def __init__(self):
        self.module = _imported("array_api_strict")
        self.kind = type(self.module.asarray(0.0))

    def array(self, values):
        return self.module.asarray(np.asarray(values))


LIBRARIES = {kind.name: kind for kind in (Numpy, Torch, Jax, Strict)}
DIFFERENTIABLE = ("torch", "jax")

# Of torch.compile itself, in torch 2.7 and 2.11.
IGNORED = [
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning"),
]


@contextlib.contextmanager
def opened(name, *device):
    """Give one of LIBRARIES, or skip the test where it is not installed."""
    library = LIBRARIES[name](*device)
    if name != "jax":
        yield library
        return
    config = library.module.config
    before = config.jax_enable_x64
    config.update("jax_enable_x64", True)
    with library.module.default_device(library.device):
        yield library
    config.update("jax_enable_x64", before)


@functools.cache
def _imported(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library about its environment
        return pytest.importorskip(name, exc_type=ImportError)


def converted(library, value):
    """Return a number, a condition, a mapping or a sequence with arrays of the library."""
    if isinstance(value, dict):
        return {key: converted(library, one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(converted(library, one) for one in value)
    for name in ("value", "flux", "ambient"):
        if hasattr(value, name):
            other = [value.coefficient] if name == "ambient" else []
            return type(value)(*other, converted(library, getattr(value, name)))
    return library.array(value) if isinstance(value, np.ndarray) else value


def close(library, actual, desired, most=1e4):
    """Require arrays that differ by rounding errors alone."""
    actual, desired = library.get(actual), np.asarray(desired)
    assert actual.shape == desired.shape
    bound = most * np.finfo(desired.dtype).eps * np.max(np.abs(desired), initial=1e-300)
    np.testing.assert_allclose(actual, desired, rtol=0, atol=bound)


def _drawn(rng, like):
    """Return normal numbers of the shape of an array, complex ones for a complex array of JAX."""
    parts = rng.standard_normal((1 + np.iscomplexobj(like), *np.shape(like)))
    return parts[0] + 1j * parts[1] if len(parts) == 2 else parts[0]


def check_gradients(function, arguments, *, orders=1, rtol=1e-6):
    """Compare derivatives of a function of JAX, all in reverse, with differences.

    Those of the sum of its values with random weights. Reverse differentiation is the transposition
    of forward differentiation: one of another rule would be wrong in both.
    """
    library, rng = Jax(), np.random.default_rng(0)
    arguments = [np.asarray(a) for a in arguments]
    answer = library.module.eval_shape(function, *arguments)
    weight = _drawn(rng, np.zeros(answer.shape, answer.dtype))

    def loss(*operands):
        return (weight * function(*operands)).real.sum()

    check_derivatives(library, loss, arguments, rng, orders=orders, rtol=rtol)


def check_derivatives(library, loss, arguments, rng, *, step=1e-5, rtol=1e-6, orders=2):
    """Compare the gradients of a real function, and their derivatives, with differences.

    Both along a random direction of each argument. The derivatives of the gradients are those of
    their sum with random weights. Gradients and values of all arguments are one program.
    """
    count = len(arguments)
    directions, weights = ([_drawn(rng, a) for a in arguments] for _ in range(2))
    there = [library.array(w) for w in weights]
    gradient = library.value_and_grad(loss, count)

    def slope(*arrays):
        return sum((w * s).sum().real for w, s in zip(there, gradient(*arrays)[1], strict=True))

    def at(k, t):
        shift = [t * (i == k) for i in range(count)]
        return [
            library.array(a + s * d) for a, s, d in zip(arguments, shift, directions, strict=True)
        ]

    def product(a, b):
        return float((library.get(a) * b).sum().real)

    value, slopes = gradient(*at(0, 0.0))
    second = library.value_and_grad(slope, count)(*at(0, 0.0)) if orders > 1 else None
    for k in range(count):
        (low, before), (high, after) = (gradient(*at(k, t)) for t in (-step, step))
        found, apart = (
            product(slopes[k], directions[k]),
            float(library.get(high) - library.get(low)) / (2 * step),
        )
        assert abs(found - apart) <= rtol * max(abs(found), abs(float(library.get(value)))), (
            f"argument {k}"
        )
        if orders > 1:
            found = product(second[1][k], directions[k])
            low, high = (
                sum(product(s, w) for s, w in zip(end, weights, strict=True))
                for end in (before, after)
            )
            size = max(abs(found), abs(high), abs(low))
            assert abs(found - (high - low) / (2 * step)) <= 10 * rtol * size, (
                f"argument {k}, twice"
            )
