/* pivoted_rows.cuh - elimination with row exchanges, on registers.
 *
 * The unknowns inside a chunk of rows occur in its own rows only. They are eliminated
 * from the first to the last, each by the largest of all rows that still contain it
 * (three: two carried rows and the next one), which is Gaussian elimination with
 * partial pivoting in another order of the columns: a chunk whose inside is singular is
 * as good as any. Two rows stay, in four unknowns: the last one of the chunk before
 * (left), the first and the last of this one, and the first of the chunk behind (right).
 * Two neighbours, four rows, become one in the same way, and so on to one group.
 * In the manner of Wright (1992) for bordered systems; the mapping on a GPU after
 * RPTS, Klein and Strzodka (2021). A chunk takes 15 multiply-adds a row, two
 * neighbours 39.
 */
#ifndef PS_CUDA_PIVOTED_ROWS_CUH
#define PS_CUDA_PIVOTED_ROWS_CUH

#include "number.cuh"

template <typename Number> struct PivotRow {
    Number lower, diag, upper, rhs;
};

/* A power of two that brings the largest entry near 1. Rows of less than can be inverted
 * stay as they are, so that a bad pivot is seen. */
__device__ __forceinline__ float
balance_of(float a, float b, float c)
{
    const unsigned top = __float_as_uint(fmaxf(fmaxf(fabsf(a), fabsf(b)), fabsf(c)));
    const unsigned least = 0x00200000u; /* 2^-128 */

    return __uint_as_float((top <= least ? 127u : 254u - min(top >> 23, 253u)) << 23);
}

__device__ __forceinline__ double
balance_of(double a, double b, double c)
{
    const int sign = 0x7fffffff, least = 0x00040000; /* 2^-1024 */
    const int top = max(max(__double2hiint(a) & sign, __double2hiint(b) & sign),
                        __double2hiint(c) & sign);

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

/* The row scaled: pivots are chosen by what is left of them in proportion to the largest
 * entry of their rows, and a system whose rows are of very different sizes loses
 * nothing. */
template <typename Number>
__device__ __forceinline__ PivotRow<Number>
balanced(const PivotRow<Number> &row)
{
    const real_of<Number> power = balance_of(row.lower, row.diag, row.upper);

    return {times_power(row.lower, power), times_power(row.diag, power),
            times_power(row.upper, power), times_power(row.rhs, power)};
}

/* x of the first and last row of a chunk, or of several, and of the rows around them. */
template <typename Number> struct alignas(16) PivotAround {
    Number left, first, last, right;
};

/* left x[-1] + first x[0] + last x[end-1] + right x[end] = rhs */
template <typename Number> struct PivotEnds {
    Number left, first, last, right, rhs;
};

/* What a chunk, or several, are to the others. Aligned, like the joints, to be moved in
 * units of 16 bytes. */
template <typename Number> struct alignas(16) PivotGroup {
    PivotEnds<Number> upper, lower;
};

/* Pivot rows of a chunk, divided by their pivots: row k belongs to x[k+1]. A row of the
 * matrix sees x[k+3] and neither left nor first, a carried one the other way round: `far`
 * is left, or x[k+3] where bit k is set. */
template <typename Number, int length> struct PivotKept {
    Number next[length - 2], far[length - 2], first[length - 2], rhs[length - 2];
    unsigned fresh;
};

/* Pivot rows of two neighbours: x of the last row of one (which sees the first row of
 * the other), and x of that first row. */
template <typename Number> struct alignas(16) PivotJoint {
    PivotEnds<Number> before, behind;
    Number next;
};

/* What is known of the pivots of a system. Doubtful: there was a pivot that is no number,
 * which may come from the matrix, or from a pivot close to zero. */
enum PivotState { PIVOT_FINE, PIVOT_DOUBTFUL, PIVOT_BAD };

/* Whether a pivot is too small for inverse_of(); NaN is not. Rows are balanced: where the
 * largest of a column is that small, it is zero but for rounding. */
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
    return quick_reciprocal(x);
}

template <typename Real>
__device__ __forceinline__ Complex<Real>
inverse_of(Complex<Real> z)
{
    return reciprocal_scaled(z, quick_reciprocal(fmax(fabs(z.re), fabs(z.im))));
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

/* rhs - left x_left - first x_first - last x_last - right x_right */
template <typename Number>
__device__ __forceinline__ Number
residual_of(const PivotEnds<Number> &row, const PivotAround<Number> &x)
{
    Number r = less_product(row.rhs, row.left, x.left);

    r = less_product(r, row.right, x.right);
    r = less_product(r, row.first, x.first);
    return less_product(r, row.last, x.last);
}

/* Eliminate the unknowns between the first and the last of `count` rows, 2 <= count <=
 * length, if `even` length - 5 <= count. `rows(k)` is row k; if count > 2 it is called
 * for k = count too, and may then give anything. Returns whether a pivot was lost. */
template <int length, bool even, typename Number, typename Rows>
__device__ __forceinline__ bool
eliminate_chunk(const Rows &rows, int count, PivotKept<Number, length> &kept,
                PivotGroup<Number> &group)
{
    const PivotRow<Number> row0 = rows(0), row1 = rows(1);
    PivotRow<Number> ahead = {};
    /* Of p and q, last and right are the columns k+1 and k+2. */
    PivotEnds<Number> p = {row0.lower, row0.diag, row0.upper, Number(0), row0.rhs};
    PivotEnds<Number> q = {Number(0), row1.lower, row1.diag, row1.upper, row1.rhs};
    bool lost = false;

    kept.fresh = 0;
    if (even || count > 2) {
        ahead = rows(2);
    }
#pragma unroll
    for (int k = 0; k < length - 2; k++) {
        if ((!even || k > length - 8) && k + 2 >= count) {
            break;
        }
        PivotEnds<Number> n = {Number(0), Number(0), ahead.lower, ahead.diag, ahead.rhs};
        Number n_second = ahead.upper, p_second = Number(0);
        if (k + 3 < length) {
            ahead = rows(k + 3);
        }
        exchange_if(size_of(q.last) > size_of(p.last), p, q);
        /* As large, the new row is the better one: no rounding is in it. */
        const bool take = size_of(n.last) >= size_of(p.last);
        exchange_if(take, p, n);
        exchange_if(take, p_second, n_second);
        lost = lost || is_lost_pivot(p.last);

        const Number inverse = inverse_of(p.last);
        const Number left = inverse * p.left, second = inverse * p_second;
        kept.fresh |= take ? 1u << k : 0u;
        kept.next[k] = inverse * p.right;
        kept.far[k] = take ? second : left;
        kept.first[k] = inverse * p.first;
        kept.rhs[k] = inverse * p.rhs;
        p = {less_product(q.left, q.last, left),
             less_product(q.first, q.last, kept.first[k]),
             less_product(q.right, q.last, kept.next[k]),
             less_product(Number(0), q.last, second),
             less_product(q.rhs, q.last, kept.rhs[k])};
        q = {less_product(n.left, n.last, left),
             less_product(n.first, n.last, kept.first[k]),
             less_product(n.right, n.last, kept.next[k]),
             less_product(n_second, n.last, second),
             less_product(n.rhs, n.last, kept.rhs[k])};
    }
    group = {p, q};
    return lost;
}

/* Give `store(k, x)` the unknowns of a chunk whose surroundings `x` are known. */
template <int length, bool even, typename Number, typename Store>
__device__ __forceinline__ void
substitute_chunk(const PivotKept<Number, length> &kept, const PivotAround<Number> &x,
                 int count, const Store &store)
{
    Number near = x.last, far = x.right;

    store(count - 1, x.last);
#pragma unroll
    for (int k = length - 3; k >= 0; k--) {
        if ((even && k < length - 7) || k + 2 < count) {
            const Number seen = kept.fresh >> k & 1 ? far : x.left;
            Number value = less_product(kept.rhs[k], kept.far[k], seen);
            value = less_product(value, kept.first[k], x.first);
            value = less_product(value, kept.next[k], near);
            store(k + 1, value);
            far = near;
            near = value;
        }
    }
    store(0, x.first);
}

/* Make a the group of two neighbours. Returns whether a pivot was lost. */
template <typename Number>
__device__ __forceinline__ bool
join_groups(PivotGroup<Number> &a, const PivotGroup<Number> &b, PivotJoint<Number> &joint)
{
    /* Column `last` of a is column `left` of b, `right` of a is `first` of b. */
    PivotEnds<Number> p = a.upper, q = a.lower, u = b.upper, v = b.lower;
    exchange_if(size_of(q.last) > size_of(p.last), p, q);
    exchange_if(size_of(v.left) > size_of(u.left), u, v);
    const bool take = size_of(u.left) > size_of(p.last);
    Number pivot = p.last, next = p.right, other = u.left, other_next = u.first;
    exchange_if(take, pivot, other);
    exchange_if(take, next, other_next);
    PivotEnds<Number> top = {p.left, p.first, Number(0), Number(0), p.rhs};
    PivotEnds<Number> low = {Number(0), Number(0), u.last, u.right, u.rhs};
    exchange_if(take, top, low);
    bool lost = is_lost_pivot(pivot);

    Number inverse = inverse_of(pivot);
    joint.next = inverse * next;
    joint.before = scaled(inverse, top);
    Number c1 = less_product(other_next, other, joint.next);
    Number c2 = less_product(q.right, q.last, joint.next);
    Number c3 = less_product(v.first, v.left, joint.next);
    low = less_product(low, other, joint.before);
    top = less_product({q.left, q.first, Number(0), Number(0), q.rhs}, q.last,
                       joint.before);
    PivotEnds<Number> end = less_product({Number(0), Number(0), v.last, v.right, v.rhs},
                                         v.left, joint.before);

    const bool second = size_of(c2) > size_of(c1);
    exchange_if(second, c1, c2);
    exchange_if(second, low, top);
    const bool third = size_of(c3) > size_of(c1);
    exchange_if(third, c1, c3);
    exchange_if(third, low, end);
    lost = lost || is_lost_pivot(c1);
    inverse = inverse_of(c1);
    joint.behind = scaled(inverse, low);
    a.upper = less_product(top, c2, joint.behind);
    a.lower = less_product(end, c3, joint.behind);
    return lost;
}

/* The unknowns between two neighbours whose surroundings `x` are known. */
template <typename Number>
__device__ __forceinline__ void
substitute_joint(const PivotJoint<Number> &joint, const PivotAround<Number> &x,
                 Number &before, Number &behind)
{
    behind = residual_of(joint.behind, x);
    before = less_product(residual_of(joint.before, x), joint.next, behind);
}

/* The whole system as one group: left is its last row and right its first (their
 * entries are zero unless the system is periodic). */
template <typename Number>
__device__ __forceinline__ PivotState
solve_group(const PivotGroup<Number> &group, Number &first, Number &last)
{
    Number a = group.upper.first + group.upper.right;
    Number b = group.upper.last + group.upper.left;
    Number c = group.lower.first + group.lower.right;
    Number d = group.lower.last + group.lower.left;
    Number r = group.upper.rhs, s = group.lower.rhs;
    const bool lower = size_of(c) > size_of(a);

    exchange_if(lower, a, c);
    exchange_if(lower, b, d);
    exchange_if(lower, r, s);
    const Number inverse = inverse_of(a);
    b = inverse * b;
    r = inverse * r;
    d = less_product(d, c, b);
    last = inverse_of(d) * less_product(s, c, r);
    first = less_product(r, b, last);
    return is_lost_pivot(a) || is_lost_pivot(d) ? PIVOT_BAD
           : size_of(d) >= 0                    ? PIVOT_FINE
                                                : PIVOT_DOUBTFUL;
}

#endif
