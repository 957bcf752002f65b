/* reduction_c128.cu - the module of one dtype. */
#include "lines/reduction/reduction_solve.cuh"

namespace pysolvers::reduction {

const ps_cuda_reduction_type ps_cuda_reduction_c128 = reduction_type<Complex<double>>;

} // namespace pysolvers::reduction
