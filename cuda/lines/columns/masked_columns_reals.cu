/* masked_columns_reals.cu - the kernels of column_kernel.cuh for steps with a mask and
 * without a source, compiled once per dtype.
 *
 * Why apart from the kernels of plain rows: the mask is read with the rows of the step in
 * one pass. Fraction of the words at the speed of a copy in the same run, one H200, first
 * axis, before and after: float64 100 rows 0.24 and 0.79 to 0.85, 1000 rows 0.23 and 0.74
 * to 0.76; float32 0.43 and 0.67.
 */
#include "lines/columns/column_kernel.cuh"

namespace pysolvers::columns {

template ps_status launch_step_columns(const StepColumnJob<PS_NUMBER, StepKind::masked> &,
                                       cudaStream_t);

} // namespace pysolvers::columns
