/* recurrence_dtypes.cu - the kernels of recurrence.cuh, compiled once per dtype. */
#include "lines/recurrence.cuh"

namespace pysolvers::lines {

template ps_status launch_recurrence(const RecurrenceJob<PS_NUMBER> &, cudaStream_t);

} // namespace pysolvers::lines
