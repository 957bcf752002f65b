/* shared_f64.cu - shared.cuh and shared_panels.cuh for float64. */
#include "shared.cuh"
#include "shared_panels.cuh"

PS_CUDA_SHARED_DEFINE(double, f64)
PS_CUDA_PANELS_DEFINE(double, f64)
