"""Tridiagonal systems that are given by off-diagonals and row sums, solved in 120 digits."""

import mpmath
import numpy as np

DIGITS = 120


def solve(lower, sums, upper, rhs, *, periodic=False):
    """Return the solution of one system, rounded to float64."""
    with mpmath.workdps(DIGITS):
        return _rounded(_solve(*_matrix(lower, sums, upper, periodic), _exact(rhs)))


def solve_transposed(lower, sums, upper, rhs, *, periodic=False):
    """Return the solution of one system with the transposed matrix, rounded to float64."""
    with mpmath.workdps(DIGITS):
        matrix = _transposed(*_matrix(lower, sums, upper, periodic))
        return _rounded(_solve(*matrix, _exact(rhs)))


def gradients(lower, sums, upper, rhs, g, *, periodic=False):
    """Return x, and those of g . x with respect to lower, sums, upper and rhs, and their scales.

    The scales of lower and upper are |y_i| (|x_i| + |x_j|): the differences of x cancel.
    """
    with mpmath.workdps(DIGITS):
        matrix = _matrix(lower, sums, upper, periodic)
        x = _solve(*matrix, _exact(rhs))
        y = _solve(*_transposed(*matrix), _exact(g))
        n = len(x)
        before, after = [x[k - 1] for k in range(n)], [x[(k + 1) % n] for k in range(n)]
        if not periodic:
            before[0], after[-1] = x[0], x[-1]
        found = [
            [-a * (b - c) for a, b, c in zip(y, before, x, strict=True)],
            [-a * c for a, c in zip(y, x, strict=True)],
            [-a * (b - c) for a, b, c in zip(y, after, x, strict=True)],
            y,
        ]
        sizes = [[abs(a) * (abs(b) + abs(c)) for a, b, c in zip(y, before, x, strict=True)]]
        sizes += [[abs(a * c) for a, c in zip(y, x, strict=True)]]
        sizes += [[abs(a) * (abs(b) + abs(c)) for a, b, c in zip(y, after, x, strict=True)]]
        sizes += [[abs(a) for a in y]]
        return _rounded(x), [*map(_rounded, found)], [*map(_rounded, sizes)]


def check_gradients(operands, g, x, found, *, periodic=False):
    """Require x, and the gradients of g . x, to be those of 120 digits up to some rounding units.

    Each array has one system along its last axis for each entry of the first axis.
    """
    eps = np.finfo(g.dtype).eps
    for k in range(len(g)):
        rows = [a[k] for a in operands]
        truth, of, scales = gradients(*rows, g[k], periodic=periodic)
        assert np.abs(x[k] / truth - 1).max() <= 60 * eps
        for own, exact, scale in zip(found, of, scales, strict=True):
            inside = scale < 1e37  # a product of x and y that float32 holds
            assert (np.abs(own[k] - exact) <= 120 * eps * scale)[inside].all()


def _exact(values):
    return [mpmath.mpf(float(v)) for v in values]


def _rounded(values):
    return np.array([float(v) for v in values])


def _matrix(lower, sums, upper, periodic):
    """Return the three diagonals. The digits leave room for condition numbers of 1e60."""
    a, s, c = map(_exact, (lower, sums, upper))
    if not periodic:
        a[0] = c[-1] = mpmath.mpf(0)
    return a, [x - y - z for x, y, z in zip(s, a, c, strict=True)], c


def _transposed(a, b, c):
    n = len(b)
    return [c[k - 1] for k in range(n)], b, [a[(k + 1) % n] for k in range(n)]


def _solve(a, b, c, f):
    """Return the solution by ordinary elimination."""
    f, n = list(f), len(f)
    if n == 1:
        return [f[0] / (b[0] + a[0] + c[0])]
    # Row i: its pivot, its entries in the columns of the next and of the last unknown.
    pivot = list(b)
    after, far = list(c), [a[0], *[mpmath.mpf(0)] * (n - 1)]
    bottom, last, right = c[-1], pivot[-1], f[-1]
    for i in range(n - 1):
        if i > 0:
            m = a[i] / pivot[i - 1]
            pivot[i] -= m * after[i - 1]
            far[i] -= m * far[i - 1]
            f[i] -= m * f[i - 1]
        if i == n - 2:
            far[i] += after[i]
            after[i] = mpmath.mpf(0)
            bottom += a[-1]
        m = bottom / pivot[i]
        bottom = -m * after[i]
        last -= m * far[i]
        right -= m * f[i]
    x = [mpmath.mpf(0)] * n
    x[-1] = right / last
    for i in range(n - 2, -1, -1):
        x[i] = (f[i] - after[i] * x[i + 1] - far[i] * x[-1]) / pivot[i]
    return x


def family(rng, count, rows, dtype, *, symmetric=True):
    """Return random diagonals of both kinds, with row sums from 1e-12 to 100, many of them 0.

    Matrices that are not symmetric have an upwind drift of up to 2 : 1. Right-hand sides are >= 0.
    Condition numbers reach 1e30.
    """
    lower = 10 ** rng.uniform(-3, 3, (count, rows))
    upper = np.roll(lower, -1, axis=-1) * (1 if symmetric else rng.uniform(0.7, 1.4, (count, 1)))
    sums = 10 ** rng.uniform(-12, 2, (count, rows))
    sums *= rng.random((count, rows)) < rng.choice([0.0, 0.1, 0.5, 1.0], (count, 1))
    sums[:, rng.integers(rows)] += 10.0 ** rng.uniform(-24, -12)
    rhs = rng.random((count, rows)) * (rng.random((count, rows)) < 0.5)
    rhs[:, rng.integers(rows)] += 1.0
    return [a.astype(dtype) for a in (-lower, sums, -upper, rhs)]
