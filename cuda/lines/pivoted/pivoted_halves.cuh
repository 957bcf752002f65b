/* pivoted_halves.cuh - systems along a strided axis, solved in order by two threads each.
 *
 * One thread eliminates the columns of the upper half of a system from its first row, another
 * one those of the lower half from its last row, with the pivots of pivoted_ordered.cuh. Each
 * carries one row to the middle, and two equations in the two middle unknowns remain. This is
 * Gaussian elimination with partial pivoting for another order of the columns: the rows that
 * contain a column of one half lie in this half, except for the two middle ones. Entries grow
 * to at most twice the largest one of the matrix, and no system is doubtful.
 *
 * The lanes of a warp have neighbouring systems, and a block has two warps, the halves of the
 * same systems. Rows are loaded to registers, or to a ring in shared memory (half_ring.cuh), some
 * rows before they are used. Pivot rows, divided by their pivots, are kept in shared memory, 3
 * words a row: 5 words per unknown if all of them fit. Otherwise the last rows of each half are
 * kept, and of those before them the carried row at the begin of every segment; then segment
 * after segment is read and eliminated again, and substituted: at most 9 words. 13 operations
 * and one reciprocal per elimination of an unknown, 29 operations with rests. x may be rhs: x of
 * the first row of a segment is stored when the segment before it, which ends with this row, has
 * been read.
 *
 * The quotients that are kept also eliminate the carried row: the kept rows then differ from
 * those of the matrix by one rounding each, and these do not add up. The roundings of the
 * carried row add up if it is exchanged with row after row, and where the solution neither
 * grows nor decays from row to row, its entries hardly change, so that all of them are the
 * same. In systems of more than PIVOT_NO_RESTS rows the carried row therefore has rests: the
 * rounding errors of its two entries, and what follows from them for all of its numbers
 * (compensated summation, Ogita, Rump and Oishi 2005), added after every group of rows that are
 * loaded in advance. The largest backward errors of 2500 float32 systems whose characteristic
 * polynomial has a root 1 or -1, in parts of what the tests allow (10 times that of LAPACK or
 * 20 eps), computed in this order on a CPU: 0.23 with 512 rows (1.8 without rests), 0.41 with
 * 3001 rows (8.3). The other families of the tests have at most 0.27 with 3001 rows (5.9) and 0.54
 * with 4096; with 8000 rows 3.2, because the substitution, too, repeats one error.
 *
 * Parts of the time of chunks (pivoted_tile.cuh) in float32 and float64, H200: 16 to 100 rows
 * 0.55 to 0.8 and 0.62 to 0.76, 200 rows 0.70 and 0.80, 777 rows 0.75 and 0.70, 3001 rows 0.65
 * and 0.61.
 *
 * A system with a pivot that is tiny, huge or NaN is not stored, and is solved again in order
 * by pivot_solve_again(), which divides and reports zero pivots.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_HALVES_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_HALVES_CUH

#include "lines/join/half_ring.cuh"
#include "lines/pivoted/pivoted.cuh"

namespace pysolvers::pivoted {

using namespace join;

/* Words of a pivot row, and of a carried row. */
enum { PIVOT_HALF_WORDS = 3 };

/* Most rows of systems whose carried rows have no rests. H200, time with rests: 1.05 and 1.02 with
 * 64 rows in float32 and float64, 1.02 with 100 rows. */
enum { PIVOT_NO_RESTS = 128 };

/* The carried row of a half: the entries in its two columns and the right-hand side, and the
 * rests that are to be added to them, if they are kept. */
template <typename Number, bool has_rests> struct PivotCarried {
    Number at, next, rhs;
    Number at_rest = Number(0), next_rest = Number(0), rhs_rest = Number(0);

    /* Eliminate a column. The pivot row divided by its pivot is written to `row`: the entries in
     * the two columns after its own, and the right-hand side. Returns the pivot. */
    __device__ __forceinline__ Number eliminate(const HalfRow<Number> &below,
                                                Number (&row)[PIVOT_HALF_WORDS])
    {
        const Number zero = Number(0);
        const bool take = size_of(below.lower) > size_of(at);
        const Number pivot = take ? below.lower : at;
        const Number factor = take ? at : below.lower;
        const Number same = take ? next : below.diag, last = take ? zero : below.upper;
        const Number inverse = inverse_of(pivot);

        row[0] = (take ? below.diag : next) * inverse;
        row[1] = (take ? below.upper : zero) * inverse;
        row[2] = (take ? below.rhs : rhs) * inverse;

        const Number new_at = less_product(same, factor, row[0]);
        const Number new_next = less_product(last, factor, row[1]);
        if (has_rests) {
            /* same - factor row[0] - new_at, as in the sum of two numbers by Knuth */
            const Number change = new_at - same;
            const Number error =
                (same - (new_at - change)) + less_product(-change, factor, row[0]);
            const Number rest = take ? at_rest : zero;

            at_rest = less_product(error + (take ? next_rest : zero), rest, row[0]);
            next_rest =
                less_product(less_product(last - new_next, factor, row[1]), rest, row[1]);
            rhs_rest = less_product(take ? rhs_rest : zero, rest, row[2]);
        }
        at = new_at;
        next = new_next;
        rhs = less_product(take ? rhs : below.rhs, factor, row[2]);
        return pivot;
    }
    /* Add the rests; what rounding leaves of them remains. */
    __device__ __forceinline__ void add_rests()
    {
        if (has_rests) {
            add_rest(at, at_rest);
            add_rest(next, next_rest);
            add_rest(rhs, rhs_rest);
        }
    }
    static __device__ __forceinline__ void add_rest(Number &value, Number &rest)
    {
        const Number sum = value + rest;

        rest -= sum - value;
        value = sum;
    }
    /* Write the three numbers, without what remains of the rests, to `to`, `to + plane`, ... */
    __device__ __forceinline__ void store(Number *to, int64_t plane)
    {
        at_rest = next_rest = rhs_rest = Number(0);
        to[0] = at;
        to[plane] = next;
        to[2 * plane] = rhs;
    }
};

/* Eliminate `columns` columns of a half. */
template <bool keeps, typename Rows, typename Number, bool has_rests>
__device__ __forceinline__ void
pivot_half(Rows &rows, PivotCarried<Number, has_rests> &carried, OrderedPivots &pivots,
           int columns, Number *kept)
{
    const auto eliminate = [&](const HalfRow<Number> &below, Number *to) {
        Number row[PIVOT_HALF_WORDS];

        pivots.add<false>(carried.eliminate(below, row), 0);
        if (keeps) {
#pragma unroll
            for (int w = 0; w < PIVOT_HALF_WORDS; w++) {
                to[w * HALF_SYSTEMS] = row[w];
            }
        }
    };

    eliminate_half<PIVOT_HALF_WORDS>(rows, columns, kept, eliminate,
                                     [&] { carried.add_rests(); });
    carried.add_rests();
}

/* The carried rows of both halves are solved by the threads of the lower one. `near` becomes
 * the middle unknown of the thread's half and `far` that of the other one. Returns whether a
 * pivot of the system is not moderate. All threads of the block call this function. */
template <typename Number, bool has_rests>
__device__ __forceinline__ bool
join_halves(Number *shared, bool from_last,
            const PivotCarried<Number, has_rests> &carried, OrderedPivots pivots,
            Number &near, Number &far)
{
    if (!from_last) {
        shared[0] = pivots.extreme ? Number(NAN) : carried.at;
        shared[HALF_SYSTEMS] = carried.next;
        shared[2 * HALF_SYSTEMS] = carried.rhs;
    }
    __syncthreads(); /* the carried row is written */
    if (from_last) {
        OrderedInOrder<Number> upper = {shared[0], shared[HALF_SYSTEMS],
                                        shared[2 * HALF_SYSTEMS]};
        OrderedRow<Number, ORDERED_WORDS> row;
        const Number pivot = upper.template eliminate<false>(
            {carried.next, carried.at, Number(0), carried.rhs}, row);

        pivots.add<false>(pivot, 0);
        pivots.add<false>(upper.at, 0);
        near = upper.rhs * inverse_of(upper.at);
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

/* Grid: one block for each HALF_SYSTEMS systems. Block: two warps. Shared memory: the row in
 * the middle, the kept rows of both halves, and their rings. */
template <typename Number, bool has_rests, bool in_ring>
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
    Number *const stored = a.carried + int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t plane = a.tiles * HALF_THREADS;
    PivotCarried<Number, has_rests> carried = {*s.diag, *s.upper, *s.rhs};
    std::conditional_t<in_ring, HalfRing<Number>, HalfRows<Number>> rows;
    OrderedPivots pivots;

    if constexpr (in_ring) {
        const auto half_of = [&](int number) {
            const int64_t other = system - lane + number;
            const PivotIndex one = pivot_index(a, other < a.systems ? other : 0);

            return HalfSystem<Number>(a.s, one.j, one.k, from_last);
        };
        rows.set(half_of, middle - lane + size * (1 + 2 * a.kept_rows) +
                              (from_last ? HalfRing<Number>::words : 0));
    }
    rows.begin(s, 1, columns);
    for (int g = 0; g < segments; g++) {
        carried.store(stored + g * (words * plane), plane);
        pivot_half<false>(rows, carried, pivots, begin_of(g + 1) - begin_of(g), kept);
    }
    Number near = Number(0), far = Number(0);
    bool refused = false, stores = false;

#pragma unroll 1
    for (int g = segments;; g--) {
        const int begin = begin_of(g);
        const int end = g == segments ? columns : begin_of(g + 1);

        if (g < segments) {
            const Number *const from = stored + g * (words * plane);

            carried = {from[0], from[plane], from[2 * plane]};
        }
        pivot_half<true>(rows, carried, pivots, end - begin, kept);
        if (g == segments) {
            refused =
                join_halves(middle, from_last, carried, pivots, near, far) && active;
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
