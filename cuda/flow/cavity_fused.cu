/* cavity_fused.cu - a half-sweep of the cavity in one kernel (line_sweep.cuh).
 *
 * Each input field is read once, with the halo of the tiles, and x is written once.
 */
#include "flow/cavity_rows.cuh"
#include "flow/cavity_walls.cuh"
#include "flow/line_sweep.cuh"

namespace pysolvers::flow {

using namespace runtime;

namespace {

/* The rows of a source, its results, and walls that additional blocks relax. */
template <typename Source> struct SourceRows {
    using Number = double;
    static constexpr int words = Source::words, solution = 0, batch = 4;
    Source source;
    double *x;
    int end; /* the node of a line after the last unknown */
    Walls walls;

    __device__ __forceinline__ bool is_plain(int) const
    {
        return true;
    }

    __device__ __forceinline__ void node(int64_t p, int, int, bool, double *word) const
    {
        source.node(p, word);
    }

    __device__ __forceinline__ void adjust(int64_t p, int, int at, double *word) const
    {
        if (at == 1) {
            source.apply_wall(p, -1, word);
        }
        if (at == end - 1) {
            source.apply_wall(p, 1, word);
        }
    }

    __device__ __forceinline__ Row<double> row(int, int, const double *word) const
    {
        return source.row(word);
    }

    __device__ __forceinline__ void store(int64_t p, int, int, bool unknown, double value,
                                          const double *) const
    {
        x[p] = source.result(p, unknown ? value : source.wall(p));
    }

    __device__ __forceinline__ void other(int64_t block) const
    {
        relax_walls(walls, block);
    }
};

SweepTiles
tiles_for(int nodes, int axis, int words, const ps_cuda_device *device)
{
    return sweep_tiles<double>({1, nodes - 1, nodes, nodes}, nodes, 1, nodes - 1, axis,
                               words, device);
}

constexpr int most_words = 3;

template <typename Source>
cudaError_t
set_up_both()
{
    const cudaError_t error = set_up_sweep<0, SourceRows<Source>>();

    return error == cudaSuccess ? set_up_sweep<1, SourceRows<Source>>() : error;
}

template <int AXIS, typename Source>
ps_status
launch_source(const Source &source, const ps_cuda_sweep *s, const Walls &walls,
              cudaStream_t stream)
{
    const int nodes = static_cast<int>(s->nodes);
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const SweepTiles t = tiles_for(nodes, AXIS, Source::words, device);
    const int64_t more = walls.omega != nullptr ? wall_blocks(walls, t.threads) : 0;

    return launch_sweep<AXIS>(SourceRows<Source>{source, s->x, nodes - 1, walls}, t, more,
                              stream);
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
        return s->axis == 0 ? launch_source<0>(source, s, walls, stream)
                            : launch_source<1>(source, s, walls, stream);
    });
}

} // namespace pysolvers::flow
