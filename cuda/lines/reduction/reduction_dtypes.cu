/* reduction_dtypes.cu - the solve of reduction_solve.cuh, compiled once per dtype. */
#include "lines/reduction/reduction_solve.cuh"

namespace pysolvers::reduction {

template ps_cuda_reduction_type reduction_type<PS_NUMBER>();

} // namespace pysolvers::reduction
