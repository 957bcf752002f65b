"""Small work: the time of a call.

A batch of 1 to 4096 systems of 8 to 512 rows costs as much by the call itself as by the solve. Each
case is one batch in float64, with a matrix for each system, and gives the medians of the times of
all packages. Their samples alternate in random order, so that changes of the load of the machine
concern all of them. Operands and result are in the cache, and no package is given memory for the
result.
"""

import argparse

import numpy as np
from numpy.typing import NDArray

from pysolvers._progress import progress
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table
from pysolvers.factor import factor_tridiagonal
from pysolvers.tridiagonal import solve_tridiagonal

from . import peers
from .options import add_options
from .record import Measurement, Record, finish
from .timing import Call, medians

ROWS = (8, 64, 512)
SYSTEMS = (1, 16, 256, 4096)
QUICK_ROWS, QUICK_SYSTEMS = (8, 64), (1, 16)
# A sample repeats a call for this time in seconds. The samples of one package and case take about
# `BUDGET` seconds.
SAMPLE_SECONDS, BUDGET = 0.002, 0.4
SAMPLES = 31
QUICK_SAMPLES = 1

COLUMNS = ("package", "factor", "numba", "scipy", "lapack", "numpy")


def calls(systems: int, rows: int, threads: int) -> dict[str, Call]:
    """Return the calls that are compared for one batch; each returns the solutions."""
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


def bench_small(*, quick: bool = False, threads: int = 1) -> Record:
    """Measure every batch and return the record."""
    measurement = Measurement("small", ("scipy", "numba"))
    sizes = (QUICK_ROWS, QUICK_SYSTEMS) if quick else (ROWS, SYSTEMS)
    todo = [(rows, systems) for rows in sizes[0] for systems in sizes[1]]
    entries = []
    for rows, systems in progress(todo, "small work"):
        found = medians(
            calls(systems, rows, threads),
            QUICK_SAMPLES if quick else SAMPLES,
            seconds=SAMPLE_SECONDS,
            budget=BUDGET,
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
    finish(args, record, [table(record)])
    return 0


def table(record: Record) -> Table:
    """Return the table of a record: times of the package, and of the others relative to it."""
    others = [name for name in COLUMNS if name != "package"]
    rows = []
    for entry in record["cases"]:
        times = entry["microseconds"]
        own = times["package"]
        ratios = (times[name] / own if name in times else None for name in others)
        rows.append((str(entry["rows"]), entry["systems"], own, *ratios))
    columns = [Column("rows"), Column("systems"), Column("package, µs", ".1f")]
    columns += [Column(f"{name}, ×", ".2f") for name in others]
    return Table("small work, and the times of the others relative to the package", columns, rows)
