/* blocks_reals.cu - the kernels of systems of blocks, compiled once per real dtype. */
#include <algorithm>
#include <type_traits>

#include "lines/blocks_columns.cuh"
#include "lines/blocks_in_place.cuh"
#include "lines/blocks_lines.cuh"
#include "lines/blocks_pivoted.cuh"
#include "lines/blocks_tiles.cuh"
#include "lines/five_columns.cuh"
#include "lines/five_turns.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::lines {

/* Launch as many blocks, or clusters of `cluster` blocks, as are resident at the same time, or as there are
 * tiles. */
template <typename Kernel, typename Real>
inline ps_status
launch_resident(Kernel kernel, const BlocksJob<Real> &job, int64_t tiles, int threads,
                uint32_t shared_bytes, cudaStream_t stream, int cluster = 1)
{
    int fit = 0;
    const ps_status status = resident(kernel, threads, shared_bytes, cluster, &fit);

    if (status != PS_OK) {
        return status;
    }
    Launch launch(std::min<int64_t>(tiles, fit) * cluster, threads, shared_bytes, stream);

    if (cluster > 1) {
        launch.in_clusters(cluster);
    }
    return launch.run(kernel, job);
}

/* The same for tiles of whole systems. */
template <typename Kernel, typename Real>
inline ps_status
launch_systems(Kernel kernel, const BlocksJob<Real> &job, cudaStream_t stream)
{
    const BlocksLines &t = job.lines;
    const int64_t tiles = divided_up(job.outer * job.inner, int64_t(t.systems));

    return launch_resident(kernel, job, tiles, t.threads, t.shared_bytes, stream);
}

template <typename Real>
inline ps_status
launch_rows(const BlocksJob<Real> &job, int64_t systems, cudaStream_t stream)
{
    const bool is_near = job.shared_bytes > 0;
    const auto launch = [&](auto kernel) {
        const cudaError_t error = is_near ? allow_shared(kernel) : cudaSuccess;

        return error != cudaSuccess
                   ? ps_cuda_status(error)
                   : Launch(divided_up(systems, int64_t(32)),
                            job.has_tiles ? 32 : five_threads, job.shared_bytes, stream)
                         .run(kernel, job);
    };

    if constexpr (sizeof(Real) == 8) {
        if (job.has_turns) {
            return launch_resident(five_turns_kernel<Real>, job,
                                   divided_up(systems, int64_t(turn_systems)),
                                   five_threads, job.shared_bytes, stream);
        }
    }
    return !is_near        ? launch(five_rows_kernel<Real, false>)
           : job.has_tiles ? launch(five_tiles_kernel<Real>)
                           : launch(five_rows_kernel<Real, true>);
}

template <typename Real>
inline ps_status
launch_five_lines(const BlocksJob<Real> &job, cudaStream_t stream)
{
    const auto with_rows = [&](auto alike) {
        constexpr bool MAY_BE_ALIKE = decltype(alike)::value;

        return job.chunk == 16 ? launch_systems(five_lines_kernel<Real, 16, MAY_BE_ALIKE>,
                                                job, stream)
                               : launch_systems(five_lines_kernel<Real, 32, MAY_BE_ALIKE>,
                                                job, stream);
    };

    return job.is_alike ? with_rows(std::true_type{}) : with_rows(std::false_type{});
}

/* Solve all systems from row 0 on, or those with a bad pivot. */
template <typename Real, int SIDE, bool IS_BANDS, bool IS_BAD>
inline ps_status
launch_in_sequence(const BlocksJob<Real> &job, cudaStream_t stream)
{
    return for_elements<blocks_threads>(
        job.outer * job.inner, stream,
        BlocksInSequence<Real, SIDE, IS_BANDS, IS_BAD>{job});
}

template <typename Real>
inline ps_status
launch_five_columns(const BlocksJob<Real> &job, cudaStream_t stream)
{
    const BlocksLines &t = job.lines;
    const int blocks = t.shape.blocks;

    return launch_resident(blocks > 1 ? five_columns_kernel<Real, true>
                                      : five_columns_kernel<Real, false>,
                           job, job.tiles, t.threads, t.shared_bytes, stream, blocks);
}

template <typename Real, int SIDE>
inline ps_status
launch_in_place(const BlocksJob<Real> &job, cudaStream_t stream)
{
    const ps_status status =
        launch_systems(blocks_in_place_kernel<Real, SIDE>, job, stream);

    return status != PS_OK || job.checks || job.info == nullptr
               ? status
               : launch_in_sequence<Real, SIDE, false, true>(job, stream);
}

template <typename Real, int SIDE, bool IS_BANDS>
inline ps_status
launch_pivoted(const BlocksJob<Real> &job, cudaStream_t stream)
{
    const int64_t slots = std::min(job.outer * job.inner, job.slots);
    const int threads = static_cast<int>(std::min<int64_t>(job.slots, blocks_threads));

    return Launch(divided_up(slots, threads), threads, 0, stream)
        .run(blocks_pivoted_kernel<Real, SIDE, IS_BANDS>, job);
}

template <typename Real, int SIDE, bool IS_BANDS>
inline ps_status
launch_side(const BlocksJob<Real> &job, cudaStream_t stream)
{
    const int64_t systems = job.outer * job.inner;
    ps_status status = PS_OK;

    if constexpr (IS_BANDS) {
        if constexpr (std::is_same_v<Real, float>) {
            if (job.by_columns) {
                status = launch_band_columns(column_job_of(job), stream);
            }
        }
        if (job.has_rows) {
            status = launch_rows(job, systems, stream);
        }
        if (job.chunk > 0) {
            status = launch_five_lines(job, stream);
        }
        if (job.has_columns) {
            status = launch_five_columns(job, stream);
        }
    }
    if constexpr (!IS_BANDS && (SIDE < 4 || std::is_same_v<Real, float>)) {
        if (job.lines.is_in_place) {
            status = launch_in_place<Real, SIDE>(job, stream);
        }
    }
    if constexpr (SIDE == 2) {
        if (job.lines.is_used && !job.lines.is_in_place) {
            status =
                launch_systems(blocks_lines_kernel<Real, SIDE, IS_BANDS>, job, stream);
        }
    }
    if (!job.pivots && job.is_tiled) {
        const auto kernel = blocks_tiles_kernel<Real, SIDE, IS_BANDS>;

        status = ps_cuda_status(allow_shared(kernel));
        if (status == PS_OK) {
            status = Launch(divided_up(systems, tile_systems), tile_threads,
                            job.shared_bytes, stream)
                         .run(kernel, job);
        }
    }
    if (!job.pivots && job.chunk == 0 && !job.has_rows && !job.is_tiled &&
        !job.lines.is_used && !job.by_columns && !job.has_columns) {
        status = launch_in_sequence<Real, SIDE, IS_BANDS, false>(job, stream);
    }
    return status == PS_OK && (job.pivots || job.checks)
               ? launch_pivoted<Real, SIDE, IS_BANDS>(job, stream)
               : status;
}

template <typename Real>
ps_status
launch_blocks(const BlocksJob<Real> &job, cudaStream_t stream)
{
    switch (job.side) {
    case 0:
        return launch_side<Real, 2, true>(job, stream);
    case 2:
        return launch_side<Real, 2, false>(job, stream);
    case 3:
        return launch_side<Real, 3, false>(job, stream);
    default:
        return launch_side<Real, 4, false>(job, stream);
    }
}

template <typename Real, int SIDE, bool IS_BANDS>
inline ps_status
launch_marked_side(const BlocksJob<Real> &job, cudaStream_t stream)
{
    return job.checks ? launch_pivoted<Real, SIDE, IS_BANDS>(job, stream)
                      : launch_in_sequence<Real, SIDE, IS_BANDS, true>(job, stream);
}

template <typename Real>
ps_status
launch_marked(const BlocksJob<Real> &job, cudaStream_t stream)
{
    switch (job.side) {
    case 0:
        return launch_marked_side<Real, 2, true>(job, stream);
    case 2:
        return launch_marked_side<Real, 2, false>(job, stream);
    case 3:
        return launch_marked_side<Real, 3, false>(job, stream);
    default:
        return launch_marked_side<Real, 4, false>(job, stream);
    }
}

template ps_status launch_blocks(const BlocksJob<PS_NUMBER> &, cudaStream_t);
template ps_status launch_marked(const BlocksJob<PS_NUMBER> &, cudaStream_t);

} // namespace pysolvers::lines
