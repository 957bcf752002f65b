"""A step of heat conduction by alternating directions, as a function of JAX.

The formulas are those of heat/_differentiable.py.
"""

from functools import partial
from typing import Any

import jax
from jax import numpy as jnp
from jax.tree_util import register_dataclass
from jax.typing import ArrayLike

from ..heat._differentiable import ARRAYS, CONSTANTS, Lines, problem_of, step
from ._row_sums import solve_row_sums
from ._xp import XP, as_plain
from .tridiagonal import solve_tridiagonal

__all__ = ["heat_step"]


register_dataclass(Lines, data_fields=ARRAYS, meta_fields=CONSTANTS)


def _solve(
    coupling: jax.Array, sums: jax.Array, rhs: jax.Array, *, axis: int, periodic: bool
) -> jax.Array:
    """Solve with a matrix given by couplings and row sums, of which any can be complex."""
    if jnp.iscomplexobj(coupling) or jnp.iscomplexobj(sums):
        # Row sums are for real matrices; a diagonal loses the 1 where couplings are large.
        below = XP.shifted(coupling, 1, axis) if periodic else XP.padded(coupling, 1, 0, axis)
        above = coupling if periodic else XP.padded(coupling, 0, 1, axis)
        options: dict[str, Any] = {"axis": axis, "periodic": periodic, "pivot": False}
        return solve_tridiagonal(-below, sums + below + above, -above, rhs, **options)
    solve = partial(solve_row_sums, axis=axis, periodic=periodic, keeps_level=True)
    if not jnp.iscomplexobj(rhs):
        return solve(coupling, sums, rhs)
    x = solve(coupling, sums, jnp.stack([rhs.real, rhs.imag]))
    return jax.lax.complex(x[0], x[1])


_step = jax.jit(partial(step, XP, _solve))


def heat_step(
    u: ArrayLike,
    *,
    dt: ArrayLike,
    spacing: Any,
    diffusivity: Any = 1.0,
    boundary: Any = 0.0,
    source: ArrayLike = 0.0,
) -> jax.Array:
    r"""Advance heat conduction by one step of alternating directions, as a function of JAX.

    .. math:: T_t = \nabla \cdot (k \nabla T) + q

    on a line, a rectangle or a box, by central differences on nodes that include the boundary.

    Parameters
    ----------
    u : array_like, shape (nx,), (ny, nx) or (nz, ny, nx)
        Temperature at the beginning of the step. Batches: `jax.vmap`.
    dt : float
        Time step; positive.
    spacing : float, sequence or mapping
        Distance between the nodes: one number for all axes, one for each axis in the order x,
        y, z, or a mapping with the keys ``"x"``, ``"y"``, ``"z"``.
    diffusivity : float, array_like or mapping, default: 1
        Conductivity k, positive: a number, an array that broadcasts to the shape of `u`, or a
        mapping of axes to numbers. The flux between two nodes uses the harmonic mean of their
        values.
    boundary : Dirichlet, Neumann, Robin, 'periodic', number, array or mapping, default: 0
        Boundary condition of all sides, or a mapping with the keys ``"x-"``, ``"x+"``,
        ``"y-"``, ... for one side or ``"x"``, ``"y"``, ``"z"`` for both sides of an axis, as in
        `pysolvers.HeatADI`. Values are numbers, or arrays over the nodes of the side; they are
        constant during the step, and replace those of `u` on Dirichlet sides.
    source : float or array_like, default: 0
        Heat source q in the middle of the step, broadcastable to the shape of `u`.

    Returns
    -------
    jax.Array
        Temperature at the end of the step: shape and dtype of `u`.

    Raises
    ------
    TypeError, ValueError
        If `u` has no or more than three axes, another argument is complex and `u` is not, a side is
        missing or unknown, the coefficient of a `Robin` side is an array, an array does not
        broadcast to its place, or the spacing is not positive.

    See Also
    --------
    pysolvers.HeatADI : The same steps, faster, without gradients.

    Notes
    -----
    The step is that of Douglas and Gunn [1]_, the default of `pysolvers.HeatADI` in three
    dimensions. In two dimensions its solution is that of Peaceman and Rachford up to rounding
    errors, in one dimension that of Crank and Nicolson. The numbers are those of
    ``HeatADI(..., damped_start=False)`` up to rounding errors. All arguments but `spacing` can
    be differentiated, also the values within `boundary`.

    A constant in an insulated or periodic box keeps its bits for any k and dt, and the gradient of
    its heat is exactly the volumes of the nodes. Otherwise the rounding errors of two and three
    dimensions grow with the differences between neighbours times :math:`k \, dt / h^2`: the changes
    of the axes, which can be so large, cancel in the sum. In one dimension the step and its
    gradients with respect to `u`, `source` and `boundary` have errors of a few units in the last
    place for any dt. Gradients with respect to k and dt are products of differences between
    neighbours, which decrease as dt grows: their relative error is about
    :math:`k \, dt / h^2` units in the last place.

    References
    ----------
    .. [1] J. Douglas and J. E. Gunn, "A general formulation of alternating direction
       methods", *Numerische Mathematik* 6, 428-453, 1964.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import heat_step
    >>> x = jnp.linspace(0.0, 1.0, 11)
    >>> step = lambda u, _: (heat_step(u, dt=0.05, spacing=0.1, boundary={"x-": 1.0, "x+": 0.0}), 0)
    >>> u, _ = jax.lax.scan(step, jnp.zeros(11), length=100)
    >>> print(bool(jnp.abs(u - (1 - x)).max() < 1e-5))
    True
    """
    t = as_plain("u", u)
    t = t.astype(jnp.result_type(t, float)) if t.dtype.kind in "biu" else t
    return _step(*problem_of(XP, t, dt, spacing, diffusivity, boundary, source))
