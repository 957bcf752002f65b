"""Arrays that vary over the axes of a mesh, inside `shard_map`."""

from typing import Any

import jax


def equally_varying(arrays: list[jax.Array]) -> list[jax.Array]:
    """Let all operands vary over the axes of a mesh of `shard_map` over which one of them does.

    `custom_linear_solve` does this after it has traced its functions, and then fails.
    """
    if not hasattr(jax, "typeof"):  # JAX before 0.6
        return arrays
    axes = [varying_axes(array) for array in arrays]
    union = frozenset[str]().union(*axes)
    return [
        _made_varying(array, tuple(union - own)) if union - own else array
        for array, own in zip(arrays, axes, strict=True)
    ]


def varying_axes(array: jax.Array) -> frozenset[str]:
    """Return the axes of a mesh of `shard_map` over which an array varies."""
    kind = jax.typeof(array)
    found = kind.mat.varying if hasattr(kind, "mat") else getattr(kind, "vma", ())  # before 0.10
    return frozenset(found)


def _made_varying(array: jax.Array, axes: tuple[str, ...]) -> jax.Array:
    """Return an array that varies over axes of a mesh, for every version of JAX."""
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(array, axes, to="varying")
    before_0_8: Any = jax.lax
    return before_0_8.pvary(array, axes)
