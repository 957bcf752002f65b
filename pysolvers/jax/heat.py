"""A step of heat conduction by alternating directions, as a function of JAX.

With K T = -dt (div k grad T) by central differences on nodes that include the boundary, a step of
Douglas and Gunn solves for differences along one axis at a time,

    (1 + K_x/2) D_1 = dt q - (K_x + K_y + K_z) T,
    (1 + K_y/2) D_2 = D_1,   (1 + K_z/2) D_3 = D_2,   T+ = T + D_3.

In one dimension this is the method of Crank and Nicolson, computed from (1 + K/2) w = T + dt q / 2
and T+ = 2 w - T without a product with K; in two dimensions the solution is that of
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
from ._row_sums import end_row, flux_into, padded, shifted, solve_row_sums
from .tridiagonal import as_plain, solve_tridiagonal

__all__ = ["heat_step"]


@register_dataclass
@dataclass(frozen=True)
class _Lines:
    """The balances of the nodes of lines along one axis: the rows of v K, which is symmetric.

    The volume v of a node is 1, or 1/2 at sides with fluxes.
    """

    coupling: jax.Array  # of node i to node i + 1, at least 0: n - 1 rows or, if periodic, n
    exchange: jax.Array | None  # Robin: addition to the diagonal
    inflow: jax.Array | None  # Neumann and Robin: term added to -v K T
    axis: int = field(metadata={"static": True})  # negative
    nodes: int = field(metadata={"static": True})
    is_periodic: bool = field(metadata={"static": True})
    ends: tuple[float, float] = field(metadata={"static": True})  # v, or 0 if the value is given

    @property
    def given(self) -> np.ndarray:
        """Whether the value of the node is given: shape (n, 1, ...)."""
        return self._numbers(0.0) == 0

    @property
    def volumes(self) -> np.ndarray:
        """The volumes v, or 1 where the value is given: shape (n, 1, ...)."""
        return self._numbers(1.0)

    def _numbers(self, of_given: float) -> np.ndarray:
        numbers = np.ones((self.nodes,) + (1,) * (-1 - self.axis), self.coupling.real.dtype)
        for place, end in zip((0, -1), self.ends, strict=True):
            numbers[place] = end or of_given
        return numbers

    def without_k(self, t: jax.Array) -> jax.Array:
        """Return -v K T with the inflow."""
        into = flux_into(self.coupling, t, axis=self.axis, periodic=self.is_periodic)
        into = into if self.exchange is None else into - self.exchange * t
        return into if self.inflow is None else into + self.inflow

    def from_given(self, t: jax.Array | None = None) -> jax.Array:
        """Return half the coupling to neighbours with given values; with T, times these values."""
        found: Any = 0
        for place, end in zip((0, -1), self.ends, strict=True):
            if not end:
                row = end_row(self.coupling, place, self.axis) / 2
                row = row if t is None else row * end_row(t, place, self.axis)
                before, after = (1, self.nodes - 2) if place == 0 else (self.nodes - 2, 1)
                found = found + padded(row, before, after, self.axis)
        return found

    def solve(self, rhs: jax.Array) -> jax.Array:
        """Solve v (1 + K/2) D = rhs, where D = rhs, which may be 0, at given values.

        The coupling of other nodes to these is left out: what a node loses is in its row sum.
        """
        axis, periodic, coupling = self.axis, self.is_periodic, self.coupling / 2
        if self.given.any():
            coupling = jnp.where(self.given[1:] | self.given[:-1], 0, coupling)
        sums = jnp.asarray(self.volumes) + self.from_given()
        sums = sums if self.exchange is None else sums + self.exchange / 2
        if jnp.iscomplexobj(coupling) or jnp.iscomplexobj(sums):
            # Row sums are for real matrices; a diagonal loses the 1 where couplings are large.
            below = shifted(coupling, 1, axis) if periodic else padded(coupling, 1, 0, axis)
            above = coupling if periodic else padded(coupling, 0, 1, axis)
            options: dict[str, Any] = {"axis": axis, "periodic": periodic, "pivot": False}
            return solve_tridiagonal(-below, sums + below + above, -above, rhs, **options)
        solve = partial(solve_row_sums, axis=axis, periodic=periodic, keeps_level=True)
        if not jnp.iscomplexobj(rhs):
            return solve(coupling, sums, rhs)
        x = solve(coupling, sums, jnp.stack([rhs.real, rhs.imag]))
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
    if len(lines) == 1:
        return _step_of_line(t, change, lines[0])
    is_given, change = np.zeros((1,) * t.ndim, bool), _times_volumes(change, lines)
    # Along x last: the loop of XLA on the CPU takes three times as long in the other order.
    for line in reversed(lines):
        is_given = is_given | line.given
        change = change + _times_volumes(line.without_k(t), [a for a in lines if a is not line])
    if is_given.any():
        change = jnp.where(is_given, 0, change)
    for line in lines:
        change = line.solve(change)
    return t + change


def _step_of_line(t: jax.Array, change: jax.Array, line: _Lines) -> jax.Array:
    """Return T at the end of a step in one dimension, T + 2 (w - T).

    w is the mean of the old and the new T, of which a constant is taken out before the solve:

        v (1 + K/2) (w - a) = v (T - a) - v K a / 2 + (v dt q + inflow) / 2.

    K T, whose rounding errors grow with k dt / h^2, does not occur. The derivatives with respect
    to the constant are 0.
    """
    level = jax.lax.stop_gradient(end_row(t, 0, -1))
    apart = t - level
    rhs = jnp.asarray(line.volumes) * (apart + change / 2) + line.from_given(apart)
    for term in (line.inflow, None if line.exchange is None else -line.exchange * level):
        rhs = rhs if term is None else rhs + term / 2
    if line.given.any():
        rhs = jnp.where(line.given, apart, rhs)
    return t + 2 * (line.solve(rhs) - apart)


def _times_volumes(array: jax.Array, lines: Sequence[_Lines]) -> jax.Array:
    """Return an array times the volumes of nodes along these axes."""
    for line in lines:
        if (line.volumes != 1).any():
            array = array * line.volumes
    return array


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
    is_periodic = ends[0] == PERIODIC
    before = k if is_periodic else jax.lax.slice_in_dim(k, 0, nodes - 1, axis=axis)
    after = shifted(k, -1, axis) if is_periodic else jax.lax.slice_in_dim(k, 1, nodes, axis=axis)
    coupling = dt / h**2 * 2 * before * after / (before + after)
    if is_periodic:
        return _Lines(coupling, None, None, axis, nodes, True, (1.0, 1.0))

    exchange = inflow = None
    for place, end in zip((0, -1), ends, strict=True):
        if isinstance(end, Dirichlet):
            continue
        at_end = np.zeros(nodes, t.real.dtype)
        at_end[place] = 1
        of_end = at_end.reshape(along) * (dt / h)
        coefficient, flow = _exchange_and_flow(end, t, axis)
        if coefficient is not None:
            exchange = of_end * coefficient + (0 if exchange is None else exchange)
        inflow = of_end * flow + (0 if inflow is None else inflow)
    # The cells at sides with fluxes are half as wide.
    first, last = (0.0 if isinstance(end, Dirichlet) else 0.5 for end in ends)
    return _Lines(coupling, exchange, inflow, axis, nodes, False, (first, last))


def _exchange_and_flow(
    end: Neumann | Robin, t: jax.Array, axis: int
) -> tuple[jax.Array | None, jax.Array]:
    """Return the coefficient of a Robin side and the inflow at T = 0."""
    coefficient, flow = None, end.flux if isinstance(end, Neumann) else 0.0
    if isinstance(end, Robin):
        check_coefficient(jnp.shape(end.coefficient))
        flow = end.coefficient * jnp.asarray(end.ambient)
        coefficient = _coefficient(_boundary(axis), end.coefficient, (), t.dtype)
    side = list(t.shape)
    del side[axis]
    flow = _fitted(_boundary(axis), flow, tuple(side), t.dtype)
    if flow.ndim:
        flow = jnp.expand_dims(jnp.broadcast_to(flow, side), axis)
    return coefficient, flow


def _boundary(axis: int) -> str:
    """Return the name of the sides of an axis, for messages; `axis` is negative."""
    return f"boundary {AXES[-1 - axis]}"
