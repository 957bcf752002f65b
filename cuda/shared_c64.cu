/* shared_c64.cu - shared.cuh and shared_panels.cuh for complex64. */
#include "shared.cuh"
#include "shared_panels.cuh"

PS_CUDA_SHARED_DEFINE(Complex<float>, c64)
PS_CUDA_PANELS_DEFINE(Complex<float>, c64)
