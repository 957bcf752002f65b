"""FastPoisson compared with SciPy's sparse LU, PyAMG and transforms along all axes.

Dirichlet sides and random right sides on n x n and n x n x n cells, float64. Each solver is set
up once; the times are medians of calls for one right side, and the solvers alternate. SciPy's LU
uses minimum degree ordering of the symmetric pattern and no row exchanges. PyAMG uses smoothed
aggregation as preconditioner of conjugate gradients, up to a relative residual of 1e-8. The
residuals in the record are relative to |A| |u| + |f| in the maximum norm. PyAMG is no dependency of
the project: without it its column is empty.

With --grids, stretched grids, each next to the uniform one of the same size, SciPy's sparse LU,
PyAMG and, with one stretched axis, a loop over the waves of `scipy.fft` with
`scipy.linalg.solve_banded`; and a batch of fields next to a loop over them. The stretched axes have
tanh(2 s) / tanh(2), which is symmetric; products with matrices of more than 128 rows run on the
threads of the BLAS of NumPy.

With --gpu, float64 and float32, next to the transforms of cuFFT alone and a solver made of CuPy:
`cuFFT alone` is one real transform forward and one back along each axis but x, of all lines at
once, contiguous, without what makes them sine transforms: the bar is 2.5 times this time. The CuPy
solver is a sine transform along every axis by cupyx.scipy.fft, a division by the eigenvalues, and
back. Times are those of the device over calls in a row.

With --gpu --grids, grids of nodes next to those of cells, lengths with large prime factors to
the next ones without, stretched axes, a pipe, a batch and small grids, float64. A copy of the field
is measured in the same run. `floor` is the share of the words that the design moves, counted by
`words_of`, at the bandwidth of this copy. CuPy has sine transforms along every axis, of the second
kind for cells and of the first kind, by an extension, for nodes.
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from pysolvers import FastPoisson, Neumann
from pysolvers._progress import progress
from pysolvers._repr import shape_text
from pysolvers._runtime import backends
from pysolvers._runtime.cufft import COMPLEX_TO_REAL, REAL_TO_COMPLEX, CufftPlan
from pysolvers._runtime.streams import Stream
from pysolvers.cases.tables import Column, Table
from pysolvers.poisson._longer import LongerGrid

from . import machine
from .options import add_options
from .record import Measurement, Record, finish
from .timing import Call, device, median_of, medians, require_cupy

SIZES = ((512, 512), (1024, 1024), (2048, 2048), (128, 128, 128), (256, 256, 256))
GPU_SIZES = ((1024, 1024), (4096, 4096), (128, 128, 128), (512, 512, 512))
QUICK_SIZES = ((24, 30), (6, 5, 7))
BARS: dict[tuple[int, ...], dict[str, float]] = {(2048, 2048): {"splu": 10.0, "pyamg": 5.0}}
GPU_BAR = 2.5
GPU_SECONDS = 0.05  # of a sample

# Unknowns by dimension above which the sparse LU is left out; its set-up took 171 s on 64^3 cells.
LU_LIMIT = {2: 5_000_000, 3: 100_000}
AMG_LIMIT = 5_000_000  # unknowns above which PyAMG is left out, for its set-up time
TOLERANCE = 1e-8


class CpuGrid(NamedTuple):
    """A grid on a CPU, its largest ratio to the uniform grid, and what it is compared with."""

    shape: tuple[int, ...]
    stretched: str = ""
    most: float | None = None
    kind: Literal["", "skewed", "periodic", "pipe"] = ""
    peers: tuple[str, ...] = ()


GRID_CASES = (
    CpuGrid((2048, 2048), "x", 1.5, peers=("banded loop",)),
    CpuGrid((2048, 2048), "y", 1.5, peers=("banded loop",)),
    CpuGrid((2048, 2048), "xy", 7.0),
    CpuGrid((2048, 2048), "xy", kind="skewed"),
    CpuGrid((512, 512), "xy", peers=("splu", "pyamg")),
    CpuGrid((128, 128, 128), "xyz", 1.5),
    CpuGrid((64, 64, 64), "xyz", peers=("pyamg",)),
    CpuGrid((1024, 512), "xy", kind="pipe", peers=("splu",)),
    CpuGrid((32, 32), kind="periodic", peers=("spectral",)),
    CpuGrid((64, 64), kind="periodic", peers=("spectral",)),
    CpuGrid((256, 256), kind="periodic", peers=("spectral",)),
)
QUICK_GRID_CASES = (
    CpuGrid((24, 30), "y", peers=("banded loop", "splu")),
    CpuGrid((6, 5, 7), "xyz", peers=("splu",)),
    CpuGrid((9, 8), "xy", kind="pipe", peers=("splu",)),
    CpuGrid((9, 8), kind="periodic", peers=("spectral",)),
)
PEER_SECONDS = 10.0  # after which the samples of a call end, if there are three


class GpuGrid(NamedTuple):
    """A grid on a GPU, and what its time must not exceed."""

    shape: tuple[int, ...]
    grid: Literal["nodes", "cells"]
    stretched: str = ""
    most: float | None = None  # seconds, or times the case `reference`
    reference: int | None = None  # index of a case
    kind: Literal["", "skewed", "periodic", "Neumann", "pipe"] = ""
    batch: int = 0  # fields; 0: no axis of a batch


GPU_GRIDS = (
    GpuGrid((1024, 1024), "cells"),
    GpuGrid((1025, 1025), "nodes", most=1.3, reference=0),
    GpuGrid((2048, 2048), "cells"),
    GpuGrid((2049, 2049), "nodes", most=1.3, reference=2),
    GpuGrid((2048, 2048), "nodes", most=1.6, reference=3),
    GpuGrid((4096, 4096), "cells"),
    GpuGrid((4097, 4097), "nodes", most=1.3, reference=5),
    GpuGrid((4095, 4095), "nodes", most=1.6, reference=6),
    GpuGrid((3000, 3000), "cells"),
    GpuGrid((3001, 3001), "nodes", most=1.3, reference=8),
    GpuGrid((3000, 3000), "nodes", most=1.6, reference=9),
    GpuGrid((2001, 2001), "nodes"),
    GpuGrid((2000, 2000), "nodes", most=1.6, reference=11),
    GpuGrid((1500, 1500), "cells"),
    GpuGrid((1501, 1501), "nodes", most=1.3, reference=13),
    GpuGrid((256, 256), "cells", most=50e-6),
    GpuGrid((512, 512), "cells", most=70e-6),
    GpuGrid((256, 256), "nodes", most=50e-6),
    GpuGrid((512, 512), "nodes", most=70e-6),
    GpuGrid((2048, 2048), "cells", kind="periodic"),
    GpuGrid((1000, 3000), "nodes", kind="Neumann"),
    GpuGrid((2048, 2048), "cells", "x"),
    GpuGrid((2048, 2048), "cells", "xy"),
    GpuGrid((2048, 2048), "cells", "xy", kind="skewed"),
    GpuGrid((4096, 1024), "cells", "x", kind="pipe"),
    GpuGrid((65, 65), "nodes", batch=200),
    GpuGrid((512, 512, 512), "cells"),
    GpuGrid((511, 511, 511), "nodes", most=1.6, reference=26),
    GpuGrid((512, 512, 512), "cells", "y"),
    GpuGrid((512, 512, 512), "cells", "xyz", most=15e-3),
    GpuGrid((1024, 1024, 1024), "cells", most=0.25),
    GpuGrid((513, 513, 513), "nodes", most=1.3, reference=26),
)
QUICK_GPU_GRIDS = (
    GpuGrid((24, 30), "cells"),
    GpuGrid((25, 31), "nodes", "xy", most=2.0, reference=0),
    GpuGrid((24, 30), "cells", "xy", kind="skewed"),
    GpuGrid((24, 30), "cells", "x", kind="pipe", most=1.0),
    GpuGrid((24, 30), "cells", kind="periodic"),
    GpuGrid((24, 33), "nodes", kind="Neumann"),
    GpuGrid((9, 9), "nodes", batch=3),
    GpuGrid((6, 5, 7), "nodes"),
)
GPU_GRID_SECONDS = 0.03  # of a sample
CUPY_LIMIT = 200_000_000  # unknowns above which CuPy is left out, for its memory
BATCH, QUICK_BATCH = (200, 65, 65), (5, 9, 9)
BATCH_BAR = 8.0  # a loop over the fields takes so many times as long

Solve = Callable[[np.ndarray], np.ndarray]


def laplacian(shape: tuple[int, ...]) -> Any:
    """Return minus the matrix of the Laplacian times h^2, of cells between Dirichlet sides."""
    from scipy import sparse

    total = sparse.csr_array((np.prod(shape), np.prod(shape)))
    for axis, n in enumerate(shape):
        diag = np.full(n, 2.0)
        diag[[0, -1]] = 3.0
        line = sparse.diags_array([-np.ones(n - 1), diag, -np.ones(n - 1)], offsets=[-1, 0, 1])
        before = sparse.eye_array(int(np.prod(shape[:axis])))
        after = sparse.eye_array(int(np.prod(shape[axis + 1 :])))
        total = total + sparse.kron(sparse.kron(before, line), after)
    return total


def package(shape: tuple[int, ...], threads: int | None) -> Solve:
    """Return FastPoisson; it solves into an array that is kept."""
    solver = FastPoisson(shape, 1.0, boundary=0.0, grid="cells", threads=threads)
    out = np.empty(shape)
    return lambda f: solver.solve(f, out=out)


def sparse_lu(shape: tuple[int, ...]) -> Solve:
    """Return SciPy's sparse LU with its factors made."""
    return factors_of(-laplacian(shape))


def factors_of(matrix: Any) -> Solve:
    """Return SciPy's sparse LU of a matrix."""
    from scipy.sparse.linalg import splu

    factors = splu(
        matrix.tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return lambda f: factors.solve(f.ravel()).reshape(f.shape)


def multigrid(shape: tuple[int, ...]) -> Solve:
    """Return PyAMG with its hierarchy made."""
    return multigrid_of(laplacian(shape).tocsr(), shape)


def multigrid_of(matrix: Any, shape: tuple[int, ...]) -> Solve:
    """Return PyAMG for minus a matrix."""
    import pyamg

    matrix.indices, matrix.indptr = matrix.indices.astype("i4"), matrix.indptr.astype("i4")
    hierarchy = pyamg.smoothed_aggregation_solver(matrix)
    return lambda f: hierarchy.solve(-f.ravel(), tol=TOLERANCE, accel="cg").reshape(shape)


def eigenvalues(shape: tuple[int, ...]) -> np.ndarray:
    """Return the eigenvalues of the Laplacian times h^2, by the waves along all axes."""
    found = np.zeros(shape)
    for axis, n in enumerate(shape):
        waves = -((2 * np.sin(np.pi / 2 * np.arange(1, n + 1) / n)) ** 2)
        found += waves.reshape((-1,) + (1,) * (len(shape) - 1 - axis))
    return found


def spectral(shape: tuple[int, ...], threads: int) -> Solve:
    """Return sine transforms along all axes by scipy.fft, in place of the lines."""
    import scipy.fft

    divisor = eigenvalues(shape)

    def solve(f: np.ndarray) -> np.ndarray:
        field = scipy.fft.dstn(f, 2, workers=threads)
        field /= divisor
        return scipy.fft.idstn(field, 2, workers=threads, overwrite_x=True)

    return solve


def makers(shape: tuple[int, ...], threads: int) -> dict[str, Callable[[], Solve]]:
    """Return what sets up each solver."""
    found: dict[str, Callable[[], Solve]] = {
        "one thread": lambda: package(shape, 1),
        "package": lambda: package(shape, None),
        "spectral": lambda: spectral(shape, threads),
    }
    if np.prod(shape) <= LU_LIMIT[len(shape)]:
        found["splu"] = lambda: sparse_lu(shape)
    if machine.versions("pyamg")["pyamg"] and np.prod(shape) <= AMG_LIMIT:
        found["pyamg"] = lambda: multigrid(shape)
    return found


def times(
    makers: dict[str, Callable[[], Solve]], f: np.ndarray, runs: int
) -> tuple[dict[str, Solve], dict[str, float], dict[str, float]]:
    """Return the solvers, the seconds of their set-up and the medians of the solve times."""
    solvers: dict[str, Solve] = {}
    setup = {}
    for name, make in makers.items():
        begin = time.perf_counter()
        solvers[name] = make()
        setup[name] = round(time.perf_counter() - begin, 4)
    calls = {name: lambda solve=solve: solve(f) for name, solve in solvers.items()}
    found = medians(calls, runs, budget=PEER_SECONDS)
    return solvers, setup, {name: round(seconds, 6) for name, seconds in found.items()}


def measure(shape: tuple[int, ...], runs: int, threads: int) -> Record:
    """Return set-up times, medians of the solve times and residuals of all solvers on a CPU."""
    matrix = laplacian(shape).tocsr()
    f = np.random.default_rng(1).uniform(-1, 1, shape)
    solvers, setup, seconds = times(makers(shape, threads), f, runs)
    residual = {}
    for name, solve in solvers.items():
        u = solve(f)
        difference = np.abs(matrix @ u.ravel() + f.ravel()).max()
        residual[name] = float(f"{difference / (8 * np.abs(u).max() + np.abs(f).max()):.2g}")
    return {
        "shape": list(shape),
        "bars": BARS.get(shape, {}),
        "seconds": seconds,
        "setup": setup,
        "residual": residual,
    }


def stretched(
    shape: tuple[int, ...],
    axes: str,
    grid: Literal["nodes", "cells"] = "cells",
    kind: str = "",
    **rest: Any,
) -> FastPoisson:
    """Return a solver on a grid that is stretched along some axes, between Dirichlet sides.

    Parameters
    ----------
    shape, axes, grid
        The grid, and the names of the axes that are stretched.
    kind : str
        ``"skewed"``: the stretched axes are not symmetric. ``"periodic"`` or ``"Neumann"``: of all
        sides. ``"pipe"``: x is the radius of a cylinder.
    **rest
        Passed to `FastPoisson`.
    """
    spacing: list[Any] = []
    for name, n in zip("xyz", reversed(shape), strict=False):
        first = 0.0 if kind == "skewed" or (kind == "pipe" and name == "x") else -1.0
        edges = np.tanh(2 * np.linspace(first, 1, n + (grid == "cells"))) / np.tanh(2)
        spacing.append(edges if name in axes else 2 / n)
    sides: dict[str, Any] = {"periodic": "periodic", "Neumann": Neumann()}
    boundary: Any = sides.get(kind, 0.0)
    if kind == "pipe":
        rest, boundary = rest | {"geometry": "cylinder"}, {"x+": 0.0, "y": 0.0}
    options = {"boundary": boundary, "grid": grid, "on_incompatible": "ignore", **rest}
    return FastPoisson(shape, tuple(spacing), **options)


def stretched_laplacian(solver: FastPoisson) -> Any:
    """Return the matrix of a solver, of all axes."""
    from scipy import sparse

    total = sparse.csr_array((np.prod(solver.shape), np.prod(solver.shape)))
    for k, axis in enumerate(solver._axes):
        lower, diag, upper = axis.rows
        line = sparse.diags_array([lower[1:], diag, upper[:-1]], offsets=[-1, 0, 1])
        before = sparse.eye_array(int(np.prod(solver.shape[:k])))
        after = sparse.eye_array(int(np.prod(solver.shape[k + 1 :])))
        total = total + sparse.kron(sparse.kron(before, line), after)
    return total


def banded_loop(solver: FastPoisson, axes: str, threads: int) -> Solve:
    """Return a sine transform along the uniform axis, and a banded solve for each wave."""
    import scipy.fft
    from scipy.linalg import solve_banded

    k = 1 if axes == "x" else 0  # of the lines
    lower, diag, upper = solver._axes[k].rows
    waves = solver._axes[1 - k].eigenvalues()
    bands = np.zeros((3, len(diag)))
    bands[0, 1:], bands[2, :-1] = upper[:-1], lower[1:]

    def solve(f: np.ndarray) -> np.ndarray:
        field = scipy.fft.dst(f, 2, axis=1 - k, workers=threads)
        lines = field if k == 1 else field.T
        for wave, line in zip(waves, lines, strict=True):
            bands[1] = diag + wave
            line[:] = solve_banded((1, 1), bands, line)
        return np.asarray(scipy.fft.idst(field, 2, axis=1 - k, workers=threads, overwrite_x=True))

    return solve


def periodic_waves(shape: tuple[int, ...], threads: int) -> Solve:
    """Return Fourier transforms along all axes by scipy.fft, for periodic cells of size 2 / n."""
    import scipy.fft

    parts = [-((n * np.sin(np.pi * np.arange(n) / n)) ** 2) for n in shape]
    parts[-1] = parts[-1][: shape[-1] // 2 + 1]
    divisor = np.asarray(sum(np.ix_(*parts)))
    divisor.flat[0] = np.inf

    def solve(f: np.ndarray) -> np.ndarray:
        waves = scipy.fft.rfftn(f, workers=threads)
        waves /= divisor
        return np.asarray(scipy.fft.irfftn(waves, shape, workers=threads, overwrite_x=True))

    return solve


def products_alone(solver: FastPoisson) -> Solve:
    """Return the products of a solver, there and back: the floor of its time."""
    host = solver._host
    assert host is not None
    products = {k - len(solver.shape): product for k, product in host._products.items()}
    waves, out = np.empty(solver.shape), np.empty(solver.shape)

    def solve(f: np.ndarray) -> np.ndarray:
        for axis, product in products.items():
            product.forward(f, waves, axis, host.threads)
            product.backward(waves, out, axis, host.threads)
        return out

    return solve


def grids_measure(case: CpuGrid, runs: int, threads: int) -> Record:
    """Return medians of the solve times on a grid and on the uniform one, and of peers."""
    shape = case.shape
    solver = stretched(shape, case.stretched, kind=case.kind)
    out = np.empty(shape)
    peers: dict[str, Callable[[], Solve]] = {
        "banded loop": lambda: banded_loop(solver, case.stretched, threads),
        "spectral": lambda: periodic_waves(shape, threads),
        "splu": lambda: factors_of(stretched_laplacian(solver)),
        "pyamg": lambda: multigrid_of(-stretched_laplacian(solver).tocsr(), shape),
    }
    found: dict[str, Callable[[], Solve]] = {
        "uniform": lambda: package(shape, None),
        "package": lambda: lambda f: solver.solve(f, out=out),
    }
    if "eigenvectors" in solver.methods.values():
        found["products"] = lambda: products_alone(solver)
    has_pyamg = bool(machine.versions("pyamg")["pyamg"])
    found |= {name: peers[name] for name in case.peers if name != "pyamg" or has_pyamg}
    f = np.random.default_rng(1).uniform(-1, 1, shape)
    _, setup, seconds = times(found, f, runs)
    own = {"methods": dict(solver.methods), "seconds": seconds, "setup": setup}
    return case._asdict() | own


def batch_measure(shape: tuple[int, ...], runs: int, bar: float | None) -> Record:
    """Return medians of the times of a batch, and of a loop over its fields by transforms."""
    count, *size = shape
    options: dict[str, Any] = {"boundary": 0.0, "grid": "nodes"}
    solver = FastPoisson(size, 1.0, **options)
    single = FastPoisson(size, 1.0, methods={"x": "lines", "y": "transform"}, **options)
    f = np.random.default_rng(1).uniform(-1, 1, shape)
    out = np.empty(shape)
    calls: dict[str, Call] = {
        "package": lambda: solver.solve(f, out=out),
        "loop": lambda: [single.solve(f[k], out=out[k]) for k in range(count)],
    }
    seconds = {name: round(found, 6) for name, found in medians(calls, runs).items()}
    return {"shape": list(shape), "stretched": "", "seconds": seconds, "least": bar}


def grids_table(record: Record) -> Table:
    """Return the table of stretched grids and of a batch: milliseconds of a solve."""
    names = {
        "package": "`FastPoisson`",
        "uniform": "on a uniform grid",
        "products": "products alone",
        "loop": "one field after the other",
        "spectral": "`scipy.fft` along all axes",
        "banded loop": "`scipy.fft` and `solve_banded`",
        "splu": "`splu`",
        "pyamg": "PyAMG",
    }
    rows = []
    for entry in record["cases"]:
        own, cells = entry["seconds"]["package"], []
        for name in names:
            seconds = entry["seconds"].get(name)
            text = "" if seconds is None else f"{seconds * 1e3:.3g}"
            cells.append(f"{text} ({seconds / own:.2g} ×)" if text and name != "package" else text)
        methods = ", ".join(f"{a}: {m}" for a, m in entry.get("methods", {}).items())
        along = ", ".join(entry["stretched"])
        kind = f", {entry['kind']}" if entry.get("kind") else ""
        rows.append((shape_text(entry["shape"]) + kind, along, methods, *cells))
    columns = [Column("cells or fields and nodes"), Column("stretched along"), Column("methods")]
    note = (
        "Milliseconds of a right side, set-up excluded, in brackets the ratio to `FastPoisson`: "
        f"{record['machine']['cpu']}, {record['settings']['threads']} threads; load: "
        f"{record['load']}. *Products alone* are the products with eigenvectors, the floor of the "
        "time where they are most of the operations."
    )
    return Table("", [*columns, *map(Column, names.values())], rows, (note,))


def gpu_package(shape: tuple[int, ...], dtype: np.dtype) -> Call:
    """Return a call of FastPoisson on arrays of the device that are kept."""
    cupy = require_cupy()
    solver = FastPoisson(shape, 1.0, boundary=0.0, grid="cells", dtype=dtype, device="cuda")
    f = cupy.random.default_rng(1).random(shape, dtype)
    out = cupy.empty_like(f)
    return lambda: solver.solve(f, out=out)


def in_a_graph(shape: tuple[int, ...], dtype: np.dtype) -> Call:
    """Return the launch of a graph that holds a call of FastPoisson."""
    cupy = require_cupy()
    call = gpu_package(shape, dtype)
    call()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        call()
        graph = stream.end_capture()

    def launch(_owner: object = call) -> None:  # the graph uses the solver and the arrays
        graph.launch(cupy.cuda.get_current_stream())

    return launch


def transforms(shape: tuple[int, ...], dtype: np.dtype) -> Call:
    """Return real transforms of contiguous lines, forward and back, for each axis but x."""
    cupy = require_cupy()
    plans = []
    for n in shape[:-1]:
        pitch, lines = 2 * (n // 2 + 1), int(np.prod(shape)) // n
        for form in (REAL_TO_COMPLEX, COMPLEX_TO_REAL):
            plans.append((CufftPlan(form, n, pitch, lines, dtype, 0), lines * pitch))
    data = cupy.zeros(max(size for _, size in plans), dtype)
    work = cupy.zeros(max(max(plan.work_bytes for plan, _ in plans), 1), "u1")

    def call() -> None:
        stream = Stream(cupy.cuda.get_current_stream().ptr)
        for plan, _ in plans:
            plan.execute(data.data.ptr, work.data.ptr, stream)

    return call


def with_cupy(shape: tuple[int, ...], dtype: np.dtype) -> Call:
    """Return sine transforms along all axes by CuPy."""
    from cupyx.scipy import fft

    cupy = require_cupy()
    f = cupy.random.default_rng(1).random(shape, dtype)
    divisor = cupy.asarray(eigenvalues(shape), dtype)

    def call() -> Any:
        field = fft.dstn(f, 2)
        field /= divisor
        return fft.idstn(field, 2, overwrite_x=True)

    return call


GPU_SOLVERS: dict[str, Callable[[tuple[int, ...], np.dtype], Call]] = {
    "package": gpu_package,
    "graph": in_a_graph,
    "cuFFT alone": transforms,
    "CuPy": with_cupy,
}


def gpu_measure(shape: tuple[int, ...], dtype: np.dtype, runs: int) -> Record:
    """Return the seconds of the solvers on a GPU, and the reasons of those that fail."""
    cupy = require_cupy()
    seconds: dict[str, float] = {}
    failed: dict[str, str] = {}
    for name, make in GPU_SOLVERS.items():
        try:
            call = make(shape, dtype)
            with cupy.cuda.Stream(non_blocking=True):
                seconds[name] = median_of(call, runs, seconds=GPU_SECONDS, clock=device())
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        cupy.get_default_memory_pool().free_all_blocks()
    return {"shape": list(shape), "dtype": dtype.name, "seconds": seconds, "failed": failed}


def words_of(solver: FastPoisson, *, batch: bool = False) -> float:
    """Return the words that a solve on a device reads and writes, for each unknown.

    Packed waves: load, transforms there and back, lines, store; a longer grid has 2 for the product
    of its long waves. Otherwise 4 for the transforms or products of an axis, 10 for sums and
    differences of halves, 2 for the lines, and the row sums. Call it after a solve of a batch.
    """
    engine = solver._device
    assert engine is not None
    if batch and engine._batched is not None:
        engine = engine._batched
    unknowns = int(np.prod(engine._counts))
    packed = engine._packed
    if packed is not None:
        is_longer = isinstance(packed, LongerGrid)
        own = packed._packed if isinstance(packed, LongerGrid) else packed
        waves = own.wave_bytes / (unknowns * solver.dtype.itemsize)
        transforms = len(solver.shape) - 1
        return 2 + waves * (4 + 4 * transforms) + 2 * is_longer
    sums = engine._rows[1]  # a view without strides along axes of equal entries
    words = (
        2.0 + np.prod([n for n, s in zip(sums.shape, sums.strides, strict=True) if s]) / unknowns
    )
    words += 4.0 * (len(engine._plans(1).forward) + len(engine._products))
    return float(words) + 10.0 * sum(product.is_halved for product in engine._products.values())


def nodes_with_cupy(shape: tuple[int, ...]) -> Call:
    """Return sine transforms of nodes along all axes by CuPy: those of the odd extensions."""
    cupy = require_cupy()
    inner = tuple(n - 2 for n in shape)
    f = cupy.random.default_rng(1).random(inner)
    divisor = np.zeros(inner)
    for axis, n in enumerate(inner):
        waves = -((2 * np.sin(np.pi / 2 * np.arange(1, n + 1) / (n + 1))) ** 2)
        divisor += waves.reshape((-1,) + (1,) * (len(inner) - 1 - axis))
    scale = cupy.asarray(divisor * np.prod([2 * (n + 1) for n in inner]))

    def sines(field: Any, axis: int) -> Any:
        n = field.shape[axis]
        wide = cupy.zeros([2 * (n + 1) if k == axis else m for k, m in enumerate(field.shape)])
        place: list[Any] = [slice(None)] * field.ndim
        place[axis] = slice(1, n + 1)
        wide[tuple(place)] = field
        place[axis] = slice(n + 2, None)
        wide[tuple(place)] = -cupy.flip(field, axis)
        place[axis] = slice(1, n + 1)
        return -cupy.fft.rfft(wide, axis=axis)[tuple(place)].imag

    def call() -> Any:
        field = f
        for axis in range(len(inner)):
            field = sines(field, axis)
        field = field / scale
        for axis in range(len(inner)):
            field = sines(field, axis)
        return field

    return call


def gpu_grid_measure(case: GpuGrid, runs: int) -> Record:
    """Return the seconds of a solve, of a copy of the field and, on uniform grids, of CuPy."""
    cupy = require_cupy()
    begin = time.perf_counter()
    solver = stretched(case.shape, case.stretched, case.grid, case.kind, device="cuda")
    setup, methods = time.perf_counter() - begin, dict(solver.methods)
    shape = (case.batch, *case.shape) if case.batch else case.shape
    f = cupy.random.default_rng(1).random(shape)
    out = cupy.empty_like(f)
    calls: dict[str, Call] = {
        "package": lambda: solver.solve(f, out=out),
        "copy": lambda: cupy.copyto(out, f),
    }
    failed: dict[str, str] = {}
    is_plain = not (case.stretched or case.kind or case.batch)
    if is_plain and np.prod(case.shape) <= CUPY_LIMIT:
        try:
            if case.grid == "cells":
                calls["CuPy"] = with_cupy(case.shape, np.dtype("f8"))
            else:
                calls["CuPy"] = nodes_with_cupy(case.shape)
            calls["CuPy"]()
        except Exception as error:
            del calls["CuPy"]
            failed["CuPy"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    with cupy.cuda.Stream(non_blocking=True):
        seconds = {
            name: median_of(
                call, 3 if name == "CuPy" else runs, seconds=GPU_GRID_SECONDS, clock=device()
            )
            for name, call in calls.items()
        }
    words = words_of(solver, batch=bool(case.batch))
    return {
        **case._asdict(),
        "methods": methods,
        "words": round(words, 2),
        "seconds": seconds,
        "setup": round(setup, 3),
        "failed": failed,
    }


def gpu_grids_table(record: Record) -> Table:
    """Return the table of grids on a GPU: microseconds of a solve, and copies of the field."""
    rows = []
    for entry in record["cases"]:
        seconds, reference = entry["seconds"], entry["reference"]
        own = seconds["package"]
        ratio = (
            None if reference is None else own / record["cases"][reference]["seconds"]["package"]
        )
        bar = entry["most"]
        limit = "" if bar is None else (f"{bar * 1e6:.0f} µs" if ratio is None else f"{bar:g} ×")
        methods = ", ".join(f"{a}: {m}" for a, m in entry["methods"].items())
        copies = own / seconds["copy"]
        cupy = seconds["CuPy"] / own if "CuPy" in seconds else None
        floor = 100 * entry["words"] / 2 / copies
        name = case_name(entry)
        rows.append((name, methods, own * 1e6, copies, entry["words"], floor, cupy, ratio, limit))
    columns = [
        Column("grid", left=True),
        Column("methods"),
        Column("µs", ".0f"),
        Column("copies", ".1f"),
        Column("words", ".1f"),
        Column("floor %", ".0f"),
        Column("CuPy ×", ".1f"),
        Column("ratio", ".2f"),
        Column("bar"),
    ]
    note = (
        "Microseconds of the device for one right side in float64 over calls in a row, set-up "
        "excluded; the same in copies of the field; the words that the design moves for each "
        "unknown, and the share of the time that these words take at the bandwidth of the copy; "
        "the time of CuPy in units of that of this package; the ratio to the grid of the bar: one "
        "of cells for nodes of a good length, and otherwise the next good length. Measured "
        f"on {record['gpu']['name']}."
    )
    return Table("", columns, rows, (note,))


def case_name(entry: Record) -> str:
    """Return what a grid on a GPU is called in tables and messages."""
    batch = f"{entry['batch']} fields of " if entry["batch"] else ""
    along = f" stretched along {', '.join(entry['stretched'])}" if entry["stretched"] else ""
    kind = f" {entry['kind']}" if entry["kind"] else ""
    return f"{batch}{shape_text(entry['shape'])} {entry['grid']}{kind}{along}"


def tables(record: Record) -> list[Table]:
    """Return the table of a record."""
    if "reference" in record["cases"][0]:
        return [gpu_grids_table(record)]
    if "stretched" in record["cases"][0]:
        return [grids_table(record)]
    on_gpu = "dtype" in record["cases"][0]
    return [gpu_table(record) if on_gpu else cpu_table(record)]


def cpu_table(record: Record) -> Table:
    """Return the table of a CPU: milliseconds of a solve."""
    names = {
        "one thread": "`FastPoisson`, 1 thread",
        "package": "`FastPoisson`",
        "spectral": "all axes by `scipy.fft`",
        "splu": "`splu`",
        "pyamg": "PyAMG",
    }
    rows = []
    for entry in record["cases"]:
        own, cells = entry["seconds"]["package"], []
        for name in names:
            seconds = entry["seconds"].get(name)
            text = "" if seconds is None else f"{seconds * 1e3:.1f}"
            is_peer = seconds is not None and name not in ("package", "one thread")
            cells.append(f"{text} ({seconds / own:.1f} ×)" if is_peer else text)
        rows.append((shape_text(entry["shape"]), *cells))
    machine, versions = record["machine"], record["versions"]
    note = (
        "Milliseconds for one right side in float64, set-up excluded; in brackets the ratio to "
        f"`FastPoisson`. Measured on {machine['cpu']}, {record['settings']['threads']} threads, "
        f"SciPy {versions['scipy']}, PyAMG {versions['pyamg']}; load before: {record['load']}."
    )
    return Table("", [Column("cells"), *map(Column, names.values())], rows, (note,))


def gpu_table(record: Record) -> Table:
    """Return the table of a GPU: microseconds of a solve."""
    names = {
        "package": "`FastPoisson`",
        "graph": "in a CUDA graph",
        "cuFFT alone": "transforms of cuFFT alone",
        "CuPy": "CuPy",
    }
    rows = []
    for entry in record["cases"]:
        seconds = entry["seconds"]
        cells = [seconds[name] * 1e6 if name in seconds else None for name in names]
        known = {"graph", "cuFFT alone"} <= seconds.keys()
        ratio = seconds["graph"] / seconds["cuFFT alone"] if known else None
        rows.append((shape_text(entry["shape"]), entry["dtype"], *cells, ratio))
    columns = [Column("cells"), Column("dtype", left=True)]
    columns += [Column(name, ".0f") for name in names.values()]
    versions = record["versions"]
    note = (
        "Microseconds of the device for one right side, set-up excluded. Measured on "
        f"{record['gpu']['name']}, cuFFT {versions['nvidia-cufft']}, CuPy "
        f"{versions['cupy-cuda13x']}."
    )
    return Table("", [*columns, Column("graph / cuFFT", ".1f")], rows, (note,))


def missed(record: Record) -> list[str]:
    """Return what misses its bar."""
    found = []
    for entry in record["cases"]:
        seconds, size = entry["seconds"], shape_text(entry["shape"])
        for name, bar in entry.get("bars", {}).items():
            if name in seconds and seconds[name] / seconds["package"] < bar:
                found.append(f"{size}: {name} takes less than {bar:g} times as long")
        if "reference" in entry:
            found += missed_grid(record["cases"], entry)
            continue
        ratio = seconds.get("package", 0.0) / seconds.get("uniform", np.inf)
        if entry.get("most") and ratio > entry["most"]:
            found.append(f"{size}, {entry['stretched']}: more than {entry['most']:g} x uniform")
        if entry.get("least") and seconds["loop"] < entry["least"] * seconds["package"]:
            found.append(f"{size}: a loop takes less than {entry['least']:g} times as long")
        alone = seconds.get("cuFFT alone", np.inf)
        if seconds.get("graph", 0.0) > GPU_BAR * alone:
            found.append(f"{size}, {entry['dtype']}: more than {GPU_BAR} times cuFFT alone")
    return found


def missed_grid(cases: list[Record], entry: Record) -> list[str]:
    """Return whether a grid on a GPU misses its bar."""
    most, reference = entry["most"], entry["reference"]
    if most is None:
        return []
    limit = most if reference is None else most * cases[reference]["seconds"]["package"]
    own = entry["seconds"]["package"]
    return [f"{case_name(entry)}: {own * 1e6:.0f} of {limit * 1e6:.0f} us"] if own > limit else []


def failed(record: Record) -> list[str]:
    """Return which solvers failed, and why."""
    return [
        f"{shape_text(entry['shape'])}: {name}: {why}"
        for entry in record["cases"]
        for name, why in entry.get("failed", {}).items()
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick", "gpu", "sizes", "runs")
    parser.add_argument(
        "--grids", action="store_true", help="stretched and other grids, and a batch"
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the record."""
    quick = QUICK_SIZES if args.quick else None
    sizes = args.sizes or quick or (GPU_SIZES if args.gpu else SIZES)
    settings: Record = {"quick": args.quick, "runs": args.runs}
    if args.gpu and args.grids:
        measurement = Measurement("poisson_grids", machine.GPU_PACKAGES, gpu=True)
        grids = QUICK_GPU_GRIDS if args.quick else GPU_GRIDS
        cases = []
        for case in progress(grids, "poisson"):
            cases.append(gpu_grid_measure(case, args.runs))
            require_cupy().get_default_memory_pool().free_all_blocks()
        record = measurement.record(cases, settings)
    elif args.gpu:
        packages = (*machine.GPU_PACKAGES, "nvidia-cufft")
        measurement = Measurement("poisson", packages, gpu=True)
        dtypes = (np.dtype("f8"), np.dtype("f4"))
        todo = [(shape, dtype) for shape in sizes for dtype in dtypes]
        cases = [gpu_measure(*case, args.runs) for case in progress(todo, "poisson")]
        record = measurement.record(cases, settings)
    elif args.grids:
        measurement = Measurement("poisson_grids", ("scipy", "pyamg"))
        threads = backends.require("cpu").default_threads()
        kinds = QUICK_GRID_CASES if args.quick else GRID_CASES
        cases = [grids_measure(case, args.runs, threads) for case in progress(kinds, "poisson")]
        batch = (QUICK_BATCH, args.runs, None) if args.quick else (BATCH, args.runs, BATCH_BAR)
        cases.append(batch_measure(*batch))
        record = measurement.record(cases, settings | {"threads": threads})
    else:
        measurement = Measurement("poisson", ("scipy", "pyamg"))
        threads = backends.require("cpu").default_threads()
        cases = [measure(shape, args.runs, threads) for shape in progress(sizes, "poisson")]
        settings |= {"threads": threads, "tolerance of pyamg": TOLERANCE}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        record = measurement.record(cases, settings, **{"peak memory": peak})
    finish(args, record, tables(record), missed(record), failed(record))
    return 0
