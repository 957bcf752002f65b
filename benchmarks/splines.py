"""Compare CubicSpline with SciPy: many splines of one knot vector, created and evaluated.

Random values, not-a-knot ends, float64; as many points, sorted, as given by --points. The knots
are equidistant ("uniform") or random ("random"); the splines lie along axis 0 or axis 1. The times
are medians of runs in which the solvers alternate, each at most --budget seconds; the error is the
largest difference from SciPy, relative to the largest value.

    python -m pysolvers bench splines                       # writes a record to benchmarks/results
    python -m pysolvers bench splines --splines 100 --knots 64
"""

import argparse
import re
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline as SciPySpline

from pysolvers import CubicSpline
from pysolvers._runtime import backends
from pysolvers.cases.records import write_record

from . import machine

ROOT = Path(__file__).resolve().parents[1]
BARS = {"create": 10.0, "evaluate": 1.0}  # times faster than SciPy

SOLVERS: dict[str, Callable[..., Any]] = {
    "package": CubicSpline,
    "one thread": lambda x, y, axis: CubicSpline(x, y, axis, threads=1),
    "scipy": SciPySpline,
}


def knot_vector(kind: str, knots: int) -> np.ndarray:
    """Return knots between 0 and 1."""
    if kind == "uniform":
        return np.linspace(0, 1, knots)
    steps = np.random.default_rng(2).uniform(0.1, 1, knots - 1)
    return np.concatenate([[0], np.cumsum(steps) / steps.sum()])


def measure(shape: tuple[int, int], axis: int, kind: str, args: argparse.Namespace) -> Any:
    """Return medians of the times of all solvers, and the error of the package."""
    x = knot_vector(kind, shape[axis])
    y = np.random.default_rng(1).standard_normal(shape)
    points = np.linspace(0, 1, args.points)
    times: dict[str, dict[str, list[float]]] = {"create": {}, "evaluate": {}}
    values = {}
    for run in range(args.runs):
        for name, make in SOLVERS.items():
            create = times["create"].setdefault(name, [])
            evaluate = times["evaluate"].setdefault(name, [])
            if run and sum(create) + sum(evaluate) > args.budget:
                continue
            begin = time.perf_counter()
            spline = make(x, y, axis)
            middle = time.perf_counter()
            values[name] = spline(points)
            create.append(middle - begin)
            evaluate.append(time.perf_counter() - middle)
    error = np.abs(values["package"] - values["scipy"]).max() / np.abs(values["scipy"]).max()
    return {
        "shape": list(shape),
        "axis": axis,
        "knots": kind,
        "seconds": {
            part: {name: round(median(t), 6) for name, t in found.items()}
            for part, found in times.items()
        },
        "error": float(f"{error:.2g}"),
    }


def lines(case: dict[str, Any]) -> str:
    """Return the lines of a case in the table."""
    rows = []
    head = f"{'x'.join(map(str, case['shape'])):14}{case['axis']:5}  {case['knots']:9}"
    for part, found in case["seconds"].items():
        ratio = found["scipy"] / found["package"]
        missed = "  missed" if ratio < BARS[part] else ""
        rows.append(
            f"{head:30}{part:10}"
            + "".join(f"{found[name] * 1e3:14.1f} ms" for name in SOLVERS)
            + f"{ratio:9.1f}{case['error']:10.1e}{missed}"
        )
        head = ""
    return "\n".join(rows)


def record_path() -> Path:
    """Return the record of this machine, named after its processor."""
    name = re.sub(r"[^a-z0-9]+", "-", machine.cpu_model().lower()).strip("-")
    return ROOT / "benchmarks" / "results" / f"splines-{name}-{machine.cpu_count()}.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--splines", type=int, default=8192)
    parser.add_argument("--knots", type=int, default=2048)
    parser.add_argument("--points", type=int, default=2048)
    parser.add_argument("--runs", type=int, default=5, help="of a solver (default: 5)")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of a solver")
    parser.add_argument("--json", type=Path, default=None, help="record to write")


def run(args: argparse.Namespace) -> int:
    """Measure, print a table and write the record."""
    load, cases = machine.load(), []
    titles = "".join(f"{name:>17}" for name in SOLVERS)
    print(f"{'values':14}{'axis':>5}  {'knots':9}{'':10}{titles}{'ratio':>9}{'error':>10}")
    for axis in (0, 1):
        shape = (args.knots, args.splines) if axis == 0 else (args.splines, args.knots)
        for kind in ("uniform", "random"):
            cases.append(measure(shape, axis, kind, args))
            print(lines(cases[-1]), flush=True)
    record = {
        "benchmark": "splines",
        "machine": machine.machine(),
        "versions": machine.versions("pysolvers", "numpy", "scipy"),
        "load": load,
        "settings": {
            "threads": backends.require("cpu").default_threads(),
            "runs": args.runs,
            "points": args.points,
        },
        "cases": cases,
    }
    path = args.json or record_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_record(path, record)
    print(f"\nload of the machine before: {load}; record in {path}")
    return 0
