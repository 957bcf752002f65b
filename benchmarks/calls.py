"""The cost of calls with small systems, float64.

On a CPU, one thread, compared with SciPy: `package` and `factor` are `solve_tridiagonal` and
`TridiagonalFactor.solve`; `kernel` is the extension without the checks of the package; `banded` is
`scipy.linalg.solve_banded`, `gtsv` LAPACK's dgtsv, and `splu` the solve of SciPy's sparse LU, with
its factors made. For a batch, SciPy's functions solve one system after the other in a loop.

With --gpu, compared with x + x of the libraries of the arrays, `add`: `raise` and `ignore` are
`solve_tridiagonal` with these values of `on_singular` (the first waits for the result), `numbers`
has numbers as diagonals, `factor` is `TridiagonalFactor.solve`. `complex` and `widened` have a
complex right-hand side, and the real matrix or a complex copy that is made in the call. A time ends
when a call returns, which for asynchronous calls is before the result is ready; the queue is
emptied after each sample.
"""

import argparse
import sys
from importlib import import_module
from typing import Any

import numpy as np

from pysolvers import factor_tridiagonal, solve_tridiagonal
from pysolvers._progress import progress
from pysolvers.cases.tables import Column, Table

from . import machine
from .options import add_options
from .record import Measurement, Record, finish
from .timing import Call, medians, waiting

BATCHES = ((1, 8), (1, 64), (1, 512), (1, 1000), (100, 64), (1000, 64), (100, 512))
GPU_BATCHES = ((1, 64), (100, 64), (1000, 64), (100, 512), (4096, 512))
SAMPLES, SAMPLE_SECONDS = 41, 0.002
GPU_SAMPLES, GPU_CALLS = 31, 20
LIBRARIES = ("cupy", "torch", "jax")

# Column of a record -> heading.
COLUMNS = {
    "package": "`solve_tridiagonal`",
    "kernel": "kernel",
    "factor": "`factor.solve`",
    "banded": "`solve_banded`",
    "gtsv": "`lapack.dgtsv`",
    "splu": "`splu(...).solve`",
}
GPU_COLUMNS = {
    "raise": '`on_singular="raise"`',
    "ignore": '`on_singular="ignore"`',
    "numbers": "numbers",
    "factor": "`factor.solve`",
    "complex": "complex",
    "widened": "widened",
}


def operands(systems: int, rows: int) -> list[Any]:
    """Return lower, diag, upper and rhs of dominant systems; one system has one axis."""
    rng = np.random.default_rng(20240607)
    shape = (systems, rows) if systems > 1 else (rows,)
    lower, diag, upper, rhs = (rng.uniform(-1, 1, shape) for _ in range(4))
    return [lower, diag + 3, upper, rhs]


def calls(systems: int, rows: int) -> dict[str, Call]:
    """Return the calls that are compared for one batch on a CPU."""
    from scipy import sparse
    from scipy.linalg import lapack, solve_banded
    from scipy.sparse.linalg import splu

    from pysolvers import _core

    lower, diag, upper, rhs = operands(systems, rows)
    low, main, up, b, x = (
        a.reshape(1, systems, rows) for a in (lower, diag, upper, rhs, np.empty_like(rhs))
    )
    matrices = [a.reshape(systems, rows) for a in (lower, diag, upper)]
    sides = rhs.reshape(systems, rows)
    banded = np.zeros((systems, 3, rows))
    banded[:, 0, 1:], banded[:, 1] = matrices[2][:, :-1], matrices[1]
    banded[:, 2, :-1] = matrices[0][:, 1:]
    bands = [(a[1:], d, c[:-1]) for a, d, c in zip(*matrices, strict=True)]
    factors = [splu(sparse.diags_array(a, offsets=[-1, 0, 1], format="csc")) for a in bands]
    factor = factor_tridiagonal(lower, diag, upper, threads=1)
    return {
        "package": lambda: solve_tridiagonal(lower, diag, upper, rhs, threads=1),
        "kernel": lambda: _core.tridiag_solve(0, 0, 0, low, main, up, b, x, None, 1),
        "factor": lambda: factor.solve(rhs, threads=1),
        "banded": lambda: [solve_banded((1, 1), a, r) for a, r in zip(banded, sides, strict=True)],
        "gtsv": lambda: [lapack.dgtsv(*a, r) for a, r in zip(bands, sides, strict=True)],
        "splu": lambda: [lu.solve(r) for lu, r in zip(factors, sides, strict=True)],
    }


class Library:
    """A library of arrays: how it makes arrays, converts them and waits."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module = import_module(name)
        if name == "jax":
            self.module.config.update("jax_enable_x64", True)

    def array(self, values: np.ndarray) -> Any:
        """Return a copy on the device."""
        if self.name == "cupy":
            return self.module.asarray(values)
        if self.name == "torch":
            return self.module.from_numpy(values).cuda()
        return self.module.device_put(values)

    def widened(self, array: Any) -> Any:
        """Return a complex copy."""
        if self.name == "torch":
            return array.to(self.module.complex128)
        return array.astype(np.complex128)

    def wait(self, array: Any) -> None:
        """Wait until all work is done."""
        if self.name == "cupy":
            self.module.cuda.Device().synchronize()
        elif self.name == "torch":
            self.module.cuda.synchronize()
        else:
            array.block_until_ready()


def gpu_calls(library: Library, systems: int, rows: int) -> dict[str, Call]:
    """Return the calls that are compared for one batch on a GPU; each returns an array."""
    host = operands(systems, rows)
    system = [library.array(a) for a in host]
    *matrix, x = system
    waves = library.array(host[3] * (1 + 2j))
    factor = factor_tridiagonal(*matrix)
    return {
        "add": lambda: x + x,
        "raise": lambda: solve_tridiagonal(*system),
        "ignore": lambda: solve_tridiagonal(*system, on_singular="ignore"),
        "numbers": lambda: solve_tridiagonal(-1.0, 3.0, -1.0, x, on_singular="ignore"),
        "factor": lambda: factor.solve(x),
        "complex": lambda: solve_tridiagonal(*matrix, waves, on_singular="ignore"),
        "widened": lambda: solve_tridiagonal(
            *map(library.widened, matrix), waves, on_singular="ignore"
        ),
    }


def micro(found: dict[str, float]) -> dict[str, float]:
    """Return seconds as microseconds."""
    return {name: 1e6 * seconds for name, seconds in found.items()}


def cpu_cases(samples: int, batches: Any) -> list[Record]:
    """Return the cases of a CPU."""
    cases = []
    for systems, rows in progress(batches, "calls"):
        found = medians(calls(systems, rows), samples, seconds=SAMPLE_SECONDS)
        cases.append({"systems": systems, "rows": rows, "microseconds": micro(found)})
    return cases


def gpu_cases(samples: int, batches: Any, names: Any) -> list[Record]:
    """Return the cases of a GPU, for the libraries that are installed."""
    cases = []
    for name in names:
        try:
            library = Library(name)
        except ImportError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        clock = waiting(library.wait, counted=False)
        for systems, rows in progress(batches, f"calls with {name}"):
            some = gpu_calls(library, systems, rows)
            found = medians(some, samples, length=GPU_CALLS, clock=clock)
            size = {"library": name, "systems": systems, "rows": rows}
            cases.append(size | {"microseconds": micro(found)})
    return cases


def tables(record: Record, *, full: bool = False) -> list[Table]:
    """Return the table of a record; `full`: with the columns that no page shows."""
    on_gpu = "library" in record["cases"][0]
    return [gpu_table(record, full=full) if on_gpu else cpu_table(record, full=full)]


def cpu_table(record: Record, *, full: bool) -> Table:
    """Return the table of a CPU: microseconds."""
    shown = {name: text for name, text in COLUMNS.items() if full or name != "kernel"}
    rows = [
        (e["systems"], e["rows"], *(e["microseconds"].get(name) for name in shown))
        for e in record["cases"]
    ]
    columns = [Column("systems"), Column("rows"), *(Column(text, ".1f") for text in shown.values())]
    versions = record["versions"]
    note = (
        "Microseconds for all systems, float64, NumPy arrays, one thread; the other packages are "
        "called once for each system; factors are made before the measurement. "
        f"Measured on {record['machine']['cpu']}, Python {versions['python']}, "
        f"NumPy {versions['numpy']}, SciPy {versions['scipy']}."
    )
    return Table("", columns, rows, (note,))


def gpu_table(record: Record, *, full: bool) -> Table:
    """Return the table of a GPU: times relative to x + x."""
    names = GPU_COLUMNS if full else ("raise", "ignore", "factor")
    shown = {name: GPU_COLUMNS[name] for name in names}
    rows = []
    for entry in record["cases"]:
        times = entry["microseconds"]
        ratios = (times[name] / times["add"] for name in shown)
        rows.append((entry["library"], entry["systems"], entry["rows"], times["add"], *ratios))
    columns = [Column("library"), Column("systems"), Column("rows"), Column("`x + x`, µs", ".1f")]
    note = (
        "Time until a call returns, relative to that of `x + x` of the library of the arrays, "
        f"float64. Only `raise` waits for the GPU. Measured on {record['gpu']['name']}."
    )
    return Table("", [*columns, *(Column(head, ".1f") for head in shown.values())], rows, (note,))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick", "gpu")
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES, help="with --gpu")


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the record."""
    packages = machine.GPU_PACKAGES if args.gpu else ("scipy",)
    measurement = Measurement("calls", packages, gpu=args.gpu)
    if args.gpu:
        samples, batches = (1, GPU_BATCHES[:1]) if args.quick else (GPU_SAMPLES, GPU_BATCHES)
        cases = gpu_cases(samples, batches, args.libraries)
    else:
        samples, batches = (1, BATCHES[:2]) if args.quick else (SAMPLES, BATCHES)
        cases = cpu_cases(samples, batches)
    settings = {"quick": args.quick, "samples": samples}
    record = measurement.record(cases, settings)
    finish(args, record, tables(record, full=True))
    return 0
