"""Heat conduction by sparse matrices: the schemes as they are written, without sweeps.

The field holds every node. K of an axis has a row of zeros at nodes whose value is given.
"""

import itertools

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import spsolve


class Box:
    """Operators of a box; axes count from x on, the last one of an array.

    kinds[axis] is ("value" | "flux", ...) for both sides or ("periodic", "periodic"),
    exchange[axis] the exchange of both sides, k the conductivity at the nodes.
    """

    def __init__(self, shape, ratio, kinds, exchange, k):
        self.shape, self.axes, self.kinds = shape, len(shape), kinds
        self.unknown = np.ones(shape, bool)
        for axis, end in self.ends("value"):
            self.unknown[self.side(axis, end)] = False
        self.K = [self._matrix(a, ratio[a], exchange[a], k) for a in range(self.axes)]

    def ends(self, kind):
        """Sides of a kind as (axis, 0 or -1)."""
        return [
            (axis, -end)
            for axis in range(self.axes)
            for end in (0, 1)
            if self.kinds[axis][end] == kind
        ]

    def side(self, axis, end):
        """Index of the nodes of a side."""
        index = [slice(None)] * self.axes
        index[self.axes - 1 - axis] = end
        return tuple(index)

    def times(self, axis, field):
        return (self.K[axis] @ field.ravel()).reshape(self.shape)

    def on_side(self, axis, end, values):
        """A field that is 0 but on one side."""
        field = np.zeros(self.shape)
        field[self.side(axis, end)] = values
        return field

    def solve(self, axis, right, given):
        """x of (1 + K/2) x = right on the unknowns, `given` elsewhere."""
        matrix = (sparse.eye_array(right.size) + self.K[axis] / 2).tocsr()
        free = self.unknown.ravel()
        x = np.where(free, 0.0, given.ravel())
        rest = (right.ravel() - matrix @ x)[free]
        x[free] = spsolve(matrix[free][:, free].tocsc(), rest)
        return x.reshape(self.shape)

    def _matrix(self, axis, ratio, exchange, k):
        place = self.axes - 1 - axis
        numbers = np.arange(k.size).reshape(self.shape)
        matrix = sparse.lil_array((k.size, k.size))
        across = [range(n) if a != place else [slice(None)] for a, n in enumerate(self.shape)]
        for index in itertools.product(*across):
            line = numbers[index]
            matrix[np.ix_(line, line)] = self._line(axis, ratio, exchange, k[index])
        return matrix.tocsr()

    def _line(self, axis, ratio, exchange, k):
        n, kinds = len(k), self.kinds[axis]
        matrix = np.zeros((n, n))
        for i, step in itertools.product(range(n), (-1, 1)):
            j = (i + step) % n
            if kinds[0] != "periodic" and j != i + step:
                continue
            flow = ratio * 2 / (1 / k[i] + 1 / k[j])
            matrix[i, i] += flow
            matrix[i, j] -= flow
        for end in (0, -1):
            if kinds[end] == "value":
                matrix[end] = 0
            elif kinds[end] == "flux":
                matrix[end] *= 2
                matrix[end, end] += exchange[end]
        return matrix


def peaceman_rachford(box, t, levels, sweeps, source):
    """Steps from t; levels[axis, end][s] and sweeps[axis, end][s] as ps_heat.h says."""
    w = t - box.times(1, t) / 2
    for axis, end in box.ends("flux"):
        if axis == 1:
            w += box.on_side(axis, end, levels[axis, end][0]) / 2
    for s, q in enumerate(source):
        for axis in (0, 1):
            right, given = w + (q if axis == 0 else 0), np.zeros(box.shape)
            for end in (0, -1):
                if (axis, end) in box.ends("flux"):
                    right += box.on_side(axis, end, sweeps[axis, end][s])
                elif (axis, end) in box.ends("value"):
                    given += box.on_side(axis, end, sweeps[axis, end][s])
            t = box.solve(axis, right, given)
            w = 2 * t - w
    return with_sides(box, t, levels, len(source))


def douglas_gunn(box, t, levels, sweeps, source):
    """The same by Douglas and Gunn's differences."""
    for s, q in enumerate(source):
        change = q - sum(box.times(axis, t) for axis in range(box.axes))
        for axis, end in box.ends("flux"):
            change = change + box.on_side(axis, end, levels[axis, end][s])
        for axis in range(box.axes):
            given = np.zeros(box.shape)
            for end in (0, -1):
                if (axis, end) in box.ends("flux"):
                    change = change + box.on_side(axis, end, sweeps[axis, end][s])
                elif (axis, end) in box.ends("value"):
                    given += box.on_side(axis, end, sweeps[axis, end][s])
            change = box.solve(axis, change, given)
        t = with_sides(box, t + np.where(box.unknown, change, 0), levels, s + 1)
    return t


def factored_residual(box, before, after, flows, source):
    """What the factored equation of a step leaves at the unknowns.

    A_x A_y A_z (T+ - T) = source - K T + inflow, with the inflow of both levels: flows[level]
    has for each axis a field of what flows in.
    """
    change = after - before
    rest = source - sum(box.times(axis, before) for axis in range(box.axes)) + sum(flows[0])
    for axis in range(box.axes - 1, -1, -1):
        inflow = (flows[1][axis] - flows[0][axis]) / 2
        for later in range(box.axes - 1, axis, -1):
            spread = box.times(later, inflow)
            for other, end in box.ends("flux"):
                if other == later:  # cancels with the inflow of the inflow
                    spread[box.side(other, end)] = 0
            inflow = inflow + spread / 2
        change = change + box.times(axis, change) / 2 - inflow
    return np.where(box.unknown, change - rest, 0)


def with_sides(box, t, levels, step):
    """t with given values on its sides, of the later axis where two meet."""
    t = t.copy()
    for axis, end in box.ends("value"):
        t[box.side(axis, end)] = levels[axis, end][step]
    return t
