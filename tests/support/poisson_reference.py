"""Dense matrices of the five-point Laplacian, assembled node by node with ghost values; bounds."""

import numpy as np

from pysolvers import Neumann


def line(grid, ends, edges):
    """Return the matrix of the unknowns along one axis and the factors of both sides' values.

    `edges` are the nodes or the faces of the cells; periodic nodes include the image of the first.
    """
    start, stop = (int(grid == "nodes" and end == "D") for end in ends)
    size = len(edges) - int(grid == "cells" or ends == "PP")
    count = size - start - stop
    matrix, factors = np.zeros((count, count)), [0.0, 0.0]
    steps = np.diff(edges)
    for row in range(count):
        place = row + start
        for end, sign in ((0, -1), (1, 1)):
            inside = 0 <= place + sign < size
            if grid == "nodes":
                before = steps[place - 1] if place or ends == "PP" else steps[0]
                after = steps[place] if place < len(steps) else steps[-1]
                gap = (before, after)[end]
                weight = 2 / (gap * (before + after))
            else:
                own = steps[place]
                near = steps[(place + sign) % size] if inside or ends == "PP" else own
                gap = (own + near) / 2
                weight = 1 / (gap * own)
            matrix[row, row] -= weight
            if (inside and 0 <= row + sign < count) or ends == "PP":
                matrix[row, (row + sign) % count] += weight
            elif grid == "nodes" and ends[end] == "D":  # the neighbour is given
                factors[end] += weight
            elif grid == "nodes":  # ghost = neighbour on the other side + 2 gap derivative
                if 0 <= row - sign < count:
                    matrix[row, row - sign] += weight
                else:  # it lies on the other side
                    factors[1 - end] += weight
                factors[end] += 2 * gap * weight
            elif ends[end] == "D":  # ghost = 2 value - own
                matrix[row, row] -= weight
                factors[end] = 2 * weight
            else:  # ghost = own + gap derivative
                matrix[row, row] += weight
                factors[end] = gap * weight
    return matrix, factors, slice(start, size - stop)


def solve(grid, ends, edges, f, values):
    """Solve by a dense matrix.

    Parameters
    ----------
    grid : {'nodes', 'cells'}
    ends : list of str
        For each axis of the array two letters: D, N or PP.
    edges : list of ndarray
        For each axis of the array.
    f : ndarray
    values : dict of (axis, end) to ndarray
        Over the side, the shape of f without the axis.

    Returns
    -------
    u : ndarray
        Without mean, weighted by the volumes, in singular cases. NaN at nodes of Dirichlet sides.
    matrix : ndarray
        Of the unknowns.
    """
    lines = [line(grid, *pair) for pair in zip(ends, edges, strict=True)]
    inner = tuple(unknowns for *_, unknowns in lines)
    right = f[inner].copy()
    shape = right.shape
    matrix = np.zeros((right.size, right.size))
    for axis, (own, factors, _) in enumerate(lines):
        before, after = np.prod(shape[:axis], dtype=int), np.prod(shape[axis + 1 :], dtype=int)
        matrix += np.kron(np.kron(np.eye(before), own), np.eye(after))
        for end in (0, 1):
            if (axis, end) in values:
                given = values[axis, end][tuple(s for k, s in enumerate(inner) if k != axis)]
                layer = (slice(None),) * axis + (-end,)
                right[layer] -= factors[end] * given
    result = np.full(f.shape, np.nan, right.dtype)
    if any("D" in pair for pair in ends):
        result[inner] = np.linalg.solve(matrix, right.ravel()).reshape(shape)
        return result, matrix
    # The left null vector holds the volumes: the equations and the mean determine u.
    weights = np.linalg.svd(matrix.T)[2][-1]
    weights /= weights.sum()
    right -= weights @ right.ravel()
    rows = np.vstack([matrix, weights[None] * np.abs(matrix).max()])
    found = np.linalg.lstsq(rows, np.append(right.ravel(), 0), rcond=None)[0]
    result[inner] = found.reshape(shape)
    return result, matrix


def conditions(kinds, shape, make):
    """Return conditions whose values vary along the sides; `kinds` for x, y, z."""
    found = {}
    for axis, ends in zip("xyz", kinds, strict=False):
        sizes = list(shape)
        del sizes[-1 - "xyz".index(axis)]
        for sign, end in zip("-+", ends, strict=True):
            values = make(tuple(sizes))
            found[axis + sign] = {"D": values, "N": Neumann(values), "P": "periodic"}[end]
    return found


def condition(solver):
    """Return an upper bound of the condition number, from the spacing and the lengths."""
    norm, least = 0.0, []
    for axis in solver._axes:
        norm += 4 / np.diff(axis.edges).min() ** 2
        length = axis.edges[-1] - axis.edges[0]
        quarters = {0: 2, 1: 1, 2: 2}[axis.ends.count("Dirichlet")]  # quarters of a wave
        if solver.is_singular or not axis.has_null_vector:
            least.append((np.pi / 2 * quarters / length) ** 2)
    return norm / (min(least) if solver.is_singular else sum(least))


def require_small_residual(solver, u, f):
    """Require a residual of the size of rounding errors, whatever the condition number."""
    residual = solver.apply(u) - f
    if solver.is_singular:
        mean = residual.astype(np.float64)
        for axis in reversed(solver._axes):
            mean = mean @ axis.volumes / axis.volumes.sum()
        residual -= mean.astype(f.dtype)
    inner = tuple(axis.unknowns for axis in solver._axes)
    norm = sum(4 / np.diff(axis.edges).min() ** 2 for axis in solver._axes)
    scale = norm * np.abs(u).max() + np.abs(f).max()
    # In a singular case the rounding errors of all rows of a line add up in its first row.
    errors = max(10, 3 * np.sqrt(max(f.shape))) if solver.is_singular else 10
    assert np.abs(residual[inner]).max() < errors * np.finfo(f.dtype).eps * scale
