"""Red-black relaxation written with NumPy slices alone: what the kernels are held against.

Arrays hold the frame, y along the first axis. Nothing here is imported from the package.
"""

import numpy as np


def jacobi(u, f, g, s, h, k):
    """Return J u at the interior nodes."""
    d = 2 * (h * h + k * k)
    west, east = k * k / d * (1 + h * f / 2), k * k / d * (1 - h * f / 2)
    south, north = h * h / d * (1 + k * g / 2), h * h / d * (1 - k * g / 2)
    around = west * u[1:-1, :-2] + east * u[1:-1, 2:]
    around = around + north * u[2:, 1:-1] + south * u[:-2, 1:-1]
    return around + h * h * k * k / d * s


def parameters(f, g, h, k, shape, relaxation):
    """Return omega of the red and of the black nodes, from the formulas as they are printed."""
    ny, nx = shape
    d = 2 * (h * h + k * k)
    lr = (k * k / d) ** 2 * (1 - (h * f / 2) ** 2) * np.ones(shape)
    tb = (h * h / d) ** 2 * (1 - (k * g / 2) ** 2) * np.ones(shape)
    a, b = 2 * np.sqrt(abs(lr)), 2 * np.sqrt(abs(tb))
    x, y = 1 / (nx + 1), 1 / (ny + 1)
    most = a * np.cos(np.pi * x) + b * np.cos(np.pi * y)
    least = a * np.cos(np.pi * (1 - x) / 2) + b * np.cos(np.pi * (1 - y) / 2)
    sign = np.where((lr >= 0) & (tb >= 0), -1.0, 1.0)
    with np.errstate(invalid="ignore"):
        root = np.sqrt((1 + sign * most**2) * (1 + sign * least**2))
        if relaxation == "lmsor-2012":
            root = np.where(sign < 0, np.sqrt((1 - most) * (1 - least)), root)
        red, black = 2 / (1 - most * least + root), 2 / (1 + most * least + root)
        if relaxation == "lsor":
            red = black = 2 / (1 + np.sqrt(1 + sign * most**2))
        mixed = lr * tb < 0
        a, b = a * np.cos(np.pi * x), b * np.cos(np.pi * y)
        mu_r, mu_i = np.where(lr > 0, a, b), np.where(lr > 0, b, a)
        other = 2 / (1 + np.sqrt(1 - mu_r**2 + mu_i**2 / (1 - mu_r ** (2 / 3))))
    return np.where(mixed, other, red), np.where(mixed, other, black)


def colours(shape):
    """Return the masks of red and black interior nodes, i + j counted with the frame."""
    j, i = np.indices(shape)
    return (i + j) % 2 == 0, (i + j) % 2 == 1


def relax(u, omegas, update):
    """Make one iteration in place; return the residuals that the nodes met."""
    met = np.zeros_like(u[1:-1, 1:-1])
    for mask, omega in zip(colours(met.shape), omegas, strict=True):
        residual = update(u)
        met[mask] = residual[mask]
        u[1:-1, 1:-1][mask] += (omega * residual)[mask]
    return met


def lmsor(u, f, g, s, extent, relaxation, count):
    """Return u after `count` iterations, and the residuals met in the last of them."""
    u = u.copy()
    shape = u.shape[0] - 2, u.shape[1] - 2
    h, k = extent[0] / (shape[1] + 1), extent[1] / (shape[0] + 1)
    if isinstance(relaxation, str):
        omegas = parameters(f, g, h, k, shape, relaxation)
    else:
        omegas = relaxation, relaxation
    for _ in range(count):
        met = relax(u, omegas, lambda u: jacobi(u, f, g, s, h, k) - u[1:-1, 1:-1])
    return u, met


def plate(shape, extent, sides, source, omega, count=None, tol=None):
    """Relax a plate with T given on its sides (x-, x+, y-, y+); return T and iterations.

    Ends after `count` iterations, or when the residuals met are at most `tol` of the
    right-hand side in the l2 norm.
    """
    ny, nx = shape
    dx, dy = extent[0] / nx, extent[1] / ny
    ax, ay = dy / dx, dx / dy
    west, east, south, north = np.zeros((4, ny, nx))
    west[:, 1:] = east[:, :-1] = ax
    south[1:] = north[:-1] = ay
    s_p, s_u = np.zeros(shape), source * dx * dy * np.ones(shape)
    for edge, a, value in zip(
        (np.s_[:, 0], np.s_[:, -1], np.s_[0], np.s_[-1]), (ax, ax, ay, ay), sides, strict=True
    ):
        s_p[edge] -= 2 * a
        s_u[edge] += 2 * a * value
    a_p = west + east + south + north - s_p
    t, made = np.zeros((ny + 2, nx + 2)), 0

    def update(t):
        around = west * t[1:-1, :-2] + east * t[1:-1, 2:]
        around = around + south * t[:-2, 1:-1] + north * t[2:, 1:-1]
        return around + s_u - a_p * t[1:-1, 1:-1]

    while count is None or made < count:
        met = relax(t, (omega / a_p, omega / a_p), update)
        made += 1
        if tol is not None and np.linalg.norm(met) <= tol * np.linalg.norm(s_u):
            break
    return t[1:-1, 1:-1], made
