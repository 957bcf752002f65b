/* shared_dtypes.cu - the kernels of shared.cuh and shared_panels.cuh, compiled once per
 * dtype.
 */
#include "lines/panels/shared_panels.cuh"
#include "lines/shared/shared.cuh"

namespace pysolvers::shared {

template ps_status shared_launch(const SharedJob<PS_NUMBER> &, const SharedSides &,
                                 cudaStream_t);
template ps_status shared_keep(const SharedMatrix<PS_NUMBER> &,
                               const ps_cuda_shared_shape &, void *, int32_t *, uint8_t *,
                               cudaStream_t);

} // namespace pysolvers::shared

namespace pysolvers::panels {

template ps_status panels_launch(const PanelTeams<PS_NUMBER> &,
                                 const SharedPanels<PS_NUMBER> &,
                                 const SharedMatrix<PS_NUMBER> &, const PanelRows &,
                                 cudaStream_t);
template ps_status panels_keep(const SharedMatrix<PS_NUMBER> &,
                               const PanelTable<PS_NUMBER> &, int32_t, int32_t,
                               const compact::ColumnNeeds &, cudaStream_t);

} // namespace pysolvers::panels
