r"""Start of heat conduction with data that are not smooth: half-steps of backward Euler.

Peaceman and Rachford's and Douglas and Gunn's schemes multiply a wave with the eigenvalues a, b of
-dt/2 d_x k d_x and -dt/2 d_y k d_y by (1 - a)(1 - b) / ((1 + a)(1 + b)), which tends to 1 for short
waves and large steps: a jump between initial and boundary values leaves waves that hardly decay.
Two half-steps t = dt/2 of backward Euler, split by axes (Yanenko),

    A_x T1 = T + t q,   A_y T2 = T1,   [A_z T3 = T2,]   A = 1 - t d k d,

multiply it by 1 / ((1 + a)(1 + b))^2 instead (Rannacher's start). Each sweep solves with an
M-matrix of row sums of at least 1, so that without source and flux no value leaves the range of
the data, for any t. The error of the two half-steps is of order dt^2, once: the order 2 of the
whole is kept. The intermediate T1 = A_y T2 on a side is computed from the values of the side,
unless these have jumps.

Cost: two solves along each axis by `solve_tridiagonal`, once: 16 operations per unknown and axis,
and about 12 words. Unconditionally stable.

Source: R. Rannacher, Finite element solution of diffusion problems with irregular data, Numer.
Math. 43 (1984) 309-327; N. N. Yanenko, The method of fractional steps, Springer 1971.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data import NodeData
from ..tridiagonal import solve_tridiagonal
from ._sides import PERIODIC, Grid, Side
from ._tables import apply_along_side

__all__ = ["damped_step", "needs_damping"]

Array = NDArray[np.float64]

_HALVES = 2
_ROUGH = (
    0.1  # of the range of the data: larger corrections on a side are not those of smooth values
)


def needs_damping(grid: Grid, sides: Mapping[str, Side], t: NDArray[Any]) -> bool:
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
        T at time 0, the values of the sides included.
    """
    largest = max(grid.ratio) * (1.0 if grid.k is None else float(grid.k.max()))
    if 2 * grid.axes * largest <= 1 and not any(side.exchange for side in sides.values()):
        return False  # a mean of neighbours stays in their range
    field = np.asarray(t, np.float64)
    low, high = float(field.min()), float(field.max())
    rate = np.zeros_like(field)
    fixed = np.zeros(field.shape, bool)
    for axis in range(grid.axes):
        place = field.ndim - 1 - axis
        ends = [sides["xyz"[axis] + end] for end in "-+"]
        flow = _flow(grid, axis, field, ends[0].kind == PERIODIC)
        out = np.moveaxis(rate, place, -1)
        if ends[0].kind == PERIODIC:
            out += flow - np.roll(flow, 1, -1)
            continue
        out[..., 1:-1] += flow[..., 1:] - flow[..., :-1]
        for side, inward in zip(ends, (1, -1), strict=True):
            out[..., side.index] += 2 * inward * flow[..., side.index]
            if side.kind == "value":
                side.of(fixed)[...] = True
            if side.ambient is not None:
                ambient = side.ambient.at(grid.clock.leg.at(0))
                low, high = min(low, float(ambient.min())), max(high, float(ambient.max()))
                side.of(rate)[...] += side.exchange * (ambient - side.of(field))
    rate[fixed] = 0.0
    return bool(np.abs(rate).max() > high - low)


def damped_step(
    grid: Grid,
    sides: Mapping[str, Side],
    source: NodeData | None,
    t: NDArray[Any],
    *,
    device: str | None,
    threads: int | None,
) -> Array:
    """Return T after the first step.

    Parameters
    ----------
    grid, sides, source
        As in `HeatADI`.
    t : ndarray
        T at time 0, the values of the sides included.
    device, threads
        As in `solve_tridiagonal`.
    """
    field = np.array(t, np.float64)
    begin = grid.clock.leg.at(0)
    for half in range(_HALVES):
        time = begin + (half + 1) * grid.dt / _HALVES
        if source is not None:
            field += grid.dt / _HALVES * source.at(time)
        levels = {side: side.level(time) for side in sides.values() if side.kind != PERIODIC}
        for axis in range(grid.axes):
            ends = [sides["xyz"[axis] + end] for end in "-+"]
            given = [
                _intermediate(side, sides.values(), levels, grid, field) if side in levels else None
                for side in ends
            ]
            field = _sweep(grid, axis, ends, given, field, device=device, threads=threads)
        for side in sides.values():  # at edges the later axis has the say
            if side.kind == "value":
                side.of(field)[...] = levels[side]
    return field


def _intermediate(
    side: Side, sides: Iterable[Side], levels: Mapping[Side, Array], grid: Grid, field: Array
) -> Array:
    """Return A_y A_z of the values of a side of x, A_z of those of a side of y."""
    found = np.array(levels[side])
    for axis in range(grid.axes - 1, side.axis, -1):
        change = apply_along_side(grid, sides, side, axis, found) / _HALVES
        if side.kind == "value":
            for other, level in levels.items():
                if other.axis == axis and other.kind == "flux":
                    side.edge(change, other)[...] -= other.edge(level, side) / _HALVES
        extremes = [found.min(), found.max(), field.min(), field.max()]
        if np.abs(change).max() <= _ROUGH * (max(extremes) - min(extremes)):
            found = found + change
    return found


def _sweep(
    grid: Grid,
    axis: int,
    ends: Iterable[Side],
    given: Iterable[Array | None],
    field: Array,
    *,
    device: str | None,
    threads: int | None,
) -> Array:
    """Solve along an axis."""
    place = field.ndim - 1 - axis
    n = field.shape[place]
    ends = list(ends)
    is_periodic = ends[0].kind == PERIODIC
    # Ratio of each pair of neighbours, one line for all if k is constant.
    pairs = _pair_ratios(grid, axis, is_periodic) / _HALVES
    shape = (*pairs.shape[:-1], n)
    lower, upper = np.zeros(shape), np.zeros(shape)
    if is_periodic:
        upper[...] = -pairs
        lower[...] = -np.roll(pairs, 1, -1)
    else:
        upper[..., :-1] = -pairs
        lower[..., 1:] = -pairs
    for side, other in zip(ends, (upper, lower), strict=True):
        if side.kind == "flux":
            other[..., side.index] *= 2
        elif side.kind == "value":
            other[..., side.index] = 0
    diag = 1 - lower - upper
    right = field.copy()
    for side, values in zip(ends, given, strict=True):
        if values is None:
            continue
        if side.kind == "flux":
            diag[..., side.index] += side.exchange / _HALVES
            side.of(right)[...] += values / _HALVES
        else:
            side.of(right)[...] = values
    low, middle, high = (_along(a, place, field.ndim) for a in (lower, diag, upper))
    found: Array = solve_tridiagonal(
        low, middle, high, right, axis=place, periodic=is_periodic, device=device, threads=threads
    )
    return found


def _along(line: Array, place: int, axes: int) -> Array:
    """Return an array whose last axis belongs at `place`, with this number of axes."""
    whole = line.reshape((1,) * (axes - line.ndim) + line.shape)
    return np.moveaxis(whole, -1, place)


def _pair_ratios(grid: Grid, axis: int, is_periodic: bool) -> Array:
    """Return k dt/h^2 between neighbours along an axis, which comes last."""
    if grid.k is None:
        return np.full(grid.nodes[axis] - (not is_periodic), grid.ratio[axis])
    k = np.moveaxis(grid.k, grid.k.ndim - 1 - axis, -1)
    after = np.roll(k, -1, -1) if is_periodic else k[..., 1:]
    before = k if is_periodic else k[..., :-1]
    return np.asarray(grid.ratio[axis] * 2 * before * after / (before + after))


def _flow(grid: Grid, axis: int, field: Array, is_periodic: bool) -> Array:
    """Return ratio times the difference of neighbours along an axis, which comes last."""
    values = np.moveaxis(field, field.ndim - 1 - axis, -1)
    change = np.roll(values, -1, -1) - values if is_periodic else np.diff(values)
    return np.asarray(_pair_ratios(grid, axis, is_periodic) * change)
