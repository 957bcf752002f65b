/* shared_f32.cu - shared.cuh and shared_panels.cuh for float32. */
#include "shared.cuh"
#include "shared_panels.cuh"

PS_CUDA_SHARED_DEFINE(float, f32)
PS_CUDA_PANELS_DEFINE(float, f32)
