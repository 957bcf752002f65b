/* column_grid.cuh - the launch of kernels of resident blocks, or clusters, that process
 * tiles of columns.
 */
#ifndef PS_CUDA_LINES_COLUMNS_COLUMN_GRID_CUH
#define PS_CUDA_LINES_COLUMNS_COLUMN_GRID_CUH

#include <type_traits>

#include "lines/columns/column.h"
#include "runtime/launch.cuh"

namespace pysolvers::columns {

struct ColumnGrid {
    cudaLaunchConfig_t config = {};

    ColumnGrid() = default;
    ColumnGrid(const ColumnGrid &) = delete; /* config points to attributes_ */

    /* The fewest blocks with which the busiest one has as few tiles as with all that are
     * resident at once. */
    template <bool IS_CLUSTER, typename Kernel>
    cudaError_t set(Kernel kernel, const ColumnShape &shape, int64_t tiles, size_t bytes,
                    cudaStream_t stream)
    {
        const int threads = 32 * shape.warps;
        int fit = 0;

        config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
        config.blockDim = dim3(static_cast<unsigned>(threads));
        config.dynamicSmemBytes = bytes;
        config.stream = stream;
        attributes_[0].id = cudaLaunchAttributeClusterDimension;
        attributes_[0].val.clusterDim = {config.gridDim.x, 1, 1};
        config.attrs = attributes_;
        config.numAttrs = IS_CLUSTER ? 1 : 0;

        const cudaError_t error =
            resident(kernel, threads, bytes, IS_CLUSTER ? shape.blocks : 1, &fit);
        if (error != cudaSuccess || fit == 0) {
            return error != cudaSuccess ? error : cudaErrorInvalidConfiguration;
        }
        const int64_t rounds = (tiles + fit - 1) / fit;
        config.gridDim.x *= static_cast<unsigned>((tiles + rounds - 1) / rounds);
        return cudaSuccess;
    }

    /* With programmatic dependent launch. */
    void allow_early_start()
    {
        cudaLaunchAttribute &attribute = attributes_[config.numAttrs++];

        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
    }

  private:
    cudaLaunchAttribute attributes_[2] = {};
};

/* call(rows, is_cluster) with the rows of a chunk, and whether there are clusters, as
 * integral constants. */
template <typename Number, typename Call>
inline cudaError_t
with_chunks(const ColumnShape &shape, const Call &call)
{
    using Tuned = ColumnTuning<Number>;
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
