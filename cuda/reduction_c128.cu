/* reduction_c128.cu - the module of one dtype. */
#include "reduction_solve.cuh"

const ps_cuda_reduction_type ps_cuda_reduction_c128 = reduction_type<Complex<double>>;
