"""Memory and references after 10^6 calls, of which each may leak no object and no byte."""

import json
import subprocess
import sys

import pytest

# Each call is repeated in a process of its own. Blocks are those of Python's allocator: an object
# that is lost in each call adds one block per call. Memory that C functions lose is part of the
# resident memory alone. A reference that is lost to an operand, an option or a type leaves no trace
# in memory, and is counted.
SCRIPT = """
import contextlib, gc, json, sys, warnings
import numpy as np
import pysolvers
from pysolvers import factor_tridiagonal, solve_tridiagonal

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

rng = np.random.default_rng(1)
lower, diag, upper, rhs = rng.uniform(-1, 1, (4, 3, 24))
diag += 3
waves = rhs * (1 + 2j)
singular = np.zeros((3, 24))
out = np.empty_like(rhs)
small = np.empty(3)
name, policy = "-thomas"[1:], "-ignore"[1:]  # not interned
factor = factor_tridiagonal(lower, diag, upper)
shared = factor_tridiagonal(lower[0], diag[0], upper[0])
warnings.simplefilter("ignore")

CALLS = {
    "solve": lambda: solve_tridiagonal(lower, diag, upper, rhs),
    "out": lambda: solve_tridiagonal(lower, diag, upper, rhs, out=out, on_singular=policy),
    "numbers": lambda: solve_tridiagonal(-1.0, 3, -1.0, rhs, pivot=False, threads=1),
    "axis": lambda: solve_tridiagonal(lower[:, 0], diag[:, 0], upper[:, 0], rhs, axis=0),
    "complex": lambda: solve_tridiagonal(lower, diag, upper, waves),
    "complex vectors": lambda: solve_tridiagonal(lower[0], diag[0], upper[0], waves),
    "planned": lambda: solve_tridiagonal(lower, diag, upper, rhs, method=name, return_info=True),
    "factor": lambda: factor.solve(rhs),
    "factor out": lambda: factor.solve(rhs, out=out, trans="T"),
    "factor complex": lambda: shared.solve(waves, axis=-1),
    "singular": lambda: solve_tridiagonal(lower, singular, upper * 0, rhs, out=out),
    "shape": lambda: solve_tridiagonal(lower, diag, upper, rhs, out=small),
    "overlap": lambda: solve_tridiagonal(lower, diag, upper, rhs[:2], out=rhs[1:]),
    "keyword": lambda: solve_tridiagonal(lower, diag, upper, rhs, {keyword}),
    "type": lambda: solve_tridiagonal(lower, diag, upper, rhs, axis=policy),
    "factor shape": lambda: factor.solve(small),
}
ERRORS = (ValueError, TypeError, pysolvers.PysolversError)
call, count = CALLS[{call!r}], {count}
counted = [lower, diag, upper, rhs, waves, singular, out, small, name, policy, factor, shared,
           type(factor), rhs.dtype, waves.dtype, np.ndarray, *ERRORS]

def repeat(times):
    for _ in range(times):
        with contextlib.suppress(*ERRORS):
            call()

def state():
    gc.collect()
    return [sys.getallocatedblocks(), resident(), [sys.getrefcount(a) for a in counted]]

repeat(2000)
before = state()
repeat(count)
after = state()
print(json.dumps({"blocks": after[0] - before[0], "bytes": after[1] - before[1],
                  "references": [b - a for a, b in zip(before[2], after[2])]}))
"""
CALLS = 10**6
PLANNED_CALLS = 10**5  # errors and calls that are planned take 20 to 100 us each
DIRECT = (
    "solve",
    "out",
    "numbers",
    "axis",
    "complex",
    "complex vectors",
    "factor",
    "factor out",
    "factor complex",
)
PLANNED = ("planned", "singular", "shape", "overlap", "keyword", "type", "factor shape")


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    ("call", "count"),
    [*((name, CALLS) for name in DIRECT), *((name, PLANNED_CALLS) for name in PLANNED)],
)
def test_calls_lose_no_memory_and_no_reference(call, count):
    code = SCRIPT.replace("{keyword}", "unknown=1")
    code = code.replace("{call!r}", repr(call)).replace("{count}", str(count))
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False
    )

    assert run.returncode == 0, run.stderr
    lost = json.loads(run.stdout)
    assert abs(lost["blocks"]) < 200
    assert lost["bytes"] < 8 * count
    assert max(map(abs, lost["references"])) < 20, lost["references"]
