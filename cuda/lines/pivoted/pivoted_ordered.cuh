/* pivoted_ordered.cuh - elimination with partial pivoting in order, one thread per system.
 *
 * Solves the systems that remain doubtful after the elimination by chunks (pivoted_rows.cuh,
 * pivoted_tree.cuh). Systems that are not periodic are eliminated in the order 0, 1, ...,
 * n-1 with the comparisons of LAPACK's gtsv: the pivot row of column i is the carried row
 * or row i+1, whichever has the larger entry, and entries grow to at most twice the largest
 * one of the matrix.
 *
 * In this order the last column and the last row of a periodic matrix take part in every
 * step, and their entries can double in each. Periodic systems are therefore eliminated in
 * the folded order 0, n-1, 1, n-2, ..., in which the matrix is a band matrix: the row at
 * position p is coupled with the positions p-2, p and p+2, and at both ends of the order
 * with p-1 or p+1 instead of one of them. The pivot row of position p is that with the
 * largest entry among two carried rows, with entries in the columns p .. p+3, and the row
 * of position p+2. Entries grow to at most 7 times the largest one of the matrix (Higham
 * 2002, Theorem 9.11, with bandwidth 2).
 *
 * All lanes of a warp copy the rows of a segment of the order to shared memory, lane g
 * eliminates those of system g in place, and all lanes store x. If all pivot rows of a
 * system fit, it is one segment: 5 words, 14 operations and 2 reciprocals per unknown, 28
 * and 2 if it is periodic. Of longer systems the carried rows at the beginning of each
 * segment are kept in the first elimination. Then, from the last segment to the first, the
 * rows of a segment are read and eliminated again, and substituted: 9 words per unknown,
 * and twice the operations of the elimination. x may be rhs, because x of a segment is
 * written after the rows of the segment have been read.
 *
 * A step depends on the one before it by one comparison, one reciprocal and three or four
 * multiply-adds; if the system is periodic, by two comparisons and six multiply-adds.
 * Everything else overlaps with this chain: rows are read from shared memory one step in
 * advance, and the back substitution computes the reciprocals of several rows at once. The
 * fast reciprocals are valid for pivots that are neither tiny nor huge. A segment with
 * another pivot is eliminated again with divisions, so that the steps have no branches.
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

/* Lanes of a warp. */
static constexpr int ordered_lanes = 32;

/* Words of a pivot row, and of the carried rows that are kept for each segment. */
enum {
    ORDERED_WORDS = 4,
    ORDERED_KEPT = 3,
    ORDERED_FOLDED_WORDS = 6,
    ORDERED_FOLDED_KEPT = 10
};

/* The number of pivot rows of `words` words whose reciprocals the back substitution
 * computes at once, limited by the registers. */
template <typename Number>
__host__ __device__ constexpr int
ordered_at_once(int words)
{
    const int rows = 128 / (words * static_cast<int>(sizeof(Number)));

    return rows >= 4 ? 4 : 2;
}

/* Words from one system to the next in shared memory. The number of rows is odd, so that
 * lanes at the same row of their systems use different banks. */
__host__ __device__ constexpr int
ordered_pitch(int length, int words)
{
    return (length | 1) * words;
}

/* Memory of the systems of a warp: row i of a segment of system g at rows + g * pitch +
 * i * words, in shared memory; the calling lane's carried rows of segment s at kept + s *
 * (kept words). */
template <typename Number> struct OrderedPlace {
    Number *rows, *kept;
    int pitch;
    int length; /* rows of a segment */
};

/* The systems of a warp. Lane g has the pointers of system g, of `count`. */
template <typename Number> struct OrderedSystems {
    const Systems<Number> &s;
    int64_t j, k;
    int count, lane;
};

/* A pivot row, or a row of the matrix, in shared memory. */
template <typename Number, int words>
struct alignas(words == 4 || sizeof(Number) > 4 ? 16 : 8) OrderedRow {
    Number at[words];
};

/* One system. */
template <typename Number> struct OrderedSystem {
    const Number *lower, *diag, *upper, *rhs;
    Number *x;
    int64_t lower_row, diag_row, upper_row, rhs_row, x_row;
    int rows;

    /* Row i of the matrix; lower of the first and upper of the last row are 0 unless the
     * system is periodic. */
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

/* The pivots of an elimination. If it is checked: the first position of a zero, or -1.
 * Otherwise: whether one of them is not moderate. */
struct OrderedPivots {
    int zero = -1;
    bool extreme = false;

    template <bool checked, typename Number>
    __device__ __forceinline__ void add(Number pivot, int position)
    {
        if (checked) {
            zero = zero < 0 && is_zero(pivot) ? position : zero;
        }
        else {
            extreme = extreme | !is_moderate(pivot);
        }
    }
};

/* The order 0, 1, ..., n-1. Carried is a row with entries in two columns. */
template <typename Number> struct OrderedInOrder {
    static constexpr int words = ORDERED_WORDS, kept = ORDERED_KEPT;
    static constexpr int ahead = 1; /* the row that step p reads first is that of p+1 */
    static constexpr bool periodic = false;
    using Row = OrderedRow<Number, words>;
    Number at, next, rhs;

    __device__ __forceinline__ void begin(const OrderedSystem<Number> &s)
    {
        const PivotRow<Number> row = s.at(0, false);

        at = row.diag;
        next = row.upper;
        rhs = row.rhs;
    }
    __device__ __forceinline__ void keep(Number *to) const
    {
        to[0] = at;
        to[1] = next;
        to[2] = rhs;
    }
    __device__ __forceinline__ void restore(const Number *from)
    {
        at = from[0];
        next = from[1];
        rhs = from[2];
    }
    static __device__ __forceinline__ int row_of(int position, int)
    {
        return position;
    }
    /* Eliminate a column; `below` is the next row, zero in the last step. The pivot row is
     * written to `row`. Returns the pivot. */
    template <bool checked>
    __device__ __forceinline__ Number eliminate(const PivotRow<Number> &below, Row &row)
    {
        const bool take = size_of(below.lower) > size_of(at);
        const Number pivot = take ? below.lower : at;
        const Number second = take ? below.diag : next;
        const Number value = take ? below.rhs : rhs;

        row = {{pivot, second, take ? below.upper : Number(0), value}};
        const Number m = multiplier<checked>(take ? at : below.lower, pivot);
        at = less_product(take ? next : below.diag, m, second);
        next = take ? -m * below.upper : below.upper;
        rhs = less_product(take ? rhs : below.rhs, m, value);
        return pivot;
    }
    /* Eliminate the columns begin .. end-1 of n; `row` is the row of the first one. */
    template <bool checked>
    __device__ __forceinline__ OrderedPivots eliminate_all(Row *row, int begin, int end,
                                                           int)
    {
        PivotRow<Number> next_row = {row->at[0], row->at[1], row->at[2], row->at[3]};
        OrderedPivots pivots;

#pragma unroll(checked ? 1 : 2)
        for (int p = begin; p < end; p++) {
            const PivotRow<Number> below = next_row;
            const Row &behind = row[p < end - 1 ? 1 : 0];

            next_row = {behind.at[0], behind.at[1], behind.at[2], behind.at[3]};
            pivots.add<checked>(eliminate<checked>(below, *row++), p);
        }
        return pivots;
    }
    /* The right-hand side of a pivot row minus its products with the unknowns x[0], ... of
     * the next columns. */
    static __device__ __forceinline__ Number remainder(const Row &row,
                                                       const Number (&x)[4])
    {
        return less_product(less_product(row.at[3], row.at[2], x[1]), row.at[1], x[0]);
    }
    static __device__ __forceinline__ Number pivot_of(const Row &row)
    {
        return row.at[0];
    }
};

/* The folded order of a periodic system. A row in shared memory begins with the entries
 * of the positions p-2, p and p+2. */
template <typename Number> struct OrderedFolded {
    static constexpr int words = ORDERED_FOLDED_WORDS, kept = ORDERED_FOLDED_KEPT;
    static constexpr int ahead = 2;
    static constexpr bool periodic = true;
    using Row = OrderedRow<Number, words>;
    FoldedRows<Number> rows;

    static __device__ __forceinline__ int position_of(int row, int n)
    {
        return row <= n - 1 - row ? 2 * row : 2 * (n - 1 - row) + 1;
    }
    static __device__ __forceinline__ int row_of(int position, int n)
    {
        return position % 2 == 0 ? position / 2 : n - 1 - position / 2;
    }
    /* The row of a position: entries in the columns position-2 .. position+2. Rows are not
     * scaled: if their sizes are very different, scaling would make the errors of a small
     * row large relative to it. */
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
    __device__ __forceinline__ void keep(Number *to) const
    {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            to[w] = rows.a.at[w];
            to[w + 5] = rows.b.at[w];
        }
        to[4] = rows.a.rhs;
        to[9] = rows.b.rhs;
    }
    __device__ __forceinline__ void restore(const Number *from)
    {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            rows.a.at[w] = from[w];
            rows.b.at[w] = from[w + 5];
        }
        rows.a.rhs = from[4];
        rows.b.rhs = from[9];
    }
    /* Eliminate a column; c and c_rhs are the row of the position after the next one. */
    template <bool checked>
    __device__ __forceinline__ Number eliminate(Number (&c)[5], Number c_rhs, Row &row)
    {
        const FoldedPivot<Number> pivot = folded_step<checked>(rows, c, c_rhs);

        row = {{pivot.right[0], pivot.right[1], pivot.right[2], pivot.right[3],
                pivot.pivot, pivot.rhs}};
        return pivot.pivot;
    }
    template <bool checked>
    __device__ __forceinline__ OrderedPivots eliminate_all(Row *row, int begin, int end,
                                                           int n)
    {
        const int inner = min(end, n - 4); /* up to there p+4 is a position */
        PivotRow<Number> next_row = {row->at[0], row->at[1], row->at[2], row->at[3]};
        OrderedPivots pivots;
        int p = begin;

#pragma unroll 1
        for (; p < inner; p++) {
            Number c[5] = {next_row.lower, Number(0), next_row.diag, Number(0),
                           next_row.upper};
            const Number c_rhs = next_row.rhs;
            const Row &behind = row[p < end - 1 ? 1 : 0];

            next_row = {behind.at[0], behind.at[1], behind.at[2], behind.at[3]};
            pivots.add<checked>(eliminate<checked>(c, c_rhs, *row++), p);
        }
#pragma unroll 1
        for (; p < end; p++) {
            Number c[5] = {};
            Number c_rhs = Number(0);

            if (p + 2 < n) {
                const bool even = p % 2 == 0;

                spread({row->at[even ? 0 : 2], row->at[1], row->at[even ? 2 : 0],
                        row->at[3]},
                       p + 2, n, c, c_rhs);
            }
            pivots.add<checked>(eliminate<checked>(c, c_rhs, *row++), p);
        }
        return pivots;
    }
    static __device__ __forceinline__ Number remainder(const Row &row,
                                                       const Number (&x)[4])
    {
        Number value = row.at[5];

#pragma unroll
        for (int w = 3; w >= 0; w--) {
            value = less_product(value, row.at[w], x[w]);
        }
        return value;
    }
    static __device__ __forceinline__ Number pivot_of(const Row &row)
    {
        return row.at[4];
    }
};

/* System g of a warp; all lanes call this function. */
template <typename Number>
__device__ __forceinline__ OrderedSystem<Number>
ordered_system(const OrderedSystems<Number> &o, int g)
{
    return ordered_system(o.s, shuffle(all_lanes, o.j, g), shuffle(all_lanes, o.k, g));
}

/* The rows of system g. */
template <typename Order, typename Number>
__device__ __forceinline__ OrderedRow<Number, Order::words> *
ordered_rows(const OrderedPlace<Number> &place, int g)
{
    return reinterpret_cast<OrderedRow<Number, Order::words> *>(place.rows +
                                                                g * place.pitch);
}

/* Copy the rows that the positions begin .. end-1 read first to shared memory, zeros
 * where there is no row. All lanes call this function. */
template <typename Order, typename Number>
__device__ __forceinline__ void
ordered_fetch(const OrderedSystems<Number> &o, const OrderedPlace<Number> &place,
              int begin, int end)
{
    const int n = o.s.rows;

    __syncwarp(); /* the rows before these are read */
#pragma unroll 1
    for (int g = 0; g < o.count; g++) {
        const OrderedSystem<Number> s = ordered_system(o, g);
        Number *const rows = place.rows + g * place.pitch;

#pragma unroll 1
        for (int p = begin + o.lane; p < end; p += ordered_lanes) {
            Number *const to = rows + (p - begin) * Order::words;
            const int position = p + Order::ahead;

            if (position >= n) {
                to[0] = to[1] = to[2] = to[3] = Number(0);
                continue;
            }
            const int i = Order::row_of(position, n);
            const bool turned = Order::periodic && position % 2 != 0;

            copy_async<sizeof(Number)>(to + (turned ? 2 : 0), s.lower + i * s.lower_row);
            copy_async<sizeof(Number)>(to + 1, s.diag + i * s.diag_row);
            if (i < n - 1 || Order::periodic) {
                copy_async<sizeof(Number)>(to + (turned ? 0 : 2),
                                           s.upper + i * s.upper_row);
            }
            else {
                to[2] = Number(0); /* has no meaning and need not be there */
            }
            copy_async<sizeof(Number)>(to + 3, s.rhs + i * s.rhs_row);
        }
    }
    copies_done();
    __syncwarp();
}

/* Put one more x in front. */
template <typename Number>
__device__ __forceinline__ void
ordered_next(Number (&x)[4], Number value)
{
    x[3] = x[2];
    x[2] = x[1];
    x[1] = x[0];
    x[0] = value;
}

/* Substitute the pivot rows of `count` positions; `row` is the row after the last one. The
 * first word of a row becomes x of the position that is `ahead` after its own. x[0], ...
 * are the unknowns of the positions after these rows, and become those of the positions
 * from the first row on. */
template <typename Order, typename Number>
__device__ __forceinline__ void
ordered_substitute_any(OrderedRow<Number, Order::words> *row, int count, Number (&x)[4])
{
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const OrderedRow<Number, Order::words> own = *--row;

        row->at[0] = x[Order::ahead - 1];
        ordered_next(x, any_ratio(Order::remainder(own, x), Order::pivot_of(own)));
    }
}

/* The same of `most` rows at once. */
template <typename Order, int most, typename Number>
__device__ __forceinline__ void
ordered_substitute_most(OrderedRow<Number, Order::words> *row, Number (&x)[4])
{
    OrderedRow<Number, Order::words> own[most];
    Number inverse[most];
    bool moderate = true;

#pragma unroll
    for (int i = 0; i < most; i++) {
        own[i] = row[-1 - i];
    }
#pragma unroll
    for (int i = 0; i < most; i++) {
        inverse[i] = inverse_of(Order::pivot_of(own[i]));
        moderate = moderate & is_moderate(Order::pivot_of(own[i]));
    }
    if (__builtin_expect(moderate, true)) {
#pragma unroll
        for (int i = 0; i < most; i++) {
            row[-1 - i].at[0] = x[Order::ahead - 1];
            ordered_next(x, Order::remainder(own[i], x) * inverse[i]);
        }
    }
    else {
        ordered_substitute_any<Order>(row, most, x);
    }
}

template <typename Order, typename Number>
__device__ __forceinline__ void
ordered_substitute(OrderedRow<Number, Order::words> *row, int count, Number (&x)[4])
{
    constexpr int most = ordered_at_once<Number>(Order::words);

#pragma unroll 1
    for (; count >= most; count -= most) {
        ordered_substitute_most<Order, most>(row, x);
        row -= most;
    }
    ordered_substitute_any<Order>(row, count, x);
}

/* Store x of the positions begin + ahead .. end + ahead - 1. All lanes call this function. */
template <typename Order, typename Number>
__device__ __forceinline__ void
ordered_store(const OrderedSystems<Number> &o, const OrderedPlace<Number> &place,
              int begin, int end)
{
    const int n = o.s.rows, last = min(end, n - Order::ahead);

    __syncwarp(); /* x is written */
#pragma unroll 1
    for (int g = 0; g < o.count; g++) {
        const OrderedSystem<Number> s = ordered_system(o, g);
        const Number *const rows = place.rows + g * place.pitch;

#pragma unroll 1
        for (int p = begin + o.lane; p < last; p += ordered_lanes) {
            s.x[Order::row_of(p + Order::ahead, n) * s.x_row] =
                rows[(p - begin) * Order::words];
        }
    }
}

/* Eliminate the positions begin .. end-1, beginning with the carried rows that are kept. If
 * a pivot is zero, tiny, huge or NaN they are eliminated again, with a test of each pivot.
 * Returns the first position of a zero pivot, or -1. All lanes call this function. */
template <typename Order, typename Number>
__device__ __forceinline__ int
ordered_eliminate(const OrderedSystems<Number> &o, const OrderedPlace<Number> &place,
                  const Number *kept, Order &order, int begin, int end)
{
    const bool active = o.lane < o.count;
    OrderedRow<Number, Order::words> *const rows =
        ordered_rows<Order>(place, active ? o.lane : 0);
    OrderedPivots pivots;

    ordered_fetch<Order>(o, place, begin, end);
    if (active) {
        pivots = order.template eliminate_all<false>(rows, begin, end, o.s.rows);
    }
    if (__any_sync(all_lanes, pivots.extreme)) {
        ordered_fetch<Order>(o, place, begin, end);
        if (active) {
            order.restore(kept);
            pivots = order.template eliminate_all<true>(rows, begin, end, o.s.rows);
        }
    }
    return pivots.zero;
}

/* Solve the systems of a warp. Returns the info of the calling lane's. */
template <typename Order, typename Number>
__device__ __forceinline__ int
ordered_solve(const OrderedSystems<Number> &o, const OrderedPlace<Number> &place)
{
    const bool active = o.lane < o.count;
    const int n = o.s.rows, length = place.length, segments = (n + length - 1) / length;
    OrderedRow<Number, Order::words> *const rows =
        ordered_rows<Order>(place, active ? o.lane : 0);
    Order order = {};
    int info = 0;
    /* x of the last positions that were substituted. x of the first positions of a segment
     * is stored with the segment before it, which still has to read their rows. */
    Number x[4] = {};

    if (active) {
        order.begin(ordered_system(o.s, o.j, o.k));
    }
    /* Forward to the last segment, and back. */
#pragma unroll 1
    for (int turn = 0; turn < 2 * segments - 1; turn++) {
        const int g = turn < segments ? turn : 2 * (segments - 1) - turn;
        const int begin = g * length, end = min(begin + length, n);
        const bool forward = turn < segments;

        Number *const kept = place.kept + g * Order::kept;

        if (active && forward) {
            order.keep(kept);
        }
        if (active && !forward) {
            order.restore(kept);
        }
        const int zero = ordered_eliminate(o, place, kept, order, begin, end);
        if (active) {
            if (forward && info == 0 && zero >= 0) {
                info = 1 + Order::row_of(zero, n);
            }
            if (turn >= segments - 1) {
                ordered_substitute<Order>(rows + (end - begin), end - begin, x);
            }
        }
        if (turn >= segments - 1) {
            ordered_store<Order>(o, place, begin, end);
        }
    }
    if (active) {
        const OrderedSystem<Number> own = ordered_system(o.s, o.j, o.k);

        own.x[Order::row_of(0, n) * own.x_row] = x[0];
        if (Order::ahead == 2 && n > 1) {
            own.x[Order::row_of(1, n) * own.x_row] = x[1];
        }
    }
    return info;
}

/* Solve systems (j, k) of the batch, one for each of the first `count` lanes of a warp;
 * all lanes call this function. Returns the info of the lane's system. */
template <typename Number>
__device__ __forceinline__ int
solve_in_order(const OrderedSystems<Number> &o, const OrderedPlace<Number> &place)
{
    return o.s.periodic ? ordered_solve<OrderedFolded<Number>>(o, place)
                        : ordered_solve<OrderedInOrder<Number>>(o, place);
}

} // namespace pysolvers::pivoted

#endif
