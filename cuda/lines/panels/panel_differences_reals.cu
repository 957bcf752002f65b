/* panel_differences_reals.cu - panels whose right-hand sides are differences of rows
 * (panel.cuh, panel_stencils.cuh), compiled once per dtype.
 */
#include "lines/panels/panel_stencils.cuh"
#include "lines/panels/shared_panels.cuh"

namespace pysolvers::panels {

template ps_status panels_launch(const PanelTeams<PS_NUMBER> &,
                                 const SharedPanels<PS_NUMBER> &,
                                 const SharedMatrix<PS_NUMBER> &,
                                 const PanelDifferences<PS_NUMBER> &, cudaStream_t);
template ps_status panels_launch(const PanelTeams<PS_NUMBER> &,
                                 const SharedPanels<PS_NUMBER> &,
                                 const SharedMatrix<PS_NUMBER> &,
                                 const PanelStencils<PS_NUMBER> &, cudaStream_t);

} // namespace pysolvers::panels
