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
 * The first row of a system, (b, d, c) with right-hand side f, is divided by c. It then
 * is an inner row whose left neighbour is v = delta x_0 + lambda y_left, with delta = d/c
 * + r + 1/r and lambda = b/c.
 *
 * 9 operations per row, 5 for Z and A and 4 for the sweeps; for each chunk 2 square roots
 * and 3 reciprocals. Factors with a constant ratio: Malcolm and Palmer 1974.
 */
#ifndef PS_CUDA_TRANSFORMS_WAVE_CHUNK_CUH
#define PS_CUDA_TRANSFORMS_WAVE_CHUNK_CUH

#include "lines/join/segment.cuh"

namespace pysolvers::transforms {

using namespace join;

/* The left neighbour of the first inner row, delta x_0 + lambda y_left. */
template <typename Real> struct LeftEnd {
    Real delta, lambda;

    __device__ __forceinline__ Real at(Real x_first, Real y_left) const
    {
        return delta * x_first + lambda * y_left;
    }
};

/* The ratio of a matrix with the diagonal -(2 + excess) between coefficients 1. */
template <typename Real>
__device__ __forceinline__ Real
ratio_of(Real excess)
{
    return 2 * reciprocal(2 + excess + sqrt(excess) * sqrt(excess + 4));
}

/* The coefficients of `count` <= 31 inner rows. If there is none, x_0 = y and
 * x_{-1} = y_left. */
template <typename Real> struct WaveChunk {
    Real r; /* ratio */
    Real over, near, far;

    __device__ __forceinline__ WaveChunk(Real ratio, int count) : r(ratio)
    {
        Real q = 0, power = 1;           /* q_k, r^k for the lower bits k of count */
        Real q_step = 1, power_step = r; /* for k = 2^bit */

#pragma unroll
        for (int bit = 0; bit < 5; bit++) {
            const bool is_set = (count >> bit) % 2 != 0;

            q = is_set ? q + power * power * q_step : q;
            power = is_set ? power * power_step : power;
            power_step *= power_step;
            q_step += power_step * q_step;
        }
        over = reciprocal(1 + r * r * q);
        near = r * q * over;
        far = power * over;
    }

    /* x_0 from A, -f_0 and the left end. */
    __device__ __forceinline__ Spike<Real> first(Real sum, Real head,
                                                 const LeftEnd<Real> &end) const
    {
        const Real p = reciprocal(1 - near * end.delta);

        return {p * (over * sum + near * head), -(p * near * end.lambda), -(p * far)};
    }

    /* The segment of the chunk from A, Z, -f_0, its left end and its last row. */
    __device__ __forceinline__ Segment<Real> segment(Real sum, Real z_last, Real head,
                                                     const LeftEnd<Real> &end,
                                                     const Row<Real> &last) const
    {
        const Spike<Real> x = first(sum, head, end);
        const Spike<Real> above = {z_last + far * (head - r * sum + end.delta * x.g),
                                   -far * (end.lambda - end.delta * x.l),
                                   -(near - far * end.delta * x.u)};

        return Segment<Real>::closed(x, above, last);
    }

    /* z_0 from the unknowns on both sides. */
    __device__ __forceinline__ Real z_first(Real sum, Real head, Real y_left,
                                            Real y) const
    {
        return r * (over * (y_left + head - r * sum) - r * far * y);
    }
};

} // namespace pysolvers::transforms

#endif
