/* compact.h - compact differences, and systems with one matrix, that are solved by recurrences:
 * 2 words per value.
 *
 * compact.cu chooses and launches; compact_columns.cuh has the kernel for strided axes, and
 * compact_rows.cuh that for contiguous rows, which compact_reals.cu compiles once per
 * dtype. What they gain over the shared solver is in the heads of these two files and, where the shared
 * solver is faster and remains, in compact.cu.
 */
#ifndef PS_CUDA_LINES_COMPACT_COMPACT_H
#define PS_CUDA_LINES_COMPACT_COMPACT_H

#include "device/operand.cuh"
#include "lines/differences.cuh"
#include "lines/join/shared_matrix.cuh"
#include "runtime/copy.cuh"
#include "runtime/launch.cuh"

namespace pysolvers::compact {

enum {
    COMPACT_BATCH = 8, /* rows that a lane requests at once */
    COMPACT_WARPS = 4, /* of a block */
    COMPACT_DEPTH = 4, /* batches whose copies to the ring are in flight */
    COLUMN_HALO = 48,  /* most rows of a halo with a table */
    TABLE_THREADS = 64,
    TABLE_WARM = 24, /* rows that a thread eliminates before its own (column_table.cuh) */
    COMPACT_ROWS = 32 /* of the chunk of a lane, along contiguous rows */
};
/* Blocks of a multiprocessor. */
template <typename Real>
static constexpr int compact_rows_blocks = sizeof(Real) == 4 ? 5 : 3;
/* Columns of a lane along a strided axis: 8 bytes. */
template <typename Real>
static constexpr int compact_columns_pack = sizeof(Real) == 4 ? 2 : 1;
template <typename Real, int MATRICES>
static constexpr int compact_columns_blocks = sizeof(Real) == 8 && MATRICES == 2 ? 3 : 4;

/* The multipliers of a batch of rows: y_i = back_i y_(i-1) + p_i f_i, x_i = y_i + next_i x_(i+1). */
template <typename Real> struct alignas(16) ColumnBatch {
    static constexpr int units = 3 * COMPACT_BATCH * sizeof(Real) / 16; /* of 16 bytes */
    Real next[COMPACT_BATCH], back[COMPACT_BATCH], p[COMPACT_BATCH];
};
template <typename Real> struct ColumnTable {
    const ColumnBatch<Real> *batches; /* null: constant coefficients */
    /* Rows of a halo that each part of the table needs; more than COLUMN_HALO if the products of
     * multipliers decay too slowly. */
    const int32_t *halo;
    int32_t parts;
};

/* column_table.cuh: the table of the rows of a matrix. */
template <typename Real> struct ColumnTableJob {
    join::SharedMatrix<Real> matrix;
    ColumnTable<Real> table;
    int32_t rows;
};
template <typename Real>
ps_status column_table_launch(const ColumnTableJob<Real> &job, cudaStream_t stream);

/* Columns in lines of `lanes` neighbouring ones; steps in elements. */
template <typename Real> struct CompactColumns {
    const Real *f;
    Real *x;
    int64_t panels, line_panels, lanes; /* a panel: the columns of a warp */
    int64_t f_line, x_line, f_lane, x_lane;
    int32_t f_row, x_row;
    int32_t segments;       /* of the rows; of differences 1, or an even number */
    int depth;              /* batches in flight to the ring: 0, or COMPACT_DEPTH */
    int32_t halo, capacity; /* rows, multiples of COMPACT_BATCH; capacity: of the ring */
    bool is_ring, is_aligned; /* is_aligned: columns of a lane are neighbours */
    Real ratio[2];            /* r = -m of each matrix, or 0 */
    Real start[2][2]; /* what y lacks in front of the first row, from w and x in it */
    lines::Differences<Real> by; /* times p of each matrix */
    ColumnTable<Real> table;
    int64_t line_info, lane_info;
    int32_t *info; /* null, or one entry per column, as the marks */
    uint8_t *marks;

    /* The first row of a segment, with a table: of whole batches. */
    __device__ __forceinline__ int32_t batch_cut(int32_t segment) const
    {
        const int32_t batches = (by.rows + COMPACT_BATCH - 1) / COMPACT_BATCH;

        return static_cast<int32_t>(static_cast<int64_t>(batches) * segment / segments) *
               COMPACT_BATCH;
    }
    __device__ __forceinline__ int32_t cut(int32_t segment) const
    {
        return static_cast<int32_t>(static_cast<int64_t>(by.rows) * segment / segments);
    }
};

/* Systems with contiguous rows in lines of `lanes` ones; tiles of compact_rows.cuh. Steps in elements. */
template <typename Real> struct CompactRows {
    const Real *f;
    Real *x;
    int64_t lanes, f_lane, x_lane, f_line, x_line;
    int64_t groups, tiles;  /* groups of systems of a line; tiles of the batch */
    int32_t parts;          /* tiles of a group */
    int32_t most;           /* systems of a group */
    int32_t width;          /* chunks of a system in a tile, with halos */
    int32_t halo;           /* chunks; 0 if tiles have whole systems */
    bool is_ring, is_short; /* is_short: both ends of a grid count in its rows */
    bool in_units; /* all units of 16 bytes are aligned and have rows of one system */
    bool has_two;  /* matrices */
    Real power[2][COMPACT_ROWS + 1]; /* of the ratio of each matrix */
    /* What x_0 adds to a row: start power[i], and of a short grid stop[chunk]
     * power[COMPACT_ROWS - i] times start. */
    Real start[2], stop[2];
    lines::Differences<Real> by; /* times p of each matrix */
};

/* compact_columns.cuh: enqueue; the blocks that a device holds. */
template <typename Real>
ps_status compact_columns_launch(const CompactColumns<Real> &job, cudaStream_t stream);
template <typename Real> int compact_columns_resident(const CompactColumns<Real> &job);

/* compact_rows.cuh */
template <typename Real>
ps_status compact_rows_launch(const CompactRows<Real> &job, cudaStream_t stream);

/* Whether the recurrences can solve for the differences; whether this was measured to be faster than
 * tiles and panels of the shared solver; and the solve. */
bool ps_cuda_compact_accepts(const ps_differences *d);
bool ps_cuda_compact_is_faster(const ps_differences *d);
ps_status ps_cuda_compact_solve(const ps_differences *d, cudaStream_t stream);

/* The most rows of a halo that a part of a table needs; called by all 32 lanes of a warp. */
__device__ __forceinline__ int32_t
needed_halo(const int32_t *halo, int32_t parts)
{
    int32_t most = COMPACT_BATCH;

    for (int32_t k = threadIdx.x % 32; k < parts; k += 32) {
        most = max(most, halo[k]);
    }
    return __reduce_max_sync(device::all_lanes, most);
}

/* Systems with one matrix along a strided axis, whose x does not overlap the right-hand sides: the needs of
 * a table of the matrix; whether recurrences may solve the systems; the bytes of a table; make a table; enqueue the
 * solve, which does nothing if the needs of the table are not met. */
struct ColumnNeeds {
    const int32_t *halo; /* null: there is no table */
    int32_t parts;

    /* Called by all threads of a block, whose last warp may have fewer lanes than others. */
    __device__ __forceinline__ bool are_met() const
    {
        bool is_slow = false;

        if (halo == nullptr) {
            return false;
        }
        for (int32_t k = threadIdx.x; k < parts; k += blockDim.x) {
            is_slow = is_slow || halo[k] > COLUMN_HALO;
        }
        return __syncthreads_or(is_slow) == 0;
    }
};
bool ps_cuda_columns_accept(const ps_tridiag *t);
size_t ps_cuda_columns_table(ps_dtype dtype, int64_t rows);
ColumnNeeds ps_cuda_columns_needs(ps_dtype dtype, int64_t rows, const void *table);
ps_status ps_cuda_columns_keep(const ps_tridiag *t, bool transposed, void *table,
                               cudaStream_t stream);
ps_status ps_cuda_columns_solve(const ps_tridiag *t, const void *table, uint8_t *marks,
                                cudaStream_t stream);

} // namespace pysolvers::compact

#endif
