/* shared_f64.cu - shared.cuh and shared_panels.cuh for float64. */
#include "lines/panels/shared_panels.cuh"
#include "lines/shared/shared.cuh"

namespace pysolvers::shared {

PS_CUDA_SHARED_DEFINE(double, f64)

} // namespace pysolvers::shared

namespace pysolvers::panels {

PS_CUDA_PANELS_DEFINE(double, f64)

} // namespace pysolvers::panels
