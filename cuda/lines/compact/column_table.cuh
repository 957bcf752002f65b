/* column_table.cuh - the multipliers of one matrix for recurrences through its rows (compact_columns.cuh).
 *
 * With u_i = c_i p_i, p_i = 1 / (b_i - a_i u_(i-1)), m_i = a_i p_i, the rows (a, b, c) of a matrix are solved by
 *
 *   y_i = p_i f_i - m_i y_(i-1),   x_i = y_i - u_i x_(i+1).
 *
 * A thread has COMPACT_BATCH rows, and begins TABLE_WARM rows before them. If all rows are dominant, |u_i| <= 1, and
 * u_i is a monotonic function of u_(i-1), so that it lies between the sequences that begin with -1 and with 1. If
 * these differ by at most a unit of rounding where the rows of the thread begin, u_i is known to a unit. A halo of so
 * many rows before those of a thread is enough if the products of the |m_i| and of the |u_i| in it, and in all longer
 * halos, are so small that the unknown behind the halo has no influence. Halos begin and end where the rows of a
 * thread do, so that the longest halo of all threads is enough for each segment. If rows are not dominant, a pivot is
 * bad, the sequences differ, or a halo would have more than COLUMN_HALO rows, the halo in the table is longer than
 * COLUMN_HALO, and panels solve the systems.
 *
 * 1 + 2 TABLE_WARM / COMPACT_BATCH eliminations per row, none of which waits for more than TABLE_WARM + COMPACT_BATCH
 * others.
 */
#ifndef PS_CUDA_LINES_COMPACT_COLUMN_TABLE_CUH
#define PS_CUDA_LINES_COMPACT_COLUMN_TABLE_CUH

#include <limits>

#include "device/pivot.cuh"
#include "lines/compact/compact.h"
#include "runtime/elements.cuh"

namespace pysolvers::compact {

using namespace device;
using namespace join;

template <typename Real>
static constexpr Real rounding_unit = std::numeric_limits<Real>::epsilon();
/* A product of multipliers for which the unknown behind them has no influence. It is smaller than a unit of rounding,
 * because the unknowns before it can be smaller than that one: with a quarter of a unit, rows whose terms are small
 * had componentwise backward errors of up to 300 units, with this product up to 1.3, as without halos (random rows). */
template <typename Real> static constexpr Real no_influence = rounding_unit<Real> / 8192;

/* Rows that do not exist are those of the identity. The first threads of a block eliminate the last rows of the block
 * before it, too: the threads after them need the products of these rows. */
template <typename Real>
__device__ __forceinline__ void
make_column_table(const ColumnTableJob<Real> &job)
{
    constexpr int batch = COMPACT_BATCH, most = COLUMN_HALO / batch;
    constexpr int warm = TABLE_WARM / batch;
    constexpr int staged = (TABLE_THREADS + warm) * batch;
    constexpr int places = staged + staged / batch; /* no two threads use one bank */
    constexpr Real unit = rounding_unit<Real>;
    __shared__ Real lower[places], diag[places], upper[places];
    __shared__ Real of_back[TABLE_THREADS], of_next[TABLE_THREADS];
    __shared__ int32_t needed;
    const int thread = static_cast<int>(threadIdx.x);
    const int32_t block = static_cast<int32_t>(blockIdx.x);
    const int32_t first = (block * (TABLE_THREADS - most) - 2 * most) * batch;
    const int32_t whole = (job.rows + batch - 1) / batch * batch;
    const SharedRows<Real> all(job.matrix, job.rows);

    runtime::wait_for_last_kernel();
    runtime::let_next_kernel_in();
#pragma unroll 4
    for (int k = thread; k < staged; k += TABLE_THREADS) {
        const int32_t row = first - TABLE_WARM + k;
        const bool is_there = row >= 0 && row < job.rows;
        const Row<Real> r = all.row(row, is_there);
        const int to = k + k / batch;

        lower[to] = r.lower;
        diag[to] = is_there ? r.diag : Real(1);
        upper[to] = r.upper;
    }
    if (thread == 0) {
        needed = 0;
    }
    __syncthreads();

    BadPivot bad_pivot;
    SafeReciprocal<Real> inverter = {bad_pivot};
    Real low = -1, high = 1;
    int from = thread * (batch + 1);

#pragma unroll 1
    for (int k = 0; k < warm; k++) {
#pragma unroll
        for (int i = 0; i < batch; i++) {
            const Real a = lower[from + i], b = diag[from + i], c = upper[from + i];

            low = c * inverter.invert(b - a * low, 0);
            high = c * inverter.invert(b - a * high, 0);
        }
        from += batch + 1;
    }
    ColumnBatch<Real> rows;
    Real product[2] = {1, 1};
    bool is_dominated = fabs(high - low) <= unit;

#pragma unroll
    for (int i = 0; i < batch; i++) {
        const Real a = lower[from + i], b = diag[from + i], c = upper[from + i];
        const Real p = inverter.invert(b - a * low, 0), m = a * p;

        is_dominated = is_dominated && is_dominant(a, b, c);
        low = c * p;
        product[0] *= fabs(m);
        product[1] *= fabs(low);
        rows.back[i] = -m;
        rows.p[i] = p;
        rows.next[i] = -low;
    }
    of_back[thread] = product[0];
    of_next[thread] = product[1];
    __syncthreads();

    const int32_t at = first + thread * batch;

    if (thread >= most && at < whole + COLUMN_HALO) {
        int32_t halo = batch;

        product[0] = product[1] = 1;
#pragma unroll
        for (int k = 1; k <= most; k++) {
            product[0] *= of_back[thread - k];
            product[1] *= of_next[thread - k];
            halo = product[0] < no_influence<Real> && product[1] < no_influence<Real>
                       ? halo
                       : (k + 1) * batch;
        }
        const_cast<ColumnBatch<Real> *>(job.table.batches)[at / batch] = rows;
        atomicMax(&needed, is_dominated && bad_pivot.row == BadPivot::none
                               ? halo
                               : COLUMN_HALO + batch);
    }
    __syncthreads();
    if (thread == 0) {
        const_cast<int32_t *>(job.table.halo)[block] = needed;
    }
}

template <typename Real> struct MakeColumnTable {
    ColumnTableJob<Real> job;

    __device__ __forceinline__ void operator()() const
    {
        make_column_table(job);
    }
};

template <typename Real>
ps_status
column_table_launch(const ColumnTableJob<Real> &job, cudaStream_t stream)
{
    return runtime::for_threads<TABLE_THREADS>(job.table.parts, stream,
                                               MakeColumnTable<Real>{job});
}

} // namespace pysolvers::compact

#endif
