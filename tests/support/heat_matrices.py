"""Dense matrices of heat conduction on a grid of nodes: T_t = sum of M T along the axes + f."""

from functools import reduce

import numpy as np

GAMMA = 1 - 1 / np.sqrt(2)


def matrices(lines, sides, k, c, q=0.0, period=None):
    """Matrices M along the axes x, y, ..., the rates f, and whether T is given at each node.

    Parameters
    ----------
    lines : sequence of array
        Coordinates along x, y, ...
    sides : mapping
        By name: ("D",), ("N", inflow), ("R", coefficient, ambient) or ("P",).
    k, c, q : array or number
        Conductivity, heat capacity and source at the nodes, shape (..., ny, nx).
    period : mapping of int to float
        Periods of axes.
    """
    axes = len(lines)
    shape = tuple(len(line) for line in lines)[::-1]
    k, c, q = (np.broadcast_to(np.asarray(v, float), shape) for v in (k, c, q))
    size = int(np.prod(shape))
    numbers = np.arange(size).reshape(shape)
    given = np.zeros(shape, bool)
    rates = q / c
    found = []
    for axis, line in enumerate(lines):
        along = axes - 1 - axis
        n = len(line)
        wraps = sides["xyz"[axis] + "-"][0] == "P"
        gaps = np.diff(line)
        if wraps:
            gaps = np.append(gaps, line[0] + period[axis] - line[-1])
        widths = np.zeros(n)
        matrix = np.zeros((size, size))
        for i, gap in enumerate(gaps):
            j = (i + 1) % n
            widths[i] += gap / 2
            widths[j] += gap / 2
        nodes = np.moveaxis(numbers, along, 0)
        k_of, c_of = np.moveaxis(k, along, 0), np.moveaxis(c, along, 0)
        for i, gap in enumerate(gaps):
            j = (i + 1) % n
            face = 2 * k_of[i] * k_of[j] / np.maximum(k_of[i] + k_of[j], 1e-300) / gap
            for a, b in ((i, j), (j, i)):
                flow = face / widths[a] / c_of[a]
                np.add.at(matrix, (nodes[a].ravel(), nodes[a].ravel()), -flow.ravel())
                np.add.at(matrix, (nodes[a].ravel(), nodes[b].ravel()), flow.ravel())
        for end, at in () if wraps else (("-", 0), ("+", -1)):
            kind, *values = sides["xyz"[axis] + end]
            rest = np.moveaxis(rates, along, 0)[at, ...]  # a view, also of one node
            area = 1 / widths[at] / c_of[at]
            if kind == "D":
                np.moveaxis(given, along, 0)[at] = True
            elif kind == "N":
                rest += values[0] * area
            else:
                rest += values[0] * values[1] * area
                own = nodes[at].ravel()
                matrix[own, own] -= (values[0] * area).ravel()
        found.append(matrix)
    flat = given.ravel()
    for matrix in found:
        matrix[flat] = 0
    return found, np.where(given, 0, rates).ravel(), flat


def split_step(found, rates, t, dt):
    """A step of Douglas and Gunn; with one axis that of Crank and Nicolson."""
    one = np.eye(t.size)
    change = dt * (sum(found) @ t.ravel() + rates)
    for matrix in found:
        change = np.linalg.solve(one - dt / 2 * matrix, change)
    return t + change.reshape(t.shape)


def implicit_step(found, rates, t, dt):
    """A step of Alexander's method of two stages."""
    total = sum(found)
    one = np.eye(t.size)
    rate = total @ t.ravel() + rates
    first = np.linalg.solve(one - GAMMA * dt * total, rate)
    rate = total @ (t.ravel() + (1 - GAMMA) * dt * first) + rates
    second = np.linalg.solve(one - GAMMA * dt * total, rate)
    return t + dt * ((1 - GAMMA) * first + GAMMA * second).reshape(t.shape)


def damped_step(found, rates, t, dt):
    """Two half-steps of backward Euler."""
    matrix = np.eye(t.size) - dt / 2 * sum(found)

    def half(values, _):
        return np.linalg.solve(matrix, values + dt / 2 * rates)

    return reduce(half, range(2), t.ravel()).reshape(t.shape)


def steady_state(found, rates, given, t):
    """The steady state; given values are those of `t`."""
    total = sum(found) + np.diag(np.where(given, 1.0, 0.0))
    return np.linalg.solve(total, np.where(given, t.ravel(), -rates)).reshape(t.shape)
