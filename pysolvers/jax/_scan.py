r"""One batch of systems by operations of JAX, for platforms that have no kernel of the package.

`jax.lax.linalg.tridiagonal_solve` exchanges no rows and knows neither periodic systems nor row
sums. Here one scan eliminates downwards and one substitutes upwards, all systems at once. With row
exchanges a row is compared with the next one, as in gtsv of LAPACK, which gives the rows a third
entry v. A periodic matrix of n rows is an open one of n - 1 rows, bordered by a column c and a row
with the entries p, q, ..., e; the border is eliminated in the same scan. With the row sum t of a
row in the place of its diagonal the pivot is t - u - c, and only products are subtracted.
"""

from typing import Any

import jax
from jax import numpy as jnp


def solve_rows(
    lower: jax.Array,
    diag: jax.Array,
    upper: jax.Array,
    rhs: jax.Array,
    *,
    periodic: bool,
    pivots: bool,
    has_sums: bool,
) -> jax.Array:
    """Solve along the first axis; all operands have the shape of the result.

    Parameters
    ----------
    lower, diag, upper, rhs : jax.Array
        The diagonals, or the row sums as `diag`, and the right-hand sides. Unless `periodic`,
        ``lower[0]`` and ``upper[-1]`` are not used.
    periodic : bool
        Whether they are the corner entries.
    pivots : bool
        Whether neighbouring rows are exchanged.
    has_sums : bool
        Whether `diag` has the row sums.
    """
    n = len(rhs)
    if n == 1:
        total = diag if has_sums or not periodic else lower + diag + upper
        return _marked(rhs / total, total == 0)
    m = n - 1 if periodic else n
    zero = jnp.where(rhs == 0, rhs, 0)  # made of rhs: varies over the axes of a mesh as rhs does
    inner_upper = upper[:m].at[-1].set(zero[0])
    column, border = zero[:m], zero[:m]
    if periodic:
        column = column.at[0].add(lower[0]).at[-1].add(upper[m - 1])
        border = border.at[0].add(upper[m]).at[-1].add(lower[m])
    first = (diag[0], inner_upper[0], column[0], rhs[0])
    last = (border[0], zero[0], diag[-1], rhs[-1]) if periodic else (zero[0],) * 4
    rest = (lower[1:m], diag[1:m], inner_upper[1:], column[1:], rhs[1:m], border[1:])

    def pivot(row: Any) -> jax.Array:
        """Return the diagonal entry of a row."""
        d, u, c, _ = row
        return d - u - c if has_sums else d

    def eliminate(carry: Any, following: Any) -> Any:
        """Eliminate an unknown from the following row and from the border."""
        row, (p, q, e, g), bad = carry
        low, *new, below = following
        d, (sums, u, c, r), v = pivot(row), row, zero[0]
        d_new, u_new, c_new, r_new = new
        if pivots:
            swaps = jnp.abs(low) > jnp.abs(d)
            (d, low), (u, d_new), (v, u_new), (c, c_new), (r, r_new) = (
                (jnp.where(swaps, b, a), jnp.where(swaps, a, b))
                for a, b in ((d, low), (u, d_new), (v, u_new), (c, c_new), (r, r_new))
            )
        factor, share = low / d, p / d
        if has_sums:  # of whole rows: the entry that vanishes is part of them
            new_row = (d_new - factor * sums, u_new, c_new - factor * c, r_new - factor * r)
            e = e - share * sums
        else:
            new_row = (
                d_new - factor * u,
                u_new - factor * v,
                c_new - factor * c,
                r_new - factor * r,
            )
            e = e - share * c
        edge = (q + below - share * u, -share * v, e, g - share * r)
        return (new_row, edge, bad | (d == 0)), (d, u, v, c, r)

    (row, edge, bad), rows = jax.lax.scan(eliminate, (first, last, zero[0] != 0), rest)
    d, (sums, _, c, r), (p, _, e, g) = pivot(row), row, edge
    corner = zero[0]
    if periodic:
        if pivots:
            swaps = jnp.abs(p) > jnp.abs(d)
            (d, p), (c, e), (r, g) = (
                (jnp.where(swaps, b, a), jnp.where(swaps, a, b))
                for a, b in ((d, p), (c, e), (r, g))
            )
        share = p / d
        e = e - share * (sums if has_sums else c)
        bad = bad | (e == 0)
        corner = (g - share * r) / e
    end = (r - c * corner) / d
    bad = bad | (d == 0)

    def substitute(after: Any, row: Any) -> Any:
        """Compute an unknown from the two that follow it."""
        d, u, v, c, r = row
        x = (r - u * after[0] - v * after[1] - c * corner) / d
        return (x, after[0]), x

    _, x = jax.lax.scan(substitute, (end, zero[0]), rows, reverse=True)
    found = [x, end[None], corner[None]] if periodic else [x, end[None]]
    return _marked(jnp.concatenate(found), bad)


def _marked(x: jax.Array, bad: jax.Array) -> jax.Array:
    """Return the solutions, NaN for singular systems."""
    return jnp.where(bad, jnp.nan, x)
