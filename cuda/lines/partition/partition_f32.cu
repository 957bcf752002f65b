/* partition_f32.cu - the partition kernels for float32, in both forms. */
#include "lines/partition/partition.cuh"

namespace pysolvers::partition {

cudaError_t
ps_cuda_partition_launch_f32(const Job<float> &job, Top top, const Plan &plan,
                             cudaStream_t stream)
{
    return launch_partition(job, top, plan, stream);
}

cudaError_t
ps_cuda_partition_launch_sums_f32(const Job<BySums<float>> &job, Top top,
                                  const Plan &plan, cudaStream_t stream)
{
    return launch_partition(job, top, plan, stream);
}

} // namespace pysolvers::partition
