/* compact_columns.cuh - compact differences along a strided axis: 2 words per value.
 *
 * The matrix has the rows (a, 1, a) with |a| < 1/2, and is p^-1 (1 + m S^-1) (1 + m S) with the
 * shift S, m = a p and p = 2 / (1 + sqrt(1 - 4 a^2)), but for its first rows:
 *
 *   y_i = p b_i - m y_(i-1),   x_i = y_i - m x_(i+1).
 *
 * A row h rows away counts m^h, so that both recurrences begin with 0 in a row that is `halo` rows
 * away, m^halo < eps / 4. In a grid of n rows with ends, x would be 0 before the first and behind the last
 * row. The second recurrence begins so; when the first one has begun with 0, the value before the first row
 * is r x_0 with r = -m, and y_i lacks -r (1 - r^2) / (1 - r^(2n+2)) x_0 r^(i+1).
 *
 * Two matrices with such rows, of accuracy 8, have two recurrences in each direction: the further ones
 * are made of the results of the first ones, row by row. With w of the first one and x of the second one,
 * y_i lacks a sum of r_1^(i+1) and r_2^(i+1) that makes the unknowns of both matrices 0 before the
 * first row. Segments of two matrices do not end at the end of a grid.
 *
 * A warp has neighbouring columns of a segment of rows, and goes through the rows once: the values
 * of the next batch of rows are requested, differences are made of those that have arrived and enter
 * the first recurrence, whose results fill a ring in shared memory. When it is full, the second one
 * goes back through it, and the rows that are at least `halo` rows before its begin are done.
 * Segments that are neighbours are gone through in opposite directions, so that one finds the rows
 * of its halo that the other one reads at the same time in the cache. Warps wait for nothing else
 * than for their values: panels of a team of blocks (panel_stencils.cuh), which exchange sums, have
 * 0.48 to 0.60 of the speed of a copy of 2 words with 4096 rows, these kernels 0.71 to 0.80 (H200).
 *
 * 9 to 14 operations per value: 4 or 6 for the difference, 1, and 1 for each time a row is gone
 * back through.
 */
#ifndef PS_CUDA_LINES_COMPACT_COMPACT_COLUMNS_CUH
#define PS_CUDA_LINES_COMPACT_COMPACT_COLUMNS_CUH

#include "lines/compact/compact.h"

namespace pysolvers::compact {

/* Columns of a line for the lanes of a warp; the rows of a segment. */
template <typename Real, int PACK, int MATRICES> struct ColumnMarch {
    static constexpr int batch = COMPACT_BATCH;
    struct alignas(PACK * sizeof(Real)) Pack {
        Real at[PACK];
    };
    const CompactColumns<Real> &job;
    const Real *f; /* row 0 of the columns of this lane */
    Real *x;
    Pack *ring; /* [capacity][32], of this lane */
    int32_t start, step, length;
    bool starts_at_end, stops_at_end, is_there;
    Real near, far, y[MATRICES][PACK];
    Pack window[4]; /* values before a batch */
    int32_t filled, done, slot;

    /* The segment of a block; a lane without columns computes those of another one. */
    __device__ __forceinline__ ColumnMarch(const CompactColumns<Real> &columns,
                                           int64_t panel, int32_t segment, Pack *place,
                                           int lane)
        : job(columns), ring(place + lane), y(), window(), filled(0), done(0), slot(0)
    {
        const int64_t line = device::quotient(panel, job.line_panels);
        const int64_t column = (panel - line * job.line_panels) * 32 * PACK + lane * PACK;
        const int64_t safe = column < job.lanes ? column : job.lanes - PACK;
        const bool ascends = (segment & 1) == 0;
        const int32_t begin = job.cut(segment), end = job.cut(segment + 1);

        is_there = column < job.lanes;
        f = job.f + line * job.f_line + safe * job.f_lane;
        x = job.x + line * job.x_line + safe * job.x_lane;
        start = ascends ? begin : end - 1;
        step = ascends ? 1 : -1;
        length = end - begin;
        starts_at_end = !job.is_ring && start == (ascends ? 0 : job.by.rows - 1);
        stops_at_end = !job.is_ring && job.segments == 1;
        near = ascends ? job.by.near : job.by.sign * job.by.near;
        far = ascends ? job.by.far : job.by.sign * job.by.far;
    }

    __device__ __forceinline__ void run()
    {
        const int32_t rows = length + (stops_at_end ? 0 : job.halo);
        const int32_t before = starts_at_end ? 0 : job.halo;
        Pack next[batch];

        request(next, 2 - before);
#pragma unroll
        for (int q = 0; q < 4; q++) {
            window[q] = value(row_of(q - 2 - before));
        }
#pragma unroll 1
        for (int32_t at = -before; at < rows; at += batch) {
            Pack values[batch];

            if (job.by.is_even()) {
                differentiate<true>(next, values);
            }
            else {
                differentiate<false>(next, values);
            }
            if (at + batch < rows) {
                request(next, at + batch + 2);
            }
            if (starts_at_end && at == 0) {
                put_end(values, 0, 0, step < 0);
                put_end(values, 1, 1, step < 0);
            }
            if (stops_at_end && at + batch > length - 2) {
                correct_stop(values, at);
            }
            advance(values);
            if (stops_at_end && at + batch > length) {
                clear_behind(values, at);
            }
            if (at >= 0) {
                keep(values);
                if (filled - done == job.capacity || at + batch >= rows) {
                    go_back(at + batch >= rows ? length : done + job.capacity - job.halo);
                }
            }
        }
    }

  private:
    __device__ __forceinline__ int32_t row_of(int32_t local) const
    {
        const int32_t row = start + step * local, rows = job.by.rows;

        if (row >= 0 && row < rows) {
            return row;
        }
        return !job.is_ring ? min(max(row, 0), rows - 1)
               : row < 0    ? rows - 1 + (row + 1) % rows
                            : row % rows;
    }
    __device__ __forceinline__ Pack value(int32_t row) const
    {
        return *reinterpret_cast<const Pack *>(f + static_cast<int64_t>(row) * job.f_row);
    }
    static __device__ __forceinline__ void put(Pack (&values)[batch], int at,
                                               const Pack &one)
    {
#pragma unroll
        for (int q = 0; q < batch; q++) {
            values[q] = q == at ? one : values[q];
        }
    }

    /* The values from one row on. */
    __device__ __forceinline__ void request(Pack (&values)[batch], int32_t at) const
    {
        const int32_t begin = start + step * at, end = begin + step * (batch - 1);

        if (min(begin, end) >= 0 && max(begin, end) < job.by.rows) {
            const int64_t next = static_cast<int64_t>(step) * job.f_row;
            const Real *from = f + static_cast<int64_t>(begin) * job.f_row;

#pragma unroll
            for (int q = 0; q < batch; q++) {
                values[q] = *reinterpret_cast<const Pack *>(from);
                from += next;
            }
            return;
        }
#pragma unroll 1
        for (int q = 0; q < batch; q++) {
            put(values, q, value(row_of(at + q)));
        }
    }

    /* Replace the difference in a batch by that in row i from an end. */
    __device__ __forceinline__ void put_end(Pack (&values)[batch], int at, int i,
                                            bool at_last) const
    {
        const int32_t first = at_last ? job.by.rows - 1 : 0, next = at_last ? -1 : 1;
        const Pack own = value(first + next * i);
        const int count = job.by.points[i];
        Pack result = {};

#pragma unroll 4
        for (int k = 0; k < count; k++) {
            const Pack other = value(first + next * k);

#pragma unroll
            for (int j = 0; j < PACK; j++) {
                result.at[j] += job.by.end[i][k] * (other.at[j] - own.at[j]);
            }
        }
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            result.at[j] = at_last ? job.by.sign * result.at[j] : result.at[j];
        }
        put(values, at, result);
    }

    template <bool IS_EVEN>
    __device__ __forceinline__ void differentiate(const Pack (&next)[batch],
                                                  Pack (&values)[batch])
    {
#pragma unroll
        for (int q = 0; q < batch; q++) {
            const Pack own = window[2], after = window[3], after2 = next[q];

#pragma unroll
            for (int j = 0; j < PACK; j++) {
                values[q].at[j] = lines::inner_difference<IS_EVEN>(
                    near, far, window[0].at[j], window[1].at[j], own.at[j], after.at[j],
                    after2.at[j]);
            }
            window[0] = window[1];
            window[1] = own;
            window[2] = after;
            window[3] = after2;
        }
    }

    __device__ __forceinline__ void advance(Pack (&values)[batch])
    {
#pragma unroll
        for (int q = 0; q < batch; q++) {
#pragma unroll
            for (int j = 0; j < PACK; j++) {
#pragma unroll
                for (int m = 0; m < MATRICES; m++) {
                    y[m][j] = fma(job.ratio[m], y[m][j], values[q].at[j]);
                    values[q].at[j] = y[m][j];
                }
            }
        }
    }

    /* The differences of the last two rows. */
    __device__ __forceinline__ void correct_stop(Pack (&values)[batch], int32_t at) const
    {
#pragma unroll 1
        for (int i = 0; i < 2; i++) {
            const int32_t q = length - 1 - i - at;

            if (q >= 0 && q < batch) {
                put_end(values, q, i, step > 0);
            }
        }
    }
    /* Behind the last row x is 0, if y is. */
    __device__ __forceinline__ void clear_behind(Pack (&values)[batch], int32_t at) const
    {
#pragma unroll
        for (int q = 0; q < batch; q++) {
            values[q] = at + q < length ? values[q] : Pack();
        }
    }

    __device__ __forceinline__ void keep(const Pack (&values)[batch])
    {
#pragma unroll
        for (int q = 0; q < batch; q++) {
            ring[(slot + q) * 32] = values[q];
        }
        slot = slot + batch < job.capacity ? slot + batch : 0;
        filled += batch;
    }

    /* Go back through the ring, and store the rows before `stop`; in the first rows of a grid with
     * ends a second time, with what the first unknown adds. */
    __device__ __forceinline__ void go_back(int32_t stop)
    {
        bool stores = !starts_at_end || done > 0;

#pragma unroll 1
        while (true) {
            Real to[MATRICES][PACK] = {};
            int32_t from = slot;

#pragma unroll 1
            for (int32_t q = filled - batch; q >= done; q -= batch) {
                Pack values[batch];

                from = (from > 0 ? from : job.capacity) - batch;
#pragma unroll
                for (int k = 0; k < batch; k++) {
                    values[k] = ring[(from + k) * 32];
                }
#pragma unroll
                for (int k = batch - 1; k >= 0; k--) {
#pragma unroll
                    for (int j = 0; j < PACK; j++) {
#pragma unroll
                        for (int m = 0; m < MATRICES; m++) {
                            to[m][j] = fma(job.ratio[m], to[m][j], values[k].at[j]);
                            values[k].at[j] = to[m][j];
                        }
                    }
                }
                if (stores && q < stop && is_there) {
                    store(values, q, stop);
                }
            }
            if (stores) {
                done = stop;
                return;
            }
            add_start(to);
            stores = true;
        }
    }

    __device__ __forceinline__ void store(const Pack (&values)[batch], int32_t at,
                                          int32_t stop) const
    {
        const int64_t next = static_cast<int64_t>(step) * job.x_row;
        Real *to = x + static_cast<int64_t>(start + step * at) * job.x_row;

#pragma unroll
        for (int k = 0; k < batch; k++) {
            if (at + k < stop) {
                *reinterpret_cast<Pack *>(to) = values[k];
            }
            to += next;
        }
    }

    /* Add to y what makes x 0 before the first row; the ring begins with that row. */
    __device__ __forceinline__ void add_start(const Real (&first)[MATRICES][PACK])
    {
        Real scale[MATRICES][PACK];

#pragma unroll
        for (int j = 0; j < PACK; j++) {
#pragma unroll
            for (int m = 0; m < MATRICES; m++) {
                scale[m][j] = 0;
#pragma unroll
                for (int i = 0; i < MATRICES; i++) {
                    scale[m][j] = fma(job.start[m][i], first[i][j], scale[m][j]);
                }
            }
        }
        const int32_t rows = min(min(job.halo, filled), length);

#pragma unroll 4
        for (int32_t i = 0; i < rows; i++) {
            Pack one = ring[i * 32];

#pragma unroll
            for (int j = 0; j < PACK; j++) {
#pragma unroll
                for (int m = 0; m < MATRICES; m++) {
                    scale[m][j] *= job.ratio[m];
                    one.at[j] += scale[m][j];
                }
            }
            ring[i * 32] = one;
        }
    }
};

template <typename Real, int PACK, int MATRICES>
__global__ void __launch_bounds__(32 * COMPACT_WARPS,
                                  compact_columns_blocks<Real, MATRICES>)
    compact_columns_kernel(const __grid_constant__ CompactColumns<Real> job)
{
    using March = ColumnMarch<Real, PACK, MATRICES>;
    extern __shared__ __align__(16) char rings[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t blocks = (job.panels + COMPACT_WARPS - 1) / COMPACT_WARPS;
    const int32_t segment = static_cast<int32_t>(device::quotient(blockIdx.x, blocks));
    const int64_t panel = (blockIdx.x - segment * blocks) * COMPACT_WARPS + warp;

    runtime::wait_for_last_kernel();
    if (panel < job.panels) {
        March(job, panel, segment,
              reinterpret_cast<typename March::Pack *>(rings) + warp * job.capacity * 32,
              lane)
            .run();
    }
}

/* use(kernel, bytes of shared memory) for packs of this width. */
template <typename Real, int PACK, typename Use>
static auto
with_columns_kernel(const CompactColumns<Real> &job, const Use &use)
{
    const size_t bytes = sizeof(Real) * 32 * COMPACT_WARPS * job.capacity * PACK;

    return use(job.ratio[1] == 0 ? compact_columns_kernel<Real, PACK, 1>
                                 : compact_columns_kernel<Real, PACK, 2>,
               bytes);
}
template <typename Real, typename Use>
static auto
with_columns_kernel(const CompactColumns<Real> &job, int pack, const Use &use)
{
    if constexpr (sizeof(Real) == 4) {
        if (pack == 2) {
            return with_columns_kernel<Real, 2>(job, use);
        }
    }
    return with_columns_kernel<Real, 1>(job, use);
}

template <typename Real>
ps_status
compact_columns_launch(const CompactColumns<Real> &job, int pack, cudaStream_t stream)
{
    const int64_t blocks =
        (job.panels + COMPACT_WARPS - 1) / COMPACT_WARPS * job.segments;

    return with_columns_kernel(job, pack, [&](auto kernel, size_t bytes) {
        const cudaError_t error = runtime::allow_shared(kernel);

        return error == cudaSuccess
                   ? runtime::launch_closely(kernel, blocks, 32 * COMPACT_WARPS, bytes,
                                             stream, job)
                   : runtime::ps_cuda_status(error);
    });
}

template <typename Real>
int
compact_columns_resident(const CompactColumns<Real> &job, int pack)
{
    return with_columns_kernel(job, pack, [](auto kernel, size_t bytes) {
        int count = 0;

        return runtime::resident(kernel, 32 * COMPACT_WARPS, bytes, 1, &count) == PS_OK
                   ? count
                   : 0;
    });
}

} // namespace pysolvers::compact

#endif
