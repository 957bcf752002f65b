"""Solves and implicit steps of JAX and PyTorch on the CPU, with their gradients.

Float64, matrices of their own. `forward` is the call alone, with JAX compiled by `jit`; `gradients`
is the call and its reverse pass together, which gives the gradients of the three diagonals and of
the right-hand side (or of u) for a given cotangent. Times are processor seconds of all threads, the
mean of the fastest quarter of the samples, so that other processes count little; the samples of
both alternate. The bar of the ratio is 4.

The package has one thread: the clock has the time of a second one, which runs when a sample ends,
in a later sample, so that 10 000 x 199 unknowns took 2.9 or 5.4 ms. And the process keeps the
memory that it frees: new pages would cost up to three times the call.
"""

import argparse
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from pysolvers._progress import progress
from pysolvers._repr import shape_text
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table

from .options import add_options
from .record import Measurement, Record, finish
from .timing import fastest, keep_memory, processor, samples_of

BAR = 4.0
DT = 0.5
CASES = (((10_000, 199), -1), ((75, 200, 300), 0))
SMALL = (((20, 19), -1), ((5, 4, 3), 0))

Calls = dict[str, Callable[[], Any]]


def operands(shape: tuple[int, ...]) -> dict[str, list[np.ndarray]]:
    """Return the operands of each call, and a cotangent: diagonals, values."""
    rng = np.random.default_rng(0)
    lower, upper = rng.uniform(0, 1, (2, *shape))
    values, cotangent = rng.standard_normal((2, *shape))
    h, diag = DT / 2, -(lower + upper)
    return {
        "solve": [-h * lower, 1 - h * diag, -h * upper, values, cotangent],
        "theta step": [lower, diag, upper, values, cotangent],
    }


def functions(module: Any, axis: int) -> dict[str, Callable[..., Any]]:
    """Return the calls of a library."""
    return {
        "solve": lambda *system: module.solve_tridiagonal(*system, axis=axis),
        "theta step": lambda *system: module.theta_step(*system, dt=DT, axis=axis),
    }


def with_jax(function: Callable[..., Any], given: list[np.ndarray]) -> Calls:
    """Return the calls with JAX."""
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    *system, cotangent = map(jax.numpy.asarray, given)

    def both(cotangent: Any, *system: Any) -> Any:
        x, pull = jax.vjp(function, *system)
        return x, pull(cotangent)

    forward, reverse = jax.jit(function), jax.jit(both)
    return {
        "forward": lambda: jax.block_until_ready(forward(*system)),
        "gradients": lambda: jax.block_until_ready(reverse(cotangent, *system)),
    }


def with_torch(function: Callable[..., Any], given: list[np.ndarray]) -> Calls:
    """Return the calls with PyTorch."""
    torch = import_module("torch")
    *system, cotangent = map(torch.from_numpy, given)
    leaves = [a.detach().requires_grad_() for a in system]  # the same memory
    return {
        "forward": lambda: function(*system),
        "gradients": lambda: torch.autograd.grad(function(*leaves), leaves, cotangent),
    }


LIBRARIES = {"jax": with_jax, "torch": with_torch}


def measure(library: str, shape: tuple[int, ...], axis: int, samples: int) -> list[Record]:
    """Return the times of the calls of one shape."""
    found, given = [], operands(shape)
    module = import_module(f"pysolvers.{library}")
    for name, function in functions(module, axis).items():
        times = samples_of(LIBRARIES[library](function, given[name]), samples, clock=processor)
        seconds = {key: float(f"{fastest(each):.4g}") for key, each in times.items()}
        case = {"library": library, "call": name, "shape": list(shape), "axis": axis}
        found.append({**case, "seconds": seconds})
    return found


def ratio_of(entry: Record) -> float:
    """Return the time of value and gradients over that of the value."""
    return float(entry["seconds"]["gradients"] / entry["seconds"]["forward"])


def tables(record: Record) -> list[Table]:
    """Return the table of a record."""
    rows = [
        (
            entry["library"],
            entry["call"],
            shape_text(entry["shape"]),
            entry["axis"],
            *(1e3 * entry["seconds"][key] for key in ("forward", "gradients")),
            ratio_of(entry),
        )
        for entry in record["cases"]
    ]
    names = [Column(name, left=True) for name in ("library", "call", "values")]
    heads = [Column("axis"), Column("forward, ms", ".1f"), Column("with gradients, ms", ".1f")]
    note = (
        "Processor milliseconds, float64, gradients of the diagonals and of the right-hand side or "
        f"of u. Measured on {record['machine']['cpu']}; load before: {record['load']}."
    )
    settings = record.get("settings", {})
    if "threads" in settings:
        note += f" Threads of the package: {settings['threads']}."
    if settings.get("keeps memory"):
        note += " The process keeps the memory that it frees."
    return [Table("", [*names, *heads, Column("ratio", ".2f")], rows, (note,))]


def missed(record: Record) -> list[str]:
    """Return what misses the bar."""
    return [
        f"{entry['library']}, {entry['call']}, {shape_text(entry['shape'])}: value and gradients "
        f"{ratio_of(entry):.2f} times the value, bar {BAR:g}"
        for entry in record["cases"]
        if ratio_of(entry) > BAR
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick", samples=40)
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the record."""
    measurement = Measurement("gradients_cpu", args.libraries)
    keeps = keep_memory()
    os.environ["PYSOLVERS_NUM_THREADS"] = "1"
    samples = 1 if args.quick else args.samples
    cases = SMALL if args.quick else CASES
    todo = [(name, shape, axis) for name in args.libraries for shape, axis in cases]
    found = [
        entry
        for name, shape, axis in progress(todo, "gradients")
        for entry in measure(name, shape, axis, samples)
    ]
    threads = backends.require("cpu").default_threads()
    settings = {"quick": args.quick, "samples": samples, "keeps memory": keeps, "threads": threads}
    record = measurement.record(found, settings)
    finish(args, record, tables(record), missed(record))
    return 0
