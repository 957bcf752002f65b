r"""Start of heat conduction with data that are not smooth: half-steps of backward Euler.

Peaceman and Rachford's and Douglas and Gunn's schemes multiply a wave with the eigenvalues a, b of
X = -dt/2 d_x k d_x and Y = -dt/2 d_y k d_y by (1 - a)(1 - b) / ((1 + a)(1 + b)), which tends to 1
for short waves and large steps: a jump between initial and boundary values leaves waves that
hardly decay. Rannacher's start makes two half-steps t = dt/2 of backward Euler instead,

    (1 + X + Y) T = T0 + t q,

which multiply the wave by 1 / (1 + a + b)^2. The matrix is an M-matrix of row sums of at least 1,
so that without source and inflow no value leaves the range of the data, for any t. The error of
the two half-steps is of order dt^2, once: the order 2 of the whole is kept.

A half-step first solves the product (1 + X)(1 + Y) T = T0 + t q (Yanenko), axis by axis; it has the
same properties, with 1 / ((1 + a)(1 + b))^2, and is the solution if the data vary along one axis
only. Otherwise the two differ by X Y T, which is not small where sides of different values meet in
a corner. Then alternating directions with a geometric sequence of parameters p, written in
differences, remove the residual R of the equation:

    (p + 1/2 + X)(p + 1/2 + Y) D = 2 p R,   T <- T + D,

whose errors fall by the factors (p - 1/2 - a)(p - 1/2 - b) / ((p + 1/2 + a)(p + 1/2 + b)). With
three axes 1/2 is 1/3, and 2 p is 2 p^2.

If k is not constant, X, Y and Z do not commute, and with three axes the corrections could grow
without bound. With the volumes W of the nodes W A = W (1 + X + Y + Z) is symmetric and positive
definite, and the energy (E, W A E) of the error E changes by (D, W A D) - 2 (D, W R). A correction
that hardly lowers it is left out.

The residual is removed in the second half-step only, which damps that of the first. Few parameters
are enough: what they leave is damped by the steps that follow.

Cost: two solves along each axis by `solve_tridiagonal`, once: 16 operations per unknown and axis,
and about 12 words; with corners about ten times as much. Unconditionally stable.

Source: R. Rannacher, Finite element solution of diffusion problems with irregular data, Numerische
Mathematik 43 (1984) 309-327; N. N. Yanenko, The method of fractional steps, Springer 1971; E. L.
Wachspress, Iterative solution of elliptic systems, Prentice-Hall 1966 (parameters).
"""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data import NodeData
from ..tridiagonal import solve_tridiagonal
from ._sides import PERIODIC, Grid, Side, coupling_of

Array = NDArray[np.float64]

_HALVES = 2
# Of the range of the data: a larger residual of a half-step is removed.
_LARGEST_RESIDUAL = 1e-5
# A correction with (D, W A D) above this multiple of (D, W R) is left out; at most 2.
_MOST_ENERGY = 1.9


class FieldOps:
    """Reductions and line solves of a field that is held as a whole; `SlabOps`: over ranks.

    Parameters
    ----------
    device, threads
        As in `solve_tridiagonal`.
    """

    def __init__(self, device: str | None, threads: int | None) -> None:
        self._device, self._threads = device, threads

    def largest(self, field: Array) -> float:
        """Return the largest magnitude of a field."""
        return max(float(field.max()), -float(field.min()))

    def range(self, fields: Sequence[Array]) -> tuple[float, float]:
        """Return the smallest and the largest value of some arrays."""
        return min(float(a.min()) for a in fields), max(float(a.max()) for a in fields)

    def total(self, field: Array) -> float:
        """Return the sum of a field."""
        return float(field.sum())

    def refresh(self, field: Array) -> None:
        """Replace the values that are copies of those of other ranks."""

    def solve(
        self, lower: Array, diag: Array, upper: Array, field: Array, axis: int, *, periodic: bool
    ) -> None:
        """Solve tridiagonal systems along an axis, with the field as right-hand sides, in place."""
        solve_tridiagonal(
            *(lower, diag, upper, field),
            axis=axis,
            periodic=periodic,
            out=field,
            device=self._device,
            threads=self._threads,
        )


def needs_damping(grid: Grid, sides: Mapping[str, Side], t: NDArray[Any], ops: FieldOps) -> bool:
    """Return whether an explicit step from these values would leave the range of the data.

    This is the case if k dt/h^2 is large and the values have a jump, for example between initial
    and boundary values: `dt` then does not resolve the fast part of the solution.

    Parameters
    ----------
    grid : Grid
        Nodes, step and conductivity.
    sides : mapping
        The sides.
    t : ndarray
        T at the begin, the values of the sides included.
    ops : FieldOps
        How the field is held.
    """
    largest = _largest_ratio(grid, ops)
    _, exchange = ops.range([np.asarray(side.exchange) for side in sides.values()])
    if 2 * grid.named * largest <= 1 and not exchange:
        return False  # a mean of neighbours stays in their range
    field = np.asarray(t, np.float64)
    values = [field]
    levels = {}
    for side in sides.values():
        if side.ambient is not None:
            time = grid.clock.segment.time
            values.append(side.ambient.at(time))
            levels[side] = side.level(time)
    low, high = ops.range(values)
    rate = flux_divergence(grid, list(sides.values()), field, levels)
    return ops.largest(rate) > high - low


def damped_step(
    grid: Grid,
    sides: Mapping[str, Side],
    source: NodeData | Any,
    t: NDArray[Any],
    ops: FieldOps,
) -> Array:
    """Return T after the first step.

    Parameters
    ----------
    grid, sides, source
        As in `HeatADI`.
    t : ndarray
        T at the begin, the values of the sides included.
    ops : FieldOps
        How the field is held.
    """
    field = np.array(t, np.float64)
    begin, every = grid.clock.segment.time, list(sides.values())
    for half in range(_HALVES):
        time = begin + (half + 1) * grid.dt / _HALVES
        right = field if source is None else field + grid.dt / _HALVES * source.at(time)
        levels = {side: side.level(time) for side in every if side.kind != PERIODIC}
        field = right.copy()
        for axis in range(grid.axes):
            solve_axis(grid, every, axis, levels, field, ops, keeps=True)
        for side in every:  # at edges the values of the later axis remain
            if side.kind == "value":
                side.of(field)[...] = levels[side]
        ops.refresh(field)
        if half == _HALVES - 1:  # which damps the residual of the halves before
            _remove_residual(grid, every, levels, right, field, ops)
    return field


def _remove_residual(
    grid: Grid,
    sides: Sequence[Side],
    levels: Mapping[Side, Array],
    right: Array,
    field: Array,
    ops: FieldOps,
) -> None:
    """Change `field` to the solution of a half-step that is not split, if it is far from it."""
    values = [level for side, level in levels.items() if side.kind == "value"]
    low, high = ops.range([right, *values])
    scale = max(high - low, ops.largest(field - right))
    share = 1 / grid.axes
    volumes = None if grid.k is None and grid.relative is None else _volumes(grid, sides)
    for p in _parameters(grid, sides, ops):
        residual = _residual(grid, sides, field, levels, right)
        if ops.largest(residual) <= _LARGEST_RESIDUAL * scale:
            return
        change = residual * (2 * p ** (grid.axes - 1) / (p + share) ** grid.axes)
        for axis in range(grid.axes):
            solve_axis(grid, sides, axis, {}, change, ops, p + share)
        ops.refresh(change)
        if volumes is not None:
            gain = ops.total(volumes * change * residual)
            energy = -ops.total(volumes * change * _residual(grid, sides, change, {}, 0.0))
            if energy > _MOST_ENERGY * gain:
                continue
        field += change


def _residual(
    grid: Grid,
    sides: Sequence[Side],
    field: Array,
    levels: Mapping[Side, Array],
    right: Array | float,
) -> Array:
    """Return what the equation of a half-step leaves; 0 at given values."""
    residual = flux_divergence(grid, sides, field, levels)
    residual /= _HALVES
    residual += right
    residual -= field
    for side in sides:
        if side.kind == "value":
            side.of(residual)[...] = 0
    return residual


def _volumes(grid: Grid, sides: Sequence[Side]) -> Array:
    """Return the volume of each node, half a cell at a flux, times the relative heat capacity."""
    volumes = np.ones(grid.nodes[::-1]) if grid.relative is None else grid.relative.copy()
    for axis in range(grid.axes):
        factors = grid.row_factors(axis, [side for side in sides if side.axis == axis])
        volumes /= factors.reshape(-1, *(1,) * axis)
    return volumes


def _parameters(grid: Grid, sides: Sequence[Side], ops: FieldOps) -> Iterator[float]:
    """Yield parameters between the bounds of the eigenvalues of 1/2 + X and 1/2 + Y, or 1/3."""
    largest = 4 * _largest_ratio(grid, ops)
    largest += ops.range([np.asarray(side.exchange) for side in sides])[1]
    low = 1 / grid.axes
    high = low + largest / _HALVES
    count = 1 + ceil(0.6 * log(4 * high / low))
    for k in range(count):
        yield low * (high / low) ** ((k + 0.5) / count)


class Rows(NamedTuple):
    """Rows of the lines along an axis, which broadcast to the field."""

    lower: Array
    diag: Array
    upper: Array


def _largest_ratio(grid: Grid, ops: FieldOps) -> float:
    """Return a bound of k dt/h^2 over the relative heat capacity."""
    pairs = zip(grid.ratio, grid.spacing, grid.finest, strict=True)
    largest = max(ratio * (h / least) ** 2 for ratio, h, least in pairs)
    largest *= 1.0 if grid.k is None else ops.largest(grid.k)
    return largest if grid.relative is None else largest / float(grid.relative.min())


def flux_divergence(
    grid: Grid,
    sides: Sequence[Side],
    field: Array,
    levels: Mapping[Side, Array],
    pairs: Sequence[Array] | None = None,
) -> Array:
    """Return dt times the divergence of the flux, with the inflows `levels`; 0 at given values.

    `pairs` are those of `pair_ratios` along each axis, if they are known.
    """
    rate = np.zeros_like(field)
    for axis in range(grid.axes):
        ends = [side for side in sides if side.axis == axis]
        is_periodic = ends[0].kind == PERIODIC
        ratios = pair_ratios(grid, axis, is_periodic) if pairs is None else pairs[axis]
        flow = _flow(ratios, axis, field, is_periodic)
        out = np.moveaxis(rate, field.ndim - 1 - axis, -1)
        factors = grid.row_factors(axis, ends)
        if ends[0].kind == PERIODIC:
            out += factors * (flow - np.roll(flow, 1, -1))
            continue
        out[..., :-1] += factors[:-1] * flow
        out[..., 1:] -= factors[1:] * flow
    grid.per_capacity(rate)
    for side in sides:
        if side.kind == "flux":
            side.of(rate)[...] += levels.get(side, 0.0) - side.exchange * side.of(field)
    for side in sides:
        if side.kind == "value":
            side.of(rate)[...] = 0.0
    return rate


def solve_axis(
    grid: Grid,
    sides: Sequence[Side],
    axis: int,
    given: Mapping[Side, Array],
    field: Array,
    ops: FieldOps,
    shift: float = 1.0,
    *,
    keeps: bool = False,
    rows: Rows | None = None,
) -> None:
    """Solve with 1 + X/shift along an axis in place; values and inflows not given are 0.

    With `keeps` the difference from the field is solved for, so that a constant of insulated or
    periodic lines keeps its bits; a field that is a difference itself needs it not. `rows` are
    those of `line_rows`, if they are known.
    """
    along = field.ndim - 1 - axis
    share = 1 / (_HALVES * shift)
    ends = [side for side in sides if side.axis == axis]
    is_periodic = ends[0].kind == PERIODIC
    if rows is None:
        rows = line_rows(grid, sides, axis, shift)
    for side in ends:
        if side.kind == "value":
            side.of(field)[...] = given.get(side, 0.0)
    right = field
    if keeps:
        # Sources and sides are known at the nodes of this part only.
        ops.refresh(field)
        right = np.zeros_like(field)
        v, out = np.moveaxis(field, along, -1), np.moveaxis(right, along, -1)
        lower, upper = np.moveaxis(rows.lower, along, -1), np.moveaxis(rows.upper, along, -1)
        if is_periodic:
            out -= upper * (np.roll(v, -1, -1) - v) + lower * (np.roll(v, 1, -1) - v)
        else:
            change = np.diff(v)
            out[..., :-1] -= upper[..., :-1] * change
            out[..., 1:] += lower[..., 1:] * change
    for side in ends:
        if side.kind == "flux":
            side.of(right)[...] += given.get(side, 0.0) * share
            if keeps:
                side.of(right)[...] -= side.exchange * share * side.of(field)
    ops.solve(*rows, right, along, periodic=is_periodic)
    if keeps:
        field += right


def line_rows(grid: Grid, sides: Sequence[Side], axis: int, shift: float = 1.0) -> Rows:
    """Return the rows of 1 + X/shift along an axis."""
    axes = len(grid.nodes)
    along, n, share = axes - 1 - axis, grid.nodes[axis], 1 / (_HALVES * shift)
    ends = [side for side in sides if side.axis == axis]
    is_periodic = ends[0].kind == PERIODIC
    # Ratio of each pair of neighbours, one line for all if k is constant.
    pairs = pair_ratios(grid, axis, is_periodic) * share
    is_varying = pairs.ndim > 1 or grid.relative is not None
    across = tuple(m for a, m in enumerate(grid.nodes[::-1]) if a != along)
    shape = (*across, n) if is_varying else (n,)
    lower, upper = np.zeros(shape), np.zeros(shape)
    if is_periodic:
        upper[...] = -pairs
        lower[...] = -np.roll(pairs, 1, -1)
    else:
        upper[..., :-1] = -pairs
        lower[..., 1:] = -pairs
    factors = grid.row_factors(axis, ends)
    if grid.relative is not None:
        factors = factors / np.moveaxis(grid.relative, along, -1)
    lower *= factors
    upper *= factors
    for side, other in zip(ends, (upper, lower), strict=True):
        if side.kind == "value":
            other[..., side.index] = 0
    diag = 1 - lower - upper
    for side in ends:
        if side.kind == "flux":
            diag[..., side.index] += side.exchange * share
    return Rows(*(_along(each, along, axes) for each in (lower, diag, upper)))


def _along(line: Array, place: int, axes: int) -> Array:
    """Return an array whose last axis belongs at `place`, with this number of axes."""
    whole = line.reshape((1,) * (axes - line.ndim) + line.shape)
    return np.moveaxis(whole, -1, place)


def pair_ratios(grid: Grid, axis: int, is_periodic: bool) -> Array:
    """Return k dt/h^2 between neighbours along an axis, which comes last."""
    ratio = grid.pair_ratio(axis)
    if grid.k is None:
        return np.full(grid.nodes[axis] - (not is_periodic), ratio)
    k = np.moveaxis(grid.k, grid.k.ndim - 1 - axis, -1)
    after = np.roll(k, -1, -1) if is_periodic else k[..., 1:]
    before = k if is_periodic else k[..., :-1]
    return np.asarray(coupling_of(ratio, before, after))


def _flow(ratios: Array, axis: int, field: Array, is_periodic: bool) -> Array:
    """Return ratios times the difference of neighbours along an axis, which comes last."""
    values = np.moveaxis(field, field.ndim - 1 - axis, -1)
    change = np.roll(values, -1, -1) - values if is_periodic else np.diff(values)
    change *= ratios
    return change
