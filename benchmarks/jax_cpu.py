"""`pysolvers.jax.heat_step` and its gradients on the CPU.

Compiled steps of fields of one, two and three dimensions, for a conductivity that is a number or an
array, and the gradients of a sum of squares with respect to u and k. Times are processor seconds of
all threads of the process, the mean of the fastest quarter of the samples, so that other processes
count little. Run it with PYTHONPATH set to each of two builds in turn to compare them.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pysolvers import Neumann
from pysolvers._progress import progress
from pysolvers._repr import shape_text
from pysolvers.cases.tables import Column, Table
from pysolvers.jax import heat_step

from .options import add_options
from .record import Measurement, finish
from .timing import fastest, processor, samples_of

SHAPES = ((1024,), (100_000,), (512, 512), (64, 64, 64))
SIDES = {"dirichlet": 0.0, "neumann": Neumann(), "periodic": "periodic"}

Case = tuple[tuple[str, ...], Callable[..., Any], tuple[jax.Array, jax.Array]]


def cases(dtype: str) -> Iterator[Case]:
    """Yield the names, the functions and the arguments of all cases."""
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        u = jnp.asarray(rng.standard_normal(shape), dtype)
        conductivities = {
            "number": jnp.ones((), dtype),
            "array": jnp.asarray(1 + rng.random(shape), dtype),
        }
        for side, boundary in SIDES.items():

            def step(u: jax.Array, k: jax.Array, boundary: Any = boundary) -> jax.Array:
                return heat_step(u, dt=0.3, spacing=0.3, diffusivity=k, boundary=boundary)

            def squares(u: jax.Array, k: jax.Array, step: Any = step) -> jax.Array:
                return (step(u, k) ** 2).sum()

            for name, k in conductivities.items():
                label = (shape_text(shape), side, name)
                yield (*label, "step"), step, (u, k)
                yield (*label, "gradients"), jax.grad(squares, (0, 1)), (u, k)


def seconds(function: Callable[..., Any], operands: Any, samples: int) -> float:
    """Return the processor seconds of one call."""
    compiled = jax.jit(function).lower(*operands).compile()
    call = {"": lambda: jax.block_until_ready(compiled(*operands))}
    return fastest(samples_of(call, samples, clock=processor)[""])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick", samples=40)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64")


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the record."""
    jax.config.update("jax_enable_x64", True)
    measurement = Measurement("jax_cpu", ("jax",))
    samples = 1 if args.quick else args.samples
    todo = list(cases(args.dtype))[: 4 if args.quick else None]
    found = [
        {
            "case": label,
            "nodes": operands[0].size,
            "seconds": seconds(function, operands, samples),
        }
        for label, function, operands in progress(todo, "heat_step")
    ]
    record = measurement.record(found, {"quick": args.quick, "dtype": args.dtype})
    rows = [(*e["case"], 1e6 * e["seconds"], 1e9 * e["seconds"] / e["nodes"]) for e in found]
    columns = [Column("shape"), *(Column(n, left=True) for n in ("sides", "conductivity", "call"))]
    columns += [Column("µs", ".1f"), Column("ns per node", ".2f")]
    finish(args, record, [Table("", columns, rows)])
    return 0
