/* reduction_f32.cu - the module of one dtype. */
#include "lines/reduction/reduction_solve.cuh"

namespace pysolvers::reduction {

const ps_cuda_reduction_type ps_cuda_reduction_f32 = reduction_type<float>;

} // namespace pysolvers::reduction
