/* compact_rows.cuh - compact differences along contiguous rows: 2 words per value.
 *
 * The recurrences of compact_columns.cuh. Each lane of a warp has a chunk of ROWS rows, and both
 * recurrences begin with 0 in each chunk; what enters a chunk is the sum of what leaves the two
 * chunks before it, of which the further one counts ratio^ROWS, and its powers are added to the rows
 * of the chunk. So x is 0 behind the last of n rows of a grid with ends, but ratio x_0 before the
 * first one, and a (ratio^(i+1) - ratio^(2n+1-i)) is added, with a = -ratio x_0 / (1 - ratio^(2n+2)).
 *
 * A tile is that of a warp, 32 chunks: of several systems, of one, or of a part of one with
 * `halo` chunks at each end whose results are not stored; a ring whose number of rows is no multiple
 * of ROWS has such chunks, too. Warps wait for no other warp. Units of 16 bytes of a chunk are
 * permuted in shared memory, so that neither lanes nor copies have bank conflicts.
 *
 * 9 to 11 operations per value. Chunks of tiles of the shared solver (shared_differences.cuh), which
 * five levels join, have 0.51 of the speed of a copy of 2 words with 64 rows and 0.22 with 8192 rows, which
 * no block holds; these kernels have 0.79 and 0.73 (float64, H200).
 */
#ifndef PS_CUDA_LINES_COMPACT_COMPACT_ROWS_CUH
#define PS_CUDA_LINES_COMPACT_COMPACT_ROWS_CUH

#include "lines/compact/compact.h"
#include "runtime/copy.cuh"

namespace pysolvers::compact {

using device::all_lanes;
using device::quotient;
using device::shuffle;

/* The rows of a tile: of `systems` systems the rows from `begin` on, of which those from `from`
 * on and before `to`, counted from `begin`, are stored. */
struct CompactTile {
    int64_t f, x; /* elements before the first system */
    int32_t systems, begin, rows, from, to;
};

template <typename Real, int MATRICES> struct RowsWorker {
    static constexpr int ROWS = COMPACT_ROWS;
    static constexpr int unit = 16 / sizeof(Real), units = ROWS / unit; /* of a chunk */
    struct alignas(16) Unit {
        Real at[unit];
    };
    const CompactRows<Real> &job;
    Unit *stages;            /* [2][32][units], of this warp */
    int lane, system, chunk; /* of a tile, and of the system */

    __device__ __forceinline__ RowsWorker(const CompactRows<Real> &rows, Unit *place,
                                          int of_warp)
        : job(rows), stages(place), lane(of_warp), system(of_warp / rows.width),
          chunk(of_warp - system * rows.width)
    {
    }

    __device__ __forceinline__ void run(int64_t first, int64_t step) const
    {
        int stage = 0;

        load(first, 0);
        for (int64_t tile = first; tile < job.tiles; tile += step) {
            load(tile + step, 1 - stage);
            runtime::copies_done_but<1>();
            __syncwarp();
            const CompactTile range = range_of(tile);

            solve(range, stage_of(stage));
            __syncwarp();
            store(range, stage_of(stage));
            __syncwarp();
            stage = 1 - stage;
        }
    }

  private:
    __device__ __forceinline__ CompactTile range_of(int64_t tile) const
    {
        const int64_t group = quotient(tile, job.parts);
        const int64_t line = quotient(group, job.groups);
        const int64_t first = (group - line * job.groups) * job.most;
        const int64_t left = job.lanes - first;
        CompactTile range = {line * job.f_line + first * job.f_lane,
                             line * job.x_line + first * job.x_lane,
                             static_cast<int32_t>(left < job.most ? left : job.most),
                             0,
                             job.by.rows,
                             0,
                             job.by.rows};

        if (job.halo > 0) {
            set_part(range, static_cast<int32_t>(tile - group * job.parts));
        }
        return range;
    }
    __device__ __forceinline__ void set_part(CompactTile &range, int32_t part) const
    {
        const int32_t halo = job.halo * ROWS, all = job.width * ROWS;
        const int32_t own = all - 2 * halo, left = job.by.rows - part * own;

        if (job.is_ring) {
            range.begin = part * own - halo;
            range.rows = all;
            range.from = halo;
            range.to = halo + min(own, left);
            return;
        }
        range.begin = part * own;
        range.rows = min(all, left);
        range.from = part == 0 ? 0 : halo;
        range.to = part == job.parts - 1 ? left : halo + own;
    }

    __device__ __forceinline__ Unit *stage_of(int which) const
    {
        return stages + which * 32 * units;
    }
    static __device__ __forceinline__ int place_of(int of_chunk, int of_unit)
    {
        return of_chunk * units + (of_unit ^ (of_chunk & 7));
    }
    /* Row `at` of the system of a tile, in shared memory. */
    __device__ __forceinline__ Real &value(Unit *stage, int of_system, int at) const
    {
        return stage[place_of(of_system * job.width + at / ROWS, at % ROWS / unit)]
            .at[at % unit];
    }
    __device__ __forceinline__ int32_t row_of(int32_t begin, int32_t at) const
    {
        const int32_t row = begin + at, rows = job.by.rows;

        if (row >= 0 && row < rows) {
            return row;
        }
        return row < 0 ? rows - 1 + (row + 1) % rows : row % rows;
    }

    /* visit(place in a stage, system, row) for every COUNT-th row of the systems of a tile. */
    template <int COUNT, typename Visit>
    __device__ __forceinline__ void walk(const CompactTile &range, Unit *stage,
                                         const Visit &visit) const
    {
        constexpr int lanes = ROWS / COUNT, step = 32 / lanes; /* of a chunk; chunks */
        const int i = lane % lanes * COUNT, chunks = range.systems * job.width;
        int k = lane / lanes / job.width, j = lane / lanes - k * job.width;

#pragma unroll 4
        for (int c = lane / lanes; c < chunks; c += step) {
            const int32_t at = j * ROWS + i;

            if (at < range.rows) {
                visit(&stage[place_of(c, i / unit)].at[i % unit], k, at);
            }
            j += step;
            while (j >= job.width) {
                j -= job.width;
                k++;
            }
        }
    }

    __device__ __forceinline__ void load(int64_t tile, int which) const
    {
        if (tile < job.tiles) {
            const CompactTile range = range_of(tile);
            const Real *const from = job.f + range.f;
            Unit *const stage = stage_of(which);

            const auto row = [&](int k, int32_t at) {
                return from + k * job.f_lane + row_of(range.begin, at);
            };
            if (job.in_units) {
                walk<unit>(range, stage, [&](Real *to, int k, int32_t at) {
                    runtime::copy_async<16>(to, row(k, at));
                });
            }
            else {
                walk<1>(range, stage, [&](Real *to, int k, int32_t at) {
                    runtime::copy_async<sizeof(Real)>(to, row(k, at));
                });
            }
        }
        runtime::copies_committed();
    }

    __device__ __forceinline__ void store(const CompactTile &range, Unit *stage) const
    {
        Real *const to = job.x + range.x;
        const auto row = [&](int k, int32_t at) {
            return to + k * job.x_lane + row_of(range.begin, at);
        };
        const auto is_own = [&](int32_t at) { return at >= range.from && at < range.to; };

        if (job.in_units) {
            walk<unit>(range, stage, [&](const Real *from, int k, int32_t at) {
                if (is_own(at)) {
                    *reinterpret_cast<Unit *>(row(k, at)) =
                        *reinterpret_cast<const Unit *>(from);
                }
            });
        }
        else {
            walk<1>(range, stage, [&](const Real *from, int k, int32_t at) {
                if (is_own(at)) {
                    *row(k, at) = *from;
                }
            });
        }
    }

    /* The differences in the first two rows from an end, of which a tile has all points. */
    __device__ __forceinline__ void find_end(Unit *stage, bool at_last, int32_t rows,
                                             Real (&end)[2]) const
    {
        constexpr int together = 8;
        const auto value_at = [&](int k) {
            const int at = min(k, rows - 1);

            return value(stage, system, at_last ? rows - 1 - at : at);
        };
        const Real own[2] = {value_at(0), value_at(1)};

        end[0] = end[1] = 0;
#pragma unroll
        for (int k = 0; k < together; k++) {
            const Real other = value_at(k);

            end[0] += job.by.end[0][k] * (other - own[0]);
            end[1] += job.by.end[1][k] * (other - own[1]);
        }
        const int count = max(job.by.points[0], job.by.points[1]);

#pragma unroll 1
        for (int k = together; k < count; k++) {
            const Real other = value_at(k);

            end[0] += job.by.end[0][k] * (other - own[0]);
            end[1] += job.by.end[1][k] * (other - own[1]);
        }
        if (at_last) {
            end[0] *= job.by.sign;
            end[1] *= job.by.sign;
        }
    }

    template <bool IS_EVEN>
    __device__ __forceinline__ void differentiate(Real (&v)[ROWS], Real before2,
                                                  Real before, Real behind,
                                                  Real behind2) const
    {
        Real own = v[0], after = v[1];

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const Real after2 = i + 2 < ROWS    ? v[i + 2 < ROWS ? i + 2 : 0]
                                : i + 2 == ROWS ? behind
                                                : behind2;

            v[i] = job.by.template inner<IS_EVEN>(before2, before, own, after, after2);
            before2 = before;
            before = own;
            own = after;
            after = after2;
        }
    }

    /* The lanes with the two chunks before and after one, of those that exist; the ends of a grid in a
     * tile. */
    struct Surroundings {
        int first, before[2], after[2]; /* first: with chunk 0 */
        bool has_before[2], has_after[2], has_start, has_stop;
    };
    __device__ __forceinline__ Surroundings
    surroundings_in(const CompactTile &range) const
    {
        const int chunks = (range.rows + ROWS - 1) / ROWS, width = job.width;
        const bool wraps = job.is_ring && job.halo == 0;
        Surroundings s;

        s.first = lane - chunk;
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const int reach = k + 1;

            s.before[k] = wraps ? s.first + (chunk + reach * (width - 1)) % width
                                : (lane - reach) & 31;
            s.after[k] = wraps ? s.first + (chunk + reach) % width : (lane + reach) & 31;
            s.before[k] &= 31; /* of lanes without a system */
            s.after[k] &= 31;
            s.has_before[k] = wraps || chunk >= reach;
            s.has_after[k] = wraps || chunk + reach < chunks;
        }
        s.has_start = !job.is_ring && range.begin == 0;
        s.has_stop = !job.is_ring && range.begin + range.rows == job.by.rows;
        return s;
    }

    /* What enters a chunk, from what leaves the two chunks on one side of it. */
    __device__ __forceinline__ Real entering(Real leaving, const int (&lanes)[2],
                                             const bool (&exists)[2], Real decay) const
    {
        const Real near = shuffle(all_lanes, leaving, lanes[0]);
        const Real far = shuffle(all_lanes, leaving, lanes[1]);

        return (exists[0] ? near : Real(0)) + decay * (exists[1] ? far : Real(0));
    }

    /* Replace the right-hand sides of one matrix by the unknowns. */
    __device__ __forceinline__ void recur(Real (&v)[ROWS], const Real (&power)[ROWS + 1],
                                          Real start, const Surroundings &s,
                                          int32_t rows) const
    {
        Real leaving = 0;

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            leaving = fma(power[1], leaving, v[i]);
            v[i] = leaving;
        }
        const Real forward = entering(leaving, s.before, s.has_before, power[ROWS]);

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            v[i] = fma(power[i + 1], forward, v[i]);
        }
        if (s.has_stop && rows % ROWS != 0) { /* behind the last row x is 0, if y is */
            const int32_t count = rows - chunk * ROWS;

#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                v[i] = i < count ? v[i] : Real(0);
            }
        }
        leaving = 0;
#pragma unroll
        for (int i = ROWS - 1; i >= 0; i--) {
            leaving = fma(power[1], leaving, v[i]);
            v[i] = leaving;
        }
        const Real back = entering(leaving, s.after, s.has_after, power[ROWS]);

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            v[i] = fma(power[ROWS - i], back, v[i]);
        }
        if (s.has_start) {
            const Real at_start = start * shuffle(all_lanes, v[0], s.first);

            add(v, power, false,
                chunk == 0   ? at_start
                : chunk == 1 ? power[ROWS] * at_start
                             : Real(0));
            if (job.is_short) {
                add(v, power, true,
                    chunk == 0   ? job.stop[0] * at_start
                    : chunk == 1 ? job.stop[1] * at_start
                                 : Real(0));
            }
        }
    }
    static __device__ __forceinline__ void
    add(Real (&v)[ROWS], const Real (&power)[ROWS + 1], bool descends, Real scale)
    {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            v[i] = fma(power[descends ? ROWS - i : i], scale, v[i]);
        }
    }

    __device__ __forceinline__ void solve(const CompactTile &range, Unit *stage) const
    {
        const Surroundings s = surroundings_in(range);
        Real v[ROWS], left[2], right[2];

#pragma unroll
        for (int u = 0; u < units; u++) {
            const Unit one = stage[place_of(lane, u)];

#pragma unroll
            for (int k = 0; k < unit; k++) {
                v[u * unit + k] = one.at[k];
            }
        }
#pragma unroll
        for (int k = 0; k < 2; k++) {
            left[k] = shuffle(all_lanes, v[ROWS - 2 + k], s.before[0]);
            right[k] = shuffle(all_lanes, v[k], s.after[0]);
            left[k] = s.has_before[0] ? left[k] : Real(0);
            right[k] = s.has_after[0] ? right[k] : Real(0);
        }
        if (job.by.is_even()) {
            differentiate<true>(v, left[0], left[1], right[0], right[1]);
        }
        else {
            differentiate<false>(v, left[0], left[1], right[0], right[1]);
        }
        if (s.has_start || s.has_stop) {
            put_ends(range, stage, v, s.has_start, s.has_stop);
        }
        __syncwarp(); /* the values of ends have been read */
#pragma unroll
        for (int m = 0; m < MATRICES; m++) {
            recur(v, job.power[m], job.start[m], s, range.rows);
        }
#pragma unroll
        for (int u = 0; u < units; u++) {
            Unit all;

#pragma unroll
            for (int k = 0; k < unit; k++) {
                all.at[k] = v[u * unit + k];
            }
            stage[place_of(lane, u)] = all;
        }
    }

    /* Replace the differences in the first and in the last two rows. */
    __device__ __forceinline__ void put_ends(const CompactTile &range, Unit *stage,
                                             Real (&v)[ROWS], bool has_start,
                                             bool has_stop) const
    {
        const bool is_there = system < range.systems;
        const int32_t last = range.rows - 1;
        const bool is_first = is_there && has_start && chunk == 0;
        const bool has_last = is_there && has_stop && last / ROWS == chunk;
        const bool has_next = is_there && has_stop && (last - 1) / ROWS == chunk;
        const int rounds = has_start && has_stop && last <= ROWS ? 2 : 1;

#pragma unroll 1
        for (int round = 0; round < rounds; round++) {
            const bool at_last = !is_first || round > 0;
            Real end[2] = {};

            if (is_first || has_last || has_next) {
                find_end(stage, at_last, range.rows, end);
            }
            if (is_first && !at_last) {
                v[0] = end[0];
                v[1] = end[1];
            }
            else if (range.rows % ROWS == 0) {
                v[ROWS - 1] = has_last ? end[0] : v[ROWS - 1];
                v[ROWS - 2] = has_last ? end[1] : v[ROWS - 2];
            }
            else {
                put(v, has_last ? last % ROWS : -1, end[0]);
                put(v, has_next ? (last - 1) % ROWS : -1, end[1]);
            }
        }
    }
    static __device__ __forceinline__ void put(Real (&v)[ROWS], int at, Real end)
    {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            v[i] = i == at ? end : v[i];
        }
    }
};

template <typename Real, int MATRICES>
__global__ void __launch_bounds__(32 * COMPACT_WARPS, compact_rows_blocks<Real>)
    compact_rows_kernel(const __grid_constant__ CompactRows<Real> job)
{
    using Worker = RowsWorker<Real, MATRICES>;
    using Unit = typename Worker::Unit;
    extern __shared__ __align__(128) char tiles[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    runtime::wait_for_last_kernel();
    Worker(job, reinterpret_cast<Unit *>(tiles) + warp * 2 * 32 * Worker::units, lane)
        .run(static_cast<int64_t>(blockIdx.x) * COMPACT_WARPS + warp,
             static_cast<int64_t>(gridDim.x) * COMPACT_WARPS);
}

template <typename Real>
ps_status
compact_rows_launch(const CompactRows<Real> &job, cudaStream_t stream)
{
    const auto kernel =
        job.has_two ? compact_rows_kernel<Real, 2> : compact_rows_kernel<Real, 1>;
    const size_t bytes = sizeof(Real) * 2 * 32 * COMPACT_ROWS * COMPACT_WARPS;
    const int64_t all = (job.tiles + COMPACT_WARPS - 1) / COMPACT_WARPS;
    int fit = 0;
    const ps_status status =
        runtime::resident(kernel, 32 * COMPACT_WARPS, bytes, 1, &fit);

    return status == PS_OK
               ? runtime::launch_closely(kernel, all < fit ? all : fit,
                                         32 * COMPACT_WARPS, bytes, stream, job)
               : status;
}

} // namespace pysolvers::compact

#endif
