/* pivoted_halves.cuh - systems along a strided axis, solved in order by two threads each.
 *
 * One thread eliminates the columns of the upper half of a system from its first row, another
 * one those of the lower half from its last row, with the steps of pivoted_ordered.cuh. Each
 * carries one row to the middle, and two equations in the two middle unknowns remain. This is
 * Gaussian elimination with partial pivoting for another order of the columns: the rows that
 * contain a column of one half lie in this half, except for the two middle ones. Entries grow
 * to at most twice the largest one of the matrix, and no system is doubtful.
 *
 * The lanes of a warp have neighbouring systems, and a block has two warps, the halves of the
 * same systems. Rows are loaded to registers some rows before they are used. Pivot rows,
 * divided by their pivots, are kept in shared memory, 3 words a row: 5 words per unknown if
 * all of them fit. Otherwise the last rows of each half are kept, and of those before them the
 * carried row at the begin of every segment; then segment after segment is read and eliminated
 * again, and substituted: at most 9 words. 14 operations and one reciprocal per elimination of
 * an unknown. x may be rhs: x of the first row of a segment is stored when the segment before
 * it, which ends with this row, has been read.
 *
 * Systems of 200 and 512 rows take 0.71 and 0.61 of the time of chunks (pivoted_tile.cuh) in
 * float32, 0.87 and 0.53 in float64, those of 16 to 100 rows 0.60 to 0.85 and 0.64 to 0.77 (H200).
 *
 * A system with a pivot that is tiny, huge or NaN is not stored, and is solved again in order
 * by pivot_solve_again(), which divides and reports zero pivots.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_HALVES_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_HALVES_CUH

#include "lines/join/halves.cuh"
#include "lines/pivoted/pivoted.cuh"

namespace pysolvers::pivoted {

using namespace join;

/* Words of a pivot row, and of a carried row. */
enum { PIVOT_HALF_WORDS = 3 };

/* Eliminate `columns` columns of a half. */
template <bool keeps, typename Number>
__device__ __forceinline__ void
pivot_half(HalfRows<Number> &rows, OrderedInOrder<Number> &order, OrderedPivots &pivots,
           int columns, Number *kept)
{
    const auto eliminate = [&](const HalfRow<Number> &below, Number *to) {
        OrderedRow<Number, ORDERED_WORDS> row;
        const Number pivot = order.template eliminate<false>(
            {below.lower, below.diag, below.upper, below.rhs}, row);

        pivots.add<false>(pivot, 0);
        if (keeps) {
            const Number inverse = inverse_of(pivot);

#pragma unroll
            for (int w = 0; w < PIVOT_HALF_WORDS; w++) {
                to[w * HALF_SYSTEMS] = row.at[w + 1] * inverse;
            }
        }
    };

    eliminate_half<PIVOT_HALF_WORDS>(rows, columns, kept, eliminate);
}

/* The carried rows of both halves are solved by the threads of the lower one. `near` becomes
 * the middle unknown of the thread's half and `far` that of the other one. Returns whether a
 * pivot of the system is not moderate. All threads of the block call this function. */
template <typename Number>
__device__ __forceinline__ bool
join_halves(Number *shared, bool from_last, const OrderedInOrder<Number> &order,
            OrderedPivots pivots, Number &near, Number &far)
{
    if (!from_last) {
        shared[0] = pivots.extreme ? Number(NAN) : order.at;
        shared[HALF_SYSTEMS] = order.next;
        shared[2 * HALF_SYSTEMS] = order.rhs;
    }
    __syncthreads(); /* the carried row is written */
    if (from_last) {
        OrderedInOrder<Number> carried = {shared[0], shared[HALF_SYSTEMS],
                                          shared[2 * HALF_SYSTEMS]};
        OrderedRow<Number, ORDERED_WORDS> row;
        const Number pivot = carried.template eliminate<false>(
            {order.next, order.at, Number(0), order.rhs}, row);

        pivots.add<false>(pivot, 0);
        pivots.add<false>(carried.at, 0);
        near = carried.rhs * inverse_of(carried.at);
        far = less_product(row.at[3], row.at[1], near) * inverse_of(pivot);
        shared[0] = far;
        shared[HALF_SYSTEMS] = near;
        shared[2 * HALF_SYSTEMS] = Number(pivots.extreme ? 1 : 0);
    }
    __syncthreads(); /* the middle unknowns are written */
    if (!from_last) {
        near = shared[0];
        far = shared[HALF_SYSTEMS];
        return shared[2 * HALF_SYSTEMS] != Number(0);
    }
    return pivots.extreme;
}

/* Grid: one block for each HALF_SYSTEMS systems. Block: two warps. */
template <typename Number>
__global__ void
__launch_bounds__(HALF_THREADS)
    pivoted_halves_kernel(const __grid_constant__ PivotPlan<Number> a)
{
    extern __shared__ __align__(128) unsigned char memory[];
    constexpr int words = PIVOT_HALF_WORDS, size = words * HALF_SYSTEMS,
                  count = HalfRows<Number>::count;
    const int lane = threadIdx.x % HALF_SYSTEMS;
    const bool from_last = threadIdx.x >= HALF_SYSTEMS;
    const int64_t system = int64_t(blockIdx.x) * HALF_SYSTEMS + lane;
    const bool active = system < a.systems;
    const PivotIndex at = pivot_index(a, active ? system : a.systems - 1);
    const HalfSystem<Number> s(a.s, at.j, at.k, from_last);
    Number *const middle = reinterpret_cast<Number *>(memory) + lane;
    Number *const kept = middle + size * (from_last ? 1 + a.kept_rows : 1);
    /* Columns before the last segment, and the columns of a segment before it. */
    const int columns = s.rows - 1;
    const int before =
        columns <= a.kept_rows ? 0 : (columns - a.kept_rows + count - 1) / count * count;
    const int length = a.kept_rows / count * count;
    const int segments = before == 0 ? 0 : (before + length - 1) / length;
    const auto begin_of = [&](int g) { return max(before - (segments - g) * length, 0); };
    Number *const carried = a.carried + int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t plane = a.tiles * HALF_THREADS;
    OrderedInOrder<Number> order = {*s.diag, *s.upper, *s.rhs};
    HalfRows<Number> rows;
    OrderedPivots pivots;

    rows.begin(s, 1, columns);
    for (int g = 0; g < segments; g++) {
        Number *const to = carried + g * (words * plane);

        to[0] = order.at;
        to[plane] = order.next;
        to[2 * plane] = order.rhs;
        pivot_half<false>(rows, order, pivots, begin_of(g + 1) - begin_of(g), kept);
    }
    Number near = Number(0), far = Number(0);
    bool refused = false, stores = false;

#pragma unroll 1
    for (int g = segments;; g--) {
        const int begin = begin_of(g);
        const int end = g == segments ? columns : begin_of(g + 1);

        if (g < segments) {
            const Number *const from = carried + g * (words * plane);

            order = {from[0], from[plane], from[2 * plane]};
        }
        pivot_half<true>(rows, order, pivots, end - begin, kept);
        if (g == segments) {
            refused = join_halves(middle, from_last, order, pivots, near, far) && active;
            stores = active && !refused;
        }
        if (stores) {
            s.x[end * s.x_row] = near;
        }
        if (g > 0) {
            rows.begin(s, begin_of(g - 1) + 1, begin - begin_of(g - 1));
        }
        substitute_half<words>(kept, end - begin, near, far, s.x + begin * s.x_row,
                               s.x_row, stores);
        if (g == 0) {
            break;
        }
    }
    if (stores) {
        *s.x = near;
    }
    if (active && from_last) {
        const int64_t number = pivot_number(a, system);

        a.again[number] = refused ? PS_SOLVED_AGAIN : 1;
        if (a.s.info != nullptr && !refused) {
            a.s.info[number] = 0;
        }
    }
    if (__syncthreads_or(refused)) {
        pivot_solve_again<true>(a);
    }
}

} // namespace pysolvers::pivoted

#endif
