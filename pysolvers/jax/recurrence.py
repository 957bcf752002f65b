"""Linear recurrences as functions of JAX; the formulas of _recurrence/differentiable.py."""

from functools import partial
from typing import Any

import jax
from jax import numpy as jnp
from jax.typing import ArrayLike

from .._checks import require_flag
from .._recurrence.differentiable import lines_of, matvec
from ._call import by_platform, recur_lines, solve_lines
from ._mesh import equally_varying
from ._xp import XP
from .tridiagonal import batched

__all__ = ["linear_recurrence"]


def linear_recurrence(
    a: ArrayLike,
    b: ArrayLike,
    *,
    initial: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    second: ArrayLike | None = None,
    axis: int = -1,
    reverse: bool = False,
) -> jax.Array:
    r"""Compute many linear recurrences of first or second order, as a function of JAX.

    .. math:: x_t = a_t x_{t-1} + c_t x_{t-2} + b_t, \quad 0 \le t < n.

    Parameters
    ----------
    a, b : array_like
        As in `pysolvers.linear_recurrence`.
    initial, second, axis, reverse
        As in `pysolvers.linear_recurrence`.

    Returns
    -------
    jax.Array, shape of the broadcast operands
        The values x.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.linear_recurrence`.

    Notes
    -----
    The function can be used under all transformations of JAX, as
    `pysolvers.jax.solve_tridiagonal`, and takes the place of `jax.lax.scan` and
    `jax.lax.associative_scan` with these equations. With the cotangent g of x the reverse pass is
    the recurrence with the transposed matrix, from the last entry to the first,

    .. math:: \lambda_t = g_t + a_{t+1} \lambda_{t+1} + c_{t+2} \lambda_{t+2}, \quad
        \bar b = \lambda, \quad \bar a_t = \lambda_t x_{t-1}, \quad \bar c_t = \lambda_t x_{t-2},

    summed over the axes along which an operand broadcasts. On a CPU and on a CUDA device XLA calls
    the kernels; on other platforms a recurrence of first order is a solve of
    `pysolvers.jax.solve_tridiagonal`, one of second order a `jax.lax.scan`.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import linear_recurrence
    >>> b = jnp.array([1.0, 0.0, 0.0, 0.0])
    >>> print(linear_recurrence(0.5, b))
    [1.    0.5   0.25  0.125]
    >>> print(jax.grad(lambda a: linear_recurrence(a, b)[-1])(0.5))
    0.75
    """
    require_flag("reverse", reverse)
    lines = lines_of(XP, a, b, initial=initial, second=second, axis=axis, reverse=bool(reverse))
    shape = lines.shape
    if 0 in shape.full:
        return jnp.zeros(shape.full, lines.b.dtype)
    place = shape.axis - len(shape.full)
    operands = [
        jnp.moveaxis(_full(line, shape), -1, place) for line in (*lines.coefficients, lines.b)
    ]
    return _recur(*operands, axis=place, reverse=bool(reverse), full=shape.full)


def _full(line: jax.Array, shape: Any) -> jax.Array:
    """Return a line with all axes of a call."""
    return line.reshape((1,) * (len(shape.full) - line.ndim) + line.shape)


@partial(jax.jit, static_argnames=("axis", "reverse", "full"))
def _recur(*operands: jax.Array, axis: int, reverse: bool, full: tuple[int, ...]) -> jax.Array:
    """Compute for operands of one dtype with all axes."""
    *coefficients, b = equally_varying(list(operands))
    solve, solve_transposed = (
        batched(partial(_compute, axis=axis, reverse=reverse, transposed=t)) for t in (False, True)
    )

    def multiply(x: jax.Array, *coefficients: jax.Array) -> jax.Array:
        lines = [jnp.moveaxis(a, axis, -1) for a in coefficients]
        product = matvec(XP, lines, jnp.moveaxis(x, axis, -1), reverse=reverse)
        return jnp.moveaxis(product, -1, axis)

    # Without `checkpoint` the reverse pass would keep x shifted by a row, too.
    plain = jax.checkpoint(multiply, prevent_cse=False)
    return jax.lax.custom_linear_solve(
        lambda x: plain(x, *coefficients),
        jnp.broadcast_to(b, full),
        lambda _, b: solve(*coefficients, b),
        lambda _, b: solve_transposed(*coefficients, b),
    )


def _compute(*operands: jax.Array, axis: int, reverse: bool, transposed: bool) -> jax.Array:
    """Compute where the operands are."""
    on_host = partial(recur_lines, axis=axis, reverse=reverse, transposed=transposed)
    on_device = partial(on_host, on_device=True)
    elsewhere = partial(_elsewhere, axis=axis, reverse=reverse, transposed=transposed)
    return by_platform(*operands, cpu=on_host, cuda=on_device, default=elsewhere)


def _elsewhere(*operands: jax.Array, axis: int, reverse: bool, transposed: bool) -> jax.Array:
    """Compute by a solve of two diagonals or, of second order, by a scan."""
    *coefficients, b = operands
    one = jnp.ones((1,) * b.ndim, b.dtype)
    if len(coefficients) == 1:
        lower, upper = -coefficients[0], jnp.zeros_like(one)
        if reverse:
            lower, upper = upper, lower
        options: dict[str, Any] = {
            "axis": axis,
            "periodic": False,
            "pivot": 1,
            "transposed": transposed,
        }
        return solve_lines(lower, one, upper, b, **options)
    shape = jnp.broadcast_shapes(*(a.shape for a in operands))
    first, second, b = (jnp.moveaxis(jnp.broadcast_to(v, shape), axis, 0) for v in operands)

    def step(state: Any, row: Any) -> Any:
        a, c, r = row
        if transposed:
            x = r + state[0]
            return (a * x + state[1], c * x), x
        x = r + a * state[0] + c * state[1]
        return (x, state[0]), x

    zero = jnp.zeros_like(b[0])
    _, x = jax.lax.scan(step, (zero, zero), (first, second, b), reverse=reverse != transposed)
    return jnp.moveaxis(x, 0, axis)
