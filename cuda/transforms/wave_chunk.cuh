/* wave_chunk.cuh - a chunk of rows that differ in the right-hand side only.
 *
 * The inner rows of a chunk, all but its last one, are, after a division,
 *
 *   x_{i-1} - (r + 1/r) x_i + x_{i+1} = f_i,  0 <= i < m,  0 < r <= 1
 *
 * Their matrix is the product of two with the constant ratio r:
 *
 *   z_i = r z_{i-1} - r f_i  (downwards),  x_i = z_i + r x_{i+1}  (upwards)
 *
 * so that rows have no pivots of their own, and a chunk no coefficients in memory. With
 * z_0 = 0 and x_m = 0 the sweeps give Z = z_{m-1} and A = x_0 = sum r^i z_i. With
 * q_k = 1 + r^2 + ... + r^(2k-2), which has terms of one sign for all r, and for any
 * unknowns y_left before the chunk and y = x_m, let
 *
 *   over = 1/q_{m+1},  near = r q_m over,  far = r^m over
 *
 *   x_0     = over A       - near f_0 + near y_left + far y
 *   x_{m-1} = Z - r far A  - far f_0  + far y_left  + near y
 *
 * These are the spikes of the partition method (segment.cuh). When y_left and y are
 * known, the sweeps are repeated from
 *
 *   z_0 = r (over (y_left - f_0 - r A) - r far y)
 *
 * An error of z_0 appears m times in x_0 if r is near 1. That of this formula is m times
 * smaller than that of z_0 = r (y_left - f_0 - r x_0).
 *
 * The first row of a system, with the coefficients b and c, the row sum t and the
 * right-hand side f, is divided by c. It then is an inner row whose left neighbour is
 *
 *   v = delta x_0 + lambda y_left,  delta = 1 - lambda - gap
 *   lambda = b/c,  gap = -t/c - e
 *
 * where e = r + 1/r - 2, so that -e is the row sum of an inner row. An e that is small
 * next to 1 must not be lost: it is the eigenvalue of the wave. The row sums S = 1 - (the
 * coefficients of y_left and y) of the spikes are therefore computed as sums of numbers
 * of one sign, and the segments are in the form of row_sums.cuh: with g_k = 1 + r + ... +
 * r^(k-1), as q_{m+1} = g_{m+1} (1 + r^(m+1)) / (1 + r),
 *
 *   1 - near - far = (1 - r)^2 g_m / (1 + r^(m+1)) = e r g_m / (1 + r^(m+1))
 *
 * The pivot of the first row, 1 - near delta, is this plus far + near (gap + lambda). A
 * gap is negative at a Neumann node only, where it is -e/2, and takes at most half of the
 * sum.
 *
 * 9 operations per row, 5 for Z and A and 4 for the sweeps; for each chunk 2 square roots
 * and 4 reciprocals. Factors with a constant ratio: Malcolm and Palmer 1974.
 */
#ifndef PS_CUDA_TRANSFORMS_WAVE_CHUNK_CUH
#define PS_CUDA_TRANSFORMS_WAVE_CHUNK_CUH

#include "lines/join/row_sums.cuh"

namespace pysolvers::transforms {

using namespace join;

/* The left neighbour of the first inner row, delta x_0 + lambda y_left. */
template <typename Real> struct LeftEnd {
    Real lambda, gap;

    __device__ __forceinline__ Real delta() const
    {
        return 1 - lambda - gap;
    }
    __device__ __forceinline__ Real at(Real x_first, Real y_left) const
    {
        return delta() * x_first + lambda * y_left;
    }
};

/* The ratio of a matrix with the diagonal -(2 + excess) between coefficients 1. */
template <typename Real>
__device__ __forceinline__ Real
ratio_of(Real excess)
{
    return 2 * reciprocal(2 + excess + sqrt(excess) * sqrt(excess + 4));
}

/* The coefficients of `count` < 2^BITS inner rows. If there is none, x_0 = y and
 * x_{-1} = y_left. */
template <typename Real, int BITS = 5> struct WaveChunk {
    Real r; /* ratio */
    Real over, near, far;
    Real sum; /* 1 - near - far */

    __device__ __forceinline__ WaveChunk(Real excess, int count) : r(ratio_of(excess))
    {
        Real q = 0, g = 0, power = 1; /* q_k, g_k, r^k for the lower bits k of count */
        Real q_step = 1, g_step = 1, power_step = r; /* for k = 2^bit */

#pragma unroll
        for (int bit = 0; bit < BITS; bit++) {
            const bool is_set = (count >> bit) % 2 != 0;

            q = is_set ? q + power * power * q_step : q;
            g = is_set ? g + power * g_step : g;
            power = is_set ? power * power_step : power;
            g_step += power_step * g_step;
            power_step *= power_step;
            q_step += power_step * q_step;
        }
        over = reciprocal(1 + r * r * q);
        near = r * q * over;
        far = power * over;
        sum = excess * r * g * reciprocal(1 + r * power);
    }

    /* x_0 from A, -f_0 and the left end. */
    __device__ __forceinline__ SummedUnknown<Real> first(Real total, Real head,
                                                         const LeftEnd<Real> &end) const
    {
        const Real own = sum + near * end.gap;
        const Real p = reciprocal(own + far + near * end.lambda);

        return {p * (over * total + near * head), p * near * end.lambda, p * far,
                p * own};
    }

    /* The segment of the chunk from A, Z, -f_0, its left end and its last row. */
    __device__ __forceinline__ Segment<BySums<Real>>
    segment(Real total, Real z_last, Real head, const LeftEnd<Real> &end,
            const Row<BySums<Real>> &last) const
    {
        const SummedUnknown<Real> x = first(total, head, end);
        const Real delta = end.delta();
        const SummedUnknown<Real> above = {
            z_last + far * (head - r * total + delta * x.g),
            far * (end.lambda + delta * x.l), near + far * delta * x.u,
            sum + far * (end.gap + delta * x.s)};

        return Segment<BySums<Real>>::closed({x.g, x.s, x.u}, above, last);
    }

    /* z_0 from the unknowns on both sides. */
    __device__ __forceinline__ Real z_first(Real total, Real head, Real y_left,
                                            Real y) const
    {
        return r * (over * (y_left + head - r * total) - r * far * y);
    }
};

} // namespace pysolvers::transforms

#endif
