/* column_f32.cu - the column kernels for float32. */
#include "column_kernel.cuh"

cudaError_t
ps_cuda_column_launch_f32(const ColumnJob<float> &job, cudaStream_t stream)
{
    return launch_columns(job, stream);
}
