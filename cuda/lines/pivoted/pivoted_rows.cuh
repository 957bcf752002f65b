/* pivoted_rows.cuh - elimination with row exchanges, in place.
 *
 * The unknowns between the first and the last one of a chunk occur in the rows of this
 * chunk only. They are eliminated in order. The pivot row of each is the one with the
 * largest entry among the three that still contain it: two carried rows and the next row
 * of the matrix. This is Gaussian elimination with partial pivoting for another order of
 * the columns, so that the inner rows of a chunk may be singular. Two rows remain, the
 * group of the chunk, in four unknowns: the last one of the chunk before (left), the first
 * and the last one of this chunk, and the first one of the chunk after it (right). After
 * Wright (1992), for bordered systems; the mapping to a GPU after RPTS, Klein and
 * Strzodka (2021). 18 multiply-adds per row.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_ROWS_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_ROWS_CUH

#include <climits>

#include "device/number.cuh"

namespace pysolvers::pivoted {

using namespace device;

template <typename Number> struct PivotRow {
    Number lower, diag, upper, rhs;
};

/* The power of two by which the sum of the magnitudes of the entries becomes nearly 1. A
 * row whose sum has no finite reciprocal is not scaled, so that its bad pivot is found. */
__device__ __forceinline__ float
balance_of(float a, float b, float c)
{
    const unsigned top = __float_as_uint(fabsf(a) + fabsf(b) + fabsf(c));
    const unsigned least = 0x00200000u; /* 2^-128 */

    return __uint_as_float((top <= least ? 127u : 254u - min(top >> 23, 253u)) << 23);
}

__device__ __forceinline__ double
balance_of(double a, double b, double c)
{
    const int least = 0x00040000; /* 2^-1024 */
    const int top = __double2hiint(fabs(a) + fabs(b) + fabs(c));

    return __hiloint2double((top <= least ? 1023 : 2046 - min(top >> 20, 2045)) << 20, 0);
}

template <typename Real>
__device__ __forceinline__ Real
balance_of(Complex<Real> a, Complex<Real> b, Complex<Real> c)
{
    return balance_of(size_of(a), size_of(b), size_of(c));
}

template <typename Real>
__device__ __forceinline__ Real
times_power(Real a, Real power)
{
    return a * power;
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
times_power(Complex<Real> a, Real power)
{
    return {a.re * power, a.im * power};
}

/* The exponent of a power of two. */
__device__ __forceinline__ int
exponent_of(float power)
{
    return static_cast<int>(__float_as_uint(power) >> 23);
}

__device__ __forceinline__ int
exponent_of(double power)
{
    return __double2hiint(power) >> 20;
}

/* The range of exponents by which rows were scaled. */
struct PivotScales {
    int least = SHRT_MAX, most = 0;

    template <typename Real> __device__ __forceinline__ void add(Real power)
    {
        least = min(least, exponent_of(power));
        most = max(most, exponent_of(power));
    }
};

/* The row, scaled by balance_of(): a pivot is chosen by its size relative to all entries
 * of its row, so that rows of very different sizes are treated alike. Of two rows with
 * equal pivots the one with the smaller other entries is preferred. */
template <typename Number>
__device__ __forceinline__ PivotRow<Number>
balanced(const PivotRow<Number> &row, PivotScales &scales)
{
    const real_of<Number> power = balance_of(row.lower, row.diag, row.upper);

    scales.add(power);
    return {times_power(row.lower, power), times_power(row.diag, power),
            times_power(row.upper, power), times_power(row.rhs, power)};
}

/* x of the first and the last row of a group, and of the rows before and after it. */
template <typename Number> struct alignas(16) PivotAround {
    Number left, first, last, right;
};

/* left x[-1] + first x[0] + last x[end-1] + right x[end] = rhs */
template <typename Number> struct PivotEnds {
    Number left, first, last, right, rhs;
};

/* The two rows that remain of one chunk or of several joined ones. `scales` is the range
 * of the exponents by which the rows were scaled: the largest, and the negative of the
 * smallest. Groups and joints are aligned for copies of 16 bytes. */
template <typename Number> struct alignas(16) PivotGroup {
    PivotEnds<Number> upper, lower;
    short2 scales;
};

/* The rows of a chunk in shared memory. The pivot rows, divided by their pivots, replace
 * them. In the pivot row of x[k], `lower` holds the entry of x[first] and `upper` that of
 * x[k+1]. `diag` holds the entry of x[k+2] if the pivot row was a row of the matrix, which
 * has no entry of x[left], and that of x[left] if it was a carried row, which has none of
 * x[k+2]. One bit for each row says which; that of the last row is the lowest one. */
template <typename Number> struct PivotChunk {
    Number *lower, *diag, *upper, *rhs;

    __device__ __forceinline__ PivotRow<Number> at(int k) const
    {
        return {lower[k], diag[k], upper[k], rhs[k]};
    }
    __device__ __forceinline__ void set(int k, const PivotRow<Number> &row) const
    {
        lower[k] = row.lower;
        diag[k] = row.diag;
        upper[k] = row.upper;
        rhs[k] = row.rhs;
    }
};

/* Whether the elimination of a system was stable. Doubtful: entries have grown too much, a
 * pivot was lost or was NaN, or the rows are of very different sizes. Missed: in addition, the
 * residual of the solution is too large, and the system is solved a second time, in order. */
enum PivotState { PIVOT_FINE, PIVOT_DOUBTFUL, PIVOT_MISSED };

/* The magnitude of an entry as a float: a monotonic function of it, compared with the
 * largest one allowed in a balanced row, 8, by has_grown(). Of a double this is its upper
 * half, read as a float, which is infinite or NaN if the double is. */
__device__ __forceinline__ float
growth_of(float x)
{
    return fabsf(x);
}

__device__ __forceinline__ float
growth_of(double x)
{
    return fabsf(__int_as_float(__double2hiint(x)));
}

/* The larger one, or NaN if there is one. */
__device__ __forceinline__ float
larger_growth(float a, float b)
{
#if __CUDA_ARCH__ >= 800
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
#else
    return a > b || isnan(a) ? a : b;
#endif
}

template <typename Real>
__device__ __forceinline__ float
growth_of(Complex<Real> z)
{
    return larger_growth(growth_of(z.re), growth_of(z.im));
}

template <typename Number>
__device__ __forceinline__ bool
has_grown(float growth)
{
    constexpr float most = sizeof(real_of<Number>) == 4 ? 8.0f : 2.5f; /* 8 as a double */

    return !(growth <= most);
}

/* Whether the rows of a system are of too different sizes: by a factor of 2^8 or more. */
__device__ __forceinline__ bool
are_uneven(short2 scales)
{
    return scales.x + scales.y > 7;
}

/* Whether a pivot is too small for inverse_of(); NaN is not. Because the rows are balanced,
 * such a pivot, the largest of its column, is zero but for rounding errors. */
template <typename Number>
__device__ __forceinline__ bool
is_lost_pivot(Number x)
{
    using Real = real_of<Number>;
    constexpr Real least =
        sizeof(Real) == 4 ? Real(2.35098870e-38) : Real(4.4501477170144028e-308);

    return size_of(x) < least;
}

/* As reciprocal(), for pivots that are not lost. */
template <typename Real>
__device__ __forceinline__ Real
inverse_of(Real x)
{
    return fast_reciprocal(x);
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
inverse_of(Complex<Real> z)
{
    return reciprocal_scaled(z, fast_reciprocal(fmax(fabs(z.re), fabs(z.im))));
}

template <typename Real>
__device__ __forceinline__ Real
quotient(Real a, Real b)
{
    return a / b;
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
quotient(Complex<Real> a, Complex<Real> b)
{
    return a * reciprocal(b);
}

/* Whether the size of a number is at least 2^-62 and less than 2^62, of a double 2^-510
 * and 2^510: the number and its inverse are far from underflow and overflow. */
__device__ __forceinline__ bool
is_moderate(float x)
{
    return (__float_as_uint(x) & 0x7fffffffu) - (65u << 23) < 124u << 23;
}

__device__ __forceinline__ bool
is_moderate(double x)
{
    const unsigned top = static_cast<unsigned>(__double2hiint(x)) & 0x7fffffffu;

    return top - (513u << 20) < 1020u << 20;
}

template <typename Real>
__device__ __forceinline__ bool
is_moderate(Complex<Real> z)
{
    return is_moderate(size_of(z));
}

/* a / b of any numbers. Out of line, as it is rare. */
template <typename Number>
__device__ __noinline__ Number
any_ratio(Number a, Number b)
{
    return is_moderate(b) ? a * inverse_of(b) : quotient(a, b);
}

/* a / pivot; 0 of a row without an entry in the column, whatever the pivot is. Unless
 * `checked`, the pivot is moderate, or the result is not used. */
template <bool checked, typename Number>
__device__ __forceinline__ Number
multiplier(Number a, Number pivot)
{
    if (checked && !is_moderate(pivot)) {
        return size_of(a) == 0 ? Number(0) : any_ratio(a, pivot);
    }
    return a * inverse_of(pivot);
}

/* a / b from 1 / b, exact where the quotient is a number: equal rows leave a zero. */
template <typename Real>
__device__ __forceinline__ Real
quotient_by(Real inverse, Real a, Real b)
{
    const Real near = a * inverse;

    return fma(fma(-near, b, a), inverse, near);
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
quotient_by(Complex<Real> inverse, Complex<Real> a, Complex<Real>)
{
    return a * inverse;
}

/* Divide two numbers by a pivot. Unless `checked`, the pivot is moderate, or the results
 * are not used. */
template <bool checked, typename Number>
__device__ __forceinline__ void
divide_by(Number pivot, Number &a, Number &b)
{
    const Number inverse = inverse_of(pivot);

    if (checked && !is_moderate(pivot)) {
        a = any_ratio(a, pivot);
        b = any_ratio(b, pivot);
    }
    else {
        a = quotient_by(inverse, a, pivot);
        b = quotient_by(inverse, b, pivot);
    }
}

template <typename Number>
__device__ __forceinline__ void
exchange_if(bool yes, Number &a, Number &b)
{
    const Number kept = a;

    a = yes ? b : a;
    b = yes ? kept : b;
}

template <typename Number>
__device__ __forceinline__ void
exchange_if(bool yes, PivotEnds<Number> &a, PivotEnds<Number> &b)
{
    exchange_if(yes, a.left, b.left);
    exchange_if(yes, a.first, b.first);
    exchange_if(yes, a.last, b.last);
    exchange_if(yes, a.right, b.right);
    exchange_if(yes, a.rhs, b.rhs);
}

/* a - m b */
template <typename Real>
__device__ __forceinline__ Real
less_product(Real a, Real m, Real b)
{
    return fma(-m, b, a);
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
less_product(Complex<Real> a, Complex<Real> m, Complex<Real> b)
{
    return {fma(m.im, b.im, fma(-m.re, b.re, a.re)),
            fma(-m.im, b.re, fma(-m.re, b.im, a.im))};
}

template <typename Number>
__device__ __forceinline__ PivotEnds<Number>
less_product(const PivotEnds<Number> &a, Number m, const PivotEnds<Number> &b)
{
    return {less_product(a.left, m, b.left), less_product(a.first, m, b.first),
            less_product(a.last, m, b.last), less_product(a.right, m, b.right),
            less_product(a.rhs, m, b.rhs)};
}

template <typename Number>
__device__ __forceinline__ PivotEnds<Number>
scaled(Number m, const PivotEnds<Number> &a)
{
    return {m * a.left, m * a.first, m * a.last, m * a.right, m * a.rhs};
}

/* Eliminate the unknowns between the first and the last of the `count` >= 2 rows of a
 * chunk. Pivot rows replace the rows; `fresh` gets their bits (PivotChunk). A row is loaded
 * one step before it is used. The last step loads none and therefore stands after the loop: a
 * test in the loop takes three more instructions a row. Returns whether the group
 * is doubtful. The growth of q is not tested, because its entries `left` and `first` are
 * at most those of p in the step before. */
template <typename Number>
__device__ __forceinline__ bool
eliminate_chunk(const PivotChunk<Number> &c, int count, unsigned &fresh,
                PivotGroup<Number> &group)
{
    PivotScales scales;
    const PivotRow<Number> row0 = balanced(c.at(0), scales);
    const PivotRow<Number> row1 = balanced(c.at(1), scales);
    /* The carried rows p and q: `last` and `right` are their entries of columns k, k+1. */
    PivotEnds<Number> p = {row0.lower, row0.diag, row0.upper, Number(0), row0.rhs};
    PivotEnds<Number> q = {Number(0), row1.lower, row1.diag, row1.upper, row1.rhs};
    /* If the entries of a row cancel, rounding errors alone decide which entry is larger, and
     * a row that is carried over many steps accumulates errors. The new row must therefore
     * be larger by this factor. */
    const real_of<Number> more = real_of<Number>(65) / 64;
    bool lost = false;
    float growth = 0;

    fresh = 0;
    const auto eliminate = [&](int k, const PivotRow<Number> &n) {
        const bool take = size_of(n.lower) >= size_of(p.last) &&
                          size_of(n.lower) > more * size_of(q.last);
        exchange_if(size_of(q.last) > size_of(p.last), p, q);
        Number pivot = p.last, other = n.lower, near = p.right, other_near = n.diag;
        Number value = p.rhs, other_value = n.rhs;
        exchange_if(take, pivot, other);
        exchange_if(take, near, other_near);
        exchange_if(take, value, other_value);
        lost |= is_lost_pivot(pivot);

        /* One of p and n is the pivot row, and a multiple of it is subtracted from the
         * other. Only p has entries of left and first, only n has one of column k+2. */
        const Number inverse = inverse_of(pivot), m = -(other * inverse);
        const Number of_p = take ? Number(0) : inverse, by_p = take ? Number(1) : m;
        const Number of_n = take ? inverse : Number(0), by_n = take ? m : Number(1);
        const Number left = of_p * p.left, first = of_p * p.first;
        const Number right = inverse * near, second = of_n * n.upper;
        const Number rhs = inverse * value;
        fresh = 2 * fresh + (take ? 1 : 0);
        c.set(k, {first, left + second, right, rhs});
        const PivotEnds<Number> rest = {
            by_p * p.left, by_p * p.first, less_product(other_near, other, right),
            by_n * n.upper, less_product(other_value, other, rhs)};
        p = {less_product(q.left, q.last, left), less_product(q.first, q.last, first),
             less_product(q.right, q.last, right),
             less_product(Number(0), q.last, second), less_product(q.rhs, q.last, rhs)};
        q = rest;
        growth = larger_growth(growth, growth_of(p.left));
        growth = larger_growth(growth, growth_of(p.first));
    };
    if (count > 2) {
        PivotRow<Number> ahead = c.at(2);
        int k = 1;
        const auto eliminate_and_load = [&](int at) {
            const PivotRow<Number> n = balanced(ahead, scales);

            ahead = c.at(at + 2);
            eliminate(at, n);
        };

#pragma unroll 1
        for (; k < count - 3; k += 2) {
            eliminate_and_load(k);
            eliminate_and_load(k + 1);
        }
        if (k < count - 2) {
            eliminate_and_load(k++);
        }
        eliminate(k, balanced(ahead, scales));
    }
    group = {
        p, q,
        make_short2(static_cast<short>(scales.most), static_cast<short>(-scales.least))};
    return lost || has_grown<Number>(growth);
}

/* x of a row from the unknowns before and after it: corrected if the residual of the row
 * is more than a few eps of the sum of its terms and the diagonal entry is the largest. */
template <typename Number>
__device__ __forceinline__ Number
corrected(const PivotRow<Number> &row, Number before, Number x, Number behind)
{
    constexpr real_of<Number> few =
        sizeof(real_of<Number>) == 4 ? 4.76837158e-7 : 8.8817841970012523e-16;
    const Number lower = row.lower * before, upper = row.upper * behind;
    const Number missed = less_product(row.rhs - lower - upper, row.diag, x);
    const bool leads = size_of(row.diag) >= size_of(row.lower) &&
                       size_of(row.diag) >= size_of(row.upper);

    return leads && size_of(missed) > few * (size_of(row.rhs) + size_of(lower) +
                                             size_of(row.diag * x) + size_of(upper))
               ? x + quotient(missed, row.diag)
               : x;
}

/* Substitute: the unknowns of a chunk replace its right-hand sides; `x` has those of its
 * first and last row and of the rows next to them. The rounding errors of all rows
 * accumulate in the first row. If its unknowns are small these errors are large relative
 * to them, so that the first unknown is corrected. */
template <typename Number>
__device__ __forceinline__ void
substitute_chunk(const PivotChunk<Number> &c, const PivotAround<Number> &x, int count,
                 unsigned fresh)
{
    Number near = x.last, far = x.right;
    PivotRow<Number> ahead = c.at(count - 2);

    c.rhs[count - 1] = x.last;
#pragma unroll 4
    for (int k = count - 2; k > 0; k--) {
        const PivotRow<Number> row = ahead;
        ahead = c.at(k - 1);
        Number value = less_product(row.rhs, row.diag, fresh & 1 ? far : x.left);
        value = less_product(value, row.lower, x.first);
        value = less_product(value, row.upper, near);
        c.rhs[k] = value;
        far = near;
        near = value;
        fresh /= 2;
    }
    c.rhs[0] = corrected(c.at(0), x.left, x.first, near);
}

} // namespace pysolvers::pivoted

#endif
