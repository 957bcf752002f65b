/* step_rows_dtypes.cu - the kernels of step_rows.cuh, compiled once per dtype. */
#include "lines/step_rows.cuh"

namespace pysolvers::lines {

template ps_status launch_step_rows(const StepRowsJob<PS_NUMBER> &, cudaStream_t);
template ps_status launch_step_blend(const StepBlendJob<PS_NUMBER> &, cudaStream_t);

} // namespace pysolvers::lines
