"""Steps of the cavity on a staggered grid, by dense algebra."""

import numpy as np


def state(cavity):
    return cavity.u.copy(), cavity.v.copy(), cavity.p, cavity.time, cavity.change, cavity.sweeps


def neumann_laplacian(n):
    """Dense five-point Laplacian of n x n cells with zero normal derivatives."""
    line = np.diag(-2.0 * np.ones(n)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    line[0, 0] = line[-1, -1] = -1
    return (np.kron(line, np.eye(n)) + np.kron(np.eye(n), line)) * n**2


def convection(a, b, c_minus, c_plus, gamma):
    """Difference of the flux of c with the velocities b and a on its two sides, times 4 h.

    c_minus and c_plus are pairs (value on the lower side, value on the upper side) of both faces.
    """
    upper = a * (c_plus[0] + c_plus[1]) + gamma * np.abs(a) * (c_plus[0] - c_plus[1])
    lower = b * (c_minus[0] + c_minus[1]) + gamma * np.abs(b) * (c_minus[0] - c_minus[1])
    return upper - lower


def reference_step(u, v, re, dt, gamma, lid=1.0, force=(0.0, 0.0)):
    """One step of the scheme: u of shape (n, n + 1), v of shape (n + 1, n)."""
    n = len(u)
    h = 1 / n
    us = np.vstack([-u[:1], u, 2 * lid - u[-1:]])  # (n + 2, n + 1)
    vs = np.hstack([-v[:, :1], v, -v[:, -1:]])  # (n + 1, n + 2)
    f, g = np.zeros_like(u), np.zeros_like(v)

    c, e, w = us[1:-1, 1:-1], us[1:-1, 2:], us[1:-1, :-2]
    up, down = us[2:, 1:-1], us[:-2, 1:-1]
    above, below = vs[1:, 1:-2] + vs[1:, 2:-1], vs[:-1, 1:-2] + vs[:-1, 2:-1]
    change = convection(c + e, w + c, (w, c), (c, e), gamma)
    change = change + convection(above, below, (down, c), (c, up), gamma)
    f[:, 1:-1] = c + dt * ((e + w + up + down - 4 * c) / h**2 / re - change / (4 * h))

    c, e, w = vs[1:-1, 1:-1], vs[1:-1, 2:], vs[1:-1, :-2]
    up, down = vs[2:, 1:-1], vs[:-2, 1:-1]
    right, left = us[1:-2, 1:] + us[2:-1, 1:], us[1:-2, :-1] + us[2:-1, :-1]
    change = convection(right, left, (w, c), (c, e), gamma)
    change = change + convection(c + up, down + c, (down, c), (c, up), gamma)
    g[1:-1] = c + dt * ((e + w + up + down - 4 * c) / h**2 / re - change / (4 * h))

    f[:, 1:-1] += dt * np.broadcast_to(force[0], u.shape)[:, 1:-1]
    g[1:-1] += dt * np.broadcast_to(force[1], v.shape)[1:-1]
    q = (np.diff(f, axis=1) + np.diff(g, axis=0)) / (h * dt)
    p = np.linalg.lstsq(neumann_laplacian(n), q.ravel(), rcond=None)[0].reshape(n, n)
    f[:, 1:-1] -= dt * np.diff(p, axis=1) / h
    g[1:-1] -= dt * np.diff(p, axis=0) / h
    return f, g, p - p.mean()
