"""Compare `pysolvers.jax.solve_tridiagonal` on a GPU with the solve of JAX itself.

Own matrices, compiled with `jit`, 2^26 unknowns, in systems of 64, 512 and 4096 rows. `forward` is
the solve, `reverse` the function of `jax.vjp` that maps the cotangent of x to those of the three
diagonals and the right-hand side, `transposed` its solve with the transposes, `direct` is
`pysolvers.solve_tridiagonal` with arrays of JAX. The floor of `forward` and `direct` is the time in
which the device moves five words per unknown, with the bandwidth of JAX's own x + 1. `loop` is one
solve in a compiled loop of 1000 solves of 100 systems of 64 rows; with `unroll` an iteration has
several solves, which XLA can launch as one CUDA graph; with the flag of `GRAPH_FLAG`, it makes a
graph of a single solve, too. `peak` is the memory of the
compiled reverse pass without its operands and results. Times are medians of rounds of consecutive
calls, measured on the host.

    python -m pysolvers bench jax_gpu --json FILE       # exit status 1 if a bar is missed
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.9")

import jax
import numpy as np
from jax import numpy as jnp

import pysolvers
from pysolvers.cases.records import write_record
from pysolvers.jax import solve_tridiagonal

from . import machine

ROWS = (64, 512, 4096)
ROUNDS = 7
SECONDS = 0.2  # of a round
WORDS = 5

# name: (value of a case, whether more is better, bar)
BARS = {
    "forward, times JAX": (lambda c: c["jax_forward"] / c["forward"], True, 4.0),
    "reverse, of forward": (lambda c: c["reverse"] / c["forward"], False, 2.2),
    "reverse, times JAX": (lambda c: c["jax_reverse"] / c["reverse"], True, 4.0),
    "floor, points behind direct": (
        lambda c: 100 * c["floor"] * (1 / c["direct"] - 1 / c["forward"]),
        False,
        3.0,
    ),
}
LOOP_BAR = 10e-6
LOOPS = ((1, None), (1, False), (10, None), (10, False))  # unroll and pivot
GRAPH_FLAG = "--xla_gpu_graph_min_graph_size=1"


def seconds(call: Callable[[], Any]) -> float:
    """Return the seconds of one call."""
    jax.block_until_ready(call())
    once = timed(call, 1)
    count = max(1, min(1000, int(SECONDS / once)))
    return median(timed(call, count) for _ in range(ROUNDS))


def timed(call: Callable[[], Any], count: int) -> float:
    """Return the seconds of one of consecutive calls."""
    start = time.perf_counter()
    for _ in range(count):
        last = call()
    jax.block_until_ready(last)
    return (time.perf_counter() - start) / count


def bandwidth() -> float:
    """Return the bytes per second that x + 1 moves."""
    x = jnp.zeros(2**28, jnp.float32)
    add = jax.jit(lambda a: a + 1)
    return 2 * x.nbytes / seconds(lambda: add(x))


def jax_solve(lower: Any, diag: Any, upper: Any, rhs: Any) -> Any:
    """Solve with JAX itself."""
    return jax.lax.linalg.tridiagonal_solve(lower, diag, upper, rhs[..., None])[..., 0]


def transposed_solve(lower: Any, diag: Any, upper: Any, rhs: Any) -> Any:
    """Solve with the transposes, which is a part of the reverse pass."""
    solve = jax.linear_transpose(lambda b: solve_tridiagonal(lower, diag, upper, b), rhs)
    return solve(rhs)[0]


def operands(rows: int, systems: int, dtype: Any) -> list[Any]:
    """Return the operands of dominant systems; the corners are zero, as JAX's solve needs."""
    keys = jax.random.split(jax.random.key(0), 4)
    lower, diag, upper, rhs = (
        jax.random.uniform(key, (systems, rows), dtype, -1, 1) for key in keys
    )
    return [lower.at[:, 0].set(0), diag + 3, upper.at[:, -1].set(0), rhs]


def reverse_of(solve: Callable[..., Any], system: list[Any]) -> tuple[Callable[[], Any], int]:
    """Return a call of the reverse pass, and the bytes of its temporary arrays."""
    x, pull = jax.vjp(jax.jit(solve), *system)
    apply = jax.jit(lambda pull, g: pull(g))
    analysis = apply.lower(pull, x).compile().memory_analysis()
    return lambda: apply(pull, x), int(analysis.temp_size_in_bytes)


def measure(rows: int, dtype: str, unknowns: int, rate: float) -> dict[str, Any]:
    """Return the times of one case in seconds."""
    system = operands(rows, unknowns // rows, jnp.dtype(dtype))
    forward, peer = jax.jit(solve_tridiagonal), jax.jit(jax_solve)
    case: dict[str, Any] = {"rows": rows, "dtype": dtype, "unknowns": unknowns}
    case["floor"] = WORDS * system[0].nbytes / rate
    case["forward"] = seconds(lambda: forward(*system))
    case["direct"] = seconds(lambda: pysolvers.solve_tridiagonal(*system, on_singular="nan"))
    case["jax_forward"] = seconds(lambda: peer(*system))
    transposed = jax.jit(transposed_solve)
    case["transposed"] = seconds(lambda: transposed(*system))
    worst = float(jnp.max(jnp.abs(forward(*system) - peer(*system))))
    assert worst < 1e3 * np.finfo(dtype).eps, f"the solutions differ by {worst}"
    for name, solve in (("", solve_tridiagonal), ("jax_", jax_solve)):
        call, case[f"{name}peak"] = reverse_of(solve, system)
        case[f"{name}reverse"] = seconds(call)
        del call
    return case


def loop_seconds(dtype: str, unroll: int, pivot: bool | None) -> float:
    """Return the seconds of one small solve in a compiled loop."""
    lower, diag, upper, rhs = operands(64, 100, jnp.dtype(dtype))

    def body(_: Any, x: Any) -> Any:
        return solve_tridiagonal(lower, diag, upper, x, pivot=pivot)

    loop = jax.jit(lambda x: jax.lax.fori_loop(0, 1000, body, x, unroll=unroll))
    return seconds(lambda: loop(rhs)) / 1000


def measure_loops(dtypes: list[str]) -> list[dict[str, Any]]:
    """Return the times of compiled loops with the flags of XLA that this process has."""
    return [
        {
            "dtype": dtype,
            "unroll": unroll,
            "pivot": pivot,
            "flags": os.environ.get("XLA_FLAGS", ""),
            "seconds": loop_seconds(dtype, unroll, pivot),
        }
        for dtype in dtypes
        for unroll, pivot in LOOPS
    ]


def loops_with(flag: str, dtypes: list[str]) -> list[dict[str, Any]]:
    """Return the times of compiled loops in a process with a flag of XLA."""
    environment = {**os.environ, "XLA_FLAGS": flag, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    options = ["bench", "jax_gpu", "--loops", "--dtypes", *dtypes]
    command = [sys.executable, "-m", "pysolvers", *options]
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(run.stdout)
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--json", type=Path, help="record to write")
    parser.add_argument("--unknowns", type=int, default=2**26)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--loops", action="store_true", help="print the times of loops as JSON")


def run(args: argparse.Namespace) -> int:
    """Measure, print, compare with the bars and write the record."""
    jax.config.update("jax_enable_x64", True)
    if args.loops:
        print(json.dumps(measure_loops(args.dtypes)))
        return 0
    rate = bandwidth()
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}, x + 1: {rate / 1e9:.0f} GB/s")
    missed = 0
    cases = []
    for dtype in args.dtypes:
        for rows in ROWS:
            case = measure(rows, dtype, args.unknowns, rate)
            cases.append(case)
            times = ("forward", "direct", "jax_forward", "transposed", "reverse", "jax_reverse")
            print(
                f"{dtype} n = {rows}: floor {1e3 * case['floor']:.2f} ms, "
                + ", ".join(f"{name} {1e3 * case[name]:.2f}" for name in times)
                + f"; peak {case['peak'] / 2**20:.0f} MiB, JAX {case['jax_peak'] / 2**20:.0f} MiB"
            )
            for name, (value, more, bar) in BARS.items():
                found = value(case)
                holds = found >= bar if more else found <= bar
                missed += not holds
                print(f"    {name}: {found:.2f}, bar {bar} {'' if holds else 'MISSED'}")
    loops = [*measure_loops(args.dtypes), *loops_with(GRAPH_FLAG, args.dtypes)]
    for loop in loops:
        is_plain = (loop["unroll"], loop["pivot"]) == (1, None) and not loop["flags"]
        is_missed = is_plain and loop["seconds"] > LOOP_BAR
        missed += is_missed
        settings = ", ".join(f"{name}={loop[name]}" for name in ("unroll", "pivot", "flags"))
        text = f"loop, {loop['dtype']}, {settings}: {1e6 * loop['seconds']:.2f} us"
        print(text + is_missed * " MISSED")
    record = {
        "benchmark": "jax_gpu",
        "machine": machine.machine(),
        "gpu": machine.gpu(),
        "versions": machine.versions("pysolvers", "numpy", "jax"),
        "bytes_per_second": rate,
        "cases": cases,
        "loops": loops,
    }
    if args.json:
        write_record(args.json, record)
    return int(missed > 0)
