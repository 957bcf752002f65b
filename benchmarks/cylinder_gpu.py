"""Measure SquareCylinder on a GPU: steps, stages and the steady flow, beside one core.

Unsteady steps at Re 100, after the start of the flow. `step` is the time of the device between
two events around the steps of a call, the median over calls; `call` is the time of the host for
the same steps. `floor` is the time of a copy, on fields of the same size in the same run, of the
fewest words that a step moves (11 per node), `words` that of the words that the kernels move (16
per node). The stages have the shares of steps without forces. One core makes the same steps by
batched Thomas solves and transforms of SciPy. Needs CuPy; `--kernels` needs PyTorch.

    python -m pysolvers bench cylinder_gpu                  # prints tables
    python -m pysolvers bench cylinder_gpu --kernels        # also the time of each kernel
    python -m pysolvers bench cylinder_gpu --json FILE      # also writes the values
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import cupy
import numpy as np

from pysolvers.cases.records import write_record
from pysolvers.flow import SquareCylinder

from . import machine

GRIDS = ((161, 801), (209, 1001), (401, 2001))
BARS = {(161, 801): 60.0, (401, 2001): 120.0}  # microseconds of a step
STEADY = (241, 1201)
STEADY_BAR = 3.0  # seconds
FEWEST_WORDS, WORDS = 11, 16


def copy_time(shape: tuple[int, ...], words: int, dtype: type) -> float:
    """Return the time of copies between six fields that move `words` words per node."""
    fields = [cupy.zeros(shape, dtype) for _ in range(6)]
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()

    def run(copies: int) -> float:
        begin.record()
        for k in range(copies):
            cupy.copyto(fields[k % 6], fields[(k + 1) % 6])
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end) / 1e3 / copies

    run(20)
    return median(run(60) for _ in range(7)) * words / 2


def stages(cylinder: SquareCylinder, steps: int) -> tuple[dict[str, float], float]:
    """Return the seconds of the device for the stages of `steps` steps, and those of the host."""
    before = cylinder.result().seconds
    start = time.perf_counter()
    cylinder.step(steps)
    host = time.perf_counter() - start
    after = cylinder.result().seconds
    return {name: after[name] - before[name] for name in after}, host


def measure(shape: tuple[int, int], dtype: type, calls: int = 15) -> dict[str, Any]:
    """Return the times of a step and of its stages in seconds."""
    cylinder = SquareCylinder(100, shape, dtype=dtype, device="cuda").step(200)
    found = [stages(cylinder, 100) for _ in range(calls)]
    single = []
    for _ in range(3):  # the last of 99 steps has no forces
        single.append(stages(cylinder, 99)[0])
        cylinder.step(1)
    shares = {name: median(s[name] / sum(s.values()) for s in single) for name in single[0]}
    step = median(sum(s.values()) / 100 for s, _ in found)
    return {
        "shape": list(shape),
        "dtype": np.dtype(dtype).name,
        "step": step,
        "call": median(host / 100 for _, host in found),
        "stages": {name: share * step for name, share in shares.items()},
        "floor": copy_time(shape, FEWEST_WORDS, dtype),
        "words": copy_time(shape, WORDS, dtype),
    }


def one_core(shape: tuple[int, int], budget: float, **options: Any) -> float:
    """Return the seconds of a step on one core."""
    cylinder = SquareCylinder(100, shape, threads=1, **options).step(2)
    times: list[float] = []
    while sum(times) < budget:
        start = time.perf_counter()
        cylinder.step(1)
        times.append(time.perf_counter() - start)
    return median(times)


def lines(shape: tuple[int, int], re: float, budget: float) -> dict[str, float]:
    """Return the seconds of a step with psi by sweeps of lines, as the paper's, and on one core."""
    cylinder = SquareCylinder(re, shape, psi="lines", device="cuda").step(100)
    start = time.perf_counter()
    cylinder.step(100)
    found = {"call": (time.perf_counter() - start) / 100}
    return found | ({"one_core": one_core(shape, budget, psi="lines")} if budget else {})


def steady() -> dict[str, float]:
    """Return steps, seconds and recirculation length of the steady flow at Re 40."""
    SquareCylinder(40, (33, 201), steady=True, device="cuda").step(1)  # loads the module
    cylinder = SquareCylinder(40, STEADY, steady=True, device="cuda")
    start = time.perf_counter()
    result = cylinder.solve(1e-6)
    seconds = time.perf_counter() - start
    return {
        "steps": result.steps,
        "seconds": seconds,
        "length": result.recirculation_length,
        "drag": result.drag,
    }


def kernels(shape: tuple[int, int], steps: int = 40) -> dict[str, float]:
    """Return the microseconds of each kernel in a step, by the profiler of PyTorch.

    The blocks of a kernel are launched before the kernel before it ends: a kernel counts from the
    end of that one on.
    """
    from torch.profiler import ProfilerActivity, profile

    cylinder = SquareCylinder(100, shape, device="cuda").step(200)
    with profile(activities=[ProfilerActivity.CUDA]) as records:
        cylinder.step(steps)
    times: dict[str, float] = {}
    ended = 0.0
    for event in sorted(records.events(), key=lambda event: event.time_range.end):
        if event.device_time > 0:
            begin, end = max(event.time_range.start, ended), event.time_range.end
            times[event.name] = times.get(event.name, 0.0) + (end - begin) / steps
            ended = end
    return dict(sorted(times.items(), key=lambda item: -item[1]))


def try_and_print(name: str, work: Callable[[], None]) -> None:
    """Run a part; the others still run if it fails."""
    try:
        work()
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}", flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--kernels", action="store_true", help="also the time of each kernel")
    parser.add_argument("--core", type=float, default=1.0, help="seconds for one core, per grid")
    parser.add_argument("--json", type=Path, default=None, help="file for the values")


def run(args: argparse.Namespace) -> int:
    """Measure, print tables, and write the values if asked to."""
    record: dict[str, Any] = {"machine": machine.machine(), "gpu": machine.gpu(), "grids": []}

    def table() -> None:
        print(f"{'grid':>12}{'dtype':>9}{'step us':>9}{'call us':>9}{'floor':>8}{'words':>8}"
              f"{'one core':>11}{'ratio':>7}  stages us")  # fmt: skip
        for shape in GRIDS:
            for dtype in (np.float64, np.float32):
                entry = measure(shape, dtype)
                core = one_core(shape, args.core) if dtype is np.float64 else float("nan")
                entry["one_core"] = core
                record["grids"].append(entry)
                micro = {k: entry[k] * 1e6 for k in ("step", "call", "floor", "words")}
                parts = ", ".join(f"{k} {v * 1e6:.1f}" for k, v in entry["stages"].items())
                bar = BARS.get(shape) if dtype is np.float64 else None
                verdict = "" if bar is None else f" (bar {bar:g}"
                verdict += "" if bar is None else ", missed)" if micro["step"] > bar else ")"
                print(f"{shape[0] - 1:>5} x {shape[1] - 1:<4}{entry['dtype']:>9}"
                      f"{micro['step']:>9.1f}{micro['call']:>9.1f}{micro['floor']:>8.1f}"
                      f"{micro['words']:>8.1f}{core * 1e6:>11.0f}{core / entry['step']:>7.0f}"
                      f"  {parts}{verdict}", flush=True)  # fmt: skip

    def sweeps() -> None:
        record["lines"] = []
        for shape in GRIDS:
            for re in (100.0, 200.0):
                found = lines(shape, re, args.core if re == 100 else 0)
                record["lines"].append({"shape": list(shape), "re": re} | found)
                core = f", one core {found['one_core'] * 1e3:.1f} ms, ratio " if re == 100 else ""
                core += f"{found['one_core'] / found['call']:.0f}" if re == 100 else ""
                print(f"psi='lines', Re {re:g}, {shape[0] - 1} x {shape[1] - 1}: "
                      f"{found['call'] * 1e6:.0f} us{core}", flush=True)  # fmt: skip

    def flow() -> None:
        record["steady"] = found = steady()
        print(f"steady, Re 40, {STEADY[0] - 1} x {STEADY[1] - 1}: {found['seconds']:.2f} s "
              f"(bar {STEADY_BAR:g}), {found['steps']} steps, Lr/D {found['length']:.4f}, "
              f"Cd {found['drag']:.4f}", flush=True)  # fmt: skip

    def profile() -> None:
        record["kernels"] = {}
        for shape in (GRIDS[0], GRIDS[-1]):
            found = kernels(shape)
            record["kernels"]["x".join(map(str, shape))] = found
            print(f"kernels of a step, {shape[0] - 1} x {shape[1] - 1}, us:")
            for name, value in found.items():
                print(f"{value:10.2f}  {name[:110]}", flush=True)

    try_and_print("steps", table)
    try_and_print("steady", flow)
    try_and_print("lines", sweeps)
    if args.kernels:
        try_and_print("kernels", profile)
    if args.json is not None:
        write_record(args.json, record)
    return 0
