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

# Entry i % 16, in row p and column q, of the blocks of point i / 16: neighbouring threads write
# neighbours.
BLOCKS = """
    const long long point = i / 16;
    const int k = i % 16, p = k / 4, q = k % 4;
    const bool is_upper = p >= 2 && q >= 2;
    const long long after = is_upper ? point + 1 : point; // A of the point after in `upper`
    const double dt = after > 0 && after < count ? t[after] - t[after - 1] : 0, u = a * dt;
    const double e = exp(-u);
    const int r = is_upper ? q - 2 : p, c = is_upper ? p - 2 : q;
    const double of_a = r == 0 ? (c == 0 ? e * (1 + u) : e * dt)
                               : (c == 0 ? -a * u * e : e * (1 - u));
    double of_q = 0;

    if (p < 2 && q >= 2) {
        const double x = 2 * u, e2 = e * e;

        if (p == 0 && q == 2) {
            double term = 1.0 / 6, sum = 0;
            for (int m = 4; m < 20; m++) {
                sum += term;
                term *= x / m;
            }
            of_q = x < 1 ? x * x * x * e2 * sum : 1 - e2 * (1 + x + x * x / 2);
            of_q = point > 0 ? of_q : 1;
        }
        else if (p == 1 && q == 3) {
            const double p1 = x < 1 ? e2 * x * (1 - x / 2) - expm1(-x)
                                    : 1 - e2 * (1 - x + x * x / 2);
            of_q = a * a * (point > 0 ? p1 : 1);
        }
        else {
            of_q = 2 * a * u * u * e2;
        }
    }
    lower[i] = p < 2 && q < 2 && point > 0 ? -of_a : 0;
    upper[i] = is_upper && after < count ? -of_a : 0;
    diag[i] = p == q ? 1 : k == 8 ? weight : -variance * of_q;
    if (k < 4) {
        rhs[4 * point + k] = k == 2 ? weight * y[point] : 0;
    }
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
    terms[i] = y[i] * z;
    const double by_q = b11 * q[16 * i + 2] + b12 * q[16 * i + 3] + b22 * q[16 * i + 7];
    terms[count + i] = -by_q / variance;
    terms[2 * count + i] = by_a;
    terms[3 * count + i] = (z * z - weight + diag[16 * i + 2] * weight * weight) / 2;
"""
_NUMBERS = "float64 a, float64 variance, float64 weight"


@cache
def _kernels() -> tuple[Any, Any]:
    from cupy import ElementwiseKernel

    outputs = ", ".join(f"raw float64 {name}" for name in ("lower", "diag", "upper", "rhs"))
    blocks = ElementwiseKernel(
        f"raw float64 t, raw float64 y, int64 count, {_NUMBERS}", outputs, BLOCKS, "matern_blocks"
    )
    inputs = ", ".join(f"raw float64 {name}" for name in ("t", "y", "s", "q", "diag", "upper"))
    terms = ElementwiseKernel(
        f"{inputs}, int64 count, {_NUMBERS}", "raw float64 terms", TERMS, "matern_terms"
    )
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
    blocks(t, y, n, *numbers, lower, diag, upper, rhs, size=16 * n)
    factor = factor_block_tridiagonal(lower, diag, upper, pivot=False, on_singular="ignore")
    states = factor.solve(rhs)
    _, own, after = factor.inverse_blocks()
    parts = cupy.empty((4, n))
    terms(t, y, states, diag, own, after, n, *numbers, parts, size=n)
    fit, by_variance, by_a, by_noise = parts.sum(1)
    value = -(fit + factor.logdet() + n * log(2 * pi * noise)) / 2
    return value, cupy.stack((by_variance, -by_a * a / length, by_noise))
