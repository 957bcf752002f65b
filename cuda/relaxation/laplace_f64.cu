/* laplace_f64.cu - the kernels for the plate in double. */
#include "relaxation/laplace_kernels.cuh"

namespace pysolvers::relaxation {

ps_status
ps_cuda_laplace_f64(const ps_laplace *l, ps_cuda_laplace_use use, void *self)
{
    return with_laplace_kernels<double>(l, use, self);
}

} // namespace pysolvers::relaxation
