/* blocks_columns.cu - the kernels of columns of five diagonals, in float32. */
#include "lines/blocks_columns.cuh"
#include "lines/columns/column_kernel.cuh"

namespace pysolvers::lines {

ps_status
launch_band_columns(const BandColumnJob<float> &job, cudaStream_t stream)
{
    using Number = Block<float, 2>;
    constexpr auto access = columns::ColumnAccess::sectors;
    constexpr int rows = BandColumnJob<float>::Tuned::rows;

    return job.shape.blocks > 1
               ? columns::launch_rings<Number, rows, true, access>(job, stream)
               : columns::launch_rings<Number, rows, false, access>(job, stream);
}

} // namespace pysolvers::lines
