"""Heat conduction by one sparse matrix, which is not split, and SciPy's LU."""

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import splu

GAMMA = 1 - 1 / np.sqrt(2)


class Unsplit:
    """T_t = f(t) - K T at the free nodes of a box with nodes on its sides.

    kinds maps "x-", "x+", ... to "value", "flux" or "periodic"; exchange a side to the coefficient
    of Robin. `values(t)` is a field with the given values, `gain(t)` a field with sources and
    inflows per volume.
    """

    def __init__(self, k, spacing, kinds, exchange, values, gain):
        self.shape, self.values, self.gain = k.shape, values, gain
        n = k.size
        number = np.arange(n).reshape(k.shape)
        matrix = sparse.csr_array((n, n))
        self.free = np.ones(k.shape, bool)
        self.volume = np.ones(k.shape)
        for axis in range(k.ndim):
            along, h = k.ndim - 1 - axis, spacing[axis]
            low = kinds["xyz"[axis] + "-"]
            ids = np.moveaxis(number, along, 0)
            a, b = ids[:-1], ids[1:]
            if low == "periodic":
                a, b = ids, np.roll(ids, -1, 0)
            size = np.ones(n)  # in cells along the axis
            for name, one in (("-", ids[0]), ("+", ids[-1])):
                kind = kinds["xyz"[axis] + name]
                if kind == "value":
                    self.free.ravel()[one] = False
                elif kind == "flux":
                    size[one] = 0.5
                    coefficient = exchange.get("xyz"[axis] + name, 0.0)
                    take = np.zeros(n)
                    take[one] = coefficient / h / 0.5
                    matrix = matrix + sparse.diags_array(take)
            self.volume.ravel()[...] *= size
            a, b = a.ravel(), b.ravel()
            flow = 2 / (1 / k.ravel()[a] + 1 / k.ravel()[b]) / h**2
            for p, q in ((a, b), (b, a)):
                rate = flow / size[p]
                matrix = matrix + sparse.csr_array(
                    (np.r_[rate, -rate], (np.r_[p, p], np.r_[p, q])), (n, n)
                )
        self.K = matrix.tocsr()
        self._factors = {}

    def solve(self, tau, right, given):
        """T of (1 + tau K) T = right at the free nodes, `given` elsewhere."""
        free = self.free.ravel()
        if tau not in self._factors:
            whole = (sparse.eye_array(free.size) + tau * self.K).tocsr()
            self._factors[tau] = whole, splu(whole[free][:, free].tocsc())
        whole, lu = self._factors[tau]
        x = np.where(free, 0.0, given.ravel())
        x[free] = lu.solve((right.ravel() - whole @ x)[free])
        return x.reshape(self.shape)

    def rate(self, field, t):
        return self.gain(t) - (self.K @ field.ravel()).reshape(self.shape)

    def start(self, field, dt):
        """Two half-steps of backward Euler."""
        for t in (dt / 2, dt):
            field = self.solve(dt / 2, field + dt / 2 * self.gain(t), self.values(t))
        return field

    def step(self, field, t, dt):
        """Alexander's method, by the values of its stages."""
        one = self.solve(
            GAMMA * dt,
            field + GAMMA * dt * self.gain(t + GAMMA * dt),
            self.values(t + GAMMA * dt),
        )
        base = field + (1 - GAMMA) / GAMMA * (one - field)
        return self.solve(GAMMA * dt, base + GAMMA * dt * self.gain(t + dt), self.values(t + dt))

    def steady(self, t):
        free = self.free.ravel()
        x = np.where(free, 0.0, self.values(t).ravel())
        x[free] = splu(self.K[free][:, free].tocsc()).solve(
            (self.gain(t).ravel() - self.K @ x)[free]
        )
        return x.reshape(self.shape)
