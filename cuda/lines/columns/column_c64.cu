/* column_c64.cu - the column kernels for complex64. */
#include "lines/columns/column_kernel.cuh"

namespace pysolvers::columns {

cudaError_t
ps_cuda_column_launch_c64(const ColumnJob<Complex<float>> &job, cudaStream_t stream)
{
    return launch_columns(job, stream);
}

} // namespace pysolvers::columns
