/* heat_two_sided.h - lines along y, eliminated from both ends to the middle.
 *
 * A line has rows -a x_{j-1} + (1 + 2a) x_j - a x_{j+1} = b_j. Its first half is
 * eliminated for increasing j, the second for decreasing j:
 *
 *   u_j = before u_{j-1} + rhs b_j,   x_j = next x_{j+1} + own u_j
 *
 * in the second half with j-1 and j+1 exchanged. With g = own, and g' that of the
 * previous row,
 *
 *   rhs = 1 / (1 + a g'),  before = 1 - rhs,  next = a / (1 + a + a g'),  g = 1 - next
 *
 * Both sums, rhs + before and own + next, are exactly 1 in floating point as well, so
 * that a constant solution stays constant. The middle rows follow from u of both
 * halves.
 */
#ifndef PS_CUDA_HEAT_HEAT_TWO_SIDED_H
#define PS_CUDA_HEAT_HEAT_TWO_SIDED_H

#include "heat/heat_line.h"

namespace pysolvers::heat {

using namespace runtime;

template <typename Real> struct TwoSidedRow {
    Real before, rhs, next, own;
};

/* Rows 0 .. half-1 and half .. rows-1. Before the first row of a half, u is the value
 * of the side. Back substitution of half k begins with x of the middle row of the other
 * half, which is middle[k][0] times u of row half-1 plus middle[k][1] times u of row
 * half. */
template <typename Real> struct TwoSidedFactor {
    int32_t rows, half;
    Real middle[2][2];
    TwoSidedRow<Real> factor_row[1]; /* of all rows */
};

/* The rows of a half from its end to the middle: `count` rows, from `first` on. */
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
