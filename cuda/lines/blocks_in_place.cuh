/* blocks_in_place.cuh - the systems of blocks.cuh divided into chunks (join/segment.cuh), in shared
 * memory, where each eliminated row takes the place of the row.
 *
 * A block of threads has whole systems in shared memory, 3 k^2 + k numbers for a block row of side
 * k, which are loaded and stored once: 3 k^2 + 2 k words. A lane eliminates the rows of a chunk: the
 * spike of a row, two blocks and a column, takes the place of `lower`, `upper` and `rhs`. The units
 * of the chunks, in the place of `diag`, are joined by parallel cyclic reduction, and x takes the
 * place of `rhs`. About 9 k^3 multiplications for a row and 6 k^3 for each level of the join of a
 * chunk. While one block of a multiprocessor waits for its rows, others compute.
 *
 * Why not the levels of join/levels.cuh: their chunks and units are in registers, those of the
 * neighbours too, so that few threads fit and loads wait for them. In float64 systems of 34, 64, 128,
 * 256, 400 and 1000 blocks of 2 take 0.78, 0.88, 0.89, 0.88, 0.75 and 0.71 of the time of
 * blocks_lines.cuh, and 64, 128 and 256 blocks of 3 take 0.90, 0.85 and 0.78 of that of
 * blocks_tiles.cuh (H200). 34 and 400 blocks of 3 would take 1.1, blocks of 4 1.2 to 1.7: their
 * chunks have few threads, each of which waits for the result before. In float32 64, 256 and 1000
 * blocks of 2 take 0.86, 0.84 and 0.33 of the time, of 3 0.67, 0.45 and 0.44, and 128, 256 and 1000
 * blocks of 4 0.94, 0.95 and 0.57.
 *
 * Blocks of 2 in float64 and of 3 and 4 in float32 have their spikes in registers. The blocks before and after
 * the diagonal of the next systems are then copied during the join: 0.9 of the time with 64 and 256 blocks
 * of 2 (36: 1.02), 0.91 to 0.96 with 64 to 1000 blocks of 3, 0.96, 0.97 and 0.89 with 128, 256 and 1000 blocks of
 * 4. Blocks of 3 in float64 would take 1.08 with 255 registers, of 2 in float32 1.02 to 1.07.
 *
 * Blocks of 3 do not begin at vectors, but are read as vectors of 16 bytes with the numbers around them:
 * 0.97 of the time of reads of single numbers in float64, which take two turns of the banks.
 *
 * Stable for block diagonally dominant matrices, as blocks_lines.cuh. Systems with a bad pivot are
 * solved from row 0 on, one thread each, if they are reported.
 */
#ifndef PS_CUDA_LINES_BLOCKS_IN_PLACE_CUH
#define PS_CUDA_LINES_BLOCKS_IN_PLACE_CUH

#include "lines/blocks.cuh"
#include "lines/system_tiles.cuh"
#include "runtime/copy.cuh"

namespace pysolvers::lines {

using namespace join;

/* The chunks of the systems of a block of threads in shared memory. */
template <typename Real, int SIDE> struct BlocksInPlace {
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    using Source = BlockSource<Real, SIDE, false>;
    static constexpr int rows = in_place_rows, vector = 16 / sizeof(Real);
    /* Blocks and columns of odd sides are read as vectors of 16 bytes with the numbers around them;
     * pitches of the blocks and columns of spikes. */
    static constexpr bool is_odd = SIDE % 2 == 1;
    static constexpr int pitch = is_odd ? (SIDE * SIDE + vector - 1) / vector * vector
                                        : SIDE * SIDE,
                         pitch_rhs =
                             is_odd ? (SIDE + vector - 1) / vector * vector : SIDE;
    static_assert(
        2 * pitch <= 3 * SIDE * SIDE && 2 * pitch_rhs <= 3 * SIDE,
        "a spike takes the place of its row and of the next one, which is loaded");
    enum Operand { LOWER, DIAG, UPPER, RHS };
    /* Whether spikes stay in registers: the blocks before and after the diagonal of the next systems
     * are then copied during the join. */
    static constexpr bool keeps = SIDE * sizeof(Real) > 8 && SIDE * sizeof(Real) <= 16;
    static constexpr unsigned all = 1u << LOWER | 1u << DIAG | 1u << UPPER | 1u << RHS,
                              early = keeps ? 1u << LOWER | 1u << UPPER : 0;
    const BlocksJob<Real> &job;
    Real *const memory;
    /* of this thread: its first vector of a diagonal, and of rhs, from the first one of a system */
    int place, place_rhs;

    __device__ __forceinline__ BlocksInPlace(const BlocksJob<Real> &all, Real *shared)
        : job(all), memory(shared), place(place_of(LOWER, threadIdx.x * vector)),
          place_rhs(place_of(RHS, threadIdx.x * vector))
    {
    }

    static __device__ __forceinline__ constexpr int words_of(int d)
    {
        return d < RHS ? SIDE * SIDE : SIDE;
    }
    static __device__ __forceinline__ constexpr int pitch_of(int d)
    {
        return in_place_pitch(rows, words_of(d), sizeof(Real));
    }
    /* of a system, in this block of threads */
    __device__ __forceinline__ int chunks() const
    {
        return job.lines.shape.lanes * job.lines.shape.warps;
    }
    /* The numbers of operand d of chunk `index`, counted through the systems. */
    __device__ __forceinline__ Real *chunk_at(int d, int index) const
    {
        return memory + d * (job.lines.systems * chunks() * pitch_of(0)) +
               index * pitch_of(d);
    }
    /* The unit of a chunk, its spikes while units are joined, takes the place of the diagonal. */
    static_assert(2 * pitch + pitch_rhs <= rows * SIDE * SIDE, "a unit has room");
    __device__ __forceinline__ Real *l_of_unit(int index) const
    {
        return chunk_at(DIAG, index);
    }
    __device__ __forceinline__ Real *u_of_unit(int index) const
    {
        return chunk_at(DIAG, index) + pitch;
    }
    __device__ __forceinline__ Real *g_of_unit(int index) const
    {
        return chunk_at(DIAG, index) + 2 * pitch;
    }

    /* Read what begins `offset` numbers after a vector; a compile-time constant if SIDE is odd. */
    template <typename Words>
    static __device__ __forceinline__ void get(const Real *from, Words &to,
                                               int offset = 0)
    {
        constexpr int count = sizeof(Words) / sizeof(Real);
        Real *const words = reinterpret_cast<Real *>(&to);

        if constexpr (count % vector == 0) {
            load_vectors(from + offset, to);
        }
        else if constexpr (is_odd) {
            const int lead = offset % vector;

#pragma unroll
            for (int v = 0; v < (lead + count + vector - 1) / vector; v++) {
                const int4 four = reinterpret_cast<const int4 *>(from + offset - lead)[v];
                Real of[vector];

                memcpy(of, &four, 16);
#pragma unroll
                for (int w = 0; w < vector; w++) {
                    const int k = v * vector + w - lead;

                    if (k >= 0 && k < count) {
                        words[k] = of[w];
                    }
                }
            }
        }
        else {
#pragma unroll
            for (int w = 0; w < count; w++) {
                words[w] = from[offset + w];
            }
        }
    }
    template <typename Words>
    static __device__ __forceinline__ void put(Real *to, const Words &from)
    {
        constexpr int count = sizeof(Words) / sizeof(Real);
        const Real *const words = reinterpret_cast<const Real *>(&from);

        if constexpr (count % vector == 0) {
            store_vectors(to, from);
        }
        else if constexpr (is_odd) {
            struct alignas(16) Padded {
                Real at[(count + vector - 1) / vector * vector];
            } padded = {};

#pragma unroll
            for (int w = 0; w < count; w++) {
                padded.at[w] = words[w];
            }
            store_vectors(to, padded);
        }
        else {
#pragma unroll
            for (int w = 0; w < count; w++) {
                to[w] = words[w];
            }
        }
    }

    __device__ __forceinline__ Row<Number> row(int index, int i) const
    {
        Row<Number> row;

        get(chunk_at(LOWER, index), row.lower, i * words_of(LOWER));
        get(chunk_at(DIAG, index), row.diag, i * words_of(DIAG));
        get(chunk_at(UPPER, index), row.upper, i * words_of(UPPER));
        get(chunk_at(RHS, index), row.rhs, i * words_of(RHS));
        return row;
    }
    __device__ __forceinline__ Spike<Number> spike(int index, int i) const
    {
        Spike<Number> x;

        get(chunk_at(LOWER, index) + i * pitch, x.l);
        get(chunk_at(UPPER, index) + i * pitch, x.u);
        get(chunk_at(RHS, index) + i * pitch_rhs, x.g);
        return x;
    }
    __device__ __forceinline__ void keep(int index, int i, const Spike<Number> &x) const
    {
        put(chunk_at(LOWER, index) + i * pitch, x.l);
        put(chunk_at(UPPER, index) + i * pitch, x.u);
        put(chunk_at(RHS, index) + i * pitch_rhs, x.g);
    }
    __device__ __forceinline__ void put_unit(int index, const Spike<Number> &x) const
    {
        put(l_of_unit(index), x.l);
        put(u_of_unit(index), x.u);
        put(g_of_unit(index), x.g);
    }

    /* The spikes of a chunk that stay in registers. */
    struct Kept {
        Spike<Number> at[keeps ? rows - 1 : 1];
    };

    /* Eliminate the rows of a chunk, the first of which is row `start` of its system; rows_of(i) are
     * its rows. */
    template <typename Rows, typename Inverter>
    __device__ __forceinline__ Segment<Number>
    eliminate(int index, int32_t start, const Rows &rows_of, Inverter &inverter,
              Kept &kept) const
    {
        if (start <= -rows) {
            return {left_spike<Number>(), Number(Real(0)), Number(Real(1)),
                    Number(Real(0)), Value(Real(0))};
        }
        Spike<Number> above = left_spike<Number>();
        Row<Number> row = rows_of(0);
        const auto next = [&](int i) {
            const bool is_pad = start + i - 1 < 0;

            row = rows_of(i);
            if constexpr (keeps) {
                kept.at[i - 1] = above;
            }
            else {
                if (!is_pad) { /* after the load: the spike reaches into the place of this row */
                    keep(index, i - 1, above);
                }
            }
        };

        if (start >= 0) { /* without products with the row above */
            const Number inverse = inverter.invert(row.diag, start);

            above = {inverse * row.rhs, inverse * row.lower, inverse * row.upper};
        }
        next(1);
#pragma unroll(is_odd || keeps ? rows : 1)
        for (int i = 1; i < rows - 1; i++) {
            if (start + i >= 0) {
                const Number inverse = inverter.invert(
                    less_product(row.diag, row.lower, above.u), start + i);

                above = {inverse * less_product(row.rhs, row.lower, above.g),
                         inverse * -(row.lower * above.l), inverse * row.upper};
            }
            next(i + 1);
        }
        Segment<Number> s;

        s.a = -(row.lower * above.l);
        s.b = less_product(row.diag, row.lower, above.u);
        s.c = row.upper;
        s.d = less_product(row.rhs, row.lower, above.g);
        s.first = start + rows - 2 >= 0 ? above : own_spike<Number>();
        if constexpr (keeps) {
#pragma unroll
            for (int i = rows - 3; i >= 0; i--) {
                if (i >= -start) {
                    const Spike<Number> &x = kept.at[i];

                    s.first = {less_product(x.g, x.u, s.first.g),
                               less_product(x.l, x.u, s.first.l), -(x.u * s.first.u)};
                }
            }
            return s;
        }
#pragma unroll 1
        for (int i = rows - 3; i >= max(0, -start); i--) {
            const Spike<Number> x = spike(index, i);

            s.first = {less_product(x.g, x.u, s.first.g),
                       less_product(x.l, x.u, s.first.l), -(x.u * s.first.u)};
        }
        return s;
    }

    /* Put x of a chunk into the place of rhs. */
    __device__ __forceinline__ void substitute(int index, int32_t start,
                                               const Value &y_left, const Value &y,
                                               const Kept &kept) const
    {
        struct alignas(16) Rows {
            Value at[rows];
        } x = {};

        if (start <= -rows) {
            return;
        }
        x.at[rows - 1] = y;
#pragma unroll
        for (int i = rows - 2; i >= 0; i--) {
            if (start + i >= 0) {
                const Spike<Number> of = keeps ? kept.at[keeps ? i : 0] : spike(index, i);

                x.at[i] =
                    less_product(less_product(of.g, of.l, y_left), of.u, x.at[i + 1]);
            }
        }
        store_vectors(chunk_at(RHS, index), x);
    }

    /* Start the copies of the operands in the set `which` of the systems from `first` on; blocks that the
     * matrix does not have become 0. */
    __device__ __forceinline__ void load(int64_t first, int systems, unsigned which) const
    {
#pragma unroll 1
        for (int slot = 0; slot < systems; slot++) {
            const Source source(job, first + slot);
            const BlockOperand<Real> *const operands[] = {&job.lower, &job.diag,
                                                          &job.upper, &job.rhs};

#pragma unroll
            for (int d = LOWER; d <= RHS; d++) {
                if ((which >> d & 1u) != 0) {
                    load(source.at(*operands[d], 0), d, slot);
                }
            }
        }
        copies_committed();
    }

    /* Store x of the systems that are not in `left`. */
    __device__ __forceinline__ void store(int64_t first, int systems,
                                          const int32_t *left) const
    {
#pragma unroll 1
        for (int slot = 0; slot < systems; slot++) {
            Real *const to = Source(job, first + slot).at(job.x, 0);

            if (left[slot] == 0) {
                walk(RHS, slot, job.rows * SIDE, [&](int word, const Real *from) {
                    *reinterpret_cast<int4 *>(to + word) =
                        *reinterpret_cast<const int4 *>(from);
                });
            }
        }
    }

  private:
    /* Start the copies of an operand of a system. */
    __device__ __forceinline__ void load(const Real *from, int d, int slot) const
    {
        const int words = words_of(d), end = job.rows * words;
        /* numbers that are copied as vectors; a few others are at one of their ends */
        const int first = d == LOWER ? (words + vector - 1) / vector * vector : 0,
                  beyond = d == UPPER ? (end - words) / vector * vector : end;
        Real *const to = chunk_at(d, slot * chunks());
        const int own = threadIdx.x;
        const auto copy_rest = [&](int begin, int count) {
            if (own < count) {
                copy_async<sizeof(Real)>(to + place_of(d, begin + own),
                                         from + begin + own);
            }
        };
        const auto clear = [&](int begin) {
            if (own < words) {
                to[place_of(d, begin + own)] = 0;
            }
        };

        walk(d, slot, beyond, [&](int word, Real *at) {
            if (d != LOWER || word >= first) {
                copy_async_of_line<16>(at, from + word);
            }
        });
        if (d == LOWER) {
            copy_rest(words, first - words);
            clear(0);
        }
        if (d == UPPER) {
            copy_rest(beyond, end - words - beyond);
            clear(end - words);
        }
    }

    /* Where number `word` of operand d of a system is, from its first chunk on. */
    __device__ __forceinline__ int place_of(int d, int word) const
    {
        const int chunk = rows * words_of(d);
        const int at = word + (chunks() * rows - job.lines.shape.rows) * words_of(d);

        return at + at / chunk * (pitch_of(d) - chunk);
    }

    /* visit(number, where it is) for the vectors before `beyond` of operand d that this thread copies:
     * neighbouring threads have neighbours in memory. */
    template <typename Visit>
    __device__ __forceinline__ void walk(int d, int slot, int beyond,
                                         const Visit &visit) const
    {
        const int chunk = rows * words_of(d), pitch = pitch_of(d), gap = pitch - chunk;
        const int warps = job.lines.shape.warps, step = 32 * vector * warps;
        const int whole = step / chunk, rest = 32 * vector % chunk * warps % chunk;
        const int first = d == RHS ? place_rhs : place;
        Real *at = chunk_at(d, slot * chunks()) + first;
        int in_chunk = first % pitch;

#pragma unroll 4
        for (int word = threadIdx.x * vector; word < beyond; word += step) {
            visit(word, at);
            at += step + whole * gap;
            if (32 * vector % chunk != 0) {
                in_chunk += rest;
                if (in_chunk >= chunk) {
                    in_chunk -= chunk;
                    at += gap;
                }
            }
        }
    }
};

/* The inverse of a pivot of the join, and the row of the first bad one of this thread. */
template <typename Real, int SIDE>
__device__ __forceinline__ Block<Real, SIDE>
inverted_pivot(const Block<Real, SIDE> &pivot, int32_t row, BadPivot &bad)
{
    bool is_bad = false;
    const Block<Real, SIDE> inverse = inverse_of(pivot, &is_bad);

    if (is_bad || (bad.is_definite && !has_positive_eigenvalues(pivot))) {
        bad.row = min(bad.row, row);
    }
    return inverse;
}

/* Grid: any number of blocks, each with some systems after the other. */
template <typename Real, int SIDE>
__global__ void
__launch_bounds__(in_place_threads, SIDE == 2 && sizeof(Real) == 4 ? 2 : 1)
    blocks_in_place_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    using Rows = BlocksInPlace<Real, SIDE>;
    extern __shared__ int4 shared[];
    __shared__ int32_t left[32]; /* systems of the block that are not solved here */
    const Rows rows(job, reinterpret_cast<Real *>(shared));
    const int64_t systems = job.outer * job.inner;
    const int64_t to_next =
        gridDim.x * int64_t(job.lines.systems); /* tile of the block */

    for_system_tiles<Rows::rows>(job, [&](const SystemTile<Rows::rows> &tile) {
        const int chunks = rows.chunks(), chunk = tile.chunk();
        const int slot = tile.self.slot, index = slot * chunks + chunk;
        const int32_t start = tile.self.start, last = start + Rows::rows - 1;
        const bool is_used = tile.is_used;
        const BlockSource<Real, SIDE, false> source(job, tile.first + slot);
        BadPivot bad_pivot;
        bool not_dominant = false;
        typename Rows::Kept kept;

        rows.load(tile.first, tile.count,
                  tile.first < to_next ? Rows::all : Rows::all & ~Rows::early);
        if (threadIdx.x < 32) {
            left[threadIdx.x] = 0;
        }
        copies_done();
        tile.wait(); /* the systems are complete */
        bad_pivot.is_definite = job.is_definite;
        FastReciprocal<Number> fast;
        Segment<Number> s = rows.eliminate(
            index, start,
            [&](int i) {
                const Row<Number> row = rows.row(index, i);

                if (job.checks && start + i >= 0) {
                    not_dominant =
                        not_dominant || !is_dominant(row.lower, row.diag, row.upper);
                }
                return row;
            },
            fast, kept);

        if (!fast.in_safe_range() || (job.is_definite && !fast.is_definite)) {
            SafeReciprocal<Number> safe = {bad_pivot};

            s = rows.eliminate(
                index, start,
                [&](int i) {
                    const ThomasRow<Number, Value> row = source.load(max(start + i, 0));

                    return Row<Number>{row.lower, row.diag, row.upper, row.rhs};
                },
                safe, kept);
        }
        if (is_used) {
            rows.put_unit(index, s.first);
        }
        tile.wait();
        if (Rows::keeps && tile.first + to_next < systems) {
            const int64_t next = tile.first + to_next;

            rows.load(next,
                      static_cast<int>(min(systems - next, int64_t(job.lines.systems))),
                      Rows::early);
        }
        /* y + l y_{i-reach} + u y_{i+reach} = g of the unit, with zeros beyond the system */
        Spike<Number> y = {};

        if (is_used) {
            const int next = chunk + 1 < chunks ? index + 1 : index;
            Number of;
            Value g;

            Rows::get(rows.l_of_unit(next), of);
            s.b = less_product(s.b, s.c, of);

            const Number p = inverted_pivot(s.b, last, bad_pivot);

            Rows::get(rows.g_of_unit(next), g);
            y.g = p * less_product(s.d, s.c, g);
            y.l = p * s.a;
            Rows::get(rows.u_of_unit(next), of);
            y.u = p * -(s.c * of);
        }
#pragma unroll 1
        for (int reach = 1; reach < chunks; reach *= 2) {
            tile.wait(); /* the units have been read */
            if (is_used) {
                rows.put_unit(index, y);
            }
            tile.wait();
            const int up = is_used && chunk >= reach ? index - reach : index,
                      down = is_used && chunk + reach < chunks ? index + reach : index;
            Number pivot(Real(1)), of;
            Value g;

            Rows::get(rows.u_of_unit(up), of);
            pivot = less_product(pivot, y.l, of);
            Rows::get(rows.l_of_unit(down), of);
            pivot = less_product(pivot, y.u, of);

            const Number p = inverted_pivot(pivot, last, bad_pivot);

            Rows::get(rows.g_of_unit(up), g);
            y.g = less_product(y.g, y.l, g);
            Rows::get(rows.g_of_unit(down), g);
            y.g = p * less_product(y.g, y.u, g);
            if (2 * reach < chunks) {
                Rows::get(rows.l_of_unit(up), of);
                y.l = p * -(y.l * of);
                Rows::get(rows.u_of_unit(down), of);
                y.u = p * -(y.u * of);
            }
        }
        if (is_used &&
            (not_dominant || (job.info != nullptr && bad_pivot.row != BadPivot::none))) {
            atomicOr(&left[slot], 1);
        }
        tile.wait(); /* the units have been read */
        if (is_used) {
            Rows::put(rows.g_of_unit(index), y.g);
        }
        tile.wait();
        if (is_used && chunk == 0 && job.info != nullptr) {
            /* the first bad row is found in sequence */
            source.info_at(tile.first + slot) = left[slot] == 0 ? 0 : job.checks ? -1 : 1;
        }
        if (is_used) {
            Value y_left(Real(0));

            if (chunk > 0) {
                Rows::get(rows.g_of_unit(index - 1), y_left);
            }
            rows.substitute(index, start, y_left, y.g, kept);
        }
        tile.wait(); /* x is complete */
        rows.store(tile.first, tile.count, left);
        tile.wait(); /* and has been read */
    });
}

} // namespace pysolvers::lines

#endif
