"""Linear recurrences, pentadiagonal and block systems, compact differences and smoothers.

Next to them other packages: on a CPU float64, along the last axis, SciPy, Numba, JAX, SOLVAX,
pentapy and pybaselines, as far as they are installed. A loop over systems is measured for some of
them, and its time multiplied.

With --gpu they are cuSPARSE, which takes systems along the first axis only, accelerated-scan,
torchaudio, and JAX with SOLVAX and smolgp. The times of JAX, of PyTorch and of the Gaussian process
are those of consecutive calls; the others are those of the device without the host, which enqueues
a call while copies run that replace the contents of the cache (`timing.CopyClock`).

`copy` is the time in which a copy, measured in the same run, moves the words of an operation: its
operands read once and its result written once.
"""

import argparse
from collections.abc import Callable, Collection, Iterator
from functools import partial
from importlib import import_module
from math import prod
from statistics import median
from typing import Any

import numpy as np

from pysolvers import (
    compact_derivative,
    linear_recurrence,
    solve_block_tridiagonal,
    solve_pentadiagonal,
)
from pysolvers._derivatives.formulas import end_weights
from pysolvers._progress import progress
from pysolvers._repr import shape_text
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table
from pysolvers.smoothing import arpls, whittaker

from . import machine
from .gaussian_process import likelihood
from .gpu_peers import SMALL_SOLVES, SOLVAX, block_seconds, block_thomas
from .options import add_options
from .record import Measurement, Record, finish, place
from .timing import Copier, CopyClock, device, keep_memory, median_of, medians, require_cupy

CPU_PACKAGES = ("scipy", "numba", "jax", "pentapy", "pybaselines", "solvax")
LOOPS = 40  # systems of a loop that is measured for some of them
COPY_BYTES = 1 << 26
# Least ratio of the time of a peer and that of the package, by operation and peer.
BARS = {
    ("recurrence", "SciPy lfilter"): 3.0,
    ("recurrence, second order", "SciPy lfilter"): 3.0,
    ("recurrence", "JAX scan"): 3.0,
    ("gradient of a recurrence", "JAX scan"): 3.0,
    ("pentadiagonal", "SciPy solveh_banded, 64 rows"): 30.0,
    ("pentadiagonal", "SciPy solveh_banded"): 8.0,
    ("blocks of 2", "SciPy solve_banded"): 5.0,
    ("blocks of 3", "SciPy solve_banded"): 5.0,
    ("blocks of 4", "SciPy solve_banded"): 5.0,
    ("whittaker", "SciPy solveh_banded"): 30.0,
}
ARPLS_SECONDS = 4e-4  # of a spectrum of 1000 points
# The same on a GPU.
GPU_RATIOS = {
    ("recurrence, constant coefficients", "torchaudio lfilter"): 50.0,
    ("pentadiagonal", "cuSPARSE gpsv"): 4.0,
    **{(f"blocks of {side}", name): 10.0 for side in (2, 3, 4) for name in (SMALL_SOLVES, SOLVAX)},
}
# Fractions of the speed of a copy on a GPU that are wanted.
GPU_BARS = {"recurrence": 0.8, "pentadiagonal": 0.85, "compact derivative": 0.8}
GPU_BLOCK_BAR = 0.7
GAUSSIAN_SECONDS = 3e-3  # likelihood and derivatives of all points
GAUSSIAN_POINTS = 1_800_000
GAUSSIAN_NUMBERS = (1.0, 2.0, 0.09)  # variance, length, noise
GPU_RUNS = 9
GPU_SECONDS = 0.05  # of a sample of consecutive calls
GPU_RECURRENCES = (
    ((8, 1536, 65536), -1, "float32", 1),
    ((1536, 65536), -1, "float32", 1),
    ((1 << 27,), -1, "float32", 1),
    ((65536, 2048), 0, "float64", 1),
    ((4096, 32768), 0, "float32", 1),
    ((2048, 32768), -1, "float64", 1),
    ((1536, 65536), -1, "float32", 2),
    ((4096, 32768), 0, "float32", 2),
)
GPU_FILTERS = ((16, 480_000), (1536, 65536))
GPU_PENTADIAGONAL = (
    ((64, 200_000), 0),
    ((256, 50_000), 0),
    ((1000, 50_000), 0),
    ((4096, 8192), 0),
    ((200_000, 64), -1),
    ((50_000, 256), -1),
    ((12_800, 1000), -1),
    ((8192, 4096), -1),
)
GPU_DERIVATIVES = (  # shape, axis, dtype, accuracy, periodic
    *(
        ((4096, 8192), axis, dtype, 6, periodic)
        for axis in (0, -1)
        for dtype in ("float64", "float32")
        for periodic in (True, False)
    ),
    ((4096, 8192), -1, "float64", 4, False),
    ((256, 256, 512), 0, "float64", 6, True),
    ((256, 256, 512), 1, "float64", 6, True),
    ((32_767, 1001), -1, "float64", 6, False),
    ((200_000, 64), -1, "float64", 6, False),
    ((8192, 4096), -1, "float64", 8, False),
)
GPU_BLOCKS = tuple(  # systems, rows, side
    (systems, rows, side)
    for systems, rows in ((50_000, 64), (12_800, 256), (1000, 4096))
    for side in (2, 3, 4)
)

Call = Callable[[], Any]


class Case:
    """An operation on some operands.

    Parameters
    ----------
    operation : str
        Its name.
    shape : tuple of int
        The shape of the result.
    words : float
        Words of the result's dtype that it moves, for each entry of the result; 0 for an
        iteration.
    package : callable
        Calls the package.
    """

    def __init__(
        self, operation: str, shape: tuple[int, ...], words: float, package: Call, **more: Any
    ) -> None:
        self.entry: Record = {"operation": operation, "shape": list(shape), **more}
        self.words, self.calls, self.parts = words, {"package": package}, {"package": 1.0}

    def add(self, name: str, call: Call, part: float = 1.0) -> None:
        """Add a peer that does this part of the work."""
        self.calls[name], self.parts[name] = call, part

    def measure(self, runs: int, size: int, rate: float, budget: float) -> Record:
        """Return the record: seconds of all calls and of the copy."""
        found = medians(self.calls, runs, budget=budget)
        seconds = {name: found[name] / self.parts[name] for name in found}
        if self.words:
            seconds["copy"] = self.words * prod(self.entry["shape"]) * size / rate
        rounded = {name: float(f"{value:.4g}") for name, value in seconds.items()}
        return {**self.entry, "seconds": rounded}


def installed(name: str) -> Any:
    """Return a module, or None if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


def cpu_cases(*, quick: bool) -> Iterator[Case]:
    """Yield the cases of a CPU."""
    rng = np.random.default_rng(0)
    small = 20 if quick else 1
    yield from _recurrences(rng, small)
    for rows in (64, 1000):
        yield _pentadiagonal(rng, 640_000 // rows // small, rows)
    for side in (2, 3, 4):
        yield _blocks(rng, 2000 // small, 100, side)
    yield _derivative(rng, (10_000 // small, 200))
    yield from _smoothers(rng, small)


def _recurrences(rng: Any, small: int) -> Iterator[Case]:
    from scipy.signal import lfilter

    shape = (200 // small, 5000)
    a, b, x = rng.uniform(-0.9, 0.9, shape), rng.standard_normal(shape), np.empty(shape)
    case = Case(
        "recurrence", shape, 2, lambda: linear_recurrence(0.9, b, out=x), coefficients="constant"
    )
    case.add("SciPy lfilter", lambda: lfilter([1.0], [1.0, -0.9], b))
    yield case
    case = Case(
        "recurrence, second order",
        shape,
        2,
        lambda: linear_recurrence(1.2, b, second=-0.5, out=x),
        coefficients="constant",
    )
    case.add("SciPy lfilter", lambda: lfilter([1.0], [1.0, -1.2, 0.5], b))
    yield case
    case = Case("recurrence", shape, 3, lambda: linear_recurrence(a, b, out=x), coefficients="own")
    _add_numba(case, a, b, x)
    jax = installed("jax")
    if jax is None:
        yield case
        return
    jax.config.update("jax_enable_x64", True)
    from pysolvers.jax import linear_recurrence as recur

    given = [jax.numpy.asarray(v) for v in (a, b)]
    own, scan, tree = (jax.jit(f) for f in (recur, _scan(jax), _tree(jax)))
    case.add("package, JAX", lambda: own(*given).block_until_ready())
    case.add("JAX scan", lambda: scan(*given).block_until_ready())
    case.add("JAX associative_scan", lambda: tree(*given).block_until_ready())
    yield case

    def gradient(function: Callable[..., Any]) -> Call:
        compiled = jax.jit(jax.grad(lambda a, b: (function(a, b) ** 2).sum(), (0, 1)))
        return lambda: jax.block_until_ready(compiled(*given))

    case = Case("gradient of a recurrence", shape, 5, gradient(recur), coefficients="own")
    case.add("JAX scan", gradient(_scan(jax)))
    case.add("JAX associative_scan", gradient(_tree(jax)))
    yield case


def _scan(jax: Any) -> Callable[..., Any]:
    """Return the recurrence along the last axis by `jax.lax.scan`."""

    def compute(a: Any, b: Any) -> Any:
        def step(x: Any, row: Any) -> Any:
            x = row[0] * x + row[1]
            return x, x

        rows = [jax.numpy.moveaxis(v, -1, 0) for v in (a, b)]
        _, x = jax.lax.scan(step, jax.numpy.zeros_like(rows[1][0]), tuple(rows))
        return jax.numpy.moveaxis(x, 0, -1)

    return compute


def _tree(jax: Any) -> Callable[..., Any]:
    """Return the recurrence along the last axis by `jax.lax.associative_scan`."""

    def join(before: Any, after: Any) -> Any:
        return before[0] * after[0], after[0] * before[1] + after[1]

    return lambda a, b: jax.lax.associative_scan(join, (a, b), axis=-1)[1]


def _add_numba(case: Case, a: Any, b: Any, x: Any) -> None:
    numba = installed("numba")
    if numba is None:
        return

    @numba.njit(parallel=True)
    def loop(a: Any, b: Any, x: Any) -> None:
        for j in numba.prange(len(b)):
            state = 0.0
            for t in range(b.shape[1]):
                state = a[j, t] * state + b[j, t]
                x[j, t] = state

    loop(a, b, x)
    case.add("Numba", lambda: loop(a, b, x))


def _pentadiagonal(rng: Any, systems: int, rows: int) -> Case:
    from scipy.linalg import solveh_banded

    shape = (systems, rows)
    upper, upper2 = (rng.uniform(-1, 1, shape) for _ in range(2))
    diag, rhs, x = 4 + rng.uniform(0, 1, shape), rng.standard_normal(shape), np.empty(shape)
    case = Case(
        "pentadiagonal",
        shape,
        5,
        lambda: solve_pentadiagonal(
            None, None, diag, upper, upper2, rhs, assume="positive definite", out=x
        ),
    )
    some = min(LOOPS * (1000 // rows), systems)
    packed = np.zeros((some, 3, rows))
    packed[:, 0, 2:], packed[:, 1, 1:] = upper2[:some, :-2], upper[:some, :-1]
    packed[:, 2] = diag[:some]

    def loop() -> None:
        for k in range(some):
            solveh_banded(packed[k], rhs[k], check_finite=False)

    name = "SciPy solveh_banded" + (", 64 rows" if rows == 64 else "")
    case.add(name, loop, some / systems)
    pentapy = installed("pentapy")
    if pentapy is not None:
        flat = np.zeros((some, 5, rows))
        flat[:, 0], flat[:, 1], flat[:, 2] = upper2[:some], upper[:some], diag[:some]
        flat[:, 3, 1:], flat[:, 4, 2:] = upper[:some, :-1], upper2[:some, :-2]

        def penta() -> None:
            for k in range(some):
                pentapy.solve(flat[k], rhs[k], is_flat=True)

        case.add("pentapy", penta, some / systems)
    return case


def _blocks(rng: Any, systems: int, rows: int, side: int) -> Case:
    from scipy.linalg import solve_banded

    lower, diag, upper = (
        rng.uniform(-1, 1, (systems, rows, side, side)) / (4 * side) for _ in range(3)
    )
    diag += np.eye(side)
    rhs = rng.standard_normal((systems, rows, side, 1))
    x = np.empty_like(rhs)
    case = Case(
        f"blocks of {side}",
        (systems, rows, side),
        3 * side + 2,
        lambda: solve_block_tridiagonal(lower, diag, upper, rhs, out=x),
    )
    some, band = min(LOOPS, systems), 2 * side - 1
    packed = np.zeros((some, 2 * band + 1, rows * side))
    for i in range(rows):
        for j, block in ((i - 1, lower), (i, diag), (i + 1, upper)):
            if not 0 <= j < rows:
                continue
            for p in range(side):
                for q in range(side):
                    row, column = i * side + p, j * side + q
                    packed[:, band + row - column, column] = block[:some, i, p, q]

    def loop() -> None:
        for k in range(some):
            solve_banded((band, band), packed[k], rhs[k].ravel(), check_finite=False)

    case.add("SciPy solve_banded", loop, some / systems)
    jax = installed("jax") if installed("solvax") is not None else None
    if jax is not None:
        jax.config.update("jax_enable_x64", True)
        solve = jax.jit(jax.vmap(block_thomas()))
        given = [jax.numpy.asarray(v) for v in (lower, diag, upper, rhs)]
        case.add(SOLVAX, lambda: solve(*given).block_until_ready())
    return case


def _derivative(rng: Any, shape: tuple[int, int]) -> Case:
    """Return the case of first derivatives of order 6, whose ends have this order, too."""
    from scipy.linalg import solve_banded

    f, out = rng.standard_normal(shape), np.empty(shape)
    case = Case("compact derivative", shape, 2, lambda: compact_derivative(f, out=out), accuracy=6)
    ends = np.array(end_weights(1, 6, 6))
    points = ends.shape[1]
    packed = np.array([[1 / 3], [1.0], [1 / 3]]).repeat(shape[1], 1)

    def compute() -> None:
        g = np.empty_like(f)
        g[:, 2:-2] = 7 / 9 * (f[:, 3:-1] - f[:, 1:-3]) + (f[:, 4:] - f[:, :-4]) / 36
        g[:, :2] = f[:, :points] @ ends.T
        g[:, -2:] = -(f[:, : -points - 1 : -1] @ ends.T)[:, ::-1]
        solve_banded((1, 1), packed, g.T, overwrite_b=True, check_finite=False)

    case.add("NumPy and SciPy solve_banded", compute)
    return case


def _smoothers(rng: Any, small: int) -> Iterator[Case]:
    from scipy.linalg import solveh_banded

    series, rows, lam = 5000 // small, 500, 100.0
    y = np.cumsum(rng.standard_normal((series, rows)), -1)
    weights = rng.uniform(0.5, 1.5, (series, rows))
    case = Case("whittaker", y.shape, 3, lambda: whittaker(y, lam, weights=weights))
    line = np.diff(np.eye(rows), n=2, axis=0)
    penalty = lam * line.T @ line
    some = min(LOOPS, series)

    def loop() -> None:
        for k in range(some):
            packed = np.zeros((3, rows))
            packed[0, 2:], packed[1, 1:] = np.diag(penalty, 2), np.diag(penalty, 1)
            packed[2] = np.diag(penalty) + weights[k]
            solveh_banded(packed, weights[k] * y[k], check_finite=False)

    case.add("SciPy solveh_banded", loop, some / series)
    yield case
    spectra, points = 1000 // small, 1000
    where = np.linspace(0, 1, points)
    lines = np.exp(-(((where - rng.uniform(0, 1, (spectra, 6, 1))) / 0.01) ** 2)).sum(1)
    curves = 3 * lines + np.sin(3 * where) + 0.05 * rng.standard_normal((spectra, points))
    case = Case("arpls", curves.shape, 0, lambda: arpls(curves, 1e5))
    pybaselines = installed("pybaselines")
    if pybaselines is not None:
        fitter, few = pybaselines.Baseline(where), min(LOOPS, spectra)

        def fit() -> None:
            for k in range(few):
                fitter.arpls(curves[k], lam=1e5)

        case.add("pybaselines", fit, few / spectra)
    yield case


def gpu_cases(without: Collection[str], *, quick: bool) -> tuple[list[Record], float]:
    """Return the records of the cases of a GPU, without some peers, and the speed of copies."""
    from . import gpu_peers

    cupy = require_cupy()
    clock = CopyClock()
    found: list[Record] = []

    def draw(shape: tuple[int, ...], dtype: str, size: float = 1.0) -> Any:
        value = cupy.random.default_rng(0).random(shape, dtype)
        value *= size
        return value

    def alone(call: Call) -> float:
        call()  # allocates its workspace
        clock.samples.clear()
        return median(seconds for _, seconds in clock.floors_and_times(call, 0.0, GPU_RUNS))

    def entry(operation: str, x: Any, words: float, call: Call, **more: Any) -> Record:
        if words:
            seconds = {"package": alone(call), "copy": words * x.nbytes / median(clock.samples)}
        else:
            seconds = {"package": median_of(call, 5, seconds=GPU_SECONDS, clock=device())}
        made: Record = {"operation": operation, "shape": list(x.shape), "dtype": str(x.dtype)}
        found.append({**made, **more, "seconds": seconds})
        return found[-1]

    def peer(record: Record, name: str, measure: Callable[[], float]) -> None:
        if name in without:
            return
        try:
            record["seconds"][name] = measure()
        except Exception as error:
            text = (str(error).splitlines() or [""])[0]
            record.setdefault("failed", []).append(f"{name}: {type(error).__name__}: {text}")

    def gpsv(bands: list[Any], rhs: Any) -> float:
        return alone(gpu_peers.cusparse_bands(bands, rhs))

    def accelerated(a: Any, b: Any) -> float:
        call = gpu_peers.accelerated_scan(a, b)
        return median_of(call, 5, seconds=GPU_SECONDS, clock=device("torch"))

    def filtered(a: float, b: Any) -> float:
        call = gpu_peers.torchaudio_filter(a, b)
        return median_of(call, 3, seconds=GPU_SECONDS, clock=device("torch"))

    shapes = GPU_RECURRENCES if not quick else (((8, 1000), -1, "float32", 1),)
    for shape, axis, dtype, order in progress(shapes, "recurrences"):
        a, b = draw(shape, dtype, 0.9), draw(shape, dtype)
        second = draw(shape, dtype, 0.05) if order == 2 else None
        x = cupy.empty_like(b)
        record = entry(
            "recurrence" if order == 1 else "recurrence, second order",
            x,
            order + 2,
            partial(linear_recurrence, a, b, second=second, axis=axis, out=x),
            axis=axis,
        )
        if shape in (GPU_RECURRENCES[1][0], (8, 1000)) and order == 1:
            peer(record, "JAX associative_scan", partial(gpu_peers.jax_scan, a, b))
        if len(shape) > 1 and axis == -1 and dtype == "float32" and order == 1:
            peer(record, "accelerated-scan", partial(accelerated, a, b))
        del a, b, second, x
        cupy.get_default_memory_pool().free_all_blocks()
    for shape in GPU_FILTERS if not quick else ((8, 1000),):
        b = draw(shape, "float32")
        x = cupy.empty_like(b)
        name = "recurrence, constant coefficients"
        record = entry(name, x, 2, partial(linear_recurrence, 0.9, b, out=x), axis=-1)
        peer(record, "torchaudio lfilter", partial(filtered, 0.9, b))
    for shape, axis in progress(GPU_PENTADIAGONAL if not quick else (((9, 70), 0),), "bands"):
        for dtype in ("float64", "float32"):
            bands = [draw(shape, dtype, 0.2) for _ in range(5)]
            bands[2] += 1
            rhs = draw(shape, dtype)
            x = cupy.empty_like(rhs)
            solve = partial(
                solve_pentadiagonal,
                *(*bands, rhs),
                axis=axis,
                pivot=False,
                on_singular="ignore",
                out=x,
            )
            record = entry("pentadiagonal", x, 7, solve, axis=axis)
            if axis == 0:
                peer(record, "cuSPARSE gpsv", partial(gpsv, bands, rhs))
            del bands, rhs, x, solve
            cupy.get_default_memory_pool().free_all_blocks()
    quick_derivative = (((9, 70), -1, "float64", 6, False),)
    for shape, axis, dtype, accuracy, periodic in progress(
        GPU_DERIVATIVES if not quick else quick_derivative, "derivatives"
    ):
        f = draw(shape, dtype)
        x = cupy.empty_like(f)
        differentiate = partial(
            compact_derivative, f, axis, accuracy=accuracy, periodic=periodic, out=x
        )
        more = {"axis": axis, "accuracy": accuracy, "periodic": periodic}
        record = entry("compact derivative", x, 2, differentiate, **more)
        if axis == -1 and accuracy == 6 and not periodic:
            peer(record, "JAX tridiagonal_solve", partial(gpu_peers.jax_derivative, f))
        del f, x, differentiate
        cupy.get_default_memory_pool().free_all_blocks()
    for systems, rows, side in progress(GPU_BLOCKS if not quick else ((70, 9, 2),), "blocks"):
        lower, diag, upper = (
            draw((systems, rows, side, side), "float64", 0.2 / side) for _ in range(3)
        )
        diag += cupy.eye(side)
        rhs = draw((systems, rows, side, 1), "float64")
        x = cupy.empty_like(rhs)
        solve = partial(
            solve_block_tridiagonal,
            lower,
            diag,
            upper,
            rhs,
            pivot=False,
            on_singular="ignore",
            out=x,
        )
        record = entry(f"blocks of {side}", x, 3 * side + 2, solve, axis=-1)
        for name in (SMALL_SOLVES, SOLVAX) if rows < 256 else ():
            peer(record, name, partial(block_seconds, [lower, diag, upper, rhs], name))
        del lower, diag, upper, rhs, x, solve
        cupy.get_default_memory_pool().free_all_blocks()
    points = GAUSSIAN_POINTS if not quick else 900
    t, y = cupy.cumsum(draw((points,), "float64", 0.02)), draw((points,), "float64")
    call = partial(likelihood, t, y, *GAUSSIAN_NUMBERS)
    entry("Gaussian process", t, 0, call, axis=-1)
    call = partial(likelihood, t, y, *GAUSSIAN_NUMBERS, derivatives=False)
    record = entry("Gaussian process, value alone", t, 0, call, axis=-1)
    peer(record, "smolgp", partial(gpu_peers.smolgp_seconds, t, y, GAUSSIAN_NUMBERS))
    return found, median(clock.samples)


def tables(record: Record) -> list[Table]:
    """Return the table of a record: a line for each operation and peer."""
    rows = []
    for entry in record["cases"]:
        seconds = entry["seconds"]
        own = seconds["package"]
        label = entry["operation"] + (
            f", {entry['coefficients']} coefficients" if "coefficients" in entry else ""
        )
        label += f", accuracy {entry['accuracy']}" if "accuracy" in entry else ""
        label += ", periodic" if entry.get("periodic") else ""
        size = f"{shape_text(entry['shape'])}" + (f" {entry['dtype']}" if "dtype" in entry else "")
        first: tuple[Any, ...] = (label, size, entry.get("axis", -1))
        peers = [name for name in seconds if name not in ("package", "copy")] or [""]
        share = seconds["copy"] / own if "copy" in seconds else None
        own_cells: tuple[Any, ...] = (*first, 1e3 * own, share)
        for name in peers:
            rows.append((*own_cells, name, seconds[name] / own if name else None))
            own_cells = ("", "", None, None, None)
    columns = [
        Column("operation", left=True),
        Column("shape", left=True),
        Column("axis"),
        Column("ms", ".3g"),
        Column("of copy", ".2f"),
        Column("peer", left=True),
        Column("times slower", ".1f"),
    ]
    note = (
        "Medians; *of copy* is the time in which a copy of the same run moves the operands and the "
        f"result once, over that of the operation. Measured on {place(record)}; load before: "
        f"{record['load']}."
    )
    if record.get("settings", {}).get("keeps memory"):
        note += " The process keeps the memory that it frees."
    return [Table("", columns, rows, (note,))]


def missed(record: Record) -> list[str]:
    """Return what misses its bar."""
    found = []
    for entry in record["cases"]:
        seconds, operation = entry["seconds"], entry["operation"]
        label = f"{operation} {shape_text(entry['shape'])}"
        for name in seconds:
            bar = (GPU_RATIOS if record["gpu"] else BARS).get((operation, name))
            if bar is not None and seconds[name] / seconds["package"] < bar:
                found.append(f"{label}: less than {bar:g} times faster than {name}")
        if operation == "arpls" and seconds["package"] > ARPLS_SECONDS * entry["shape"][0]:
            found.append(f"{label}: more than {ARPLS_SECONDS:g} s for each spectrum")
        if operation == "Gaussian process" and seconds["package"] > GAUSSIAN_SECONDS:
            found.append(f"{label}: more than {GAUSSIAN_SECONDS:g} s")
        wanted = GPU_BARS.get(operation, GPU_BLOCK_BAR if "blocks" in operation else 0.0)
        if record["gpu"] and "copy" in seconds and seconds["copy"] / seconds["package"] < wanted:
            found.append(f"{label}, axis {entry['axis']}: less than {wanted:g} of a copy")
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick", "gpu", "runs")
    parser.add_argument("--budget", type=float, default=5.0, help="seconds of a call")
    parser.add_argument(
        "--without", nargs="+", default=[], metavar="PEER", help="peers of a GPU to leave out"
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the record."""
    settings: Record = {"quick": args.quick, "runs": args.runs}
    if args.gpu:
        measurement = Measurement("recurrences", machine.GPU_PACKAGES, gpu=True)
        cases, rate = gpu_cases(args.without, quick=args.quick)
        record = measurement.record(cases, settings, bandwidth=rate)
    else:
        measurement = Measurement("recurrences", CPU_PACKAGES)
        backend = backends.require("cpu")
        settings["threads"] = backend.default_threads()
        settings["keeps memory"] = keep_memory()
        source = np.ones(COPY_BYTES // 8)
        copier = Copier(backend, source, np.empty_like(source), settings["threads"])
        cases = []
        for case in progress(list(cpu_cases(quick=args.quick)), "recurrences"):
            rate = sorted(copier.bandwidth() for _ in range(3))[1]
            cases.append(case.measure(args.runs, 8, rate, args.budget))
        record = measurement.record(cases, settings)
    failed = [text for entry in record["cases"] for text in entry.get("failed", [])]
    finish(args, record, tables(record), missed(record), failed)
    return 0
