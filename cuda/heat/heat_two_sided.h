/* heat_two_sided.h - lines along y from both ends to the middle, and back.
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
#ifndef PS_CUDA_HEAT_HEAT_TWO_SIDED_H
#define PS_CUDA_HEAT_HEAT_TWO_SIDED_H

#include "heat/heat_line.h"

namespace pysolvers::heat {

using namespace runtime;

template <typename Real> struct TwoSidedRow {
    Real before, rhs, next, own;
};

/* Rows 0 .. half-1 and half .. rows-1. Before the first row of a half, u is the value of
 * the side. Half k begins its way back with x of the other's middle row, which is
 * middle[k][0] times u of row half-1 and middle[k][1] times u of row half. */
template <typename Real> struct TwoSidedFactor {
    int32_t rows, half;
    Real middle[2][2];
    TwoSidedRow<Real> factor_row[1]; /* of all rows */
};

/* The rows of a half from its end to the middle: `count` of them, from `first` on. */
struct HalfRows {
    int count, first, step;

    template <typename Real>
    __device__ __forceinline__ HalfRows(const TwoSidedFactor<Real> &two_sided,
                                        unsigned half)
        : count(half == 0 ? two_sided.half : two_sided.rows - two_sided.half),
          first(half == 0 ? 0 : two_sided.rows - 1), step(half == 0 ? 1 : -1)
    {
    }

    __device__ __forceinline__ int row(int n) const
    {
        return first + n * step;
    }
};

template <typename Real>
inline size_t
two_sided_bytes(int64_t rows)
{
    return ps_cuda_padded(sizeof(TwoSidedFactor<Real>) +
                          static_cast<size_t>(rows) * sizeof(TwoSidedRow<Real>));
}

} // namespace pysolvers::heat

#endif
