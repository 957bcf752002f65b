/* line_sweep.cuh - all lines of a field along one axis, solved by one kernel.
 *
 * A block solves a tile of neighbouring lines (line_tiles.cuh). It reads the fields in
 * the order of memory and stores the numbers of which the rows are made in shared
 * memory, solves the lines by the partition method (segment.cuh), and stores the
 * solution in the order of memory. Each input field is read once, with the halo of the
 * tile. Additional blocks, the first ones, do other work, with data that no tile uses.
 *
 * A class of rows defines the systems. A place is the index p of a node in memory, the
 * number of its line and its number in the line:
 *
 *   Number, words, solution       the type; the planes of shared memory, and the plane
 *                                 that receives the solution
 *   batch                         nodes of a thread whose loads are under way together
 *   is_plain(line)                whether no node of the line is an exception
 *   node(p, line, at, plain, word)
 *                                 set the words of an unknown; words that are all 0 give
 *                                 a row with right-hand side 0; without branches, which
 *                                 would separate the loads of a batch
 *   adjust(p, line, at, word)     change these words, for the few unknowns that need more
 *   row(line, at, word)           the row; `at` is negative or 0 for pads
 *   store(p, line, at, unknown, x, word)
 *                                 store the solution at an unknown, where word points to
 *                                 plane 0 of the node; or the value of another node
 *   other(block)                  additional block number `block`
 */
#ifndef PS_CUDA_FLOW_LINE_SWEEP_CUH
#define PS_CUDA_FLOW_LINE_SWEEP_CUH

#include "lines/join/line_tiles.cuh"
#include "runtime/launch.cuh"

namespace pysolvers::flow {

using namespace join;
using namespace runtime;

/* The lines of a field: lines `first` to `end` - 1 of `count` have systems. */
struct SweepLines {
    int first, end, count;
    int pitch; /* from one row of the field to the next; a field has less than 2^31 nodes
                */
};

/* rows_end: the node of a line after the last unknown. */
struct SweepTiles : LineTiles {
    SweepLines lines_of_field;
    int rows_end;
};

template <int AXIS>
__device__ __forceinline__ int
node_at(const SweepTiles &t, int line, int at)
{
    const int pitch = t.lines_of_field.pitch;

    return AXIS == 0 ? line * pitch + at : at * pitch + line;
}

/* The nodes of a thread in line `line` of the tile, line `number` of the field. */
template <int AXIS, typename Rows>
__device__ __forceinline__ void
gather_line(const Rows &rows, const SweepTiles &t, const Walk<AXIS> &walk, int line,
            int number, bool plain, typename Rows::Number *shared)
{
    for (int begin = walk.node; begin < t.rows_end; begin += Rows::batch * walk.step) {
        typename Rows::Number word[Rows::batch][Rows::words];

#pragma unroll
        for (int k = 0; k < Rows::batch; k++) {
            const int at = begin + k * walk.step;
            const int near = min(max(at, t.begin), t.rows_end - 1);

            rows.node(node_at<AXIS>(t, number, near), number, near, plain, word[k]);
        }
#pragma unroll
        for (int k = 0; k < Rows::batch; k++) {
            const int at = begin + k * walk.step, slot = slot_of(t, line, at);

            if (at >= t.begin && at < t.rows_end) {
                rows.adjust(node_at<AXIS>(t, number, at), number, at, word[k]);
#pragma unroll
                for (int i = 0; i < Rows::words; i++) {
                    shared[i * t.plane + slot] = word[k][i];
                }
            }
        }
    }
}

template <int AXIS, typename Rows>
__device__ __forceinline__ void
gather(const Rows &rows, const SweepTiles &t, int first, typename Rows::Number *shared)
{
    const Walk<AXIS> walk(t);

    for (int line = walk.line; line < walk.end; line++) {
        const int number = first + line;

        if (number < t.lines_of_field.first || number >= t.lines_of_field.end) {
            continue;
        }
        if (rows.is_plain(number)) {
            gather_line(rows, t, walk, line, number, true, shared);
        }
        else {
            gather_line(rows, t, walk, line, number, false, shared);
        }
    }
}

template <int AXIS, typename Rows>
__device__ __forceinline__ void
scatter(const Rows &rows, const SweepTiles &t, int first,
        const typename Rows::Number *shared)
{
    using Number = typename Rows::Number;
    const Walk<AXIS> walk(t);

    for (int line = walk.line; line < walk.end; line++) {
        const int number = first + line;
        const int end = number < t.lines_of_field.count ? t.nodes : 0;
        const bool inside =
            number >= t.lines_of_field.first && number < t.lines_of_field.end;

#pragma unroll 4
        for (int at = walk.node; at < end; at += walk.step) {
            const bool unknown = inside && at >= t.begin && at < t.rows_end;
            const Number *const word = shared + (unknown ? slot_of(t, line, at) : 0);

            rows.store(node_at<AXIS>(t, number, at), number, at, unknown,
                       unknown ? word[Rows::solution * t.plane] : Number(0), word);
        }
    }
}

/* Solve the lines of a tile. Pads before row 0 hold x = 0, the value of y_left there. */
template <int ROWS, typename Rows>
__device__ __forceinline__ void
solve_tile(const Rows &rows, const SweepTiles &t, ThreadPlace<ROWS> self, int first,
           typename Rows::Number *shared)
{
    using Number = typename Rows::Number;
    __shared__ WarpExchange<Number> exchange;
    Levels<Number, ROWS> levels;
    const int chunk = self.warp * t.shape.lanes + self.lane, line = first + self.slot;
    const bool idle = self.lane >= t.shape.lanes;
    Number *const word =
        idle ? shared : shared + self.slot * t.pitch + chunk * (ROWS + 1);

    if (line < t.lines_of_field.first || line >= t.lines_of_field.end) {
        self.clear();
    }
    for (int i = 0; i < -self.start && !idle; i++) {
        for (int k = 0; k < Rows::words; k++) {
            word[k * t.plane + i] = Number(0);
        }
    }
    levels.eliminate(self, [&](int i) {
        Number own[Rows::words];

#pragma unroll
        for (int k = 0; k < Rows::words; k++) {
            own[k] = word[k * t.plane + i];
        }
        const int at = self.start + i;
        Row<Number> row = rows.row(line, at + t.begin, own);

        row.lower = at <= 0 ? Number(0) : row.lower;
        row.upper =
            at < 0 || (i == ROWS - 1 && at == t.shape.rows - 1) ? Number(0) : row.upper;
        return row;
    });
    const Ends<Number> ends = levels.join_system(t.shape, self, false, exchange);

    levels.chunk.substitute(ends.y_left, ends.y, [&](int i, Number value) {
        if (!idle) {
            word[Rows::solution * t.plane + i] = value;
        }
    });
}

/* ROWS: of a chunk. */
template <int AXIS, int ROWS, typename Rows>
__global__ void
__launch_bounds__(largest_block, 1)
    sweep_kernel(const __grid_constant__ Rows rows, const __grid_constant__ SweepTiles t)
{
    extern __shared__ __align__(16) char memory[];
    auto *const shared = reinterpret_cast<typename Rows::Number *>(memory);
    const int more = static_cast<int>(gridDim.x) - t.blocks;
    const int block = static_cast<int>(blockIdx.x), first = (block - more) * t.lines;
    const ThreadPlace<ROWS> self(t.shape, 0);

    let_next_kernel_in();
    wait_for_last_kernel();
    if (block < more) {
        rows.other(block);
        return;
    }
    gather<AXIS>(rows, t, first, shared);
    __syncthreads();
    solve_tile(rows, t, self, first, shared);
    __syncthreads();
    scatter<AXIS>(rows, t, first, shared);
}

/* The tiles of lines with the unknowns `begin` to `end` - 1 of `nodes` nodes each. */
template <typename Number>
inline SweepTiles
sweep_tiles(const SweepLines &lines, int nodes, int begin, int end, int axis, int words,
            const ps_cuda_device *device, int of_chunk = chunk_rows)
{
    SweepTiles t = {};

    static_cast<LineTiles &>(t) =
        line_tiles(end - begin, lines.count, axis, words, sizeof(Number),
                   line_tile_bytes<Number>(device), of_chunk);
    t.nodes = nodes;
    t.begin = begin;
    t.rows_end = end;
    t.lines_of_field = lines;
    return t;
}

template <int AXIS, typename Rows, int ROWS = chunk_rows>
cudaError_t
set_up_sweep()
{
    return share_cache(sweep_kernel<AXIS, ROWS, Rows>);
}

/* `more`: the number of additional blocks. */
template <int AXIS, int ROWS = chunk_rows, typename Rows>
ps_status
launch_sweep(const Rows &rows, const SweepTiles &t, int64_t more, cudaStream_t stream)
{
    return launch_closely(sweep_kernel<AXIS, ROWS, Rows>, t.blocks + more, t.threads,
                          t.shared, stream, rows, t);
}

} // namespace pysolvers::flow

#endif
