/* compact.h - compact differences whose systems are solved as recurrences of constant
 * coefficients: 2 words per value.
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
#include "runtime/launch.cuh"

namespace pysolvers::compact {

enum {
    COMPACT_BATCH = 8, /* rows that a lane requests at once */
    COMPACT_WARPS = 4, /* of a block */
    COMPACT_ROWS = 32  /* of the chunk of a lane, along contiguous rows */
};
/* Blocks of a multiprocessor. */
template <typename Real>
static constexpr int compact_rows_blocks = sizeof(Real) == 4 ? 5 : 3;
template <typename Real, int MATRICES>
static constexpr int compact_columns_blocks = sizeof(Real) == 4 ? 4 : 5 - MATRICES;

/* Columns in lines of `lanes` neighbouring ones; steps in elements. */
template <typename Real> struct CompactColumns {
    const Real *f;
    Real *x;
    int64_t panels, line_panels, lanes; /* a panel: the columns of a warp */
    int64_t f_line, x_line, f_lane, x_lane;
    int32_t f_row, x_row;
    int32_t segments;       /* of the rows: 1, or an even number */
    int32_t halo, capacity; /* rows, multiples of COMPACT_BATCH: of the ring */
    bool is_ring;
    Real ratio[2];    /* r = -m of each matrix, or 0 */
    Real start[2][2]; /* what y lacks in front of the first row, from w and x in it */
    lines::Differences<Real> by; /* times p of each matrix */

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

/* compact_columns.cuh: enqueue with `pack` neighbouring columns of a lane; the blocks
 * that a device holds. */
template <typename Real>
ps_status compact_columns_launch(const CompactColumns<Real> &job, int pack,
                                 cudaStream_t stream);
template <typename Real>
int compact_columns_resident(const CompactColumns<Real> &job, int pack);

/* compact_rows.cuh */
template <typename Real>
ps_status compact_rows_launch(const CompactRows<Real> &job, cudaStream_t stream);

/* Whether the recurrences can solve for the differences; whether this was measured to be faster than
 * tiles and panels of the shared solver; and the solve. */
bool ps_cuda_compact_accepts(const ps_differences *d);
bool ps_cuda_compact_is_faster(const ps_differences *d);
ps_status ps_cuda_compact_solve(const ps_differences *d, cudaStream_t stream);

} // namespace pysolvers::compact

#endif
