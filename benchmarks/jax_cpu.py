"""Times of `pysolvers.jax.heat_step` and its gradients on the CPU.

Compiled steps of fields of one, two and three dimensions, for a conductivity that is a number or an
array, and the gradients of a sum of squares with respect to u and k. Times are CPU seconds of all
threads of the process, the mean of the fastest quarter of the rounds, so that other processes count
little. Run it with PYTHONPATH set to each of two builds in turn to compare them.

    python -m pysolvers bench jax_cpu [--dtype float32] [--rounds 40]
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pysolvers import Neumann
from pysolvers.jax import heat_step

SHAPES = ((1024,), (100_000,), (512, 512), (64, 64, 64))
SIDES = {"dirichlet": 0.0, "neumann": Neumann(), "periodic": "periodic"}


def cases(dtype: str) -> Iterator[tuple[str, Callable[..., Any], tuple[jax.Array, jax.Array]]]:
    """Return the names, the functions and the arguments of all cases."""
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
                label = f"{'x'.join(map(str, shape))} {side} {name}"
                yield f"{label} step", step, (u, k)
                yield f"{label} gradients", jax.grad(squares, (0, 1)), (u, k)


def seconds(call: Callable[[], Any], rounds: int) -> float:
    """Return the CPU seconds of one call."""
    jax.block_until_ready(call())
    times = []
    for _ in range(rounds):
        start = time.process_time()
        jax.block_until_ready(call())
        times.append(time.process_time() - start)
    return float(np.mean(sorted(times)[: max(1, rounds // 4)]))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    parser.add_argument("--rounds", type=int, default=40)


def run(args: argparse.Namespace) -> int:
    """Print the time of each case."""
    jax.config.update("jax_enable_x64", True)
    for label, function, operands in cases(args.dtype):
        compiled = jax.jit(function).lower(*operands).compile()
        time_of = seconds(lambda: compiled(*operands), args.rounds)  # noqa: B023 - called at once
        nodes = operands[0].size
        print(f"{label:36} {1e6 * time_of:10.1f} us {1e9 * time_of / nodes:8.2f} ns per node")
    return 0
