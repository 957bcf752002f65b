/* reduction_c64.cu - the module of one dtype. */
#include "lines/reduction/reduction_solve.cuh"

namespace pysolvers::reduction {

const ps_cuda_reduction_type ps_cuda_reduction_c64 = reduction_type<Complex<float>>;

} // namespace pysolvers::reduction
