"""``python -m pysolvers bench tridiagonal``: speed as a fraction of the memory bandwidth.

A case moves at least `words` words per unknown between memory and processor: 5 with a matrix for
each system (lower, diag, upper and rhs are read, x is written), 2 if all systems share one matrix,
which stays in the cache. The floor is the time in which a plain copy moves as many bytes:

    floor = words * itemsize * unknowns / bandwidth,    bandwidth = (bytes read + written) / time

Copies run before and after each solve, because the bandwidth of a shared machine changes with time:
the fraction is the median over the runs of floor / time; the floor of each run is that of its two
copies.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysolvers._progress import progress
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table
from pysolvers.tridiagonal import SolveInfo, solve_tridiagonal

from . import machine, peers
from .batches import SAMPLE, Buffers, Case, cases
from .options import add_options
from .record import Measurement, Record, finish
from .timing import Copier, host, median_of

ROWS = (16, 64, 512, 4096, 65536, 2**22)
ONE_SYSTEM = 2**24
RUNS = 7
QUICK_ROWS, QUICK_UNKNOWNS, QUICK_RUNS = (16, 512), 2**16, 3
# NumPy's elimination row by row is efficient for many systems only: largest number of rows.
NUMPY_ROWS = 65536


PEERS = ("numba", "scipy", "lapack", "numpy")
COLUMNS = (
    Column("matrix"),
    Column("axis", left=True),
    Column("rows"),
    Column("systems"),
    Column("method", left=True),
    Column("ns", ".2f"),
    Column("of the floor", ".0%"),
    Column("bar", ".0%"),
    *map(Column, ("Numba", "SciPy", "LAPACK", "NumPy")),
)


@dataclass(frozen=True, kw_only=True)
class Result:
    """The measurements of one case; times are in ns per unknown."""

    case: Case
    method: str
    time: float
    floor: float
    fraction: float
    peers: dict[str, float]


def measure(case: Case, buffers: Buffers, copier: Copier, runs: int, threads: int) -> Result:
    """Time `case` between copies, and its peers if there are any."""
    *system, x = buffers.system(case)
    words = case.words * case.unknowns * x.itemsize

    def solve() -> SolveInfo:
        _, info = solve_tridiagonal(
            *system,
            axis=case.axis_number,
            periodic=case.matrix == "periodic",
            pivot=True if case.matrix == "pivoted" else None,
            out=x,
            threads=threads,
            return_info=True,
        )
        return info

    method = solve().method
    times, floors = [], []
    for _ in range(runs):
        before = copier.bandwidth()
        times.append(host(solve, 1))
        floors.append(words * (1 / before + 1 / copier.bandwidth()) / 2)
    scale = 1e9 / case.unknowns
    return Result(
        case=case,
        method=method,
        time=median(times) * scale,
        floor=median(floors) * scale,
        fraction=median(f / t for f, t in zip(floors, times, strict=True)),
        peers=measure_peers(case, buffers, runs, threads),
    )


def measure_peers(case: Case, buffers: Buffers, runs: int, threads: int) -> dict[str, float]:
    """Return the time of each peer in ns per unknown, without the peers that do not apply."""
    if (case.matrix, case.axis) != ("own", "last"):
        return {}
    loops = {"scipy": peers.scipy_loop, "lapack": peers.lapack_loop} if peers.has_scipy() else {}
    found = {name: _peer_time(loop, buffers.sample(case), runs) for name, loop in loops.items()}
    if (compiled := peers.numba_thomas(parallel=True)) is not None:
        peers.set_numba_threads(threads)
        whole = buffers.system(case)[:4]
        compiled(*(operand[:1] for operand in whole))  # compiles it for this dtype
        found["numba"] = _peer_time(compiled, whole, runs)
    if case.rows <= NUMPY_ROWS and case.systems > 1:
        sample = buffers.sample(case, side_by_side=True)
        found["numpy"] = _peer_time(peers.numpy_thomas, sample, min(runs, 3))
    return found


def _peer_time(peer: peers.Peer, sample: list[NDArray], runs: int) -> float:
    return median_of(lambda: peer(*sample), runs) * 1e9 / sample[0].size


def bench_tridiagonal(*, quick: bool = False, threads: int | None = None) -> Record:
    """Measure all cases and return the record."""
    measurement = Measurement("tridiagonal", ("scipy", "numba"))
    cpu = backends.require("cpu")
    threads = cpu.default_threads() if threads is None else threads
    runs = QUICK_RUNS if quick else RUNS
    rows = QUICK_ROWS if quick else ROWS
    results: list[Result] = []
    bandwidths: list[float] = []
    for dtype in ("float64", "float32"):
        unknowns, one_system = (QUICK_UNKNOWNS,) * 2 if quick else (_unknowns(dtype), ONE_SYSTEM)
        buffers = Buffers(dtype, max(unknowns, one_system))
        todo = list(cases(dtype, rows, unknowns, one_system))
        copier = Copier(cpu, buffers.rhs, buffers.x, threads)
        for case in progress(todo, f"tridiagonal {dtype}"):
            results.append(measure(case, buffers, copier, runs, threads))
        bandwidths += copier.samples
    return measurement.record(
        [_entry(result, quick=quick) for result in results],
        {"quick": quick, "threads": threads, "runs": runs, "sample": SAMPLE},
        kernel=cpu.describe(),
        copy={"bandwidth": median(bandwidths), "runs": len(bandwidths)},
    )


def _unknowns(dtype: str) -> int:
    """Return 2**22 to 2**24, so that each array is twice as large as the largest cache."""
    wanted = 2 * machine.last_level_cache() / np.dtype(dtype).itemsize
    return 2 ** min(24, max(22, math.ceil(math.log2(wanted))))


def _entry(result: Result, *, quick: bool) -> dict[str, Any]:
    """Return `result` as an entry of the record, with derived numbers.

    The small batches of a quick run fit into the caches; the targets do not hold for them.
    """
    case = result.case
    return {
        **asdict(case),
        "method": result.method,
        "time": round(result.time, 4),
        "floor": round(result.floor, 4),
        "fraction": round(result.fraction, 4),
        "bar": None if quick else case.bar,
        "peers": {name: round(value, 3) for name, value in result.peers.items()},
        "peer_bar": None if quick else case.peer_bar,
    }


def tables(record: Record) -> Iterator[Table]:
    """Yield the tables of a record, one for each dtype."""
    for dtype in dict.fromkeys(entry["dtype"] for entry in record["cases"]):
        rows = [_row(entry) for entry in record["cases"] if entry["dtype"] == dtype]
        yield Table(dtype, COLUMNS, rows)


def _row(entry: Record) -> tuple[Any, ...]:
    """Return the cells of a case."""
    own = entry["time"]
    ratios = (f"{entry['peers'][p] / own:.1f} ×" if p in entry["peers"] else "" for p in PEERS)
    names = ("matrix", "axis", "rows", "systems", "method")
    return (*(entry[name] for name in names), own, entry["fraction"], entry["bar"], *ratios)


def misses(entry: Record) -> bool:
    """Return whether a case of a record misses one of its targets."""
    if entry["bar"] is not None and entry["fraction"] < entry["bar"]:
        return True
    if entry["peer_bar"] is None or "lapack" not in entry["peers"]:
        return False
    return speedup(entry, "lapack") < entry["peer_bar"]


def speedup(entry: Record, peer: str) -> float:
    """Return how many times faster than `peer` a case of a record is."""
    return entry["peers"][peer] / entry["time"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick", "threads")


def run(args: argparse.Namespace) -> int:
    """Run the benchmark, print its table and write its record. Return the exit code."""
    if not peers.has_scipy():
        print("no loops of SciPy and LAPACK: scipy is not installed", file=sys.stderr)
    record = bench_tridiagonal(quick=args.quick, threads=args.threads)
    barred = [entry for entry in record["cases"] if entry["bar"] is not None]
    missed = [f"{sum(map(misses, barred))} of {len(barred)} cases their targets"]
    finish(args, record, tables(record), missed)
    return 0
