/* shared_c128.cu - shared.cuh for complex128. */
#include "shared.cuh"

PS_CUDA_SHARED_DEFINE(Complex<double>, c128)
