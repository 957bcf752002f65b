/* flux_columns_reals.cu - the kernels of column_kernel.cuh for fluxes, compiled once per
 * dtype. */
#include "lines/columns/column_kernel.cuh"

namespace pysolvers::columns {

template ps_status launch_flux_columns(const FluxColumnJob<PS_NUMBER, FluxKind::bare> &,
                                       cudaStream_t);
template ps_status launch_flux_columns(const FluxColumnJob<PS_NUMBER, FluxKind::more> &,
                                       cudaStream_t);

} // namespace pysolvers::columns
