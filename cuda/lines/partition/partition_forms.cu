/* partition_forms.cu - the kernels of partition.cuh, compiled once per dtype and form. */
#include "lines/partition/partition.cuh"

namespace pysolvers::partition {

template ps_status launch_partition(const Job<PS_NUMBER> &, Top, const Plan &,
                                    cudaStream_t);
template ps_status launch_halos(const HaloJob<PS_NUMBER> &, const Plan &, cudaStream_t);

} // namespace pysolvers::partition
