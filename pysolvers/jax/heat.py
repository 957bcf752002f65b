"""A step of heat conduction by alternating directions, as a function of JAX.

With K T = -dt (div k grad T) by central differences on nodes that include the boundary, a step of
Douglas and Gunn solves for differences along one axis at a time,

    (1 + K_x/2) D_1 = dt q - (K_x + K_y + K_z) T,
    (1 + K_y/2) D_2 = D_1,   (1 + K_z/2) D_3 = D_2,   T+ = T + D_3.

In one dimension this is the method of Crank and Nicolson, in two dimensions the solution is that of
Peaceman and Rachford. Of second order in time and space, without growth for any dt if there
are at most two axes or k is constant; see heat/_growth.py. Source: J. Douglas and J. E. Gunn,
Numerische Mathematik 6 (1964) 428-453. About 11 operations per node and axis for each solve, and 4
for each difference.

The matrices are given by their couplings and row sums, which are 1 but for sides with exchange: see
`_row_sums`. Nothing is lost where the couplings are large beside 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from jax.tree_util import register_dataclass
from jax.typing import ArrayLike

from .._boundary import PERIODIC, Dirichlet, Neumann, Robin
from .._checks import require, require_broadcast
from .._domain import AXES, per_axis
from ..heat._sides import boundary_by_side, check_coefficient, check_nodes
from ._row_sums import flux_into, solve_row_sums
from .tridiagonal import as_plain, solve_tridiagonal

__all__ = ["heat_step"]


@register_dataclass
@dataclass(frozen=True)
class _Lines:
    """The rows of K along one axis; its lines have n nodes."""

    coupling: jax.Array  # of node i to node i + 1, at least 0; 0 at the last node unless periodic
    exchange: jax.Array  # Robin: addition to the diagonal
    inflow: jax.Array  # Neumann and Robin: term added to -K T
    axis: int = field(metadata={"static": True})  # negative
    is_periodic: bool = field(metadata={"static": True})
    ends: tuple[float, float] = field(metadata={"static": True})  # weights of the end nodes

    @property
    def weights(self) -> np.ndarray:
        """1 / volume of each node, in units of 1 / h, or 0 if its value is given: shape (n,)."""
        weights = np.ones(self.coupling.shape[self.axis], self.coupling.real.dtype)
        weights[[0, -1]] = self.ends
        return weights

    @property
    def given(self) -> np.ndarray:
        """Whether the value of the node is given: shape (n, 1, ...)."""
        return self._along(self.weights == 0)

    def _along(self, numbers: np.ndarray) -> np.ndarray:
        return numbers.reshape((-1,) + (1,) * (-1 - self.axis))

    def without_k(self, t: jax.Array) -> jax.Array:
        """Return -K T with the inflow."""
        into = flux_into(self.coupling, t, self._along(self.weights), self.axis)
        return into - self.exchange * t + self.inflow

    def solve(self, rhs: jax.Array) -> jax.Array:
        """Solve (1 + K/2) D = rhs, where D is 0 at the given values."""
        axis, coupling = self.axis, self.coupling / 2
        weights = self._along(self.weights)
        before, after = np.roll(self.given, 1, axis), np.roll(self.given, -1, axis)
        if jnp.iscomplexobj(coupling) or jnp.iscomplexobj(self.exchange):
            # Row sums are for real matrices; the diagonal of these loses 1 beside large couplings.
            below, above = jnp.roll(coupling, 1, axis) * weights, coupling * weights
            diag = 1 + below + above + self.exchange / 2
            options: dict[str, Any] = {"periodic": self.is_periodic, "pivot": False}
            return solve_tridiagonal(-below, diag, -above, rhs, axis=axis, **options)
        # What a node loses to neighbours with given values belongs to its row sum.
        lost = jnp.where(before, jnp.roll(coupling, 1, axis), 0) + jnp.where(after, coupling, 0)
        solve = partial(
            solve_row_sums,
            volumes=1 / np.where(self.weights == 0, 1, self.weights),
            axis=axis,
            periodic=self.is_periodic,
            keeps_level=True,
        )
        inner = jnp.where(self.given | after, 0, coupling)
        sums = 1 + lost * weights + self.exchange / 2
        if not jnp.iscomplexobj(rhs):
            return solve(inner, sums, rhs)
        x = solve(inner[None], sums[None], jnp.stack([rhs.real, rhs.imag]))
        return jax.lax.complex(x[0], x[1])


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
    its heat is exactly the volumes of the nodes. Otherwise the rounding errors grow with the
    differences between neighbours times :math:`k \, dt / h^2`: the changes of the three axes, which
    can be so large, cancel in the sum.

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
    require(1 <= t.ndim <= len(AXES), "u must have 1, 2 or 3 axes", t.ndim)
    names = AXES[: t.ndim]
    steps = per_axis("spacing", spacing, names)
    sides = boundary_by_side(boundary, names)
    check_nodes("u", t.shape, sides)
    dt = _coefficient("dt", dt, (), t.dtype)
    lines = []
    for k, name in enumerate(names):
        of_axis = diffusivity[name] if isinstance(diffusivity, Mapping) else diffusivity
        ends = sides[f"{name}-"], sides[f"{name}+"]
        t = _with_values(t, -1 - k, ends)
        of_axis = _coefficient("diffusivity", of_axis, t.shape, t.dtype)
        lines.append(_lines(t, -1 - k, of_axis, dt, steps[k], ends))
    return _step(t, dt * _fitted("source", source, t.shape, t.dtype), lines)


@jax.jit
def _step(t: jax.Array, change: jax.Array, lines: Sequence[_Lines]) -> jax.Array:
    """Return T at the end of the step; `change`: dt times the source."""
    is_given = np.zeros((1,) * t.ndim, bool)
    for line in lines:
        is_given = is_given | line.given
    change = change + sum(line.without_k(t) for line in lines)
    change = jnp.where(is_given, 0, change)
    for line in lines:
        change = line.solve(change)
    return t + change


def _fitted(name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    """Return an argument as an array, or raise ValueError if it does not broadcast to a shape."""
    array = _converted(name, value, dtype)
    require_broadcast(name, array.shape, shape)
    return array


def _coefficient(name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    """Return a coefficient of the equation as `_fitted` does, but real if it is."""
    array = _fitted(name, value, shape, dtype)
    return array if jnp.iscomplexobj(value) else array.real


def _converted(name: str, value: Any, dtype: Any) -> jax.Array:
    """Return an argument with the dtype of u, or raise TypeError if it is complex and u is not."""
    array = as_plain(name, value)
    if jnp.iscomplexobj(array) and not jnp.issubdtype(dtype, jnp.complexfloating):
        raise TypeError(f"{name} must be real because u is {dtype}, got {array.dtype}")
    return array.astype(dtype)


def _with_values(t: jax.Array, axis: int, ends: tuple[Any, Any]) -> jax.Array:
    """Return T with the values that Dirichlet sides give."""
    for place, end in zip((0, -1), ends, strict=True):
        if isinstance(end, Dirichlet):
            at: list[Any] = [slice(None)] * t.ndim
            at[axis] = place
            side = t[tuple(at)].shape
            t = t.at[tuple(at)].set(_fitted(_boundary(axis), end.value, side, t.dtype))
    return t


def _lines(
    t: jax.Array, axis: int, k: jax.Array, dt: jax.Array, h: float, ends: tuple[Any, Any]
) -> _Lines:
    """Return the rows of K along an axis for conditions at its lower and its upper end."""
    nodes = t.shape[axis]
    along = [1] * t.ndim
    along[axis] = nodes
    k = k.reshape((1,) * (t.ndim - k.ndim) + k.shape)
    k = jnp.broadcast_to(k, jnp.broadcast_shapes(k.shape, tuple(along)))
    ratio = dt / h**2 * 2 * k * jnp.roll(k, -1, axis) / (k + jnp.roll(k, -1, axis))
    zero = jnp.zeros((), t.real.dtype)
    if ends[0] == PERIODIC:
        return _Lines(ratio, zero, zero, axis, True, (1.0, 1.0))

    exchange = inflow = zero
    for place, end in zip((0, -1), ends, strict=True):
        at_end = np.zeros(nodes, zero.dtype)
        at_end[place] = 1
        of_end = at_end.reshape(along) * (2 * dt / h)
        coefficient, flow = _exchange_and_flow(end, t, axis)
        exchange = exchange + of_end * coefficient
        inflow = inflow + of_end * flow
    coupling = ratio * (np.arange(nodes) < nodes - 1).reshape(along)
    # The cells at sides with fluxes are half as wide.
    first, last = (0.0 if isinstance(end, Dirichlet) else 2.0 for end in ends)
    return _Lines(coupling, exchange, inflow, axis, False, (first, last))


def _exchange_and_flow(end: Any, t: jax.Array, axis: int) -> tuple[jax.Array, jax.Array]:
    """Return the coefficient of a side and the inflow at T = 0."""
    coefficient: Any = end.coefficient if isinstance(end, Robin) else 0.0
    flow: Any = end.flux if isinstance(end, Neumann) else 0.0
    if isinstance(end, Robin):
        check_coefficient(jnp.shape(coefficient))
        flow = coefficient * jnp.asarray(end.ambient)
    side = list(t.shape)
    del side[axis]
    flow = _fitted(_boundary(axis), flow, tuple(side), t.dtype)
    if flow.ndim:
        flow = jnp.expand_dims(jnp.broadcast_to(flow, side), axis)
    return _coefficient(_boundary(axis), coefficient, (), t.dtype), flow


def _boundary(axis: int) -> str:
    """Return the name of the sides of an axis, for messages; `axis` is negative."""
    return f"boundary {AXES[-1 - axis]}"
