/* number.cuh - the four dtypes of the contract as C++ types.
 *
 * The types are float, double and Complex of each. A reciprocal is one seed instruction
 * and one Newton step (a step of third order for double), with an error of at most one
 * ulp. `fast_reciprocal` requires a normal number whose reciprocal is normal;
 * `reciprocal` scales other numbers first.
 */
#ifndef PS_CUDA_DEVICE_NUMBER_CUH
#define PS_CUDA_DEVICE_NUMBER_CUH

#include <cuda_runtime.h>

#include "pysolvers.h"

namespace pysolvers::device {

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

/* The real type of a number, its dtype in the contract, and whether it is complex. */
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

/* A file whose name ends with _reals, _dtypes or _forms is compiled once for each of
 * several dtypes (DTYPES in setup.py). PS_DTYPE is the name of the dtype, PS_NUMBER its
 * type. */
using number_f32 = float;
using number_f64 = double;
using number_c64 = Complex<float>;
using number_c128 = Complex<double>;

#define PS_NUMBER_OF_(name) ::pysolvers::device::number_##name
#define PS_NUMBER_OF(name) PS_NUMBER_OF_(name)
#define PS_NUMBER PS_NUMBER_OF(PS_DTYPE)

/* call(n), where n has the type of `dtype`. */
template <typename Call>
inline ps_status
with_number(ps_dtype dtype, const Call &call)
{
    switch (dtype) {
    case PS_F32:
        return call(float());
    case PS_F64:
        return call(double());
    case PS_C64:
        return call(Complex<float>());
    case PS_C128:
        return call(Complex<double>());
    default:
        return PS_BAD_ARGUMENT;
    }
}

/* The same for the real dtypes, one of which `dtype` is; with the result of the call. */
template <typename Call>
inline auto
with_real(ps_dtype dtype, const Call &call)
{
    return dtype == PS_F32 ? call(float()) : call(double());
}

/* The distance from 1 to the next real number. */
template <typename Number>
static constexpr real_of<Number> eps_of =
    sizeof(real_of<Number>) == 4 ? 1.1920928955078125e-07 : 2.220446049250313e-16;

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

/* 1 / x from the seed of the hardware. */
__device__ __forceinline__ float
refined(float x, float seed)
{
    return fmaf(seed, fmaf(-x, seed, 1.0f), seed);
}

__device__ __forceinline__ double
refined(double x, double seed)
{
    const double error = fma(-x, seed, 1.0);
    return fma(seed, fma(error, error, error), seed);
}

template <typename Real>
__device__ __forceinline__ Real
fast_reciprocal(Real x)
{
    return refined(x, seed_of_reciprocal(x));
}

/* The reciprocal of a number that has no normal reciprocal. Not inlined, because it is
 * rare and long. */
template <typename Real>
__device__ __noinline__ Real
scaled_reciprocal(Real x)
{
    constexpr Real large = sizeof(Real) == 4 ? Real(1 << 30) : Real(1ll << 60);
    const Real factor = fabs(x) < Real(1) ? large : 1 / large;
    const Real near = x * factor, seed = seed_of_reciprocal(near);

    if (!is_normal(seed)) {
        return seed; /* 0, infinity or NaN */
    }
    return refined(near, seed) * factor;
}

template <typename Real>
__device__ __forceinline__ Real
reciprocal(Real x)
{
    const Real seed = seed_of_reciprocal(x);

    return is_normal(seed) ? refined(x, seed) : scaled_reciprocal(x);
}

/* 1 / z, scaled so that |z| is near 1: no intermediate overflow or underflow. */
template <typename Real>
__device__ __forceinline__ Complex<Real>
reciprocal_scaled(Complex<Real> z, Real scale)
{
    const Real re = z.re * scale, im = z.im * scale;
    const Real factor = scale * fast_reciprocal(re * re + im * im);

    return {re * factor, -im * factor};
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
reciprocal(Complex<Real> z)
{
    return reciprocal_scaled(z, reciprocal(fmax(fabs(z.re), fabs(z.im))));
}

/* |x| for real numbers, |re| + |im| for complex ones: the measure by which LAPACK
 * selects a pivot. */
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

/* Whether |diag| >= |lower| + |upper|; false for NaN. */
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

/* Whether a pivot is zero or so small that its reciprocal overflows; false for NaN. */
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

/* What a number multiplies: right-hand sides and unknowns. */
template <typename Number> struct ValueOfNumber {
    using type = Number;
};
template <typename Number> using ValueOf = typename ValueOfNumber<Number>::type;

/* What a number and its value consist of, several of them in memory one after the other. */
template <typename Number> struct ElementOfNumber {
    using type = Number;
};
template <typename Number> using ElementOf = typename ElementOfNumber<Number>::type;
template <typename Number>
static constexpr int elements_of_value =
    sizeof(ValueOf<Number>) / sizeof(ElementOf<Number>);
template <typename Number>
static constexpr bool is_block = sizeof(Number) > sizeof(ElementOf<Number>);

static constexpr unsigned all_lanes = 0xffffffffu;

/* Shuffles of a number of any type within groups of `width` neighbouring lanes. The
 * lanes of `mask` take part. */
template <typename Real>
__device__ __forceinline__ Real
shuffle(unsigned mask, Real x, int lane, int width = 32)
{
    return __shfl_sync(mask, x, lane, width);
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
shuffle(unsigned mask, Complex<Real> z, int lane, int width = 32)
{
    return {__shfl_sync(mask, z.re, lane, width), __shfl_sync(mask, z.im, lane, width)};
}

/* The value of the lane `delta` below or above; a lane without such a lane gets its own
 * value. */
template <typename Real>
__device__ __forceinline__ Real
shuffle_up(Real x, int delta, int width)
{
    return __shfl_up_sync(all_lanes, x, delta, width);
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
shuffle_up(Complex<Real> z, int delta, int width)
{
    return {shuffle_up(z.re, delta, width), shuffle_up(z.im, delta, width)};
}

template <typename Real>
__device__ __forceinline__ Real
shuffle_down(Real x, int delta, int width)
{
    return __shfl_down_sync(all_lanes, x, delta, width);
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
shuffle_down(Complex<Real> z, int delta, int width)
{
    return {shuffle_down(z.re, delta, width), shuffle_down(z.im, delta, width)};
}

} // namespace pysolvers::device

#endif
