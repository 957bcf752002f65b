"""Measure CubicSpline on a GPU, beside that of CuPy.

Random values, not-a-knot ends; as many points as knots, sorted. `floor` is the time that a copy
takes to move the words that an operation has to move: y read, values and slopes written, 3 words
per knot, to create splines; values and slopes read, the result written, 3 words per point, to
evaluate them. The constructor waits for the device, and its time is that of the host clock;
values are timed by the device, over calls in a row. The numbers are medians. Needs CuPy.

CuPy takes long to create splines: it is measured, once after a warm-up, in the cases of --cupy, in
float64. The record is written after each case.

    python -m pysolvers bench splines_gpu                  # prints a table
    python -m pysolvers bench splines_gpu --json FILE      # also writes the values
    python -m pysolvers bench splines_gpu --cupy 8192      # a minute or more
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import cupy
import numpy as np

from pysolvers import CubicSpline
from pysolvers.cases.records import write_record

from . import machine

# Splines, knots, axis of the knots.
CASES = (
    (8192, 2048, 0),
    (8192, 2048, 1),
    (100_000, 64, 0),
    (100_000, 64, 1),
    (1, 1 << 22, 0),
)
CUPY_KNOTS = 2048


def values(splines: int, knots: int, axis: int, dtype: np.dtype) -> Any:
    """Return values on the device."""
    shape = (knots, splines) if axis == 0 else (splines, knots)
    return cupy.random.default_rng(1).standard_normal(shape, dtype)


def seconds_of_host(call: Callable[[], object], runs: int) -> float:
    """Return the median time until the device has done a call, of runs after the first."""
    found: list[float] = []
    for _ in range(runs):
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        call()
        cupy.cuda.Device().synchronize()
        found.append(time.perf_counter() - begin)
    return median(found[1:] or found)


def seconds_of_device(call: Callable[[], object], budget: float = 0.5) -> float:
    """Return the median time of the device for one call."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()

    def run(count: int) -> float:
        begin.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end) / 1e3 / count

    run(3)
    count = max(1, min(200, round(budget / 5 / run(1))))
    return median(run(count) for _ in range(5))


def copy_rate() -> float:
    """Return the bytes per second that a copy of 1 GB reads and writes."""
    source = cupy.zeros(1 << 27, "f8")
    target = cupy.empty_like(source)
    return 2 * source.nbytes / seconds_of_device(lambda: cupy.copyto(target, source))


def with_cupy(x: Any, y: Any, axis: int) -> Any:
    """Create the splines of CuPy."""
    from cupyx.scipy.interpolate import CubicSpline as CupySpline

    return CupySpline(x, y, axis)


def compare(found: dict[str, Any], x: Any, y: Any, points: Any, spline: CubicSpline) -> None:
    """Add the seconds of CuPy and the difference from its values."""
    seconds_of_host(lambda: with_cupy(x, y[:, :2], 0)(points), 1)
    made: list[Any] = []
    found["create"]["CuPy"] = seconds_of_host(lambda: made.append(with_cupy(x, y, 0)), 1)
    found["evaluate"]["CuPy"] = seconds_of_device(lambda: made[0](points))
    own, theirs = spline(points), made[0](points)
    found["error"] = float(cupy.abs(own - theirs).max() / cupy.abs(theirs).max())


def measure(
    splines: int, knots: int, axis: int, dtype: np.dtype, rate: float, *, cupy_too: bool = False
) -> dict[str, Any]:
    """Return the seconds of the package, of the floor, and perhaps of CuPy, with the error."""
    x = cupy.linspace(0, 1, knots, dtype=dtype)
    y = values(splines, knots, axis, dtype)
    points = cupy.linspace(0, 1, knots, dtype=dtype)
    floor = 3 * y.nbytes / rate
    spline = CubicSpline(x, y, axis)
    found: dict[str, Any] = {
        "splines": splines,
        "knots": knots,
        "axis": axis,
        "dtype": dtype.name,
        "create": {
            "floor": floor,
            "package": seconds_of_host(lambda: CubicSpline(x, y, axis), 8),
        },
        "evaluate": {"floor": floor, "package": seconds_of_device(lambda: spline(points))},
    }
    if cupy_too:
        try:
            compare(found, x, y, points, spline)
        except Exception as error:
            found["failed"] = f"CuPy: {type(error).__name__}: {str(error).splitlines()[0]}"
    return found


def lines(case: dict[str, Any]) -> str:
    """Return the lines of a case in the table."""
    rows = []
    head = f"{case['splines']} x {case['knots']}"
    head = f"{head:18}{case['axis']:5}  {case['dtype']:9}"
    for part in ("create", "evaluate"):
        found = case[part]
        row = f"{head:34}{part:10}"
        for name in ("package", "CuPy", "floor"):
            row += f"{found[name] * 1e6:14.1f} us" if name in found else f"{'-':>17}"
        if "package" in found:
            row += f"{found['floor'] / found['package']:8.2f}"
        if {"package", "CuPy"} <= found.keys():
            row += f"{found['CuPy'] / found['package']:9.1f}"
        rows.append(row)
        head = ""
    if "failed" in case:
        rows.append(f"    {case['failed']}")
    if "error" in case:
        rows[-1] += f"{case['error']:10.1e}"
    return "\n".join(rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--json", type=Path, default=None, help="file for the values")
    parser.add_argument(
        "--cupy",
        type=int,
        nargs="*",
        default=[16, 256],
        help=f"numbers of splines of {CUPY_KNOTS} knots that CuPy creates, too",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print a table, and write the values if asked to."""
    rate = copy_rate()
    print(f"copy: {rate / 1e12:.2f} TB/s")
    titles = "".join(f"{name:>17}" for name in ("package", "CuPy", "floor"))
    print(f"{'splines x knots':18}{'axis':>5}  {'dtype':9}{'':10}{titles}   floor/  CuPy/")
    double, single = np.dtype("f8"), np.dtype("f4")
    plan = [(*case, dtype, False) for case in CASES for dtype in (double, single)]
    plan += [(count, CUPY_KNOTS, 0, double, True) for count in args.cupy]
    record = {
        "benchmark": "splines on a GPU",
        "gpu": machine.gpu(),
        "versions": machine.versions("pysolvers", *machine.GPU_PACKAGES),
        "copy": rate,
        "cases": [],
    }
    for *case, cupy_too in plan:
        found = measure(*case, rate, cupy_too=cupy_too)
        cupy.get_default_memory_pool().free_all_blocks()
        print(lines(found), flush=True)
        record["cases"].append(found)
        if args.json:
            write_record(args.json, record)
    return 0
