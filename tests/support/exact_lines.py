"""Tridiagonal systems that are given by off-diagonals and row sums, solved in 120 digits."""

import mpmath
import numpy as np


def solve(lower, sums, upper, rhs, *, periodic=False):
    """Return the solution of one system, rounded to float64.

    The elimination is the ordinary one: the digits leave room for a condition number of 1e60.
    """
    with mpmath.workdps(120):
        words = lower, sums, upper, rhs
        a, s, c, f = (
            [mpmath.mpf(v if isinstance(v, mpmath.mpf) else float(v)) for v in values]
            for values in words
        )
        n = len(f)
        if not periodic:
            a[0] = c[-1] = mpmath.mpf(0)
        if n == 1:
            return np.array([float(f[0] / s[0])])
        # Row i: its pivot, its entries in the columns of the next and of the last unknown.
        pivot = [s[i] - a[i] - c[i] for i in range(n)]
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
        return np.array([float(v) for v in x])


def solve_transposed(lower, sums, upper, rhs, *, periodic=False):
    """Return the solution of one system with the transposed matrix, rounded to float64.

    The row sums of the transpose are differences, which the digits keep.
    """
    with mpmath.workdps(120):
        a, s, c = ([mpmath.mpf(float(v)) for v in values] for values in (lower, sums, upper))
        n = len(s)
        if not periodic:
            a[0] = c[-1] = mpmath.mpf(0)
        below, above = [c[k - 1] for k in range(n)], [a[(k + 1) % n] for k in range(n)]
        own = [s[k] - a[k] - c[k] + below[k] + above[k] for k in range(n)]
        return solve(below, own, above, rhs, periodic=periodic)
