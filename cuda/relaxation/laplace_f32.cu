/* laplace_f32.cu - the kernels for the plate in float. */
#include "relaxation/laplace_kernels.cuh"

namespace pysolvers::relaxation {

ps_status
ps_cuda_laplace_f32(const ps_laplace *l, ps_cuda_laplace_use use, void *self)
{
    return with_laplace_kernels<float>(l, use, self);
}

} // namespace pysolvers::relaxation
