/* pivoted_folded.cuh - elimination with partial pivoting from the middle row outwards.
 *
 * The rows of a chunk take the positions 0, 1, 2, ... in the order m, m+1, m-1, m+2, ...
 * (m the middle row), and the unknowns of these rows likewise. A row couples position p
 * with p-2, p and p+2 only, the first three also with their neighbours, so that the
 * rows of the inside are a band matrix with two sub- and two superdiagonals, and the last
 * four positions are the unknowns first, last, left and right. The pivot row of position
 * p is that with the largest entry among two carried rows, with entries in the columns p ..
 * p+3, and the row of position p+2, with entries in p, p+2 and p+4:
 *
 *     x_p = rhs_p - a_p x_{p+1} - b_p x_{p+2} - c_p x_{p+3}   (carried row)
 *     x_p = rhs_p - b_p x_{p+2} - c_p x_{p+4}                 (row of position p+2)
 *
 * so that a pivot row needs the four words of the row it replaces, and one bit. The two
 * remaining rows are the group of the chunk.
 *
 * Entries grow to at most 7 times the largest one of the matrix (Higham 2002, Theorem
 * 9.11, with bandwidth 2), whatever the matrix: no column takes part in more than four
 * steps. Elimination from the first row to the last has no such bound for the columns
 * left and first. 28 operations and 3 divisions per unknown.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_FOLDED_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_FOLDED_CUH

#include "lines/pivoted/pivoted_rows.cuh"

namespace pysolvers::pivoted {

/* A carried row in the columns p .. p+3. */
template <typename Number> struct FoldedRow {
    Number at[4], rhs;
};

template <typename Number> struct FoldedRows {
    FoldedRow<Number> a, b;
};

/* The pivot row of position p, with entries in the columns p+1 .. p+4. */
template <typename Number> struct FoldedPivot {
    Number pivot, right[4], rhs;
    bool fresh; /* whether it was the row of position p+2, not a carried row */
};

/* Eliminate column p from the carried rows and from row c, which has entries in the columns
 * p .. p+4. Unless `checked`, the pivot is moderate, or the rows are not used. */
template <bool checked = true, typename Number>
__device__ __forceinline__ FoldedPivot<Number>
folded_step(FoldedRows<Number> &rows, Number (&c)[5], Number c_rhs)
{
    FoldedRow<Number> &a = rows.a, &b = rows.b;
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

    const FoldedPivot<Number> row = {
        a.at[0], {a.at[1], a.at[2], a.at[3], last}, a.rhs, third};
    Number of_b = b.at[0], of_c = c[0];
    divide_by<checked>(row.pivot, of_b, of_c);
    const Number carried[4] = {b.at[1], b.at[2], b.at[3], Number(0)};
#pragma unroll
    for (int w = 0; w < 4; w++) {
        a.at[w] = less_product(carried[w], of_b, row.right[w]);
        b.at[w] = less_product(c[w + 1], of_c, row.right[w]);
    }
    a.rhs = less_product(b.rhs, of_b, row.rhs);
    b.rhs = less_product(c_rhs, of_c, row.rhs);
    return row;
}

/* The row, or the unknown, at a position of a chunk of `count` rows: -1 is the last row of
 * the chunk before it, `count` the first row of the chunk after it. */
__device__ __forceinline__ int
folded_place(int position, int count)
{
    const int middle = (count - 1) / 2;

    return position % 2 == 0 ? middle - position / 2 : middle + (position + 1) / 2;
}

/* A carried row of the last step, whose columns are those of the last four positions, in
 * the order left, first, last, right. */
template <typename Number>
__device__ __forceinline__ PivotEnds<Number>
folded_ends(const FoldedRow<Number> &row, int count)
{
    const bool odd = count % 2 != 0;

    return {row.at[odd ? 3 : 2], row.at[odd ? 1 : 0], row.at[odd ? 0 : 1],
            row.at[odd ? 2 : 3], row.rhs};
}

/* Eliminate the unknowns between the first and the last of the `count` > 2 rows of a
 * chunk; row k is row_at(k). The pivot rows are written to c, their bits to `fresh`.
 * Returns whether a pivot is lost. `scales` of the group is not set. */
template <typename Number, typename RowAt>
__device__ __forceinline__ bool
eliminate_folded(const PivotChunk<Number> &c, int count, const RowAt &row_at,
                 unsigned &fresh, PivotGroup<Number> &group)
{
    const PivotRow<Number> row0 = row_at(folded_place(0, count));
    const PivotRow<Number> row1 = row_at(folded_place(1, count));
    FoldedRows<Number> rows = {
        {{row0.diag, row0.upper, row0.lower, Number(0)}, row0.rhs},
        {{row1.lower, row1.diag, Number(0), row1.upper}, row1.rhs}};
    bool lost = false;

    fresh = 0;
#pragma unroll 1
    for (int p = 0; p < count - 2; p++) {
        const PivotRow<Number> row = row_at(folded_place(p + 2, count));
        const bool above = p % 2 == 0; /* whether the row precedes the middle row */
        Number next[5] = {above ? row.upper : row.lower, Number(0), row.diag, Number(0),
                          above ? row.lower : row.upper};
        const FoldedPivot<Number> pivot = folded_step(rows, next, row.rhs);

        lost = lost || is_lost_pivot(pivot.pivot);
        fresh |= (pivot.fresh ? 1u : 0u) << p;
        c.set(folded_place(p, count),
              {quotient(pivot.right[0], pivot.pivot),
               quotient(pivot.right[1], pivot.pivot),
               quotient(pivot.right[pivot.fresh ? 3 : 2], pivot.pivot),
               quotient(pivot.rhs, pivot.pivot)});
    }
    group.upper = folded_ends(rows.a, count);
    group.lower = folded_ends(rows.b, count);
    return lost;
}

/* As substitute_chunk(), for the pivot rows of eliminate_folded(). It is rarely called and
 * therefore not inlined; arguments by reference would have to be in memory. */
template <typename Number>
__device__ __noinline__ void
substitute_folded(PivotChunk<Number> c, PivotAround<Number> x, int count, unsigned fresh)
{
    const bool odd = count % 2 != 0;
    Number near = odd ? x.last : x.first, second = odd ? x.first : x.last;
    Number third = odd ? x.right : x.left, fourth = odd ? x.left : x.right;

    c.rhs[count - 1] = x.last;
#pragma unroll 1
    for (int p = count - 3; p >= 0; p--) {
        const int k = folded_place(p, count);
        const PivotRow<Number> row = c.at(k);
        Number value = less_product(row.rhs, row.upper, fresh >> p & 1 ? fourth : third);

        value = less_product(value, row.diag, second);
        value = less_product(value, row.lower, near);
        c.rhs[k] = value;
        fourth = third;
        third = second;
        second = near;
        near = value;
    }
    c.rhs[0] = corrected(c.at(0), x.left, x.first, c.rhs[1]);
}

} // namespace pysolvers::pivoted

#endif
