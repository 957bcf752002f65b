"""The peers of the benchmark on a GPU: cuSPARSE by its C interface, JAX and PyTorch from Python.

A peer is made for one batch. It provides a function that enqueues one solve, and one that restores
the operands that a solve overwrites. No peer exchanges rows, checks for singular systems or accepts
strides.
"""

import ctypes
import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from typing import Any

from pysolvers._derivatives.formulas import end_weights

from . import peers
from .gpu_cases import GpuCase
from .timing import require_cupy, waiting

CUSPARSE_STRIDED, JAX, TORCH = "cusparse strided", "jax", "torch"
SOLVAX, SMALL_SOLVES = "SOLVAX", "JAX scan of small solves"
# Timed rounds of consecutive calls, for times measured on the host.
ROUNDS = 5
_LETTERS = {"float32": "S", "float64": "D"}


class PeerError(Exception):
    """A peer cannot solve a batch; the text gives the reason."""


@dataclass(frozen=True)
class Peer:
    """A peer, prepared for one batch.

    Parameters
    ----------
    solve : callable
        Enqueues one solve on the current stream.
    restore : callable or None
        Enqueues the copies that restore the operands that a solve overwrites.
    """

    solve: Callable[[], object]
    restore: Callable[[], object] | None


def cusparse(name: str, case: GpuCase, system: list[Any]) -> Peer:
    """Return cuSPARSE's ``gtsv2StridedBatch`` or ``gtsvInterleavedBatch``."""
    cupy = require_cupy()
    library = _Cusparse.shared()
    library.set_stream(cupy.cuda.get_current_stream().ptr)
    *inputs, x = system
    strided = name == CUSPARSE_STRIDED
    # The strided function overwrites the right-hand side, the interleaved one also the matrix.
    own = [*inputs[:3], x] if strided else [*(a.copy() for a in inputs[:3]), x]
    pointers = [ctypes.c_void_p(a.data.ptr) for a in own]
    rows, systems = ctypes.c_int(case.rows), ctypes.c_int(case.systems)
    if strided:
        call, numbers = "gtsv2StridedBatch", (rows, *pointers, systems, rows)
    else:
        algorithm = ctypes.c_int(int(name.rsplit(" ", 1)[1]))
        call, numbers = "gtsvInterleavedBatch", (algorithm, rows, *pointers, systems)
    call = f"cusparse{_LETTERS[case.dtype]}{call}"
    size = ctypes.c_size_t()
    library.call(f"{call}_bufferSizeExt", *numbers, ctypes.byref(size))
    scratch = cupy.empty(max(size.value, 1), "u1")

    def restore() -> None:
        for target, source in zip(own, inputs, strict=True):
            if target is not source:
                cupy.copyto(target, source)

    def solve() -> None:
        library.call(call, *numbers, ctypes.c_void_p(scratch.data.ptr))

    return Peer(solve, restore)


def cusparse_bands(bands: list[Any], rhs: Any) -> Callable[[], object]:
    """Return a solve by cuSPARSE's ``gpsvInterleavedBatch``, along axis 0.

    It overwrites copies of the operands; its time does not depend on their values.
    """
    cupy = require_cupy()
    library = _Cusparse.shared()
    library.set_stream(cupy.cuda.get_current_stream().ptr)
    own = [a.copy() for a in (*bands, rhs)]
    pointers = [ctypes.c_void_p(a.data.ptr) for a in own]
    rows, systems = (ctypes.c_int(size) for size in rhs.shape)
    call = f"cusparse{_LETTERS[str(rhs.dtype)]}gpsvInterleavedBatch"
    numbers = (ctypes.c_int(0), rows, *pointers, systems)
    size = ctypes.c_size_t()
    library.call(f"{call}_bufferSizeExt", *numbers, ctypes.byref(size))
    scratch = cupy.empty(max(size.value, 1), "u1")

    def solve() -> list[Any]:
        library.call(call, *numbers, ctypes.c_void_p(scratch.data.ptr))
        return own  # are kept as long as the call

    return solve


def jax_scan(a: Any, b: Any) -> float:
    """Return the seconds of a recurrence by ``jax.lax.associative_scan``, along the last axis."""
    jax = _jax()
    require_cupy().cuda.get_current_stream().synchronize()

    def join(before: Any, after: Any) -> Any:
        return before[0] * after[0], after[0] * before[1] + after[1]

    compute = jax.jit(lambda a, b: jax.lax.associative_scan(join, (a, b), axis=-1)[1])
    given = [jax.dlpack.from_dlpack(v) for v in (a, b)]
    return host_seconds(lambda: compute(*given), lambda x: x.block_until_ready(), 2.0)


def jax_derivative(f: Any) -> float:
    """Return the seconds of a compact derivative of lines by ``tridiagonal_solve`` of JAX."""
    jax = _jax()
    require_cupy().cuda.get_current_stream().synchronize()
    jnp = jax.numpy
    ends = jnp.asarray(end_weights(1, 6, 6), f.dtype)
    points = ends.shape[1]

    def compute(f: Any) -> Any:
        inner = 7 / 9 * (f[:, 3:-1] - f[:, 1:-3]) + (f[:, 4:] - f[:, :-4]) / 36
        last = -(f[:, : -points - 1 : -1] @ ends.T)[:, ::-1]
        rhs = jnp.concatenate((f[:, :points] @ ends.T, inner, last), -1)
        side, diag = jnp.full_like(f, 1 / 3), jnp.ones_like(f)
        return jax.lax.linalg.tridiagonal_solve(side, diag, side, rhs[..., None])[..., 0]

    compiled, given = jax.jit(compute), jax.dlpack.from_dlpack(f)
    return host_seconds(lambda: compiled(given), lambda x: x.block_until_ready(), 1.0)


def accelerated_scan(a: Any, b: Any) -> Callable[[], object]:
    """Return a recurrence (batch, channel, row) by the Triton kernel of accelerated-scan.

    It is enqueued on the current stream of PyTorch.
    """
    torch, scan = import_module("torch"), import_module("accelerated_scan.scalar").scan
    require_cupy().cuda.get_current_stream().synchronize()
    given = [torch.from_dlpack(v.reshape((-1, *v.shape[-2:]))) for v in (a, b)]
    return lambda: scan(*given)


def torchaudio_filter(a: float, b: Any) -> Callable[[], object]:
    """Return the recurrence with a constant coefficient, (channel, row), by torchaudio's `lfilter`.

    It is enqueued on the current stream of PyTorch.
    """
    torch, lfilter = import_module("torch"), import_module("torchaudio.functional").lfilter
    require_cupy().cuda.get_current_stream().synchronize()
    given = torch.from_dlpack(b)
    of_x, of_b = (torch.tensor(row, dtype=given.dtype, device="cuda") for row in ((1, -a), (1, 0)))
    return lambda: lfilter(given, of_x, of_b, clamp=False)


def block_seconds(operands: list[Any], name: str) -> float:
    """Return the seconds of block tridiagonal systems (systems, rows, k, k) in JAX."""
    jax = _jax()
    require_cupy().cuda.get_current_stream().synchronize()
    compute = jax.jit(jax.vmap(block_thomas() if name == SOLVAX else block_scan(jax)))
    given = [jax.dlpack.from_dlpack(v) for v in operands]
    return host_seconds(lambda: compute(*given), lambda x: x.block_until_ready(), 1.0)


def block_thomas() -> Callable[..., Any]:
    """Return the solve of one system by SOLVAX."""
    solve: Callable[..., Any] = import_module("solvax.direct").block_thomas
    return solve


def block_scan(jax: Any) -> Callable[..., Any]:
    """Return the block Thomas algorithm of one system by `jax.lax.scan` over its rows."""
    numpy = jax.numpy

    def solve(lower: Any, diag: Any, upper: Any, rhs: Any) -> Any:
        side = diag.shape[-1]

        def down(before: Any, row: Any) -> Any:
            low, middle, up, right = row
            pivot = middle - low @ before[:, :side]
            own = numpy.linalg.solve(
                pivot, numpy.concatenate((up, right - low @ before[:, side:]), -1)
            )
            return own, own

        def up(x: Any, own: Any) -> Any:
            x = own[:, side:] - own[:, :side] @ x
            return x, x

        lower, upper = lower.at[0].set(0), upper.at[-1].set(0)
        first = numpy.zeros_like(numpy.concatenate((upper[0], rhs[0]), -1))
        _, rows = jax.lax.scan(down, first, (lower, diag, upper, rhs))
        return jax.lax.scan(up, numpy.zeros_like(rhs[0]), rows, reverse=True)[1]

    return solve


def smolgp_seconds(t: Any, y: Any, parameters: tuple[float, float, float]) -> float:
    """Return the seconds of the likelihood of gaussian_process.py, without its derivatives.

    smolgp writes out each level of its associative scan: JAX takes 10 s to compile the likelihood
    of 1.8 million points (docs/measurements.md), and several times as long with its derivatives.
    """
    jax, smolgp = _jax(), import_module("smolgp")
    kernel = import_module("smolgp.kernels").Matern32
    solver = import_module("smolgp.solvers").ParallelStateSpaceSolver
    require_cupy().cuda.get_current_stream().synchronize()

    def value(parameters: Any, t: Any, y: Any) -> Any:
        variance, length, noise = parameters
        matern = kernel(scale=length, sigma=jax.numpy.sqrt(variance))
        return smolgp.GaussianProcess(matern, t, noise=noise, solver=solver).log_probability(y)

    compute = jax.jit(value)
    given = [jax.dlpack.from_dlpack(v) for v in (t, y)]
    numbers = tuple(jax.numpy.asarray(number) for number in parameters)
    return host_seconds(lambda: compute(numbers, *given), jax.block_until_ready, 1.0)


class _Cusparse:
    """The shared library of cuSPARSE and a handle."""

    def __init__(self) -> None:
        found = import_module("cuda.pathfinder").load_nvidia_dynamic_lib("cusparse")
        self._library = ctypes.CDLL(found.abs_path)
        self._handle = ctypes.c_void_p()
        self._check("cusparseCreate", self._library.cusparseCreate(ctypes.byref(self._handle)))

    @staticmethod
    @functools.cache
    def shared() -> "_Cusparse":
        """Return the only instance of the process."""
        try:
            return _Cusparse()
        except Exception as error:
            raise PeerError(f"cuSPARSE cannot be loaded: {error}") from error

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the library with the handle; raise if it fails."""
        self._check(name, getattr(self._library, name)(self._handle, *arguments))

    def set_stream(self, stream: int) -> None:
        """Enqueue on `stream` from now on."""
        self.call("cusparseSetStream", ctypes.c_void_p(stream))

    @staticmethod
    def _check(name: str, status: int) -> None:
        if status:
            raise PeerError(f"{name}: status {status}")


def jax_seconds(case: GpuCase, system: list[Any], budget: float) -> float:
    """Return the seconds of JAX's ``tridiagonal_solve``, compiled, for one batch.

    JAX does not expose its stream. The time is therefore measured on the host, over consecutive
    calls, of which only the last is waited for.
    """
    jax = _jax()
    require_cupy().cuda.get_current_stream().synchronize()
    try:
        lower, diag, upper, rhs = (jax.dlpack.from_dlpack(a) for a in system[:4])
        # The elements beyond the ends must exist but are not used.
        solve = jax.jit(
            lambda dl, d, du, b: jax.lax.linalg.tridiagonal_solve(dl, d, du, b[..., None])[..., 0]
        )
        return host_seconds(
            lambda: solve(lower, diag, upper, rhs), lambda x: x.block_until_ready(), budget
        )
    except Exception as error:
        raise PeerError(f"{type(error).__name__}: {str(error).splitlines()[0]}") from error


def torch_seconds(system: list[Any], budget: float) -> float:
    """Return the seconds of Thomas elimination in PyTorch, which has no tridiagonal solver.

    One row of all systems is eliminated at a time. The operands are copied before the measurement
    to the layout in which neighbouring systems are contiguous.
    """
    try:
        torch = import_module("torch")
        require_cupy().cuda.get_current_stream().synchronize()
        operands = [torch.from_dlpack(a).T.contiguous().T for a in system[:4]]
        return host_seconds(
            lambda: peers.numpy_thomas(*operands, empty_like=torch.empty_like),
            lambda _: torch.cuda.synchronize(),
            budget,
        )
    except Exception as error:
        raise PeerError(f"{type(error).__name__}: {str(error).splitlines()[0]}") from error


def host_seconds(solve: Callable[[], Any], wait: Callable[[Any], object], budget: float) -> float:
    """Return the seconds of one call, the median of rounds of consecutive calls."""
    clock = waiting(wait)
    clock(solve, 1)  # may compile
    count = max(1, min(20, int(budget / ROUNDS / clock(solve, 1))))
    return median(clock(solve, count) for _ in range(ROUNDS))


@functools.cache
def _jax() -> Any:
    """Return JAX on the GPU, without preallocation of memory."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        jax = import_module("jax")
        jax.config.update("jax_enable_x64", True)
        if jax.default_backend() != "gpu":
            raise PeerError("JAX has no GPU backend here")
    except ImportError as error:
        raise PeerError(f"JAX cannot be imported: {error}") from error
    return jax
