"""Compare the cost of calls with small systems on a GPU with the libraries' own x + x.

Each row is one library and one batch, float64. `add` is the time of x + x of the library. The other
columns are times relative to it: `raise` and `ignore` are `solve_tridiagonal` with these values of
`on_singular` (the first waits for the result), `numbers` has numbers as diagonals, `factor` is
`TridiagonalFactor.solve`. `complex` and `widened` have a complex right-hand side, and the real
matrix or a complex copy that is made in the call. A time ends when a call returns, which for
asynchronous calls is before the result is ready; the queue is emptied after each sample. Samples of
all columns alternate in random order; the times are medians in microseconds.

    python -m pysolvers bench calls_gpu                 # writes a record to benchmarks/results
"""

import argparse
import importlib
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from pysolvers import factor_tridiagonal, solve_tridiagonal
from pysolvers.cases.records import write_record

from . import machine

ROOT = Path(__file__).resolve().parents[1]
BATCHES = ((1, 64), (100, 64), (1000, 64), (100, 512), (4096, 512))
SAMPLES = 31
CALLS = 20

Call = Callable[[], object]


class Library:
    """One library: how it makes arrays, converts them and waits."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module = importlib.import_module(name)
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


def columns(library: Library, systems: int, rows: int) -> dict[str, Call]:
    """Return the calls that are compared for one batch; each returns an array."""
    rng = np.random.default_rng(20240607)
    shape = (systems, rows) if systems > 1 else (rows,)
    lower, diag, upper, rhs = (rng.uniform(-1, 1, shape) for _ in range(4))
    system = [library.array(a) for a in (lower, diag + 3, upper, rhs)]
    *matrix, x = system
    waves = library.array(rhs * (1 + 2j))
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


def measure(library: Library, calls: dict[str, Call]) -> dict[str, float]:
    """Return the median time of each call in microseconds."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls) * SAMPLES
    random.Random(0).shuffle(order)
    for call in calls.values():
        for _ in range(3):
            library.wait(call())
    for name in order:
        call = calls[name]
        start = time.perf_counter()
        for _ in range(CALLS):
            last = call()
        enqueued = time.perf_counter()
        library.wait(last)
        times[name].append((enqueued - start) / CALLS)
    return {name: 1e6 * median(samples) for name, samples in times.items()}


def record_path() -> Path:
    """Return the record of this machine, named after its processor."""
    name = re.sub(r"[^a-z0-9]+", "-", machine.cpu_model().lower()).strip("-")
    return ROOT / "benchmarks" / "results" / f"calls-gpu-{name}.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--json", type=Path, default=record_path(), help="record to write")
    parser.add_argument("--libraries", nargs="+", default=["cupy", "torch", "jax"])


def run(args: argparse.Namespace) -> int:
    """Measure, print a table and write the record."""
    cases: list[dict[str, Any]] = []
    for name in args.libraries:
        try:
            library = Library(name)
        except ImportError as error:
            print(f"{name}: {error}")
            continue
        for systems, rows in BATCHES:
            found = measure(library, columns(library, systems, rows))
            if not cases:
                print("library systems  rows" + "".join(f"{c:>10}" for c in found))
            add = found["add"]
            ratios = "".join(f"{t / add:10.2f}" for c, t in found.items() if c != "add")
            print(f"{name:7} {systems:7d} {rows:5d}{add:8.1f}us{ratios}")
            case = {"library": name, "systems": systems, "rows": rows, "microseconds": found}
            cases.append(case)
    record = {
        "benchmark": "calls_gpu",
        "machine": machine.machine(),
        "versions": machine.versions("pysolvers", "numpy", *args.libraries),
        "cases": cases,
    }
    write_record(args.json, record)
    return 0
