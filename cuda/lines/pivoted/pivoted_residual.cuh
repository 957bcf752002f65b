/* pivoted_residual.cuh - the residual of doubtful systems, before x is stored.
 *
 * The growth by which a system is doubtful is an upper bound of its backward error only;
 * most doubtful systems have a good solution. The residual of a doubtful system is
 * therefore computed from x in shared memory and from the rows in global memory:
 *
 *     r_i = b_i - l_i x_{i-1} - d_i x_i - u_i x_{i+1}
 *     w_i = |b_i| + |l_i x_{i-1}| + |d_i x_i| + |u_i x_{i+1}|
 *
 * A row is satisfied if |r_i| <= 16 eps w_i, or 12 eps w_i of complex numbers. If all rows
 * are, x is the exact solution of a system whose entries and right-hand sides differ by
 * relative errors of about 16 eps at most (Oettli and Prager 1964). In random systems some
 * rows have smaller terms than the rows around them, and elimination in order has residuals
 * as large there. A row is therefore satisfied as well if |r_i| is at most 16 eps times the
 * largest of w_{i-8} .. w_{i+8}, in three passes of those in the same tile, and at most 128
 * eps w_i, or n / 128 eps w_i if n is 16384 or more. A system is solved if all its rows are
 * satisfied; only the other systems are solved a second time. 4 words and 16 operations per
 * unknown, for tiles with doubtful systems.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_RESIDUAL_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_RESIDUAL_CUH

#include "lines/pivoted/pivoted_copies.cuh"

namespace pysolvers::pivoted {

/* Rows on either side whose terms count for a row. */
enum { PIVOT_REACH = 8 };

/* The residual of a row, and the sum of the magnitudes of its terms. */
template <typename Number> struct PivotResidual {
    real_of<Number> missed, all;
};

template <typename Number>
__device__ __forceinline__ PivotResidual<Number>
residual_of(const PivotRow<Number> &row, Number before, Number x, Number behind)
{
    Number missed = less_product(row.rhs, row.lower, before);

    missed = less_product(missed, row.upper, behind);
    missed = less_product(missed, row.diag, x);
    return {size_of(missed), size_of(row.rhs) + size_of(row.lower * before) +
                                 size_of(row.diag * x) + size_of(row.upper * behind)};
}

/* The residual of row `row` of a system of a tile: the row from global memory, x from shared
 * memory. Not inlined, to save registers of the kernel. */
template <typename Number>
__device__ __noinline__ PivotResidual<Number>
pivot_residual(const PivotPlan<Number> &a, const PivotSpan &span, unsigned char *memory,
               int system, int row)
{
    const PivotShared<Number> m(a, memory);
    const int64_t i = span.begin + row;
    const PivotIndex at = pivot_index(a, span.system + system);
    const int shift =
        a.copies == PIVOT_BULK ? m.shift[a.flat ? 0 : system].of[PIVOT_RHS] : 0;
    const Number *const x = m.rows + PIVOT_RHS * a.plane + system * a.pitch + shift + row;
    const PivotTree<Number> t = {m.tree, a.tile_chunks, 0, m.state};
    const auto &around = t.template at<PivotAround<Number>>(system * t.stride);
    const bool one = a.s.rows == 1;
    Number before = Number(0), behind = Number(0);

    if (i > 0 || a.s.periodic) {
        before = one ? x[0] : row > 0 ? x[-1] : around.left;
    }
    if (i < a.s.rows - 1 || a.s.periodic) {
        behind = one ? x[0] : row < span.rows - 1 ? x[1] : around.right;
    }
    return residual_of(pivot_row_in_memory(a, at, i), before, x[0], behind);
}

/* Whether x satisfies a row of a system of a tile: not if a term is infinite or NaN. */
template <typename Number>
__device__ __forceinline__ bool
pivot_is_satisfied(const PivotPlan<Number> &a, PivotPass pass, const PivotSpan &span,
                   unsigned char *memory, int system, int row)
{
    using Real = real_of<Number>;
    constexpr Real most = (number_traits<Number>::is_complex ? 12 : 16) * eps_of<Number>;
    const Real most_of_row =
        eps_of<Number> * fmax(Real(128), static_cast<Real>(a.s.rows) / 128);
    const int reach = pass == PIVOT_CHECK ? span.rows : PIVOT_REACH;
    const PivotResidual<Number> own = pivot_residual(a, span, memory, system, row);
    bool satisfied = own.missed <= most * own.all;

    if (!(own.all - own.all == 0) || !(own.missed <= most_of_row * own.all)) {
        return false;
    }
    /* The rows before it, the nearest one first, and those after it. */
#pragma unroll 1
    for (int k = 2; !satisfied && k <= 2 * reach + 1; k++) {
        const int other = k % 2 == 0 ? row - k / 2 : row + k / 2;

        if (other >= 0 && other < min(span.rows, a.s.rows - span.begin)) {
            const auto all = pivot_residual(a, span, memory, system, other).all;

            satisfied = own.missed <= most * all && all - all == 0;
        }
    }
    return satisfied;
}

/* Whether `yes` in any block of the cluster; all threads of the cluster call this function. */
__device__ __forceinline__ bool
pivot_any_block(bool yes, int blocks)
{
    __shared__ int found;
    int any = 0;

    if (threadIdx.x == 0) {
        found = yes ? 1 : 0;
    }
    cluster_sync(); /* written by all */
    if (static_cast<int>(threadIdx.x) < blocks) {
        any = in_block(found, threadIdx.x);
    }
    const bool result = __syncthreads_or(any) != 0;
    cluster_sync(); /* read by all */
    return result;
}

/* Check the doubtful systems of a tile: the state becomes PIVOT_FINE if all rows are
 * satisfied, otherwise PIVOT_MISSED. `memory` is the shared memory of the block, `system`
 * the first system of the tile. In PIVOT_CHECK, PIVOT_MISSED is stored in global memory for
 * the pass PIVOT_FINISH. Returns whether there are such systems; in PIVOT_CHECK false. All
 * threads of the block call this function. It is rarely called and not inlined, so that the
 * kernel needs fewer registers. */
template <bool whole, typename Number>
__device__ __noinline__ bool
pivot_judge(const PivotPlan<Number> &a, unsigned char *memory, int64_t system,
            int segment)
{
    const PivotShared<Number> m(a, memory);
    const PivotPass pass = whole ? PIVOT_SOLVE : a.pass;
    const PivotSpan span =
        pivot_span<whole>(a, system / a.tile_systems * a.segments + segment);
    bool missed = false;

    if (pass != PIVOT_FINISH) {
#pragma unroll 1
        for (int i = 0; i < span.systems; i++) {
            const int rows = min(span.rows, a.s.rows - span.begin);
            bool misses = false;

            if (m.state[i] != PIVOT_DOUBTFUL || !pivot_marked(a, span.system + i)) {
                continue;
            }
#pragma unroll 1
            for (int row = threadIdx.x; !misses && row < rows; row += blockDim.x) {
                misses = !pivot_is_satisfied(a, pass, span, memory, i, row);
            }
            misses = __syncthreads_or(misses) != 0; /* the state is read by all */
            if (misses && threadIdx.x == 0) {
                m.state[i] = PIVOT_MISSED;
            }
        }
        bulk_fence();
        __syncthreads(); /* states are written */
    }
    if (pass == PIVOT_EXCHANGE) {
#pragma unroll 1
        for (int i = 0; i < span.systems; i++) {
            const bool any = pivot_any_block(m.state[i] == PIVOT_MISSED, a.segments);

            if (any && threadIdx.x == 0) {
                m.state[i] = PIVOT_MISSED;
            }
        }
        __syncthreads(); /* states are written */
    }
    for (int i = threadIdx.x; i < span.systems; i += blockDim.x) {
        const int64_t system = span.system + i;

        if (pass == PIVOT_CHECK && m.state[i] == PIVOT_MISSED) {
            a.state[system] = PIVOT_MISSED;
        }
        const bool bad = pass == PIVOT_FINISH  ? a.state[system] == PIVOT_MISSED
                         : pass == PIVOT_CHECK ? false
                                               : m.state[i] == PIVOT_MISSED;
        m.state[i] = bad ? PIVOT_MISSED : PIVOT_FINE;
        missed = missed || bad;
    }
    return __syncthreads_or(missed) != 0;
}

} // namespace pysolvers::pivoted

#endif
