/* pivoted_residual.cuh - the residual of doubtful systems, before x is stored.
 *
 * The growth that makes a system doubtful bounds the backward error from above, and most
 * doubtful systems have a good solution nevertheless. So x of a doubtful system, in
 * shared memory, is put into the rows of the system, which are in memory still:
 *
 *     r_i = b_i - l_i x_{i-1} - d_i x_i - u_i x_{i+1}
 *     w_i = |b_i| + |l_i x_{i-1}| + |d_i x_i| + |u_i x_{i+1}|
 *
 * A row with |r_i| <= 16 eps w_i, 12 of complex numbers, is satisfied: x is the exact
 * solution of a system whose entries differ from those of the matrix and of the right
 * side by about 16 eps of themselves at most (Oettli and Prager 1964). Of random systems
 * some rows have smaller terms than the rows around them, and elimination in order
 * misses them as far. So a row is satisfied as well if |r_i| is at most 16 eps times
 * the largest of w_{i-8} .. w_{i+8}, of a system that takes three passes of the w of its
 * tile, and at most 128 eps w_i, from 16384 rows on n / 128 eps w_i. A system all of
 * whose rows are satisfied is solved.
 * Only the other systems are solved a second time. 4 words and 16 operations an unknown,
 * for tiles with doubtful systems.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_RESIDUAL_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_RESIDUAL_CUH

#include "lines/pivoted/pivoted_copies.cuh"

namespace pysolvers::pivoted {

/* Rows on either side whose terms count for a row. */
enum { PIVOT_REACH = 8 };

/* What a row misses, and the sum of the sizes of its terms. */
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

/* Row `row` of a system of a tile, from memory, with x from shared memory. Out of line:
 * the fewer registers the calls need, the more are left to the kernel. */
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

/* Whether x satisfies a row of a system of a tile. What overflows or is no number does
 * not. */
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
    /* The rows before it, the nearest first, and those behind it. */
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

/* Whether `yes` in any block of the cluster; all threads of all of them take part. */
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
        any = read_from_block(&found, threadIdx.x);
    }
    const bool result = __syncthreads_or(any) != 0;
    cluster_sync(); /* read by all */
    return result;
}

/* Look at the doubtful systems of a tile: PIVOT_FINE becomes of those with a good x,
 * PIVOT_MISSED of the others. `memory` is that of the block, `system` the first of the
 * tile. In PIVOT_CHECK the latter is written down for PIVOT_FINISH, which follows it.
 * Returns whether there are such systems, in PIVOT_CHECK false; all of the block take
 * part. Out of line, as it is rare and has registers of its own. */
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
        const bool any = pivot_any_block(m.state[0] == PIVOT_MISSED, a.segments);

        if (any && threadIdx.x == 0) {
            m.state[0] = PIVOT_MISSED;
        }
        __syncthreads(); /* the state is written */
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
