/* column_forms.cu - the kernels of column_kernel.cuh, compiled once per dtype and form.
 *
 * The forms of one dtype are separate translation units because they are compiled at the
 * same time: both together take 60 s for one architecture.
 */
#include "lines/columns/column_kernel.cuh"

namespace pysolvers::columns {

template ps_status launch_columns(const ColumnJob<PS_NUMBER> &, cudaStream_t);

} // namespace pysolvers::columns
