/* number.cuh - the four dtypes of the contract as C++ types.
 *
 * float, double and Complex of each. `reciprocal` costs one seed instruction and one
 * cubic Newton step, and is exact to an ulp; what the seed cannot treat (reciprocals
 * beyond the normal range) is scaled first.
 */
#ifndef PS_CUDA_NUMBER_CUH
#define PS_CUDA_NUMBER_CUH

#include <cuda_runtime.h>

#include "pysolvers.h"

template <typename Real> struct alignas(2 * sizeof(Real)) Complex {
    Real re, im;

    Complex() = default;
    __host__ __device__ constexpr Complex(Real real, Real imag = Real(0))
        : re(real), im(imag)
    {
    }
};

template <typename Real>
__device__ __forceinline__ Complex<Real>
operator+(Complex<Real> a, Complex<Real> b)
{
    return {a.re + b.re, a.im + b.im};
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
operator-(Complex<Real> a, Complex<Real> b)
{
    return {a.re - b.re, a.im - b.im};
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
operator-(Complex<Real> a)
{
    return {-a.re, -a.im};
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
operator*(Complex<Real> a, Complex<Real> b)
{
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* What a number is made of, and its code in the contract. */
template <typename Number> struct number_traits;
template <> struct number_traits<float> {
    using real = float;
    static constexpr ps_dtype dtype = PS_F32;
    static constexpr bool is_complex = false;
};
template <> struct number_traits<double> {
    using real = double;
    static constexpr ps_dtype dtype = PS_F64;
    static constexpr bool is_complex = false;
};
template <typename Real> struct number_traits<Complex<Real>> {
    using real = Real;
    static constexpr ps_dtype dtype = sizeof(Real) == 4 ? PS_C64 : PS_C128;
    static constexpr bool is_complex = true;
};
template <typename Number> using real_of = typename number_traits<Number>::real;

__device__ __forceinline__ float
seed_of_reciprocal(float x)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

__device__ __forceinline__ double
seed_of_reciprocal(double x)
{
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    return r;
}

__device__ __forceinline__ bool
is_normal(float x)
{
    return fabsf(x) >= 1.17549435e-38f && fabsf(x) <= 3.40282347e+38f;
}

__device__ __forceinline__ bool
is_normal(double x)
{
    return fabs(x) >= 2.2250738585072014e-308 && fabs(x) <= 1.7976931348623157e+308;
}

/* Of what has no normal reciprocal; out of line, as it is rare and long. */
template <typename Real>
__device__ __noinline__ Real
scaled_reciprocal(Real x)
{
    constexpr Real large = sizeof(Real) == 4 ? Real(1 << 30) : Real(1ll << 60);
    const Real factor = fabs(x) < Real(1) ? large : 1 / large;
    const Real near = x * factor, seed = seed_of_reciprocal(near);

    if (!is_normal(seed)) {
        return seed; /* of 0, infinity or NaN */
    }
    const Real error = fma(-near, seed, Real(1));
    return fma(seed, fma(error, error, error), seed) * factor;
}

template <typename Real>
__device__ __forceinline__ Real
reciprocal(Real x)
{
    const Real seed = seed_of_reciprocal(x);

    if (!is_normal(seed)) {
        return scaled_reciprocal(x);
    }
    const Real error = fma(-x, seed, Real(1));
    return fma(seed, fma(error, error, error), seed);
}

/* |z| = 1 after scaling: no overflow and no underflow between. */
template <typename Real>
__device__ __forceinline__ Complex<Real>
reciprocal(Complex<Real> z)
{
    const Real scale = reciprocal(fmax(fabs(z.re), fabs(z.im)));
    const Real re = z.re * scale, im = z.im * scale;
    const Real factor = scale * reciprocal(re * re + im * im);

    return {re * factor, -im * factor};
}

/* |x|, and |re| + |im|: the size by which LAPACK chooses a pivot. */
template <typename Real>
__device__ __forceinline__ Real
size_of(Real x)
{
    return fabs(x);
}

template <typename Real>
__device__ __forceinline__ Real
size_of(Complex<Real> z)
{
    return fabs(z.re) + fabs(z.im);
}

__device__ __forceinline__ float
modulus(Complex<float> z)
{
    return hypotf(z.re, z.im);
}

__device__ __forceinline__ double
modulus(Complex<double> z)
{
    return hypot(z.re, z.im);
}

template <typename Real>
__device__ __forceinline__ Real
modulus(Real x)
{
    return fabs(x);
}

/* |diag| >= |lower| + |upper|; false for NaN. */
template <typename Number>
__device__ __forceinline__ bool
is_dominant(Number lower, Number diag, Number upper)
{
    return modulus(diag) >= modulus(lower) + modulus(upper);
}

template <typename Real>
__device__ __forceinline__ Real
conjugate(Real x)
{
    return x;
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
conjugate(Complex<Real> z)
{
    return {z.re, -z.im};
}

/* Whether a pivot is zero or so small that its reciprocal overflows; NaN is not. */
template <typename Real>
__device__ __forceinline__ bool
is_bad_pivot(Real x)
{
    constexpr Real least =
        sizeof(Real) == 4 ? Real(2.93873588e-39) : Real(5.5626846462680084e-309);
    return fabs(x) <= least;
}

template <typename Real>
__device__ __forceinline__ bool
is_bad_pivot(Complex<Real> z)
{
    return is_bad_pivot(size_of(z));
}

/* Shuffle of any number. The lanes of `mask` take part. */
template <typename Real>
__device__ __forceinline__ Real
shuffle(unsigned mask, Real x, int lane)
{
    return __shfl_sync(mask, x, lane);
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
shuffle(unsigned mask, Complex<Real> z, int lane)
{
    return {__shfl_sync(mask, z.re, lane), __shfl_sync(mask, z.im, lane)};
}

#endif
