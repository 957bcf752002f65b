/* reduction_c64.cu - the module of one dtype. */
#include "reduction_solve.cuh"

const ps_cuda_reduction_type ps_cuda_reduction_c64 = reduction_type<Complex<float>>;
