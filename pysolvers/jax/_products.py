r"""The product of tridiagonal matrices and vectors, whose derivative takes one pass on a device.

The cotangents of the diagonals of A x are the products of the cotangent of A x with x and with x
shifted by one row. From array operations XLA makes up to three passes over both arrays. Two
primitives of JAX are therefore defined here,

    negated(lower, diag, upper, x) = -(lower_i x_{i-1} + diag_i x_i + upper_i x_{i+1})
    products(g, x) = -(g_i x_{i-1}, g_i x_i, g_i x_{i+1})

which are linear in each argument, and each of which is the transpose of the other with respect to
the diagonals and to g. A device computes `products` with one kernel: 5 words per unknown. The sign
cancels that of the derivative of a solve, -A^{-T}.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
from jax import numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ._call import call_products
from ._xp import XP


def multiply(
    lower: jax.Array, diag: jax.Array, upper: jax.Array, x: jax.Array, axis: int, periodic: bool
) -> jax.Array:
    """Return A x by array operations; operands as those of `solve_lines`."""
    if periodic:
        return lower * jnp.roll(x, 1, axis) + diag * x + upper * jnp.roll(x, -1, axis)
    rows = x.shape[axis]
    if lower.shape[axis] == rows:
        lower = XP.rows(lower, 1, rows, axis)
    if upper.shape[axis] == rows:
        upper = XP.rows(upper, 0, rows - 1, axis)
    below = lower * XP.rows(x, 0, rows - 1, axis)
    above = upper * XP.rows(x, 1, rows, axis)
    return diag * x + XP.padded(below, 1, 0, axis) + XP.padded(above, 0, 1, axis)


def multiply_by_sums(
    lower: jax.Array, sums: jax.Array, upper: jax.Array, x: jax.Array, axis: int, periodic: bool
) -> jax.Array:
    """Return A x, where A is given by row sums in the place of its diagonal.

    The products with differences of x give derivatives in which nothing else is subtracted.
    """
    if periodic:
        before, after = jnp.roll(x, 1, axis), jnp.roll(x, -1, axis)
        return sums * x + lower * (before - x) + upper * (after - x)
    rows = x.shape[axis]
    if lower.shape[axis] == rows:
        lower = XP.rows(lower, 1, rows, axis)
    if upper.shape[axis] == rows:
        upper = XP.rows(upper, 0, rows - 1, axis)
    step = XP.rows(x, 1, rows, axis) - XP.rows(x, 0, rows - 1, axis)
    return sums * x + XP.padded(upper * step, 0, 1, axis) - XP.padded(lower * step, 1, 0, axis)


def multiply_negated(
    lower: jax.Array, diag: jax.Array, upper: jax.Array, x: jax.Array, axis: int, periodic: bool
) -> jax.Array:
    """Return -A x, as a primitive of JAX."""
    return _negated_p.bind(lower, diag, upper, x, axis=axis, periodic=periodic)


def _negated(*operands: jax.Array, axis: int, periodic: bool) -> jax.Array:
    """Return -A x, as the primitive has it."""
    lower, diag, upper, x = operands
    return -multiply(lower, diag, upper, x, axis, periodic)


def _products(g: jax.Array, x: jax.Array, *, axis: int, periodic: bool) -> list[jax.Array]:
    """Return the products by array operations."""
    if periodic:
        before, after = jnp.roll(x, 1, axis), jnp.roll(x, -1, axis)
    else:
        rows = x.shape[axis]
        before = XP.padded(XP.rows(x, 0, rows - 1, axis), 1, 0, axis)
        after = XP.padded(XP.rows(x, 1, rows, axis), 0, 1, axis)
    return [-g * before, -g * x, -g * after]


def _products_on_device(
    g: jax.Array, x: jax.Array, *, axis: int, periodic: bool
) -> Sequence[jax.Array]:
    """Return the products by one kernel; empty ones need none."""
    shape = jnp.broadcast_shapes(g.shape, x.shape)
    if 0 in shape:
        return _products(g, x, axis=axis, periodic=periodic)
    return call_products(
        jnp.broadcast_to(g, shape), jnp.broadcast_to(x, shape), axis=axis, periodic=periodic
    )


@cache
def _compiled(primitive: Primitive, axis: int, periodic: bool) -> Callable[..., Any]:
    """Return a compiled call of a primitive, kept by its parameters."""
    return jax.jit(partial(primitive.bind, axis=axis, periodic=periodic))


def _primitive(name: str, function: Callable[..., Any], *, several: bool) -> Primitive:
    """Return a primitive whose operands broadcast; `several`: whether it has several results."""
    primitive = Primitive(f"pysolvers_{name}")
    primitive.multiple_results = several

    def abstract(*operands: Any, **params: Any) -> Any:
        """Return shapes and dtypes of the results."""
        structs = (jax.ShapeDtypeStruct(a.shape, a.dtype) for a in operands)
        results = jax.tree.leaves(jax.eval_shape(partial(function, **params), *structs))
        found = [operands[-1].update(shape=a.shape, weak_type=False) for a in results]
        return found if several else found[0]

    def batched(operands: Any, dims: Any, **params: Any) -> Any:
        """Put a mapped axis first in all operands and results."""
        expanded = (
            a[None] if dim is None else jnp.moveaxis(a, dim, 0)
            for a, dim in zip(operands, dims, strict=True)
        )
        found = primitive.bind(*expanded, **params)
        return (found, [0] * len(found)) if several else (found, 0)

    primitive.def_impl(lambda *operands, **params: _compiled(primitive, **params)(*operands))
    primitive.def_abstract_eval(abstract)
    batching.primitive_batchers[primitive] = batched
    mlir.register_lowering(primitive, mlir.lower_fun(function, multiple_results=several))
    return primitive


_negated_p = _primitive("negated", _negated, several=False)
_products_p = _primitive("products", _products, several=True)
mlir.register_lowering(
    _products_p, mlir.lower_fun(_products_on_device, multiple_results=True), platform="cuda"
)


def _negated_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    """Linear in the diagonals together, and in x."""
    *matrix, x = primals
    *of_matrix, of_x = tangents
    y = _negated_p.bind(*primals, **params)
    terms = []
    if not all(isinstance(t, ad.Zero) for t in of_matrix):
        terms.append(_negated_p.bind(*map(ad.instantiate_zeros, of_matrix), x, **params))
    if not isinstance(of_x, ad.Zero):
        terms.append(_negated_p.bind(*matrix, of_x, **params))
    return y, sum(terms[1:], terms[0])


def _negated_transpose(cotangent: Any, *operands: Any, **params: Any) -> list[Any]:
    """Transpose `_negated`: for the diagonals alone by one pass, otherwise by operations."""
    is_linear = [ad.is_undefined_primal(a) for a in operands]
    if is_linear == [True, True, True, False] and all(
        a.aval.shape == cotangent.shape for a in operands[:3]
    ):
        return [*_products_p.bind(cotangent, operands[-1], **params), None]
    return _transposed(_negated, cotangent, operands, params)


def _products_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    """Linear in g and in x."""
    g, x = primals
    of_g, of_x = tangents
    terms = []
    if not isinstance(of_g, ad.Zero):
        terms.append(_products_p.bind(of_g, x, **params))
    if not isinstance(of_x, ad.Zero):
        terms.append(_products_p.bind(g, of_x, **params))
    return _products_p.bind(g, x, **params), [
        sum(parts[1:], parts[0]) for parts in zip(*terms, strict=True)
    ]


def _products_transpose(cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
    """Transpose `_products`: for g alone by one pass, otherwise by operations."""
    g, x = operands
    cotangents = [ad.instantiate_zeros(ct) for ct in cotangents]
    if ad.is_undefined_primal(g) and g.aval.shape == cotangents[0].shape:
        return [_negated_p.bind(*cotangents, x, **params), None]
    return _transposed(_products, cotangents, operands, params)


def _transposed(
    function: Callable[..., Any], cotangents: Any, operands: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """Transpose array operations with respect to the linear ones of the operands."""
    linear = [k for k, a in enumerate(operands) if ad.is_undefined_primal(a)]

    def of_linear(*values: Any) -> Any:
        """Call the function with the operands in which it is linear."""
        every = list(operands)
        for k, value in zip(linear, values, strict=True):
            every[k] = value
        return function(*every, **params)

    structs = (jax.ShapeDtypeStruct(operands[k].aval.shape, operands[k].aval.dtype) for k in linear)
    found = jax.linear_transpose(of_linear, *structs)(cotangents)
    results: list[Any] = [None] * len(operands)
    for k, cotangent in zip(linear, found, strict=True):
        results[k] = cotangent
    return results


ad.primitive_jvps[_negated_p] = _negated_jvp
ad.primitive_transposes[_negated_p] = _negated_transpose
ad.primitive_jvps[_products_p] = _products_jvp
ad.primitive_transposes[_products_p] = _products_transpose
