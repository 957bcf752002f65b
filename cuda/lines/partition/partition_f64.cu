/* partition_f64.cu - the partition kernels for float64, in both forms. */
#include "lines/partition/partition.cuh"

namespace pysolvers::partition {

cudaError_t
ps_cuda_partition_launch_f64(const Job<double> &job, Top top, const Plan &plan,
                             cudaStream_t stream)
{
    return launch_partition(job, top, plan, stream);
}

cudaError_t
ps_cuda_partition_launch_sums_f64(const Job<BySums<double>> &job, Top top,
                                  const Plan &plan, cudaStream_t stream)
{
    return launch_partition(job, top, plan, stream);
}

} // namespace pysolvers::partition
