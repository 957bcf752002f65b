/* pivoted_residual.cuh - the residual of doubtful systems, before x is stored.
 *
 * The growth that makes a system doubtful bounds the backward error from above, and most
 * doubtful systems have a good solution nevertheless. So x of a doubtful system, in
 * shared memory, is put into the rows of the system, which are in memory still:
 *
 *     r_i = b_i - l_i x_{i-1} - d_i x_i - u_i x_{i+1}
 *     w_i = |b_i| + |l_i x_{i-1}| + |d_i x_i| + |u_i x_{i+1}|
 *
 * A system with |r_i| <= 16 eps w_i in all its rows is solved: x is the exact solution of
 * a system whose entries differ from those of the matrix and of the right side by 16 eps
 * of themselves at most (Oettli and Prager 1964), but for the rounding errors of r_i, at
 * most 4 eps w_i. Only the others are solved a second time. 4 words and 8 operations an
 * unknown, for tiles with doubtful systems.
 */
#ifndef PS_CUDA_PIVOTED_RESIDUAL_CUH
#define PS_CUDA_PIVOTED_RESIDUAL_CUH

#include "pivoted_copies.cuh"

/* Whether x of a row and of its neighbours satisfies it. What overflows or is no number
 * does not. */
template <typename Number>
__device__ __forceinline__ bool
is_satisfied(const PivotRow<Number> &row, Number before, Number x, Number behind)
{
    using Real = real_of<Number>;
    constexpr Real most = sizeof(Real) == 4 ? Real(16 * 1.1920928955078125e-07)
                                            : Real(16 * 2.220446049250313e-16);
    Number missed = less_product(row.rhs, row.lower, before);

    missed = less_product(missed, row.upper, behind);
    missed = less_product(missed, row.diag, x);
    const Real all = size_of(row.rhs) + size_of(row.lower * before) +
                     size_of(row.diag * x) + size_of(row.upper * behind);
    return size_of(missed) <= most * all && all - all == 0;
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
 * tile. In PIVOT_CHECK the latter is written down for PIVOT_FINISH,
 * which follows it. Returns whether there are such systems, in PIVOT_CHECK false; all of
 * the block take part. Out of line, as it is rare and has registers of its own. */
template <bool whole, typename Number>
__device__ __noinline__ bool
pivot_judge(const PivotPlan<Number> &a, unsigned char *memory, int64_t system,
            int segment)
{
    const PivotShared<Number> m(a, memory);
    const PivotTree<Number> t = {m.tree, a.tile_chunks, 0, m.state};
    const PivotPass pass = whole ? PIVOT_SOLVE : a.pass;
    const PivotSpan span =
        pivot_span<whole>(a, system / a.tile_systems * a.segments + segment);
    bool missed = false;

    if (pass != PIVOT_FINISH) {
        pivot_for_each(a, span, [&](int system, int row) {
            const int64_t i = span.begin + row;

            if (i >= a.s.rows || m.state[system] != PIVOT_DOUBTFUL ||
                !pivot_marked(a, span.system + system)) {
                return;
            }
            const PivotIndex at = pivot_index(a, span.system + system);
            const int shift =
                a.copies == PIVOT_BULK ? m.shift[a.flat ? 0 : system].of[PIVOT_RHS] : 0;
            const Number *const x =
                m.rows + PIVOT_RHS * a.plane + system * a.pitch + shift + row;
            const auto &around = t.template at<PivotAround<Number>>(system * t.stride);
            const bool inner[4] = {i > 0 || a.s.periodic, true,
                                   i < a.s.rows - 1 || a.s.periodic, true};
            const bool one = a.s.rows == 1;
            const Number before = one ? x[0] : row > 0 ? x[-1] : around.left;
            const Number behind = one ? x[0] : row < span.rows - 1 ? x[1] : around.right;
            Number entry[4];

#pragma unroll
            for (int w = 0; w < 4; w++) {
                entry[w] =
                    inner[w] ? a.in[w].system(at.j, at.k)[i * a.in[w].row] : Number(0);
            }
            if (!is_satisfied({entry[0], entry[1], entry[2], entry[3]},
                              inner[0] ? before : Number(0), x[0],
                              inner[2] ? behind : Number(0))) {
                m.state[system] = PIVOT_MISSED;
            }
        });
        bulk_fence();
        __syncthreads(); /* states are written */
    }
    if (pass == PIVOT_MEET && pivot_any_block(m.state[0] == PIVOT_MISSED, a.segments)) {
        m.state[0] = PIVOT_MISSED;
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

#endif
