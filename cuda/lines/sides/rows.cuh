/* rows.cuh - the partition method for several right-hand sides of each matrix along a contiguous
 * axis.
 *
 * A block has a tile of neighbouring systems, each of which belongs to a team: lanes of a warp, or
 * whole warps. A thread has a chunk of rows, whose multipliers stay in registers together with
 * those that join the lanes (SharedFactor). A right-hand side is read from its slot (loader.cuh),
 * solved in registers, and written back: 7 operations per row. One more warp copies in bulk. If tiles
 * do not begin at multiples of 16 bytes, each warp copies what it solves, and waits for no others
 * but those of its team: for more than five sides, which take 0.6 to 0.8 of the time in groups so.
 * x may be rhs. No pivoting: stable for diagonally dominant systems. A kernel of its own: three
 * right-hand sides take 0.70 to 0.95, ten 0.53 to 0.97 of the time of groups of them in the kernels
 * of single ones (H200, 64 to 1000 rows).
 */
#ifndef PS_CUDA_LINES_SIDES_ROWS_CUH
#define PS_CUDA_LINES_SIDES_ROWS_CUH

#include "lines/shared/shared_factor.cuh"
#include "lines/sides/loader.cuh"
#include "lines/sides/rows.h"

namespace pysolvers::sides {

extern __shared__ __align__(128) int4 side_rows_memory[];

/* Copies of tiles, whose systems follow each other in a slot. */
template <typename Number> struct RowCopies {
    const SideRowsJob<Number> &job;

    static __device__ __forceinline__ bool leads()
    {
        return threadIdx.x % 32 == 0;
    }
    __device__ __forceinline__ void load(Number *to, int q, int32_t side, int64_t tile,
                                         Arrivals &full) const
    {
        const Input<Number> &in = input_of_item(job, q);
        const Number *const from = in.system(side, tile * job.shape.team.teams);

        if (leads()) {
            full.expect(systems_of(tile) * bytes());
        }
        __syncwarp();
        runs(tile, from, in.inner, [&](const Number *one, int32_t at, uint32_t size) {
            copy_bulk(to + at, one, size, full);
        });
    }

    __device__ __forceinline__ void end(Arrivals &full) const
    {
        if (leads()) {
            full.arrive();
        }
    }

    __device__ __forceinline__ void store(const Number *from, int32_t side,
                                          int64_t tile) const
    {
        const Output<Number> &x = job.t.x;
        Number *const to = x.system(side, tile * job.shape.team.teams);

        runs(tile, to, x.inner, [&](Number *one, int32_t at, uint32_t size) {
            store_bulk(one, from + at, size);
        });
    }

  private:
    __device__ __forceinline__ int32_t systems_of(int64_t tile) const
    {
        const int64_t most = job.shape.team.teams;

        return static_cast<int32_t>(min(job.t.inner - tile * most, most));
    }
    /* Of a system. */
    __device__ __forceinline__ uint32_t bytes() const
    {
        return job.shape.team.rows * static_cast<uint32_t>(sizeof(Number));
    }

    /* visit(address, place in the slot, bytes) for all of a tile, or its systems. */
    template <typename Any, typename Visit>
    __device__ __forceinline__ void runs(int64_t tile, Any *data, int64_t inner,
                                         const Visit &visit) const
    {
        const int32_t count = systems_of(tile);

        if (inner == job.shape.team.rows) {
            if (leads()) {
                visit(data, 0, count * bytes());
            }
            return;
        }
        for (int32_t k = threadIdx.x % 32; k < count; k += 32) {
            visit(data + k * inner, k * job.shape.team.rows, bytes());
        }
    }
};

/* The chunk of a thread. */
template <typename Number, int ROWS> struct RowWorker {
    using Factor = SharedFactor<Number, ROWS>;
    const SideRowsJob<Number> &job;
    const RowsArrays<Number> &exchange;
    const ps_cuda_shared_shape &team;
    const SharedThreadPlace self;
    const int32_t offset; /* of its first number in a slot */
    Factor factor;
    bool writes = false; /* whether the rows of the slot become x */
    int parity = 0;

    /* `first`: the place of row 0 in a slot. */
    __device__ __forceinline__ RowWorker(const SideRowsJob<Number> &j,
                                         const RowsArrays<Number> &e, int32_t first)
        : job(j), exchange(e), team(j.shape.team), self(j.shape.team, ROWS),
          offset(first + self.start)
    {
    }

    __device__ __forceinline__ void make(const Number *lower, const Number *diag,
                                         const Number *upper, int64_t tile)
    {
        const int64_t system = tile * team.teams + self.team;
        const bool there = works() && system < job.t.inner;
        const Note note = eliminate(lower, diag, upper, there);
        const bool skips = there && job.marks != nullptr && note.not_dominant != 0;

        if (there) {
            report_of(job, system, note, skips, self.chunk, self.chunks);
        }
        synchronize(); /* all threads of the team have read the note */
        if (works() && self.chunk == 0) {
            exchange.bad_pivot[self.team] = BadPivot::none;
            exchange.not_dominant[self.team] = 0;
        }
        writes = there && !skips;
    }

    /* Replace the side in a slot by x, if the elimination is that of the system. */
    __device__ __forceinline__ void solve(Number *slot)
    {
        Number *const at = slot + offset;
        Number rhs[ROWS], y;

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            rhs[i] = self.start + i >= 0 && works() ? at[i] : Number(0);
        }
        const Load<Number> own = factor.chunk.reduce(rhs);
        Ends<Number> ends;

        if (team.warps == 1) {
            ends = through_levels(
                own,
                [&](const Load<Number> &all) {
                    return factor.ends_of_system(all, self.first_lane, team.width - 1,
                                                 team.width, job.t.periodic);
                },
                [&](const Load<Number> &unit, const auto &next) {
                    return factor.over_lanes(unit, team.width, self, y, next);
                });
        }
        else {
            const int last = team.warps - 1;
            Load<Number> *const loads =
                exchange.load + (2 * self.team + parity) * team.warps;

            through_levels(
                own, [&](const Load<Number> &unit) { factor.publish(unit, self, loads); },
                [&](const Load<Number> &unit, const auto &next) {
                    factor.over_lanes(unit, 32, self, y, next);
                });
            synchronize();

            const Load<Number> of_lane =
                self.lane <= last ? loads[self.lane] : Load<Number>{Number(0), Number(0)};
            const Ends<Number> of_warp = through_levels(
                of_lane,
                [&](const Load<Number> &all) {
                    return factor.ends_of_system(all, 0, last, 32, job.t.periodic);
                },
                [&](const Load<Number> &unit, const auto &next) {
                    return factor.over_warps(unit, level(), self, next);
                });

            ends = factor.ends_of_lane(y, 32, self, of_warp);
            parity ^= 1;
        }
        factor.chunk.substitute(rhs, ends.y_left, ends.y);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (self.start + i >= 0 && writes) {
                at[i] = rhs[i];
            }
        }
    }

  private:
    /* Whether the thread has a team. */
    __device__ __forceinline__ bool works() const
    {
        return self.team < team.teams;
    }
    __device__ __forceinline__ Number *level() const
    {
        return exchange.level + self.team * SharedLimits<Number>::level_words * 32;
    }
    /* The threads of a team wait for each other. */
    __device__ __forceinline__ void synchronize() const
    {
        if (team.warps == 1) {
            __syncwarp();
        }
        else {
            asm volatile("bar.sync %0, %1;" ::"r"(self.team + 1), "r"(self.chunks)
                         : "memory");
        }
    }

    /* Eliminate the matrix of the team, if `there` is one; returns its note. */
    __device__ __forceinline__ Note eliminate(const Number *lower, const Number *diag,
                                              const Number *upper, bool there)
    {
        const int32_t first = there ? self.start : -ROWS;
        const bool ends = !job.t.periodic && first + ROWS == team.rows;
        BadPivot bad_pivot;
        bool not_dominant = false;
        Frame<Number> frame = eliminate_chunk(
            factor.chunk,
            [&](int i) {
                const Row<Number> row =
                    row_of_matrix(lower, diag, upper, offset + i, first + i,
                                  i == ROWS - 1 && ends, job.t.periodic);

                not_dominant =
                    not_dominant | !is_dominant(row.lower, row.diag, row.upper);
                return row;
            },
            first, bad_pivot);

        frame = factor.lanes.make(frame, self.lane, team.width, team.width,
                                  self.start + ROWS - 1, bad_pivot);
        frame = whole_of(frame, self.first_lane, team.width - 1, team.width);
        if (team.warps > 1) {
            frame = Factor::join_warps(
                frame, team, self, exchange.unit + self.team * team.warps, level(),
                self.warp == 0, [&] { synchronize(); }, bad_pivot);
        }
        factor.close.make(frame, job.t.periodic, team.rows - 1, bad_pivot);
        if (there && bad_pivot.row != BadPivot::none) {
            atomicMin(exchange.bad_pivot + self.team, bad_pivot.row);
        }
        if (there && not_dominant) {
            exchange.not_dominant[self.team] = 1;
        }
        synchronize();
        return there
                   ? Note{exchange.bad_pivot[self.team], exchange.not_dominant[self.team]}
                   : Note{BadPivot::none, 0};
    }
};

/* Copies of the rows that a warp solves, by this warp: whole systems that follow each other, or a part
 * of one. In float64 they are copied by 16 bytes, and begin in the part of the slot where they begin
 * in memory between multiples of 16 bytes; in float32 single numbers are faster. */
template <typename Number, int ROWS> struct WarpCopies {
    static constexpr int vector = sizeof(Number) == 8 ? 2 : 1;
    const SideRowsJob<Number> &job;
    const int32_t part;  /* of a slot, of the warp */
    int32_t team, teams; /* the first system of the tile, the most systems */
    int32_t row, rows;   /* of each */

    explicit __device__ __forceinline__ WarpCopies(const SideRowsJob<Number> &j)
        : job(j), part(static_cast<int32_t>(threadIdx.x / 32) * j.shape.part)
    {
        const ps_cuda_shared_shape &shape = job.shape.team;
        const int32_t warp = threadIdx.x / 32;

        teams = 32 / shape.width;
        team = shape.warps == 1 ? warp * teams : warp / shape.warps;
        teams = min(teams, shape.teams - team);
        row = 0;
        rows = shape.rows;
        if (shape.warps > 1) {
            const int32_t behind = shape.warps - 1 - warp % shape.warps;

            rows = max(shape.rows - behind * 32 * ROWS, 0);
            row = max(rows - 32 * ROWS, 0);
            rows -= row;
        }
    }
    __device__ __forceinline__ int64_t tile(int32_t turn) const
    {
        return blockIdx.x + turn * static_cast<int64_t>(gridDim.x);
    }
    /* The place of row 0 of a system of the tile in a slot, without its begin. */
    __device__ __forceinline__ int32_t place_of(int32_t of_tile) const
    {
        return part + (of_tile - team) * rows - row;
    }
    /* Where the numbers of an operand begin in the part. */
    template <typename Operand>
    __device__ __forceinline__ int32_t begin_of(const Operand &operand, int32_t side,
                                                int64_t tile) const
    {
        return begin_of(data_of(operand, side, tile));
    }
    __device__ __forceinline__ void load(Number *slot, int q, int32_t side,
                                         int64_t tile) const
    {
        const Number *const from = data_of(input_of_item(job, q), side, tile);
        Number *const to = slot + part + begin_of(from);

        each<vector>(from, tile, [&](auto count, int32_t i) {
            copy_async_of_line_or_clear<count.value * sizeof(Number)>(to + i, from + i,
                                                                      true);
        });
    }
    __device__ __forceinline__ void store(const Number *slot, int32_t side,
                                          int64_t tile) const
    {
        const int32_t begin = begin_of(job.t.rhs, side, tile);
        const Number *const from = slot + part + begin;
        Number *const to = data_of(job.t.x, side, tile);
        const auto copy = [&](auto count, int32_t i) {
            using Word = std::conditional_t<count.value == 1, Number, uint4>;

            *reinterpret_cast<Word *>(to + i) = *reinterpret_cast<const Word *>(from + i);
        };

        if (begin == begin_of(to)) {
            each<vector>(to, tile, copy);
        }
        else {
            each<1>(to, tile, copy);
        }
    }

  private:
    static __device__ __forceinline__ int32_t begin_of(const Number *data)
    {
        return reinterpret_cast<uintptr_t>(data) / sizeof(Number) % vector;
    }
    template <typename Operand>
    __device__ __forceinline__ auto data_of(const Operand &operand, int32_t side,
                                            int64_t tile) const
    {
        return operand.system(side, tile * job.shape.team.teams + team) + row;
    }

    /* visit(count, i) for the numbers of a lane, COUNT at a time between multiples of 16 bytes. */
    template <int COUNT, typename Visit>
    __device__ __forceinline__ void each(const Number *data, int64_t tile,
                                         const Visit &visit) const
    {
        constexpr std::integral_constant<int, 1> one;
        const int64_t left = job.t.inner - tile * job.shape.team.teams - team;
        const int32_t lane = threadIdx.x % 32;
        const int32_t count =
            static_cast<int32_t>(max(min(left, int64_t(teams)), int64_t(0))) * rows;
        const int32_t begin = COUNT > 1 ? begin_of(data) : 0;
        const int32_t head = min((COUNT - begin) % COUNT, count);
        const int32_t end = head + (count - head) / COUNT * COUNT;

        if (lane < head) {
            visit(one, lane);
        }
#pragma unroll 4
        for (int32_t i = head + lane * COUNT; i < end; i += 32 * COUNT) {
            visit(std::integral_constant<int, COUNT>(), i);
        }
        if (end + lane < count) {
            visit(one, end + lane);
        }
    }
};

template <typename Number, int ROWS>
__device__ __forceinline__ void
solve_own_tiles(const SideRowsJob<Number> &job, const RowsArrays<Number> &exchange,
                Number *slots)
{
    using Copies = WarpCopies<Number, ROWS>;
    const Copies copies(job);
    const SharedThreadPlace self(job.shape.team, ROWS);
    const Systems<Number> &t = job.t;
    RowWorker<Number, ROWS> worker(job, exchange, copies.place_of(self.team));
    OwnRing<SideRowsJob<Number>, Copies> items = {job, copies, slots};

    items.release(job.shape.slots);
#pragma unroll 1
    for (int32_t turn = 0; copies.tile(turn) < job.tiles; turn++) {
        const int64_t tile = copies.tile(turn);
        const Number *const lower = items.wait(), *const diag = items.wait();
        const Number *const upper = items.wait();

        __syncwarp();
        worker.make(lower + copies.begin_of(t.lower, 0, tile),
                    diag + copies.begin_of(t.diag, 0, tile),
                    upper + copies.begin_of(t.upper, 0, tile), tile);
        __syncwarp();
        items.release(3);
#pragma unroll 1
        for (int32_t side = 0; side < job.sides; side++) {
            Number *const slot = items.wait();

            __syncwarp();
            worker.solve(slot + copies.begin_of(t.rhs, side, tile));
            __syncwarp();
            copies.store(slot, side, tile);
            __syncwarp();
            items.release(1);
        }
    }
}

/* A warp that solves: it waits for no others but those of its teams. */
template <typename Number, int ROWS>
__device__ __forceinline__ void
solve_tiles(const SideRowsJob<Number> &job, RingState &state,
            const RowsArrays<Number> &exchange, Number *slots)
{
    const int32_t size = job.shape.numbers;
    const SharedThreadPlace self(job.shape.team, ROWS);
    RowWorker<Number, ROWS> worker(job, exchange, self.team * job.shape.team.rows);
    RingPlace place = {0, 0};
    const auto wait = [&] { return place.wait(state.full, job.shape.slots); };
    const auto leave = [&](int32_t slot) { state.done[slot].arrive(); };

#pragma unroll 1
    for (int32_t turn = 0;; turn++) {
        const int32_t lower = wait();
        const int64_t tile = state.tiles[turn & 3];

        if (tile >= job.tiles) {
            return;
        }
        const int32_t diag = wait(), upper = wait();

        worker.make(slots + lower * size, slots + diag * size, slots + upper * size,
                    tile);
        leave(lower);
        leave(diag);
        leave(upper);
#pragma unroll 1
        for (int32_t side = 0; side < job.sides; side++) {
            const int32_t slot = wait();

            worker.solve(slots + slot * size);
            bulk_fence();
            leave(slot);
        }
    }
}

/* Grid: any number of blocks. Shared memory: the slots, then the RowsArrays. */
template <typename Number, int ROWS, bool BY_WARPS>
__global__ void
__launch_bounds__(side_rows_threads<Number, ROWS> + 32, 1)
    side_rows_kernel(const __grid_constant__ SideRowsJob<Number> job)
{
    __shared__ RingState state;
    const SideRows &s = job.shape;
    const int32_t thread = threadIdx.x, warp = __shfl_sync(all_lanes, thread / 32, 0);
    Number *const slots = reinterpret_cast<Number *>(side_rows_memory);
    const RowsArrays<Number> exchange(s, slots + s.slots * s.numbers);

    if (thread == 0) {
        state.init(s.workers());
    }
    for (int32_t team = thread; team < s.team.teams; team += blockDim.x) {
        exchange.bad_pivot[team] = BadPivot::none;
        exchange.not_dominant[team] = 0;
    }
    if (job.work_queue != nullptr) {
        wait_for_last_kernel();
    }
    __syncthreads();
    if constexpr (BY_WARPS) {
        solve_own_tiles<Number, ROWS>(job, exchange, slots);
        return;
    }
    if (warp == s.workers() / 32) {
        const RowCopies<Number> copies = {job};

        copy_tiles<false>(job, state, copies, slots, 0);
    }
    else {
        solve_tiles<Number, ROWS>(job, state, exchange, slots);
    }
}

template <typename Number>
ps_status
launch_side_rows(const SideRowsJob<Number> &job, cudaStream_t stream)
{
    const bool is_long = job.shape.chunk == long_chunk;

    return launch_tiles(job.shape.by_warps
                            ? is_long ? side_rows_kernel<Number, long_chunk, true>
                                      : side_rows_kernel<Number, short_chunk, true>
                        : is_long ? side_rows_kernel<Number, long_chunk, false>
                                  : side_rows_kernel<Number, short_chunk, false>,
                        job, bytes_of_arrays<RowsArrays<Number>>(job.shape), stream);
}

} // namespace pysolvers::sides

#endif
