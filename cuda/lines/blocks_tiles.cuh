/* blocks_tiles.cuh - the systems of blocks.cuh whose rows are neighbours in memory, through
 * tiles in shared memory.
 *
 * A block is a warp with 32 systems. It copies tiles of a few rows of its systems to shared
 * memory, in the order of the memory, and eliminates a tile while the next one is copied.
 * The last eliminated rows stay in shared memory, so many that a multiprocessor has a few
 * warps: 7 to 13 words for a scalar row of five diagonals.
 *
 * Why not the copiers of partition/tile.cuh and shared/shared_copier.cuh: the former copies
 * the four operands of tridiagonal systems by whole blocks, the latter right-hand sides only.
 *
 * Five diagonals of 64 rows take 0.32 of the time of blocks.cuh in float64 and 0.24 in
 * float32, blocks of 2 and 3 rows 0.90 and 0.78 in float64 (H200). Neighbouring systems in memory take 1.3 times
 * the time of blocks.cuh: a multiprocessor has fewer warps, and the rows of a warp wait for
 * each other.
 */
#ifndef PS_CUDA_LINES_BLOCKS_TILES_CUH
#define PS_CUDA_LINES_BLOCKS_TILES_CUH

#include "lines/blocks.cuh"
#include "runtime/copy.cuh"

namespace pysolvers::lines {

/* The tiles of a warp, two of operands in shared memory; each lane has one system. */
template <typename Real, int SIDE, bool IS_BANDS> struct BlockTiles {
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    static constexpr BlocksTile tile = blocks_tile(IS_BANDS ? 0 : SIDE);
    static constexpr int matrices = IS_BANDS ? 5 : 3, stage = 32 * tile.words;
    /* numbers of a tile and system: of a diagonal, and of right-hand sides */
    static constexpr int run = tile.rows * (IS_BANDS ? SIDE : SIDE * SIDE),
                         run_rhs = tile.rows * SIDE;
    const BlocksJob<Real> &job;
    const BlockSource<Real, SIDE, IS_BANDS> &source;
    Real *const memory;
    const int lane = threadIdx.x;
    const Real *from[matrices * run + run_rhs]; /* what this lane copies next */
    Real *to;                                   /* row 0 of x of this system */

    __device__ __forceinline__ BlockTiles(const BlocksJob<Real> &all,
                                          const BlockSource<Real, SIDE, IS_BANDS> &system,
                                          Real *shared)
        : job(all), source(system), memory(shared), to(system.at(all.x, 0))
    {
        walk([&](int d, int pass, int number, int, int) {
            const int words = words_of(d), row = number / words, word = number % words;
            const Real *own;
            int64_t offset;

            if constexpr (IS_BANDS) {
                own = d < 5 ? job.bands[d % 5].system(source.j, source.k)
                            : source.at(job.rhs, 0);
                offset = (row - source.lead) * step_of(d);
            }
            else {
                const BlockOperand<Real> &in = operand(d);

                own = source.at(in, 0);
                offset = row * in.row + (d < 3 ? word / SIDE : word) * in.down +
                         (d < 3 ? word % SIDE * in.across : 0);
            }
            from[d * run + pass] = of(own, system_of(d, pass)) + offset;
        });
    }

    /* Start the copies of the next tile, which begins at block row `first`; numbers that the
     * matrix does not have become 0. */
    __device__ __forceinline__ void load(int32_t first, int parity)
    {
        Real *const at = memory + parity * stage;
        const int32_t row_0 = IS_BANDS ? 2 * first - source.lead : first;

        walk([&](int d, int pass, int number, int offset, int array) {
            /* the rows that the diagonal has */
            const bool is_absent = IS_BANDS && d < 5 && job.bands[d % 5].data == nullptr;
            const int least = IS_BANDS ? max(2 - d, 0) : d == 0,
                      beyond = d == matrices ? 0
                               : IS_BANDS    ? max(d - 2, 0)
                                             : d == 2;
            const int32_t count = is_absent ? 0 : job.rows - beyond - least;
            const int32_t row =
                row_0 + number / words_of(d) - (d == matrices ? 0 : least);
            const Real *&next = from[d * run + pass];

            copy_async_of_line_or_clear<sizeof(Real)>(
                at + array + offset, next,
                static_cast<uint32_t>(row) < static_cast<uint32_t>(max(count, 0)));
            next += tile.rows * (IS_BANDS ? 2 : 1) * step_of(d);
        });
    }

    /* Row `r` of the tile that begins at block row `first`. */
    __device__ __forceinline__ ThomasRow<Number, Value> row(int32_t first, int r,
                                                            int parity) const
    {
        const Real *const at = memory + parity * stage;
        return row_of_entries<ThomasRow<Number, Value>, SIDE, IS_BANDS>(
            first + r == 0 && source.lead == 1, [&](int d, int e) {
                const int pitch = d < matrices ? tile.matrix : tile.rhs;
                const int words = IS_BANDS || d == matrices ? SIDE : SIDE * SIDE;

                return at[d * 32 * tile.matrix + lane * pitch + r * words + e];
            });
    }

    /* Put row `r` of a tile of x into shared memory. */
    __device__ __forceinline__ void put(int r, const Value &x) const
    {
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
            const int e = r * SIDE + p;

            memory[lane * tile.rhs + e] = x.at[p];
        }
    }

    /* Store the tile of x that begins at block row `first`, of the systems in `stored`. */
    __device__ __forceinline__ void store(int32_t first, unsigned stored) const
    {
#pragma unroll
        for (int pass = 0; pass < run_rhs; pass++) {
            const int at = pass * 32 + lane;
            const int system = at / run_rhs, e = at % run_rhs;
            const int32_t row = IS_BANDS ? 2 * first - source.lead + e : first + e / SIDE;
            Real *const x = of(to, system);

            if (row >= 0 && row < job.rows && (stored >> system & 1u) != 0) {
                x[row * job.x.row + (IS_BANDS ? 0 : e % SIDE * job.x.down)] =
                    memory[system * tile.rhs + e];
            }
        }
    }

  private:
    /* Operand d: a diagonal or, after them, rhs. */
    __device__ __forceinline__ const BlockOperand<Real> &operand(int d) const
    {
        return d == 0 ? job.lower : d == 1 ? job.diag : d == 2 ? job.upper : job.rhs;
    }

    __device__ __forceinline__ int64_t step_of(int d) const
    {
        return IS_BANDS && d < 5 ? job.bands[d % 5].row : operand(IS_BANDS ? 3 : d).row;
    }

    /* Numbers of a row. */
    static __device__ __forceinline__ constexpr int words_of(int d)
    {
        return IS_BANDS ? 1 : d < matrices ? SIDE * SIDE : SIDE;
    }

    /* The system whose numbers this lane copies in a pass over an operand. */
    __device__ __forceinline__ int system_of(int d, int pass) const
    {
        return (pass * 32 + lane) / (d < matrices ? run : run_rhs);
    }

    /* visit(operand, pass, number, offset in the array, array) for what this lane copies of
     * a tile: neighbouring lanes have neighbours in memory. */
    template <typename Visit>
    __device__ __forceinline__ void walk(const Visit &visit) const
    {
#pragma unroll
        for (int d = 0; d <= matrices; d++) {
            const int count = d < matrices ? run : run_rhs;

#pragma unroll
            for (int pass = 0; pass < count; pass++) {
                const int at = pass * 32 + lane, number = at % count;

                visit(d, pass, number, at / count * (count | 1) + number,
                      d * 32 * tile.matrix);
            }
        }
    }

    /* The pointer of another lane. */
    template <typename Pointer>
    static __device__ __forceinline__ Pointer of(Pointer own, int system)
    {
        return reinterpret_cast<Pointer>(
            __shfl_sync(all_lanes, reinterpret_cast<unsigned long long>(own), system));
    }
};

/* Grid: a warp for 32 of outer * inner systems. */
template <typename Real, int SIDE, bool IS_BANDS>
__global__ void __launch_bounds__(32)
    blocks_tiles_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    using Tiles = BlockTiles<Real, SIDE, IS_BANDS>;
    constexpr BlocksTile tile = Tiles::tile;
    extern __shared__ int4 shared[];
    Real *const memory = reinterpret_cast<Real *>(shared);
    /* eliminated rows: those that are loaded again, after a tile of x, and those that stay */
    Real *const again = memory + 32 * tile.rhs + threadIdx.x, *const near =
                                                                  memory +
                                                                  2 * Tiles::stage +
                                                                  threadIdx.x;
    const int64_t systems = job.outer * job.inner;
    const int64_t own = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
    const int64_t index = min(own, systems - 1);
    const BlockSource<Real, SIDE, IS_BANDS> source(job, index);
    Tiles tiles(job, source, memory);
    const int32_t last = source.rows - 1;
    Sweep<Number, Value> sweep = {};
    /* lanes beyond the systems: the last one again */
    Real *const kept = kept_of(job, index, int64_t(job.far) * tile.row);
    bool is_dominated = true;

    const auto keep = [&](Real *to) {
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                to[(p * SIDE + q) * kept_step] = sweep.c.at[p][q];
            }
            to[(SIDE * SIDE + p) * kept_step] = sweep.y.at[p];
        }
    };

    tiles.load(0, 0);
    copies_committed();
#pragma unroll 1
    for (int32_t first = 0, parity = 0; first <= last; first += tile.rows, parity ^= 1) {
        if (first + tile.rows <= last) {
            tiles.load(first + tile.rows, parity ^ 1);
        }
        copies_committed();
        copies_done_but<1>();
        __syncwarp(); /* the tile is complete */
#pragma unroll 1
        for (int r = 0; r < tile.rows && first + r <= last; r++) {
            const ThomasRow<Number, Value> row = tiles.row(first, r, parity);
            const int32_t i = first + r;

            if (job.checks) {
                is_dominated =
                    is_dominated && is_dominant(row.lower, row.diag, row.upper);
            }
            if (job.is_definite && sweep.info == 0 &&
                !is_positive_definite(row.diag - row.lower * sweep.c)) {
                sweep.info = i + 1;
            }
            sweep.template eliminate<false>(row, Number::zero(), i);
            if (i < job.far) {
                keep(kept + i * tile.row * kept_step);
            }
            else if (i < last) {
                keep(near + (i - job.far) * tile.row * kept_step);
            }
        }
        __syncwarp(); /* the tile has been read */
    }
    const bool is_left = job.checks && (!is_dominated || sweep.info != 0);
    const unsigned stored = __ballot_sync(all_lanes, own < systems && !is_left);

    if (job.info != nullptr && own < systems) {
        job.info[job.is_swapped ? source.k * job.outer + source.j : index] =
            is_left ? -1 : source.info_of(sweep.info);
    }
    if (stored == 0) {
        return;
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
    Value x = sweep.y;

    if (job.far > 0) {
        __threadfence_block(); /* the copies read what this thread has stored */
#pragma unroll 1
        for (int r = 1; r <= tile.depth; r++) {
            load(job.far - r);
        }
    }
#pragma unroll 1
    for (int32_t first = last / tile.rows * tile.rows; first >= 0; first -= tile.rows) {
#pragma unroll 1
        for (int32_t i = min(first + tile.rows - 1, last); i >= first; i--) {
            const bool is_far = i < job.far;

            if (i < last) {
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
                x = y - c * x;
                if (is_far) {
                    load(i - tile.depth);
                }
            }
            tiles.put(i - first, x);
        }
        __syncwarp(); /* the tile of x is complete */
        tiles.store(first, stored);
        __syncwarp(); /* the tile of x has been read */
    }
}

} // namespace pysolvers::lines

#endif
