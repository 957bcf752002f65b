"""Solves that JAX compiles, batches and differentiates: tridiagonal systems, heat, Poisson."""

from .._extras import extra_module

extra_module("jax", "jax")

from .heat import heat_step  # noqa: E402
from .poisson import FastPoisson  # noqa: E402
from .tridiagonal import (  # noqa: E402
    TridiagonalFactor,
    factor_tridiagonal,
    solve_tridiagonal,
)

__all__ = [
    "FastPoisson",
    "TridiagonalFactor",
    "factor_tridiagonal",
    "heat_step",
    "solve_tridiagonal",
]
