"""Tridiagonal solves as functions of JAX: compiled, batched and differentiated as its own."""

from .._extras import extra_module

extra_module("jax", "jax")

from .heat import heat_step  # noqa: E402
from .tridiagonal import (  # noqa: E402
    TridiagonalFactor,
    factor_tridiagonal,
    solve_tridiagonal,
)

__all__ = ["TridiagonalFactor", "factor_tridiagonal", "heat_step", "solve_tridiagonal"]
