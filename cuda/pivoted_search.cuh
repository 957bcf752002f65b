/* pivoted_search.cuh - which pivot of a singular system is bad.
 *
 * Elimination in the natural order of the columns, keeping nothing, by one thread: the
 * chunks and the tree eliminate in another order, and the row they fail at says little.
 * Of a periodic system the bottom row is a third candidate, with far entries in the
 * columns rows-2 and rows-1.
 */
#ifndef PS_CUDA_PIVOTED_SEARCH_CUH
#define PS_CUDA_PIVOTED_SEARCH_CUH

#include "operand.cuh"
#include "pivoted_rows.cuh"

/* A row on its way down: entries in the column and the two behind it, and far ones. */
template <typename Number> struct SearchRow {
    Number a0, a1, a2, far2, far1;
};

template <typename Number>
__device__ __forceinline__ void
exchange_larger(SearchRow<Number> &a, SearchRow<Number> &b)
{
    if (size_of(b.a0) > size_of(a.a0)) {
        const SearchRow<Number> kept = a;
        a = b;
        b = kept;
    }
}

/* `row` without the column of the pivot, one column on. */
template <typename Number>
__device__ __forceinline__ SearchRow<Number>
eliminated(const SearchRow<Number> &row, const SearchRow<Number> &pivot)
{
    const Number m = quotient(row.a0, pivot.a0);

    return {row.a1 - m * pivot.a1, row.a2 - m * pivot.a2, Number(0),
            row.far2 - m * pivot.far2, row.far1 - m * pivot.far1};
}

/* Row i of a matrix of n rows, as elimination meets it; the bottom row of a periodic
 * matrix, i = n-1, begins in column n-2. */
template <typename Number>
__device__ __forceinline__ SearchRow<Number>
search_row(const Number *lower, const Number *diag, const Number *upper,
           const Systems<Number> &s, int i)
{
    const Number zero = Number(0), d = diag[i * s.diag.row];
    const int last = s.rows - 1;
    const Number l = i > 0 || s.periodic ? lower[i * s.lower.row] : zero;
    const Number u = i < last || s.periodic ? upper[i * s.upper.row] : zero;

    if (!s.periodic || (i > 0 && i < last - 2)) {
        return {l, d, u, zero, zero};
    }
    if (i == 0) {
        return last == 0   ? SearchRow<Number>{zero, zero, zero, zero, d + l + u}
               : last == 1 ? SearchRow<Number>{zero, zero, zero, d, u + l}
               : last == 2 ? SearchRow<Number>{zero, d, zero, u, l}
                           : SearchRow<Number>{zero, d, u, zero, l};
    }
    if (i < last) {
        return i < last - 1 ? SearchRow<Number>{l, d, zero, u, zero}
                            : SearchRow<Number>{l, zero, zero, d, u};
    }
    return last == 1 ? SearchRow<Number>{zero, zero, zero, l + u, d}
                     : SearchRow<Number>{u, zero, zero, l, d};
}

/* 1 + the row of the first bad pivot of system (j, k), or `otherwise` if there is none in
 * this order of the columns. */
template <typename Number>
__device__ __noinline__ int
first_bad_pivot(const Systems<Number> &s, int64_t j, int64_t k, int otherwise)
{
    const Number *const lower = s.lower.system(j, k), *const diag = s.diag.system(j, k),
                        *const upper = s.upper.system(j, k);
    const int last = s.rows - 1, columns = s.periodic ? last - 1 : last;
    SearchRow<Number> carry = search_row(lower, diag, upper, s, 0);
    SearchRow<Number> bottom = {};

    if (s.periodic) {
        bottom = search_row(lower, diag, upper, s, last);
        if (last > 1) {
            carry = {carry.a1, carry.a2, Number(0), carry.far2, carry.far1};
        }
    }
    else {
        carry = {carry.a1, carry.a2, Number(0), Number(0), Number(0)};
    }
    for (int i = 1; i <= columns; i++) {
        SearchRow<Number> next = search_row(lower, diag, upper, s, i);

        exchange_larger(carry, next);
        if (s.periodic) {
            exchange_larger(carry, bottom);
        }
        if (is_bad_pivot(carry.a0)) {
            return i;
        }
        if (s.periodic) {
            bottom = eliminated(bottom, carry);
        }
        carry = eliminated(next, carry);
    }
    if (!s.periodic) {
        return is_bad_pivot(carry.a0) ? s.rows : otherwise;
    }
    if (last == 0) {
        return is_bad_pivot(carry.far1) ? 1 : otherwise;
    }
    if (size_of(bottom.far2) > size_of(carry.far2)) {
        const SearchRow<Number> kept = carry;
        carry = bottom;
        bottom = kept;
    }
    if (is_bad_pivot(carry.far2)) {
        return last;
    }
    const Number m = quotient(bottom.far2, carry.far2);
    return is_bad_pivot(bottom.far1 - m * carry.far1) ? s.rows : otherwise;
}

#endif
