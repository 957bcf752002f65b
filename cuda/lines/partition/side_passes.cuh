/* side_passes.cuh - the partition method for several right-hand sides of each matrix, along a
 * contiguous axis.
 *
 * A block eliminates the matrices of a tile once, to multipliers in registers (ChunkFactor), and
 * then solves the groups of their right-hand sides one after the other, in place. Each of these
 * passes has three operands of the tile, the diagonals or the sides of a group, and is copied
 * while the pass before it is processed; the pass before that one is being stored. 2 + 3 / k
 * words of memory traffic per unknown of k right-hand sides. x may be rhs. No pivoting: stable
 * for diagonally dominant systems. Not faster: multipliers of the lanes and warps that are kept as
 * well (1.3 of the time for 1000 rows in float64), and with them chunks of 13 or 17 rows in place
 * of 9 (1.14 to 1.62).
 */
#ifndef PS_CUDA_LINES_PARTITION_SIDE_PASSES_CUH
#define PS_CUDA_LINES_PARTITION_SIDE_PASSES_CUH

#include "lines/partition/partition.cuh"
#include "lines/shared/shared_levels.cuh"

namespace pysolvers::partition {

/* The passes of a block. */
template <typename Number, int ROWS>
struct PassWorker : Worker<Number, ROWS, TOP_BLOCK, true, SidePassJob<Number>> {
    using Base = Worker<Number, ROWS, TOP_BLOCK, true, SidePassJob<Number>>;
    using Value = ValueOf<Number>;
    using Base::Base;
    shared::ChunkFactor<Number, ROWS> factor;
    Frame<Number> frame;
    Note of_matrix;

    __device__ __forceinline__ TileRange pass_of(int64_t tile, int32_t group) const
    {
        const int32_t most = this->job.tiling.systems;
        const int64_t first = tile * most, inner = this->job.t.inner;
        TileRange range;

        range.system = first + max(group, 0) * inner;
        range.block = 0;
        range.systems = static_cast<int32_t>(min(inner - first, int64_t(most)));
        range.begin = 0;
        range.rows = this->shape.rows;
        range.group = group;
        return range;
    }

    /* Eliminate the matrices in turn `turn`. */
    __device__ __forceinline__ void eliminate_matrix(const ThreadPlace<ROWS> &self,
                                                     const TileRange &range, int turn)
    {
        const int offset = this->offset_of(self.slot, self.start, range);
        const Number *const lower = this->tiles.array(0, turn) + offset;
        const Number *const diag = this->tiles.array(1, turn) + offset;
        const Number *const upper = this->tiles.array(2, turn) + offset;
        const bool ends = !this->job.has_next && self.start + ROWS == this->shape.rows;
        bool not_dominant = false;
        const auto rows = [&](int i) {
            Row<Number> row = copy_row<Number>();

            if (self.start + i >= 0) {
                row = {lower[i], diag[i], upper[i], Value(0)};
            }
            if (!this->job.has_left && self.start + i == 0) {
                row.lower = Number(0);
            }
            if (i == ROWS - 1 && ends) {
                row.upper = Number(0);
            }
            not_dominant = not_dominant | !is_dominant(row.lower, row.diag, row.upper);
            return row;
        };
        FastReciprocal<Number> fast_inverter;
        BadPivot bad_pivot;

        frame = factor.make(factor.read(rows), self.start, fast_inverter);
        if (!fast_inverter.in_safe_range()) {
            SafeReciprocal<Number> safe_inverter = {bad_pivot};

            frame = factor.make(factor.read(rows), self.start, safe_inverter);
        }
        of_matrix = {bad_pivot.row, not_dominant && self.lane < this->shape.lanes};
    }

    /* Solve for the right-hand sides of a group in turn `turn`. */
    __device__ __forceinline__ void solve_group(const ThreadPlace<ROWS> &self,
                                                const TileRange &range, int turn)
    {
        const int offset = this->offset_of(self.slot, self.start, range);
        Number *side[Base::sides];

#pragma unroll
        for (int p = 0; p < Base::sides; p++) {
            side[p] = this->tiles.array(3 + p, turn) + offset;
        }
        const auto values = [&](int i) {
            Value all(0);

            if (self.start + i >= 0) {
#pragma unroll
                for (int p = 0; p < Base::sides; p++) {
                    all.at[p] = side[p][i].value;
                }
            }
            return all;
        };
        const auto keep = [&](int i, const Value &all) {
            if (self.start + i >= 0) {
#pragma unroll
                for (int p = 0; p < Base::sides; p++) {
                    side[p][i].value = all.at[p];
                }
            }
        };
        const Load<Value> s = factor.reduce_each(values);

        this->levels.own = {
            {s.first, frame.first_l, frame.first_u}, frame.a, frame.b, frame.c, s.d};
        this->levels.take(of_matrix);

        const Ends<Number> ends = this->join(self, range);

        factor.substitute_each(values, keep, ends.y_left, ends.y, keep);
        this->tiles.written();

        const bool not_dominant = this->is_not_dominant(self, range);
        this->tiles.store(range, turn,
                          __syncthreads_or(not_dominant) ? this->skip : nullptr);
    }

  private:
    __device__ __forceinline__ Ends<Number> join(const ThreadPlace<ROWS> &self,
                                                 const TileRange &range)
    {
        return this->levels.join_block(
            this->shape, self, this->exchange,
            [&](const Segment<Number> &s) {
                return this->close(s, this->shape.rows - 1);
            },
            [&](const Segment<Number> &s, const auto &next) {
                const Ends<Number> ends = next(s);

                this->report(self, range);
                return ends;
            });
    }
};

/* Grid: any number of blocks. Shared memory: the arrays of three passes. */
template <typename Number>
__global__ void
__launch_bounds__(Tuning<Number, true>::threads)
    side_pass_kernel(const __grid_constant__ SidePassJob<Number> job)
{
    constexpr int ROWS = Tuning<Number, true>::rows;
    __shared__ TileStateOf<false, sides_of_number<Number>> state;
    __shared__ WarpExchange<Number> exchange;
    __shared__ uint8_t skip[Tuning<Number, true>::threads];
    __shared__ uint32_t shared_ticket;
    PassWorker<Number, ROWS> worker(job, partition_memory, state, exchange, skip);
    const ThreadPlace<ROWS> own(job.shape, 0);
    const int64_t tiles = job.tiling.tiles, step = gridDim.x;
    const bool work_queue = job.work_queue != nullptr;
    const int32_t groups = static_cast<int32_t>(job.t.outer);
    uint32_t ticket = 0;
    int64_t tile = blockIdx.x;
    int32_t group = -1, turn = 0;

    worker.tiles.init();
    __syncthreads();
    if (tile < tiles) {
        worker.tiles.load(worker.pass_of(tile, group), turn);
    }
#pragma unroll 1
    for (int pass = 0; tile < tiles; pass++) {
        const TileRange range = worker.pass_of(tile, group);
        ThreadPlace<ROWS> self = own;

        if (self.slot >= range.systems) {
            self.clear();
        }
        worker.tiles.wait_for_pass(pass);
        __syncthreads();

        const bool is_last = group + 1 == groups;
        const int64_t next = !is_last ? tile : step + (work_queue ? shared_ticket : tile);
        const int32_t next_group = is_last ? -1 : group + 1;
        const int32_t next_turn = turn < 2 ? turn + 1 : 0;

        if (next < tiles) {
            worker.tiles.load(worker.pass_of(next, next_group), next_turn);
        }
        if (group < 0) {
            if (work_queue && threadIdx.x == 0) {
                if (pass == 0) {
                    wait_for_last_kernel();
                }
                ticket = atomicAdd(job.work_queue, 1u);
            }
            worker.eliminate_matrix(self, range, turn);
            if (threadIdx.x == 0) {
                shared_ticket = ticket;
            }
        }
        else {
            worker.solve_group(self, range, turn);
        }
        commit_stores(); /* of this pass, perhaps none */
        tile = next;
        group = next_group;
        turn = next_turn;
    }
    stores_read();
}

template <typename Number>
ps_status
launch_side_passes(const SidePassJob<Number> &job, const Plan &plan, cudaStream_t stream)
{
    return launch_tiles(side_pass_kernel<Number>, job, TOP_BLOCK, plan, stream);
}

} // namespace pysolvers::partition

#endif
