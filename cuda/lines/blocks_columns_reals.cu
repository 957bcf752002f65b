/* blocks_columns_reals.cu - the kernels of columns of five diagonals, compiled once per real
 * dtype. */
#include "lines/blocks_columns.cuh"
#include "lines/columns/column_kernel.cuh"

namespace pysolvers::lines {

template <typename Real>
ps_status
launch_band_columns(const BandColumnJob<Real> &job, cudaStream_t stream)
{
    using Number = Block<Real, 2>;
    using Job = BandColumnJob<Real>;
    constexpr auto access = columns::ColumnAccess::sectors;
    constexpr int rows = Job::Tuned::rows;

    return job.shape.blocks > 1
               ? columns::launch_rings<Number, rows, true, access>(job, stream)
               : columns::launch_rings<Number, rows, false, access>(job, stream);
}

template ps_status launch_band_columns(const BandColumnJob<PS_NUMBER> &, cudaStream_t);

} // namespace pysolvers::lines
