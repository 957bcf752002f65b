"""The likelihood of a Gaussian process on a GPU, and its derivatives.

y_i = f(t_i) + noise, where f has the covariance of Matern with ν = 3/2. With a = sqrt(3) / length
and u = a (t_i - t_{i-1}), the states x = (f, f') are x_i = A_i x_{i-1} + w_i with noise of the
covariance Q_i,

    A = exp(-u) [1 + u, u / a; -a u, 1 - u]
    Q = variance [P(3, 2 u), 2 a u² exp(-2 u); ., a² (1 - exp(-2 u) (1 - 2 u + 2 u²))]

with the regularised incomplete gamma function P, and states and multipliers are a block tridiagonal
system with blocks of 4 rows (docs/block_systems.md). One kernel makes the blocks, another one the
terms of the derivatives.
"""

from functools import cache
from math import log, pi, sqrt
from typing import Any

from pysolvers import factor_block_tridiagonal

Array = Any

# Of one point i; `row` are the 16 entries of a block.
BLOCKS = """
    const double dt = i > 0 ? t[i] - t[i - 1] : 0, u = a * dt, x = 2 * u;
    const double e = exp(-u), e2 = e * e;
    double p3 = 1 - e2 * (1 + x + x * x / 2);

    if (x < 1) {
        double term = 1.0 / 6, sum = 0;
        for (int k = 4; k < 20; k++) {
            sum += term;
            term *= x / k;
        }
        p3 = x * x * x * e2 * sum;
    }
    const double g = 1 - e2 * (1 - x + x * x / 2);
    const double p1 = x < 1 ? e2 * x * (1 - x / 2) - expm1(-x) : g;
    const double of[3] = {p3, 2 * a * u * u * e2, a * a * p1};
    const double q11 = variance * (i > 0 ? of[0] : 1), q12 = variance * of[1];
    const double q22 = variance * (i > 0 ? of[2] : a * a);
    const double a11 = e * (1 + u), a12 = e * dt, a21 = -a * u * e, a22 = e * (1 - u);
    const double low[16] = {-a11, -a12, 0, 0, -a21, -a22, 0, 0};
    const double mid[16] = {1, 0, -q11, -q12, 0, 1, -q12, -q22, weight, 0, 1, 0, 0, 0, 0, 1};

    for (int k = 0; k < 16; k++) {
        lower[16 * i + k] = low[k];
        diag[16 * i + k] = mid[k];
    }
    for (int k = 0; k < 16; k++) {
        if (i > 0) {
            upper[16 * (i - 1) + k] = 0;
        }
        else {
            upper[16 * (n - 1) + k] = 0;
        }
    }
    if (i > 0) {
        upper[16 * (i - 1) + 10] = -a11;
        upper[16 * (i - 1) + 11] = -a21;
        upper[16 * (i - 1) + 14] = -a12;
        upper[16 * (i - 1) + 15] = -a22;
    }
    rhs[4 * i] = rhs[4 * i + 1] = rhs[4 * i + 3] = 0;
    rhs[4 * i + 2] = weight * y[i];
"""
# Terms of the fit and of the derivatives by variance, a and noise.
TERMS = """
    const double dt = i > 0 ? t[i] - t[i - 1] : 0, u = a * dt, e = exp(-u), e2 = e * e;
    const double l1 = s[4 * i + 2], l2 = s[4 * i + 3];
    const double b11 = (l1 * l1 + diag[16 * i + 8]) / 2, b22 = (l2 * l2 + diag[16 * i + 13]) / 2;
    const double b12 = (l1 * l2 + diag[16 * i + 9]) / 2 + (l1 * l2 + diag[16 * i + 12]) / 2;
    const double z = (y[i] - s[4 * i]) * weight;
    const double x = 2 * u, g = 1 - e2 * (1 - x + x * x / 2), h = e2 * (2 - 2 * x + x * x / 2);
    double by_a = b22 * variance * 2 * a;

    if (i > 0) {
        const double f1 = s[4 * i - 4], f2 = s[4 * i - 3];
        const double *const next = &upper[16 * (i - 1)];
        by_a = variance * (b11 * 4 * u * u * dt * e2 + b12 * 2 * u * u * e2 * (3 - 2 * u) +
                           b22 * 2 * a * (g + u * h));
        by_a += (l1 * f1 + next[0]) * -u * dt * e + (l1 * f2 + next[4]) * -dt * dt * e +
                (l2 * f1 + next[1]) * e * (u * u - 2 * u) + (l2 * f2 + next[5]) * e * dt * (u - 2);
    }
    terms[4 * i] = y[i] * z;
    const double by_q = b11 * q[16 * i + 2] + b12 * q[16 * i + 3] + b22 * q[16 * i + 7];
    terms[4 * i + 1] = -by_q / variance;
    terms[4 * i + 2] = by_a;
    terms[4 * i + 3] = (z * z - weight + diag[16 * i + 2] * weight * weight) / 2;
"""
_NUMBERS = "float64 a, float64 variance, float64 weight"


@cache
def _kernels() -> tuple[Any, Any]:
    from cupy import ElementwiseKernel

    outputs = ", ".join(f"raw float64 {name}" for name in ("lower", "diag", "upper", "rhs"))
    blocks = ElementwiseKernel(
        f"raw float64 t, raw float64 y, int64 n, {_NUMBERS}", outputs, BLOCKS, "matern_blocks"
    )
    inputs = ", ".join(f"raw float64 {name}" for name in ("t", "y", "s", "q", "diag", "upper"))
    terms = ElementwiseKernel(f"{inputs}, {_NUMBERS}", "raw float64 terms", TERMS, "matern_terms")
    return blocks, terms


def likelihood(
    t: Array, y: Array, variance: float, length: float, noise: float
) -> tuple[Array, Array]:
    """Return the log likelihood, and its derivatives by variance, length and noise.

    `t` are sorted; `t` and `y` are arrays of CuPy, and so are the results.
    """
    import cupy

    blocks, terms = _kernels()
    n, a = len(t), sqrt(3) / length
    numbers = (a, variance, 1 / noise)
    lower, diag, upper = (cupy.empty((n, 4, 4)) for _ in range(3))
    rhs = cupy.empty((n, 4, 1))
    blocks(t, y, n, *numbers, lower, diag, upper, rhs, size=n)
    factor = factor_block_tridiagonal(lower, diag, upper, pivot=False, on_singular="ignore")
    states = factor.solve(rhs)
    _, own, after = factor.inverse_blocks()
    parts = cupy.empty((n, 4))
    terms(t, y, states, diag, own, after, *numbers, parts, size=n)
    fit, by_variance, by_a, by_noise = parts.sum(0)
    value = -(fit + factor.logdet() + n * log(2 * pi * noise)) / 2
    return value, cupy.stack((by_variance, -by_a * a / length, by_noise))
