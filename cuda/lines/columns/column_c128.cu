/* column_c128.cu - the column kernels for complex128. */
#include "lines/columns/column_kernel.cuh"

namespace pysolvers::columns {

cudaError_t
ps_cuda_column_launch_c128(const ColumnJob<Complex<double>> &job, cudaStream_t stream)
{
    return launch_columns(job, stream);
}

} // namespace pysolvers::columns
