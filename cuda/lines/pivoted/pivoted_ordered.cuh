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
#include "lines/pivoted/pivoted_rows.cuh"

namespace pysolvers::pivoted {

using device::quotient;

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
    /* Eliminate column `position`, whose pivot row takes the place of row `position` + 1,
     * which is not there in the last step. Returns whether the pivot is zero. */
    __device__ __forceinline__ bool eliminate(Number *row, int step, int position, int n)
    {
        const bool more = position < n - 1;
        const PivotRow<Number> below =
            more ? PivotRow<Number>{row[0], row[step], row[2 * step], row[3 * step]}
                 : PivotRow<Number>{};
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
            const Number m = quotient(take ? at : below.lower, pivot);

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
    /* x of a pivot row; x[0] and on are those of the next columns. */
    static __device__ __forceinline__ Number substitute(const Number *row, int step,
                                                        const Number (&x)[4])
    {
        const Number value = less_product(row[3 * step], row[step], x[0]);

        return quotient(less_product(value, row[2 * step], x[1]), row[0]);
    }
};

/* The folded order of a periodic system. */
template <typename Number> struct OrderedFolded {
    static constexpr int words = ORDERED_FOLDED_WORDS, kept = ORDERED_FOLDED_KEPT;
    static constexpr int ahead = 2;
    static constexpr bool periodic = true;
    struct Carried {
        Number at[4], rhs;
    };
    Carried a, b;

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

        spread(s.at(0, true), 0, s.rows, at, a.rhs);
        a.at[0] = at[2];
        a.at[1] = at[3];
        a.at[2] = at[4];
        a.at[3] = Number(0);
        b = {};
        if (s.rows > 1) {
            spread(s.at(s.rows - 1, true), 1, s.rows, at, b.rhs);
#pragma unroll
            for (int w = 0; w < 4; w++) {
                b.at[w] = at[w + 1];
            }
        }
    }
    __device__ __forceinline__ void keep(Number *to, int step) const
    {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            to[w * step] = a.at[w];
            to[(w + 5) * step] = b.at[w];
        }
        to[4 * step] = a.rhs;
        to[9 * step] = b.rhs;
    }
    __device__ __forceinline__ void restore(const Number *from, int step)
    {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            a.at[w] = from[w * step];
            b.at[w] = from[(w + 5) * step];
        }
        a.rhs = from[4 * step];
        b.rhs = from[9 * step];
    }
    __device__ __forceinline__ bool eliminate(Number *row, int step, int position, int n)
    {
        Number c[5] = {};
        Number c_rhs = Number(0);

        if (position + 2 < n) {
            spread({row[0], row[step], row[2 * step], row[3 * step]}, position + 2, n, c,
                   c_rhs);
        }
        /* The largest of three to a. */
        const bool second = size_of(b.at[0]) > size_of(a.at[0]);
        const bool third = size_of(c[0]) > size_of(second ? b.at[0] : a.at[0]);
#pragma unroll
        for (int w = 0; w < 4; w++) {
            exchange_if(second, a.at[w], b.at[w]);
            exchange_if(third, a.at[w], c[w]);
        }
        exchange_if(second, a.rhs, b.rhs);
        exchange_if(third, a.rhs, c_rhs);
        Number last = Number(0); /* the pivot row's fifth entry */
        exchange_if(third, last, c[4]);

        const Number pivot = a.at[0];
        const Number of_b = quotient(b.at[0], pivot), of_c = quotient(c[0], pivot);
        const Number right[4] = {a.at[1], a.at[2], a.at[3], last};
        const Carried one = b;
        const Number value = a.rhs;
#pragma unroll
        for (int w = 0; w < 4; w++) {
            row[w * step] = right[w];
            a.at[w] = less_product(w < 3 ? one.at[w + 1 < 4 ? w + 1 : 3] : Number(0),
                                   of_b, right[w]);
            b.at[w] = less_product(c[w + 1], of_c, right[w]);
        }
        row[4 * step] = pivot;
        row[5 * step] = value;
        a.rhs = less_product(one.rhs, of_b, value);
        b.rhs = less_product(c_rhs, of_c, value);
        return is_zero(pivot);
    }
    static __device__ __forceinline__ Number substitute(const Number *row, int step,
                                                        const Number (&x)[4])
    {
        Number value = row[5 * step];

#pragma unroll
        for (int w = 3; w >= 0; w--) {
            value = less_product(value, row[w * step], x[w]);
        }
        return quotient(value, row[4 * step]);
    }
};

/* Read the rows of the segment that begins at position `begin` and eliminate its columns.
 * Returns 0, or 1 + the row of the first zero pivot. */
template <typename Order, typename Number>
__device__ __forceinline__ int
ordered_segment(const OrderedSystem<Number> &s, const OrderedPlace<Number> &place,
                Order &order, int begin, int end)
{
    const int n = s.rows, step = place.step, last = min(end, n - Order::ahead);
    int bad = 0;

#pragma unroll 2
    for (int p = begin; p < last; p++) {
        Number *const to = place.rows + (p - begin) * Order::words * step;
        const PivotRow<Number> row =
            s.at(Order::row_of(p + Order::ahead, n), Order::periodic);

        to[0] = row.lower;
        to[step] = row.diag;
        to[2 * step] = row.upper;
        to[3 * step] = row.rhs;
    }
#pragma unroll 1
    for (int p = begin; p < end; p++) {
        const bool is_bad =
            order.eliminate(place.rows + (p - begin) * Order::words * step, step, p, n);

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
#pragma unroll 1
        for (int p = end - 1; p >= begin; p--) {
            const Number value = Order::substitute(
                place.rows + (p - begin) * Order::words * place.step, place.step, x);

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
