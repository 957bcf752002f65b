"""A step of heat conduction by the array operations of a library that differentiates them.

With K T = -dt (div k grad T) by central differences on nodes that include the boundary, a step of
Douglas and Gunn solves for differences along one axis at a time,

    (1 + K_x/2) D_1 = dt q - (K_x + K_y + K_z) T,
    (1 + K_y/2) D_2 = D_1,   (1 + K_z/2) D_3 = D_2,   T+ = T + D_3.

In one dimension this is the method of Crank and Nicolson, computed from (1 + K/2) w = T + dt q / 2
and T+ = 2 w - T without a product with K; in two dimensions the solution is that of
Peaceman and Rachford. Of second order in time and space, without growth for any dt if there
are at most two axes or k is constant; see _growth.py. Source: J. Douglas and J. E. Gunn,
Numerische Mathematik 6 (1964) 428-453. About 11 operations per node and axis for each solve, and 4
for each difference.

The matrices are given by their couplings and row sums, which are 1 but for sides with exchange.
Nothing is lost where the couplings are large compared with 1. Rows of volumes v are multiplied by
v: they are then symmetric.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._boundary import PERIODIC, Dirichlet, Neumann, Robin, boundary_by_side
from .._checks import require, require_broadcast
from .._domain import AXES, per_axis
from .._xp import ArrayLibrary
from ._sides import check_coefficient, check_nodes, coupling_of

Array = Any

# Solves v (1 + K/2) D = rhs for the couplings of K/2, the row sums and rhs; then axis and periodic.
Solve = Callable[..., Array]

#: Attributes of `Lines` that are arrays or None, and those that are constants.
ARRAYS = ["coupling", "exchange", "inflow"]
CONSTANTS = ["axis", "nodes", "is_periodic", "ends"]


@dataclass(frozen=True)
class Lines:
    """The balances of the nodes of lines along one axis: the rows of v K, which is symmetric.

    The volume v of a node is 1, or 1/2 at sides with fluxes.
    """

    coupling: Array  # of node i to node i + 1, at least 0: n - 1 rows or, if periodic, n
    exchange: Array | None  # Robin: addition to the diagonal
    inflow: Array | None  # Neumann and Robin: term added to -v K T
    axis: int  # negative
    nodes: int
    is_periodic: bool
    ends: tuple[float, float]  # v, or 0 if the value is given

    @property
    def has_given(self) -> bool:
        """Whether the values of nodes are given."""
        return 0.0 in self.ends

    def given(self, library: ArrayLibrary) -> Array:
        """Return whether the value of the node is given: shape (n, 1, ...)."""
        return self._numbers(library, self.ends) == 0

    def volumes(self, library: ArrayLibrary) -> Array:
        """Return the volumes v, or 1 where the value is given: shape (n, 1, ...)."""
        first, last = self.ends
        return self._numbers(library, (first or 1.0, last or 1.0))

    def times_volumes(self, library: ArrayLibrary, array: Array) -> Array:
        """Return an array times the volumes."""
        return array * self.volumes(library) if 0.5 in self.ends else array

    def _numbers(self, library: ArrayLibrary, ends: tuple[float, float]) -> Array:
        """Return `ends` at the first and the last node and 1 between them: shape (n, 1, ...)."""
        ones = library.ones(self.nodes, self.coupling)
        first, inner, last = ends[0] * ones[:1], ones[1:-1], ends[1] * ones[:1]
        line = library.xp.concatenate((first, inner, last), 0)
        return line.reshape((self.nodes,) + (1,) * (-1 - self.axis))

    def heat_into(self, library: ArrayLibrary, t: Array) -> Array:
        """Return -v K T with the inflow."""
        into = library.flux_into(self.coupling, t, self.axis, periodic=self.is_periodic)
        into = into if self.exchange is None else into - self.exchange * t
        return into if self.inflow is None else into + self.inflow

    def from_given(self, library: ArrayLibrary, t: Array | None = None) -> Array:
        """Return half the coupling to neighbours with given values; with T, times these values."""
        found: Any = 0
        for place, end in zip((0, -1), self.ends, strict=True):
            if not end:
                row = library.end_row(self.coupling, place, self.axis) / 2
                row = row if t is None else row * library.end_row(t, place, self.axis)
                before, after = (1, self.nodes - 2) if place == 0 else (self.nodes - 2, 1)
                found = found + library.padded(row, before, after, self.axis)
        return found

    def solve(self, library: ArrayLibrary, solve: Solve, rhs: Array) -> Array:
        """Solve v (1 + K/2) D = rhs, where D = rhs, which may be 0, at given values.

        The coupling of other nodes to these is left out: what a node loses is in its row sum.
        """
        coupling = self.coupling / 2
        if self.has_given:
            given = self.given(library)
            coupling = library.xp.where(given[1:] | given[:-1], 0, coupling)
        sums = self.volumes(library) + self.from_given(library)
        sums = sums if self.exchange is None else sums + self.exchange / 2
        return solve(coupling, sums, rhs, axis=self.axis, periodic=self.is_periodic)


def problem_of(
    library: ArrayLibrary,
    u: Array,
    dt: Any,
    spacing: Any,
    diffusivity: Any,
    boundary: Any,
    source: Any,
) -> tuple[Array, Array, list[Lines]]:
    """Return T with the values of Dirichlet sides, dt times the source, and the rows of each axis.

    The arguments are those of `heat_step`, with an array of the library for u.
    """
    require(1 <= u.ndim <= len(AXES), "u must have 1, 2 or 3 axes", u.ndim)
    names = AXES[: u.ndim]
    steps = per_axis("spacing", spacing, names)
    sides = boundary_by_side(boundary, names)
    check_nodes("u", u.shape, sides)
    dt = _coefficient(library, "dt", dt, (), u)
    lines = []
    for k, name in enumerate(names):
        of_axis = diffusivity[name] if isinstance(diffusivity, Mapping) else diffusivity
        ends = sides[f"{name}-"], sides[f"{name}+"]
        u = _with_values(library, u, -1 - k, ends)
        of_axis = _coefficient(library, "diffusivity", of_axis, u.shape, u)
        lines.append(_lines(library, u, -1 - k, of_axis, dt, steps[k], ends))
    return u, dt * _fitted(library, "source", source, u.shape, u), lines


def step(
    library: ArrayLibrary, solve: Solve, t: Array, change: Array, lines: Sequence[Lines]
) -> Array:
    """Return T at the end of the step; `change`: dt times the source."""
    if len(lines) == 1:
        return _step_of_line(library, solve, t, change, lines[0])
    for line in lines:
        change = line.times_volumes(library, change)
    # Along x last: the loop of XLA on the CPU takes three times as long in the other order.
    for line in reversed(lines):
        into = line.heat_into(library, t)
        for other in lines:
            into = into if other is line else other.times_volumes(library, into)
        change = change + into
    given = [line.given(library) for line in lines if line.has_given]
    if given:
        is_given = given[0]
        for one in given[1:]:
            is_given = is_given | one
        change = library.xp.where(is_given, 0, change)
    for line in lines:
        change = line.solve(library, solve, change)
    return t + change


def _step_of_line(
    library: ArrayLibrary, solve: Solve, t: Array, change: Array, line: Lines
) -> Array:
    """Return T at the end of a step in one dimension, T + 2 (w - T).

    w is the mean of the old and the new T, of which a constant is taken out before the solve:

        v (1 + K/2) (w - a) = v (T - a) - v K a / 2 + (v dt q + inflow) / 2.

    K T, whose rounding errors grow with k dt / h^2, does not occur. The derivatives with respect
    to the constant are 0.
    """
    level = library.constant(library.end_row(t, 0, -1))
    apart = t - level
    rhs = line.times_volumes(library, apart + change / 2) + line.from_given(library, apart)
    for term in (line.inflow, None if line.exchange is None else -line.exchange * level):
        rhs = rhs if term is None else rhs + term / 2
    if line.has_given:
        rhs = library.xp.where(line.given(library), apart, rhs)
    return t + 2 * (line.solve(library, solve, rhs) - apart)


def _fitted(
    library: ArrayLibrary, name: str, value: Any, shape: Sequence[int], like: Array
) -> Array:
    """Return an argument like u, or raise ValueError if it does not broadcast to a shape."""
    array = library.like(name, value, like)
    require_broadcast(name, array.shape, shape)
    return array


def _coefficient(
    library: ArrayLibrary, name: str, value: Any, shape: Sequence[int], like: Array
) -> Array:
    """Return a coefficient of the equation as `_fitted` does, but real if it is."""
    array = _fitted(library, name, value, shape, like)
    return array if library.is_complex(value) else array.real


def _with_values(library: ArrayLibrary, t: Array, axis: int, ends: tuple[Any, Any]) -> Array:
    """Return T with the values that Dirichlet sides give."""
    side = _side(t, axis)
    for place, end in zip((0, -1), ends, strict=True):
        if isinstance(end, Dirichlet):
            values = _fitted(library, _boundary(axis), end.value, side, t)
            t = library.put(t, t.ndim + axis, place, values)
    return t


def _lines(
    library: ArrayLibrary,
    t: Array,
    axis: int,
    k: Array,
    dt: Array,
    h: float,
    ends: tuple[Any, Any],
) -> Lines:
    """Return the rows of K along an axis for conditions at its lower and its upper end."""
    nodes, is_periodic = t.shape[axis], ends[0] == PERIODIC
    shape = [1] * (t.ndim - k.ndim) + list(k.shape)
    k = k.reshape(tuple(shape))
    shape[axis] = nodes
    k = library.xp.broadcast_to(k, tuple(shape))
    before = k if is_periodic else library.rows(k, 0, nodes - 1, axis)
    after = library.shifted(k, -1, axis) if is_periodic else library.rows(k, 1, nodes, axis)
    coupling = coupling_of(dt / h**2, before, after)
    if is_periodic:
        return Lines(coupling, None, None, axis, nodes, True, (1.0, 1.0))

    exchange = inflow = None
    for widths, end in zip(((0, nodes - 1), (nodes - 1, 0)), ends, strict=True):
        if isinstance(end, Dirichlet):
            continue
        coefficient, flow = _exchange_and_flow(library, end, t, axis)
        if coefficient is not None:
            row = (dt / h * coefficient).reshape((1,) * -axis)
            row = library.padded(row, *widths, axis)
            exchange = row if exchange is None else exchange + row
        row = library.padded(dt / h * flow, *widths, axis)
        inflow = row if inflow is None else inflow + row
    # The cells at sides with fluxes are half as wide.
    first, last = (0.0 if isinstance(end, Dirichlet) else 0.5 for end in ends)
    return Lines(coupling, exchange, inflow, axis, nodes, False, (first, last))


def _exchange_and_flow(
    library: ArrayLibrary, end: Neumann | Robin, t: Array, axis: int
) -> tuple[Array | None, Array]:
    """Return the coefficient of a Robin side, and the inflow at T = 0 with one row along the axis.

    The row has the axes of the side if the inflow has axes, and otherwise those after `axis`.
    """
    name, side = _boundary(axis), _side(t, axis)
    if isinstance(end, Neumann):
        coefficient, flow = None, _fitted(library, name, end.flux, side, t)
    else:
        check_coefficient(getattr(end.coefficient, "shape", ()))
        coefficient = _coefficient(library, name, end.coefficient, (), t)
        flow = coefficient * _fitted(library, name, end.ambient, side, t)
    if not flow.ndim:
        return coefficient, flow.reshape((1,) * -axis)
    row = list(t.shape)
    row[axis] = 1
    return coefficient, library.xp.broadcast_to(flow, side).reshape(tuple(row))


def _side(t: Array, axis: int) -> tuple[int, ...]:
    """Return the shape of the sides at the ends of an axis."""
    side = list(t.shape)
    del side[axis]
    return tuple(side)


def _boundary(axis: int) -> str:
    """Return the name of the sides of an axis, for messages; `axis` is negative."""
    return f"boundary {AXES[-1 - axis]}"
