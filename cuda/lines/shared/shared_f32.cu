/* shared_f32.cu - shared.cuh and shared_panels.cuh for float32. */
#include "lines/panels/shared_panels.cuh"
#include "lines/shared/shared.cuh"

namespace pysolvers::shared {

PS_CUDA_SHARED_DEFINE(float, f32)

} // namespace pysolvers::shared

namespace pysolvers::panels {

PS_CUDA_PANELS_DEFINE(float, f32)

} // namespace pysolvers::panels
