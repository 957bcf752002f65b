"""Dense matrices of advection and diffusion by fluxes, and the steps of AdvectionDiffusion.

Each face between two nodes of a line has one flux, which one node loses and the other gains. All is
written node by node, and knows nothing of the rows that the solver makes.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np


class Parts(NamedTuple):
    """What the equation u_t = sum of (M u + g) + E u + f prescribes at a time."""

    matrices: list  # M along x, y, ...
    inflows: list  # g along x, y, ...
    explicit: np.ndarray  # E
    source: np.ndarray  # f
    given: np.ndarray  # whether u is given at a node
    values: np.ndarray  # u there


def fluxes(differences, b, i, j, before, after):
    """Return the weights of nodes in the value of u at the face between i and j, both parts.

    `before` is the node behind i, and `after` that beyond j; None where there is none.
    """
    if differences == "central":
        return {i: 0.5, j: 0.5}, {}
    upwind = {i if b > 0 else j: 1.0}
    if differences == "upwind":
        return upwind, {}
    near, far, behind = (i, j, before) if b > 0 else (j, i, after)
    third = {i: 0.5, j: 0.5} if behind is None else {far: 1 / 3, near: 5 / 6, behind: -1 / 6}
    rest = dict.fromkeys({*third, *upwind}, 0.0)
    for weights, sign in ((third, 1), (upwind, -1)):
        for node, weight in weights.items():
            rest[node] += sign * weight
    return upwind, rest


def parts(differences, lines, periods, sides, velocity, diffusion, source):
    """Return `Parts` of one time.

    Parameters
    ----------
    differences : str
        As in `AdvectionDiffusion`.
    lines : sequence of array
        Coordinates along x, y, ...
    periods : mapping of int to float
        Lengths of the periodic axes.
    sides : mapping
        By name: (letter, coefficient of Robin, value at the nodes of the side), the letter D, N, R
        or O; sides of periodic axes are left out.
    velocity, diffusion : sequence of array
        Values at the nodes for each axis.
    source : array
        Values at the nodes.
    """
    shape = tuple(len(line) for line in reversed(lines))
    size, axes = int(np.prod(shape)), len(lines)
    numbers = np.arange(size).reshape(shape)
    given, values = np.zeros(shape, bool), np.zeros(shape)
    for name in sorted(sides, reverse=True):  # that of x is the last one, which overwrites
        letter, _, value = sides[name]
        if letter == "D":
            at = [slice(None)] * axes
            at[axes - 1 - "xyz".index(name[0])] = 0 if name[1] == "-" else -1
            given[tuple(at)], values[tuple(at)] = True, value
    matrices, inflows, explicit = [], [], np.zeros((size, size))
    for axis, line in enumerate(lines):
        along, n, is_periodic = axes - 1 - axis, len(line), axis in periods
        h = line[1] - line[0]
        widths = np.full(n, h)
        if not is_periodic:
            widths[[0, -1]] = h / 2
        matrix, inflow = np.zeros((size, size)), np.zeros(size)
        of_line = np.moveaxis(numbers, along, -1).reshape(-1, n)
        b, a = (np.broadcast_to(v[axis], shape).ravel() for v in (velocity, diffusion))
        for nodes in of_line:
            for k in range(n if is_periodic else n - 1):
                i, j = nodes[k], nodes[(k + 1) % n]
                before = nodes[k - 1] if k or is_periodic else None
                after = nodes[(k + 2) % n] if k + 2 < n or is_periodic else None
                flow, spread = (b[i] + b[j]) / 2, (a[i] + a[j]) / 2
                implicit, rest = fluxes(differences, flow, i, j, before, after)
                for target, weights in ((matrix, implicit), (explicit, rest)):
                    for node, weight in weights.items():
                        target[i, node] -= flow * weight / widths[k]
                        target[j, node] += flow * weight / widths[(k + 1) % n]
                for node, sign in ((i, -1), (j, 1)):
                    matrix[i, node] += sign * spread / h / widths[k]
                    matrix[j, node] -= sign * spread / h / widths[(k + 1) % n]
        for sign, k, outward in () if is_periodic else (("-", 0, -1), ("+", n - 1, 1)):
            letter, coefficient, value = sides["xyz"[axis] + sign]
            whole = np.broadcast_to(np.expand_dims(np.asarray(value), along), numbers.shape)
            entering = np.moveaxis(whole, along, -1).reshape(-1, n)[:, k]
            for node, q in zip(of_line[:, k], entering, strict=True):
                matrix[node, node] -= outward * b[node] / widths[k]
                if letter == "R":
                    matrix[node, node] -= coefficient / widths[k]
                    inflow[node] += coefficient * q / widths[k]
                elif letter == "N":
                    inflow[node] += q / widths[k]
        matrices.append(matrix)
        inflows.append(inflow)
    flat = given.ravel()
    for each in (*matrices, *inflows, explicit):
        each[flat] = 0
    f = np.array(np.broadcast_to(source, shape).ravel(), float)
    f[flat] = 0
    return Parts(matrices, inflows, explicit, f, flat, values.ravel())


def _rate(at, u):
    return at.explicit @ u + sum(at.matrices) @ u + sum(at.inflows) + at.source


def _sweep(old, new, dt, u, change):
    """Solve (1 - dt/2 M) along each axis in turn; terms of time are taken at both ends."""
    change = np.where(new.given, new.values - u, change)
    for axis, (before, after) in enumerate(zip(old.matrices, new.matrices, strict=True)):
        added = (after - before) @ u + new.inflows[axis] - old.inflows[axis]
        if axis == 0:
            added = added + new.source - old.source
        change = np.linalg.solve(np.eye(u.size) - dt / 2 * after, change + dt / 2 * added)
    return change


def step(old, new, u, dt):
    """A step of Douglas and Gunn, with an explicit part one of Craig and Sneyd."""
    first = dt * _rate(old, u)
    change = _sweep(old, new, dt, u, first)
    if not (old.explicit.any() or new.explicit.any()):
        return u + change
    second = first + dt / 2 * (new.explicit @ (u + change) - old.explicit @ u)
    return u + _sweep(old, new, dt, u, second)


def damped_step(levels, u, dt):
    """Two half-steps of order 1; `levels` are those at the begin, in the middle and at the end."""
    h = dt / 2
    for old, new in pairwise(levels):
        u = u + h * (old.explicit @ u)
        u = np.where(new.given, new.values, u + h * (sum(new.inflows) + new.source))
        for matrix in new.matrices:
            u = np.linalg.solve(np.eye(u.size) - h * matrix, u)
    return u
