r"""Systems of diffusion, given by conductances and row sums, as a function of JAX.

With the conductances c_i between the rows i and i + 1, the volumes v and the row sums s,

    (A x)_i = s_i x_i - (q_i - q_{i-1}) / v_i,   q_i = c_i (x_{i+1} - x_i),

where c >= 0 and s >= 0, or c <= 0 and s <= 0. The backends solve with the off-diagonals -c_i / v_i,
-c_{i-1} / v_i and s without subtractions of matrix entries (csrc/include/pysolvers.h, PS_ROW_SUMS),
so that no ratio of s to c loses digits. v A is symmetric. The transpose, whose row sums would be
differences, is therefore solved with A itself:

    A^-T g = v A^-1 (g / v).

With y = A^-T g and z = y / v, the gradients with respect to f, s and c are those of the products
above: y_i, -y_i x_i and (z_{i+1} - z_i) (x_i - x_{i+1}).
"""

from functools import partial
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from numpy.typing import NDArray

from .._runtime.backends import require
from ._call import solve_lines
from .tridiagonal import batched, equally_varying

__all__ = ["flux_into", "solve_row_sums"]


def flux_into(conductance: jax.Array, x: jax.Array, weights: Any, axis: int) -> jax.Array:
    """Return (q_i - q_{i-1}) w_i, with the weights w = 1 / v.

    It is exactly zero where x is constant, and so is the result of the transpose where y / v is
    constant. A line that is not periodic has the last conductance 0.
    """
    flux = conductance * (jnp.roll(x, -1, axis) - x)
    return (flux - jnp.roll(flux, 1, axis)) * weights


def solve_row_sums(
    conductance: jax.Array,
    sums: jax.Array,
    rhs: jax.Array,
    volumes: NDArray[np.floating],
    *,
    axis: int,
    periodic: bool,
    keeps_level: bool = False,
) -> jax.Array:
    """Solve systems along an axis; all arguments but the volumes can be differentiated.

    Parameters
    ----------
    conductance, sums, rhs : jax.Array
        c, s and right sides: real, of one dtype and number of axes. They broadcast; c and `rhs`
        have all rows. Unless `periodic`, the last c is 0.
    volumes : ndarray, shape (n,)
        The volumes v of the rows.
    axis : int
        Axis of the systems, negative.
    periodic : bool
        As in `solve_tridiagonal`.
    keeps_level : bool
        Whether gradients g = a v s with a number a give y = a v without rounding errors, for one
        more pass over g; the sums must not be zero.
    """
    if 0 in rhs.shape:
        return rhs
    along = volumes.reshape((-1,) + (1,) * (-1 - axis)).astype(rhs.dtype)
    return _solve(conductance, sums, rhs, jnp.asarray(along), axis, periodic, keeps_level)


@partial(jax.jit, static_argnums=(4, 5, 6))
def _solve(
    conductance: jax.Array,
    sums: jax.Array,
    rhs: jax.Array,
    volumes: jax.Array,
    axis: int,
    periodic: bool,
    keeps_level: bool,
) -> jax.Array:
    shape = jnp.broadcast_shapes(conductance.shape, sums.shape, rhs.shape)
    conductance, sums, rhs, volumes = equally_varying([conductance, sums, rhs, volumes])
    never = require("cpu").PIVOTS["never"]
    options = {"axis": axis, "periodic": periodic, "pivot": never, "has_sums": True}
    solve_sums = batched(partial(solve_lines, **options))
    weights = (1 / volumes).reshape((1,) * (rhs.ndim - volumes.ndim) + volumes.shape)
    lower = -jnp.roll(conductance, 1, axis) * weights
    upper = -conductance * weights

    def solve(f: jax.Array) -> jax.Array:
        return solve_sums(lower, sums, upper, f)

    def solve_transposed(g: jax.Array) -> jax.Array:
        f = g / volumes
        if not keeps_level:
            return volumes * solve(f)
        # The constant that is nearest to f / s, and smaller: f - a s then has the signs of f.
        ratio = f / sums
        level = jnp.maximum(ratio.min(axis, keepdims=True), 0)
        level = level + jnp.minimum(ratio.max(axis, keepdims=True), 0)
        return volumes * (level + solve(f - sums * level))

    # Without `checkpoint` the reverse pass would keep x shifted by a row, too.
    @partial(jax.checkpoint, prevent_cse=False)
    def product(conductance: jax.Array, sums: jax.Array, x: jax.Array) -> jax.Array:
        return sums * x - flux_into(conductance, x, weights, axis)

    return jax.lax.custom_linear_solve(
        lambda x: product(conductance, sums, x),
        jnp.broadcast_to(rhs, shape),
        lambda _, f: solve(f),
        lambda _, g: solve_transposed(g),
    )
