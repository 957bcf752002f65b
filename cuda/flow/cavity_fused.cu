/* cavity_fused.cu - a half-sweep of the cavity in one kernel.
 *
 * A block solves a tile of neighbouring lines (line_tiles.cuh). It reads the fields in
 * the order of memory and stores the numbers of which the rows are made in shared
 * memory, solves the lines by the partition method (segment.cuh), and writes the
 * solution in the order of memory. Each input field is read once, with the halo of the
 * tile, and x is written once.
 */
#include "flow/cavity_rows.cuh"
#include "flow/cavity_walls.cuh"
#include "lines/join/line_tiles.cuh"
#include "runtime/launch.cuh"

namespace pysolvers::flow {

using namespace runtime;

namespace {

constexpr int batch = 4;

template <int AXIS>
__device__ __forceinline__ int64_t
node_at(const LineTiles &t, int line, int row)
{
    return AXIS == 0 ? static_cast<int64_t>(line) * t.nodes + row
                     : static_cast<int64_t>(row) * t.nodes + line;
}

template <int AXIS, typename Source>
__device__ __forceinline__ void
gather(const Source &source, const LineTiles &t, int first, double *shared)
{
    const Walk<AXIS> walk(t);
    const int last = t.nodes - 1;

    for (int line = walk.line; line < walk.end; line++) {
        const bool inside = first + line > 0 && first + line < last;

        for (int row = walk.node; inside && row < last; row += batch * walk.step) {
            double word[batch][Source::words];

#pragma unroll
            for (int k = 0; k < batch; k++) {
                const int at = row + k * walk.step;
                const int64_t p = node_at<AXIS>(t, first + line, at);

                if (at > 0 && at < last) {
                    source.node(p, word[k]);
                }
                if (at == 1) {
                    source.apply_wall(p, -1, word[k]);
                }
                if (at == last - 1) {
                    source.apply_wall(p, 1, word[k]);
                }
            }
#pragma unroll
            for (int k = 0; k < batch; k++) {
                const int at = row + k * walk.step, slot = slot_of(t, line, at);

#pragma unroll
                for (int i = 0; i < Source::words; i++) {
                    if (at > 0 && at < last) {
                        shared[i * t.plane + slot] = word[k][i];
                    }
                }
            }
        }
    }
}

template <int AXIS, typename Source>
__device__ __forceinline__ void
scatter(const Source &source, const LineTiles &t, int first, const double *shared,
        double *x)
{
    const Walk<AXIS> walk(t);
    const int last = t.nodes - 1;

    for (int line = walk.line; line < walk.end; line++) {
        const int number = first + line;
        const int end = number <= last ? t.nodes : 0;

#pragma unroll 4
        for (int row = walk.node; row < end; row += walk.step) {
            const int64_t p = node_at<AXIS>(t, number, row);
            const bool wall = number == 0 || number == last || row == 0 || row == last;

            x[p] =
                source.result(p, wall ? source.wall(p) : shared[slot_of(t, line, row)]);
        }
    }
}

/* Solve the lines of a tile. Pads before row 0 hold x = 0, the value of y_left there. */
template <typename Source>
__device__ __forceinline__ void
solve(const Source &source, const LineTiles &t, int first, double *shared)
{
    __shared__ WarpExchange<double> exchange;
    ThreadPlace<chunk_rows> self(t.shape, 0);
    Levels<double, chunk_rows> levels;
    const int chunk = self.warp * t.shape.lanes + self.lane, line = first + self.slot;
    const bool idle = self.lane >= t.shape.lanes;
    double *const word =
        idle ? shared : shared + self.slot * t.pitch + chunk * chunk_pitch;
    double y_left = 0, y;

    if (line == 0 || line >= t.nodes - 1) {
        self.clear();
    }
    for (int i = 0; i < -self.start && !idle; i++) {
        for (int k = 0; k < Source::words; k++) {
            word[k * t.plane + i] = 0;
        }
    }
    levels.eliminate(self, [&](int i) {
        double own[Source::words];

#pragma unroll
        for (int k = 0; k < Source::words; k++) {
            own[k] = word[k * t.plane + i];
        }
        const int at = self.start + i;
        Row<double> row = source.row(own);

        row.lower = at <= 0 ? 0 : row.lower;
        row.upper =
            at < 0 || (i == chunk_rows - 1 && at == t.shape.rows - 1) ? 0 : row.upper;
        return row;
    });
    const Segment<double> whole = levels.reduce_block(t.shape, self, exchange);

    y = close_system(whole, false, t.shape.rows - 1, levels.bad_pivot);
    levels.broadcast_down(t.shape, self, y_left, y);
    levels.chunk.substitute(y_left, y, [&](int i, double value) {
        if (!idle) {
            word[i] = value;
        }
    });
}

/* Sweep over a tile. Blocks beyond the tiles relax the walls of fields that no tile
 * reads there. */
template <int AXIS, typename Source>
__global__ void
__launch_bounds__(largest_block)
    sweep_kernel(const __grid_constant__ Source source,
                 const __grid_constant__ LineTiles t, double *x,
                 const __grid_constant__ Walls walls)
{
    extern __shared__ double shared[];
    const int block = static_cast<int>(blockIdx.x), first = block * t.lines;

    wait_for_last_kernel();
    if (block >= t.blocks) {
        relax_walls(walls, block - t.blocks);
        return;
    }
    gather<AXIS>(source, t, first, shared);
    __syncthreads();
    let_next_kernel_in();
    solve(source, t, first, shared);
    __syncthreads();
    scatter<AXIS>(source, t, first, shared, x);
}

LineTiles
tiles_for(int nodes, int axis, int words, const ps_cuda_device *device)
{
    LineTiles t = line_tiles(nodes - 2, nodes, axis, words, sizeof(double),
                             line_tile_bytes<double>(device));

    t.nodes = nodes;
    t.begin = 1;
    return t;
}

constexpr int most_words = 3;

/* All sweeps request the same split of the L1 cache, so that a multiprocessor need not
 * be reconfigured between two of them. */
template <int AXIS, typename Source>
cudaError_t
set_up_sweep()
{
    const auto kernel = sweep_kernel<AXIS, Source>;
    const cudaError_t error = allow_shared(kernel);

    return error == cudaSuccess
               ? cudaFuncSetAttribute(kernel,
                                      cudaFuncAttributePreferredSharedMemoryCarveout, 60)
               : error;
}

template <typename Source>
cudaError_t
set_up_both()
{
    const cudaError_t error = set_up_sweep<0, Source>();

    return error == cudaSuccess ? set_up_sweep<1, Source>() : error;
}

template <int AXIS, typename Source>
ps_status
launch_sweep(const Source &source, const ps_cuda_sweep *s, const Walls &walls,
             cudaStream_t stream)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const LineTiles t =
        tiles_for(static_cast<int>(s->nodes), AXIS, Source::words, device);
    const int64_t more = walls.omega != nullptr ? wall_blocks(walls, t.threads) : 0;

    return launch_closely(sweep_kernel<AXIS, Source>, t.blocks + more, t.threads,
                          t.shared, stream, source, t, s->x, walls);
}

} // namespace

int
ps_cuda_fused_fits(int64_t nodes)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr || nodes - 2 > largest_block * chunk_rows) {
        return 0;
    }
    const int count = static_cast<int>(nodes);
    const size_t most = line_tile_bytes<double>(device);

    return tiles_for(count, 0, most_words, device).shared <= most &&
           tiles_for(count, 1, most_words, device).shared <= most;
}

ps_status
ps_cuda_fused_prepare(void)
{
    cudaError_t error = set_up_both<OmegaFirst>();

    error = error == cudaSuccess ? set_up_both<OmegaSecond>() : error;
    error = error == cudaSuccess ? set_up_both<Psi>() : error;
    error = error == cudaSuccess ? set_up_both<JacobiOmega>() : error;
    return ps_cuda_status(error);
}

ps_status
ps_cuda_fused_solve(const ps_cuda_sweep *s, const ps_cuda_walls *also,
                    cudaStream_t stream)
{
    const Walls walls =
        also != nullptr ? walls_of(also->c, also->psi, also->omega) : Walls{};

    return with_source(*s, [&](const auto &source) {
        return s->axis == 0 ? launch_sweep<0>(source, s, walls, stream)
                            : launch_sweep<1>(source, s, walls, stream);
    });
}

} // namespace pysolvers::flow
