/* partition_c64.cu - the partition kernels for complex64. */
#include "lines/partition/partition.cuh"

namespace pysolvers::partition {

cudaError_t
ps_cuda_partition_launch_c64(const Job<Complex<float>> &job, Top top, const Plan &plan,
                             cudaStream_t stream)
{
    return launch_partition(job, top, plan, stream);
}

} // namespace pysolvers::partition
