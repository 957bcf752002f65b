/* side_columns_reals.cu - the kernels of column_kernel.cuh for several right-hand sides of each
 * matrix, compiled once per dtype. */
#include "lines/columns/column_kernel.cuh"

namespace pysolvers::columns {

template ps_status
launch_side_columns(const SideColumnJob<WithSides<PS_NUMBER, most_sides>> &,
                    cudaStream_t);

} // namespace pysolvers::columns
