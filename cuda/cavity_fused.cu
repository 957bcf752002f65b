/* cavity_fused.cu - a half-sweep of the cavity in one kernel.
 *
 * A block takes a tile of neighbouring lines. It computes the words of their rows in
 * the order of memory into shared memory, solves the lines by the partition method
 * (segment.cuh), a chunk of 8 rows a thread, and stores the answers in the order of
 * memory again: each input field is read once and x written once, plus the halo of a
 * tile. The pitch of 9 words a chunk keeps shared memory free of bank conflicts.
 */
#include "cavity_rows.cuh"
#include "cavity_walls.cuh"
#include "launch.cuh"
#include "levels.cuh"

namespace {

constexpr int chunk_rows = 8, chunk_pitch = 9, warp_lanes = 32;
constexpr int largest_block = 512, batch = 4;

/* Lines first, first + 1, ... of nodes, walls counted, are the tile `blockIdx.x`; the
 * interior ones have a system each of nodes - 2 rows. */
struct Tiles {
    Shape shape;
    int nodes, lines, threads, blocks;
    int line_bits; /* along y: 2^line_bits threads side by side take the lines */
    int front;     /* empty rows before the first: lines are aligned to their ends */
    int pitch, plane;
    size_t shared;
};

/* The nodes of a thread in the order of memory: of the lines `line` to `end` of the
 * tile every `step`th row from `row` on, walls counted. */
template <int AXIS> struct Walk {
    int line, end, row, step;

    __device__ __forceinline__ explicit Walk(const Tiles &t)
    {
        const int thread = static_cast<int>(threadIdx.x);

        if (AXIS == 0) {
            line = 0;
            end = t.lines;
            row = thread;
            step = t.threads;
        }
        else {
            line = thread & ((1 << t.line_bits) - 1);
            end = min(line + 1, t.lines);
            row = thread >> t.line_bits;
            step = t.threads >> t.line_bits;
        }
    }
};

template <int AXIS>
__device__ __forceinline__ int64_t
node_at(const Tiles &t, int line, int row)
{
    return AXIS == 0 ? static_cast<int64_t>(line) * t.nodes + row
                     : static_cast<int64_t>(row) * t.nodes + line;
}

__device__ __forceinline__ int
slot_of(const Tiles &t, int line, int row)
{
    const int place = row - 1 + t.front;

    return line * t.pitch + place + place / chunk_rows;
}

template <int AXIS, typename Source>
__device__ __forceinline__ void
gather(const Source &source, const Tiles &t, int first, double *shared)
{
    const Walk<AXIS> walk(t);
    const int last = t.nodes - 1;

    for (int line = walk.line; line < walk.end; line++) {
        const bool inside = first + line > 0 && first + line < last;

        for (int row = walk.row; inside && row < last; row += batch * walk.step) {
            double word[batch][Source::words];

#pragma unroll
            for (int k = 0; k < batch; k++) {
                const int at = row + k * walk.step;
                const int64_t p = node_at<AXIS>(t, first + line, at);

                if (at > 0 && at < last) {
                    source.node(p, word[k]);
                }
                if (at == 1) {
                    source.take_wall(p, -1, word[k]);
                }
                if (at == last - 1) {
                    source.take_wall(p, 1, word[k]);
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
scatter(const Source &source, const Tiles &t, int first, const double *shared, double *x)
{
    const Walk<AXIS> walk(t);
    const int last = t.nodes - 1;

    for (int line = walk.line; line < walk.end; line++) {
        const int number = first + line;
        const int end = number <= last ? t.nodes : 0;

#pragma unroll 4
        for (int row = walk.row; row < end; row += walk.step) {
            const int64_t p = node_at<AXIS>(t, number, row);
            const bool wall = number == 0 || number == last || row == 0 || row == last;

            x[p] =
                source.result(p, wall ? source.wall(p) : shared[slot_of(t, line, row)]);
        }
    }
}

/* Places in front of row 0 hold x = 0, which is what y_left is there. */
template <typename Source>
__device__ __forceinline__ void
solve(const Source &source, const Tiles &t, int first, double *shared)
{
    __shared__ Meeting<double> meeting;
    Seat<chunk_rows> seat(t.shape, 0);
    Levels<double, chunk_rows> levels;
    const int chunk = seat.warp * t.shape.lanes + seat.lane, line = first + seat.slot;
    const bool idle = seat.lane >= t.shape.lanes;
    double *const word =
        idle ? shared : shared + seat.slot * t.pitch + chunk * chunk_pitch;
    double y_left = 0, y;

    if (line == 0 || line >= t.nodes - 1) {
        seat.leave();
    }
    for (int i = 0; i < -seat.start && !idle; i++) {
        for (int k = 0; k < Source::words; k++) {
            word[k * t.plane + i] = 0;
        }
    }
    levels.eliminate(seat, [&](int i) {
        double own[Source::words];

#pragma unroll
        for (int k = 0; k < Source::words; k++) {
            own[k] = word[k * t.plane + i];
        }
        const int at = seat.start + i;
        Row<double> row = source.row(own);

        row.lower = at <= 0 ? 0 : row.lower;
        row.upper =
            at < 0 || (i == chunk_rows - 1 && at == t.shape.rows - 1) ? 0 : row.upper;
        return row;
    });
    const Segment<double> whole = levels.climb(t.shape, seat, meeting);

    y = close_system(whole, false, t.shape.rows - 1, levels.fault);
    levels.descend(t.shape, seat, y_left, y);
    levels.chunk.substitute(y_left, y, [&](int i, double value) {
        if (!idle) {
            word[i] = value;
        }
    });
}

/* Blocks beyond the tiles relax the walls, of fields that no tile reads there. */
template <int AXIS, typename Source>
__global__ void
__launch_bounds__(largest_block)
    sweep_kernel(const __grid_constant__ Source source, const __grid_constant__ Tiles t,
                 double *x, const __grid_constant__ Walls walls)
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

/* What a block may ask for when it starts. */
int
dynamic_bytes(const ps_cuda_device *device)
{
    return device->shared_bytes - static_cast<int>(sizeof(Meeting<double>));
}

/* Lines along y want whole memory sectors, 4 lines; lines along x want small blocks,
 * which overlap each other. */
int
lines_for(const Shape &shape, int axis)
{
    const int block = axis == 0 ? 4 * warp_lanes : largest_block;
    const int wanted = axis == 0 ? shape.groups : 4;
    const int fitting = block / (shape.warps * warp_lanes);

    if (shape.warps > 1) {
        return fitting < 1 ? 1 : fitting > 4 ? 4 : fitting;
    }
    return (wanted + shape.groups - 1) / shape.groups * shape.groups;
}

void
set_lines(Tiles &t, int lines, int axis, int words)
{
    t.lines = lines;
    t.threads = lines / t.shape.groups * t.shape.warps * warp_lanes;
    t.blocks = (t.nodes + lines - 1) / lines;
    t.line_bits = 0;
    while (axis == 1 && 1 << t.line_bits < lines) {
        t.line_bits++;
    }
    t.pitch = t.shape.chunks() * chunk_pitch;
    while (lines > 1 && t.pitch % 16 != 4) {
        t.pitch++;
    }
    t.plane = lines * t.pitch;
    t.shared = static_cast<size_t>(words * t.plane) * sizeof(double);
}

/* Long lines take fewer to a tile where a block has less shared memory. */
Tiles
tiles_for(int nodes, int axis, int words, const ps_cuda_device *device)
{
    const int chunks = (nodes - 2 + chunk_rows - 1) / chunk_rows;
    const size_t most = static_cast<size_t>(dynamic_bytes(device));
    Tiles t = {};

    t.nodes = nodes;
    t.shape.rows = nodes - 2;
    t.shape.warps = (chunks + warp_lanes - 1) / warp_lanes;
    t.shape.lanes = t.shape.warps > 1 ? warp_lanes : chunks;
    t.shape.groups = warp_lanes / t.shape.lanes;
    t.shape.blocks = 1;
    t.front = t.shape.chunks() * chunk_rows - t.shape.rows;
    set_lines(t, lines_for(t.shape, axis), axis, words);
    while (t.shared > most && t.lines > t.shape.groups) {
        set_lines(t, t.lines - t.shape.groups, axis, words);
    }
    return t;
}

constexpr int most_words = 3;

/* All sweeps ask for the same share of the L1 memory, so that no multiprocessor has to
 * be set up anew between two of them. */
template <int AXIS, typename Source>
cudaError_t
allow_shared(int bytes)
{
    const void *const kernel =
        reinterpret_cast<const void *>(&sweep_kernel<AXIS, Source>);
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);

    return error == cudaSuccess
               ? cudaFuncSetAttribute(kernel,
                                      cudaFuncAttributePreferredSharedMemoryCarveout, 60)
               : error;
}

template <typename Source>
cudaError_t
allow_shared_both(int bytes)
{
    const cudaError_t error = allow_shared<0, Source>(bytes);

    return error == cudaSuccess ? allow_shared<1, Source>(bytes) : error;
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
    const Tiles t = tiles_for(static_cast<int>(s->nodes), AXIS, Source::words, device);
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
    const size_t most = static_cast<size_t>(dynamic_bytes(device));

    return tiles_for(count, 0, most_words, device).shared <= most &&
           tiles_for(count, 1, most_words, device).shared <= most;
}

ps_status
ps_cuda_fused_prepare(void)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const int bytes = dynamic_bytes(device);
    cudaError_t error = allow_shared_both<OmegaFirst>(bytes);

    error = error == cudaSuccess ? allow_shared_both<OmegaSecond>(bytes) : error;
    error = error == cudaSuccess ? allow_shared_both<Psi>(bytes) : error;
    error = error == cudaSuccess ? allow_shared_both<JacobiOmega>(bytes) : error;
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
