/* partition_c64.cu - the partition kernels for complex64. */
#include "partition.cuh"

cudaError_t
ps_cuda_partition_launch_c64(const Job<Complex<float>> &job, Top top, const Plan &plan,
                             cudaStream_t stream)
{
    return launch_partition(job, top, plan, stream);
}
