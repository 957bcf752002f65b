/* sides.cuh - numbers of matrices that have COUNT right-hand sides each: a value is the numbers
 * of all of them.
 *
 * The algebra of segment.cuh for such numbers eliminates a matrix once and carries its
 * right-hand sides along: of the 17 operations of a row, 7 are those of one right-hand side.
 */
#ifndef PS_CUDA_DEVICE_SIDES_CUH
#define PS_CUDA_DEVICE_SIDES_CUH

#include "device/block.cuh"

namespace pysolvers::device {

template <typename Real, int COUNT> struct WithSides {
    using Value = Column<Real, COUNT>;
    Real value;

    WithSides() = default;
    __host__ __device__ constexpr WithSides(Real number) : value(number)
    {
    }
    __device__ __forceinline__ WithSides operator-() const
    {
        return -value;
    }
    friend __device__ __forceinline__ WithSides operator-(WithSides a, WithSides b)
    {
        return a.value - b.value;
    }
    friend __device__ __forceinline__ WithSides operator+(WithSides a, WithSides b)
    {
        return a.value + b.value;
    }
    friend __device__ __forceinline__ WithSides operator*(WithSides a, WithSides b)
    {
        return a.value * b.value;
    }
    friend __device__ __forceinline__ Value operator*(WithSides a, Value b)
    {
#pragma unroll
        for (int p = 0; p < COUNT; p++) {
            b.at[p] *= a.value;
        }
        return b;
    }
};

template <typename Real, int COUNT> struct ValueOfNumber<WithSides<Real, COUNT>> {
    using type = Column<Real, COUNT>;
};

template <typename Real, int COUNT>
struct number_traits<WithSides<Real, COUNT>> : number_traits<Real> {};

/* The right-hand sides of a matrix. */
template <typename Number>
static constexpr int sides_of_number = sizeof(ValueOf<Number>) / sizeof(Number);

template <typename Real, int COUNT>
__device__ __forceinline__ WithSides<Real, COUNT>
shuffle(unsigned mask, WithSides<Real, COUNT> x, int lane, int width = 32)
{
    return shuffle(mask, x.value, lane, width);
}

template <typename Real, int COUNT>
__device__ __forceinline__ bool
is_dominant(WithSides<Real, COUNT> lower, WithSides<Real, COUNT> diag,
            WithSides<Real, COUNT> upper)
{
    return is_dominant(lower.value, diag.value, upper.value);
}

template <typename Real, int COUNT>
__device__ __forceinline__ bool
is_bad_pivot(WithSides<Real, COUNT> x)
{
    return is_bad_pivot(x.value);
}

template <typename Real, int COUNT>
__device__ __forceinline__ WithSides<Real, COUNT>
reciprocal(WithSides<Real, COUNT> x)
{
    return reciprocal(x.value);
}

template <typename Real, int COUNT>
struct FastReciprocal<WithSides<Real, COUNT>> : FastReciprocal<Real> {
    __device__ __forceinline__ WithSides<Real, COUNT> invert(WithSides<Real, COUNT> pivot,
                                                             int32_t row)
    {
        return FastReciprocal<Real>::invert(pivot.value, row);
    }
};

template <typename Real, int COUNT> struct SafeReciprocal<WithSides<Real, COUNT>> {
    BadPivot &bad_pivot;

    __device__ __forceinline__ WithSides<Real, COUNT> invert(WithSides<Real, COUNT> pivot,
                                                             int32_t row)
    {
        return SafeReciprocal<Real>{bad_pivot}.invert(pivot.value, row);
    }
};

} // namespace pysolvers::device

#endif
