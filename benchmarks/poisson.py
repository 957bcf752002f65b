"""Compare FastPoisson with SciPy's sparse LU, PyAMG and transforms along all axes.

Dirichlet sides and random right sides on n x n and n x n x n cells, float64. Each solver is set
up once; the times are medians of calls for one right side, and the solvers alternate. SciPy's LU
uses minimum degree ordering of the symmetric pattern and no row exchanges. PyAMG uses smoothed
aggregation as preconditioner of conjugate gradients, up to a relative residual of 1e-8. The
residuals in the table are relative to |A| |u| + |f| in the maximum norm.

    python -m pysolvers bench poisson                     # writes a record to benchmarks/results
    python -m pysolvers bench poisson --sizes 512x512

PyAMG is no dependency of the project: without it its column is empty.
"""

import argparse
import re
import resource
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from pysolvers import FastPoisson
from pysolvers._runtime import backends
from pysolvers.cases.records import write_record

from . import machine

ROOT = Path(__file__).resolve().parents[1]
SIZES = ((512, 512), (1024, 1024), (2048, 2048), (128, 128, 128), (256, 256, 256))
BARS = {(2048, 2048): {"splu": 10.0, "pyamg": 5.0}}

# Unknowns by dimension above which the sparse LU is left out; its set-up took 171 s on 64^3 cells.
LU_LIMIT = {2: 5_000_000, 3: 100_000}
AMG_LIMIT = 5_000_000  # unknowns above which PyAMG is left out, for its set-up time
TOLERANCE = 1e-8

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
    from scipy.sparse.linalg import splu

    factors = splu(
        -laplacian(shape).tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return lambda f: factors.solve(f.ravel()).reshape(shape)


def multigrid(shape: tuple[int, ...]) -> Solve:
    """Return PyAMG with its hierarchy made."""
    import pyamg

    matrix = laplacian(shape).tocsr()
    matrix.indices, matrix.indptr = matrix.indices.astype("i4"), matrix.indptr.astype("i4")
    hierarchy = pyamg.smoothed_aggregation_solver(matrix)
    return lambda f: hierarchy.solve(-f.ravel(), tol=TOLERANCE, accel="cg").reshape(shape)


def spectral(shape: tuple[int, ...], threads: int) -> Solve:
    """Return sine transforms along all axes by scipy.fft, in place of the lines."""
    import scipy.fft

    eigenvalues = np.zeros(shape)
    for axis, n in enumerate(shape):
        waves = -((2 * np.sin(np.pi / 2 * np.arange(1, n + 1) / n)) ** 2)
        eigenvalues += waves.reshape((-1,) + (1,) * (len(shape) - 1 - axis))

    def solve(f: np.ndarray) -> np.ndarray:
        field = scipy.fft.dstn(f, 2, workers=threads)
        field /= eigenvalues
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


def measure(shape: tuple[int, ...], runs: int, threads: int) -> dict[str, Any]:
    """Return set-up times, medians of the solve times and residuals of all solvers."""
    matrix = laplacian(shape).tocsr()
    f = np.random.default_rng(1).uniform(-1, 1, shape)
    solvers: dict[str, Solve] = {}
    setup, residual = {}, {}
    for name, make in makers(shape, threads).items():
        begin = time.perf_counter()
        solvers[name] = make()
        setup[name] = time.perf_counter() - begin
        u = solvers[name](f)
        difference = np.abs(matrix @ u.ravel() + f.ravel()).max()
        residual[name] = float(difference / (8 * np.abs(u).max() + np.abs(f).max()))
        print(f"  {name}: set up in {setup[name]:.2f} s", flush=True)
    times: dict[str, list[float]] = {name: [] for name in solvers}
    for _ in range(runs):
        for name, solve in solvers.items():
            begin = time.perf_counter()
            solve(f)
            times[name].append(time.perf_counter() - begin)
    return {
        "shape": list(shape),
        "bars": BARS.get(shape, {}),
        "seconds": {name: round(median(t), 6) for name, t in times.items()},
        "setup": {name: round(t, 4) for name, t in setup.items()},
        "residual": {name: float(f"{r:.2g}") for name, r in residual.items()},
    }


def lines(entry: dict[str, Any]) -> str:
    """Return the lines of a case in the table."""
    shape = " x ".join(map(str, entry["shape"]))
    own = entry["seconds"]["package"]
    rows = []
    for name, seconds in entry["seconds"].items():
        bar = entry["bars"].get(name)
        missed = "  missed" if bar and seconds / own < bar else ""
        rows.append(
            f"{shape:16}{name:12}{entry['setup'][name]:10.2f} s{seconds * 1e3:12.2f} ms"
            f"{seconds / own:9.2f}{'' if bar is None else f'{bar:6.0f}':>6}"
            f"{entry['residual'][name]:11.1e}{missed}"
        )
        shape = ""
    return "\n".join(rows)


def record_path() -> Path:
    """Return the record of this machine, named after its processor."""
    name = re.sub(r"[^a-z0-9]+", "-", machine.cpu_model().lower()).strip("-")
    return ROOT / "benchmarks" / "results" / f"poisson-{name}-{machine.cpu_count()}.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--sizes", nargs="*", help="for example 512x512 64x64x64")
    parser.add_argument("--runs", type=int, default=5, help="of a solver (default: 5)")
    parser.add_argument("--json", type=Path, default=None, help="record to write")


def run(args: argparse.Namespace) -> int:
    """Measure, print a table and write the record."""
    sizes = SIZES
    if args.sizes:
        sizes = tuple(tuple(map(int, size.split("x"))) for size in args.sizes)
    threads = backends.require("cpu").default_threads()
    load, cases = machine.load(), []
    for shape in sizes:
        print(" x ".join(map(str, shape)), flush=True)
        cases.append(measure(shape, args.runs, threads))
    record = {
        "benchmark": "poisson",
        "machine": machine.machine(),
        "versions": machine.versions("pysolvers", "numpy", "scipy", "pyamg"),
        "load": load,
        "settings": {"threads": threads, "runs": args.runs, "tolerance of pyamg": TOLERANCE},
        "peak memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "cases": cases,
    }
    print(
        f"\n{'cells':16}{'solver':12}{'set-up':>12}{'solve':>15}{'ratio':>9}{'bar':>6}{'residual':>11}"
    )
    print("\n".join(map(lines, cases)))
    path = args.json or record_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_record(path, record)
    print(f"\nload of the machine before: {load}; record in {path}")
    return 0
