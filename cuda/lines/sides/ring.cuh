/* ring.cuh - the partition method for several right-hand sides of each matrix along a strided axis.
 *
 * A block has a tile of neighbouring systems. It eliminates their matrices once, to multipliers in
 * registers (ChunkFactor), and then solves each right-hand side in place, in a ring of slots of
 * shared memory (loader.cuh): 7 operations per row of a side. A thread has a chunk of rows of one
 * system. Other threads, one for each system, join the chunks of a side, with multipliers that are
 * kept as well, while the chunks of the next side are reduced and those of the one before are
 * substituted; one more warp copies, by tensor maps. Rows that do not begin at multiples of 16 bytes
 * are copied by the threads of the chunks, number by number, each for itself, and x is stored by
 * them. There is one barrier for each side, of all threads but those of the warp that copies, which
 * waits for the threads of the chunks alone. A cluster joins a side in two steps, by two sets of
 * threads: one sends the loads of the block, the other one finds y from those of all blocks. A thread
 * that joins reads the numbers of all units of its system before it writes. x may be rhs. No
 * pivoting: stable for diagonally dominant systems. From sm_90 on.
 *
 * On an H200, parts of the speed of a copy of these words: up to 256 rows, 0.80 to 1.09 for 3 sides
 * and 0.79 to 1.05 for 10; in clusters with 512 to 2000 rows, 0.76 to 0.92 for 10; 0.42 to 0.72 where
 * rows begin anywhere, because of the stores. Fewer than four sides are faster in groups in most
 * clusters. Not faster: steps that leave a side whose copy is not complete to the next one, so that
 * those before are not kept waiting (0.98 to 1.03 of the time of 10 sides); rows of 256 bytes in
 * clusters with 32 rows in a chunk (1.07 to 1.18); twice as many blocks (float64, 512 rows, 1.10); no
 * threads that only join, but loads that are transposed in shared memory, so that neighbouring lanes
 * join the chunks (0.99 to 1.45 up to 256 rows, in clusters 1.04 to 1.38 of groups of 3 sides, and
 * 0.90 to 1.08 of 10); two steps for one block (0.99 to 1.03).
 */
#ifndef PS_CUDA_LINES_SIDES_RING_CUH
#define PS_CUDA_LINES_SIDES_RING_CUH

#include "lines/panels/panel_factor.cuh"
#include "lines/sides/loader.cuh"
#include "lines/sides/ring.h"

namespace pysolvers::sides {

extern __shared__ __align__(128) int4 side_ring_memory[];

/* Barrier of the threads that solve. */
__device__ __forceinline__ void
synchronize(const SideRing &s)
{
    __syncwarp();
    asm volatile("bar.sync 1, %0;" ::"r"(s.solvers()) : "memory");
}

/* Units of a system, whose multipliers are in shared memory, PITCH numbers from a unit to the
 * next one: arrays m, p, next, u. In the last unit, p, next and u are those of the whole: of
 * its last row and x_first, and of the first unit's x_first. */
template <typename Number, int PITCH> struct RingUnits {
    Number *at;
    int32_t array;        /* from an array to the next one */
    int32_t count, first; /* unit `first` has the first row */

    __device__ __forceinline__ Number &m(int i) const
    {
        return at[i * PITCH];
    }
    __device__ __forceinline__ Number &p(int i) const
    {
        return at[array + i * PITCH];
    }
    __device__ __forceinline__ Number &next(int i) const
    {
        return at[2 * array + i * PITCH];
    }
    __device__ __forceinline__ Number &u(int i) const
    {
        return at[3 * array + i * PITCH];
    }

    /* Join units with the matrices frame(i), whose last rows are end(i). The multipliers of unit
     * i may replace its frame. */
    template <typename FrameOf, typename EndOf>
    __device__ __forceinline__ Frame<Number> make(const FrameOf &frame, const EndOf &end,
                                                  BadPivot &bad_pivot) const
    {
        panels::PanelElimination<Number> e;
        Frame<Number> own = frame(0), behind = frame(min(1, count - 1)), front = own;

#pragma unroll 1
        for (int i = 0; i < count - 1; i++) {
            const Frame<Number> coming = frame(min(i + 2, count - 1));
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
            behind = coming; /* read before the division */
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

    /* The numbers g of all units but the last one, for y before the units. All numbers of the
     * units, which are COUNT, are read before any is written. */
    template <int COUNT, typename LoadOf>
    __device__ __forceinline__ void eliminate(const LoadOf &load, Number before,
                                              Number (&g)[COUNT]) const
    {
        Load<Number> own = load(0);

#pragma unroll
        for (int i = 0; i < COUNT - 1; i++) {
            const Load<Number> behind = load(i + 1);

            before = p(i) * (own.d - next(i) * behind.first) - m(i) * before;
            g[i] = before;
            own = behind;
        }
        g[COUNT - 1] = before;
    }

    /* The load of all units from those of each, from the numbers g for y = 0 before them. */
    template <int COUNT, typename LoadOf>
    __device__ __forceinline__ Load<Number>
    whole(const LoadOf &load, const Number (&g)[COUNT], bool has_first) const
    {
        const Number d =
            COUNT > 1 ? load(COUNT - 1).d - m(COUNT - 1) * g[COUNT - 1] : load(0).d;
        Number head(0), head_u(-1);

        if (!has_first) {
            return {Number(0), d};
        }
#pragma unroll
        for (int i = 0; i < COUNT - 1; i++) {
            const Number up = u(i);

            head = head - (i >= first ? head_u : Number(0)) * g[i];
            head_u = i >= first ? -(head_u * up) : head_u;
        }
        return {load(first).first - u(COUNT - 1) * head, d};
    }

    /* put(i, y) of all units, from the last to the first. */
    template <int COUNT, typename Put>
    __device__ __forceinline__ void substitute(const Number (&g)[COUNT], Number all,
                                               const Put &put) const
    {
        Number up[COUNT];

#pragma unroll
        for (int i = 0; i < COUNT - 1; i++) {
            up[i] = u(i);
        }
        put(COUNT - 1, all);
#pragma unroll
        for (int i = COUNT - 2; i >= 0; i--) {
            all = g[i] - up[i] * all;
            put(i, all);
        }
    }

    /* visit(count) with the number of units as a constant, which is at most MOST; with DOUBLES it
     * is a power of two. */
    template <int MOST, bool DOUBLES, typename Visit>
    __device__ __forceinline__ auto with_count(const Visit &visit) const
    {
        if constexpr (MOST > 1 + DOUBLES) {
            if (count < MOST) {
                return with_count<DOUBLES ? MOST / 2 : MOST - 1, DOUBLES>(visit);
            }
        }
        return visit(std::integral_constant<int, MOST>());
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
    __device__ __forceinline__ void end(Arrivals &full) const
    {
        if (leads()) {
            full.arrive();
        }
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

/* With four buffers: a block sends the messages of a side before all blocks have read those of the
 * third one before it. */
using RingRounds = RoundsOf<2>;

/* Of a system of a block, the thread that joins its chunks. */
template <typename Number, bool IS_CLUSTER, int ROW_BYTES> struct RingJoiner {
    /* from unit to unit in an array over them */
    static constexpr int along = ROW_BYTES / static_cast<int>(sizeof(Number));
    static constexpr int most_chunks = ring_chunks(sizeof(Number), ROW_BYTES);
    using Units = RingUnits<Number, along>;
    const SideRingJob<Number> &job;
    const RingArrays<Number> &exchange;
    const int32_t rank, own; /* system of the tile */
    RingRounds rounds;
    int32_t base = 0; /* RingArrays: of the tile */
    const UnitArray units, values;
    Units chunks, blocks;

    __device__ __forceinline__ RingJoiner(const SideRingJob<Number> &j,
                                          const RingArrays<Number> &e, RingState &state,
                                          int32_t block, int32_t system, int32_t round)
        : job(j), exchange(e), rank(block), own(system), rounds{state.others, round},
          units(j.shape, j.shape.chunks), values(j.shape, j.shape.chunks + 1)
    {
        const SideRing &s = job.shape;
        const int32_t first_block = s.before / s.block_rows();

        chunks = {e.unit + own, units.all, s.chunks,
                  rank == first_block ? s.before % s.block_rows() / s.chunk_rows : 0};
        blocks = {e.block + own, s.blocks * along, s.blocks, first_block};
    }

    /* The last row of `count` chunks of the system. */
    __device__ __forceinline__ int32_t end(int32_t count) const
    {
        return count * job.shape.chunk_rows - job.shape.before - 1;
    }

    /* The multipliers of the units from the frames of the chunks; returns the note of the
     * system. */
    __device__ __forceinline__ Note make()
    {
        const SideRing &s = job.shape;
        const int32_t width = s.width, count = s.chunks;
        const uint32_t *const notes = exchange.notes_of_chunks(base);
        BadPivot bad_pivot;
        Note all = {BadPivot::none, 0};

        for (int c = 0; c < count; c++) {
            const uint32_t word = notes[units.at(c, own)];

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
            RingFrame<Number> *const frames = exchange.frames_of_blocks(base);
            const RingFrame<Number> mine = {
                whole, PackedNote({min(all.bad_pivot, bad_pivot.row), all.not_dominant})};

            if (own == 0) {
                rounds.expect(s.blocks * width *
                              static_cast<uint32_t>(sizeof(RingFrame<Number>)));
            }
            for (int to = 0; to < s.blocks; to++) {
                send(frames + rank * width + own, mine, rounds.now(), to);
            }
            rounds.wait();
            rounds.round++;
            for (int b = 0; b < s.blocks; b++) {
                const Note one = frames[b * width + own].note.note();

                all.bad_pivot = min(all.bad_pivot, one.bad_pivot);
                all.not_dominant |= one.not_dominant;
            }
            whole = blocks.make([&](int b) { return frames[b * width + own].frame; },
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
    __device__ __forceinline__ void solve(int32_t side) const
    {
        const auto load = loads_of(side);

        chunks.template with_count<most_chunks, false>([&](auto number) {
            Number g[number.value];

            chunks.template eliminate<number.value>(load, Number(0), g);
            const Number y = close<number.value>(chunks, load, g);

            store(side, job.t.periodic ? y : Number(0), [&](const auto &put) {
                chunks.template substitute<number.value>(g, y, put);
            });
        });
    }

    /* The same in two steps of a cluster: the load of the block is sent; y is found from those of all
     * blocks. */
    __device__ __forceinline__ void begin_side(int32_t side)
    {
        const int32_t count = job.shape.blocks;
        const auto load = loads_of(side);
        const RingLoad<Number> mine = {
            chunks.template with_count<most_chunks, false>([&](auto number) {
                Number g[number.value];

                chunks.template eliminate<number.value>(load, Number(0), g);
                return chunks.template whole<number.value>(load, g, true);
            })};

        if (own == 0) {
            rounds.expect(count * along *
                          static_cast<uint32_t>(sizeof(RingLoad<Number>)));
        }
        for (int b = 0; b < count; b++) {
            send(received() + rank * along, mine, rounds.now(), b);
        }
        rounds.round++;
    }
    __device__ __forceinline__ void end_side(int32_t side)
    {
        const RingLoad<Number> *const of_blocks = received();
        const auto of_block = [&](int b) { return of_blocks[b * along].load; };
        Number before(0), y(0); /* y before the block and its last one */

        rounds.wait();
        rounds.round++;
        blocks.template with_count<ring_blocks, true>([&](auto number) {
            Number g[number.value];

            blocks.template eliminate<number.value>(of_block, Number(0), g);
            const Number last = close<number.value>(blocks, of_block, g);

            before = job.t.periodic ? last : Number(0);
            blocks.template substitute<number.value>(g, last, [&](int b, Number of_b) {
                y = b == rank ? of_b : y;
                before = b == rank - 1 ? of_b : before;
            });
        });
        const auto load = loads_of(side);

        chunks.template with_count<most_chunks, false>([&](auto number) {
            Number g[number.value];

            chunks.template eliminate<number.value>(load, before, g);
            store(side, before, [&](const auto &put) {
                chunks.template substitute<number.value>(g, y, put);
            });
        });
    }

  private:
    /* y of the last unit, which closes the system, from the numbers g for y = 0 before the
     * units; g becomes those for y before them. */
    template <int COUNT, typename LoadOf>
    __device__ __forceinline__ Number close(const Units &of, const LoadOf &load,
                                            Number (&g)[COUNT]) const
    {
        const int last = COUNT - 1;
        const bool periodic = job.t.periodic;
        const Number y = CloseFactor<Number>{of.p(last), of.next(last)}.solve(
            of.template whole<COUNT>(load, g, periodic));

        if (periodic) {
            of.template eliminate<COUNT>(load, y, g);
        }
        return y;
    }

    /* y before the block and those that visit(put) finds. */
    template <typename Visit>
    __device__ __forceinline__ void store(int32_t side, Number y_left,
                                          const Visit &visit) const
    {
        Number *const to = exchange.y + (side & 1) * values.all + values.at(0, own);

        visit([&](int i, Number y) { to[(i + 1) * along] = y; });
        to[0] = y_left;
    }
    /* The loads of the blocks in this round. */
    __device__ __forceinline__ RingLoad<Number> *received() const
    {
        return exchange.loads + rounds.turn() * job.shape.blocks * along + own;
    }
    __device__ __forceinline__ auto loads_of(int32_t side) const
    {
        const Number *const from = exchange.loads_of(base, side) + units.at(0, own);
        const int32_t all = units.all;

        return
            [=](int i) { return Load<Number>{from[i * along], from[all + i * along]}; };
    }
    /* The level that closes the system. */
    __device__ __forceinline__ const Units &top() const
    {
        return IS_CLUSTER ? blocks : chunks;
    }
};

/* The chunk of a thread. */
template <typename Number, int ROW_BYTES> struct RingWorker {
    static constexpr int rows_of = ring_rows(sizeof(Number), ROW_BYTES);
    /* from row to row in a slot */
    static constexpr int step = ROW_BYTES / static_cast<int>(sizeof(Number));
    const SideRingJob<Number> &job;
    const RingArrays<Number> &exchange;
    const int32_t system, chunk, start; /* of the tile, of the block; its first row */
    const int32_t offset;               /* of its first number in a slot */
    int32_t base = 0;                   /* RingArrays: of the tile */
    const UnitArray units, values;
    shared::ChunkFactor<Number, rows_of> factor;

    __device__ __forceinline__ RingWorker(const SideRingJob<Number> &j,
                                          const RingArrays<Number> &e, int32_t thread,
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
        const bool ends = !job.t.periodic && first + rows_of == job.shape.rows;
        BadPivot bad_pivot;
        bool not_dominant = false;
        const Frame<Number> frame = eliminate_chunk(
            factor,
            [&](int i) {
                const Row<Number> row =
                    row_of_matrix(lower, diag, upper, offset + i * step, first + i,
                                  i == rows_of - 1 && ends, job.t.periodic);

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
        exchange.notes_of_chunks(base)[at] =
            PackedNote({bad_pivot.row, not_dominant ? 1 : 0}).word;
    }

    /* The load of the chunk for the side in a slot. */
    __device__ __forceinline__ void reduce(const Number *slot, int32_t side) const
    {
        const Number *const from = slot + offset;
        Number *const to = exchange.loads_of(base, side) + units.at(chunk, system);
        const Load<Number> load =
            factor.reduce_each([&](int i) { return from[i * step]; });

        to[0] = load.first;
        to[units.all] = load.d;
    }

    /* x in the place of the side. */
    __device__ __forceinline__ void substitute(Number *slot, int32_t turn) const
    {
        Number *const at = slot + offset;

        substitute(at, turn, [&](int i, const Number &x) { at[i * step] = x; });
    }

    /* x in memory, of side `side` of system `of_batch`. */
    __device__ __forceinline__ void substitute(Number *slot, int32_t turn, int32_t side,
                                               int64_t of_batch) const
    {
        const int64_t row = job.t.x.row;
        Number *x = job.t.x.system(side, of_batch) + (start + rows_of - 1) * row;

        substitute(slot + offset, turn, [&](int i, const Number &value) {
            if (start + i >= 0) {
                *x = value;
            }
            x -= row;
        });
    }

  private:
    /* put(i, x) for all rows, the last one first; the side is at `at`. */
    template <typename Put>
    __device__ __forceinline__ void substitute(Number *at, int32_t turn,
                                               const Put &put) const
    {
        const Number *const y = exchange.y + turn * values.all + values.at(chunk, system);

        factor.substitute_each([&](int i) { return at[i * step]; },
                               [&](int i, const Number &g) { at[i * step] = g; }, y[0],
                               y[values.along], put);
    }
};

/* The items of the ring as a thread of a chunk uses them, if a warp copies them. */
template <typename Number> struct CopiedItems {
    const SideRing &s;
    RingState &state;
    Number *const slots;
    RingPlace place = {0, 0};
    int32_t left = 0; /* the slot that the thread leaves next */

    /* The slot of the next item. */
    __device__ __forceinline__ Number *wait()
    {
        return slots + place.wait(state.full, s.slots) * s.numbers;
    }
    /* The warp no longer uses the next `count` items. */
    __device__ __forceinline__ void leave(int count)
    {
        __syncwarp();
        for (int q = 0; q < count; q++) {
            if (threadIdx.x % 32 == 0) {
                state.done[left].arrive();
            }
            left = left + 1 < s.slots ? left + 1 : 0;
        }
    }
};

/* Copies of the rows of a chunk by its thread, number by number; zeros in place of rows that there are
 * not. */
template <typename Number, int ROW_BYTES> struct ChunkCopies {
    static constexpr int step = ROW_BYTES / static_cast<int>(sizeof(Number));
    const SideRingJob<Number> &job;
    const RingState &state;
    const RingWorker<Number, ROW_BYTES> &worker;

    __device__ __forceinline__ int64_t tile(int32_t turn) const
    {
        return state.tiles[turn & 3];
    }
    __device__ __forceinline__ void load(Number *slot, int q, int32_t side,
                                         int64_t tile) const
    {
        const Systems<Number> &t = job.t;
        const Input<Number> &in = input_of_item(job, q);
        const int64_t system = tile * job.shape.width + worker.system;
        const int32_t start = worker.start;
        const int32_t first = q == 0 && !t.periodic ? 1 : 0;
        const int32_t end = q == 2 && !t.periodic ? t.rows - 1 : t.rows;
        const bool there = system < t.inner;
        const Number *from = in.system(side, system) + start * in.row;
        Number *const to = slot + worker.offset;

#pragma unroll
        for (int i = 0; i < ring_rows(sizeof(Number), ROW_BYTES); i++) {
            copy_async_of_line_or_clear<sizeof(Number)>(
                to + i * step, from, there && start + i >= first && start + i < end);
            from += in.row;
        }
    }
};

/* If threads copy: the tile of a turn. The first three are known before; each of the others either
 * follows in equal shares or is that of a ticket. */
template <typename Number>
__device__ __forceinline__ int64_t
tile_of_turn(const SideRingJob<Number> &job, int32_t turn, uint32_t ticket)
{
    const int64_t blocks = job.shape.blocks, step = gridDim.x / blocks;

    return job.work_queue != nullptr && turn > 2
               ? 3 * step + ticket
               : (blocks > 1 ? cluster_of_grid() : blockIdx.x) + turn * step;
}

/* The roles of the warps of a block. All but the one that copies pass the same barriers: one after
 * the elimination of a tile's matrices, one after the reduction of its first side, one for each step,
 * and one at the end. Between two of them, side s - 1 is substituted, which the warp that copies then
 * stores, side s is joined, and side s + 1 is reduced. A cluster joins a side in two steps, so that no
 * step waits for messages that are sent in it: each side is substituted one step later, and a tile
 * has one step more. */
template <typename Number, bool IS_CLUSTER, int ROW_BYTES, bool BY_THREADS>
__device__ __forceinline__ void
work_on_tiles(const SideRingJob<Number> &job, const RingArrays<Number> &exchange,
              RingState &state, Number *slots, int32_t rank)
{
    const SideRing &s = job.shape;
    const int32_t sides = job.sides;
    const bool works = static_cast<int32_t>(threadIdx.x) < s.chunks * s.width;
    RingWorker<Number, ROW_BYTES> worker(job, exchange, works ? threadIdx.x : 0, rank);
    using Copies = ChunkCopies<Number, ROW_BYTES>;
    const Copies copies = {job, state, worker};
    auto items = [&] {
        if constexpr (BY_THREADS) {
            return OwnRing<SideRingJob<Number>, Copies>{job, copies, slots};
        }
        else {
            return CopiedItems<Number>{s, state, slots};
        }
    }();

    if constexpr (BY_THREADS) {
        items.release(s.slots);
    }
#pragma unroll 1
    for (int32_t turn = 0;; turn++) {
        const Number *const lower = items.wait();
        const int64_t tile = state.tiles[turn & 3],
                      system = tile * s.width + worker.system;
        const bool there = works && system < job.t.inner;
        [[maybe_unused]] uint32_t ticket = 0;

        if (tile >= job.tiles) {
            break;
        }
        if (BY_THREADS && threadIdx.x == 0 && job.work_queue != nullptr) {
            ticket = atomicAdd(job.work_queue, 1u);
        }
        const Number *const diag = items.wait();
        const Number *const upper = items.wait();

        if (works) {
            worker.eliminate(lower, diag, upper, there);
        }
        if constexpr (BY_THREADS) {
            items.release(3);
            if (threadIdx.x == 0) {
                state.tiles[(turn + 3) & 3] = tile_of_turn(job, turn + 3, ticket);
            }
        }
        else {
            items.leave(3);
        }
        synchronize(s);
        Number *own = nullptr, *next = items.wait(), *last = nullptr;

        if (works) {
            worker.reduce(next, 0);
        }
        synchronize(s);
        const bool solves =
            works && exchange.skip[(turn & 1) * s.width + worker.system] == 0;

#pragma unroll 1
        for (int32_t step = 0; step < sides + IS_CLUSTER; step++) {
            const int32_t side = step - IS_CLUSTER; /* whose y is found in this step */

            last = own;
            own = next;
            if (step + 1 < sides) {
                next = items.wait();
                if (works) {
                    worker.reduce(next, step + 1);
                }
            }
            synchronize(s);
            Number *const slot = IS_CLUSTER ? last : own;

            if (side >= 0) {
                if constexpr (BY_THREADS) {
                    if (solves && there) {
                        worker.substitute(slot, side & 1, side, system);
                    }
                    items.release(1);
                }
                else {
                    if (solves) {
                        worker.substitute(slot, side & 1);
                    }
                    bulk_fence();
                    items.leave(1);
                }
            }
        }
        worker.base = exchange.next_base(worker.base, sides);
    }
    synchronize(s);
}

template <typename Number, bool IS_CLUSTER, int ROW_BYTES>
__device__ __forceinline__ void
join_tiles(const SideRingJob<Number> &job, const RingArrays<Number> &exchange,
           RingState &state, int32_t rank, int32_t thread)
{
    const int32_t sides = job.sides, joiners = job.shape.joiners();
    const bool ends = IS_CLUSTER && thread >= joiners; /* the second set */
    const int32_t system = ends ? thread - joiners : thread;
    const bool joins = system < job.shape.width;
    RingJoiner<Number, IS_CLUSTER, ROW_BYTES> joiner(job, exchange, state, rank,
                                                     joins ? system : 0, 0);

#pragma unroll 1
    for (int32_t turn = 0;; turn++) {
        synchronize(job.shape);
        const int64_t tile = state.tiles[turn & 3];

        if (tile >= job.tiles) {
            break;
        }
        if (ends) {
            joiner.rounds.round++; /* that of the matrices */
        }
        else if (joins) {
            joiner.report(joiner.make(), tile * job.shape.width, turn & 1);
        }
        synchronize(job.shape);
#pragma unroll 1
        for (int32_t step = 0; step < sides + IS_CLUSTER; step++) {
            if constexpr (IS_CLUSTER) {
                if (joins && ends && step > 0) {
                    joiner.end_side(step - 1);
                }
                if (joins && !ends && step < sides) {
                    joiner.begin_side(step);
                }
            }
            else if (joins) {
                joiner.solve(step);
            }
            synchronize(job.shape);
        }
        joiner.base = exchange.next_base(joiner.base, sides);
    }
}

/* Grid: any number of clusters of shape.blocks blocks. Shared memory: the slots, then the
 * RingArrays. */
template <typename Number, bool IS_CLUSTER, int ROW_BYTES, bool BY_THREADS>
__global__ void
__launch_bounds__(ring_threads(sizeof(Number), ROW_BYTES), 1)
    side_ring_kernel(const __grid_constant__ SideRingJob<Number> job)
{
    __shared__ RingState state;
    const SideRing &s = job.shape;
    const int32_t thread = threadIdx.x, warp = __shfl_sync(all_lanes, thread / 32, 0);
    const int32_t rank = IS_CLUSTER ? static_cast<int32_t>(rank_in_cluster()) : 0;
    Number *const slots = reinterpret_cast<Number *>(side_ring_memory);
    const RingArrays<Number> exchange(s, slots + s.slots * s.numbers);

    if (thread == 0) {
        state.init(s.workers() / 32);
        for (int turn = 0; BY_THREADS && turn < 3; turn++) {
            state.tiles[turn] = tile_of_turn(job, turn, 0);
        }
    }
    if (job.work_queue != nullptr) {
        wait_for_last_kernel();
    }
    __syncthreads();
    if (IS_CLUSTER) {
        cluster_sync(); /* every block has started, so that its memory may be written */
    }
    if (!BY_THREADS && warp == s.threads() / 32 - 1) {
        const RingCopies<Number> copies = {job, rank * s.block_rows() - s.before};

        copy_tiles<IS_CLUSTER>(job, state, copies, slots, rank);
    }
    else if (warp >= s.workers() / 32) {
        join_tiles<Number, IS_CLUSTER, ROW_BYTES>(job, exchange, state, rank,
                                                  thread - s.workers());
    }
    else {
        work_on_tiles<Number, IS_CLUSTER, ROW_BYTES, BY_THREADS>(job, exchange, state,
                                                                 slots, rank);
    }
}

template <typename Number>
ps_status
launch_side_ring(const SideRingJob<Number> &job, cudaStream_t stream)
{
    const SideRing &s = job.shape;
    const bool is_cluster = s.blocks > 1;
    const bool is_narrow = s.width * sizeof(Number) == 128;
    void (*const kernel)(const SideRingJob<Number>) =
        s.by_threads ? is_cluster ? side_ring_kernel<Number, true, 256, true>
                                  : side_ring_kernel<Number, false, 256, true>
        : is_narrow ? is_cluster ? side_ring_kernel<Number, true, 128, false>
                                 : side_ring_kernel<Number, false, 128, false>
        : is_cluster ? side_ring_kernel<Number, true, 256, false>
                     : side_ring_kernel<Number, false, 256, false>;

    return launch_tiles(kernel, job, bytes_of_arrays<RingArrays<Number>>(s), stream);
}

} // namespace pysolvers::sides

#endif
