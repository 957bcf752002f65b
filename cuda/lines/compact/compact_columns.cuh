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
 * Of a matrix with other rows, a table has the multipliers of each row (column_table.cuh), the right-hand sides are
 * those in memory, and rows that do not exist are those of the identity with right-hand sides 0, so that nothing is
 * lacking. All segments with a table go through the rows in one direction: where segments of both directions meet,
 * the rounding errors of their unknowns differ, and a row whose terms are small had a componentwise backward error of
 * 108 units of rounding, in one direction 1.2, as in one segment. An unknown beyond a halo that is more than 2^13
 * times larger than those before it changes them by more than a unit of their rounding.
 *
 * A warp has neighbouring columns of a segment of rows, and goes through the rows once. The values of the next batch
 * are loaded to registers, or those of the next batches are copied to a ring in shared memory. The values that have
 * arrived, or their differences, enter the first recurrence, whose results are kept in the ring. When the ring is
 * full, the second recurrence goes back through it, and the rows that are at least `halo` rows before the one in
 * which it begins are done. Warps go through neighbouring segments of differences in opposite directions, so that one
 * finds the rows of its halo that the other one reads at the same time in the cache. Warps wait for nothing else than
 * for their values: panels of a team of blocks (panel_stencils.cuh), which exchange sums, have 0.48 to 0.60 of the
 * speed of a copy of 2 words with 4096 rows, these kernels 0.84 to 0.90 (H200).
 *
 * 9 to 14 operations per value: 4 or 6 for the difference, 1, and 1 for each time a row is gone
 * back through.
 */
#ifndef PS_CUDA_LINES_COMPACT_COMPACT_COLUMNS_CUH
#define PS_CUDA_LINES_COMPACT_COMPACT_COLUMNS_CUH

#include "lines/compact/compact.h"

namespace pysolvers::compact {

/* Columns of a line for the lanes of a warp; the rows of a segment. A lane has PACK columns: neighbours, which are
 * read at once, or columns 32 apart. DEPTH batches of values are in flight to the ring; if it is 0,
 * one batch to registers. MATRICES is 0 with a table. */
template <typename Real, int PACK, bool IS_ALIGNED, int MATRICES, int DEPTH>
struct ColumnMarch {
    static constexpr int batch = COMPACT_BATCH;
    /* multipliers from a table, and right-hand sides in place of differences */
    static constexpr bool has_table = MATRICES == 0;
    static constexpr int matrices = has_table ? 1 : MATRICES, ahead = has_table ? 0 : 2;
    using Table = ColumnBatch<Real>;
    struct alignas(PACK * sizeof(Real)) Pack {
        Real at[PACK];
    };
    /* Of the ring of a warp, and of the tables of its batches. */
    static constexpr __host__ __device__ int bytes(int capacity)
    {
        return capacity * 32 * static_cast<int>(sizeof(Pack)) +
               (has_table ? capacity / batch * static_cast<int>(sizeof(Table)) : 0);
    }
    const CompactColumns<Real> &job;
    const Real *f; /* row 0 of the columns of this lane */
    Real *x;
    Pack *ring; /* [capacity][32], of this lane */
    int32_t start, step, length;
    bool starts_at_end, stops_at_end, is_there[PACK];
    int64_t f_apart[PACK], x_apart[PACK]; /* of the columns from the first one */
    int32_t halo;
    Real near, far, y[matrices][PACK];
    Table *tables;  /* of the batches of the ring */
    Pack window[4]; /* values before a batch */
    int32_t filled, done, slot, requested;
    int32_t limit; /* rows of the ring that are gone back through at once */

    /* The segment of a block; a lane without columns computes those of another one. */
    __device__ __forceinline__ ColumnMarch(const CompactColumns<Real> &columns,
                                           int64_t panel, int32_t segment, Pack *place,
                                           int lane, int32_t of_halo)
        : job(columns), ring(place + lane),
          tables(reinterpret_cast<Table *>(place + columns.capacity * 32)), halo(of_halo),
          y(), window(), filled(0), done(0), slot(0), requested(0),
          limit(columns.capacity - DEPTH * batch)
    {
        const int64_t line = device::quotient(panel, job.line_panels);
        const int64_t column = column_of(panel, line, lane, 0);
        const int64_t safe =
            column < job.lanes ? column : job.lanes - (IS_ALIGNED ? PACK : 1);
        const bool ascends = has_table || (segment & 1) == 0;
        const int32_t begin = has_table ? job.batch_cut(segment) : job.cut(segment);
        const int32_t end = has_table ? job.batch_cut(segment + 1) : job.cut(segment + 1);

#pragma unroll
        for (int j = 0; j < PACK; j++) {
            const int64_t apart = IS_ALIGNED ? j : 32 * j;

            is_there[j] = column + apart < job.lanes;
            f_apart[j] = safe + apart < job.lanes ? apart * job.f_lane : 0;
            x_apart[j] = apart * job.x_lane;
        }
        f = job.f + line * job.f_line + safe * job.f_lane;
        x = job.x + line * job.x_line + safe * job.x_lane;
        start = ascends ? begin : end - 1;
        step = ascends ? 1 : -1;
        length = end - begin;
        starts_at_end = !job.is_ring && start == (ascends ? 0 : job.by.rows - 1);
        stops_at_end = !job.is_ring && job.segments == 1;
        if constexpr (has_table) {
            starts_at_end = begin == 0;
            stops_at_end = end == job.batch_cut(job.segments);
        }
        near = ascends ? job.by.near : job.by.sign * job.by.near;
        far = ascends ? job.by.far : job.by.sign * job.by.far;
    }

    /* No pivot is bad, and no column is left to another method. */
    __device__ __forceinline__ void report(int64_t panel, int lane) const
    {
        const int64_t line = device::quotient(panel, job.line_panels);

#pragma unroll
        for (int j = 0; j < PACK; j++) {
            const int64_t at =
                line * job.line_info + column_of(panel, line, lane, j) * job.lane_info;

            if (is_there[j] && job.info != nullptr) {
                job.info[at] = 0;
            }
            if (is_there[j] && job.marks != nullptr) {
                job.marks[at] = 0;
            }
        }
    }

    __device__ __forceinline__ void run()
    {
        const int32_t count = length + (stops_at_end ? 0 : halo);
        const int32_t before = starts_at_end ? 0 : halo;
        Pack next[batch];

        if constexpr (DEPTH > 0) {
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                request_copies(k * batch - before, count);
            }
        }
        else {
            request(next, ahead - before);
        }
        if constexpr (!has_table) {
#pragma unroll
            for (int q = 0; q < 4; q++) {
                window[q] = value(inside(start + step * (q - 2 - before)));
            }
        }
#pragma unroll 1
        for (int32_t at = -before; at < count; at += batch) {
            Pack values[batch];

            if constexpr (DEPTH > 0) {
                runtime::copies_done_but<DEPTH - 1>();
                if constexpr (has_table) {
                    __syncwarp(); /* a table is copied by several lanes */
                }
                take(next);
            }
            if constexpr (has_table) {
                weigh(next, values);
            }
            else {
                make(next, values, at, count);
            }
            if (at >= 0) {
                keep(values);
                if (filled - done == limit || at + batch >= count) {
                    go_back(at + batch >= count ? length : done + limit - halo);
                }
            }
            else if constexpr (DEPTH > 0) {
                slot = after(slot);
            }
            if constexpr (DEPTH > 0) {
                if constexpr (has_table) {
                    __syncwarp(); /* all lanes have gone back through the slot */
                }
                request_copies(at + DEPTH * batch, count);
            }
        }
    }

  private:
    /* y of the right-hand sides of a batch. */
    __device__ __forceinline__ void weigh(const Pack (&next)[batch],
                                          Pack (&values)[batch])
    {
        const Table &table = tables[slot / batch];

#pragma unroll
        for (int q = 0; q < batch; q++) {
#pragma unroll
            for (int j = 0; j < PACK; j++) {
                y[0][j] = fma(table.back[q], y[0][j], table.p[q] * next[q].at[j]);
                values[q].at[j] = y[0][j];
            }
        }
    }

    /* y of the differences of a batch, and the request of the next one. */
    __device__ __forceinline__ void make(Pack (&next)[batch], Pack (&values)[batch],
                                         int32_t at, int32_t count)
    {
        if (job.by.is_even()) {
            differentiate<true>(next, values);
        }
        else {
            differentiate<false>(next, values);
        }
        if (DEPTH == 0 && at + batch < count) {
            request(next, at + batch + ahead);
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
    }

    /* The row of a ring, or the nearest one of a grid. */
    __device__ __forceinline__ int32_t inside(int32_t row) const
    {
        const int32_t rows = job.by.rows;

        if (row >= 0 && row < rows) {
            return row;
        }
        return !job.is_ring ? min(max(row, 0), rows - 1)
               : row < 0    ? rows - 1 + (row + 1) % rows
                            : row % rows;
    }
    __device__ __forceinline__ int64_t column_of(int64_t panel, int64_t line, int lane,
                                                 int j) const
    {
        return (panel - line * job.line_panels) * 32 * PACK +
               (IS_ALIGNED ? lane * PACK + j : lane + 32 * j);
    }
    __device__ __forceinline__ Pack read(const Real *from) const
    {
        if constexpr (IS_ALIGNED) {
            return *reinterpret_cast<const Pack *>(from);
        }
        else {
            Pack one;

#pragma unroll
            for (int j = 0; j < PACK; j++) {
                one.at[j] = from[f_apart[j]];
            }
            return one;
        }
    }
    __device__ __forceinline__ Pack value(int32_t row) const
    {
        return read(f + static_cast<int64_t>(row) * job.f_row);
    }
    static __device__ __forceinline__ void put(Pack (&values)[batch], int at,
                                               const Pack &one)
    {
#pragma unroll
        for (int q = 0; q < batch; q++) {
            values[q] = q == at ? one : values[q];
        }
    }

    /* The slot of the next batch. */
    __device__ __forceinline__ int32_t after(int32_t one) const
    {
        return one + batch < job.capacity ? one + batch : 0;
    }
    /* The place of a value that is needed for row q of the batch in a slot. */
    __device__ __forceinline__ Pack *place_of(int32_t one, int q) const
    {
        return ring + ((q + ahead < batch ? one : after(one) - batch) + q + ahead) * 32;
    }

    /* Start the copies of the values that a batch needs to their places, as a group; none behind the last batch. */
    __device__ __forceinline__ void request_copies(int32_t at, int32_t count)
    {
        if (at < count) {
            const int32_t given = start + step * (at + ahead);
            const int32_t begin = !has_table && job.is_ring ? inside(given) : given;
            const int32_t end = begin + step * (batch - 1);
            const bool are_inside = min(begin, end) >= 0 && max(begin, end) < job.by.rows;
            const int64_t next = static_cast<int64_t>(step) * job.f_row;
            const Real *from = f + static_cast<int64_t>(begin) * job.f_row;

#pragma unroll
            for (int q = 0; q < batch; q++) {
                Pack *const to = place_of(requested, q);

                if (are_inside) {
                    copy(to, from, true);
                }
                else {
                    const int32_t row = begin + step * q;
                    const bool is_row = row >= 0 && row < job.by.rows;

                    copy(to, f + static_cast<int64_t>(inside(row)) * job.f_row,
                         !has_table || is_row);
                }
                from += next;
            }
            if constexpr (has_table) {
                const int lane = threadIdx.x % 32;

                if (lane < Table::units) {
                    runtime::copy_async<16>(
                        reinterpret_cast<int4 *>(tables + requested / batch) + lane,
                        reinterpret_cast<const int4 *>(job.table.batches +
                                                       given / batch) +
                            lane);
                }
            }
            requested = after(requested);
        }
        runtime::copies_committed();
    }
    __device__ __forceinline__ void copy(Pack *to, const Real *from, bool copies) const
    {
        if constexpr (IS_ALIGNED) {
            runtime::copy_async_or_clear<sizeof(Pack)>(to, from, copies);
        }
        else {
#pragma unroll
            for (int j = 0; j < PACK; j++) {
                runtime::copy_async_or_clear<sizeof(Real)>(&to->at[j], from + f_apart[j],
                                                           copies);
            }
        }
    }
    __device__ __forceinline__ void take(Pack (&next)[batch]) const
    {
#pragma unroll
        for (int q = 0; q < batch; q++) {
            next[q] = *place_of(slot, q);
        }
    }

    /* The values from one row on. */
    __device__ __forceinline__ void request(Pack (&values)[batch], int32_t at) const
    {
        const int32_t given = start + step * at;
        const int32_t begin = !has_table && job.is_ring ? inside(given) : given;
        const int32_t end = begin + step * (batch - 1);

        if (min(begin, end) >= 0 && max(begin, end) < job.by.rows) {
            const int64_t next = static_cast<int64_t>(step) * job.f_row;
            const Real *from = f + static_cast<int64_t>(begin) * job.f_row;

#pragma unroll
            for (int q = 0; q < batch; q++) {
                values[q] = read(from);
                from += next;
            }
            return;
        }
#pragma unroll
        for (int q = 0; q < batch; q++) {
            const int32_t row = begin + step * q;

            values[q] = has_table && (row < 0 || row >= job.by.rows) ? Pack()
                                                                     : value(inside(row));
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
        slot = after(slot);
        filled += batch;
    }

    /* Go back through the ring, and store the rows before `stop`; in the first rows of a grid with
     * ends a second time, with what the first unknown adds. */
    __device__ __forceinline__ void go_back(int32_t stop)
    {
        bool stores = has_table || !starts_at_end || done > 0;

#pragma unroll 1
        while (true) {
            Real to[matrices][PACK] = {};
            int32_t from = slot;

#pragma unroll 1
            for (int32_t q = filled - batch; q >= done; q -= batch) {
                Pack values[batch];

                from = (from > 0 ? from : job.capacity) - batch;
                const Table &table = tables[has_table ? from / batch : 0];
#pragma unroll
                for (int k = 0; k < batch; k++) {
                    values[k] = ring[(from + k) * 32];
                }
#pragma unroll
                for (int k = batch - 1; k >= 0; k--) {
#pragma unroll
                    for (int j = 0; j < PACK; j++) {
#pragma unroll
                        for (int m = 0; m < matrices; m++) {
                            to[m][j] = fma(has_table ? table.next[k] : job.ratio[m],
                                           to[m][j], values[k].at[j]);
                            values[k].at[j] = to[m][j];
                        }
                    }
                }
                if (stores && q < stop && is_there[0]) {
                    store(values, q, stop);
                }
            }
            if (stores) {
                done = stop;
                return;
            }
            if constexpr (!has_table) {
                add_start(to);
            }
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
            if (has_table ? static_cast<uint32_t>(start + step * (at + k)) <
                                static_cast<uint32_t>(job.by.rows)
                          : at + k < stop) {
                if constexpr (IS_ALIGNED) {
                    *reinterpret_cast<Pack *>(to) = values[k];
                }
                else {
#pragma unroll
                    for (int j = 0; j < PACK; j++) {
                        if (is_there[j]) {
                            to[x_apart[j]] = values[k].at[j];
                        }
                    }
                }
            }
            to += next;
        }
    }

    /* Add to y what makes x 0 before the first row; the ring begins with that row. */
    __device__ __forceinline__ void add_start(const Real (&first)[matrices][PACK])
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
        const int32_t rows = min(min(halo, filled), length);

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

template <typename Real, int PACK, bool IS_ALIGNED, int MATRICES, int DEPTH>
__global__ void __launch_bounds__(32 * COMPACT_WARPS,
                                  DEPTH > 0 ? 2 : compact_columns_blocks<Real, MATRICES>)
    compact_columns_kernel(const __grid_constant__ CompactColumns<Real> job)
{
    using March = ColumnMarch<Real, PACK, IS_ALIGNED, MATRICES, DEPTH>;
    extern __shared__ __align__(16) char rings[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t blocks = (job.panels + COMPACT_WARPS - 1) / COMPACT_WARPS;
    const int32_t segment = static_cast<int32_t>(device::quotient(blockIdx.x, blocks));
    const int64_t panel = (blockIdx.x - segment * blocks) * COMPACT_WARPS + warp;

    runtime::wait_for_last_kernel();
    const int32_t halo =
        MATRICES > 0 ? job.halo : needed_halo(job.table.halo, job.table.parts);

    if (panel < job.panels && (MATRICES > 0 || halo <= COLUMN_HALO)) {
        March march(job, panel, segment,
                    reinterpret_cast<typename March::Pack *>(
                        rings + warp * March::bytes(job.capacity)),
                    lane, halo);

        if constexpr (MATRICES == 0) {
            if (segment == 0) {
                march.report(panel, lane);
            }
        }
        march.run();
    }
}

/* use(kernel, bytes of shared memory). */
template <typename Real, bool IS_ALIGNED, int MATRICES, int DEPTH, typename Use>
static auto
with_columns_kernel(const CompactColumns<Real> &job, const Use &use)
{
    constexpr int pack = compact_columns_pack<Real>;
    const size_t bytes =
        COMPACT_WARPS *
        ColumnMarch<Real, pack, IS_ALIGNED, MATRICES, DEPTH>::bytes(job.capacity);

    return use(compact_columns_kernel<Real, pack, IS_ALIGNED, MATRICES, DEPTH>, bytes);
}
template <typename Real, bool IS_ALIGNED, typename Use>
static auto
with_columns_kernel(const CompactColumns<Real> &job, const Use &use)
{
    if (job.table.batches != nullptr) {
        return with_columns_kernel<Real, IS_ALIGNED, 0, COMPACT_DEPTH>(job, use);
    }
    if (job.depth > 0) {
        return job.ratio[1] == 0
                   ? with_columns_kernel<Real, IS_ALIGNED, 1, COMPACT_DEPTH>(job, use)
                   : with_columns_kernel<Real, IS_ALIGNED, 2, COMPACT_DEPTH>(job, use);
    }
    return job.ratio[1] == 0 ? with_columns_kernel<Real, IS_ALIGNED, 1, 0>(job, use)
                             : with_columns_kernel<Real, IS_ALIGNED, 2, 0>(job, use);
}
template <typename Real, typename Use>
static auto
with_columns_kernel(const CompactColumns<Real> &job, const Use &use)
{
    constexpr bool always_aligned = compact_columns_pack<Real> == 1;

    return job.is_aligned ? with_columns_kernel<Real, true>(job, use)
                          : with_columns_kernel<Real, always_aligned>(job, use);
}

template <typename Real>
ps_status
compact_columns_launch(const CompactColumns<Real> &job, cudaStream_t stream)
{
    const int64_t blocks =
        (job.panels + COMPACT_WARPS - 1) / COMPACT_WARPS * job.segments;

    return with_columns_kernel(job, [&](auto kernel, size_t bytes) {
        const cudaError_t error = runtime::allow_shared(kernel);

        return error == cudaSuccess
                   ? runtime::launch_closely(kernel, blocks, 32 * COMPACT_WARPS, bytes,
                                             stream, job)
                   : runtime::ps_cuda_status(error);
    });
}

template <typename Real>
int
compact_columns_resident(const CompactColumns<Real> &job)
{
    return with_columns_kernel(job, [](auto kernel, size_t bytes) {
        int count = 0;

        return runtime::resident(kernel, 32 * COMPACT_WARPS, bytes, 1, &count) == PS_OK
                   ? count
                   : 0;
    });
}

} // namespace pysolvers::compact

#endif
