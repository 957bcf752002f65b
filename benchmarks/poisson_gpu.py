"""Measure FastPoisson on a GPU, beside the transforms of cuFFT alone and a solver made of CuPy.

Dirichlet sides and cells, float64 and float32. `cuFFT alone` is one real transform forward and one
back along each axis but x, of all lines at once, contiguous, without what makes them sine
transforms: the bar is 2.5 times this time. The CuPy solver is a sine transform along every axis by
cupyx.scipy.fft, a division by the eigenvalues, and back. Times are medians of the time of the
device over calls in a row; needs CuPy.

    python -m pysolvers bench poisson_gpu                  # prints a table
    python -m pysolvers bench poisson_gpu --json FILE      # also writes the values
    python -m pysolvers bench poisson_gpu --steps 12 24 48 # also the steps, with panels of these MB
    python -m pysolvers bench poisson_gpu --only graph     # without the other solvers
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import cupy
import numpy as np

from pysolvers import FastPoisson
from pysolvers._runtime.cufft import COMPLEX_TO_REAL, REAL_TO_COMPLEX, CufftPlan
from pysolvers._runtime.streams import Stream
from pysolvers.cases.records import write_record
from pysolvers.poisson import _device

from . import machine

SIZES = ((1024, 1024), (4096, 4096), (128, 128, 128), (512, 512, 512))
BAR = 2.5


def package(shape: tuple[int, ...], dtype: np.dtype) -> Callable[[], object]:
    """Return a call of FastPoisson on arrays that are kept."""
    solver = FastPoisson(shape, 1.0, boundary=0.0, grid="cells", dtype=dtype, device="cuda")
    f = cupy.random.default_rng(1).random(shape, dtype)
    out = cupy.empty_like(f)
    return lambda: solver.solve(f, out=out)


def package_in_a_graph(shape: tuple[int, ...], dtype: np.dtype) -> Callable[[], object]:
    """Return the launch of a graph that holds a call of FastPoisson."""
    call = package(shape, dtype)
    call()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        call()
        graph = stream.end_capture()

    def launch(_owner: object = call) -> None:  # the graph uses the solver and the arrays
        graph.launch(cupy.cuda.get_current_stream())

    return launch


def transforms(shape: tuple[int, ...], dtype: np.dtype) -> Callable[[], object]:
    """Return real transforms of contiguous lines, forward and back, for each axis but x."""
    plans = []
    for n in shape[:-1]:
        pitch, lines = 2 * (n // 2 + 1), int(np.prod(shape)) // n
        for form in (REAL_TO_COMPLEX, COMPLEX_TO_REAL):
            plans.append((CufftPlan(form, n, pitch, lines, dtype, 0), lines * pitch))
    data = cupy.zeros(max(size for _, size in plans), dtype)
    work = cupy.zeros(max(max(plan.work_bytes for plan, _ in plans), 1), "u1")

    def call() -> None:
        stream = Stream(cupy.cuda.get_current_stream().ptr)
        for plan, _ in plans:
            plan.execute(data.data.ptr, work.data.ptr, stream)

    return call


def with_cupy(shape: tuple[int, ...], dtype: np.dtype) -> Callable[[], object]:
    """Return sine transforms along all axes by CuPy."""
    from cupyx.scipy import fft

    eigenvalues = np.zeros(shape)
    for axis, n in enumerate(shape):
        waves = -((2 * np.sin(np.pi / 2 * np.arange(1, n + 1) / n)) ** 2)
        eigenvalues += waves.reshape((-1,) + (1,) * (len(shape) - 1 - axis))
    f = cupy.random.default_rng(1).random(shape, dtype)
    divisor = cupy.asarray(eigenvalues, dtype)
    del eigenvalues

    def call() -> Any:
        field = fft.dstn(f, 2)
        field /= divisor
        return fft.idstn(field, 2, overwrite_x=True)

    return call


SOLVERS = {
    "package": package,
    "graph": package_in_a_graph,
    "cuFFT alone": transforms,
    "CuPy": with_cupy,
}


def steps(shape: tuple[int, ...], dtype: np.dtype, megabytes: float) -> dict[str, float]:
    """Return the seconds of the steps of a solve with panels of a size, by events around each.

    The events keep the steps apart, so that their sum exceeds the time of a solve.
    """
    found: dict[str, list[tuple[Any, Any]]] = {}

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            pair = cupy.cuda.Event(), cupy.cuda.Event()
            pair[0].record()
            result = function(*arguments)
            pair[1].record()
            found.setdefault(name, []).append(pair)
            return result

        return call

    before = _device._PANEL
    _device._PANEL = int(megabytes * 2**20)
    try:
        solver = FastPoisson(shape, 1.0, boundary=0.0, grid="cells", dtype=dtype, device="cuda")
    finally:
        _device._PANEL = before
    f = cupy.random.default_rng(1).random(shape, dtype)
    out = cupy.empty_like(f)
    made = solver._device
    packed = made._packed
    for transform in (*made._forward.values(), *made._backward.values()):
        own = transform._step
        loads, stores = timed("load", own), timed("store", own)
        transform._step = lambda function, *rest, loads=loads, stores=stores: (
            loads if function.__name__ == "transform_load" else stores
        )(function, *rest)
        transform._plan.execute = timed("cuFFT", transform._plan.execute)
    if packed is not None:
        own = packed._move
        loads, stores = timed("load", own), timed("store", own)
        packed._move = lambda function, *rest: (
            loads if function.__name__ == "waves_load" else stores
        )(function, *rest)
        for plan in packed._plans:
            plan.execute = timed("cuFFT", plan.execute)
        packed._solve_lines = timed("lines", packed._solve_lines)
    made._solve_lines = timed("lines", made._solve_lines)
    for _ in range(3):
        solver.solve(f, out=out)
    found.clear()
    for _ in range(5):
        solver.solve(f, out=out)
    cupy.cuda.Device().synchronize()
    return {
        name: sum(cupy.cuda.get_elapsed_time(*pair) for pair in pairs) / 5e3
        for name, pairs in found.items()
    }


def seconds(call: Callable[[], object], budget: float = 0.5) -> float:
    """Return the median time of the device for one call."""
    stream = cupy.cuda.Stream(non_blocking=True)
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    with stream:
        for _ in range(3):
            call()

        def run(count: int) -> float:
            begin.record(stream)
            for _ in range(count):
                call()
            end.record(stream)
            end.synchronize()
            return cupy.cuda.get_elapsed_time(begin, end) / 1e3 / count

        count = max(1, min(200, round(budget / 5 / run(1))))
        return median(run(count) for _ in range(5))


def measure(shape: tuple[int, ...], dtype: np.dtype, names: Sequence[str]) -> dict[str, Any]:
    """Return the seconds of these solvers, and the reasons of those that fail."""
    found: dict[str, float] = {}
    failed: dict[str, str] = {}
    for name in names:
        try:
            found[name] = seconds(SOLVERS[name](shape, dtype))
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        cupy.get_default_memory_pool().free_all_blocks()
    return {"shape": list(shape), "dtype": dtype.name, "seconds": found, "failed": failed}


def line(entry: dict[str, Any]) -> str:
    """Return the line of a case in the table."""
    times = entry["seconds"]
    text = f"{' x '.join(map(str, entry['shape'])):16}{entry['dtype']:9}"
    text += "".join(f"{times[s] * 1e6:12.1f} us" if s in times else f"{'-':>15}" for s in SOLVERS)
    if {"graph", "cuFFT alone"} <= times.keys():
        ratio = times["graph"] / times["cuFFT alone"]
        text += f"{ratio:8.2f}" + ("  missed" if ratio > BAR else "")
    return text + "".join(f"\n    {name}: {why}" for name, why in entry["failed"].items())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--sizes", nargs="*", help="for example 1024x1024 128x128x128")
    parser.add_argument("--json", type=Path, default=None, help="file for the values")
    parser.add_argument("--only", nargs="*", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--steps", nargs="*", type=float, default=[], help="sizes of panels in MB")


def run(args: argparse.Namespace) -> int:
    """Measure, print a table, and write the values if asked to."""
    sizes = SIZES
    if args.sizes:
        sizes = tuple(tuple(map(int, size.split("x"))) for size in args.sizes)
    print(f"{'cells':16}{'dtype':9}" + "".join(f"{s:>15}" for s in SOLVERS) + "   ratio")
    cases = []
    for shape in sizes:
        for dtype in (np.dtype("f8"), np.dtype("f4")):
            cases.append(measure(shape, dtype, args.only))
            print(line(cases[-1]), flush=True)
            for megabytes in args.steps:
                found = steps(shape, dtype, megabytes)
                text = ", ".join(f"{name} {time * 1e6:.0f} us" for name, time in found.items())
                print(f"    panels of {megabytes:g} MB: {text}", flush=True)
    if args.json:
        packages = ("pysolvers", *machine.GPU_PACKAGES, "nvidia-cufft")
        record = {
            "benchmark": "poisson on a GPU",
            "gpu": machine.gpu(),
            "versions": machine.versions(*packages),
            "bar": BAR,
            "cases": cases,
        }
        write_record(args.json, record)
    return 0
