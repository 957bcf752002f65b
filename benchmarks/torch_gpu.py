"""Measure `pysolvers.torch.solve_tridiagonal` on a GPU, compiled, forward and in reverse.

Own matrices, 2^26 unknowns, in systems of 64, 512 and 4096 rows. `forward` is the compiled solve,
`reverse` its reverse pass, which gives the gradients of the three diagonals and the right-hand
side; `eager` is the reverse pass without compilation, and `direct` is `pysolvers.solve_tridiagonal`
with tensors. The floor of `forward` and `direct` is the time in which the device moves five words
per unknown, with the bandwidth of a copy. `kept` is the memory that the passes share and `peak` the
memory that the reverse pass needs, its results included, in arrays of the size of x. `loop` is one
solve of 1000 solves of 100 systems of 64 rows, one after the other, compiled with CUDA graphs.
Times are medians of rounds of consecutive calls, measured by events on the device; those of the
loop on the host.

    python -m pysolvers bench torch_gpu --json FILE       # exit status 1 if a bar is missed
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch._functorch.config

import pysolvers
from pysolvers.cases.records import write_record
from pysolvers.torch import solve_tridiagonal

from . import machine

ROWS = (64, 512, 4096)
ROUNDS = 7
SECONDS = 0.2  # of a round
WORDS = 5
UNROLLED = 50  # solves in a compiled function of the loop
SOLVES = 1000

# name: (value of a case, bar)
BARS: dict[str, tuple[Callable[[dict[str, Any]], float], float]] = {
    "reverse, of forward": (lambda c: c["reverse"] / c["forward"], 2.2),
    "floor, points behind direct": (
        lambda c: 100 * c["floor"] * (1 / c["direct"] - 1 / c["forward"]),
        3.0,
    ),
    "kept, arrays": (lambda c: c["kept"], 1.01),
    "peak, arrays": (lambda c: c["peak"], 4.02),
}
LOOP_BAR = 10e-6

torch._functorch.config.donated_buffer = False  # the reverse pass is repeated


def timed(call: Callable[[], object], count: int) -> float:
    """Return the seconds of one of consecutive calls on the device."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        call()
    end.record()
    torch.cuda.synchronize()
    return 1e-3 * start.elapsed_time(end) / count


def seconds(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    call()
    count = max(1, min(1000, int(SECONDS / timed(call, 1))))
    return median(timed(call, count) for _ in range(ROUNDS))


def bandwidth() -> float:
    """Return the bytes per second that a copy moves."""
    x = torch.zeros(2**28, device="cuda")
    y = torch.empty_like(x)
    return 2 * x.nbytes / seconds(lambda: y.copy_(x))


def operands(rows: int, systems: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Return the operands of dominant systems."""
    torch.manual_seed(0)
    shape, options = (systems, rows), {"device": "cuda", "dtype": dtype}
    lower, diag, upper, rhs = (torch.rand(shape, **options).mul_(2).sub_(1) for _ in range(4))
    return [lower, diag.add_(3), upper, rhs]


def reverse_of(
    solve: Callable[..., Any], system: list[torch.Tensor]
) -> tuple[Callable[[], Any], float, float]:
    """Return a call of the reverse pass, and the arrays that are kept and needed."""
    size = system[0].nbytes
    leaves = [a.detach().requires_grad_() for a in system]
    cotangent = torch.ones_like(system[3])
    solve(*leaves)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    x = solve(*leaves)
    kept = (torch.cuda.memory_allocated() - before) / size

    def reverse() -> Any:
        return torch.autograd.grad(x, leaves, cotangent, retain_graph=True)

    reverse()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    reverse()
    torch.cuda.synchronize()
    return reverse, kept, (torch.cuda.max_memory_allocated() - before) / size


def measure(rows: int, dtype: str, unknowns: int, rate: float) -> dict[str, Any]:
    """Return the times of one case in seconds."""
    torch._dynamo.reset()
    system = operands(rows, unknowns // rows, getattr(torch, dtype))
    compiled = torch.compile(solve_tridiagonal, fullgraph=True)
    case: dict[str, Any] = {"rows": rows, "dtype": dtype, "unknowns": unknowns}
    case["floor"] = WORDS * system[0].nbytes / rate
    with torch.no_grad():
        case["forward"] = seconds(lambda: compiled(*system))
        same = torch.equal(compiled(*system), pysolvers.solve_tridiagonal(*system))
    assert same, "the compiled solve and the direct one differ"
    case["direct"] = seconds(lambda: pysolvers.solve_tridiagonal(*system, on_singular="nan"))
    call, case["kept"], case["peak"] = reverse_of(compiled, system)
    case["reverse"] = seconds(call)
    call, *_ = reverse_of(solve_tridiagonal, system)
    case["eager"] = seconds(call)
    return case


def loop_seconds(dtype: str) -> float:
    """Return the seconds of one small solve in a compiled loop."""
    torch._dynamo.reset()
    lower, diag, upper, rhs = operands(64, 100, getattr(torch, dtype))

    def some(x: torch.Tensor) -> torch.Tensor:
        for _ in range(UNROLLED):
            x = solve_tridiagonal(lower, diag, upper, x)
        return x

    compiled = torch.compile(some, fullgraph=True, mode="reduce-overhead")

    def loop() -> float:
        x = rhs
        start = time.perf_counter()
        for _ in range(SOLVES // UNROLLED):
            x = compiled(x).clone()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / SOLVES

    with torch.no_grad():
        for _ in range(3):
            loop()
        return median(loop() for _ in range(ROUNDS))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--json", type=Path, help="record to write")
    parser.add_argument("--unknowns", type=int, default=2**26)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])


def run(args: argparse.Namespace) -> int:
    """Measure, print, compare with the bars and write the record."""
    rate = bandwidth()
    name = torch.cuda.get_device_name()
    print(f"{name}, torch {torch.__version__}, copy: {rate / 1e9:.0f} GB/s")
    missed = 0
    cases = []
    for dtype in args.dtypes:
        for rows in ROWS:
            case = measure(rows, dtype, args.unknowns, rate)
            cases.append(case)
            times = ("forward", "direct", "reverse", "eager")
            print(
                f"{dtype} n = {rows}: floor {1e3 * case['floor']:.2f} ms, "
                + ", ".join(f"{name} {1e3 * case[name]:.2f}" for name in times)
            )
            for name, (value, bar) in BARS.items():
                found = value(case)
                missed += found > bar
                print(f"    {name}: {found:.2f}, bar {bar} {'MISSED' if found > bar else ''}")
    loops = {dtype: loop_seconds(dtype) for dtype in args.dtypes}
    for dtype, each in loops.items():
        missed += each > LOOP_BAR
        print(f"loop, {dtype}: {1e6 * each:.2f} us {'MISSED' if each > LOOP_BAR else ''}")
    record = {
        "benchmark": "torch_gpu",
        "machine": machine.machine(),
        "gpu": machine.gpu(),
        "versions": machine.versions("pysolvers", "numpy", "torch"),
        "bytes_per_second": rate,
        "cases": cases,
        "loop_seconds": loops,
    }
    if args.json:
        write_record(args.json, record)
    return int(missed > 0)
