/* partition_f32.cu - the partition kernels for float32. */
#include "lines/partition/partition.cuh"

namespace pysolvers::partition {

cudaError_t
ps_cuda_partition_launch_f32(const Job<float> &job, Top top, const Plan &plan,
                             cudaStream_t stream)
{
    return launch_partition(job, top, plan, stream);
}

} // namespace pysolvers::partition
