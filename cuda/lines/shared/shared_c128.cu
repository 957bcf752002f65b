/* shared_c128.cu - shared.cuh and shared_panels.cuh for complex128. */
#include "lines/panels/shared_panels.cuh"
#include "lines/shared/shared.cuh"

namespace pysolvers::shared {

PS_CUDA_SHARED_DEFINE(Complex<double>, c128)

} // namespace pysolvers::shared

namespace pysolvers::panels {

PS_CUDA_PANELS_DEFINE(Complex<double>, c128)

} // namespace pysolvers::panels
