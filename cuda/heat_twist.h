/* heat_twist.h - lines along y from both ends to the middle, and back.
 *
 * Of a line of rows -a x_{j-1} + (1 + 2a) x_j - a x_{j+1} = b_j the first half is
 * eliminated downwards, the other one upwards:
 *
 *   u_j = before u_{j-1} + rhs b_j,   x_j = next x_{j+1} + own u_j
 *
 * and so with j-1 and j+1 exchanged. With g = own, and g' that of the row before,
 *
 *   rhs = 1 / (1 + a g'),  before = 1 - rhs,  next = a / (1 + a + a g'),  g = 1 - next
 *
 * where both sums are exactly 1 in floating point as well: a constant stays one. The
 * middle rows come from their u in both halves.
 */
#ifndef PS_CUDA_HEAT_TWIST_H
#define PS_CUDA_HEAT_TWIST_H

#include "heat_line.h"

template <typename Real> struct HeatRung {
    Real before, rhs, next, own;
};

/* Rows 0 .. half-1 and half .. rows-1. Before the first row of a half, u is the value of
 * the side. Half k begins its way back with x of the other's middle row, which is
 * middle[k][0] times u of row half-1 and middle[k][1] times u of row half. */
template <typename Real> struct HeatTwist {
    int32_t rows, half;
    Real middle[2][2];
    HeatRung<Real> rung[1]; /* of all rows */
};

/* The rows of a half from its end to the middle: `count` of them, from `first` on. */
struct HeatWay {
    int count, first, step;

    template <typename Real>
    __device__ __forceinline__ HeatWay(const HeatTwist<Real> &twist, unsigned half)
        : count(half == 0 ? twist.half : twist.rows - twist.half),
          first(half == 0 ? 0 : twist.rows - 1), step(half == 0 ? 1 : -1)
    {
    }

    __device__ __forceinline__ int row(int n) const
    {
        return first + n * step;
    }
};

template <typename Real>
inline size_t
heat_twist_bytes(int64_t rows)
{
    return ps_cuda_padded(sizeof(HeatTwist<Real>) +
                          static_cast<size_t>(rows) * sizeof(HeatRung<Real>));
}

#endif
