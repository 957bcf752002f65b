/* laplace_reals.cu - the kernels of laplace_kernels.cuh, compiled once per dtype. */
#include "device/number.cuh"
#include "relaxation/laplace_kernels.cuh"

namespace pysolvers::relaxation {

template ps_status with_laplace_kernels<PS_NUMBER>(const ps_laplace *,
                                                   ps_cuda_laplace_use, void *);

} // namespace pysolvers::relaxation
