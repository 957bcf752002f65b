/* masked_columns_reals.cu - the kernels of column_kernel.cuh for steps with a mask and
 * without a source, compiled once per dtype. */
#include "lines/columns/column_kernel.cuh"

namespace pysolvers::columns {

template ps_status launch_step_columns(const StepColumnJob<PS_NUMBER, StepKind::masked> &,
                                       cudaStream_t);

} // namespace pysolvers::columns
