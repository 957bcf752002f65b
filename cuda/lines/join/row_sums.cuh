/* row_sums.cuh - the algebra of segment.cuh for matrices given by off-diagonals and row
 * sums.
 *
 * BySums<Real> is a number whose rows are in row-sum form: lower, upper <= 0, and the
 * word `diag` holds the row sum s = lower + diag + upper >= 0. It takes the place of
 * Real in the kernels of the partition method. Below, a and c are the magnitudes of the
 * off-diagonals. An unknown is x = g + l y_left + u y; because the solution for the right
 * side s is 1, the sum s = 1 - l - u follows the elimination like a right side, and the
 * coefficient of an unknown in its own equation is the sum of the others. Nothing is
 * subtracted: all pivots, and x for a right side without negative numbers, are accurate
 * to rounding errors whatever the condition of the matrix.
 *
 *   row        sigma = s + a S, lambda = a L, r = f + a G, q = 1 / (sigma + c + lambda)
 *              (G, L, U, S) = (r, lambda, c, sigma) q, of the row above on the right
 *   first      F.g += F.u G, F.s += F.u S, F.u = F.u U
 *   last row   A = a L, sigma = s + a S, C = c, D = f + a G:  the coefficient of its
 *              unknown is sigma + A + C
 *   join       sigma' = sigma + C Q.s, c' = C Q.u, d' = D + C Q.g, of the next segment Q
 *   lanes      S = s + l up.s + u down.s, L = l up.l, U = u down.u, G likewise, times
 *              1 / (S + L + U)
 *   closing    y = D / sigma, or (D + C F.g) / (sigma + C F.s) if periodic
 *
 * A segment has seven words as in the ordinary form, g, s, u, A, sigma, C, D. A row
 * costs 20 operations and one reciprocal: 11 for elimination, 5 for x_first, 4 for
 * substitution. Grassmann, Taksar and Heyman 1985; O'Cinneide 1993.
 */
#ifndef PS_CUDA_LINES_JOIN_ROW_SUMS_CUH
#define PS_CUDA_LINES_JOIN_ROW_SUMS_CUH

#include "device/operand.cuh"
#include "lines/join/segment.cuh"

namespace pysolvers::device {

template <typename Real> struct BySums {
    Real value;

    BySums() = default;
    __host__ __device__ constexpr BySums(Real number) : value(number)
    {
    }
    __host__ __device__ constexpr operator Real() const
    {
        return value;
    }
};

template <typename Real> struct number_traits<BySums<Real>> : number_traits<Real> {};

template <typename Real>
__device__ __forceinline__ BySums<Real>
shuffle(unsigned mask, BySums<Real> x, int lane, int width = 32)
{
    return shuffle(mask, x.value, lane, width);
}

/* Matrices in row-sum form are dominant. */
template <typename Real>
__device__ __forceinline__ bool
is_dominant(BySums<Real>, BySums<Real>, BySums<Real>)
{
    return true;
}

template <typename Real> struct FastReciprocal<BySums<Real>> : FastReciprocal<Real> {};

template <typename Real> struct SafeReciprocal<BySums<Real>> {
    BadPivot &bad_pivot;

    __device__ __forceinline__ Real invert(Real pivot, int32_t row)
    {
        return SafeReciprocal<Real>{bad_pivot}.invert(pivot, row);
    }
};

using number_sums_f32 = BySums<float>;
using number_sums_f64 = BySums<double>;

/* call(n), where n has the type of the matrices of `t`: of their dtype and their form. */
template <typename Call>
inline ps_status
with_form(const ps_tridiag &t, const Call &call)
{
    if ((t.flags & PS_ROW_SUMS) == 0) {
        return with_number(t.dtype, call);
    }
    return t.dtype == PS_F32   ? call(BySums<float>(0))
           : t.dtype == PS_F64 ? call(BySums<double>(0))
                               : PS_UNSUPPORTED;
}

} // namespace pysolvers::device

namespace pysolvers::join {

/* x_first of a segment: the coefficient of y_left is 1 - s - u. */
template <typename Real> struct Spike<BySums<Real>> {
    Real g, s, u;

    /* If x is this, in terms of an unknown that is `y`. */
    template <typename Inner>
    __device__ __forceinline__ Spike through(const Inner &y) const
    {
        return {g + u * y.g, s + u * y.s, u * y.u};
    }
};

template <typename Real>
__device__ __forceinline__ Spike<BySums<Real>>
shuffle(const Spike<BySums<Real>> &x, int lane)
{
    return {shuffle(all_lanes, x.g, lane), shuffle(all_lanes, x.s, lane),
            shuffle(all_lanes, x.u, lane)};
}

/* x = g + l y_left + u y, s = 1 - l - u. */
template <typename Real> struct SummedUnknown {
    Real g, l, u, s;

    __device__ __forceinline__ Real at(Real y_left, Real y) const
    {
        return g + l * y_left + u * y;
    }
    static __device__ __forceinline__ SummedUnknown left()
    {
        return {Real(0), Real(1), Real(0), Real(0)};
    }
    static __device__ __forceinline__ SummedUnknown own()
    {
        return {Real(0), Real(0), Real(1), Real(0)};
    }
};

template <typename Real>
__device__ __forceinline__ SummedUnknown<Real>
shuffle(const SummedUnknown<Real> &x, int lane)
{
    return {shuffle(all_lanes, x.g, lane), shuffle(all_lanes, x.l, lane),
            shuffle(all_lanes, x.u, lane), shuffle(all_lanes, x.s, lane)};
}

template <typename Real> struct Segment<BySums<Real>> {
    Spike<BySums<Real>> first;
    Real a, sigma, c, d;

    /* The segment from x_first, the unknown above the last one, and the last row. */
    static __device__ __forceinline__ Segment closed(const Spike<BySums<Real>> &first,
                                                     const SummedUnknown<Real> &above,
                                                     const Row<BySums<Real>> &last)
    {
        const Real a = -last.lower;

        return {first, a * above.l, last.diag + a * above.s, -last.upper,
                last.rhs + a * above.g};
    }
    /* The equation of y, and the same in terms of y of the next segment. */
    __device__ __forceinline__ Row<BySums<Real>> row() const
    {
        return {-a, sigma, -c, d};
    }
    __device__ __forceinline__ Row<BySums<Real>>
    row_before(const Spike<BySums<Real>> &next) const
    {
        return {-a, sigma + c * next.s, -(c * next.u), d + c * next.g};
    }
};

template <typename Real>
__device__ __forceinline__ void
put_words(const Segment<BySums<Real>> &s, BySums<Real> (&to)[segment_words])
{
    const Real words[segment_words] = {s.first.g, s.first.s, s.first.u, s.a,
                                       s.sigma,   s.c,       s.d};
#pragma unroll
    for (int k = 0; k < segment_words; k++) {
        to[k] = words[k];
    }
}

template <>
__device__ __forceinline__ Spike<BySums<float>>
own_spike<BySums<float>>()
{
    return {0.0f, 0.0f, 1.0f};
}

template <>
__device__ __forceinline__ Spike<BySums<double>>
own_spike<BySums<double>>()
{
    return {0.0, 0.0, 1.0};
}

template <>
__device__ __forceinline__ Row<BySums<float>>
copy_row<BySums<float>>()
{
    return {-1.0f, 0.0f, 0.0f, 0.0f};
}

template <>
__device__ __forceinline__ Row<BySums<double>>
copy_row<BySums<double>>()
{
    return {-1.0, 0.0, 0.0, 0.0};
}

/* The rows of a chunk: x_i = g_i + l_i y_left + u_i x_{i+1} for i < ROWS - 1. The numbers
 * g are where `Kept` has them. */
template <typename Real, int ROWS, typename Kept> struct SummedRows {
    Real l[ROWS - 1], u[ROWS - 1];
    Kept g;

    /* Like that of Chunk. */
    template <typename Rows, typename Inverter>
    __device__ __forceinline__ Segment<BySums<Real>>
    eliminate(const Rows &rows, int32_t start, int pads, Inverter &inverter)
    {
        SummedUnknown<Real> above = SummedUnknown<Real>::left();
        Spike<BySums<Real>> first = own_spike<BySums<Real>>();

#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            const Row<BySums<Real>> row = rows(i);
            const Real a = -row.lower, c = -row.upper;
            const Real sigma = row.diag + a * above.s, lambda = a * above.l;
            const Real r = row.rhs + a * above.g;
            const Real q = inverter.invert(sigma + c + lambda, start + i);

            above = {r * q, lambda * q, c * q, sigma * q};
            g[i] = above.g;
            l[i] = above.l;
            u[i] = above.u;
            if (i >= pads) {
                first = first.through(above);
            }
        }
        return Segment<BySums<Real>>::closed(first, above, rows(ROWS - 1));
    }

    /* x_i of all rows, from the last to the first: put(i, x). */
    template <typename Put>
    __device__ __forceinline__ void substitute(Real y_left, Real y, const Put &put) const
    {
        put(ROWS - 1, y);
#pragma unroll
        for (int i = ROWS - 2; i >= 0; i--) {
            y = g[i] + l[i] * y_left + u[i] * y;
            put(i, y);
        }
    }

    __device__ __forceinline__ Real &g_of(int i)
    {
        return g[i];
    }
};

template <typename Real, int ROWS>
struct Chunk<BySums<Real>, ROWS> : SummedRows<Real, ROWS, Real[ROWS - 1]> {};

template <typename Real> struct Lanes<BySums<Real>> {
    SummedUnknown<Real> y;

    template <typename Inverter>
    __device__ __forceinline__ void reduce(const Group &group,
                                           const Segment<BySums<Real>> &s, int32_t row,
                                           Inverter &inverter)
    {
        const int inner = group.count - 1; /* units whose y is eliminated */
        const bool active = group.i < inner;
        const Spike<BySums<Real>> next = shuffle(s.first, group.away(1, active));
        const Real sigma = s.sigma + s.c * next.s, c = s.c * next.u;
        const Real q =
            inverter.invert(active ? sigma + s.a + c : Real(1), active ? row : 0);

        y = {(s.d + s.c * next.g) * q, s.a * q, c * q, sigma * q};
        for (int reach = 1; reach < inner; reach *= 2) {
            step(group, reach, inner, row, inverter);
        }
        if (!active) {
            y = SummedUnknown<Real>::own();
        }
    }

    __device__ __forceinline__ Segment<BySums<Real>>
    whole(const Group &group, const Segment<BySums<Real>> &s, int first) const
    {
        const Spike<BySums<Real>> front = s.first.through(y);
        const int end = group.lane_of(group.count - 1);
        SummedUnknown<Real> left = shuffle(y, group.away(-1, group.i > 0));

        if (group.i == 0) {
            left = SummedUnknown<Real>::left();
        }
        return {
            shuffle(front, group.lane_of(first)), shuffle(all_lanes, s.a * left.l, end),
            shuffle(all_lanes, s.sigma + s.a * left.s, end), shuffle(all_lanes, s.c, end),
            shuffle(all_lanes, s.d + s.a * left.g, end)};
    }

  private:
    /* One step of PCR on rows y = g + l y_{i-reach} + u y_{i+reach}. */
    template <typename Inverter>
    __device__ __forceinline__ void step(const Group &group, int reach, int inner,
                                         int32_t row, Inverter &inverter)
    {
        const bool active = group.i < inner;
        const bool has_up = group.i >= reach && active;
        const bool has_down = group.i + reach < inner;
        const SummedUnknown<Real> up = shuffle(y, group.away(-reach, has_up));
        const SummedUnknown<Real> down = shuffle(y, group.away(reach, has_down));
        const Real alpha = has_up ? y.l : Real(0), gamma = has_down ? y.u : Real(0);
        const Real s = y.s + alpha * up.s + gamma * down.s;
        const Real l = has_up ? y.l * up.l : y.l, u = has_down ? y.u * down.u : y.u;
        const Real q = inverter.invert(active ? s + l + u : Real(1), active ? row : 0);

        y = {(y.g + alpha * up.g + gamma * down.g) * q, l * q, u * q, s * q};
    }
};

template <typename Real>
__device__ __forceinline__ BySums<Real>
close_system(const Segment<BySums<Real>> &s, bool periodic, int32_t row,
             BadPivot &bad_pivot)
{
    const Real pivot = periodic ? s.sigma + s.c * s.first.s : s.sigma;

    bad_pivot.check(pivot, row);
    return (periodic ? s.d + s.c * s.first.g : s.d) * reciprocal(pivot);
}

} // namespace pysolvers::join

#endif
