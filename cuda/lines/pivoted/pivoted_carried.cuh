/* pivoted_carried.cuh - elimination in order from both ends of a system, with row exchanges.
 *
 * One lane eliminates the columns of the upper half of a system from its first row, another one
 * those of the lower half from its last row, with the pivots of pivoted_ordered.cuh. Each carries
 * one row to the middle, and two equations in the two middle unknowns remain. This is Gaussian
 * elimination with partial pivoting for another order of the columns: the rows that contain a
 * column of one half lie in this half, except for the two middle ones. Entries grow to at most
 * twice the largest one of the matrix, and no system is doubtful. 13 operations and one reciprocal
 * per elimination of an unknown, 29 operations with rests.
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
 * Used where rows are side by side (pivoted_halves.cuh) and where they are contiguous
 * (pivoted_row_halves.cuh).
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_CARRIED_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_CARRIED_CUH

#include "lines/join/halves.cuh"
#include "lines/pivoted/pivoted_ordered.cuh"

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

/* The carried rows of both halves are solved by the threads of the lower one. `near` becomes
 * the middle unknown of the thread's half and `far` that of the other one. Returns whether a
 * pivot of the system is not moderate. All threads of both halves call this function; sync() is
 * their barrier. */
template <typename Number, bool has_rests, typename Sync>
__device__ __forceinline__ bool
join_halves(Number *shared, bool from_last,
            const PivotCarried<Number, has_rests> &carried, OrderedPivots pivots,
            Number &near, Number &far, const Sync &sync)
{
    if (!from_last) {
        shared[0] = pivots.extreme ? Number(NAN) : carried.at;
        shared[HALF_SYSTEMS] = carried.next;
        shared[2 * HALF_SYSTEMS] = carried.rhs;
    }
    sync(); /* the carried row is written */
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
    sync(); /* the middle unknowns are written */
    if (!from_last) {
        near = shared[0];
        far = shared[HALF_SYSTEMS];
        return shared[2 * HALF_SYSTEMS] != Number(0);
    }
    return pivots.extreme;
}

} // namespace pysolvers::pivoted

#endif
