/* shared_f64.cu - shared.cuh for float64. */
#include "shared.cuh"

PS_CUDA_SHARED_DEFINE(double, f64)
