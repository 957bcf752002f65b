/* shared_f32.cu - shared.cuh for float32. */
#include "shared.cuh"

PS_CUDA_SHARED_DEFINE(float, f32)
