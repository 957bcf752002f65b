"""The equations of FastPoisson in flux form, assembled face by face, and their exact solution.

The solution is found by elimination with row sums instead of diagonals (Grassmann, Taksar and
Heyman 1985) in extended precision: for f of one sign no numbers of unlike sign are added, so that
each unknown has a relative error of a few rounding units, for any condition number.
"""

from typing import NamedTuple

import numpy as np

WIDE = np.longdouble


class Line(NamedTuple):
    """Rows of one axis: sum over neighbours of (u[j] - u[i]) weight - loss u[i]."""

    weights: np.ndarray  # (n, n)
    losses: np.ndarray  # (n,), to Dirichlet and Robin sides
    factors: tuple  # of the values of both sides in the first and the last row
    volumes: np.ndarray
    unknowns: slice


def line(grid, ends, edges, power=0, exchange=(0.0, 0.0)):
    """Return the rows of an axis; `ends` are two letters: D, N, R, A (r = 0), or PP."""
    edges = np.asarray(edges, WIDE)
    periodic = ends == "PP"
    if grid == "cells":
        places = (edges[1:] + edges[:-1]) / 2
        bounds = edges
    elif periodic:
        places = edges[:-1]
        middles = (edges[1:] + edges[:-1]) / 2
        bounds = np.concatenate([middles[-1:] - (edges[-1] - edges[0]), middles])
    else:
        places = edges
        bounds = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
    volumes = (bounds[1:] ** (power + 1) - bounds[:-1] ** (power + 1)) / (power + 1)
    areas = bounds**power
    count = len(places)
    weights, losses, factors = np.zeros((count, count), WIDE), np.zeros(count, WIDE), [0.0, 0.0]
    for i in range(count):
        for end, j in ((0, i - 1), (1, i + 1)):
            area = areas[i + end]
            if 0 <= j < count or periodic:
                gap = abs(places[j % count] - places[i])
                if periodic and not 0 <= j < count:
                    gap = (edges[-1] - edges[0]) - gap
                weights[i, j % count] += area / gap / volumes[i]
                continue
            half = abs(bounds[i + end] - places[i])
            if ends[end] == "N":
                factors[end] = area / volumes[i]
            elif ends[end] == "R":
                h = WIDE(exchange[end])
                losses[i] += area * h / (1 + h * half) / volumes[i]
                factors[end] = area * h / (1 + h * half) / volumes[i]
            elif ends[end] == "D" and grid == "cells":
                losses[i] += area / half / volumes[i]
                factors[end] = area / half / volumes[i]
    start, stop = (int(grid == "nodes" and end == "D") for end in ends)
    inner = slice(start, count - stop)
    for end, known, near in ((0, 0, start), (1, count - 1, count - 1 - stop)):
        if grid == "nodes" and ends[end] == "D":
            losses[near] += weights[near, known]
            factors[end] = weights[near, known]
    return Line(weights[inner, inner], losses[inner], tuple(factors), volumes[inner], inner)


def assembled(lines, helmholtz=0.0):
    """Return weights of neighbours and losses of all unknowns; axes in the order of the array."""
    sizes = [len(one.losses) for one in lines]
    total = np.zeros((np.prod(sizes, dtype=int),) * 2, WIDE)
    losses = np.full(sizes, helmholtz, WIDE)
    for k, one in enumerate(lines):
        before, after = np.eye(int(np.prod(sizes[:k]))), np.eye(int(np.prod(sizes[k + 1 :])))
        total += np.kron(np.kron(before, one.weights), after)
        losses += one.losses.reshape((-1,) + (1,) * (len(sizes) - 1 - k))
    np.fill_diagonal(total, 0)  # one cell between periodic neighbours
    return total, losses.ravel()


def solve(weights, losses, right):
    """Solve (losses + sum of weights) u[i] - sum of weights u[j] = right; not singular.

    `right` can have a second axis, of several right sides.
    """
    a, s, r = weights.copy(), losses.copy(), right.astype(np.result_type(right, WIDE))
    count = len(s)
    pivots = np.empty(count, WIDE)
    for k in range(count - 1, -1, -1):
        pivots[k] = s[k] + a[k, :k].sum()
        factors = a[:k, k] / pivots[k]
        a[:k, :k] += factors[:, None] * a[k, :k]
        s[:k] += factors * s[k]
        r[:k] += np.multiply.outer(factors, r[k])
    u = np.empty_like(r)
    for k in range(count):
        u[k] = (r[k] + a[k, :k] @ u[:k]) / pivots[k]
    return u


def solution(lines, f, helmholtz=0.0):
    """Return the solution of the equations at the unknowns; f has the shape of the unknowns.

    In singular cases the mean of f, weighted by the volumes, is subtracted, and that of u is zero.
    """
    return _solution(lines, f.ravel(), helmholtz).reshape(f.shape)


def magnitude(lines, f, helmholtz=0.0):
    """Return the largest entry of |S| |f|, where the solution is S f: values of f may cancel."""
    return np.abs(_solution(lines, np.diag(f.ravel()), helmholtz)).sum(1).max()


def _solution(lines, f, helmholtz):
    """Return the solution for one or several right sides, in columns."""
    weights, losses = assembled(lines, helmholtz)
    volumes = np.ones(1, WIDE)
    for one in lines:
        volumes = np.outer(volumes, one.volumes / one.volumes.max()).ravel()
    right = -f.astype(np.result_type(f, WIDE))
    if losses.any():
        return solve(weights, losses, right)
    right -= volumes @ right / volumes.sum()
    u = np.zeros_like(right)  # the first unknown is zero
    if len(u) > 1:
        u[1:] = solve(weights[1:, 1:], weights[1:, 0], right[1:])
    return u - volumes @ u / volumes.sum()
