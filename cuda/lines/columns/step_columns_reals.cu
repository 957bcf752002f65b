/* step_columns_reals.cu - the kernels of column_kernel.cuh for steps, compiled once per
 * dtype. */
#include "lines/columns/column_kernel.cuh"

namespace pysolvers::columns {

template ps_status launch_step_columns(const StepColumnJob<PS_NUMBER, StepKind::bare> &,
                                       cudaStream_t);
template ps_status launch_step_columns(const StepColumnJob<PS_NUMBER, StepKind::more> &,
                                       cudaStream_t);

} // namespace pysolvers::columns
