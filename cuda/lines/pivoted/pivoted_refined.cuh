/* pivoted_refined.cuh - iterative refinement of systems whose residual is too large.
 *
 *     r = b - A y,    A d = r,    x = y + d
 *
 * where y and d are computed by the same elimination in chunks. If the errors of the
 * elimination are small relative to the norm of the system, but large relative to the rows
 * of small unknowns, one step makes the residual of each row small (Skeel 1980; Higham
 * 2002, ch. 12): in a model of the kernel for all 7 such systems of 90000 random ones, and
 * for most of those of graded and scaled matrices. If entries grow it fails, and the system
 * is solved in order.
 *
 * A block refines one system after the other, with a thread for each chunk: two
 * eliminations and three passes over the rows in memory, about ten times faster for long
 * systems than one thread in order. Only blocks with few such systems refine, and only
 * systems of REFINED_CHUNKS chunks or more.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_REFINED_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_REFINED_CUH

#include "lines/pivoted/pivoted_folded.cuh"
#include "lines/pivoted/pivoted_residual.cuh"

namespace pysolvers::pivoted {

/* Least number of chunks of a system that is refined, and largest number of systems of a
 * block. */
enum { REFINED_CHUNKS = 8, REFINED_SYSTEMS = 4 };

/* Vectors of the workspace of a block: y and r. */
enum { REFINED_VECTORS = 2 };

/* Solve A x = right for the first system of a tile in shared memory. The matrix is that in
 * global memory; the right-hand sides are those in global memory, or `right` if this is not
 * null. x replaces the right-hand sides in shared memory. All threads of the block call
 * this function. */
template <typename Number>
__device__ __noinline__ void
refine_solve(const PivotPlan<Number> &a, unsigned char *memory, int64_t system,
             const Number *right)
{
    const PivotShared<Number> m(a, memory);
    const PivotIndex at = pivot_index(a, system);
    const PivotTree<Number> t = {m.tree, a.tile_chunks, a.chunks, m.state};
    const bool alone = a.tile_chunks > 32; /* otherwise the first warp has all chunks */
    const int chunk = threadIdx.x;
    const bool active = chunk < a.chunks;
    const int begin = pivot_begin(a, chunk);
    const int count = active ? pivot_begin(a, chunk + 1) - begin : 0;
    Number *const place = m.rows + begin;
    const PivotChunk<Number> c = {
        place + PIVOT_LOWER * a.plane, place + PIVOT_DIAG * a.plane,
        place + PIVOT_UPPER * a.plane, place + PIVOT_RHS * a.plane};
    PivotGroup<Number> group = {};
    unsigned fresh = 0;
    bool folded = false;

    if (active && eliminate_chunk(c, count, fresh, group) && count > 2) {
        PivotScales scales;
        PivotGroup<Number> other;

        (void)eliminate_folded(
            c, count,
            [&](int k) {
                PivotRow<Number> row = pivot_row_in_memory(a, at, begin + k);

                row.rhs = right == nullptr ? row.rhs : right[begin + k];
                return balanced(row, scales);
            },
            fresh, other);
        group.upper = other.upper;
        group.lower = other.lower;
        folded = true;
    }
    if (alone || threadIdx.x < 32) {
        pivot_tree<Number>(t, 0, chunk, active, group,
                           {PIVOT_SOLVE, 0, 1, nullptr, nullptr}, {});
    }
    if (active) {
        const PivotAround<Number> x =
            pivot_path(t, 0, chunk, static_cast<bool *>(nullptr));

        if (folded) {
            substitute_folded(c, x, count, fresh);
        }
        else {
            substitute_chunk(c, x, count, fresh);
        }
    }
    __syncthreads(); /* x is written */
}

/* Refine a system, and store its solution if the residual of each row is small. Returns
 * whether it is. Uses the shared memory of the block; all threads of the block call this
 * function. */
template <typename Number>
__device__ __noinline__ bool
refine_system(const PivotPlan<Number> &a, unsigned char *memory, int64_t system)
{
    const PivotShared<Number> m(a, memory);
    const PivotIndex at = pivot_index(a, system);
    const PivotSpan span = {system, 1, 0, 0, a.chunks, 0, a.rows};
    const int rows = a.s.rows, step = blockDim.x;
    Number *const planes = m.rows, *const x = planes + PIVOT_RHS * a.plane;
    Number *const y = a.spare + static_cast<int64_t>(blockIdx.x) * REFINED_VECTORS * rows;
    Number *const r = y + rows;

    if (threadIdx.x == 0) {
        m.shift[0] = {};
    }
    const auto set = [&](int i, const PivotRow<Number> &row) {
        planes[PIVOT_LOWER * a.plane + i] = row.lower;
        planes[PIVOT_DIAG * a.plane + i] = row.diag;
        planes[PIVOT_UPPER * a.plane + i] = row.upper;
        x[i] = row.rhs;
    };
    pivot_for_rows(a, at, 0, rows, set);
    __syncthreads(); /* the rows are written */
    refine_solve(a, memory, system, static_cast<const Number *>(nullptr));
    pivot_for_rows(a, at, 0, rows, [&](int i, const PivotRow<Number> &row) {
        Number missed = less_product(row.rhs, row.lower, x[i > 0 ? i - 1 : rows - 1]);

        missed = less_product(missed, row.upper, x[i < rows - 1 ? i + 1 : 0]);
        r[i] = less_product(missed, row.diag, x[i]);
        y[i] = x[i];
    });
    __syncthreads(); /* x is read */
    pivot_for_rows(a, at, 0, rows, [&](int i, PivotRow<Number> row) {
        row.rhs = r[i];
        set(i, row);
    });
    __syncthreads(); /* the rows are written, and r by other threads */
    refine_solve(a, memory, system, static_cast<const Number *>(r));
    for (int i = threadIdx.x; i < rows; i += step) {
        x[i] = y[i] + x[i];
    }
    __syncthreads(); /* x is written */
    if (threadIdx.x == 0) {
        auto &around = PivotTree<Number>{m.tree, a.tile_chunks, a.chunks, m.state}
                           .template at<PivotAround<Number>>(0);

        around.left = x[rows - 1];
        around.right = x[0];
    }
    __syncthreads(); /* and x around the system */
    bool misses = false;
#pragma unroll 1
    for (int i = threadIdx.x; !misses && i < rows; i += step) {
        misses = !pivot_is_satisfied(a, PIVOT_SOLVE, span, memory, 0, i);
    }
    if (__syncthreads_or(misses) != 0) {
        return false;
    }
    for (int i = threadIdx.x; i < rows; i += step) {
        a.s.x.system(at.j, at.k)[i * a.s.x.row] = x[i];
    }
    if (threadIdx.x == 0 && a.s.info != nullptr) {
        a.s.info[pivot_number(a, system)] = 0;
    }
    __syncthreads(); /* shared memory is free */
    return true;
}

} // namespace pysolvers::pivoted

#endif
