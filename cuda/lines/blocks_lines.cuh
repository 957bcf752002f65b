/* blocks_lines.cuh - the systems of blocks.cuh divided into chunks: the partition method
 * (join/segment.cuh) with blocks of 2 x 2 as numbers.
 *
 * A thread eliminates 4 block rows into registers, the chunks of a system are joined by
 * parallel cyclic reduction, and x follows from the unknowns at the ends of the chunks. Each
 * operand is read once: 7 words for a scalar row of five diagonals, 16 for a row of blocks.
 * About 100 multiplications for a block row and 90 for each level of a chunk's join.
 *
 * A block of threads has a tile of whole systems in shared memory. The tile is in registers
 * after the elimination, and the next one is copied during the join and the substitution. A
 * chunk has 16 bytes more than its rows, so that vectors of neighbouring threads lie in
 * different banks.
 *
 * Stable for block diagonally dominant matrices: the pivots of a chunk are those of a block
 * elimination that begins in its first row, and the systems of the chunks' ends are dominant
 * as the matrix is. Other systems are marked with info -1 if they are checked. The pivots of
 * symmetric positive definite matrices are tested (BadPivot).
 *
 * For contiguous rows of 33 to 512 blocks of 2, but those of float64 without gaps
 * (blocks_in_place.cuh), and of five diagonals that five_lines.cuh does not
 * take because they are not vectors: blocks of 2 of 64 rows take 0.73 of the time of blocks_tiles.cuh
 * (H200). Systems without gaps are copied as runs of vectors by the warp that solves them: 64, 128 and
 * 256 rows take 0.93, 0.89 and 0.92 of the time in float64, 0.94, 0.87 and 0.87 in float32; loads of
 * the next systems to the L2 cache meanwhile took it back. Neighbouring systems in memory took 1.8: the
 * copies wait for the few warps that 240 registers of a thread leave.
 *
 * Why not the copiers of partition/tile.cuh: they copy four operands of one number for a
 * row; here rows have 1, 2 or 4 numbers of each of six operands, with absent ones.
 */
#ifndef PS_CUDA_LINES_BLOCKS_LINES_CUH
#define PS_CUDA_LINES_BLOCKS_LINES_CUH

#include "lines/blocks.cuh"
#include "lines/join/levels.cuh"
#include "runtime/copy.cuh"

namespace pysolvers::lines {

using namespace join;

/* A tile of systems in shared memory, and its copies. */
template <typename Real, int SIDE, bool IS_BANDS> struct LinesOfBlocks {
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    using Source = BlockSource<Real, SIDE, IS_BANDS>;
    static constexpr int matrices = IS_BANDS ? 5 : 3, inputs = matrices + 1;
    /* numbers of a block row: of a diagonal, of right-hand sides */
    static constexpr int words = IS_BANDS ? SIDE : SIDE * SIDE;
    static constexpr int pad = 16 / sizeof(Real);
    const BlocksJob<Real> &job;
    Real *const memory;

    static __device__ __forceinline__ constexpr int words_of(int d)
    {
        return d < matrices ? words : SIDE;
    }

    __device__ __forceinline__ int chunks() const
    {
        return job.lines.shape.lanes * job.lines.shape.warps;
    }

    /* The array of operand d, the diagonals, rhs or x, of system `slot` of the tile. */
    __device__ __forceinline__ Real *system_at(int d, int slot) const
    {
        const int before = min(d, matrices) * words + max(d - matrices, 0) * SIDE;

        return memory + (job.lines.systems * (before * lines_rows + d * pad) +
                         slot * (words_of(d) * lines_rows + pad)) *
                            chunks();
    }

    __device__ __forceinline__ Real *chunk_at(int d, int slot, int chunk) const
    {
        return system_at(d, slot) + chunk * (words_of(d) * lines_rows + pad);
    }

    /* Start the copies of the inputs of a tile that begins at system `first`. */
    __device__ __forceinline__ void load(int64_t first, int systems) const
    {
        if (job.lines.are_runs) {
            walk_runs(first, systems, [&](const Source &source, int slot) {
#pragma unroll
                for (int d = 0; d < inputs; d++) {
                    const int words = words_of(d), end = source.rows * words;
                    const Real *const from = begin_of(d, source);

                    walk_run(d, slot, [&](int word, Real *to) {
                        copy_async_of_line_or_clear<16>(
                            to, from + word,
                            (d != 0 || word >= words) && (d != 2 || word < end - words));
                    });
                }
            });
            copies_committed();
            return;
        }
        walk(systems, first, [&](const Source &source, int slot, int unit) {
#pragma unroll
            for (int d = 0; d < inputs; d++) {
                Real *const to = at_unit(d, slot, unit);
                const Real *const from = begin_of(d, source) + offset_of(d, unit, 0);
                const bool is_pair = (job.lines.pairs >> d & 1u) != 0;

#pragma unroll
                for (int word = 0; word < words_of(d); word += 2) {
                    const int64_t more = offset_of(d, 0, word);

                    if (is_pair) {
                        copy_async_of_line_or_clear<2 * sizeof(Real)>(
                            to + word, from + more, is_there(d, source, unit, word));
                    }
                    else {
                        copy_async_of_line_or_clear<sizeof(Real)>(
                            to + word, from + more, is_there(d, source, unit, word));
                        copy_async_of_line_or_clear<sizeof(Real)>(
                            to + word + 1, from + offset_of(d, 0, word + 1),
                            is_there(d, source, unit, word + 1));
                    }
                }
            }
        });
        copies_committed();
    }

    /* Store x of the systems that are not in `left`. */
    __device__ __forceinline__ void store(int64_t first, int systems,
                                          const uint8_t *left) const
    {
        if (job.lines.are_runs) {
            walk_runs(first, systems, [&](const Source &source, int slot) {
                Real *const to = begin_of(inputs, source);

                if (left != nullptr && left[slot] != 0) {
                    return;
                }
                walk_run(inputs, slot, [&](int word, const Real *from) {
                    *reinterpret_cast<int4 *>(to + word) =
                        *reinterpret_cast<const int4 *>(from);
                });
            });
            return;
        }
        walk(systems, first, [&](const Source &source, int slot, int unit) {
            const Real *const from = at_unit(inputs, slot, unit);
            Real *const to = begin_of(inputs, source) + offset_of(inputs, unit, 0);

            if (left != nullptr && left[slot] != 0) {
                return;
            }
            if ((job.lines.pairs >> inputs & 1u) != 0) {
                struct alignas(2 * sizeof(Real)) Pair {
                    Real of[2];
                };
                *reinterpret_cast<Pair *>(to) = *reinterpret_cast<const Pair *>(from);
                return;
            }
#pragma unroll
            for (int p = 0; p < SIDE; p++) {
                if (is_there(inputs, source, unit, p)) {
                    to[offset_of(inputs, 0, p)] = from[p];
                }
            }
        });
    }

    /* Block row `i` of a chunk, which is row `row` of its system. */
    __device__ __forceinline__ Row<Number> row(int slot, int chunk, int i,
                                               int32_t row) const
    {
        return row_of_entries<Row<Number>, SIDE, IS_BANDS>(
            row == 0 && job.rows % 2 == 1,
            [&](int d, int e) { return chunk_at(d, slot, chunk)[i * words_of(d) + e]; });
    }

  private:
    /* Entry 0 of block row 0 of operand d. */
    __device__ __forceinline__ Real *begin_of(int d, const Source &source) const
    {
        if constexpr (IS_BANDS) {
            if (d < matrices) {
                const Input<Real> &in = job.bands[d % 5];

                return const_cast<Real *>(in.system(source.j, source.k)) -
                       source.lead * in.row;
            }
            const BlockOperand<Real> &in = d == matrices ? job.rhs : job.x;

            return source.at(in, 0) - source.lead * in.row;
        }
        else {
            return source.at(operand(d), 0);
        }
    }

    __device__ __forceinline__ const BlockOperand<Real> &operand(int d) const
    {
        return d == 0          ? job.lower
               : d == 1        ? job.diag
               : d == 2        ? job.upper
               : d == matrices ? job.rhs
                               : job.x;
    }

    /* The distance of entry `word` of block row `unit` from that entry. */
    __device__ __forceinline__ int64_t offset_of(int d, int unit, int word) const
    {
        if constexpr (IS_BANDS) {
            return (SIDE * unit + word) * (d < matrices    ? job.bands[d % 5].row
                                           : d == matrices ? job.rhs.row
                                                           : job.x.row);
        }
        else {
            const BlockOperand<Real> &in = operand(d);

            return unit * in.row + (d < matrices
                                        ? word / SIDE * in.down + word % SIDE * in.across
                                        : word * in.down);
        }
    }

    /* Whether the matrix has this entry. */
    __device__ __forceinline__ bool is_there(int d, const Source &source, int unit,
                                             int word) const
    {
        if constexpr (IS_BANDS) {
            const int row = SIDE * unit + word - source.lead;
            const int least = d < matrices ? max(2 - d, 0) : 0,
                      beyond = d < matrices ? max(d - 2, 0) : 0;

            return row >= least && row < job.rows - beyond &&
                   (d >= matrices || job.bands[d % 5].data != nullptr);
        }
        else {
            return (d != 0 || unit > 0) && (d != 2 || unit < source.rows - 1);
        }
    }

    /* Block row `unit` of operand d of a system of the tile. */
    __device__ __forceinline__ Real *at_unit(int d, int slot, int unit) const
    {
        const int place = unit + chunks() * lines_rows - job.lines.shape.rows;

        return system_at(d, slot) + place * words_of(d) + place / lines_rows * pad;
    }

    /* visit(source, slot) for the systems of this warp. */
    template <typename Visit>
    __device__ __forceinline__ void walk_runs(int64_t first, int systems,
                                              const Visit &visit) const
    {
        const Shape &shape = job.lines.shape;
        const int own = threadIdx.x / 32 / shape.warps * shape.groups;

#pragma unroll 1
        for (int slot = own; slot < min(own + shape.groups, systems); slot++) {
            visit(Source(job, first + slot), slot);
        }
    }

    /* visit(number, its place) for the vectors of operand d that this thread copies: neighbouring
     * threads have neighbours in memory. */
    template <typename Visit>
    __device__ __forceinline__ void walk_run(int d, int slot, const Visit &visit) const
    {
        const Shape &shape = job.lines.shape;
        const int words = words_of(d), chunk = words * lines_rows;
        const int first = (threadIdx.x / 32 % shape.warps * 32 + threadIdx.x % 32) * pad;
        const int step = shape.warps * 32 * pad; /* a multiple of `chunk` */
        const int place = first + (chunks() * lines_rows - shape.rows) * words;
        Real *at = system_at(d, slot) + place + place / chunk * pad;

#pragma unroll 2
        for (int word = first; word < shape.rows * words; word += step) {
            visit(word, at);
            at += step / chunk * (chunk + pad);
        }
    }

    /* visit(source, slot, block row) for the block rows of the tile that this thread copies:
     * neighbouring threads have neighbours in memory. */
    template <typename Visit>
    __device__ __forceinline__ void walk(int systems, int64_t first,
                                         const Visit &visit) const
    {
        const unsigned rows = job.lines.shape.rows, all = systems * rows;

#pragma unroll 1
        for (unsigned i = threadIdx.x; i < all; i += blockDim.x) {
            const unsigned slot = i / rows;

            visit(Source(job, first + slot), static_cast<int>(slot),
                  static_cast<int>(i - slot * rows));
        }
    }
};

/* Grid: any number of blocks, each with one tile after the other. */
template <typename Real, int SIDE, bool IS_BANDS>
__global__ void
__launch_bounds__(lines_threads, sizeof(Real) == 4 ? 4 : 2)
    blocks_lines_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    using Place = ThreadPlace<lines_rows>;
    extern __shared__ int4 shared[];
    __shared__ WarpExchange<Number> exchange;
    __shared__ uint8_t left[lines_threads];
    const LinesOfBlocks<Real, SIDE, IS_BANDS> tile = {job,
                                                      reinterpret_cast<Real *>(shared)};
    const Shape &shape = job.lines.shape;
    const Place own(shape, 0);
    const int chunk = own.warp * shape.lanes + own.lane;
    const int64_t systems = job.outer * job.inner, step = job.lines.systems;
    const auto count_at = [&](int64_t first) {
        return static_cast<int>(min(step, systems - first));
    };
    /* a warp that copies and solves whole systems does not wait for the others */
    const auto wait = [&] {
        if (job.lines.are_runs && shape.warps == 1) {
            __syncwarp();
        }
        else {
            __syncthreads();
        }
    };
    int64_t first = blockIdx.x * step;

    if (first < systems) {
        tile.load(first, count_at(first));
    }
#pragma unroll 1
    for (; first < systems;) {
        const int count = count_at(first);
        const int64_t next = first + gridDim.x * step;
        Levels<Number, lines_rows> levels;
        Place self = own;
        bool not_dominant = false;

        if (self.slot >= count) {
            self.clear();
        }
        copies_done();
        wait(); /* the tile is complete */
        levels.bad_pivot.is_definite = job.is_definite;
        levels.eliminate(self, [&](int i) {
            if (self.start + i < 0) {
                return copy_row<Number>();
            }
            const Row<Number> row = tile.row(self.slot, chunk, i, self.start + i);

            if (job.checks) {
                not_dominant =
                    not_dominant || !is_dominant(row.lower, row.diag, row.upper);
            }
            return row;
        });
        levels.not_dominant = not_dominant;
        wait(); /* the tile is in registers */
        if (next < systems) {
            tile.load(next, count_at(next));
        }
        const Ends<Number> ends = levels.join_system(shape, self, false, exchange);
        const bool is_bad = levels.bad_pivot.row != BadPivot::none;
        const bool is_left = job.checks && (levels.not_dominant || is_bad);

        if (self.slot < count && self.lane == 0 && self.warp == 0) {
            const BlockSource<Real, SIDE, IS_BANDS> source(job, first + self.slot);

            left[self.slot] = is_left;
            if (job.info != nullptr) {
                job.info[job.is_swapped ? source.k * job.outer + source.j
                                        : first + self.slot] =
                    is_left ? -1 : source.info_of(is_bad ? levels.bad_pivot.row + 1 : 0);
            }
        }
        levels.chunk.substitute(ends.y_left, ends.y, [&](int i, const Value &x) {
            if (self.start + i >= 0) {
                Real *const to = tile.chunk_at(tile.inputs, self.slot, chunk) + i * SIDE;

#pragma unroll
                for (int p = 0; p < SIDE; p++) {
                    to[p] = x.at[p];
                }
            }
        });
        wait(); /* the tile of x is complete */
        tile.store(first, count, job.checks ? left : nullptr);
        first = next;
    }
}

} // namespace pysolvers::lines

#endif
