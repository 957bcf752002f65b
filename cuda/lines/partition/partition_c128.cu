/* partition_c128.cu - the partition kernels for complex128. */
#include "lines/partition/partition.cuh"

namespace pysolvers::partition {

cudaError_t
ps_cuda_partition_launch_c128(const Job<Complex<double>> &job, Top top, const Plan &plan,
                              cudaStream_t stream)
{
    return launch_partition(job, top, plan, stream);
}

} // namespace pysolvers::partition
