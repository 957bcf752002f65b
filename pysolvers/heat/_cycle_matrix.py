"""The V-cycle of `_levels.py` on its coarse levels as one matrix, for devices.

On a device the time of a level of a few hundred nodes is that of its launches: 10 with two axes and
14 with three. A V-cycle is a linear operator, so that one product with a matrix takes the place of
all levels from the first one of at most `MOST_NODES` unknown nodes on.

The columns of the matrix are the corrections of the V-cycle of ps_diffusion.h for the unit vectors,
computed in float64. They take some 50 operations for each entry of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_NODES", "Level", "cycle_matrix"]

Array = NDArray[Any]

# The matrix then has 1 MB in float32: its product takes about the time of a launch.
MOST_NODES = 512


class Level(NamedTuple):
    faces: list[Array]  # from x on; at a node, between it and the next one
    sums: Array
    first: tuple[int, ...]  # unknown nodes, from x on
    end: tuple[int, ...]

    @property
    def inner(self) -> tuple[slice, ...]:
        """The unknown nodes of a field."""
        return tuple(slice(a, b) for a, b in zip(self.first, self.end, strict=True))[::-1]


Pair = tuple[Level, list[Array | None]]  # with the weights of interpolated nodes by axis


def cycle_matrix(levels: Sequence[Pair], omega: float) -> Array:
    """Return the matrix of a V-cycle over the unknown nodes of its first level.

    Parameters
    ----------
    levels : sequence of (Level, list)
        The levels of the V-cycle, each with the weights to the next one.
    omega : float
        Of the line relaxation.

    Returns
    -------
    matrix : array of shape (nodes, nodes)
        Symmetric and positive definite, in float64.
    """
    level, weights = levels[0]
    inner, axes = level.inner, level.sums.ndim
    count = level.sums[inner].size
    rhs = np.zeros((*level.sums.shape, count))
    rhs[inner] = np.eye(count).reshape(*level.sums[inner].shape, count)
    lines = [_line_solver(level, axis, omega) for axis in range(axes)]
    x = np.zeros_like(rhs)

    def rest() -> Array:
        """Return the residuals at the unknown nodes."""
        return (rhs - _product(level, x))[inner]

    x[inner] = lines[0](rhs[inner])
    for axis in range(1, axes):
        x[inner] += lines[axis](rest())
    if len(levels) > 1:
        across = _interpolation(level, weights, levels[1][0])
        correction = across @ (
            cycle_matrix(levels[1:], omega) @ (across.T @ rest().reshape(-1, count))
        )
        x[inner] += correction.reshape(x[inner].shape)
    for axis in reversed(range(axes)):
        x[inner] += lines[axis](rest())
    return x[inner].reshape(count, count)


def _product(level: Level, x: Array) -> Array:
    """Return A x for fields of all nodes, the last axis of `x` being that of several fields."""
    out = level.sums[..., None] * x
    for axis, face in enumerate(level.faces):
        along = level.sums.ndim - 1 - axis
        flow = face[..., None] * (x - np.roll(x, -1, along))
        out += flow
        out -= np.roll(flow, 1, along)
    return out


def _line_solver(level: Level, axis: int, omega: float) -> Any:
    """Return the function that solves the lines along an axis, which have A / omega."""
    axes = level.sums.ndim
    along = axes - 1 - axis
    diag = level.sums.copy()
    for a, face in enumerate(level.faces):
        diag += face
        diag += np.roll(face, 1, axes - 1 - a)
    middle = np.moveaxis(diag[level.inner], along, -1)
    side = np.moveaxis(level.faces[axis][level.inner], along, -1)
    rows = np.arange(middle.shape[-1])
    matrix = np.zeros((*middle.shape, rows.size))
    matrix[..., rows, rows] = middle
    wraps = side.shape[-1] == level.sums.shape[along]  # then the last face is 0 or periodic
    for i in rows if wraps else rows[:-1]:
        after = (i + 1) % rows.size
        matrix[..., i, after] -= side[..., i]
        matrix[..., after, i] -= side[..., i]
    inverse = omega * np.linalg.inv(matrix)

    def solve(rhs: Array) -> Array:
        return np.moveaxis(inverse @ np.moveaxis(rhs, along, -2), -2, along)

    return solve


def _interpolation(level: Level, weights: Sequence[Array | None], coarse: Level) -> Array:
    """Return the matrix from the unknown nodes of the next level to those of a level."""
    count = coarse.sums[coarse.inner].size
    x = np.zeros((*coarse.sums.shape, count))
    x[coarse.inner] = np.eye(count).reshape(*coarse.sums[coarse.inner].shape, count)
    for axis, weight in enumerate(weights):
        if weight is None:
            continue
        along = level.sums.ndim - 1 - axis
        n = level.sums.shape[along]
        source = np.moveaxis(x, along, 0)
        share = np.moveaxis(weight[..., None], along, 0)
        between = len(share)
        out = np.zeros((n, *source.shape[1:]))
        kept = np.append(np.arange(0, n, 2), n - 1)[: len(source)]
        out[kept] = source
        after = np.roll(source, -1, 0)[:between]
        out[1 : 2 * between : 2] = share * source[:between] + (1 - share) * after
        x = np.moveaxis(out, 0, along)
    return x[level.inner].reshape(-1, count)
