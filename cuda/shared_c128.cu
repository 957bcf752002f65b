/* shared_c128.cu - shared.cuh and shared_panels.cuh for complex128. */
#include "shared.cuh"
#include "shared_panels.cuh"

PS_CUDA_SHARED_DEFINE(Complex<double>, c128)
PS_CUDA_PANELS_DEFINE(Complex<double>, c128)
