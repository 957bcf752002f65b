/* rows_reals.cu - the kernels of rows.cuh, compiled once per dtype. */
#include "lines/sides/rows.cuh"

namespace pysolvers::sides {

template ps_status launch_side_rows(const SideRowsJob<PS_NUMBER> &, cudaStream_t);

} // namespace pysolvers::sides
