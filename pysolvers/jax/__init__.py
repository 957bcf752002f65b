"""Tridiagonal solves as functions of JAX: compiled, batched and differentiated as its own."""

from .._extras import extra_module

extra_module("jax", "jax")

from .tridiagonal import solve_tridiagonal  # noqa: E402

__all__ = ["solve_tridiagonal"]
