/* five_columns.cuh - neighbouring systems of five diagonals divided into chunks of scalar rows, as
 * contiguous ones are (five_lines.cuh).
 *
 * A block has a tile of 8 neighbouring systems in shared memory, 16 in float32, or a cluster, whose blocks
 * have up to 256 rows of them each. A thread eliminates the 16 rows of a chunk, 32 in float32, and keeps s and t
 * of them in registers, in float32 also p and q, and the other numbers in the place of operands. So the other
 * operands of the next tile are copied while chunks are joined and substituted, and the rest while x is stored.
 * 7 words and about 45 operations for a row.
 *
 * Parts of the speed of a copy (H200), in brackets by five_turns.cuh (float64) and five_rows.cuh (float32): 200 and
 * 256 rows of float64 0.67 and 0.73 (0.57, 0.51), 256 rows that are not dominant 0.68; 256 and 512 rows of float32
 * 0.66 and 0.61 (0.56, 0.43), 1000, 2048 and 4096 rows, in clusters, 0.51, 0.48 and 0.37 (0.45, 0.40, 0.40). Few
 * systems have up to three times the speed. Other numbers of rows leave lanes without chunks: 160 and 300 rows of
 * float32 have 0.53 and 0.47 (0.66 and 0.56 by five_rows.cuh). With clusters 1000, 2048 and 4096 rows of float64 have
 * 0.48, 0.46 and 0.38 (0.49, 0.50 and 0.45), with blocks of 128 rows 256 rows 0.52.
 *
 * With parallel cyclic reduction in place of sweeps (join/decay.cuh) the join has 4900 of 20000 cycles of a tile
 * of 256 rows of float64, the elimination 4300, waiting for copies 3200; copies alone have 0.85 of the speed of a
 * copy. p and q of float64 in registers as well, which spill, take 1.2 of the time; chunks of 16 rows of float32
 * 0.9 (200 rows) to 1.2; 1000 rows in tiles of 4 neighbours 1.1 of the time of five_rows.cuh.
 */
#ifndef PS_CUDA_LINES_FIVE_COLUMNS_CUH
#define PS_CUDA_LINES_FIVE_COLUMNS_CUH

#include "lines/five_lines.cuh"

namespace pysolvers::lines {

/* The tile of a block: its rows of the operands, which are five diagonals and rhs. Vectors of 16 bytes are copied. */
template <typename Real, bool IS_CLUSTER> struct FiveColumns {
    static constexpr int rows = five_column_rows<Real>, width = five_column_width<Real>;
    static constexpr int count = 16 / sizeof(Real), vectors = width / count;
    static constexpr int pitch = rows * width + count, operands = 6;
    static constexpr unsigned all = (1u << operands) - 1;
    using Exchange = ClusterExchange<Block<Real, 2>, width>;
    const BlocksJob<Real> &job;
    Real *const memory;
    const int32_t block; /* of the cluster */

    /* The numbers of an operand. */
    __device__ __forceinline__ int array() const
    {
        return job.lines.shape.lanes * pitch;
    }

    /* Row r of a chunk of operand 0 is `width` r numbers after this. */
    __device__ __forceinline__ Real *chunk_at(int slot, int chunk) const
    {
        return memory + chunk * pitch + slot;
    }

    __device__ __forceinline__ SystemRange systems(int64_t tile) const
    {
        return systems_of_tile(tile, width, static_cast<int32_t>(job.outer), job.outer,
                               job.inner);
    }

    /* Start the copies of the operands in WHICH; rows without an entry of the matrix are
     * cleared. */
    template <unsigned WHICH>
    __device__ __forceinline__ void load(const SystemRange &range) const
    {
        walk(range, [&](const auto &source, int slot, int32_t start, int32_t step) {
            const int32_t end = this->end();

#pragma unroll
            for (int d = 0; d < operands; d++) {
                if ((WHICH >> d & 1u) == 0) {
                    continue;
                }
                const int32_t least = d < 5 ? max(2 - d, 0) : 0,
                              beyond = d < 5 ? max(d - 2, 0) : 0;
                const int64_t row_step = d < 5 ? job.bands[d % 5].row : job.rhs.row;
                const Real *from = (d < 5 ? job.bands[d % 5].system(source.j, source.k)
                                          : source.at(job.rhs, 0)) +
                                   start * row_step;
                Real *const to = memory + d * array();

#pragma unroll 2
                for (int32_t row = start; row < end; row += step) {
                    copy_async_of_line_or_clear<16>(to + place_of(slot, row), from,
                                                    row >= least &&
                                                        row < job.rows - beyond);
                    from += step * row_step;
                }
            }
        });
        copies_committed();
    }

    /* Store x, in the place of rhs, of the systems that are not in `left`. */
    __device__ __forceinline__ void store(const SystemRange &range,
                                          const unsigned *left) const
    {
        walk(range, [&](const auto &source, int slot, int32_t start, int32_t step) {
            const int32_t end = this->end();

            const Real *const from = memory + 5 * array();
            Real *to = source.at(job.x, start);
            unsigned are_left = 0;

#pragma unroll
            for (int k = 0; k < count; k++) {
                are_left |= left[slot + k] << k;
            }
#pragma unroll 2
            for (int32_t row = start; row < end; row += step) {
                const Real *const at = from + place_of(slot, row);

                if (are_left == 0) {
                    *reinterpret_cast<int4 *>(to) = *reinterpret_cast<const int4 *>(at);
                }
                else {
#pragma unroll
                    for (int k = 0; k < count; k++) {
                        if ((are_left >> k & 1u) == 0) {
                            to[k] = at[k];
                        }
                    }
                }
                to += step * job.x.row;
            }
        });
    }

  private:
    /* The first row of the block, which is negative if it begins with pads, and the row after its
     * last one. */
    __device__ __forceinline__ int32_t begin() const
    {
        return end() - job.lines.shape.lanes * rows;
    }
    __device__ __forceinline__ int32_t end() const
    {
        const Shape &shape = job.lines.shape;

        return job.rows - (shape.blocks - 1 - block) * shape.lanes * rows;
    }

    __device__ __forceinline__ int place_of(int slot, int32_t row) const
    {
        const int at = row - begin();

        return at / rows * pitch + at % rows * width + slot;
    }

    /* visit(source, slot, row, step) for the vectors at rows row, row + step, ... of the systems
     * from `slot` that the thread copies: neighbouring threads have neighbours in memory. */
    template <typename Visit>
    __device__ __forceinline__ void walk(const SystemRange &range,
                                         const Visit &visit) const
    {
        const int slot = threadIdx.x % vectors * count;

        if (slot < range.count) {
            visit(BlockSource<Real, 2, true>(job, range.first + slot), slot,
                  max(begin(), 0) + threadIdx.x / vectors, blockDim.x / vectors);
        }
    }
};

/* The chunk of a thread. */
template <typename Real, bool IS_CLUSTER> struct FiveColumnChunk {
    using Tile = FiveColumns<Real, IS_CLUSTER>;
    using Steps = FiveChunk<Real, Tile::rows>;
    using Number = Block<Real, 2>;
    using Row = typename Steps::Row;
    static constexpr int width = Tile::width, rows = Tile::rows, kept_rows = rows - 2;
    static constexpr int group = 2; /* rows that are read at once */
    /* whether p and q are in registers, as s and t are */
    static constexpr bool has_all = sizeof(Real) == 4;
    /* the operands whose places have the numbers of eliminated rows that are not in registers; the
     * place of rhs has y and then x */
    enum { of_p = 2, of_q = 3, of_y = 5 };
    /* operands whose places are needed until x is found */
    static constexpr unsigned late =
        1u << of_y | (has_all ? 0u : 1u << of_p | 1u << of_q);
    Steps steps; /* with row 0 of operand 0 */
    Real s[kept_rows], t[kept_rows], p[has_all ? kept_rows : 1],
        q[has_all ? kept_rows : 1];

    /* Rows before row 0 of the system become those of the identity. */
    __device__ __forceinline__ void complete() const
    {
#pragma unroll 1
        for (int r = 0; r < min(-steps.start, rows); r++) {
#pragma unroll
            for (int d = 0; d < 6; d++) {
                number(d, r) = d == 2 ? 1 : 0;
            }
        }
    }

    __device__ __forceinline__ Segment<Number> eliminate()
    {
        Row before = {0, 0, 0, -1, 0}, last = {0, 0, 0, 0, -1};
        typename Steps::First first[2] = {{0, 0, 0, -1, 0}, {0, 0, 0, 0, -1}};
        typename Steps::Group own;

#pragma unroll
        for (int i = 0; i < rows; i += group) {
            const int to = i + group < rows ? 0 : Steps::group - group;

#pragma unroll
            for (int d = 0; d < 6; d++) {
#pragma unroll
                for (int r = 0; r < group; r++) {
                    own.of[d].at[to + r] = number(d, i + r);
                }
            }
            if (i == kept_rows) {
                break;
            }
#pragma unroll
            for (int r = 0; r < group; r++) {
                steps.step(own, to + r, before, last, first);
                s[i + r] = last.s;
                t[i + r] = last.t;
                number(of_y, i + r) = last.y;
                if constexpr (has_all) {
                    p[i + r] = last.p;
                    q[i + r] = last.q;
                }
                else {
                    number(of_p, i + r) = last.p;
                    number(of_q, i + r) = last.q;
                }
            }
        }
        return steps.closed(own, before, last, first);
    }

    __device__ __forceinline__ void substitute(const Ends<Number> &ends) const
    {
        const Real l0 = ends.y_left.at[0], l1 = ends.y_left.at[1];
        Real x1 = ends.y.at[0], x2 = ends.y.at[1];

        number(of_y, kept_rows + 1) = x2;
        number(of_y, kept_rows) = x1;
#pragma unroll
        for (int i = kept_rows - 1; i >= 0; i--) {
            const Real own_p = has_all ? p[has_all ? i : 0] : number(of_p, i),
                       own_q = has_all ? q[has_all ? i : 0] : number(of_q, i);
            const Real own = number(of_y, i) - own_p * l0 - own_q * l1;
            const Real x = (own - t[i] * x2) - s[i] * x1;

            number(of_y, i) = x;
            x2 = x1;
            x1 = x;
        }
    }

  private:
    __device__ __forceinline__ Real &number(int d, int r) const
    {
        return steps.at[d * steps.array + r * width];
    }
};

/* Grid: any number of blocks, or of clusters, each with one tile after the other. */
template <typename Real, bool IS_CLUSTER>
__global__ void
__launch_bounds__(five_lines_threads)
    five_columns_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Number = Block<Real, 2>;
    using Tile = FiveColumns<Real, IS_CLUSTER>;
    using Chunk = FiveColumnChunk<Real, IS_CLUSTER>;
    extern __shared__ int4 shared[];
    __shared__ typename Tile::Exchange exchange;
    __shared__ unsigned left[Tile::width];
    const Shape &shape = job.lines.shape;
    const int32_t block = IS_CLUSTER ? static_cast<int32_t>(rank_in_cluster()) : 0;
    const int64_t begin = IS_CLUSTER ? cluster_of_grid() : blockIdx.x,
                  count = gridDim.x / shape.blocks;
    const Tile tile = {job, reinterpret_cast<Real *>(shared), block};
    const ThreadPlace<Tile::rows> own(shape, block);

    tile.template load<Tile::all>(tile.systems(begin));
    if constexpr (IS_CLUSTER) {
        exchange.begin();
    }
#pragma unroll 1
    for (int64_t number = begin; number < job.tiles; number += count) {
        const SystemRange range = tile.systems(number),
                          next = tile.systems(number + count);
        ThreadPlace<Tile::rows> self = own;
        const bool is_idle = self.slot >= range.count || self.lane >= shape.lanes;
        const bool is_first = !is_idle && self.lane == 0; /* of its system */
        Segment<Number> unit;

        if (is_idle) {
            self.clear();
        }
        const int slot = is_idle ? 0 : self.slot, at = is_idle ? 0 : self.lane;
        Chunk chunk = {{job, tile.chunk_at(slot, at), tile.array(), self.start}};

        copies_done();
        __syncthreads(); /* the systems are complete */
        if (!is_idle) {
            chunk.complete();
            unit = chunk.eliminate();
        }
        else {
            unit = Segment<Number>::closed(own_spike<Number>(), left_spike<Number>(),
                                           copy_row<Number>());
        }
        __syncthreads(); /* the systems have been read */
        tile.template load<Tile::all & ~Chunk::late>(next);

        const bool is_unsafe = chunk.steps.guard.is_unsafe != 0;
        JoinedEnds<Number> found;

        if constexpr (IS_CLUSTER) {
            found = joined_in_cluster<Number, Tile::rows>(
                shape, self, is_idle, job.is_definite, is_unsafe, unit, exchange);
        }
        else {
            found = joined<Number, Tile::rows, false>(
                shape, self, is_idle, job.is_definite, is_unsafe, unit, {});
        }

        if (!is_idle) {
            if (is_first) {
                left[slot] = found.is_bad;
            }
            chunk.substitute(found.ends);
        }
        __syncthreads(); /* x is complete */
        tile.store(range, left);
        if (is_first && block == 0) {
            const BlockSource<Real, 2, true> source(job, range.first + slot);

            if (left[slot] != 0) {
                solve_by_blocks(job, source, range.first + slot,
                                kept_of(job, range.first + slot, source.rows * 6));
            }
            else if (job.info != nullptr) {
                job.info[job.is_swapped ? source.k * job.outer + source.j
                                        : range.first + slot] = 0;
            }
        }
        __syncthreads(); /* x has been read */
        tile.template load<Chunk::late>(next);
    }
}

} // namespace pysolvers::lines

#endif
