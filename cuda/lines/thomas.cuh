/* thomas.cuh - a row of the Thomas algorithm, the same for numbers and for blocks.
 *
 *   p_i = diag_i - lower_i c_{i-1},    c_i = p_i^-1 upper_i
 *   y_i = p_i^-1 (rhs_i - lower_i y_{i-1}),    x_i = y_i - c_i x_{i+1}
 *
 * Products keep their order. thomas.cu has the last row of periodic systems, of numbers.
 */
#ifndef PS_CUDA_LINES_THOMAS_CUH
#define PS_CUDA_LINES_THOMAS_CUH

#include "device/block.cuh"

namespace pysolvers::lines {

using namespace device;

/* Value: of right-hand sides and unknowns. */
template <typename Number, typename Value = Number> struct ThomasRow {
    Number lower, diag, upper;
    Value rhs;
};

template <typename Number> struct Eliminated {
    Number c, y, z;
};

template <typename Number>
__device__ __forceinline__ Number
inverse_of(const Number &pivot, bool *is_bad)
{
    *is_bad = is_bad_pivot(pivot);
    return reciprocal(pivot);
}

template <typename Real, int SIDE>
__device__ __forceinline__ Block<Real, SIDE>
inverse_of(const Block<Real, SIDE> &pivot, bool *is_bad)
{
    const Cofactors<Real, SIDE> of(pivot);

    *is_bad = false;
    if (of.is_safe()) {
        return of.inverse();
    }
    const Block<Real, SIDE> inverse = eliminated_reciprocal(pivot);

    *is_bad = !is_finite(inverse) || !is_finite(pivot);
    return inverse;
}

/* The previous row, the last row of a periodic system, and the first bad pivot. */
template <typename Number, typename Value = Number> struct Sweep {
    Number c;
    Value y;
    Number z;
    /* last row: entry in the next column, pivot, right-hand side */
    Number left, diag;
    Value rhs;
    int32_t info;

    __device__ __forceinline__ Number invert(Number pivot, int64_t i)
    {
        bool is_bad = false;
        const Number inverse = inverse_of(pivot, &is_bad);

        if (info == 0 && is_bad) {
            info = static_cast<int32_t>(i + 1);
        }
        return inverse;
    }

    /* `far`: the entry of a periodic system in its last column. */
    template <bool periodic>
    __device__ __forceinline__ void eliminate(const ThomasRow<Number, Value> &row,
                                              const Number &far, int64_t i)
    {
        const Number inverse = invert(row.diag - row.lower * c, i);

        y = inverse * (row.rhs - row.lower * y);
        c = inverse * row.upper;
        if constexpr (periodic) {
            z = inverse * (far - row.lower * z);
            diag = diag - left * z;
            rhs = rhs - left * y;
            left = -(left * c);
        }
    }
};

} // namespace pysolvers::lines

#endif
