/* blocks_tiles.cuh - the systems of blocks.cuh whose rows are neighbours in memory, through
 * tiles in shared memory.
 *
 * A warp eliminates 16 systems, each from both ends by two lanes: the row where they meet is
 * eliminated last. Another warp copies tiles of a few rows to shared memory, in the order of the
 * memory. The last eliminated rows of a lane stay in shared memory, so many that a multiprocessor has
 * a few blocks: 5 k^2 + 4 k words for a row of blocks of side k, of which 2 k^2 + 2 k are those of
 * eliminated rows that do not stay.
 *
 * Why not the copiers of partition/tile.cuh and shared/shared_copier.cuh: the former copies
 * the four operands of tridiagonal systems by whole blocks, the latter right-hand sides only.
 *
 * 50000 systems of 64 rows in float64 take 0.63 of the time of one warp that eliminates and copies
 * 32 systems from row 0 on for blocks of 3, and 0.81 of that of blocks.cuh for blocks of 4 (H200).
 * Neighbouring systems take less time by blocks.cuh.
 */
#ifndef PS_CUDA_LINES_BLOCKS_TILES_CUH
#define PS_CUDA_LINES_BLOCKS_TILES_CUH

#include "lines/blocks.cuh"
#include "runtime/copy.cuh"

namespace pysolvers::lines {

/* The tiles of a warp. Lanes 0 .. 15 have the rows of 16 systems from row 0 on, lanes 16 .. 31 those
 * from the last one on: row i of a lane is the i-th from its end. */
template <typename Real, int SIDE, bool IS_BANDS> struct BlockTiles {
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    static constexpr BlocksTile tile = blocks_tile(IS_BANDS ? 0 : SIDE, sizeof(Real));
    static constexpr int matrices = IS_BANDS ? 5 : 3, stage = 32 * tile.words;
    /* numbers of a tile and lane: of a diagonal, and of right-hand sides */
    static constexpr int run = tile.rows * (IS_BANDS ? SIDE : SIDE * SIDE),
                         run_rhs = tile.rows * SIDE;
    static constexpr int copies = run / tile.copied, copies_rhs = run_rhs / tile.copied;
    const BlocksJob<Real> &job;
    const BlockSource<Real, SIDE, IS_BANDS> &source;
    Real *const memory;
    const int lane = threadIdx.x % 32;
    const Real *from[matrices * copies + copies_rhs]; /* what this lane copies next */
    Real *to;                                         /* row 0 of x of this system */

    __device__ __forceinline__ BlockTiles(const BlocksJob<Real> &all,
                                          const BlockSource<Real, SIDE, IS_BANDS> &system,
                                          Real *shared)
        : job(all), source(system), memory(shared), to(system.at(all.x, 0))
    {
        walk([&](int d, int pass, int owner, int number) {
            const bool is_last = owner >= tile_systems;
            const int32_t row = row_of(is_last, number / block_words(d));
            const int word = number % block_words(d);
            const Real *own;
            int64_t offset;

            if constexpr (IS_BANDS) {
                own = d < 5 ? job.bands[d % 5].system(source.j, source.k)
                            : source.at(job.rhs, 0);
                offset = (2 * row + word - source.lead) * step_of(d);
            }
            else {
                const BlockOperand<Real> &first = operand(d), &last = operand(2 - d);
                const BlockOperand<Real> &in = is_last && d < 3 ? last : first;

                own = source.at(lane >= tile_systems && d < 3 ? last : first, 0);
                offset = row * in.row + (d < 3 ? word / SIDE : word) * in.down +
                         (d < 3 ? word % SIDE * in.across : 0);
            }
            from[d * copies + pass] = of(own, owner) + offset;
        });
    }

    /* Start the copies of the next tile, which begins at row `first`; numbers that the matrix
     * does not have become 0. */
    __device__ __forceinline__ void load(int32_t first, int slot)
    {
        Real *const at = memory + slot * stage;

        walk([&](int d, int pass, int owner, int number) {
            const bool is_last = owner >= tile_systems;
            const int32_t i = first + number / block_words(d);
            const Real *&next = from[d * copies + pass];
            const int pitch = d < matrices ? tile.matrix : tile.rhs;
            int64_t step;
            bool is_there;

            if constexpr (IS_BANDS) {
                const int32_t row =
                    2 * row_of(is_last, i) + number % block_words(d) - source.lead;
                const int least = d < 5 ? max(2 - d, 0) : 0,
                          beyond = d < 5 ? max(d - 2, 0) : 0;

                step = 2 * step_of(d);
                is_there = row >= least && row < job.rows - beyond &&
                           (d == 5 || job.bands[d % 5].data != nullptr);
            }
            else {
                step = (is_last && d < 3 ? operand(2 - d) : operand(d)).row;
                is_there = i < source.rows && (d != 0 || i > 0) &&
                           (d != 2 || i + 1 < source.rows);
            }
            copy_async_of_line_or_clear<tile.copied * sizeof(Real)>(
                at + d * 32 * tile.matrix + owner * pitch + number, next, is_there);
            next += (is_last ? -tile.rows : tile.rows) * step;
        });
    }

    /* Row `r` of the tile that begins at row `first`. */
    __device__ __forceinline__ ThomasRow<Number, Value> row(int32_t first, int r,
                                                            int slot) const
    {
        const Real *const at = memory + slot * stage;
        const bool is_last = lane >= tile_systems;
        const bool is_first_row = row_of(is_last, first + r) == 0 && source.lead == 1;
        ThomasRow<Number, Value> row;

        if constexpr (tile.copied > 1) {
            load_vectors(at + lane * tile.matrix, row.lower);
            load_vectors(at + (32 + lane) * tile.matrix, row.diag);
            load_vectors(at + (64 + lane) * tile.matrix, row.upper);
            load_vectors(at + 96 * tile.matrix + lane * tile.rhs, row.rhs);
        }
        else {
            row = row_of_entries<ThomasRow<Number, Value>, SIDE,
                                 IS_BANDS>(is_first_row, [&](int d, int e) {
                const int pitch = d < matrices ? tile.matrix : tile.rhs;

                return at[d * 32 * tile.matrix + lane * pitch + r * block_words(d) + e];
            });
        }
        if (IS_BANDS && is_last) {
            const Number lower = row.lower;

            row.lower = row.upper;
            row.upper = lower;
        }
        return row;
    }

    /* Put row `r` of a tile of x into shared memory. */
    __device__ __forceinline__ void put(int r, const Value &x) const
    {
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
            memory[lane * tile.rhs + r * SIDE + p] = x.at[p];
        }
    }

    /* Store the tile of x that begins at row `first`, of the lanes in `stored`; those of the
     * first rows have rows up to `middle`, the others the rest. */
    __device__ __forceinline__ void store(int32_t first, int32_t middle,
                                          unsigned stored) const
    {
#pragma unroll
        for (int pass = 0; pass < run_rhs; pass++) {
            const int at = pass * 32 + lane, owner = at / run_rhs, e = at % run_rhs;
            const bool is_last = owner >= tile_systems;
            const int32_t i = first + e / SIDE, row = row_of(is_last, i);
            const int64_t scalar = IS_BANDS ? 2 * row + e % SIDE - source.lead : row;
            Real *const x = of(to, owner);

            if (i < (is_last ? source.rows - middle - 1 : middle + 1) && scalar >= 0 &&
                (stored >> owner & 1u) != 0) {
                x[scalar * job.x.row + (IS_BANDS ? 0 : e % SIDE * job.x.down)] =
                    memory[owner * tile.rhs + e];
            }
        }
    }

  private:
    __device__ __forceinline__ int32_t row_of(bool is_last, int32_t i) const
    {
        return is_last ? source.rows - 1 - i : i;
    }

    /* Operand d: a diagonal or, after them, rhs. */
    __device__ __forceinline__ const BlockOperand<Real> &operand(int d) const
    {
        return d == 0 ? job.lower : d == 1 ? job.diag : d == 2 ? job.upper : job.rhs;
    }

    __device__ __forceinline__ int64_t step_of(int d) const
    {
        return IS_BANDS && d < 5 ? job.bands[d % 5].row : job.rhs.row;
    }

    /* Numbers of a block row. */
    static __device__ __forceinline__ constexpr int block_words(int d)
    {
        return IS_BANDS || d == matrices ? SIDE : SIDE * SIDE;
    }

    /* visit(operand, pass, lane, number) for what this lane copies of a tile, which are numbers of
     * that lane: neighbouring lanes have neighbours in memory. */
    template <typename Visit>
    __device__ __forceinline__ void walk(const Visit &visit) const
    {
#pragma unroll
        for (int d = 0; d <= matrices; d++) {
            const int count = d < matrices ? copies : copies_rhs;

#pragma unroll
            for (int pass = 0; pass < count; pass++) {
                const int at = pass * 32 + lane;

                visit(d, pass, at / count, at % count * tile.copied);
            }
        }
    }

    /* The pointer of another lane. */
    template <typename Pointer>
    static __device__ __forceinline__ Pointer of(Pointer own, int lane)
    {
        return reinterpret_cast<Pointer>(
            __shfl_sync(all_lanes, reinterpret_cast<unsigned long long>(own), lane));
    }
};

/* Grid: 64 threads for 16 of outer * inner systems: a warp eliminates, the other one copies. */
template <typename Real, int SIDE, bool IS_BANDS>
__global__ void
__launch_bounds__(tile_threads)
    blocks_tiles_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    using Tiles = BlockTiles<Real, SIDE, IS_BANDS>;
    constexpr BlocksTile tile = Tiles::tile;
    extern __shared__ int4 shared[];
    Real *const memory = reinterpret_cast<Real *>(shared);
    /* eliminated rows: those that are loaded again, after a tile of x, and those that stay */
    const int lane = threadIdx.x % 32;
    Real *const again = memory + 32 * tile.rhs + lane, *const near =
                                                           memory +
                                                           tile.stages * Tiles::stage +
                                                           lane;
    const int64_t systems = job.outer * job.inner;
    const int slot = lane % tile_systems;
    const bool is_last = lane >= tile_systems;
    const int64_t own = static_cast<int64_t>(blockIdx.x) * tile_systems + slot;
    const int64_t index =
        min(own, systems - 1); /* lanes beyond the systems: the last one */
    const BlockSource<Real, SIDE, IS_BANDS> source(job, index);
    Tiles tiles(job, source, memory);
    const int32_t middle = source.rows / 2; /* row of a first lane, after both parts */
    const int32_t count = is_last ? source.rows - 1 - middle : middle + 1;
    Sweep<Number, Value> sweep = {};
    Real *const region = job.kept + static_cast<int64_t>(blockIdx.x) * source.rows *
                                        tile.row * tile_systems;
    Real *const kept = region + lane;
    bool is_dominated = true;

    const auto load_tile = [&](int32_t k) {
        if (k * tile.rows <= middle) {
            tiles.load(k * tile.rows, k % tile.stages);
        }
        copies_committed();
    };

    if (threadIdx.x >= 32) {
#pragma unroll 1
        for (int k = 0; k < tile.stages - 1; k++) {
            load_tile(k);
        }
#pragma unroll 1
        for (int32_t k = 0; k * tile.rows <= middle; k++) {
            copies_done_but<tile.stages - 2>();
            __syncthreads(); /* tile k is complete, and the one before it has been read */
            load_tile(k + tile.stages - 1);
        }
        return;
    }
#pragma unroll 1
    for (int32_t k = 0; k * tile.rows <= middle; k++) {
        __syncthreads();
#pragma unroll 1
        for (int r = 0; r < tile.rows && k * tile.rows + r <= middle; r++) {
            const int32_t i = k * tile.rows + r;
            ThomasRow<Number, Value> row = tiles.row(k * tile.rows, r, k % tile.stages);

            if (job.checks && i < count) {
                is_dominated =
                    is_dominated && is_dominant(row.lower, row.diag, row.upper);
            }
            if (i == middle) {
                const int other = lane ^ tile_systems;

                row.diag = row.diag - row.upper * shuffle(all_lanes, sweep.c, other);
                row.rhs = row.rhs - row.upper * shuffle(all_lanes, sweep.y, other);
            }
            if (i < count) {
                if (job.is_definite && sweep.info == 0 &&
                    !is_positive_definite(row.diag - row.lower * sweep.c)) {
                    sweep.info = 1;
                }
                sweep.template eliminate<false>(row, Number::zero(), i);
            }
            if (i < middle) {
                Real *const to =
                    (i < job.far ? kept + i * tile.row * kept_step
                                 : near + (i - job.far) * tile.row * kept_step);

#pragma unroll
                for (int p = 0; p < SIDE; p++) {
#pragma unroll
                    for (int q = 0; q < SIDE; q++) {
                        to[(p * SIDE + q) * kept_step] = sweep.c.at[p][q];
                    }
                    to[(SIDE * SIDE + p) * kept_step] = sweep.y.at[p];
                }
            }
        }
    }
    const auto of_both = [&](bool flag) {
        const unsigned lanes = __ballot_sync(all_lanes, flag);

        return ((lanes | lanes >> tile_systems) >> slot & 1u) != 0;
    };
    const bool is_bad = of_both(sweep.info != 0);
    const bool is_left = job.checks && (of_both(!is_dominated) || is_bad);
    const unsigned stored =
        __ballot_sync(all_lanes, own < systems && !is_left && !is_bad);

    if (job.info != nullptr && own < systems && !is_last) {
        job.info[job.is_swapped ? source.k * job.outer + source.j : index] =
            is_left ? -1 : 0;
    }
    const auto load = [&](int32_t i) {
        if (i >= 0) {
#pragma unroll
            for (int w = 0; w < tile.row; w++) {
                copy_async<sizeof(Real)>(again + (i % tile.depth * tile.row + w) * 32,
                                         kept + (i * tile.row + w) * kept_step);
            }
        }
        copies_committed();
    };
    Value x = shuffle(all_lanes, sweep.y, slot); /* of the middle */

    __syncwarp(); /* the last tile has been read */

    if (job.far > 0) {
        __threadfence_block(); /* the copies read what this thread has stored */
#pragma unroll 1
        for (int r = 1; r <= tile.depth; r++) {
            load(job.far - r);
        }
    }
#pragma unroll 1
    for (int32_t first = middle / tile.rows * tile.rows; first >= 0; first -= tile.rows) {
#pragma unroll 1
        for (int32_t i = min(first + tile.rows - 1, middle); i >= first; i--) {
            const bool is_far = i < job.far;

            if (i < middle) {
                const Real *const from = is_far ? again + i % tile.depth * tile.row * 32
                                                : near + (i - job.far) * tile.row * 32;
                Number c;
                Value y;

                if (is_far) {
                    copies_done_but<tile.depth - 1>();
                }
#pragma unroll
                for (int p = 0; p < SIDE; p++) {
#pragma unroll
                    for (int q = 0; q < SIDE; q++) {
                        c.at[p][q] = from[(p * SIDE + q) * 32];
                    }
                    y.at[p] = from[(SIDE * SIDE + p) * 32];
                }
                if (i < count) {
                    x = y - c * x;
                }
                if (is_far) {
                    load(i - tile.depth);
                }
            }
            tiles.put(i - first, x);
        }
        __syncwarp(); /* the tile of x is complete */
        tiles.store(first, middle, stored);
        __syncwarp(); /* the tile of x has been read */
    }
    if (own < systems && is_bad && !is_left && !is_last) {
        /* the rows from the first one on, whose first bad pivot is reported */
        solve_by_blocks<tile_systems>(job, source, index, region + slot);
    }
}

} // namespace pysolvers::lines

#endif
