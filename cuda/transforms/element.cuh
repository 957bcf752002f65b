/* element.cuh - one number of a line before and after the transform of the library.
 *
 * The kinds 2, 3 and 4 need one real or complex transform of the same length, or a
 * complex one of half the length (Makhoul 1980):
 *
 *   dct2   v[t] = x[2t] for 2t < n, else x[2(n-t)-1];   V = transform of v
 *          y[k] = 2 Re(w V[k]),  y[n-k] = -2 Im(w V[k]),  w = exp(-i pi k/(2n))
 *   dct3   V[k] = exp(i pi k/(2n)) (x[k] - i x[n-k]), x[n] = 0;   y from v as x above
 *   dct4   n even: v[t] = (x[2t] + i x[n-1-2t]) exp(-i pi (4t+1)/(4n)), t < n/2
 *          y[2k] = Re(z), y[n-1-2k] = -Im(z), z = 2 exp(-i pi k/n) V[k]
 *          n odd: v[t] = x[t] exp(-i pi t/(2n)) for t < n, else 0; length 2n
 *          y[k] = 2 Re(exp(-i pi (2k+1)/(4n)) V[k])
 *   dst2   y[k] of dct2 of (-1)^j x[j], in reverse order
 *   dst3, dst4   (-1)^k times dct3, dct4 of x in reverse order
 *
 * The kinds 1 are transforms of the even or odd extension to twice the length. The
 * algorithms of the same length sum up the output, and their errors grow as sqrt(n)
 * (manual of FFTW 3, "Real even/odd DFTs").
 *
 * load_number() gives number t of a line, store_number() writes the values that number t
 * determines; each value of the field is read and written once, but for the kinds 1. The
 * factors exp(i pi ...) depend on t only: load_factor() and store_factor() give them, so
 * that all lines of a tile share them.
 */
#ifndef PS_CUDA_TRANSFORMS_ELEMENT_CUH
#define PS_CUDA_TRANSFORMS_ELEMENT_CUH

#include "device/number.cuh"
#include "ps_transform.h"

namespace pysolvers::transforms {

using device::Complex;

__host__ __device__ constexpr bool
is_sine(ps_transform_kind kind)
{
    return kind == PS_DST1 || kind == PS_DST2 || kind == PS_DST3 || kind == PS_DST4;
}

/* Whether numbers before the transform of the library, or after it, are complex. An odd
 * and an even length of dct4 differ in what the numbers are, not in their type. */
__host__ __device__ constexpr bool
loads_complex(ps_transform_kind kind)
{
    return kind == PS_DCT3 || kind == PS_DST3 || kind == PS_DCT4 || kind == PS_DST4 ||
           kind == PS_IRFFT;
}

__host__ __device__ constexpr bool
stores_complex(ps_transform_kind kind)
{
    return !(kind == PS_DCT3 || kind == PS_DST3 || kind == PS_IRFFT);
}

/* exp(i pi num/den). */
__device__ __forceinline__ Complex<float>
turn(int num, int den, float)
{
    float s, c;
    sincospif(static_cast<float>(num) / static_cast<float>(den), &s, &c);
    return {c, s};
}

__device__ __forceinline__ Complex<double>
turn(int num, int den, double)
{
    double s, c;
    sincospi(static_cast<double>(num) / static_cast<double>(den), &s, &c);
    return {c, s};
}

/* Whether numbers have a factor before the transform of the library, or after it. */
__host__ __device__ constexpr bool
has_load_factor(ps_transform_kind kind)
{
    return kind == PS_DCT3 || kind == PS_DST3 || kind == PS_DCT4 || kind == PS_DST4;
}

__host__ __device__ constexpr bool
has_store_factor(ps_transform_kind kind)
{
    return kind == PS_DCT2 || kind == PS_DST2 || kind == PS_DCT4 || kind == PS_DST4;
}

/* The factor of number t before the transform of the library; 1 if there is none. */
template <typename Real, ps_transform_kind kind>
__device__ __forceinline__ Complex<Real>
load_factor(int t, int n)
{
    if constexpr (kind == PS_DCT3 || kind == PS_DST3) {
        return turn(t, 2 * n, Real());
    }
    else if constexpr (has_load_factor(kind)) {
        return n % 2 == 0 ? turn(-(4 * t + 1), 4 * n, Real()) : turn(-t, 2 * n, Real());
    }
    else {
        return Real(1);
    }
}

/* The same after the transform. */
template <typename Real, ps_transform_kind kind>
__device__ __forceinline__ Complex<Real>
store_factor(int t, int n)
{
    if constexpr (kind == PS_DCT2 || kind == PS_DST2) {
        return turn(-t, 2 * n, Real());
    }
    else if constexpr (has_store_factor(kind)) {
        return n % 2 == 0 ? turn(-t, n, Real()) : turn(-(2 * t + 1), 4 * n, Real());
    }
    else {
        return Real(1);
    }
}

/* The value that stands at place t of the real line of dct2 and dct3. */
__device__ __forceinline__ int
shuffled(int t, int n)
{
    return 2 * t < n ? 2 * t : 2 * (n - t) - 1;
}

/* Number t of a line without its factor, load_factor(); value(j) is value j of the field.
 * t is below the number of numbers of the line before the transform. */
template <typename Real, ps_transform_kind kind, typename Value>
__device__ __forceinline__ auto
load_number(int t, int n, const Value &value)
{
    if constexpr (kind == PS_DCT1) {
        return value(t < n ? t : 2 * (n - 1) - t);
    }
    else if constexpr (kind == PS_DST1) {
        const int half = n + 1;

        return t == 0 || t == half ? Real(0)
               : t < half          ? value(t - 1)
                                   : -value(2 * half - t - 1);
    }
    else if constexpr (kind == PS_DCT2 || kind == PS_DST2) {
        const int j = shuffled(t, n);

        return is_sine(kind) && j % 2 != 0 ? -value(j) : value(j);
    }
    else if constexpr (kind == PS_RFFT) {
        return value(t);
    }
    else if constexpr (kind == PS_IRFFT) {
        return Complex<Real>(value(2 * t), value(2 * t + 1));
    }
    else {
        const auto ordered = [&](int j) { return value(is_sine(kind) ? n - 1 - j : j); };

        if constexpr (kind == PS_DCT3 || kind == PS_DST3) {
            const Real mirrored = t == 0 ? Real(0) : ordered(n - t);

            return Complex<Real>(ordered(t), -mirrored);
        }
        else if (n % 2 == 0) {
            return Complex<Real>(ordered(2 * t), ordered(n - 1 - 2 * t));
        }
        else {
            return Complex<Real>(t < n ? ordered(t) : Real(0));
        }
    }
}

/* Write the values that number t of a line determines by put(k, value); `factor` is that
 * of store_factor(). */
template <typename Real, ps_transform_kind kind, typename Number, typename Put>
__device__ __forceinline__ void
store_number(int t, int n, const Complex<Real> &factor, const Number &number,
             const Put &put)
{
    if constexpr (kind == PS_DCT1) {
        put(t, number.re);
    }
    else if constexpr (kind == PS_DST1) {
        if (t >= 1 && t <= n) {
            put(t - 1, -number.im);
        }
    }
    else if constexpr (kind == PS_DCT2 || kind == PS_DST2) {
        const Complex<Real> y = factor * number;
        const auto ordered = [&](int k) { return is_sine(kind) ? n - 1 - k : k; };

        put(ordered(t), 2 * y.re);
        if (t > 0 && 2 * t < n) {
            put(ordered(n - t), -2 * y.im);
        }
    }
    else if constexpr (kind == PS_DCT3 || kind == PS_DST3) {
        const int k = shuffled(t, n);

        put(k, is_sine(kind) && k % 2 != 0 ? -number : number);
    }
    else if constexpr (kind == PS_RFFT) {
        put(2 * t, number.re);
        put(2 * t + 1, number.im);
    }
    else if constexpr (kind == PS_IRFFT) {
        put(t, number);
    }
    else {
        const auto signed_put = [&](int k, Real y) {
            put(k, is_sine(kind) && k % 2 != 0 ? -y : y);
        };

        if (n % 2 == 0) {
            const Complex<Real> y = factor * number;

            signed_put(2 * t, 2 * y.re);
            signed_put(n - 1 - 2 * t, -2 * y.im);
        }
        else if (t < n) {
            const Complex<Real> y = factor * number;

            signed_put(t, 2 * y.re);
        }
    }
}

} // namespace pysolvers::transforms

#endif
