/* deferred_dtypes.cu - the kernels of deferred.cuh, compiled once per dtype. */
#include "lines/partition/deferred.cuh"

namespace pysolvers::partition {

template ps_status launch_deferred(const Job<PS_NUMBER> &, const Plan &, cudaStream_t);

} // namespace pysolvers::partition
