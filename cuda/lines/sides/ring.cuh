/* ring.cuh - the partition method for several right-hand sides of each matrix along a strided axis.
 *
 * A block has a tile of neighbouring systems. It eliminates their matrices once, to multipliers in
 * registers (ChunkFactor), and then solves each right-hand side in place, in a ring of slots of
 * shared memory (loader.cuh): 7 operations per row of a side. A thread has a chunk of rows of one
 * system. Other threads, one for each system, join the chunks of a side, with multipliers that are
 * kept as well, while the chunks of the next side are reduced and those of the one before are
 * substituted; one more warp copies, by tensor maps. There is one barrier for each side. x may be
 * rhs. No pivoting: stable for diagonally dominant systems. From sm_90 on.
 *
 * On an H200, parts of the speed of a copy of these words: up to 256 rows, 0.90 to 1.02 for 3 sides
 * and 0.79 to 0.97 for 10; in clusters, with 512 and 1000 rows, 0.66 to 0.77 for 10. Fewer than four
 * sides are faster in groups there. The join of the chunks, one after the other in a thread, limits
 * clusters and long systems. Not faster: in that thread, numbers of four units that are read before
 * others are written (0.97 to 1.2 of the time); and no other threads, but loads that are transposed
 * in shared memory, so that neighbouring lanes join the chunks: up to 256 rows 0.99 to 1.45 of the
 * time of 3 sides and 0.99 to 1.31 of 10, in clusters 1.04 to 1.38 of that of groups of 3 sides, and
 * 0.90 to 1.08 of 10.
 */
#ifndef PS_CUDA_LINES_SIDES_RING_CUH
#define PS_CUDA_LINES_SIDES_RING_CUH

#include "lines/panels/panel_factor.cuh"
#include "lines/sides/loader.cuh"
#include "lines/sides/ring.h"

namespace pysolvers::sides {

extern __shared__ __align__(128) int4 side_ring_memory[];

/* Units of a system, whose multipliers are in shared memory, `pitch` numbers from a unit to the
 * next one: arrays m, p, next, u. In the last unit, p, next and u are those of the whole: of
 * its last row and x_first, and of the first unit's x_first. */
template <typename Number> struct RingUnits {
    Number *at;
    int32_t pitch, array; /* from a unit to the next one, from an array to the next one */
    int32_t count, first; /* unit `first` has the first row */

    __device__ __forceinline__ Number &m(int i) const
    {
        return at[i * pitch];
    }
    __device__ __forceinline__ Number &p(int i) const
    {
        return at[array + i * pitch];
    }
    __device__ __forceinline__ Number &next(int i) const
    {
        return at[2 * array + i * pitch];
    }
    __device__ __forceinline__ Number &u(int i) const
    {
        return at[3 * array + i * pitch];
    }

    /* Join units with the matrices frame(i), whose last rows are end(i). The multipliers of unit
     * i may replace its frame. */
    template <typename FrameOf, typename EndOf>
    __device__ __forceinline__ Frame<Number> make(const FrameOf &frame, const EndOf &end,
                                                  BadPivot &bad_pivot) const
    {
        panels::PanelElimination<Number> e;
        Frame<Number> own = frame(0), front = own;

#pragma unroll 1
        for (int i = 0; i < count - 1; i++) {
            const Frame<Number> behind = frame(i + 1);
            panels::PanelRow<Number> r;
            Number up, v;

            if (i == first) {
                front = own;
            }
            e.inner(own.row_before(behind.first_l, behind.first_u), end(i), bad_pivot, r,
                    up, v);
            if (i < first) {
                e.begin(v);
            }
            m(i) = r.m;
            p(i) = r.p;
            next(i) = own.c;
            u(i) = up;
            own = behind;
        }
        if (first == count - 1) {
            front = own;
        }
        const Frame<Number> all = e.last(own.row());

        m(count - 1) = own.a;
        u(count - 1) = front.first_u;
        return {front.first_l_through(all.first_l), front.first_u_through(all.first_u),
                all.a, all.b, all.c};
    }

    /* The load of all units from those of each. */
    template <typename LoadOf>
    __device__ __forceinline__ Load<Number> reduce(const LoadOf &load) const
    {
        Number g(0), head(0), head_u(-1), front = load(first).first;
        Load<Number> own = load(0);

#pragma unroll 4
        for (int i = 0; i < count - 1; i++) {
            const Load<Number> behind = load(i + 1);

            g = p(i) * (own.d - next(i) * behind.first) - m(i) * g;
            if (i >= first) {
                head = head - head_u * g;
                head_u = -(head_u * u(i));
            }
            own = behind;
        }
        return {front - u(count - 1) * head, own.d - m(count - 1) * g};
    }

    /* y of all units: y(i) is read after it is written. */
    template <typename LoadOf, typename At>
    __device__ __forceinline__ void substitute(const LoadOf &load, Number y_left,
                                               Number all, const At &y) const
    {
        Number g = y_left;
        Load<Number> own = load(0);

#pragma unroll 4
        for (int i = 0; i < count - 1; i++) {
            const Load<Number> behind = load(i + 1);

            g = p(i) * (own.d - next(i) * behind.first) - m(i) * g;
            y(i) = g;
            own = behind;
        }
        y(count - 1) = all;
#pragma unroll 4
        for (int i = count - 2; i >= 0; i--) {
            all = y(i) - u(i) * all;
            y(i) = all;
        }
    }
};

/* Copies of the part of a tile that a block has, by tensor maps. */
template <typename Number> struct RingCopies {
    const SideRingJob<Number> &job;
    int32_t start; /* the first row of the block */

    static __device__ __forceinline__ bool leads()
    {
        return threadIdx.x % 32 == 0;
    }
    __device__ __forceinline__ void load(Number *to, int q, int32_t side, int64_t tile,
                                         Arrivals &full) const
    {
        if (leads()) {
            full.expect(job.shape.numbers * static_cast<uint32_t>(sizeof(Number)));
            copy_tile(to, job.inputs[q], static_cast<int>(tile * job.shape.width),
                      start - job.absent[q], side, full);
        }
    }
    __device__ __forceinline__ void end(Arrivals &) const
    {
    }
    __device__ __forceinline__ void store(const Number *from, int32_t side,
                                          int64_t tile) const
    {
        const SideRing &s = job.shape;

        if (leads() && start + s.block_rows() > 0) {
            /* stores must not begin before row 0 */
            store_tile(start < 0 ? job.first_x : job.x, static_cast<int>(tile * s.width),
                       max(start, 0), side, from + max(-start, 0) * s.width);
        }
    }
};

template <typename Number, bool IS_CLUSTER>
using SideRingLoader = RingLoader<IS_CLUSTER, SideRingJob<Number>, RingCopies<Number>>;

/* Of a system of a block, the thread that joins its chunks. */
template <typename Number, bool IS_CLUSTER> struct RingJoiner {
    static constexpr int rows = ring_rows;
    const SideRingJob<Number> &job;
    const RingExchange<Number> &exchange;
    const int32_t rank, own; /* system of the tile */
    ClusterRounds rounds;
    const UnitArray units, values;
    RingUnits<Number> chunks, blocks;

    __device__ __forceinline__ RingJoiner(const SideRingJob<Number> &j,
                                          const RingExchange<Number> &e, RingState &state,
                                          int32_t block, int32_t system, int32_t round)
        : job(j), exchange(e), rank(block), own(system), rounds{state.others, round},
          units(j.shape, j.shape.chunks), values(j.shape, j.shape.chunks + 1)
    {
        const SideRing &s = job.shape;
        const int32_t first_block = s.before / s.block_rows();

        chunks = {e.unit + units.at(0, own), units.along, units.all, s.chunks,
                  rank == first_block ? s.before % s.block_rows() / rows : 0};
        blocks = {e.block + own, s.width, s.blocks * s.width, s.blocks, first_block};
    }

    /* The last row of `count` chunks of the system. */
    __device__ __forceinline__ int32_t end(int32_t count) const
    {
        return count * rows - job.shape.before - 1;
    }

    /* The multipliers of the units from the frames of the chunks; returns the note of the
     * system. */
    __device__ __forceinline__ Note make()
    {
        const SideRing &s = job.shape;
        const int32_t width = s.width, count = s.chunks;
        BadPivot bad_pivot;
        Note all = {BadPivot::none, 0};

        for (int c = 0; c < count; c++) {
            const uint32_t word = exchange.note[units.at(c, own)];

            all.bad_pivot = min(all.bad_pivot, static_cast<int32_t>(word & INT32_MAX));
            all.not_dominant |= static_cast<int32_t>(word >> 31);
        }
        Frame<Number> whole = chunks.make(
            [&](int i) {
                const Number *const at = exchange.unit + units.at(i, own);
                const int32_t array = units.all;

                return Frame<Number>{at[0], at[array], at[2 * array], at[3 * array],
                                     at[4 * array]};
            },
            [&](int i) { return end(rank * count + i + 1); }, bad_pivot);

        if constexpr (IS_CLUSTER) {
            const RingFrame<Number> mine = {
                whole, PackedNote({min(all.bad_pivot, bad_pivot.row), all.not_dominant})};

            if (own == 0) {
                rounds.expect(s.blocks * width *
                              static_cast<uint32_t>(sizeof(RingFrame<Number>)));
            }
            for (int to = 0; to < s.blocks; to++) {
                send(exchange.frames + rank * width + own, mine, rounds.now(), to);
            }
            rounds.wait();
            rounds.round++;
            for (int b = 0; b < s.blocks; b++) {
                const Note one = exchange.frames[b * width + own].note.note();

                all.bad_pivot = min(all.bad_pivot, one.bad_pivot);
                all.not_dominant |= one.not_dominant;
            }
            whole =
                blocks.make([&](int b) { return exchange.frames[b * width + own].frame; },
                            [&](int b) { return end((b + 1) * count); }, bad_pivot);
        }
        CloseFactor<Number> close;

        close.make(whole, job.t.periodic, s.rows - 1, bad_pivot);
        top().p(top().count - 1) = close.p;
        top().next(top().count - 1) = close.first;
        all.bad_pivot = min(all.bad_pivot, bad_pivot.row);
        return all;
    }

    /* What is known of the system, the first one of whose tile is `first`. */
    __device__ __forceinline__ void report(const Note &note, int64_t first,
                                           int32_t turn) const
    {
        const bool there = first + own < job.t.inner;
        const bool skips = there && job.marks != nullptr && note.not_dominant != 0;

        exchange.skip[turn * job.shape.width + own] = skips;
        if (there && rank == 0) {
            report_of(job, first + own, note, skips, 0, 1);
        }
    }

    /* y of the chunks of a side, from their loads. */
    __device__ __forceinline__ void solve(int32_t turn)
    {
        const SideRing &s = job.shape;
        [[maybe_unused]] const int32_t width = s.width;
        const Number *const from =
            exchange.load + 2 * turn * units.all + units.at(0, own);
        Number *const to = exchange.y + turn * values.all + values.at(0, own);
        const auto of_chunk = [&](int i) {
            return Load<Number>{from[i * units.along], from[units.all + i * units.along]};
        };
        Number y_left, y;

        if constexpr (IS_CLUSTER) {
            const RingLoad<Number> mine = {chunks.reduce(of_chunk)};
            RingLoad<Number> *const of_blocks =
                exchange.loads + rounds.turn() * s.blocks * width + own;

            if (own == 0) {
                rounds.expect(s.blocks * width *
                              static_cast<uint32_t>(sizeof(RingLoad<Number>)));
            }
            for (int b = 0; b < s.blocks; b++) {
                send(of_blocks + rank * width, mine, rounds.now(), b);
            }
            rounds.wait();
            rounds.round++;

            const auto of_block = [&](int b) { return of_blocks[b * width].load; };
            Number *const ends = exchange.ends + own;
            const Number last = closed(blocks.reduce(of_block));

            y_left = job.t.periodic ? last : Number(0);
            blocks.substitute(of_block, y_left, last,
                              [&](int b) -> Number & { return ends[b * width]; });
            y = ends[rank * width];
            y_left = rank > 0 ? ends[(rank - 1) * width] : y_left;
        }
        else {
            y = closed(chunks.reduce(of_chunk));
            y_left = job.t.periodic ? y : Number(0);
        }
        to[0] = y_left;
        chunks.substitute(of_chunk, y_left, y,
                          [&](int i) -> Number & { return to[(i + 1) * values.along]; });
    }

  private:
    /* The level that closes the system. */
    __device__ __forceinline__ const RingUnits<Number> &top() const
    {
        return IS_CLUSTER ? blocks : chunks;
    }
    __device__ __forceinline__ Number closed(const Load<Number> &all) const
    {
        const RingUnits<Number> &of = top();

        return CloseFactor<Number>{of.p(of.count - 1), of.next(of.count - 1)}.solve(all);
    }
};

/* The chunk of a thread. */
template <typename Number, int ROW_BYTES> struct RingWorker {
    static constexpr int rows_of = ring_rows;
    /* from row to row in a slot */
    static constexpr int step = ROW_BYTES / static_cast<int>(sizeof(Number));
    const SideRingJob<Number> &job;
    const RingExchange<Number> &exchange;
    const int32_t system, chunk, start; /* of the tile, of the block; its first row */
    const int32_t offset;               /* of its first number in a slot */
    const UnitArray units, values;
    shared::ChunkFactor<Number, rows_of> factor;

    __device__ __forceinline__ RingWorker(const SideRingJob<Number> &j,
                                          const RingExchange<Number> &e, int32_t thread,
                                          int32_t rank)
        : job(j), exchange(e), system(thread % step), chunk(thread / step),
          start((rank * j.shape.chunks + chunk) * rows_of - j.shape.before),
          offset(chunk * rows_of * step + system), units(j.shape, j.shape.chunks),
          values(j.shape, j.shape.chunks + 1)
    {
    }

    /* Eliminate the rows of the matrix; `there`: whether there is such a system. */
    __device__ __forceinline__ void eliminate(const Number *lower, const Number *diag,
                                              const Number *upper, bool there)
    {
        const int32_t first = there ? start : -rows_of;
        BadPivot bad_pivot;
        bool not_dominant = false;
        const Frame<Number> frame = eliminate_chunk(
            factor,
            [&](int i) {
                const Row<Number> row =
                    row_of_matrix(lower, diag, upper, offset + i * step, first + i,
                                  job.shape.rows - 1, job.t.periodic);

                not_dominant =
                    not_dominant | !is_dominant(row.lower, row.diag, row.upper);
                return row;
            },
            first, bad_pivot);
        const int32_t at = units.at(chunk, system);
        Number *const to = exchange.unit + at;

        to[0] = frame.first_l;
        to[units.all] = frame.first_u;
        to[2 * units.all] = frame.a;
        to[3 * units.all] = frame.b;
        to[4 * units.all] = frame.c;
        exchange.note[at] = PackedNote({bad_pivot.row, not_dominant ? 1 : 0}).word;
    }

    /* The load of the chunk for the side in a slot. */
    __device__ __forceinline__ void reduce(const Number *slot, int32_t turn) const
    {
        const Number *const from = slot + offset;
        Number *const to = exchange.load + 2 * turn * units.all + units.at(chunk, system);
        const Load<Number> load =
            factor.reduce_each([&](int i) { return from[i * step]; });

        to[0] = load.first;
        to[units.all] = load.d;
    }

    /* x in the place of the side. */
    __device__ __forceinline__ void substitute(Number *slot, int32_t turn) const
    {
        const Number *const y = exchange.y + turn * values.all + values.at(chunk, system);
        Number *const at = slot + offset;
        const auto put = [&](int i, const Number &x) { at[i * step] = x; };

        factor.substitute_each([&](int i) { return at[i * step]; }, put, y[0],
                               y[values.along], put);
    }
};

/* The roles of the warps of a block. All of them pass the same barriers: one after the elimination
 * of a tile's matrices, one after the reduction of its first side, one for each side, and one at
 * the end. Between two of them, side s + 1 is reduced, side s is joined, side s - 1 is substituted
 * and side s - 2 is stored. */
template <typename Number, int ROW_BYTES>
__device__ __forceinline__ void
work_on_tiles(const SideRingJob<Number> &job, const RingExchange<Number> &exchange,
              RingState &state, Number *slots, int32_t rank)
{
    const SideRing &s = job.shape;
    const int32_t size = s.numbers, sides = job.sides;
    const bool works = static_cast<int32_t>(threadIdx.x) < s.chunks * s.width;
    RingWorker<Number, ROW_BYTES> worker(job, exchange, works ? threadIdx.x : 0, rank);
    RingPlace place = {0, 0};
    const auto wait = [&]() {
        Number *const slot = slots + place.slot * size;

        state.full[place.slot].wait(place.parity);
        place.advance(s.slots);
        return slot;
    };

#pragma unroll 1
    for (int32_t turn = 0; state.tiles[turn & 3] < job.tiles; turn++) {
        const int64_t system = state.tiles[turn & 3] * s.width + worker.system;
        const bool there = works && system < job.t.inner;
        const Number *const lower = wait(), *const diag = wait(), *const upper = wait();

        if (works) {
            worker.eliminate(lower, diag, upper, there);
        }
        __syncthreads();
        Number *now = wait();

        if (works) {
            worker.reduce(now, 0);
        }
        __syncthreads();
        const bool solves =
            works && exchange.skip[(turn & 1) * s.width + worker.system] == 0;

#pragma unroll 1
        for (int32_t side = 0; side < sides; side++) {
            Number *const own = now;

            if (side + 1 < sides) {
                now = wait();
                if (works) {
                    worker.reduce(now, (side + 1) & 1);
                }
            }
            __syncthreads();
            if (solves) {
                worker.substitute(own, side & 1);
            }
            bulk_fence();
        }
    }
    __syncthreads();
}

template <typename Number, bool IS_CLUSTER>
__device__ __forceinline__ void
join_tiles(const SideRingJob<Number> &job, const RingExchange<Number> &exchange,
           RingState &state, int32_t rank, int32_t system)
{
    const bool joins = system < job.shape.width;
    RingJoiner<Number, IS_CLUSTER> joiner(job, exchange, state, rank, joins ? system : 0,
                                          0);

#pragma unroll 1
    for (int32_t turn = 0; state.tiles[turn & 3] < job.tiles; turn++) {
        const int64_t first = state.tiles[turn & 3] * job.shape.width;

        __syncthreads();
        if (joins) {
            joiner.report(joiner.make(), first, turn & 1);
        }
        __syncthreads();
#pragma unroll 1
        for (int32_t side = 0; side < job.sides; side++) {
            if (joins) {
                joiner.solve(side & 1);
            }
            __syncthreads();
        }
    }
    __syncthreads();
}

template <typename Number, bool IS_CLUSTER>
__device__ __forceinline__ void
copy_tiles(const SideRingJob<Number> &job, RingState &state,
           const RingCopies<Number> &copies, SideRingLoader<Number, IS_CLUSTER> &loader)
{
    const int32_t slots = job.shape.slots, sides = job.sides;
    int32_t slot = 0; /* of the next side that is stored */
    int64_t last = -1;
    const auto store = [&](int64_t tile, int32_t side) {
        copies.store(loader.slots + slot * job.shape.numbers, side, tile);
        commit_stores();
        slot = slot + 1 < slots ? slot + 1 : 0;
    };
    int32_t turn = 0;

#pragma unroll 1
    for (; state.tiles[turn & 3] < job.tiles; turn++) {
        const int64_t tile = state.tiles[turn & 3];

        __syncthreads();
        if (turn > 0) {
            store(last, sides - 1);
            stores_read_but<1>();
            loader.release(1);
        }
        slot = (slot + 3) % slots;
        __syncthreads();
        stores_read();
        loader.release(turn > 0 ? 4 : 3);
#pragma unroll 1
        for (int32_t side = 0; side < sides; side++) {
            __syncthreads();
            if (side > 0) {
                store(tile, side - 1);
                stores_read_but<1>();
                loader.release(side > 1 ? 1 : 0);
            }
        }
        last = tile;
    }
    __syncthreads();
    if (turn > 0) {
        store(last, sides - 1);
        stores_read();
    }
}

/* Grid: any number of clusters of shape.blocks blocks. Shared memory: the slots, then the
 * RingExchange. */
template <typename Number, bool IS_CLUSTER, int ROW_BYTES>
__global__ void __launch_bounds__(sizeof(Number) == 4 ? 608 : 352, 1)
    side_ring_kernel(const __grid_constant__ SideRingJob<Number> job)
{
    __shared__ RingState state;
    const SideRing &s = job.shape;
    const int32_t thread = threadIdx.x, warp = __shfl_sync(all_lanes, thread / 32, 0);
    const int32_t rank = IS_CLUSTER ? static_cast<int32_t>(rank_in_cluster()) : 0;
    Number *const slots = reinterpret_cast<Number *>(side_ring_memory);
    const RingExchange<Number> exchange(s, slots + s.slots * s.numbers);

    if (thread == 0) {
        state.init(1);
    }
    if (job.work_queue != nullptr) {
        wait_for_last_kernel();
    }
    __syncthreads();
    if (IS_CLUSTER) {
        cluster_sync(); /* every block has started, so that its memory may be written */
    }
    if (warp == s.threads() / 32 - 1) {
        const RingCopies<Number> copies = {job, rank * s.block_rows() - s.before};
        SideRingLoader<Number, IS_CLUSTER> loader = {job, state, copies, slots, rank};

        loader.load();
        __syncthreads();
        copy_tiles(job, state, copies, loader);
    }
    else if (warp >= s.workers() / 32) {
        __syncthreads();
        join_tiles<Number, IS_CLUSTER>(job, exchange, state, rank, thread - s.workers());
    }
    else {
        __syncthreads();
        work_on_tiles<Number, ROW_BYTES>(job, exchange, state, slots, rank);
    }
}

template <typename Number>
ps_status
launch_side_ring(const SideRingJob<Number> &job, cudaStream_t stream)
{
    const SideRing &s = job.shape;

    return launch_tiles(s.blocks > 1 ? side_ring_kernel<Number, true, 128>
                        : s.width * sizeof(Number) == 128
                            ? side_ring_kernel<Number, false, 128>
                            : side_ring_kernel<Number, false, 256>,
                        job, bytes_of_arrays<RingExchange<Number>>(s), stream);
}

} // namespace pysolvers::sides

#endif
