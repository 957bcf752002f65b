/* lmsor_reals.cu - the kernels of lmsor_kernels.cuh, compiled once per dtype. */
#include "device/number.cuh"
#include "relaxation/lmsor_kernels.cuh"

namespace pysolvers::relaxation {

template ps_status with_lmsor_kernels<PS_NUMBER>(const ps_lmsor *, ps_cuda_lmsor_use,
                                                 void *);

} // namespace pysolvers::relaxation
