/* blocks_columns.cuh - systems of five diagonals along a strided axis, by the kernel of columns
 * (columns/column_kernel.cuh) with blocks of 2 x 2 as numbers.
 *
 * Rows are pairs of scalar rows (blocks.cuh). The ring of a warp copies the two entries of each
 * of the five diagonals and of the right-hand sides, 12 operands for a block row, of which the
 * chunk of a thread keeps 8 block rows. 7 words for a scalar row. About 100 operations for a block
 * row, a quarter of what an H200 computes while its memory moves the words of that row.
 *
 * Used in float32 only. On an H200, of the time of five_rows.cuh: in float64 160 to 256 rows take 1.02
 * to 1.6, 1000 rows 1.1; in float32 200 and 256 rows 1.1, 12800 systems of 1000 rows 0.95, 8192 of 4096
 * rows 0.77, 50000 of 1000 rows 1.07.
 *
 * Stable for block diagonally dominant matrices, as blocks_lines.cuh.
 */
#ifndef PS_CUDA_LINES_BLOCKS_COLUMNS_CUH
#define PS_CUDA_LINES_BLOCKS_COLUMNS_CUH

#include "lines/blocks.cuh"
#include "lines/columns/column.h"

namespace pysolvers::columns {

/* Limited by the registers: 4 numbers of each of the blocks l and u for a row. Two blocks of a
 * multiprocessor wait for their joins at different times. */
template <> struct ColumnTuning<Block<float, 2>> {
    static constexpr int rows = 8, alone = 8, threads = 512;
    static constexpr int usual_threads = threads / 2;
    static constexpr int shorter[] = {8, 8, 8};
    static constexpr int long_from = 0;
    static constexpr bool takes_shortest = false;
    static constexpr int cluster_bytes = 256, span = 2;
};

} // namespace pysolvers::columns

namespace pysolvers::lines {

using join::BadPivot;
using join::Note;

/* Operand 2 d + p of the ring: entry p of a pair of rows in diagonal d, or in rhs (d = 5). */
template <typename Real> struct BandColumnJob {
    using Number = Block<Real, 2>;
    using Tuned = columns::ColumnTuning<Number>;
    static constexpr bool is_step = false, keeps_u = false, has_absent = false;
    static constexpr bool may_be_periodic = false;
    static constexpr int operands = 12;
    template <int ROWS> static constexpr int words = 0;
    Systems<Real> t; /* x of the pairs; batch axes and block rows */
    Input<Real> inputs[operands];
    int32_t begin[operands], end[operands];
    int64_t input_step; /* from a pair of rows to the next one, of all operands */
    columns::ColumnShape shape;
    int64_t tiles;
    uint32_t *work_queue; /* null */
    BlocksJob<Real> rows;

    __device__ __forceinline__ int32_t lead() const
    {
        return rows.rows % 2;
    }
    __device__ __forceinline__ SystemRange systems(int64_t tile) const
    {
        return systems_of_tile(tile, 1 << shape.width, 1, t.outer, t.inner);
    }
    __device__ __forceinline__ bool leaves_systems() const
    {
        return rows.checks;
    }
    /* A row from the first of its numbers in the ring. */
    __device__ __forceinline__ join::Row<Number> row_of(const Real *at) const
    {
        return row_of_entries<join::Row<Number>, 2, true>(
            false, [&](int d, int p) { return at[(2 * d + p) * 32]; });
    }
};

/* With the identity in the scalar row before row 0. */
template <typename Real>
__device__ __forceinline__ join::Row<Block<Real, 2>>
completed(const BandColumnJob<Real> &job, const join::Row<Block<Real, 2>> &of_ring,
          int32_t row)
{
    join::Row<Block<Real, 2>> all = of_ring;

    if (row == 0 && job.lead() == 1) {
        all.diag.at[0][0] = 1;
    }
    return all;
}

template <typename Real>
__device__ __forceinline__ join::Row<Block<Real, 2>>
row_in_memory(const BandColumnJob<Real> &job, int64_t system, int32_t row)
{
    const BlockSource<Real, 2, true> source(job.rows, system);
    const ThomasRow<Block<Real, 2>, Vector<Real, 2>> all = source.load(row);

    return {all.lower, all.diag, all.upper, all.rhs};
}

template <typename Real>
__device__ __forceinline__ void
store_value(const BandColumnJob<Real> &job, int32_t, int32_t row, char *x,
            const Vector<Real, 2> &value)
{
    Real *const to = reinterpret_cast<Real *>(x);

    if (row > 0 || job.lead() == 0) {
        *to = value.at[0];
    }
    to[job.rows.x.row] = value.at[1];
}

template <typename Real>
__device__ __forceinline__ void
report(const BandColumnJob<Real> &job, int64_t system, const Note &note)
{
    const BlockSource<Real, 2, true> source(job.rows, system);

    if (job.rows.info != nullptr) {
        job.rows
            .info[job.rows.is_swapped ? source.k * job.rows.outer + source.j : system] =
            job.rows.checks && note.not_dominant != 0 ? -1
            : note.bad_pivot == BadPivot::none        ? 0
                                               : source.info_of(note.bad_pivot + 1);
    }
}

/* blocks_columns.cu */
ps_status launch_band_columns(const BandColumnJob<float> &job, cudaStream_t stream);

/* The job of systems whose shape is rows.columns. */
template <typename Real>
inline BandColumnJob<Real>
column_job_of(const BlocksJob<Real> &rows)
{
    const int32_t lead = rows.rows % 2;
    BandColumnJob<Real> job = {};

    job.t.x = {rows.x.data - lead * rows.x.row, 2 * rows.x.row, rows.x.outer,
               rows.x.inner};
    job.t.outer = rows.outer;
    job.t.inner = rows.inner;
    job.t.rows = (rows.rows + 1) / 2;
    job.input_step = 2 * rows.rhs.row;
    for (int q = 0; q < job.operands; q++) {
        const int d = q / 2, p = q % 2;
        const int32_t least = d < 5 ? std::max(2 - d, 0) : 0,
                      beyond = d < 5 ? std::max(d - 2, 0) : 0;
        Input<Real> &in = job.inputs[q];

        in = d < 5 ? rows.bands[d]
                   : Input<Real>{rows.rhs.data, rows.rhs.row, rows.rhs.outer,
                                 rows.rhs.inner};
        if (in.data != nullptr) {
            in.data += (p - lead) * in.row;
            job.begin[q] = (least + lead - p + 1) / 2;
            job.end[q] = (std::max(rows.rows - beyond, 0) + lead - p + 1) / 2;
        }
        in.row = job.input_step;
    }
    job.shape = rows.columns;
    job.tiles = divided_up(rows.outer * rows.inner, int64_t(1) << job.shape.width);
    job.rows = rows;
    return job;
}

} // namespace pysolvers::lines

#endif
