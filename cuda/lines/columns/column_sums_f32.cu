/* column_sums_f32.cu - the column kernels for float32, in row-sum form.
 *
 * Apart from column_f32.cu, because the two are compiled at the same time: one file
 * takes 60 s for one architecture, each of the two half of it. The registers of the
 * kernels are the same.
 */
#include "lines/columns/column_kernel.cuh"

namespace pysolvers::columns {

cudaError_t
ps_cuda_column_launch_sums_f32(const ColumnJob<BySums<float>> &job, cudaStream_t stream)
{
    return launch_columns(job, stream);
}

} // namespace pysolvers::columns
