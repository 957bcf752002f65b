/* shared_levels.cuh - the partition method for a matrix that all systems share.
 *
 * The elimination of segment.cuh is separated into two parts: `make` eliminates the
 * matrix and stores the multipliers; `reduce` and `at` apply them to a right-hand side.
 * A thread has ROWS rows; a warp joins its lanes by parallel cyclic reduction, a block
 * its warps. A right-hand side costs 6 operations per row and 2 per step of the
 * reduction, and no division. Rows are aligned to the end of the system; rows that copy
 * their left neighbour are added at its begin. No pivoting: stable for diagonally
 * dominant matrices.
 */
#ifndef PS_CUDA_LINES_SHARED_SHARED_LEVELS_CUH
#define PS_CUDA_LINES_SHARED_SHARED_LEVELS_CUH

#include "lines/join/factor.cuh"

namespace pysolvers::shared {

using namespace device;
using namespace join;

/* Inverts any pivot and records the first bad one: for code that is called once. */
template <typename Number> struct CheckedReciprocal {
    BadPivot &bad_pivot;

    __device__ __forceinline__ Number invert(Number pivot, int32_t row)
    {
        bad_pivot.check(pivot, row);
        return reciprocal(pivot);
    }
};

/* The rows of a thread: x_i = g_i - l_i y_left - u_i x_{i+1} for all but the last. */
template <typename Number, int ROWS> struct ChunkFactor {
    using Value = ValueOf<Number>;
    Number m[ROWS], p[ROWS - 1], u[ROWS - 1];

    /* Read ROWS rows(i); returns the last one. */
    template <typename Rows> __device__ __forceinline__ Row<Number> read(const Rows &rows)
    {
#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            const Row<Number> row = rows(i);

            m[i] = row.lower;
            p[i] = row.diag;
            u[i] = row.upper;
        }
        const Row<Number> last = rows(ROWS - 1);
        m[ROWS - 1] = last.lower;
        return last;
    }

    /* swap(words, pad) for each coefficient, to exchange the rows that were read for
     * those of the thread. */
    template <typename Swap>
    __device__ __forceinline__ void exchange(const Swap &swap, Row<Number> &last)
    {
        Number diag[ROWS], upper[ROWS];

#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            diag[i] = p[i];
            upper[i] = u[i];
        }
        diag[ROWS - 1] = last.diag;
        upper[ROWS - 1] = last.upper;
        swap(m, copy_row<Number>().lower);
        swap(diag, copy_row<Number>().diag);
        swap(upper, copy_row<Number>().upper);
#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            p[i] = diag[i];
            u[i] = upper[i];
        }
        last = {m[ROWS - 1], diag[ROWS - 1], upper[ROWS - 1], Number(0)};
    }

    /* Eliminate the rows of the thread; row i is row `start + i` of the system. */
    __device__ __forceinline__ Frame<Number> make(const Row<Number> &last, int32_t start,
                                                  BadPivot &bad_pivot)
    {
        CheckedReciprocal<Number> inverter = {bad_pivot};

        return make(last, start, inverter);
    }

    /* The same with another inverter of pivots (pivot.cuh). */
    template <typename Inverter>
    __device__ __forceinline__ Frame<Number> make(const Row<Number> &last, int32_t start,
                                                  Inverter &inverter)
    {
        Number l(-1), above(0), first_l[ROWS - 1];

#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            p[i] = inverter.invert(p[i] - m[i] * above, start + i);
            m[i] = m[i] * p[i];
            u[i] = u[i] * p[i];
            above = u[i];
            l = -(m[i] * l);
            first_l[i] = l;
        }
        Frame<Number> s = Frame<Number>::closed(Number(0), Number(-1), l, above, last);

        m[ROWS - 1] = last.lower;
#pragma unroll
        for (int i = ROWS - 2; i >= 0; i--) {
            if (start + i >= 0) {
                s.first_l = first_l[i] - u[i] * s.first_l;
                s.first_u = -(u[i] * s.first_u);
            }
            else {
                u[i] = Number(-1); /* passes x_first on; x of a pad is not used */
            }
        }
        return s;
    }

    /* The load of a right-hand side. */
    __device__ __forceinline__ Load<Number> reduce(const Number (&rhs)[ROWS]) const
    {
        Number g[ROWS - 1], s(0);

        forward(rhs, Number(0), g);
#pragma unroll
        for (int i = ROWS - 2; i >= 0; i--) {
            s = g[i] - u[i] * s;
        }
        return {s, rhs[ROWS - 1] - m[ROWS - 1] * g[ROWS - 2]};
    }

    /* Replace right-hand sides by x. The chunk is eliminated again with y_left known,
     * so that the backward error is that of the Thomas algorithm. */
    __device__ __forceinline__ void substitute(Number (&rhs)[ROWS], Number y_left,
                                               Number y) const
    {
        Number g[ROWS - 1];

        forward(rhs, y_left, g);
        rhs[ROWS - 1] = y;
#pragma unroll
        for (int i = ROWS - 2; i >= 0; i--) {
            rhs[i] = g[i] - u[i] * rhs[i + 1];
        }
    }

    /* The same for right-hand sides that stay in shared memory, perhaps several of each row:
     * values(i), called for i = 0 .. ROWS - 1 in this order. */
    template <typename Values>
    __device__ __forceinline__ Load<Value> reduce_each(const Values &values) const
    {
        Value g(0), first(0);
        Number first_u(-1);

#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            g = product(values(i), p[i]) - m[i] * g;
            first = first - first_u * g;
            first_u = -(first_u * u[i]);
        }
        return {first, values(ROWS - 1) - m[ROWS - 1] * g};
    }

    /* x of all rows, from the last to the first: put(i, x); keep(i, g) replaces values(i). */
    template <typename Values, typename Keep, typename Put>
    __device__ __forceinline__ void substitute_each(const Values &values,
                                                    const Keep &keep, const Value &y_left,
                                                    Value y, const Put &put) const
    {
        Value g = y_left;

#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            g = product(values(i), p[i]) - m[i] * g;
            keep(i, g);
        }
        put(ROWS - 1, y);
#pragma unroll
        for (int i = ROWS - 2; i >= 0; i--) {
            y = values(i) - u[i] * y;
            put(i, y);
        }
    }

    /* Whether all rows are dominant; called before they are eliminated. */
    __device__ __forceinline__ bool is_dominant(const Row<Number> &last) const
    {
        bool all = device::is_dominant(last.lower, last.diag, last.upper);

#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            all = all & device::is_dominant(m[i], p[i], u[i]);
        }
        return all;
    }

    /* visit(word) for every word of the factor. */
    template <typename Visit> __device__ __forceinline__ void each(const Visit &visit)
    {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            visit(m[i]);
        }
#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            visit(p[i]);
            visit(u[i]);
        }
    }

  private:
    __device__ __forceinline__ void forward(const Number (&rhs)[ROWS], Number y_left,
                                            Number (&g)[ROWS - 1]) const
    {
        g[0] = product(rhs[0], p[0]) - m[0] * y_left;
#pragma unroll
        for (int i = 1; i < ROWS - 1; i++) {
            g[i] = product(rhs[i], p[i]) - m[i] * g[i - 1];
        }
    }
};

/* Unit i of `count` neighbouring units, one per lane. The last unit keeps its y, which
 * is that of the group. STEPS steps of PCR suffice for 1 + 2^STEPS units. */
template <typename Number, int STEPS> struct LevelFactor {
    Number next;                   /* coefficient of the first x of the next unit */
    Number up[STEPS], down[STEPS]; /* of the rows that a step adds */
    Number scale, l, u;            /* y = scale g - l y_left - u y_group */
    Number left;    /* in the last row, the coefficient of the y before it */
    Number first_u; /* coefficient of y of the unit in its first x */

    /* The matrix of the group: `first` is that of the lane with its first row, the rest
     * that of its last lane. `row` is the row of the last unknown of the unit. */
    __device__ __forceinline__ Frame<Number> make(const Frame<Number> &s, int i,
                                                  int count, int width, int32_t row,
                                                  BadPivot &bad_pivot)
    {
        const int inner = count - 1; /* units whose y is eliminated */
        const bool active = i < inner;
        const Number next_l = shuffle_down(s.first_l, 1, width);
        const Number next_u = shuffle_down(s.first_u, 1, width);
        const Row<Number> own = s.row_before(next_l, next_u);
        Number a = own.lower, b = own.diag, c = own.upper;

        next = active ? s.c : Number(0);
        row = active ? row : BadPivot::none;
        bad_pivot.check(b, row);
#pragma unroll
        for (int k = 0; k < STEPS; k++) {
            step(k, a, b, c, i, inner, width);
            bad_pivot.check(b, row);
        }
        const Number p = reciprocal(b);

        scale = active ? p : Number(0);
        l = active ? a * p : Number(0);
        u = active ? c * p : Number(-1);
        left = i > 0 ? s.a : Number(0);
        first_u = s.first_u;

        Number before_l = shuffle_up(l, 1, width), before_u = shuffle_up(u, 1, width);
        if (i == 0) {
            before_l = Number(-1);
            before_u = Number(0);
        }
        return Frame<Number>::closed(s.first_l_through(l), s.first_u_through(u), before_l,
                                     before_u, s.row());
    }

    /* The steps of PCR that `count` units need. */
    static __device__ __forceinline__ int steps_of(int count)
    {
        return 32 - __clz(count - 2);
    }

    /* The load of the group, in the same lanes as the matrix; y becomes g of the
     * formula. Steps beyond `steps` have multipliers of 0 and are left out. */
    __device__ __forceinline__ Load<Number> reduce(const Load<Number> &s, int width,
                                                   Number &y, int steps = STEPS) const
    {
        y = s.d - next * shuffle_down(s.first, 1, width);
#pragma unroll
        for (int k = 0; k < STEPS; k++) {
            if (k < steps) {
                const Number before = shuffle_up(y, 1 << k, width);
                const Number behind = shuffle_down(y, 1 << k, width);

                y = y - up[k] * before - down[k] * behind;
            }
        }
        y = y * scale;
        return {s.first - first_u * y, s.d - left * shuffle_up(y, 1, width)};
    }

    __device__ __forceinline__ Number at(Number y, Number y_left, Number y_group) const
    {
        return y - l * y_left - u * y_group;
    }

    template <typename Visit> __device__ __forceinline__ void each(const Visit &visit)
    {
        visit(next);
#pragma unroll
        for (int k = 0; k < STEPS; k++) {
            visit(up[k]);
            visit(down[k]);
        }
        visit(scale);
        visit(l);
        visit(u);
        visit(left);
        visit(first_u);
    }

  private:
    /* One step of PCR on rows a y_{i-r} + b y_i + c y_{i+r}, r = 2^k. y_left and y of
     * the group, beyond the ends, are not eliminated. */
    __device__ __forceinline__ void step(int k, Number &a, Number &b, Number &c, int i,
                                         int inner, int width)
    {
        const int reach = 1 << k;
        const bool active = i < inner, has_up = active && i >= reach;
        const bool has_down = active && i + reach < inner;
        const Number p = reciprocal(b);
        const Number up_p = shuffle_up(p, reach, width);
        const Number up_a = shuffle_up(a, reach, width);
        const Number up_c = shuffle_up(c, reach, width);
        const Number down_p = shuffle_down(p, reach, width);
        const Number down_a = shuffle_down(a, reach, width);
        const Number down_c = shuffle_down(c, reach, width);

        up[k] = has_up ? a * up_p : Number(0);
        down[k] = has_down ? c * down_p : Number(0);
        if (has_up) {
            b = b - up[k] * up_c;
            a = -(up[k] * up_a);
        }
        if (has_down) {
            b = b - down[k] * down_a;
            c = -(down[k] * down_c);
        }
    }
};

} // namespace pysolvers::shared

#endif
