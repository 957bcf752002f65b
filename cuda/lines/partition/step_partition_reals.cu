/* step_partition_reals.cu - the kernels of partition.cuh for steps, compiled once per
 * dtype. */
#include "lines/partition/partition.cuh"

namespace pysolvers::partition {

template ps_status launch_step_partition(const StepJob<PS_NUMBER, false> &, const Plan &,
                                         cudaStream_t);
template ps_status launch_step_partition(const StepJob<PS_NUMBER, true> &, const Plan &,
                                         cudaStream_t);
template ps_status launch_flux_partition(const FluxJob<PS_NUMBER, FluxKind::bare> &,
                                         const Plan &, cudaStream_t);
template ps_status launch_flux_partition(const FluxJob<PS_NUMBER, FluxKind::more> &,
                                         const Plan &, cudaStream_t);

} // namespace pysolvers::partition
