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

# Row i % 4 of the blocks of point i / 4: neighbouring threads write neighbours.
BLOCKS = """
    const long long point = i / 4;
    const int p = i % 4;
    const long long after = p < 2 ? point : point + 1; // the point of A in this row
    const double dt = after > 0 && after < count ? t[after] - t[after - 1] : 0, u = a * dt;
    const double e = exp(-u), e2 = e * e, x = 2 * u;
    const double a00 = e * (1 + u), a01 = e * dt, a10 = -a * u * e, a11 = e * (1 - u);
    double2 row[3][2] = {}; // of lower, diag and upper

    if (p < 2) {
        double own = a * a * variance; // of Q, on its diagonal

        if (p == 0) {
            double sum = 1; // of the series of P, by Horner's rule
            #pragma unroll
            for (int m = 18; m >= 4; m--) {
                sum = 1 + x * (1.0 / m) * sum;
            }
            own = variance *
                  (x < 1 ? x * x * x * e2 * sum / 6 : 1 - e2 * (1 + x + x * x / 2));
            own = point > 0 ? own : variance;
        }
        else if (point > 0) {
            own *= x < 1 ? e2 * x * (1 - x / 2) - expm1(-x) : 1 - e2 * (1 - x + x * x / 2);
        }
        const double other = variance * 2 * a * u * u * e2;

        if (point > 0) {
            row[0][0] = p == 0 ? make_double2(-a00, -a01) : make_double2(-a10, -a11);
        }
        row[1][0] = make_double2(p == 0, p == 1);
        row[1][1] = p == 0 ? make_double2(-own, -other) : make_double2(-other, -own);
    }
    else {
        row[1][0].x = p == 2 ? weight : 0;
        row[1][1] = make_double2(p == 2, p == 3);
        if (after < count) {
            row[2][1] = p == 2 ? make_double2(-a00, -a10) : make_double2(-a01, -a11);
        }
    }
    // Two threads exchange halves of their rows, so that each store fills sectors of 32 bytes.
    double2 *const to[3] = {reinterpret_cast<double2 *>(&lower[4 * i]),
                            reinterpret_cast<double2 *>(&diag[4 * i]),
                            reinterpret_cast<double2 *>(&upper[4 * i])};
    const int odd = p % 2;
    const unsigned pair = 3u << (threadIdx.x & 30);
    for (int d = 0; d < 3; d++) {
        const double2 sent = odd ? row[d][0] : row[d][1];
        const double2 other = make_double2(__shfl_xor_sync(pair, sent.x, 1),
                                           __shfl_xor_sync(pair, sent.y, 1));
        to[d][-odd] = odd ? other : row[d][0];
        to[d][2 - odd] = odd ? row[d][1] : other;
    }
    rhs[i] = p == 2 ? weight * y[point] : 0;
"""
# Terms of the fit and of the derivatives by a and noise.
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
    terms[count + i] = by_a;
    terms[2 * count + i] = (z * z - weight + diag[16 * i + 2] * weight * weight) / 2;
"""
_NUMBERS = "float64 a, float64 variance, float64 weight"


@cache
def _kernels() -> tuple[Any, Any]:
    from cupy import ElementwiseKernel

    outputs = ", ".join(f"raw float64 {name}" for name in ("lower", "diag", "upper", "rhs"))
    blocks = ElementwiseKernel(
        f"raw float64 t, raw float64 y, int64 count, {_NUMBERS}", outputs, BLOCKS, "matern_blocks"
    )
    inputs = ", ".join(f"raw float64 {name}" for name in ("t", "y", "s", "diag", "upper"))
    terms = ElementwiseKernel(
        f"{inputs}, int64 count, {_NUMBERS}", "raw float64 terms", TERMS, "matern_terms"
    )
    return blocks, terms


def likelihood(
    t: Array, y: Array, variance: float, length: float, noise: float, *, derivatives: bool = True
) -> tuple[Array, Array | None]:
    """Return the log likelihood, and its derivatives by variance, length and noise.

    `t` are sorted; `t` and `y` are arrays of CuPy, and so are the results. Without `derivatives`
    the second result is None.
    """
    import cupy

    blocks, terms = _kernels()
    n, a = len(t), sqrt(3) / length
    numbers = (a, variance, 1 / noise)
    lower, diag, upper = (cupy.empty((n, 4, 4)) for _ in range(3))
    rhs = cupy.empty((n, 4, 1))
    blocks(t, y, n, *numbers, lower, diag, upper, rhs, size=4 * n)
    factor = factor_block_tridiagonal(lower, diag, upper, pivot=False, on_singular="ignore")
    states = factor.solve(rhs)
    constant = factor.logdet() + n * log(2 * pi * noise)
    if not derivatives:
        return -((y * (y - states[:, 0, 0])).sum() / noise + constant) / 2, None
    _, own, after = factor.inverse_blocks()
    parts = cupy.empty((3, n))
    terms(t, y, states, own, after, n, *numbers, parts, size=n)
    fit, by_a, by_noise = (part.sum() for part in parts)
    # of the likelihood for c variance and c noise, by c = 1
    by_scale = (fit - n) / 2
    by_variance = (by_scale - noise * by_noise) / variance
    return -(fit + constant) / 2, cupy.stack((by_variance, -by_a * a / length, by_noise))
