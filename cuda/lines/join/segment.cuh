/* segment.cuh - the algebra of the partition method, the same for every level.
 *
 * A segment is a run of neighbouring rows of which all unknowns but the last one, y,
 * have been eliminated. Let y_left be the last unknown before it and x_next the first
 * unknown after it. Then
 *
 *   x_first = first.g - first.l y_left - first.u y
 *   a y_left + b y + c x_next = d
 *
 * A thread makes a segment of its rows (Chunk). The lanes of a warp join their segments
 * to one by parallel cyclic reduction (Lanes); so do the warps of a block and the
 * blocks of a cluster. The last level solves for y of the system (close_system), and
 * every level computes y_left and y of its units. A row costs 17 operations and one
 * reciprocal: 8 for elimination, 5 for x_first, 4 for substitution. No pivoting: stable
 * for diagonally dominant systems. row_sums.cuh has the same for matrices given by row
 * sums. Wang 1981; Laszlo, Giles and Appleyard 2016; PCR: Hockney and Jesshope 1981.
 */
#ifndef PS_CUDA_LINES_JOIN_SEGMENT_CUH
#define PS_CUDA_LINES_JOIN_SEGMENT_CUH

#include "device/pivot.cuh"

namespace pysolvers::join {

using namespace device;
using device::shuffle;

template <typename Number> struct Row {
    Number lower, diag, upper;
    ValueOf<Number> rhs;
};

/* x = g - l y_left - u y */
template <typename Number> struct Spike {
    ValueOf<Number> g;
    Number l, u;

    __device__ __forceinline__ ValueOf<Number> at(const ValueOf<Number> &y_left,
                                                  const ValueOf<Number> &y) const
    {
        return g - l * y_left - u * y;
    }
    /* The pivot of the next row, and, from the inverse of that pivot, x of the next row
     * in terms of y_left and the unknown after it. */
    __device__ __forceinline__ Number pivot_of(const Row<Number> &row) const
    {
        return row.diag - row.lower * u;
    }
    __device__ __forceinline__ Spike below(const Row<Number> &row, Number inverse) const
    {
        return {inverse * (row.rhs - row.lower * g), inverse * -(row.lower * l),
                inverse * row.upper};
    }
    /* If x is this, in terms of an unknown that is `y`. */
    __device__ __forceinline__ Spike through(const Spike &y) const
    {
        return {g - u * y.g, l - u * y.l, -(u * y.u)};
    }
};

template <typename Number> struct Segment {
    Spike<Number> first;
    Number a, b, c;
    ValueOf<Number> d;

    /* The segment from x_first, the spike of the row above the last one, and the last
     * row. */
    static __device__ __forceinline__ Segment closed(const Spike<Number> &first,
                                                     const Spike<Number> &above,
                                                     const Row<Number> &last)
    {
        return {first, -(last.lower * above.l), above.pivot_of(last), last.upper,
                last.rhs - last.lower * above.g};
    }
    /* The equation of y, and the same in terms of y of the next segment. */
    __device__ __forceinline__ Row<Number> row() const
    {
        return {a, b, c, d};
    }
    __device__ __forceinline__ Row<Number> row_before(const Spike<Number> &next) const
    {
        return {a, b - c * next.l, -(c * next.u), d - c * next.g};
    }
};

/* The words of a segment in the order of its members. */
constexpr int segment_words = 7;

template <typename Number>
__device__ __forceinline__ void
put_words(const Segment<Number> &s, Number (&to)[segment_words])
{
    const Number words[segment_words] = {s.first.g, s.first.l, s.first.u, s.a,
                                         s.b,       s.c,       s.d};
#pragma unroll
    for (int k = 0; k < segment_words; k++) {
        to[k] = words[k];
    }
}

/* The spike of y_left, the unknown before a segment, and that of its last unknown, y. */
template <typename Number>
__device__ __forceinline__ Spike<Number>
left_spike()
{
    return {ValueOf<Number>(0), Number(-1), Number(0)};
}

template <typename Number>
__device__ __forceinline__ Spike<Number>
own_spike()
{
    return {ValueOf<Number>(0), Number(0), Number(-1)};
}

/* A row that copies its left neighbour, x_i = x_{i-1}, used for pads at the begin of
 * the first segment. A segment of such rows has x_first = y = y_left. */
template <typename Number>
__device__ __forceinline__ Row<Number>
copy_row()
{
    return {Number(-1), Number(1), Number(0), ValueOf<Number>(0)};
}

/* The rows of a thread, in registers: x_i = g_i - l_i y_left - u_i x_{i+1} for i < ROWS
 * - 1. Indices must be compile-time constants. */
template <typename Number, int ROWS> struct Chunk {
    Spike<Number> x[ROWS - 1];

    /* Eliminate `rows(i)`, i = 0 .. ROWS-1 in this order; row i is row `start + i` of
     * the system. x_first is that of row `pads`. Pivots are inverted by a
     * FastReciprocal or a SafeReciprocal. */
    template <typename Rows, typename Inverter>
    __device__ __forceinline__ Segment<Number> eliminate(const Rows &rows, int32_t start,
                                                         int pads, Inverter &inverter)
    {
        Spike<Number> above = left_spike<Number>();

#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            const Row<Number> row = rows(i);

            above = above.below(row, inverter.invert(above.pivot_of(row), start + i));
            x[i] = above;
        }
        const Row<Number> last = rows(ROWS - 1);
        return Segment<Number>::closed(first(pads), above, last);
    }

    /* x_i of all rows, from the last to the first: put(i, x), which may change x, from
     * which x of the row before is computed. */
    template <typename Put>
    __device__ __forceinline__ void substitute(const ValueOf<Number> &y_left,
                                               ValueOf<Number> y, const Put &put) const
    {
        put(ROWS - 1, y);
#pragma unroll
        for (int i = ROWS - 2; i >= 0; i--) {
            y = x[i].at(y_left, y);
            put(i, y);
        }
    }

    __device__ __forceinline__ ValueOf<Number> &g_of(int i)
    {
        return x[i].g;
    }

  private:
    __device__ __forceinline__ Spike<Number> first(int pads) const
    {
        Spike<Number> s = own_spike<Number>();

#pragma unroll
        for (int i = ROWS - 2; i >= 0; i--) {
            if (i >= pads) {
                s = {x[i].g - x[i].u * s.g, x[i].l - x[i].u * s.l, -(x[i].u * s.u)};
            }
        }
        return s;
    }
};

/* Lanes of a warp with a segment each: unit i of `count` is lane `base` + i `stride`.
 * Lanes outside of any group have i >= count. */
struct Group {
    int32_t i, count, base, stride;

    __device__ __forceinline__ int lane_of(int unit) const
    {
        return base + unit * stride;
    }
    /* The lane `reach` units away if `wanted`, otherwise the own lane. */
    __device__ __forceinline__ int away(int reach, bool wanted) const
    {
        const int own = threadIdx.x % 32;
        return wanted ? own + reach * stride : own;
    }
};

template <typename Number>
__device__ __forceinline__ Spike<Number>
shuffle(const Spike<Number> &s, int lane)
{
    return {shuffle(all_lanes, s.g, lane), shuffle(all_lanes, s.l, lane),
            shuffle(all_lanes, s.u, lane)};
}

/* Joins the units of a group; y of the group is that of its last unit. `y` expresses y
 * of this unit by y_left and y of the group. Called by all lanes of the warp together. */
template <typename Number> struct Lanes {
    Spike<Number> y;

    /* Reduce; `row` is the row of the last unknown of the segment. */
    template <typename Inverter>
    __device__ __forceinline__ void reduce(const Group &group, const Segment<Number> &s,
                                           int32_t row, Inverter &inverter)
    {
        const int inner = group.count - 1; /* units whose y is eliminated */
        const bool active = group.i < inner;
        const Spike<Number> next = shuffle(s.first, group.away(1, active));
        const Number p =
            inverter.invert(active ? s.b - s.c * next.l : Number(1), active ? row : 0);

        y = {p * (s.d - s.c * next.g), p * s.a, p * -(s.c * next.u)};
        for (int reach = 1; reach < inner; reach *= 2) {
            step(group, reach, inner, row, inverter);
        }
        if (!active) {
            y = own_spike<Number>();
        }
    }

    /* The segment of the group, in all its lanes; `first` is the unit that contains its
     * first row. */
    __device__ __forceinline__ Segment<Number>
    whole(const Group &group, const Segment<Number> &s, int first) const
    {
        const Spike<Number> front = {s.first.g - s.first.u * y.g,
                                     s.first.l - s.first.u * y.l, -(s.first.u * y.u)};
        const int end = group.lane_of(group.count - 1);
        Spike<Number> left = shuffle(y, group.away(-1, group.i > 0));

        if (group.i == 0) {
            left = left_spike<Number>();
        }
        return {shuffle(front, group.lane_of(first)),
                shuffle(all_lanes, -(s.a * left.l), end),
                shuffle(all_lanes, s.b - s.a * left.u, end), shuffle(all_lanes, s.c, end),
                shuffle(all_lanes, s.d - s.a * left.g, end)};
    }

  private:
    /* One step of PCR on rows y + l y_{i-reach} + u y_{i+reach} = g with unit diagonal.
     * y_left and y of the group, beyond its ends, are never eliminated: after the last
     * step, l and u are their coefficients. */
    template <typename Inverter>
    __device__ __forceinline__ void step(const Group &group, int reach, int inner,
                                         int32_t row, Inverter &inverter)
    {
        const bool has_up = group.i >= reach && group.i < inner;
        const bool has_down = group.i + reach < inner;
        const Spike<Number> up = shuffle(y, group.away(-reach, has_up));
        const Spike<Number> down = shuffle(y, group.away(reach, has_down));
        const Number alpha = has_up ? y.l : Number(0);
        const Number gamma = has_down ? y.u : Number(0);
        const Number p = inverter.invert(Number(1) - alpha * up.u - gamma * down.l, row);

        y = {p * (y.g - alpha * up.g - gamma * down.g),
             p * (has_up ? -(y.l * up.l) : y.l), p * (has_down ? -(y.u * down.u) : y.u)};
    }
};

/* y of a whole system from its only segment. y_left is y itself if the system is
 * periodic, and does not exist otherwise. */
template <typename Number>
__device__ __forceinline__ ValueOf<Number>
close_system(const Segment<Number> &s, bool periodic, int32_t row, BadPivot &bad_pivot)
{
    const Number pivot = periodic ? s.a + s.b - s.c * (s.first.l + s.first.u) : s.b;

    bad_pivot.check(pivot, row);
    return reciprocal(pivot) * (periodic ? s.d - s.c * s.first.g : s.d);
}

} // namespace pysolvers::join

#endif
