r"""Symmetric systems of diffusion, given by conductances and row sums, as a function of JAX.

With the conductances c_i between the rows i and i + 1 and the row sums s,

    (S x)_i = s_i x_i - (q_i - q_{i-1}),   q_i = c_i (x_{i+1} - x_i),

where c >= 0 and s >= 0, or c <= 0 and s <= 0. The backends solve with the off-diagonals -c and s
without subtractions of matrix entries (csrc/include/pysolvers.h, PS_ROW_SUMS), so that no ratio of
s to c loses digits. Rows of volumes v, whose matrix is S divided by v, become S by a multiplication
of s and of the right-hand side by v. S is its own transpose: with y = S^-1 g, the gradients with
respect to the right-hand side, s and c are those of the products above, y_i, -y_i x_i and
(y_{i+1} - y_i) (x_i - x_{i+1}).

Unless S is periodic, both off-diagonals are one array of n - 1 rows.
"""

from functools import partial

import jax
from jax import numpy as jnp

from .._runtime.backends import require
from ._call import solve_lines
from ._mesh import equally_varying
from ._xp import XP
from .tridiagonal import batched


def solve_row_sums(
    conductance: jax.Array,
    sums: jax.Array,
    rhs: jax.Array,
    *,
    axis: int,
    periodic: bool,
    keeps_level: bool = False,
) -> jax.Array:
    """Solve systems along an axis; all arguments can be differentiated.

    Parameters
    ----------
    conductance, sums, rhs : jax.Array
        c, s and right sides: real, of one dtype. They broadcast; `rhs` has all axes. s and `rhs`
        have n rows, c has n - 1 or, if `periodic`, n.
    axis : int
        Axis of the systems, negative.
    periodic : bool
        As in `solve_tridiagonal`.
    keeps_level : bool
        Whether gradients g = a s with a number a give y = a without rounding errors, for one more
        pass over g; the sums must not be zero.
    """
    if 0 in rhs.shape:
        return rhs
    conductance, sums = (
        a.reshape((1,) * (rhs.ndim - a.ndim) + a.shape) for a in (conductance, sums)
    )
    return _solve(conductance, sums, rhs, axis, periodic, keeps_level)


@partial(jax.jit, static_argnums=(3, 4, 5))
def _solve(
    conductance: jax.Array,
    sums: jax.Array,
    rhs: jax.Array,
    axis: int,
    periodic: bool,
    keeps_level: bool,
) -> jax.Array:
    """Solve by one differentiable operation, which is its own transpose."""
    shape = _with_rows(
        jnp.broadcast_shapes(_with_rows(conductance.shape, 1, axis), sums.shape, rhs.shape),
        rhs.shape[axis],
        axis,
    )
    conductance, sums, rhs = equally_varying([conductance, sums, rhs])
    never = require("cpu").PIVOTS["never"]
    options = {"axis": axis, "periodic": periodic, "pivot": never, "has_sums": True}
    solve_sums = batched(partial(solve_lines, **options))
    upper = -conductance
    lower = XP.shifted(upper, 1, axis) if periodic else upper

    def solve(f: jax.Array) -> jax.Array:
        return solve_sums(lower, sums, upper, f)

    def solve_transposed(g: jax.Array) -> jax.Array:
        """Solve with the transpose, the same matrix; a constant level of g is solved apart."""
        if not keeps_level:
            return solve(g)
        # The constant that is nearest to g / s, and smaller: g - a s then has the signs of g.
        ratio = g / sums
        level = jnp.maximum(ratio.min(axis, keepdims=True), 0)
        level = level + jnp.minimum(ratio.max(axis, keepdims=True), 0)
        return level + solve(g - sums * level)

    # Without `checkpoint` the reverse pass would keep differences of x, too.
    @partial(jax.checkpoint, prevent_cse=False)
    def product(conductance: jax.Array, sums: jax.Array, x: jax.Array) -> jax.Array:
        """Return A x, in which a constant x has exactly the row sums."""
        return sums * x - XP.flux_into(conductance, x, axis, periodic=periodic)

    return jax.lax.custom_linear_solve(
        lambda x: product(conductance, sums, x),
        jnp.broadcast_to(rhs, shape),
        lambda _, f: solve(f),
        lambda _, g: solve_transposed(g),
    )


def _with_rows(shape: tuple[int, ...], rows: int, axis: int) -> tuple[int, ...]:
    """Return a shape with another number of rows; `axis` is negative."""
    place = len(shape) + axis
    return (*shape[:place], rows, *shape[place + 1 :])
