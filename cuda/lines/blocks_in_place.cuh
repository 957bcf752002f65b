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
 * blocks_lines.cuh, and 64, 128 and 256 blocks of 3 take 0.95, 0.91 and 0.83 of that of
 * blocks_tiles.cuh (H200). 34 and 400 blocks of 3 would take 1.1, blocks of 4 1.2 to 1.7: their
 * chunks have few threads, each of which waits for the result before.
 *
 * Stable for block diagonally dominant matrices, as blocks_lines.cuh. Systems with a bad pivot are
 * solved once more from row 0 on if they are reported.
 */
#ifndef PS_CUDA_LINES_BLOCKS_IN_PLACE_CUH
#define PS_CUDA_LINES_BLOCKS_IN_PLACE_CUH

#include "lines/blocks.cuh"
#include "lines/join/levels.cuh"
#include "runtime/copy.cuh"

namespace pysolvers::lines {

using namespace join;

/* Systems of a block of threads in shared memory: of each operand the chunks, a few rows and 16 bytes
 * more, so that vectors of neighbouring lanes lie in different banks. */
template <typename Real, int SIDE> struct BlocksInPlace {
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    using Source = BlockSource<Real, SIDE, false>;
    static constexpr int pad = 16 / sizeof(Real), inputs = 4;
    const BlocksJob<Real> &job;
    Real *const memory;

    static __device__ __forceinline__ constexpr int words_of(int d)
    {
        return d < 3 ? SIDE * SIDE : SIDE;
    }
    static __device__ __forceinline__ constexpr int pitch_of(int d)
    {
        return in_place_rows * words_of(d) + pad;
    }
    __device__ __forceinline__ int chunks() const
    {
        return job.lines.shape.lanes * job.lines.shape.warps;
    }
    /* Chunk `index`, counted through the systems of the block: its rows of operand d. */
    __device__ __forceinline__ Real *chunk_at(int d, int index) const
    {
        return memory + d * (job.lines.systems * chunks() * pitch_of(0)) +
               index * pitch_of(d);
    }

    template <typename Words>
    __device__ __forceinline__ static void get(const Real *from, Words &to)
    {
        if constexpr (sizeof(Words) % 16 == 0) {
            load_vectors(from, to);
        }
        else {
#pragma unroll
            for (int w = 0; w < static_cast<int>(sizeof(Words) / sizeof(Real)); w++) {
                reinterpret_cast<Real *>(&to)[w] = from[w];
            }
        }
    }
    template <typename Words>
    __device__ __forceinline__ static void put(Real *to, const Words &from)
    {
        if constexpr (sizeof(Words) % 16 == 0) {
            store_vectors(to, from);
        }
        else {
#pragma unroll
            for (int w = 0; w < static_cast<int>(sizeof(Words) / sizeof(Real)); w++) {
                to[w] = reinterpret_cast<const Real *>(&from)[w];
            }
        }
    }

    __device__ __forceinline__ Row<Number> row_at(int index, int i) const
    {
        Row<Number> row;

        get(chunk_at(0, index) + i * words_of(0), row.lower);
        get(chunk_at(1, index) + i * words_of(1), row.diag);
        get(chunk_at(2, index) + i * words_of(2), row.upper);
        get(chunk_at(3, index) + i * words_of(3), row.rhs);
        return row;
    }
    __device__ __forceinline__ Spike<Number> spike(int index, int i) const
    {
        Spike<Number> x;

        get(chunk_at(0, index) + i * words_of(0), x.l);
        get(chunk_at(2, index) + i * words_of(2), x.u);
        get(chunk_at(3, index) + i * words_of(3), x.g);
        return x;
    }
    __device__ __forceinline__ void keep(int index, int i, const Spike<Number> &x) const
    {
        put(chunk_at(0, index) + i * words_of(0), x.l);
        put(chunk_at(2, index) + i * words_of(2), x.u);
        put(chunk_at(3, index) + i * words_of(3), x.g);
    }
    __device__ __forceinline__ void keep(int index, int i, const Value &x) const
    {
        put(chunk_at(3, index) + i * words_of(3), x);
    }

    /* The unit of a chunk, its spikes while units are joined, takes the place of the diagonal. */
    static constexpr int at_l = 0, at_u = SIDE * SIDE, at_g = 2 * SIDE * SIDE;
    static_assert(in_place_rows >= 3, "the diagonal has room for a unit");
    __device__ __forceinline__ Real *unit_at(int index) const
    {
        return chunk_at(1, index);
    }
    __device__ __forceinline__ void put_unit(int index, const Spike<Number> &x) const
    {
        put(unit_at(index) + at_l, x.l);
        put(unit_at(index) + at_u, x.u);
        put(unit_at(index) + at_g, x.g);
    }
    __device__ __forceinline__ void keep_y(int index, const Value &y) const
    {
        put(unit_at(index), y);
    }

    /* Eliminate the rows of a chunk, the first of which is row `start` of its system; rows(i) are
     * those that are no pads. */
    template <typename Rows, typename Inverter>
    __device__ __forceinline__ Segment<Number> eliminate(int index, int32_t start,
                                                         int pads, const Rows &rows,
                                                         Inverter &inverter) const
    {
        Spike<Number> above = left_spike<Number>();

        if (start >= 0) { /* without products with the row above */
            const Row<Number> row = rows(0);
            const Number inverse = inverter.invert(row.diag, start);

            above = {inverse * row.rhs, inverse * row.lower, inverse * row.upper};
            keep(index, 0, above);
        }
#pragma unroll 1
        for (int i = 1; i < in_place_rows - 1; i++) {
            if (start + i >= 0) {
                const Row<Number> row = rows(i);
                const Number inverse = inverter.invert(
                    less_product(row.diag, row.lower, above.u), start + i);

                above = {inverse * less_product(row.rhs, row.lower, above.g),
                         inverse * -(row.lower * above.l), inverse * row.upper};
                keep(index, i, above);
            }
        }
        if (start <= -in_place_rows) {
            return {left_spike<Number>(), Number(Real(0)), Number(Real(1)),
                    Number(Real(0)), Value(Real(0))};
        }
        const Row<Number> last = rows(in_place_rows - 1);
        Segment<Number> s;

        s.a = -(last.lower * above.l);
        s.b = less_product(last.diag, last.lower, above.u);
        s.c = last.upper;
        s.d = less_product(last.rhs, last.lower, above.g);
        s.first = pads < in_place_rows - 1 ? above : own_spike<Number>();
#pragma unroll 1
        for (int i = in_place_rows - 3; i >= 0; i--) {
            if (i >= pads) {
                const Spike<Number> x = spike(index, i);

                s.first = {less_product(x.g, x.u, s.first.g),
                           less_product(x.l, x.u, s.first.l), -(x.u * s.first.u)};
            }
        }
        return s;
    }

    __device__ __forceinline__ void substitute(int index, int32_t start,
                                               const Value &y_left, Value y) const
    {
        if (start + in_place_rows - 1 >= 0) {
            keep(index, in_place_rows - 1, y);
        }
#pragma unroll
        for (int i = in_place_rows - 2; i >= 0; i--) {
            if (start + i >= 0) {
                const Spike<Number> x = spike(index, i);

                y = less_product(less_product(x.g, x.l, y_left), x.u, y);
                keep(index, i, y);
            }
        }
    }

    /* Start the copies of the systems from `first` on. */
    __device__ __forceinline__ void load(int64_t first, int systems) const
    {
        walk_systems(first, systems, [&](const Source &source, int slot) {
            const BlockOperand<Real> *const operands[inputs] = {&job.lower, &job.diag,
                                                                &job.upper, &job.rhs};
#pragma unroll
            for (int d = 0; d < inputs; d++) {
                const int words = words_of(d), end = source.rows * words;
                const Real *const from = source.at(*operands[d], 0);
                const auto is_there = [&](int word) {
                    return (d != 0 || word >= words) && (d != 2 || word < end - words);
                };

                walk_run(d, slot, [&](int word, Real *to) {
                    if (SIDE % 2 == 1 && sizeof(Real) == 8 &&
                        is_there(word) != is_there(word + 1)) {
                        copy_async_or_clear<sizeof(Real)>(to, from + word,
                                                          is_there(word));
                        copy_async_or_clear<sizeof(Real)>(to + 1, from + word + 1,
                                                          is_there(word + 1));
                    }
                    else {
                        copy_async_of_line_or_clear<16>(to, from + word, is_there(word));
                    }
                });
            }
        });
        copies_committed();
    }

    /* Store x of the systems that are not in `left`. */
    __device__ __forceinline__ void store(int64_t first, int systems,
                                          const int32_t *left) const
    {
        walk_systems(first, systems, [&](const Source &source, int slot) {
            Real *const to = source.at(job.x, 0);

            if (left[slot] == 0) {
                walk_run(3, slot, [&](int word, const Real *from) {
                    *reinterpret_cast<int4 *>(to + word) =
                        *reinterpret_cast<const int4 *>(from);
                });
            }
        });
    }

  private:
    template <typename Visit>
    __device__ __forceinline__ void walk_systems(int64_t first, int systems,
                                                 const Visit &visit) const
    {
#pragma unroll 1
        for (int slot = 0; slot < systems; slot++) {
            visit(Source(job, first + slot), slot);
        }
    }

    /* visit(number, where it is) for the vectors of operand d that this thread copies. */
    template <typename Visit>
    __device__ __forceinline__ void walk_run(int d, int slot, const Visit &visit) const
    {
        const int words = words_of(d), chunk = words * in_place_rows;
        const int end = job.lines.shape.rows * words, lead = chunks() * chunk - end;
        Real *const base = chunk_at(d, slot * chunks());

#pragma unroll 4
        for (int word = threadIdx.x * pad; word < end;
             word += static_cast<int>(blockDim.x) * pad) {
            const int at = word + lead;

            visit(word, base + at + at / chunk * pad);
        }
    }
};

/* The inverse of a pivot of the join, and the row of the first bad one. */
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
__launch_bounds__(in_place_threads, SIDE == 2 ? 2 : 1)
    blocks_in_place_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    using Tile = BlocksInPlace<Real, SIDE>;
    extern __shared__ int4 shared[];
    __shared__ int32_t bad_row[32]; /* of the systems of the block */
    __shared__ int32_t left[32];    /* those that are not solved here */
    const Shape &shape = job.lines.shape;
    const Tile tile = {job, reinterpret_cast<Real *>(shared)};
    const ThreadPlace<in_place_rows> own(shape, 0);
    const int chunks = shape.chunks();
    const int64_t systems = job.outer * job.inner, step = job.lines.systems;
    const auto wait = [&] {
        if (shape.warps > 1) {
            __syncthreads();
        }
        else {
            __syncwarp();
        }
    };

#pragma unroll 1
    for (int64_t first = blockIdx.x * step; first < systems; first += gridDim.x * step) {
        const int count = static_cast<int>(min(step, systems - first));
        const bool is_used = own.lane < shape.lanes && own.slot < count;
        const int32_t start = is_used ? own.start : -in_place_rows;
        const int chunk = is_used ? own.warp * shape.lanes + own.lane : 0;
        const int index = own.slot * chunks + chunk;
        BadPivot bad_pivot;
        bool not_dominant = false;

        tile.load(first, count);
        if (threadIdx.x < 32) {
            bad_row[threadIdx.x] = BadPivot::none;
            left[threadIdx.x] = 0;
        }
        copies_done();
        wait(); /* the systems are complete */
        bad_pivot.is_definite = job.is_definite;
        FastReciprocal<Number> fast;
        Segment<Number> s = tile.eliminate(
            index, start, own.pads,
            [&](int i) {
                const Row<Number> row = tile.row_at(index, i);

                if (job.checks) {
                    not_dominant =
                        not_dominant || !is_dominant(row.lower, row.diag, row.upper);
                }
                return row;
            },
            fast);

        if (!fast.in_safe_range() || (job.is_definite && !fast.is_definite)) {
            SafeReciprocal<Number> safe = {bad_pivot};
            const BlockSource<Real, SIDE, false> source(job, first + own.slot);

            s = tile.eliminate(
                index, start, own.pads,
                [&](int i) {
                    const ThomasRow<Number, Value> row = source.load(start + i);

                    return Row<Number>{row.lower, row.diag, row.upper, row.rhs};
                },
                safe);
        }
        if (is_used) {
            tile.put_unit(index, s.first);
        }
        wait();
        /* y + l y_{i-reach} + u y_{i+reach} = g of the unit, with zeros beyond the system */
        Spike<Number> y = {};

        if (is_used) {
            const Real *const next = tile.unit_at(chunk + 1 < chunks ? index + 1 : index);
            const int32_t row = start + in_place_rows - 1;
            Number to_next;

            Tile::get(next + Tile::at_l, to_next);
            s.b = less_product(s.b, s.c, to_next);

            const Number p = inverted_pivot(s.b, row, bad_pivot);
            Value g;

            Tile::get(next + Tile::at_g, g);
            y.g = p * less_product(s.d, s.c, g);
            y.l = p * s.a;
            Tile::get(next + Tile::at_u, to_next);
            y.u = p * -(s.c * to_next);
        }
#pragma unroll 1
        for (int reach = 1; reach < chunks; reach *= 2) {
            wait(); /* the units have been read */
            if (is_used) {
                tile.put_unit(index, y);
            }
            wait();
            const bool has_up = is_used && chunk >= reach,
                       has_down = is_used && chunk + reach < chunks;
            const Real *const up = tile.unit_at(has_up ? index - reach : index);
            const Real *const down = tile.unit_at(has_down ? index + reach : index);
            Number pivot(Real(1)), of;
            Value g;

            Tile::get(up + Tile::at_u, of);
            pivot = less_product(pivot, y.l, of);
            Tile::get(down + Tile::at_l, of);
            pivot = less_product(pivot, y.u, of);

            const Number p = inverted_pivot(pivot, start + in_place_rows - 1, bad_pivot);

            Tile::get(up + Tile::at_g, g);
            y.g = less_product(y.g, y.l, g);
            Tile::get(down + Tile::at_g, g);
            y.g = p * less_product(y.g, y.u, g);
            if (2 * reach < chunks) {
                Tile::get(up + Tile::at_l, of);
                y.l = p * -(y.l * of);
                Tile::get(down + Tile::at_u, of);
                y.u = p * -(y.u * of);
            }
        }
        if (is_used && bad_pivot.row != BadPivot::none) {
            atomicMin(&bad_row[own.slot], bad_pivot.row);
        }
        if (is_used &&
            (not_dominant || (job.info != nullptr && bad_pivot.row != BadPivot::none))) {
            atomicOr(&left[own.slot], 1);
        }
        wait(); /* the units have been read */
        if (is_used) {
            tile.keep_y(index, y.g);
        }
        wait();
        if (is_used && chunk == 0 && job.info != nullptr) {
            const BlockSource<Real, SIDE, false> source(job, first + own.slot);

            source.info_at(first + own.slot) = left[own.slot] == 0 ? 0
                                               : job.checks        ? -1
                                                            : bad_row[own.slot] + 1;
        }
        Value y_left(Real(0));

        if (is_used && chunk > 0) {
            Tile::get(tile.unit_at(index - 1), y_left);
        }
        tile.substitute(index, start, y_left, y.g);
        wait(); /* x is complete */
        tile.store(first, count, left);
        wait(); /* and has been read */
    }
}

/* Grid: threads for outer * inner systems, of which those with a bad pivot are solved from row 0 on,
 * which reports their first one. */
template <typename Real, int SIDE>
__global__ void
__launch_bounds__(blocks_threads)
    blocks_again_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;

    if (index < job.outer * job.inner) {
        const BlockSource<Real, SIDE, false> source(job, index);

        if (source.info_at(index) > 0) {
            solve_by_blocks(job, source, index,
                            kept_of(job, index, source.rows * (SIDE * SIDE + SIDE)));
        }
    }
}

} // namespace pysolvers::lines

#endif
