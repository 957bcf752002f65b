/* pivot.cuh - reciprocals of pivots, with as much care as they need.
 *
 * Quick inverts without a branch, which is right as long as all pivots lie in a wide
 * middle range, and remembers whether they did; Careful takes any pivot and tells the bad
 * ones. Whoever gets a no from Quick does the same once more with Careful; for pivots in
 * the range both give the same bits.
 */
#ifndef PS_CUDA_PIVOT_CUH
#define PS_CUDA_PIVOT_CUH

#include "number.cuh"

/* Row of the first bad pivot that a thread has met. */
struct Fault {
    static constexpr int32_t none = INT32_MAX;
    int32_t row = none;

    template <typename Number>
    __device__ __forceinline__ void check(Number pivot, int32_t at)
    {
        if (is_bad_pivot(pivot)) {
            row = min(row, at);
        }
    }
};

/* A key that grows with the size of a pivot, and the range of keys in which Quick is
 * right: 2^-100 .. 2^100 and 2^-1000 .. 2^1000, half of it where squares are taken. */
template <typename Number> struct PivotKey;
template <> struct PivotKey<float> {
    using type = float;
    static constexpr float least = 7.8886091e-31f, most = 1.2676506e30f;
    static __device__ __forceinline__ float of(float x)
    {
        return fabsf(x);
    }
};
template <> struct PivotKey<double> {
    using type = int32_t; /* the upper half: exponents compare like integers */
    static constexpr int32_t least = (1023 - 1000) << 20, most = (1023 + 1000) << 20;
    static __device__ __forceinline__ int32_t of(double x)
    {
        return __double2hiint(x) & 0x7fffffff;
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
quick_reciprocal(Complex<Real> z)
{
    const Real p = quick_reciprocal(z.re * z.re + z.im * z.im);
    return {z.re * p, -(z.im * p)};
}

template <typename Number> struct Quick {
    using Key = PivotKey<Number>;
    typename Key::type low = Key::most, high = Key::least;

    __device__ __forceinline__ Number invert(Number pivot, int32_t)
    {
        const typename Key::type key = Key::of(pivot);

        low = min(low, key);
        high = max(high, key);
        return quick_reciprocal(pivot);
    }
    __device__ __forceinline__ bool was_right() const
    {
        return low >= Key::least && high <= Key::most;
    }
};

template <typename Number> struct Careful {
    using Key = PivotKey<Number>;
    Fault &fault;

    __device__ __forceinline__ Number invert(Number pivot, int32_t row)
    {
        const typename Key::type key = Key::of(pivot);

        fault.check(pivot, row);
        return key >= Key::least && key <= Key::most ? quick_reciprocal(pivot)
                                                     : reciprocal(pivot);
    }
};

#endif
