"""Compare the cost of calls with small systems with SciPy's.

Each row is one batch, float64, one thread. `package` and `factor` are `solve_tridiagonal` and
`TridiagonalFactor.solve`; `kernel` is the extension without the checks of the package; `banded` is
`scipy.linalg.solve_banded`, `gtsv` LAPACK's dgtsv, and `splu` the solve of SciPy's sparse LU, with
its factors made. For a batch, SciPy's functions solve one system after the other in a loop. Samples
of all columns alternate in random order; the times are medians in microseconds.

    python -m pysolvers bench calls --record
"""

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack, solve_banded
from scipy.sparse.linalg import splu

from pysolvers import _core, factor_tridiagonal, solve_tridiagonal

from .options import add_options
from .record import Measurement, write
from .small import alternating_medians

BATCHES = ((1, 8), (1, 64), (1, 512), (1, 1000), (100, 64), (1000, 64), (100, 512))
SAMPLES = 41

Call = Callable[[], object]


def columns(systems: int, rows: int) -> dict[str, Call]:
    """Return the calls that are compared for one batch."""
    rng = np.random.default_rng(20240607)
    shape = (systems, rows) if systems > 1 else (rows,)
    lower, diag, upper, rhs = (rng.uniform(-1, 1, shape) for _ in range(4))
    diag += 3
    low, main, up, b, x = (
        a.reshape(1, systems, rows) for a in (lower, diag, upper, rhs, np.empty_like(rhs))
    )
    matrices = [a.reshape(systems, rows) for a in (lower, diag, upper, rhs)]
    banded = np.zeros((systems, 3, rows))
    banded[:, 0, 1:], banded[:, 1], banded[:, 2, :-1] = (
        matrices[2][:, :-1],
        matrices[1],
        matrices[0][:, 1:],
    )
    sides = matrices[3]
    bands = [(a[1:], d, c[:-1]) for a, d, c in zip(*matrices[:3], strict=True)]
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


def measure(calls: dict[str, Call]) -> dict[str, float]:
    """Return the median time of each call in microseconds."""
    found = alternating_medians(calls, SAMPLES, math.inf)
    return {name: 1e6 * seconds for name, seconds in found.items()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, print a table and write the record."""
    measurement = Measurement("calls", ("scipy",))
    rows: list[dict[str, Any]] = []
    print("systems  rows" + "".join(f"{c:>10}" for c in columns(1, 8)) + "    us")
    for systems, length in BATCHES:
        found = measure(columns(systems, length))
        rows.append({"systems": systems, "rows": length, "microseconds": found})
        print(f"{systems:7d} {length:5d}" + "".join(f"{t:10.1f}" for t in found.values()))
    write(args, measurement.record(rows))
    return 0
