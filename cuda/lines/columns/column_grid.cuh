/* column_grid.cuh - the launch of kernels of resident blocks, or clusters, that process
 * tiles of columns.
 */
#ifndef PS_CUDA_LINES_COLUMNS_COLUMN_GRID_CUH
#define PS_CUDA_LINES_COLUMNS_COLUMN_GRID_CUH

#include <type_traits>

#include "lines/columns/column.h"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::columns {

/* The launch of resident blocks, or clusters: the fewest with which the busiest one has as
 * few tiles as with all that are resident at once. */
template <bool IS_CLUSTER, typename Kernel, typename Call>
inline ps_status
with_column_grid(Kernel kernel, const ColumnShape &shape, int64_t tiles, size_t bytes,
                 cudaStream_t stream, const Call &call)
{
    const int threads = 32 * shape.warps;
    int fit = 0;
    const ps_status status =
        resident(kernel, threads, bytes, IS_CLUSTER ? shape.blocks : 1, &fit);

    if (status != PS_OK) {
        return status;
    }
    const int64_t rounds = divided_up(tiles, fit);
    Launch launch(divided_up(tiles, rounds) * shape.blocks, threads, bytes, stream);

    if (IS_CLUSTER) {
        launch.in_clusters(shape.blocks);
    }
    return call(launch);
}

/* call(rows, is_cluster) with the rows of a chunk, and whether there are clusters, as
 * integral constants. */
template <typename Tuned, typename Call>
inline ps_status
with_chunks(const ColumnShape &shape, const Call &call)
{
    constexpr auto rows = std::integral_constant<int, Tuned::rows>();
    constexpr auto alone = std::integral_constant<int, Tuned::alone>();
    constexpr auto least = std::integral_constant<int, Tuned::shorter[0]>();
    constexpr auto fewer = std::integral_constant<int, Tuned::shorter[1]>();
    constexpr auto most = std::integral_constant<int, Tuned::shorter[2]>();
    constexpr std::bool_constant<true> cluster;
    constexpr std::bool_constant<false> block;
    const int chunk = shape.chunk;

    if (shape.blocks > 1) {
        return chunk < Tuned::rows ? call(most, cluster) : call(rows, cluster);
    }
    if constexpr (Tuned::alone > Tuned::rows) {
        if (chunk == Tuned::alone) {
            return call(alone, block);
        }
    }
    if (chunk == Tuned::shorter[0]) {
        return call(least, block);
    }
    if (chunk == Tuned::shorter[1]) {
        return call(fewer, block);
    }
    return chunk < Tuned::rows ? call(most, block) : call(rows, block);
}

} // namespace pysolvers::columns

#endif
