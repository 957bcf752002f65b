"""GCEIDD steps written with SciPy: strips cut out one by one, nothing shared with the package."""

import numpy as np
from scipy.linalg import solve_banded

NAMES = ("west", "east", "south", "north")


class Reference:
    """Convection and diffusion on (ny + 1, nx + 1) nodes; everything is given as node arrays.

    `velocity` and `diffusion` are pairs of arrays or functions of time that return them, `source`
    is such a function, `sides` maps a name to ("dirichlet" | "neumann", such a function), to
    ("robin", the ambient value as such a function, the coefficient over the diffusion) or to
    ("periodic",): the first node is then not repeated.
    """

    def __init__(self, u, spacing, dt, velocity, diffusion, source, sides, **options):
        self.u = np.array(u, float)
        self.spacing, self.dt = spacing, dt
        self.given_velocity, self.given_diffusion = velocity, diffusion
        self.source, self.sides = source, sides
        self.scheme = options.get("scheme", "cp")
        self.strips = options.get("strips", (1, 1))
        self.upwind = options.get("upwind", "modified")
        self.predictor = options.get("predictor", "newest")
        self.foot = options.get("foot", "clamp")
        self.older = [self.u.copy(), self.u.copy()]
        self.time = 0.0

    def step(self, count=1):
        for _ in range(count):
            self.time += self.dt
            self.velocity = [self.now(b) for b in self.given_velocity]
            self.diffusion = [self.now(a) for a in self.given_diffusion]
            self.sweep_x()
            self.sweep_y()
        return self

    def now(self, values):
        return np.broadcast_to(values(self.time) if callable(values) else values, self.u.shape)

    def sweep_x(self):
        self.replace(self.swept(self.u, self.older, 0, self.velocity, self.diffusion, NAMES))

    def sweep_y(self):
        turned = [[a.T for a in group] for group in (self.older, self.velocity, self.diffusion)]
        order = ("south", "north", "west", "east")
        v = self.swept(self.u.T, turned[0], 1, turned[1], turned[2], order).T.copy()
        for name, line in (("west", np.s_[:, 0]), ("east", np.s_[:, -1])):
            if self.sides[name][0] == "dirichlet":
                v[line] = self.side(name, v.shape[0])
        self.replace(v)

    def replace(self, v):
        self.older = [self.u, self.older[0]]
        self.u = v

    def side(self, name, count):
        if self.sides[name][0] == "periodic":
            return np.zeros(count)
        return np.broadcast_to(self.sides[name][1](self.time), (count,))

    def exchange(self, name, count):
        given = self.sides[name][2](self.time) if self.sides[name][0] == "robin" else 0.0
        return np.broadcast_to(given, (count,))

    def swept(self, u, older, axis, velocity, diffusion, names):
        """Sweep along the last axis of `u`: the fields come turned, names = low, high, ..."""
        kinds = [self.sides[name][0] for name in names]
        first = int(kinds[2] == "dirichlet")
        last = u.shape[0] - int(kinds[3] == "dirichlet")
        lines = np.s_[first:last]
        ends = [self.side(name, u.shape[0])[lines] for name in names[:2]]
        self.gains = [self.exchange(name, u.shape[0])[lines] for name in names[:2]]
        field = np.zeros(self.u.shape) + self.source(self.time)
        f = 0.5 * (field if axis == 0 else field.T)[lines]
        v = u.copy()
        v[lines] = self.lines(
            u[lines],
            [s[lines] for s in older],
            velocity[axis][lines],
            diffusion[axis][lines],
            f,
            kinds[:2],
            ends,
            self.spacing[axis],
            self.strips[axis],
        )
        return v

    def lines(self, u, older, b, a, f, kinds, ends, h, strips):
        if kinds[0] == "periodic":
            return self.cycles(u, older, b, a, f, h, strips)
        dt, n = self.dt, u.shape[1] - 1
        interfaces = [k * n // strips for k in range(1, strips)]
        foot = self.at_feet(u, b, h)
        bh, ah = beyond(b), beyond(a)
        q = dt * (bh[:, 1:] - bh[:, :-1]) / h
        rhs = (foot if self.scheme == "cfd" else u) + dt * f
        if self.scheme == "cfd":
            lower, upper = -dt * ah[:, :-1] / h**2, -dt * ah[:, 1:] / h**2
            diag = 1 + q + dt * (ah[:, :-1] + ah[:, 1:]) / h**2
        else:
            s = ah / (1 + h * abs(bh) / (2 * ah)) if self.upwind == "modified" else ah
            bm, bp, sm, sp = bh[:, :-1], bh[:, 1:], s[:, :-1], s[:, 1:]
            lower = -dt * (sm / h**2 + np.maximum(bm, 0) / h)
            upper = -dt * (sp / h**2 - np.minimum(bp, 0) / h)
            diag = 1 + dt * ((sm + sp) / h**2 + (np.maximum(bp, 0) - np.minimum(bm, 0)) / h)
        predicted = self.predicted(u, older, interfaces, foot, q, ah, f, h)
        for k, (beyond_end, gain) in enumerate(zip((lower, upper), self.gains, strict=True)):
            # With exchange the value beyond is that inside + 2 h c (w - v).
            at = -k
            if kinds[k] == "robin":
                extra = -beyond_end[:, at] * 2 * h * gain
                diag[:, at], rhs[:, at] = diag[:, at] + extra, rhs[:, at] + extra * ends[k]
        ends = [0 * end if kind == "robin" else end for kind, end in zip(kinds, ends, strict=True)]
        v = solved(lower, diag, upper, rhs, predicted, interfaces, kinds, ends, h)
        for i in interfaces:
            v[:, i] = 2 / 3 * (v[:, i + 1] + v[:, i - 1]) - (v[:, i + 2] + v[:, i - 2]) / 6
        return v

    def cycles(self, u, older, b, a, f, h, strips):
        """Sweep along a periodic axis, by one dense system for each line."""
        dt, n = self.dt, u.shape[1]
        before, after = np.roll(np.arange(n), 1), np.roll(np.arange(n), -1)
        interfaces = [k * n // strips for k in range(strips)] if strips > 1 else []
        s = np.arange(n) - b * dt / h
        k, part = np.floor(s).astype(int), s - np.floor(s)
        low, high = (np.take_along_axis(u, (k + shift) % n, 1) for shift in (0, 1))
        foot = low + part * (high - low)
        v = np.empty_like(u)
        for row in range(len(u)):
            bp, ap = 0.5 * (b[row] + b[row, after]), 0.5 * (a[row] + a[row, after])
            bm, am = bp[before], ap[before]
            q = dt * (bp - bm) / h
            if self.scheme == "cfd":
                lower, upper, right = dt * am / h**2, dt * ap / h**2, foot[row] + dt * f[row]
            else:
                sp = ap / (1 + h * abs(bp) / (2 * ap)) if self.upwind == "modified" else ap
                lower = dt * (sp[before] / h**2 + np.maximum(bm, 0) / h)
                upper = dt * (sp / h**2 - np.minimum(bp, 0) / h)
                right = u[row] + dt * f[row]
            matrix = np.diag(1 + q + lower + upper)
            for i in range(n):
                matrix[i, before[i]] -= lower[i]
                matrix[i, after[i]] -= upper[i]
            for i in interfaces:
                matrix[i] = np.eye(n)[i]
                if self.scheme == "mu":
                    s1, s2 = older[0][row, i], older[1][row, i]
                    right[i] = u[row, i] + (
                        u[row, i] - s1 if self.predictor == "newest" else s1 - s2
                    )
                    continue
                spread = ap[i] * (u[row, after[i]] - u[row, i])
                spread = (spread - am[i] * (u[row, i] - u[row, before[i]])) / h**2
                right[i] = (1 - q[i]) * foot[row, i] + dt * (spread + f[row, i])
            v[row] = np.linalg.solve(matrix, right)
        solved = v.copy()
        for i in interfaces:
            near = solved[:, (i + 1) % n] + solved[:, i - 1]
            v[:, i] = 2 / 3 * near - (solved[:, (i + 2) % n] + solved[:, i - 2]) / 6
        return v

    def predicted(self, u, older, interfaces, foot, q, ah, f, h):
        if self.scheme == "mu":
            s1, s2 = older
            newest = self.predictor == "newest"
            return [
                u[:, i] + (u[:, i] - s1[:, i] if newest else s1[:, i] - s2[:, i])
                for i in interfaces
            ]
        spread = np.diff(ah[:, 1:-1] * np.diff(u)) / h**2
        return [
            (1 - q[:, i]) * foot[:, i] + self.dt * (spread[:, i - 1] + f[:, i]) for i in interfaces
        ]

    def at_feet(self, u, b, h):
        n = u.shape[1] - 1
        s = np.arange(n + 1) - b * self.dt / h
        if self.foot == "clamp":
            s = np.clip(s, 0, n)
        k = np.clip(np.floor(s).astype(int), 0, n - 1)
        low, high = np.take_along_axis(u, k, 1), np.take_along_axis(u, k + 1, 1)
        return low + (s - k) * (high - low)


def beyond(values):
    """Halfway values of n + 1 nodes, with those beyond both ends: n + 2."""
    middle = 0.5 * (values[:, :-1] + values[:, 1:])
    return np.concatenate([values[:, :1], middle, values[:, -1:]], axis=1)


def solved(lower, diag, upper, rhs, predicted, interfaces, kinds, ends, h):
    """Solve each strip of all lines as systems of their own; return whole lines."""
    lower, diag, upper, rhs = (a.copy() for a in (lower, diag, upper, rhs))
    v = np.zeros_like(rhs)
    start, stop = 0, v.shape[1]
    if kinds[0] == "dirichlet":
        v[:, 0], start = ends[0], 1
    else:
        rhs[:, 0] -= lower[:, 0] * 2 * h * ends[0]
        upper[:, 0] += lower[:, 0]
    if kinds[1] == "dirichlet":
        v[:, -1], stop = ends[1], stop - 1
    else:
        rhs[:, -1] -= upper[:, -1] * 2 * h * ends[1]
        lower[:, -1] += upper[:, -1]
    for i, p in zip(interfaces, predicted, strict=True):
        v[:, i] = p
    for begin, end in zip([start, *(i + 1 for i in interfaces)], [*interfaces, stop], strict=True):
        right = rhs[:, begin:end].copy()
        if begin > 0:
            right[:, 0] -= lower[:, begin] * v[:, begin - 1]
        if end < v.shape[1]:
            right[:, -1] -= upper[:, end - 1] * v[:, end]
        rows = np.zeros((3, *right.shape))
        rows[0, :, 1:] = upper[:, begin : end - 1]
        rows[1] = diag[:, begin:end]
        rows[2, :, :-1] = lower[:, begin + 1 : end]
        flat = solve_banded((1, 1), rows.reshape(3, -1), right.ravel())
        v[:, begin:end] = flat.reshape(right.shape)
    return v
