/* column_sums_f32.cu - the column kernels for float32, in row-sum form. */
#include "lines/columns/column_kernel.cuh"

namespace pysolvers::columns {

cudaError_t
ps_cuda_column_launch_sums_f32(const ColumnJob<BySums<float>> &job, cudaStream_t stream)
{
    return launch_columns(job, stream);
}

} // namespace pysolvers::columns
