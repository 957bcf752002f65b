/* partition_sums_f64.cu - the partition kernels for float64, in row-sum form. */
#include "lines/partition/partition.cuh"

namespace pysolvers::partition {

cudaError_t
ps_cuda_partition_launch_sums_f64(const Job<BySums<double>> &job, Top top,
                                  const Plan &plan, cudaStream_t stream)
{
    return launch_partition(job, top, plan, stream);
}

} // namespace pysolvers::partition
