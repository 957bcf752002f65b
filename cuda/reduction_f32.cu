/* reduction_f32.cu - the module of one dtype. */
#include "reduction_solve.cuh"

const ps_cuda_reduction_type ps_cuda_reduction_f32 = reduction_type<float>;
