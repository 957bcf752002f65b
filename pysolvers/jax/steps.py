"""Products and implicit steps as functions of JAX; the formulas of _steps/differentiable.py."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
from jax import numpy as jnp
from jax.tree_util import register_dataclass
from jax.typing import ArrayLike

from .._checks import integer, require
from .._lines.factor import require_broadcast
from .._row_sums import RowSums
from .._runtime.arrays import padded_shape
from .._runtime.lines import Shape
from .._steps import differentiable
from ._row_sums import solve_row_sums
from ._xp import XP, as_plain
from .tridiagonal import TridiagonalFactor, factor_tridiagonal, solve_tridiagonal

__all__ = [
    "ThetaFactor",
    "factor_theta",
    "implicit_diffusion",
    "residual",
    "theta_step",
    "tridiagonal_matvec",
]


def tridiagonal_matvec(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    x: ArrayLike,
    *,
    axis: int = -1,
    periodic: bool = False,
) -> jax.Array:
    r"""Multiply batched tridiagonal matrices by vectors along one axis, as a function of JAX.

    .. math:: y_i = l_i x_{i-1} + d_i x_i + u_i x_{i+1}, \quad 0 \le i < n.

    Parameters
    ----------
    lower, diag, upper, x : array_like
        As in `pysolvers.tridiagonal_matvec`; `diag` can be `pysolvers.RowSums`.
    axis : int, default: -1
        Axis of the vectors.
    periodic : bool, default: False
        Whether ``lower[0]`` multiplies ``x[n - 1]`` and ``upper[n - 1]`` multiplies ``x[0]``.

    Returns
    -------
    jax.Array, shape of the broadcast operands
        The products. Sums of elements, which XLA compiles to one pass, on any device.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.jax.solve_tridiagonal`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import tridiagonal_matvec
    >>> print(tridiagonal_matvec(-1.0, 2.0, -1.0, jnp.array([1.0, 2.0, 4.0])))
    [ 0. -1.  6.]
    """
    return differentiable.matvec(XP, lower, diag, upper, x, axis=axis, periodic=periodic)


def residual(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    x: ArrayLike,
    rhs: ArrayLike,
    *,
    axis: int = -1,
    periodic: bool = False,
) -> jax.Array:
    r"""Return the residuals b - A x of batched tridiagonal systems, as a function of JAX.

    Parameters
    ----------
    lower, diag, upper, x, rhs : array_like
        As in `pysolvers.residual`.
    axis, periodic
        As in `tridiagonal_matvec`.

    Returns
    -------
    jax.Array, shape of the broadcast operands
        The residuals.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.jax.solve_tridiagonal`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import residual
    >>> print(residual(-1.0, 2.0, -1.0, jnp.array([1.0, 1.0, 1.0]), jnp.array([1.0, 0.0, 2.0])))
    [0. 0. 1.]
    """
    return differentiable.residual(XP, lower, diag, upper, x, rhs, axis=axis, periodic=periodic)


def _until_same(advance: Callable[[Any], Any], first: Any, most: int) -> Any:
    """Advance until nothing changes, at most a number of times."""

    def differs(state: tuple[Any, Any, Any]) -> Any:
        return (state[0] < most) & jnp.any(state[1] != state[2])

    def next_state(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        return state[0] + 1, state[2], advance(state[2])

    return jax.lax.while_loop(differs, next_state, (0, first, advance(first)))[2]


def theta_step(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    u: ArrayLike,
    *,
    dt: ArrayLike,
    theta: float = 0.5,
    source: ArrayLike | None = None,
    axis: int = -1,
    periodic: bool = False,
    pivot: bool | None = None,
    where: ArrayLike | None = None,
    projected: ArrayLike | None = None,
) -> jax.Array:
    r"""Make an implicit step of :math:`u_t = A u + s`, as a function of JAX.

    .. math:: (I - \theta\, dt\, A)\, x = (I + (1 - \theta)\, dt\, A)\, u + dt\, s.

    Parameters
    ----------
    lower, diag, upper, u : array_like
        As in `pysolvers.theta_step`.
    dt : float or array without axes
        Length of the step; it can be traced, and differentiated.
    theta : float, default: 0.5
        Greater than 0 and at most 1; a number.
    source, axis, periodic, pivot, where
        As in `pysolvers.theta_step`.
    projected : array_like, optional
        Lower bound of x, broadcastable with `u`, for real operands; see Notes.

    Returns
    -------
    jax.Array, shape of the broadcast operands
        The values at the time t + dt; NaN in systems with a singular matrix.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.jax.solve_tridiagonal`, and if `theta` is not in its range.

    Notes
    -----
    The function can be used under all transformations of JAX, as
    `pysolvers.jax.solve_tridiagonal`. It writes the three diagonals of :math:`I - \theta\, dt\, A`,
    3 words per unknown (none of one matrix) more than `pysolvers.theta_step` moves. The gradients
    outside `where` are those of the identity.

    With `projected` the step solves the complementarity problem of `pysolvers.theta_step`, for rows
    in contact with the bound anywhere, by the primal-dual active set method ([1]_): solves, until
    the rows in contact do not change. The solution is that of the problem if :math:`I - \theta\,
    dt\, A` is an M-matrix. In contact the gradient is that of the bound, elsewhere that of the
    equations.

    References
    ----------
    .. [1] M. Hintermueller, K. Ito and K. Kunisch, "The primal-dual active set strategy as a
       semismooth Newton method", SIAM J. Optim. 13 (2002) 865-888.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import theta_step
    >>> inner = jnp.array([0.0, 1.0, 1.0, 1.0, 0.0])
    >>> u = jnp.array([0.0, 0.0, 0.0, 0.0, 4.0])
    >>> print(theta_step(inner, -2 * inner, inner, u, dt=1.0, theta=1).round(3))
    [0.    0.19  0.571 1.524 4.   ]
    """
    return differentiable.step(
        XP,
        partial(solve_tridiagonal, pivot=pivot),
        lower,
        diag,
        upper,
        u,
        dt=dt,
        theta=theta,
        source=source,
        axis=axis,
        periodic=periodic,
        where=where,
        projected=projected,
        repeat=_until_same,
    )


@register_dataclass
@dataclass(frozen=True)
class ThetaFactor:
    r"""Matrices :math:`I - \theta\, dt\, A`, as a pytree of JAX; see `factor_theta`.

    Attributes
    ----------
    factor : TridiagonalFactor
        The matrices, with the mask.
    dt : jax.Array
        Length of the steps.
    theta : float
        The argument of `factor_theta`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import factor_theta
    >>> inner = jnp.array([0.0, 1.0, 1.0, 0.0])  # the values at the ends stay
    >>> rod = factor_theta(inner, -2 * inner, inner, dt=0.1, theta=1.0)
    >>> print(rod.step(jnp.array([1.0, 0.0, 0.0, 0.0]), count=1000).round(3))
    [1.    0.667 0.333 0.   ]
    """

    factor: TridiagonalFactor
    dt: jax.Array
    theta: float = field(metadata={"static": True})

    def step(self, u: ArrayLike, source: ArrayLike | None = None, *, count: int = 1) -> jax.Array:
        """Make steps as `theta_step` makes them.

        Parameters
        ----------
        u : array_like, shape (..., n, ...)
            The values at the time t, of a shape as the right-hand sides of
            `TridiagonalFactor.solve`.
        source : array_like, optional
            The source s, per time, the same in all steps; broadcastable with `u`.
        count : int, default: 1
            Number of steps, made by ``scan``: reverse mode keeps the values of each.

        Returns
        -------
        jax.Array, shape of `u`, or of the matrices if `u` has one dimension
            The values at the time t + count dt; NaN in systems with a singular matrix.

        Raises
        ------
        TypeError
            If `u` or `source` has a dtype that `theta_step` does not take.
        ValueError
            If `u` does not have n rows, `source` does not broadcast, or `count` is less than 1.
        """
        steps = integer("count", count)
        require(steps >= 1, "count must be at least 1", count)
        factor, given = self.factor, {"u": u} if source is None else {"u": u, "source": source}
        arrays = {name: as_plain(name, value) for name, value in given.items()}
        kind = jnp.result_type(*arrays.values(), factor.lower)
        along = factor._axis_of("u", arrays["u"])
        struct = jax.eval_shape(factor.solve, arrays["u"].astype(kind))
        shape = struct.shape
        axis = along % len(shape)
        for name, array in arrays.items():
            require_broadcast("ThetaFactor.step", name, array, Shape(shape, axis, ()))
            padded = array.reshape(padded_shape(array.shape, axis, len(shape)))
            arrays[name] = padded.astype(struct.dtype)
        values = jnp.broadcast_to(arrays["u"], shape)

        def repeat(advance: Callable[[jax.Array], jax.Array], first: jax.Array) -> jax.Array:
            """Advance once for each step."""
            if steps == 1:
                return advance(first)
            return jax.lax.scan(lambda x, _: (advance(x), None), first, None, length=steps)[0]

        return differentiable.steps_by_factor(
            XP,
            factor.solve,
            values,
            arrays.get("source"),
            factor._inside(along, len(shape)),
            dt=self.dt,
            theta=self.theta,
            repeat=repeat,
            beyond=lambda x, y, gain: x + gain * (y - x),
        )


def factor_theta(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    *,
    dt: ArrayLike,
    theta: float = 0.5,
    axis: int = -1,
    rows: int | None = None,
    periodic: bool = False,
    pivot: bool | None = None,
    where: ArrayLike | None = None,
) -> ThetaFactor:
    r"""Prepare the matrices of `theta_step`, for many steps of :math:`u_t = A u + s`.

    Parameters
    ----------
    lower, diag, upper : array_like, shapes that broadcast
        The diagonals of A, in 1 / time. `diag` can be `pysolvers.RowSums`.
    dt : float or array without axes
        Length of the steps; it can be traced, and differentiated.
    theta : float, default: 0.5
        Greater than 0 and at most 1; a number.
    axis, rows, periodic, pivot, where
        As in `factor_tridiagonal`, for the matrices :math:`I - \theta\, dt\, A`.

    Returns
    -------
    ThetaFactor
        A pytree with the method ``step``. It can be an argument or a result of functions that JAX
        transforms, and a loop can carry it.

    Raises
    ------
    TypeError, ValueError
        As `factor_tridiagonal`, and if `theta` is not in its range.

    Notes
    -----
    A step is a solve with the pytree of `factor_tridiagonal` and, with theta < 1, an extrapolation.
    The eliminated matrix is not kept between calls. The gradients outside `where` are those of the
    identity.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import factor_theta
    >>> u = jnp.array([0.0, 1.0, 0.0])
    >>> def last(k):
    ...     return factor_theta(k, -2 * k, k, dt=0.1, rows=3).step(u, count=20)[1]
    >>> print(f"{jax.jit(last)(1.0):.4f} {jax.grad(last)(1.0):.4f}")
    0.1554 -0.1852
    """
    found = differentiable.theta_matrix(
        *(XP, lower, diag, upper, where),
        dt=dt,
        theta=theta,
        axis=axis,
        rows=rows,
        periodic=bool(periodic),
    )
    options: dict[str, Any] = {"rows": rows, "periodic": periodic, "pivot": pivot}
    factor = factor_tridiagonal(found.lower, found.diag, found.upper, axis=found.axis, **options)
    if found.inside is not None:
        factor = replace(factor, where=found.inside)
    return ThetaFactor(factor, as_plain("dt", dt), float(theta))


def implicit_diffusion(
    T: ArrayLike,
    K: ArrayLike,
    dz: ArrayLike,
    dt: ArrayLike,
    *,
    axis: int,
    flux_first: ArrayLike | None = None,
    flux_last: ArrayLike | None = None,
    value_first: ArrayLike | None = None,
    value_last: ArrayLike | None = None,
    source: ArrayLike | None = None,
    theta: float = 1,
    where: ArrayLike | None = None,
) -> jax.Array:
    r"""Make an implicit step of diffusion between layers, as a function of JAX.

    Parameters
    ----------
    T, K, dz : array_like
        As in `pysolvers.implicit_diffusion`, which has the equations.
    dt : float or array without axes
        Length of the step; it can be traced, and differentiated.
    axis, flux_first, flux_last, value_first, value_last, source, where
        As in `pysolvers.implicit_diffusion`.
    theta : float, default: 1
        Greater than 0 and at most 1; a number.

    Returns
    -------
    jax.Array, shape of T and all that broadcasts with it
        The values at the time t + dt.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.implicit_diffusion`.

    Notes
    -----
    The rows are solved by `pysolvers.RowSums`, and the sum of dz T over a column is conserved to
    rounding.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import implicit_diffusion
    >>> T = implicit_diffusion(jnp.array([3.0, 0.0, 0.0]), 1.0, 1.0, 1e6, axis=0)
    >>> print(T.round(3))
    [1. 1. 1.]
    """
    return differentiable.diffusion(
        XP,
        solve_row_sums,
        T,
        K,
        dz,
        dt,
        axis=axis,
        flux_first=flux_first,
        flux_last=flux_last,
        value_first=value_first,
        value_last=value_last,
        source=source,
        theta=theta,
        where=where,
    )
