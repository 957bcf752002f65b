/* factor.cuh - the units of one matrix with many right-hand sides.
 *
 * A Segment (segment.cuh) separated into a part of the matrix, whose multipliers are kept,
 * and a part of a right-hand side, which needs no division. shared/ keeps the multipliers
 * in registers, panels/ in shared memory.
 */
#ifndef PS_CUDA_LINES_JOIN_FACTOR_CUH
#define PS_CUDA_LINES_JOIN_FACTOR_CUH

#include "device/rounded.cuh"
#include "lines/join/segment.cuh"

namespace pysolvers::join {

/* a b, rounded separately, so that a subtraction from it is one fused operation. */
template <typename Number>
__device__ __forceinline__ Number
product(Number a, Number b)
{
    if constexpr (number_traits<Number>::is_complex) {
        return a * b;
    }
    else {
        return times(a, b);
    }
}

/* The flags of an eliminated matrix, the header of a store. */
struct StoredNote {
    int32_t bad_pivot; /* row of the first bad pivot, or INT32_MAX */
    int32_t dominant;  /* whether every row is dominant */
    int32_t unused[2]; /* padding: the words after it are aligned */
};

/* The matrix of a Segment: x_first = .. - first_l y_left - first_u y. */
template <typename Number> struct Frame {
    Number first_l, first_u, a, b, c;

    /* From the coefficients of x_first, those of the unknown above the last row, and that
     * row. */
    static __device__ __forceinline__ Frame closed(Number first_l, Number first_u,
                                                   Number l, Number u,
                                                   const Row<Number> &last)
    {
        return {first_l, first_u, -(last.lower * l), last.diag - last.lower * u,
                last.upper};
    }
    /* The equation of y, and the same in terms of y of the next unit, whose x_first has
     * these coefficients. */
    __device__ __forceinline__ Row<Number> row() const
    {
        return {a, b, c, Number(0)};
    }
    __device__ __forceinline__ Row<Number> row_before(Number next_l, Number next_u) const
    {
        return {a, b - c * next_l, -(c * next_u), Number(0)};
    }
    /* x_first of a group that begins with this unit, whose y has the coefficients l, u. */
    __device__ __forceinline__ Number first_l_through(Number l) const
    {
        return first_l - first_u * l;
    }
    __device__ __forceinline__ Number first_u_through(Number u) const
    {
        return -(first_u * u);
    }
};

/* The right-hand side of a Segment. */
template <typename Number> struct Load {
    Number first, d;
};

/* The unit of a group of `width` lanes, in all of them, from that of the lane with its first
 * row and that of its last lane. */
template <typename Number>
__device__ __forceinline__ Frame<Number>
whole_of(const Frame<Number> &s, int first, int last, int width)
{
    return {shuffle(all_lanes, s.first_l, first, width),
            shuffle(all_lanes, s.first_u, first, width),
            shuffle(all_lanes, s.a, last, width), shuffle(all_lanes, s.b, last, width),
            shuffle(all_lanes, s.c, last, width)};
}

template <typename Number>
__device__ __forceinline__ Load<Number>
whole_of(const Load<Number> &s, int first, int last, int width)
{
    return {shuffle(all_lanes, s.first, first, width),
            shuffle(all_lanes, s.d, last, width)};
}

/* The last row of a system: y = p d - first x_first. */
template <typename Number> struct CloseFactor {
    Number p, first;

    __device__ __forceinline__ void make(const Frame<Number> &s, bool periodic,
                                         int32_t row, BadPivot &bad_pivot)
    {
        const Number pivot = periodic ? s.a + s.b - s.c * (s.first_l + s.first_u) : s.b;

        bad_pivot.check(pivot, row);
        p = reciprocal(pivot);
        first = periodic ? s.c * p : Number(0);
    }

    __device__ __forceinline__ Number solve(const Load<Number> &s) const
    {
        return product(s.d, p) - first * s.first;
    }

    template <typename Visit> __device__ __forceinline__ void each(const Visit &visit)
    {
        visit(p);
        visit(first);
    }
};

} // namespace pysolvers::join

#endif
