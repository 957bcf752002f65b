/* pivot.cuh - reciprocals of pivots, fast or safe.
 *
 * FastReciprocal inverts without a branch. The result is exact to an ulp if the pivot
 * lies in a wide range around 1; the object records whether all pivots did.
 * SafeReciprocal inverts any pivot and records the first bad one. If in_safe_range() is
 * false after an elimination, the elimination is repeated with SafeReciprocal. Both
 * give the same bits for pivots in the range.
 */
#ifndef PS_CUDA_DEVICE_PIVOT_CUH
#define PS_CUDA_DEVICE_PIVOT_CUH

#include "device/number.cuh"

namespace pysolvers::device {

/* Of blocks of 2 x 2 whose eigenvalues are real: whether they are positive. */
template <typename Number>
__device__ __forceinline__ bool
has_positive_eigenvalues(const Number &)
{
    return true;
}

/* The row of the first bad pivot of a thread. The eigenvalues of the pivots of positive definite
 * matrices are positive, and so are those of the products that the join of units inverts: of the
 * inverse of such a pivot and of such a pivot that is left. */
struct BadPivot {
    static constexpr int32_t none = INT32_MAX;
    int32_t row = none;
    bool is_definite = false; /* others are bad */

    template <typename Number>
    __device__ __forceinline__ void check(const Number &pivot, int32_t at)
    {
        if (is_bad_pivot(pivot) || (is_definite && !has_positive_eigenvalues(pivot))) {
            row = min(row, at);
        }
    }
};

/* An integer key that increases with the magnitude of a pivot, and the range of keys in
 * which FastReciprocal is exact: 2^-100 .. 2^100 for float, 2^-1000 .. 2^1000 for
 * double, half of the exponents for complex numbers, which are squared. */
template <typename Number> struct PivotKey;
template <> struct PivotKey<float> {
    using type = float;
    static constexpr float least = 7.8886091e-31f, most = 1.2676506e30f;
    static __device__ __forceinline__ float of(float x)
    {
        return fabsf(x);
    }
    /* The key of 2^exponent. */
    static __device__ __forceinline__ constexpr float power(int exponent)
    {
        float x = 1;

        for (int i = 0; i < exponent; i++) {
            x *= 2;
        }
        return x;
    }
    /* The key of 2^exponent times the number of `key`. */
    static __device__ __forceinline__ float times_power(float key, int exponent)
    {
        return key * power(exponent);
    }
};
template <> struct PivotKey<double> {
    /* the upper half of the bits: exponents compare like integers */
    using type = int32_t;
    static constexpr int32_t least = (1023 - 1000) << 20, most = (1023 + 1000) << 20;
    static __device__ __forceinline__ int32_t of(double x)
    {
        return __double2hiint(x) & 0x7fffffff;
    }
    static __device__ __forceinline__ constexpr int32_t power(int exponent)
    {
        return (1023 + exponent) << 20;
    }
    static __device__ __forceinline__ int32_t times_power(int32_t key, int exponent)
    {
        return key + (exponent << 20);
    }
};
template <> struct PivotKey<Complex<float>> {
    using type = float;
    static constexpr float least = 8.8817842e-16f, most = 1.1258999e15f;
    static __device__ __forceinline__ float of(Complex<float> z)
    {
        return fmaxf(fabsf(z.re), fabsf(z.im));
    }
};
template <> struct PivotKey<Complex<double>> {
    using type = int32_t;
    static constexpr int32_t least = (1023 - 500) << 20, most = (1023 + 500) << 20;
    static __device__ __forceinline__ int32_t of(Complex<double> z)
    {
        return max(PivotKey<double>::of(z.re), PivotKey<double>::of(z.im));
    }
};

template <typename Real>
__device__ __forceinline__ Complex<Real>
fast_reciprocal(Complex<Real> z)
{
    const Real p = fast_reciprocal(z.re * z.re + z.im * z.im);
    return {z.re * p, -(z.im * p)};
}

template <typename Number> struct FastReciprocal {
    using Key = PivotKey<Number>;
    typename Key::type low = Key::most, high = Key::least;

    __device__ __forceinline__ Number invert(Number pivot, int32_t)
    {
        const typename Key::type key = Key::of(pivot);

        low = min(low, key);
        high = max(high, key);
        return fast_reciprocal(pivot);
    }
    __device__ __forceinline__ bool in_safe_range() const
    {
        return low >= Key::least && high <= Key::most;
    }
};

template <typename Number> struct SafeReciprocal {
    using Key = PivotKey<Number>;
    BadPivot &bad_pivot;

    __device__ __forceinline__ Number invert(Number pivot, int32_t row)
    {
        const typename Key::type key = Key::of(pivot);

        bad_pivot.check(pivot, row);
        return key >= Key::least && key <= Key::most ? fast_reciprocal(pivot)
                                                     : reciprocal(pivot);
    }
};

} // namespace pysolvers::device

#endif
