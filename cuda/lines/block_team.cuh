/* block_team.cuh - neighbouring lanes that compute with blocks together, each with a column or a row
 * of every block: a quarter of the registers and of the latency of one thread. The inverse of a
 * block is computed by all of them.
 */
#ifndef PS_CUDA_LINES_BLOCK_TEAM_CUH
#define PS_CUDA_LINES_BLOCK_TEAM_CUH

#include "lines/blocks.cuh"

namespace pysolvers::lines {

/* The lanes of a team have a unit: a chunk, a matrix, or a half of a system. All lanes of a warp take
 * part in all exchanges. */
template <typename Real, int SIDE> struct BlockTeam {
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    using Columns = Value;
    static constexpr int lanes = team_lanes(SIDE);
    const int own = min(threadIdx.x % lanes, SIDE - 1); /* column or row */
    int64_t unit;
    bool stores; /* the unit exists, and no other lane has this column */

    /* Teams beyond the units have the last one. */
    __device__ __forceinline__ explicit BlockTeam(int64_t units)
    {
        const int64_t index =
            (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / lanes;

        unit = min(index, units - 1);
        stores = index < units && threadIdx.x % lanes < SIDE;
    }

    /* The block whose columns the lanes have. */
    __device__ __forceinline__ Number of_columns(const Value &column) const
    {
        Number a;

#pragma unroll
        for (int q = 0; q < SIDE; q++) {
#pragma unroll
            for (int p = 0; p < SIDE; p++) {
                a.at[p][q] = shuffle(all_lanes, column.at[p], q, lanes);
            }
        }
        return a;
    }

    /* A row times the block whose rows the lanes have. */
    __device__ __forceinline__ Value times(const Value &row, const Value &of) const
    {
        Value product;

#pragma unroll
        for (int q = 0; q < SIDE; q++) {
            product.at[q] = times(row, of.at[q]);
        }
        return product;
    }

    /* A row times the column whose entries the lanes have. */
    __device__ __forceinline__ Real times(const Value &row, Real entry) const
    {
        return row_times(row.at,
                         [&](int k) { return shuffle(all_lanes, entry, k, lanes); });
    }

    /* Store a row at `to`, where the rows of the lanes lie without gaps, aligned to 16 bytes. Two
     * lanes exchange halves of rows of 32 bytes, so that each of their stores fills a sector. */
    __device__ __forceinline__ void store_row(Real *to, const Value &row) const
    {
        if constexpr (sizeof(Value) == 32) {
            constexpr int half = SIDE / 2;
            const bool is_odd = own % 2 == 1;
            const unsigned pair = 3u << (threadIdx.x & 30);
            Vector<Real, half> first, second;

#pragma unroll
            for (int q = 0; q < half; q++) {
                const Real sent = is_odd ? row.at[q] : row.at[half + q];
                const Real other = __shfl_xor_sync(pair, sent, 1);

                first.at[q] = is_odd ? other : row.at[q];
                second.at[q] = is_odd ? row.at[half + q] : other;
            }
            to += is_odd ? half - SIDE : 0;
            store_vectors(to, first);
            store_vectors(to + SIDE, second);
        }
        else {
            store_vectors(to, row);
        }
    }

    /* The column of this lane. */
    __device__ __forceinline__ Value column_of(const Number &a) const
    {
        Value column;

#pragma unroll
        for (int p = 0; p < SIDE; p++) {
            column.at[p] = a.at[p][0];
#pragma unroll
            for (int q = 1; q < SIDE; q++) {
                column.at[p] = q == own ? a.at[p][q] : column.at[p];
            }
        }
        return column;
    }
};

/* One thread in place of a team: it has all columns. */
template <typename Real, int SIDE> struct BlockThread {
    using Number = Block<Real, SIDE>;
    using Columns = Number;
    static constexpr int lanes = 1, own = 0;
    int64_t unit;
    bool stores;

    __device__ __forceinline__ explicit BlockThread(int64_t units)
    {
        const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;

        unit = min(index, units - 1);
        stores = index < units;
    }
    static __device__ __forceinline__ const Number &of_columns(const Number &a)
    {
        return a;
    }
    static __device__ __forceinline__ const Number &column_of(const Number &a)
    {
        return a;
    }
};

/* Whether a row of blocks is dominant, by blocks or by scalar rows: the row of the identity before
 * an odd number of five diagonals is so by scalar rows only. */
template <typename Real, int SIDE>
__device__ __forceinline__ bool
is_dominant_row(const Block<Real, SIDE> &lower, const Block<Real, SIDE> &diag,
                const Block<Real, SIDE> &upper)
{
    bool by_rows = true;

#pragma unroll
    for (int p = 0; p < SIDE; p++) {
        Real sum = 0;

#pragma unroll
        for (int q = 0; q < SIDE; q++) {
            sum += fabs(lower.at[p][q]) + fabs(diag.at[p][q]) + fabs(upper.at[p][q]);
        }
        by_rows = by_rows && sum <= 2 * fabs(diag.at[p][p]);
    }
    return by_rows || is_dominant(lower, diag, upper);
}

/* The same of row i of a system. Not inlined, because this function would take registers of calls
 * without checks. */
template <int SIDE, bool IS_BANDS, typename Real>
__device__ __noinline__ bool
is_dominant_row(const BlocksJob<Real> &job, int64_t system, int32_t i)
{
    const BlockSource<Real, SIDE, IS_BANDS> source(job, system);
    const auto row = source.matrix(i);

    return is_dominant_row(row.lower, row.diag, row.upper);
}

} // namespace pysolvers::lines

#endif
