/* shared_c128.cu - shared.cuh and shared_panels.cuh for complex128. */
#include "lines/panels/shared_panels.cuh"
#include "lines/shared/shared.cuh"

namespace pysolvers::shared {

using namespace panels;

PS_CUDA_SHARED_DEFINE(Complex<double>, c128)
PS_CUDA_PANELS_DEFINE(Complex<double>, c128)

} // namespace pysolvers::shared
