"""Array operations of JAX for the formulas that libraries share; see pysolvers/_xp.py.

Rows are slices and zeros at their ends: `jax.numpy.roll` takes 2 to 5 times as long on the CPU.
"""

from functools import partial
from typing import Any

import jax
from jax import numpy as jnp
from jax.typing import ArrayLike

from .._plain import require_plain
from .._runtime.backends import require
from .._xp import ArrayLibrary


def as_operands(**named: ArrayLike) -> dict[str, Any]:
    """Return arrays of the dtype to which JAX promotes the operands, or raise TypeError."""
    if _are_alike(*named.values()):
        return named
    arrays = {name: as_plain(name, value) for name, value in named.items()}
    dtype = jnp.result_type(*arrays.values())
    if dtype.kind in "biu":
        dtype = jnp.result_type(float)
    if dtype.name not in require("cpu").DTYPES:
        raise TypeError(
            "need float32, float64, complex64, complex128, integers or booleans, got "
            + ", ".join(f"{name} {array.dtype}" for name, array in arrays.items())
        )
    return {name: array.astype(dtype) for name, array in arrays.items()}


def as_plain(name: str, value: ArrayLike) -> jax.Array:
    """Return an array of JAX, or raise TypeError for one that holds more than values."""
    if not isinstance(value, jax.Array):
        require_plain(name, value)
    return jnp.asarray(value)


def _are_alike(first: Any, *others: Any) -> bool:
    """Return whether these are arrays of JAX, of one dtype of the backends, without promotion."""
    return (
        all(isinstance(a, jax.Array) and not a.aval.weak_type for a in (first, *others))
        and all(a.dtype == first.dtype for a in others)
        and first.dtype.name in require("cpu").DTYPES
    )


def _operands(named: dict[str, Any]) -> dict[str, jax.Array]:
    return as_operands(**named)


def _like(name: str, value: Any, like: jax.Array) -> jax.Array:
    array = as_plain(name, value)
    if jnp.iscomplexobj(array) and not jnp.iscomplexobj(like):
        raise TypeError(f"{name} must be real because u is {like.dtype}, got {array.dtype}")
    return array.astype(like.dtype)


def _points(value: ArrayLike, like: jax.Array) -> jax.Array:
    points = as_plain("x", value)
    if jnp.iscomplexobj(points):
        raise TypeError(f"x must contain real values, got {points.dtype}")
    return points.astype(like.dtype)


def _ones(count: int, like: jax.Array) -> jax.Array:
    return jnp.ones(count, like.real.dtype)


def _rows(array: jax.Array, start: int, stop: int, axis: int) -> jax.Array:
    return jax.lax.slice_in_dim(array, start, stop, axis=axis)


def _padded(array: jax.Array, before: int, after: int, axis: int) -> jax.Array:
    widths = [(0, 0, 0)] * array.ndim
    widths[axis] = (before, after, 0)
    return jax.lax.pad(array, jnp.zeros((), array.dtype), widths)


def _add(array: jax.Array, axis: int, index: int, values: jax.Array) -> jax.Array:
    return array.at[_at(axis, index)].add(values)


def _put(array: jax.Array, axis: int, index: int, values: jax.Array) -> jax.Array:
    return array.at[_at(axis, index)].set(values)


def _at(axis: int, index: int) -> tuple[Any, ...]:
    """Return the index of one entry along an axis."""
    return (slice(None),) * axis + (index,)


def _locate(knots: jax.Array, points: jax.Array) -> jax.Array:
    search = partial(jnp.searchsorted, side="right")
    if knots.size == knots.shape[-1]:  # one line for the whole batch
        return search(knots.reshape(-1), points)
    return jnp.vectorize(search, signature="(n),(m)->(m)")(knots, points)


def _take(array: jax.Array, indices: jax.Array) -> jax.Array:
    if indices.size == indices.shape[-1]:
        return jnp.take(array, indices.reshape(-1), axis=-1, mode="clip")
    return jnp.take_along_axis(array, indices, -1, mode="clip")


XP = ArrayLibrary(
    jnp,
    jnp.moveaxis,
    _operands,
    as_plain,
    _like,
    _points,
    jnp.iscomplexobj,
    jax.lax.complex,
    _ones,
    _rows,
    _padded,
    _add,
    _put,
    _locate,
    _take,
    jax.lax.stop_gradient,
    jax.lax.optimization_barrier,
)
