/* pivoted_ordered.cuh - elimination with partial pivoting in order, one thread a system.
 *
 * Solves the systems that the chunks and their tree (pivoted_rows.cuh, pivoted_tree.cuh)
 * leave doubtful. A system that is not periodic takes the rows 0, 1, ..., n-1 with the
 * comparisons of LAPACK's gtsv: the pivot row of column i is the larger of the carried
 * row and row i+1, and entries grow to at most twice the largest one of the matrix.
 *
 * In this order the last column and the last row of a periodic matrix take part in every
 * step, and can double with each. So a periodic system takes the rows in the folded order
 * 0, n-1, 1, n-2, ..., in which it is a band matrix: row i at position p is coupled with
 * the positions p-2, p and p+2 only, but for both ends of the order, where p-1 or p+1
 * occurs instead. The pivot row of position p is the largest of two carried rows, with
 * entries in the columns p .. p+3, and the row of position p+2. Entries grow to at most 7
 * times the largest one of the matrix (Higham 2002, Theorem 9.11, with bandwidth 2).
 *
 * A thread keeps pivot rows of one segment of the order only, in shared memory, and of
 * each segment the carried rows at its begin. It eliminates forward once, and then, from
 * the last segment to the first, reads the rows of a segment again, eliminates them again
 * and substitutes. So 9 words an unknown are read or written, and x may be rhs: x of a
 * segment is written after the rows of the segment have been read. 14 operations and 2
 * divisions an unknown, twice; periodic 28 and 3 divisions, twice.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_ORDERED_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_ORDERED_CUH

#include "device/operand.cuh"
#include "lines/pivoted/pivoted_folded.cuh"
#include "runtime/copy.cuh"

namespace pysolvers::pivoted {

using device::quotient;
using runtime::copies_done;
using runtime::copy_async;

/* Words of a pivot row, and of what is kept of a segment. */
enum {
    ORDERED_WORDS = 4,
    ORDERED_KEPT = 3,
    ORDERED_FOLDED_WORDS = 6,
    ORDERED_FOLDED_KEPT = 10
};

/* Words of one thread: word w of row i of a segment at rows[(i * words + w) * step], word
 * w of segment s at kept[(s * words + w) * kept_step]. */
template <typename Number> struct OrderedPlace {
    Number *rows;
    Number *kept;
    int step, kept_step;
    int length; /* rows of a segment */
};

/* One system. */
template <typename Number> struct OrderedSystem {
    const Number *lower, *diag, *upper, *rhs;
    Number *x;
    int64_t lower_row, diag_row, upper_row, rhs_row, x_row;
    int rows;

    /* Row i of the matrix; a system that is not periodic sees nothing beyond its ends. */
    __device__ __forceinline__ PivotRow<Number> at(int i, bool periodic) const
    {
        const bool has_lower = i > 0 || periodic, has_upper = i < rows - 1 || periodic;

        return {has_lower ? lower[i * lower_row] : Number(0), diag[i * diag_row],
                has_upper ? upper[i * upper_row] : Number(0), rhs[i * rhs_row]};
    }
};

template <typename Number>
__device__ __forceinline__ OrderedSystem<Number>
ordered_system(const Systems<Number> &s, int64_t j, int64_t k)
{
    return {s.lower.system(j, k),
            s.diag.system(j, k),
            s.upper.system(j, k),
            s.rhs.system(j, k),
            s.x.system(j, k),
            s.lower.row,
            s.diag.row,
            s.upper.row,
            s.rhs.row,
            s.x.row,
            s.rows};
}

template <typename Number>
__device__ __forceinline__ bool
is_zero(Number a)
{
    return size_of(a) == 0;
}

/* a / b. The seed and its Newton steps serve all numbers that are neither tiny nor huge.
 */
template <typename Number>
__device__ __forceinline__ Number
ratio(Number a, Number b)
{
    using Real = real_of<Number>;
    constexpr Real least =
        sizeof(Real) == 4 ? Real(2.1684043449710089e-19) : Real(1.4916681462400413e-154);
    const Real size = size_of(b);

    return size > least && size * least < 1 ? a * inverse_of(b) : quotient(a, b);
}

/* The order 0, 1, ..., n-1. Carried is a row with entries in two columns. */
template <typename Number> struct OrderedInOrder {
    static constexpr int words = ORDERED_WORDS, kept = ORDERED_KEPT;
    static constexpr int ahead = 1; /* the row that step p reads first is that of p+1 */
    static constexpr bool periodic = false;
    Number at, next, rhs;

    __device__ __forceinline__ void begin(const OrderedSystem<Number> &s)
    {
        const PivotRow<Number> row = s.at(0, false);

        at = row.diag;
        next = row.upper;
        rhs = row.rhs;
    }
    __device__ __forceinline__ void keep(Number *to, int step) const
    {
        to[0] = at;
        to[step] = next;
        to[2 * step] = rhs;
    }
    __device__ __forceinline__ void restore(const Number *from, int step)
    {
        at = from[0];
        next = from[step];
        rhs = from[2 * step];
    }
    static __device__ __forceinline__ int row_of(int position, int)
    {
        return position;
    }
    /* Eliminate column `position`; `below` is the row behind it, zero in the last step.
     * The pivot row is written to `row`. Returns whether the pivot is zero. */
    __device__ __forceinline__ bool eliminate(const PivotRow<Number> &below, Number *row,
                                              int step, int position, int n)
    {
        const bool more = position < n - 1;
        const bool take = size_of(below.lower) > size_of(at);
        const Number pivot = take ? below.lower : at;
        const Number second = take ? below.diag : next;
        const Number third = take ? below.upper : Number(0);
        const Number value = take ? below.rhs : rhs;

        row[0] = pivot;
        row[step] = second;
        row[2 * step] = third;
        row[3 * step] = value;
        if (more && !is_zero(below.lower)) {
            const Number m = ratio(take ? at : below.lower, pivot);

            at = less_product(take ? next : below.diag, m, second);
            next = take ? -(m * third) : below.upper;
            rhs = less_product(take ? rhs : below.rhs, m, value);
        }
        else {
            at = below.diag;
            next = below.upper;
            rhs = below.rhs;
        }
        return is_zero(pivot);
    }
    /* x of a pivot row of `words` words; x[0] and on are those of the next columns. */
    static __device__ __forceinline__ Number substitute(const Number (&row)[words],
                                                        const Number (&x)[4])
    {
        const Number value = less_product(row[3], row[2], x[1]);

        return ratio(less_product(value, row[1], x[0]), row[0]);
    }
};

/* The folded order of a periodic system. */
template <typename Number> struct OrderedFolded {
    static constexpr int words = ORDERED_FOLDED_WORDS, kept = ORDERED_FOLDED_KEPT;
    static constexpr int ahead = 2;
    static constexpr bool periodic = true;
    FoldedRows<Number> rows;

    static __device__ __forceinline__ int position_of(int row, int n)
    {
        return row <= n - 1 - row ? 2 * row : 2 * (n - 1 - row) + 1;
    }
    static __device__ __forceinline__ int row_of(int position, int n)
    {
        return position % 2 == 0 ? position / 2 : n - 1 - position / 2;
    }
    /* The row of a position: entries in the columns position-2 .. position+2. Rows are
     * not scaled: of rows of very different sizes a small one would lose what is large
     * beside it. */
    static __device__ __forceinline__ void
    spread(const PivotRow<Number> &row, int position, int n, Number (&at)[5], Number &rhs)
    {
        const int i = row_of(position, n);
        const int before = position_of(i > 0 ? i - 1 : n - 1, n) - position;
        const int behind = position_of(i < n - 1 ? i + 1 : 0, n) - position;

#pragma unroll
        for (int w = -2; w <= 2; w++) {
            Number entry = w == 0 ? row.diag : Number(0);

            entry = before == w ? entry + row.lower : entry;
            at[w + 2] = behind == w ? entry + row.upper : entry;
        }
        rhs = row.rhs;
    }
    __device__ __forceinline__ void begin(const OrderedSystem<Number> &s)
    {
        Number at[5];

        spread(s.at(0, true), 0, s.rows, at, rows.a.rhs);
        rows.a.at[0] = at[2];
        rows.a.at[1] = at[3];
        rows.a.at[2] = at[4];
        rows.a.at[3] = Number(0);
        rows.b = {};
        if (s.rows > 1) {
            spread(s.at(s.rows - 1, true), 1, s.rows, at, rows.b.rhs);
#pragma unroll
            for (int w = 0; w < 4; w++) {
                rows.b.at[w] = at[w + 1];
            }
        }
    }
    __device__ __forceinline__ void keep(Number *to, int step) const
    {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            to[w * step] = rows.a.at[w];
            to[(w + 5) * step] = rows.b.at[w];
        }
        to[4 * step] = rows.a.rhs;
        to[9 * step] = rows.b.rhs;
    }
    __device__ __forceinline__ void restore(const Number *from, int step)
    {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            rows.a.at[w] = from[w * step];
            rows.b.at[w] = from[(w + 5) * step];
        }
        rows.a.rhs = from[4 * step];
        rows.b.rhs = from[9 * step];
    }
    __device__ __forceinline__ bool eliminate(const PivotRow<Number> &below, Number *row,
                                              int step, int position, int n)
    {
        Number c[5] = {};
        Number c_rhs = Number(0);

        if (position + 2 < n) {
            spread(below, position + 2, n, c, c_rhs);
        }
        const FoldedPivot<Number> pivot = folded_step(rows, c, c_rhs);

#pragma unroll
        for (int w = 0; w < 4; w++) {
            row[w * step] = pivot.right[w];
        }
        row[4 * step] = pivot.pivot;
        row[5 * step] = pivot.rhs;
        return is_zero(pivot.pivot);
    }
    static __device__ __forceinline__ Number substitute(const Number (&row)[words],
                                                        const Number (&x)[4])
    {
        Number value = row[5];

#pragma unroll
        for (int w = 3; w >= 0; w--) {
            value = less_product(value, row[w], x[w]);
        }
        return ratio(value, row[4]);
    }
};

/* Begin to copy an entry to shared memory, or write a zero if it has no meaning. */
template <typename Number>
__device__ __forceinline__ void
ordered_fetch(Number *to, const Number *from, bool has_meaning)
{
    if (has_meaning) {
        copy_async<sizeof(Number)>(to, from);
    }
    else {
        *to = Number(0);
    }
}

/* Row i of a segment in shared memory, or zeros if there is none. */
template <typename Number>
__device__ __forceinline__ PivotRow<Number>
ordered_row(const OrderedPlace<Number> &place, int i, int words, bool is_there)
{
    const Number *const row = place.rows + i * words * place.step;

    return is_there ? PivotRow<Number>{row[0], row[place.step], row[2 * place.step],
                                       row[3 * place.step]}
                    : PivotRow<Number>{};
}

/* Pivot row i of a segment. */
template <typename Order, typename Number>
__device__ __forceinline__ void
ordered_pivot_row(const OrderedPlace<Number> &place, int i, Number (&row)[Order::words])
{
#pragma unroll
    for (int w = 0; w < Order::words; w++) {
        row[w] = place.rows[(i * Order::words + w) * place.step];
    }
}

/* Read the rows of the segment that begins at position `begin` and eliminate its columns.
 * Returns 0, or 1 + the row of the first zero pivot. */
template <typename Order, typename Number>
__device__ __forceinline__ int
ordered_segment(const OrderedSystem<Number> &s, const OrderedPlace<Number> &place,
                Order &order, int begin, int end)
{
    const int n = s.rows, step = place.step, last = min(end, n - Order::ahead);
    int bad = 0;

    /* All rows of the segment are on their way at once. */
#pragma unroll 1
    for (int p = begin; p < last; p++) {
        Number *const to = place.rows + (p - begin) * Order::words * step;
        const int i = Order::row_of(p + Order::ahead, n);

        ordered_fetch(to, s.lower + i * s.lower_row, i > 0 || Order::periodic);
        ordered_fetch(to + step, s.diag + i * s.diag_row, true);
        ordered_fetch(to + 2 * step, s.upper + i * s.upper_row,
                      i < n - 1 || Order::periodic);
        ordered_fetch(to + 3 * step, s.rhs + i * s.rhs_row, true);
    }
    copies_done();
    /* The next row is read before the pivot row is written: the steps wait for each
     * other, and need not wait for memory too. */
    PivotRow<Number> next = ordered_row(place, 0, Order::words, begin < last);
#pragma unroll 1
    for (int p = begin; p < end; p++) {
        const PivotRow<Number> below = next;
        Number *const to = place.rows + (p - begin) * Order::words * step;

        next = ordered_row(place, p + 1 - begin, Order::words, p + 1 < last);
        const bool is_bad = order.eliminate(below, to, step, p, n);

        bad = is_bad && bad == 0 ? 1 + Order::row_of(p, n) : bad;
    }
    return bad;
}

/* Solve a system. Returns its info. */
template <typename Order, typename Number>
__device__ __forceinline__ int
ordered_solve(const OrderedSystem<Number> &s, const OrderedPlace<Number> &place)
{
    const int n = s.rows, length = place.length, segments = (n + length - 1) / length;
    Order order;
    int info = 0;

    order.begin(s);
#pragma unroll 1
    for (int g = 0; g < segments; g++) {
        order.keep(place.kept + g * Order::kept * place.kept_step, place.kept_step);
        const int bad =
            ordered_segment(s, place, order, g * length, min((g + 1) * length, n));
        info = info == 0 ? bad : info;
    }
    /* x of the positions from the last one on. That of the two that the segment before
     * reads yet is written when it has been read. */
    Number x[4] = {};
    for (int g = segments - 1; g >= 0; g--) {
        const int begin = g * length, end = min(begin + length, n);

        if (g < segments - 1) {
            order.restore(place.kept + g * Order::kept * place.kept_step,
                          place.kept_step);
            (void)ordered_segment(s, place, order, begin, end);
        }
        Number row[Order::words], above[Order::words];

        ordered_pivot_row<Order>(place, end - 1 - begin, above);
#pragma unroll 1
        for (int p = end - 1; p >= begin; p--) {
#pragma unroll
            for (int w = 0; w < Order::words; w++) {
                row[w] = above[w];
            }
            ordered_pivot_row<Order>(place, max(p - 1, begin) - begin, above);
            const Number value = Order::substitute(row, x);

            if (p + Order::ahead < n) {
                s.x[Order::row_of(p + Order::ahead, n) * s.x_row] = x[Order::ahead - 1];
            }
            x[3] = x[2];
            x[2] = x[1];
            x[1] = x[0];
            x[0] = value;
        }
    }
    s.x[Order::row_of(0, n) * s.x_row] = x[0];
    if (Order::ahead == 2 && n > 1) {
        s.x[Order::row_of(1, n) * s.x_row] = x[1];
    }
    return info;
}

/* Solve system (j, k) of the batch and write its info. Out of line, as it is rare and has
 * registers of its own. */
template <typename Number>
__device__ __noinline__ int
solve_in_order(const Systems<Number> &s, int64_t j, int64_t k,
               const OrderedPlace<Number> &place)
{
    const OrderedSystem<Number> system = ordered_system(s, j, k);

    return s.periodic ? ordered_solve<OrderedFolded<Number>>(system, place)
                      : ordered_solve<OrderedInOrder<Number>>(system, place);
}

} // namespace pysolvers::pivoted

#endif
