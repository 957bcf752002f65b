r"""Systems whose rows are split over the devices of a mesh axis, inside `shard_map`.

The equations are those of `distributed._ends`. Device p holds the rows 0 .. m - 1 of its part. Its
last unknown, y_p, is a separator. The interior rows 0 .. m - 2 form a system T of their own, and
give

    x_i = g_i - l_i y_{p-1} - u_i y_p,   T g = r,   T l = lower_0 e_0,   T u = upper_{m-2} e_{m-2}.

The last row and the first unknown of the next device leave a reduced system of one row per device,

    a y_{p-1} + (b - c l_0') y_p - c u_0' y_{p+1} = d - c g_0',
    a = -lower l_i,   b = diag - lower u_i,   c = upper,   d = r - lower g_i,   i = m - 2,

with l_0', u_0' and g_0' of the next device. All devices gather its entries, 7 numbers per line, 2
if all lines share a matrix, and solve it. A part of one row has no interior: x_0 is y_p, which
l_0 = g_0 = 0 and u_0 = -1 express.

Three solves with T and about 10 operations more per unknown. Matrices that are given by row sums s
keep these: with T S = s the reduced system has the row sums s_{m-1} - lower S_{m-2} - c S_0', and
there are four solves. Rows outside of a mask are those of the identity; the masks of the rows next
to the ends are gathered first. Derivatives are those of the solves
and of the gathering. Stable for diagonally dominant systems: rows are not exchanged across the
ends.

Source: Wang, ACM Trans. Math. Softw. 7 (1981) 170-183.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import numpy as jnp

from .._row_sums import RowSums


def solve_split(
    solve: Callable[..., jax.Array],
    lower: jax.Array,
    diag: jax.Array,
    upper: jax.Array,
    rhs: jax.Array,
    *,
    axis_name: str,
    periodic: bool,
    has_sums: bool = False,
    inside: jax.Array | None = None,
) -> jax.Array:
    """Solve systems of which each device holds some rows, along the last axis.

    Parameters
    ----------
    solve : callable
        The solve of one device, as `solve_tridiagonal`, along the last axis.
    lower, diag, upper, rhs : jax.Array
        The rows of this device, equally many; operands with all axes, which broadcast.
    axis_name : str
        Axis of the mesh.
    periodic : bool
        Whether the first row of all couples to the last one.
    has_sums : bool
        Whether `diag` has row sums.
    inside : jax.Array, optional
        A mask, with all axes; the result outside is `rhs`.
    """
    place = jax.lax.axis_index(axis_name)
    devices = jax.lax.psum(1, axis_name)
    if inside is not None:
        outside, rhs = rhs, jnp.where(inside, rhs, 0)
        counts = _counts(inside, axis_name, place, devices)
        lower, diag, upper = (
            jnp.where(count, a, value)
            for count, a, value in zip(counts, (lower, diag, upper), (0, 1, 0), strict=True)
        )
    if not periodic:
        lower = lower.at[..., 0].set(jnp.where(place == 0, 0, lower[..., 0]))
        upper = upper.at[..., -1].set(jnp.where(place == devices - 1, 0, upper[..., -1]))
    inner: list[Any] = [a[..., :-1] for a in (lower, diag, upper)]
    a, b, c, d = (array[..., -1] for array in (lower, diag, upper, rhs))
    if rhs.shape[-1] == 1:
        l_first, u_first, g_first = jnp.zeros_like(a), -jnp.ones_like(a), jnp.zeros_like(d)
        s_first = l_first
    else:
        zeros = jnp.zeros_like(inner[0] + inner[1] + inner[2])
        sums = jnp.broadcast_to(inner[1], zeros.shape)
        if has_sums:  # those of T are without the couplings to the separators
            own = sums.at[..., 0].add(-lower[..., 0]).at[..., -1].add(-upper[..., -2])
            inner[1] = RowSums(own, check_signs=False)
        ends = [
            zeros.at[..., 0].set(lower[..., 0]),
            zeros.at[..., -1].set(upper[..., -2]),
        ]
        l, u = solve(*inner, jnp.stack(ends))  # noqa: E741 - the names of the formulas
        g = solve(*inner, rhs[..., :-1])
        l_first, u_first, g_first = l[..., 0], u[..., 0], g[..., 0]
        s = solve(*inner, sums) if has_sums else u
        s_first, by_last = (s if has_sums else l)[..., 0], s[..., -1]
        a, b, d = -a * l[..., -1], b - a * by_last, d - a * g[..., -1]

    every = jax.lax.all_gather(
        jnp.stack(jnp.broadcast_arrays(a, b, c, s_first, u_first)), axis_name
    )
    a, b, c, l_first, u_first = jnp.moveaxis(every, 1, 0)
    d, g_first = jnp.moveaxis(
        jax.lax.all_gather(jnp.stack(jnp.broadcast_arrays(d, g_first)), axis_name), 1, 0
    )
    l_next, u_next, g_next = (jnp.roll(first, -1, 0) for first in (l_first, u_first, g_first))
    reduced = (a, b - c * l_next, -c * u_next, d - c * g_next)
    below, middle, above, right = (jnp.moveaxis(array, 0, -1) for array in reduced)
    main = RowSums(middle, check_signs=False) if has_sums else middle
    y = solve(below, main, above, right, periodic=periodic)
    before, own = (jax.lax.dynamic_index_in_dim(y, k % devices, -1) for k in (place - 1, place))
    x = own if rhs.shape[-1] == 1 else jnp.concatenate([g - l * before - u * own, own], -1)
    return x if inside is None else jnp.where(inside, x, outside)


def _counts(
    inside: jax.Array, axis_name: str, place: jax.Array, devices: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return where entries of lower, diag and upper couple rows inside."""
    ends = jax.lax.all_gather(jnp.stack([inside[..., 0], inside[..., -1]]), axis_name)
    last_before = jax.lax.dynamic_index_in_dim(ends[:, 1], (place - 1) % devices, 0, False)
    first_after = jax.lax.dynamic_index_in_dim(ends[:, 0], (place + 1) % devices, 0, False)
    before = jnp.concatenate([last_before[..., None], inside[..., :-1]], -1)
    after = jnp.concatenate([inside[..., 1:], first_after[..., None]], -1)
    return inside & before, inside, inside & after
