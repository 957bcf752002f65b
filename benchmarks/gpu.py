"""``python -m pysolvers bench gpu``: speed on a GPU as a fraction of its memory bandwidth.

As in `bench tridiagonal`, the floor of a case of `words` words per unknown is the time in which a
copy on the device moves as many bytes. The fraction is the median over the runs of floor / time;
the floor of each run is that of the copies before and after it. Times are measured by events on the
device. The copies replace the contents of the cache, so that it contains no operands of a run.
Batches that fit the cache are also solved repeatedly in a graph; their times are in seconds. The
times of the part `small` are those of calls, measured on the host: consecutive calls, of which only
the last is waited for. Steps of solvers and splines are those of `gpu_solvers`.
"""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from pysolvers._errors import BackendError
from pysolvers._progress import progress
from pysolvers._runtime import backends
from pysolvers.factor import factor_tridiagonal
from pysolvers.papers import wei2013
from pysolvers.tridiagonal import solve_tridiagonal

from . import gpu_peers as peers, machine
from .batches import Buffers
from .gpu_cases import DTYPES, PARTS, QUICK_UNKNOWNS, UNKNOWNS, GpuCase, cases
from .gpu_solvers import measure_solver, solver_cases
from .gpu_steps import step_solver
from .gpu_table import WRONG, missed, tables
from .options import add_options
from .record import Measurement, Record, finish
from .timing import COPY_BYTES, CopyClock, require_cupy

RUNS, LEAST_RUNS, QUICK_RUNS = 15, 3, 2
SOLVERS = "solvers"  # the part of gpu_solvers.py
EVERY_PART = (*PARTS, SOLVERS)
# Device time in seconds that the runs of one case, or of one of its peers, may take.
BUDGET = 0.25


def bench_gpu(*, only: Iterable[str] = EVERY_PART, quick: bool = False) -> Record:
    """Measure the cases of some parts and return the record."""
    backends.require("cuda")
    measurement = Measurement("gpu", gpu=True)
    try:
        cupy = require_cupy()
    except ImportError as error:
        raise BackendError(str(error)) from error
    entries: list[dict[str, Any]] = []
    samples: list[float] = []
    parts = tuple(only)
    with cupy.cuda.Stream(non_blocking=True):
        clock = CopyClock(COPY_BYTES // 64 if quick else COPY_BYTES)
        clock.once(lambda: None)  # a sample of the copy, which not every part takes
        for dtype in DTYPES:
            buffers = Buffers(dtype, QUICK_UNKNOWNS if quick else UNKNOWNS, cupy)
            todo = [c for p in parts if p in PARTS for c in cases(p, dtype, quick=quick)]
            for case in progress(todo, f"gpu {dtype}"):
                entries.append(measure(case, buffers, clock, quick=quick))
            del buffers
            cupy.get_default_memory_pool().free_all_blocks()
        samples += clock.samples
        del clock
    solvers = [
        measure_solver(case, median(samples), quick=quick)
        for case in progress([*solver_cases(quick=quick)] if SOLVERS in parts else [], SOLVERS)
    ]
    return measurement.record(
        entries,
        {"quick": quick, "runs": QUICK_RUNS if quick else RUNS, "parts": list(parts)},
        device=backends.require("cuda").describe(),
        versions={
            **machine.versions("pysolvers", *machine.GPU_PACKAGES),
            "nvcc": machine.nvcc(),
        },
        copy={"bandwidth": median(samples), "runs": len(samples)},
        solvers=solvers,
    )


def measure(case: GpuCase, buffers: Buffers, clock: CopyClock, *, quick: bool) -> dict[str, Any]:
    """Check the answers of `case`, time it and its peers, and return its entry of the record."""
    system = buffers.system(case)
    entry: dict[str, Any] = {**asdict(case), "words": round(case.words, 4)}
    bars = {"bar": case.bar, "time_bar": case.time_bar, "peer_bar": case.peer_bar}
    entry |= dict.fromkeys(bars) if quick else bars
    try:
        system[-1].fill(np.nan)
        error: Callable[[], float] = partial(backward_error, case, system)
        if case.part == "steps":
            solve, error, facts = step_solver(case, system)
        else:
            solve, facts = solver(case, system)
        solve()
        entry |= facts | {"error": _rounded(error())}
        entry |= _timed(case, solve, clock, quick=quick)
    except Exception as error:  # the other cases run even if one fails
        text = str(error).splitlines() or [""]
        return entry | {"failure": f"{type(error).__name__}: {text[0]}", "peers": {}}
    return entry | measure_peers(case, system, clock, quick=quick)


def solver(case: GpuCase, system: list[Any]) -> tuple[Callable[[], object], dict[str, Any]]:
    """Return a function that enqueues one solve, and the information about the first solve."""
    *operands, x = system
    axis = case.axis_number
    if case.matrix == "factor":
        factor = factor_tridiagonal(
            *operands[:3], axis=axis - x.ndim if axis >= 0 else axis, pivot=False
        )
        facts = {"used": factor.info.method, "kernel": factor.info.kernel}
        return lambda: factor.solve(operands[3], out=x), facts

    options: dict[str, Any] = {"axis": axis, "out": x}
    options |= {"periodic": case.matrix == "periodic", "on_singular": "ignore"}
    if case.method == "auto":
        options["pivot"] = {"checked": None, "pivoted": True}.get(case.matrix, False)
    solve: Any = partial(solve_tridiagonal, method=case.method)
    if case.variant:
        solve = partial(wei2013.solve_tridiagonal, mapping=f"C{case.variant}")
    _, info = solve(*operands, **options, return_info=True)
    facts = {"used": info.method, "kernel": info.kernel}
    return lambda: solve(*operands, **options), facts


def backward_error(case: GpuCase, system: list[Any]) -> float:
    """Return the largest backward error in eps.

    It is relative to each row. If rows are exchanged, it is relative to the largest row of the
    system, because partial pivoting has no bound for the error relative to each row.
    """
    cupy = require_cupy()
    axis = case.axis_number
    lower, diag, upper, rhs, x = (
        cupy.moveaxis(cupy.broadcast_to(a, system[-1].shape), axis, -1) for a in system
    )
    below, above = lower * cupy.roll(x, 1, -1), upper * cupy.roll(x, -1, -1)
    if case.matrix != "periodic":
        below[..., 0] = above[..., -1] = 0
    middle = diag * x
    residual = cupy.abs(below + middle + above - rhs)
    scale = cupy.abs(below) + cupy.abs(middle) + cupy.abs(above) + cupy.abs(rhs)
    if case.matrix == "pivoted":
        scale = scale.max(axis=-1, keepdims=True)
    # Every x solves a row of zeros; NaN remains NaN.
    scale[scale == 0] = 1
    return float((residual / scale).max()) / float(np.finfo(case.dtype).eps)


def _timed(
    case: GpuCase, solve: Callable[[], object], clock: CopyClock, *, quick: bool
) -> dict[str, Any]:
    if case.part == "cached":
        return {"seconds": clock.in_cache(solve)}
    if case.part == "small":
        return {"seconds": clock.calls(solve)}
    size = case.words * case.unknowns * np.dtype(case.dtype).itemsize
    runs = clock.floors_and_times(solve, size, _runs(clock.once(solve), quick=quick))
    return {
        "seconds": median(time for _, time in runs),
        "floor": median(floor for floor, _ in runs),
        "fraction": round(median(floor / time for floor, time in runs), 4),
    }


def _runs(once: float, *, quick: bool) -> int:
    """Return the number of runs of work that takes `once` seconds."""
    return QUICK_RUNS if quick else max(LEAST_RUNS, min(RUNS, int(BUDGET / once)))


def measure_peers(
    case: GpuCase, system: list[Any], clock: CopyClock, *, quick: bool
) -> dict[str, Any]:
    """Return the seconds of each peer, and the reasons of those that did not run."""
    seconds: dict[str, float] = {}
    refused: dict[str, str] = {}
    for name in case.peers:
        try:
            seconds[name] = _peer_seconds(name, case, system, clock, quick=quick)
        except Exception as error:  # includes the error of CuPy for exhausted memory
            refused[name] = str(error)
        # Each peer needs workspace of another size.
        require_cupy().get_default_memory_pool().free_all_blocks()
    return {"peers": seconds, "refused": refused}


def _peer_seconds(
    name: str, case: GpuCase, system: list[Any], clock: CopyClock, *, quick: bool
) -> float:
    if name == peers.JAX:
        return peers.jax_seconds(case, system, 0.0 if quick else BUDGET)
    if name == peers.TORCH:
        return peers.torch_seconds(system, 0.0 if quick else BUDGET)
    peer = peers.cusparse(name, case, system)
    assert peer.restore is not None
    peer.restore()
    if case.part == "cached":
        return clock.back_to_back(peer.solve)
    if case.part == "small":
        return clock.calls(peer.solve)
    count = _runs(clock.once(peer.solve), quick=quick)
    times = clock.floors_and_times(peer.solve, 0.0, count, peer.restore)
    return median(time for _, time in times)


def _rounded(error: float) -> float:
    return round(error, 1) if error < WRONG else error


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick")
    parser.add_argument(
        "--only", nargs="+", choices=EVERY_PART, default=EVERY_PART, help="parts to measure"
    )


def run(args: argparse.Namespace) -> int:
    """Run the benchmark, print its tables and write its record. Return the exit code."""
    record = bench_gpu(only=args.only, quick=args.quick)
    finish(args, record, tables(record), missed(record))
    entries = (*record["cases"], *record["solvers"])
    return 1 if any("failure" in entry for entry in entries) else 0
