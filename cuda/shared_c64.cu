/* shared_c64.cu - shared.cuh for complex64. */
#include "shared.cuh"

PS_CUDA_SHARED_DEFINE(Complex<float>, c64)
