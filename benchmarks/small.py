"""Small work: the time of a call.

A batch of 1 to 4096 systems of 8 to 512 rows costs as much by the call itself as by the solve. Each
case is one batch in float64, with a matrix for each system, and gives the medians of the times of
all packages. Their samples alternate in random order, so that changes of the load of the machine
concern all of them. Operands and result are in the cache, and no package is given memory for the
result.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysolvers._progress import progress
from pysolvers._runtime import backends
from pysolvers.tridiagonal import factor_tridiagonal, solve_tridiagonal

from . import peers
from .options import add_options
from .record import Measurement, Record, head, write

ROWS = (8, 64, 512)
SYSTEMS = (1, 16, 256, 4096)
QUICK_ROWS, QUICK_SYSTEMS = (8, 64), (1, 16)
# A sample repeats a call for this time in seconds. The samples of one package and case take about
# `BUDGET` seconds, but there are at least `LEAST_SAMPLES`.
SAMPLE_SECONDS, BUDGET = 0.002, 0.4
SAMPLES, LEAST_SAMPLES = 31, 3
QUICK_SAMPLES = 1

# Name of a column of the record -> heading of the table.
COLUMNS = {
    "package": "package",
    "factor": "factor",
    "numba": "numba",
    "scipy": "scipy",
    "lapack": "lapack",
    "numpy": "numpy",
}

Call = Callable[[], object]


def calls(systems: int, rows: int, threads: int) -> dict[str, Call]:
    """Return the calls that are compared for one batch; each returns the solutions.

    Parameters
    ----------
    systems, rows : int
        Number and length of the systems.
    threads : int
        Number of threads of this package.
    """
    lower, diag, upper, rhs = operands(systems, rows)
    factor = factor_tridiagonal(lower, diag, upper, threads=threads)
    # NumPy's elimination gets the layout in which neighbouring systems are contiguous.
    side_by_side = [np.ascontiguousarray(a.T).T for a in (lower, diag, upper, rhs)]
    found: dict[str, Call] = {
        "package": lambda: solve_tridiagonal(lower, diag, upper, rhs, threads=threads),
        "factor": lambda: factor.solve(rhs, threads=threads),
    }
    if (compiled := peers.numba_thomas(parallel=threads > 1)) is not None:
        peers.set_numba_threads(threads)
        found["numba"] = lambda: compiled(lower, diag, upper, rhs)
    if peers.has_scipy():
        found["scipy"] = lambda: peers.scipy_loop(lower, diag, upper, rhs)
        found["lapack"] = lambda: peers.lapack_loop(lower, diag, upper, rhs)
    found["numpy"] = lambda: peers.numpy_thomas(*side_by_side)
    return found


def operands(systems: int, rows: int) -> list[NDArray]:
    """Return lower, diag, upper and rhs of shape (systems, rows), diagonally dominant."""
    rng = np.random.default_rng(systems * rows)
    lower, diag, upper, rhs = rng.uniform(-1, 1, (4, systems, rows))
    diag += 3
    return [lower, diag, upper, rhs]


def alternating_medians(
    calls: Mapping[str, Call], samples: int, budget: float = BUDGET
) -> dict[str, float]:
    """Return the median time of each call in seconds.

    Parameters
    ----------
    calls : mapping of str to callable
        The calls by name.
    samples : int
        Number of samples of each call.
    budget : float
        Time in seconds after which the samples of a call end, if it has `LEAST_SAMPLES`.
    """
    counts, order = {}, []
    for name, call in calls.items():
        call()
        once = _seconds(call, 1)
        counts[name] = count = max(1, int(SAMPLE_SECONDS / once))
        affordable = max(LEAST_SAMPLES, budget / (count * once))
        order += [name] * int(min(samples, affordable))
    random.Random(0).shuffle(order)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for name in order:
        times[name].append(_seconds(calls[name], counts[name]))
    return {name: median(values) for name, values in times.items()}


def bench_small(*, quick: bool = False, threads: int = 1) -> Record:
    """Measure every batch and return the record.

    Parameters
    ----------
    quick : bool, default: False
        Few sizes and one sample: tests the benchmark; the times are meaningless.
    threads : int, default: 1
        Number of threads of this package.

    Returns
    -------
    dict
        The record; a case has rows, systems and the microseconds of each package.
    """
    measurement = Measurement("small", ("scipy", "numba"))
    sizes = (QUICK_ROWS, QUICK_SYSTEMS) if quick else (ROWS, SYSTEMS)
    todo = [(rows, systems) for rows in sizes[0] for systems in sizes[1]]
    entries = []
    for rows, systems in progress(todo, "small work"):
        found = alternating_medians(
            calls(systems, rows, threads), QUICK_SAMPLES if quick else SAMPLES
        )
        times = {name: round(1e6 * seconds, 3) for name, seconds in found.items()}
        entries.append({"rows": rows, "systems": systems, "microseconds": times})
    settings = {"quick": quick, "threads": threads}
    return measurement.record(entries, settings, kernel=backends.require("cpu").describe())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick", threads=1)


def run(args: argparse.Namespace) -> int:
    """Run the benchmark, print its table and write its record. Return the exit code."""
    record = bench_small(quick=args.quick, threads=args.threads)
    sys.stdout.writelines(line + "\n" for line in head(record))
    sys.stdout.writelines(line + "\n" for line in table(record["cases"]))
    write(args, record)
    return 0


def table(entries: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table of small work.

    The times of the package are microseconds; those of the others are relative to it.
    """
    yield "small work: microseconds of a call, and the times of the others relative to it"
    yield " rows systems" + "".join(f"{heading:>11}" for heading in COLUMNS.values())
    for entry in entries:
        times = entry["microseconds"]
        cells = [f"{times['package']:.1f}"]
        for name in list(COLUMNS)[1:]:
            cells.append(f"{times[name] / times['package']:.2f} x" if name in times else "")
        line = f"{entry['rows']:5} {entry['systems']:7}" + "".join(f"{cell:>11}" for cell in cells)
        yield line.rstrip()


def _seconds(call: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count
