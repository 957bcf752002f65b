"""CubicSpline next to SciPy, or with --gpu CuPy: many splines, created and evaluated.

Random values, not-a-knot ends. On a CPU float64, points as given by --points, sorted; the knots of
all splines are equidistant ("uniform") or random ("random"); the splines lie along axis 0 or axis
1. The error is the largest difference from SciPy, relative to the largest value.

With --gpu as many points as knots. `floor` is the time that a copy takes to move the words that an
operation has to move: y read, values and slopes written, 3 words per knot, to create splines;
values and slopes read, the result written, 3 words per point, to evaluate them. The constructor
waits for the device, and its time is that of the host clock; values are timed by the device, over
calls in a row. CuPy takes long to create splines: it is measured, once after a warm-up, in the
cases of --cupy, in float64.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from pysolvers import CubicSpline
from pysolvers._progress import progress
from pysolvers._repr import shape_text
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table

from . import machine
from .options import add_options, positive
from .record import Measurement, Record, finish
from .timing import device, device_bandwidth, median_of, medians, require_cupy, waiting

BARS = {"create": 10.0, "evaluate": 1.0}  # times faster than SciPy
PARTS = ("create", "evaluate")
# Splines, knots, axis of the knots of the cases on a GPU.
GPU_CASES = (
    (8192, 2048, 0),
    (8192, 2048, 1),
    (100_000, 64, 0),
    (100_000, 64, 1),
    (1, 1 << 22, 0),
)
CUPY_KNOTS = 2048
CREATED = 7  # times that the splines of a case on a GPU are created
GPU_SECONDS = 0.1  # of a sample


def solvers() -> dict[str, Callable[..., Any]]:
    """Return what creates splines on a CPU, by name."""
    from scipy.interpolate import CubicSpline as SciPySpline

    return {
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


def measure(shape: tuple[int, int], axis: int, kind: str, args: argparse.Namespace) -> Record:
    """Return medians of the times of all solvers, and the error of the package."""
    x = knot_vector(kind, shape[axis])
    y = np.random.default_rng(1).standard_normal(shape)
    points = np.linspace(0, 1, args.points)
    makers = {name: lambda make=make: make(x, y, axis) for name, make in solvers().items()}
    made = {name: make() for name, make in makers.items()}
    values = {name: spline(points) for name, spline in made.items()}
    error = np.abs(values["package"] - values["scipy"]).max() / np.abs(values["scipy"]).max()
    del values
    calls = {name: lambda spline=spline: spline(points) for name, spline in made.items()}
    options = {"budget": args.budget / 2}
    found = {
        "create": medians(makers, args.runs, **options),
        "evaluate": medians(calls, args.runs, **options),
    }
    return {
        "shape": list(shape),
        "axis": axis,
        "knots": kind,
        "seconds": {p: {n: round(t, 6) for n, t in times.items()} for p, times in found.items()},
        "error": float(f"{error:.2g}"),
    }


def cpu_cases(args: argparse.Namespace) -> list[Record]:
    """Return the cases of a CPU."""
    shapes = {0: (args.knots, args.splines), 1: (args.splines, args.knots)}
    todo = [(axis, kind) for axis in (0, 1) for kind in ("uniform", "random")]
    return [measure(shapes[a], a, kind, args) for a, kind in progress(todo, "splines")]


def gpu_measure(
    splines: int, knots: int, axis: int, dtype: str, rate: float, *, with_cupy: bool
) -> Record:
    """Return the seconds of the package, of the floor, and perhaps of CuPy, with the error."""
    cupy = require_cupy()
    wait = waiting(lambda _: cupy.cuda.Device().synchronize())
    x = cupy.linspace(0, 1, knots, dtype=dtype)
    shape = (knots, splines) if axis == 0 else (splines, knots)
    y = cupy.random.default_rng(1).standard_normal(shape, dtype)
    points = cupy.linspace(0, 1, knots, dtype=dtype)
    floor = 3 * y.nbytes / rate
    spline = CubicSpline(x, y, axis)
    create = median_of(lambda: CubicSpline(x, y, axis), CREATED, clock=wait)
    evaluate = median_of(lambda: spline(points), 5, seconds=GPU_SECONDS, clock=device())
    found: Record = {"splines": splines, "knots": knots, "axis": axis, "dtype": dtype}
    found["create"] = {"floor": floor, "package": create}
    found["evaluate"] = {"floor": floor, "package": evaluate}
    if with_cupy:
        try:
            compare(found, x, y, points, spline)
        except Exception as error:
            found["failed"] = f"CuPy: {type(error).__name__}: {str(error).splitlines()[0]}"
    cupy.get_default_memory_pool().free_all_blocks()
    return found


def compare(found: Record, x: Any, y: Any, points: Any, spline: CubicSpline) -> None:
    """Add the seconds of CuPy and the difference from its values."""
    from cupyx.scipy.interpolate import CubicSpline as CupySpline

    cupy = require_cupy()
    CupySpline(x, y[:, :2], 0)(points)  # compiles its kernels
    made: list[Any] = []
    wait = waiting(lambda _: cupy.cuda.Device().synchronize())
    cupy.cuda.Device().synchronize()
    found["create"]["CuPy"] = wait(lambda: made.append(CupySpline(x, y, 0)), 1)
    evaluate = median_of(lambda: made[0](points), 5, seconds=GPU_SECONDS, clock=device())
    found["evaluate"]["CuPy"] = evaluate
    own, theirs = spline(points), made[0](points)
    found["error"] = float(cupy.abs(own - theirs).max() / cupy.abs(theirs).max())


def gpu_cases(args: argparse.Namespace, rate: float) -> list[Record]:
    """Return the cases of a GPU."""
    cases = ((64, 32, 0),) if args.quick else GPU_CASES
    todo = [(*case, dtype, False) for case in cases for dtype in ("float64", "float32")]
    todo += [(count, CUPY_KNOTS, 0, "float64", True) for count in args.cupy]
    return [
        gpu_measure(*case, rate, with_cupy=with_cupy)
        for *case, with_cupy in progress(todo, "splines")
    ]


def tables(record: Record) -> list[Table]:
    """Return the table of a record."""
    on_gpu = "splines" in record["cases"][0]
    return [gpu_table(record) if on_gpu else cpu_table(record)]


def cpu_table(record: Record) -> Table:
    """Return the table of a CPU: milliseconds to create and to evaluate."""
    names = {"one thread": "1 thread", "package": "`CubicSpline`", "scipy": "SciPy"}
    rows = []
    for entry in record["cases"]:
        cells = []
        for part in PARTS:
            seconds = entry["seconds"][part]
            ratio = seconds["scipy"] / seconds["package"]
            cells += [f"{seconds[name] * 1e3:.0f}" for name in names]
            cells[-1] += f" ({ratio:.1f} ×)"
        rows.append((shape_text(entry["shape"]), str(entry["axis"]), entry["knots"], *cells))
    columns = [Column("values"), Column("axis", left=True), Column("knots", left=True)]
    columns += [Column(f"{part}: {head}") for part in PARTS for head in names.values()]
    settings = record["settings"]
    note = (
        f"Milliseconds in float64, not-a-knot, {settings['points']} sorted points for each spline; "
        f"in brackets the ratio to `CubicSpline`. Measured on {record['machine']['cpu']}, "
        f"{settings['threads']} threads, SciPy {record['versions']['scipy']}; load before: "
        f"{record['load']}."
    )
    return Table("", columns, rows, (note,))


def gpu_table(record: Record) -> Table:
    """Return the table of a GPU: microseconds."""
    names = {"package": "`CubicSpline`", "CuPy": "CuPy", "floor": "copy"}
    rows = [
        (
            *(entry[key] for key in ("splines", "knots", "axis", "dtype")),
            *(
                1e6 * entry[part][name] if name in entry[part] else None
                for part in PARTS
                for name in names
            ),
        )
        for entry in record["cases"]
    ]
    columns = [Column("splines"), Column("knots"), Column("axis"), Column("dtype", left=True)]
    columns += [Column(f"{part}: {head}", ".0f") for part in PARTS for head in names.values()]
    versions = record["versions"]
    cupy = versions.get("cupy-cuda13x") or versions.get("cupy-cuda12x")
    note = (
        "Microseconds; to create by the clock of the host, because the call waits, to evaluate by "
        "that of the device. *Copy* moves 3 words per knot or point. Measured on "
        f"{record['gpu']['name']}, CuPy {cupy}."
    )
    return Table("", columns, rows, (note,))


def missed(record: Record) -> list[str]:
    """Return what misses its bar."""
    found = []
    for entry in record["cases"]:
        for part, seconds in entry.get("seconds", {}).items():
            if seconds["scipy"] / seconds["package"] < BARS[part]:
                size = f"{shape_text(entry['shape'])}, axis {entry['axis']}, {entry['knots']}"
                found.append(f"{size}: {part} is less than {BARS[part]:g} times faster than SciPy")
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick", "gpu", "runs")
    for name, default in (("splines", 8192), ("knots", 2048), ("points", 2048)):
        parser.add_argument(f"--{name}", type=positive, default=default, help="(%(default)d)")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of a solver")
    parser.add_argument(
        "--cupy",
        type=positive,
        nargs="*",
        default=[16, 256],
        help=f"with --gpu: numbers of splines of {CUPY_KNOTS} knots that CuPy creates, too",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the record."""
    if args.quick:
        args.splines, args.knots, args.points, args.cupy = 20, 30, 30, []
    settings: Record = {"quick": args.quick, "runs": args.runs, "points": args.points}
    if args.gpu:
        measurement = Measurement("splines", machine.GPU_PACKAGES, gpu=True)
        rate = device_bandwidth()
        record = measurement.record(gpu_cases(args, rate), settings, bandwidth=rate)
    else:
        measurement = Measurement("splines", ("scipy",))
        settings["threads"] = backends.require("cpu").default_threads()
        record = measurement.record(cpu_cases(args), settings)
    failed = [entry["failed"] for entry in record["cases"] if "failed" in entry]
    finish(args, record, tables(record), missed(record), failed)
    return 0
