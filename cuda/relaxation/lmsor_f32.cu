/* lmsor_f32.cu - the kernels of LMSOR in float. */
#include "relaxation/lmsor_kernels.cuh"

namespace pysolvers::relaxation {

ps_status
ps_cuda_lmsor_f32(const ps_lmsor *l, ps_cuda_lmsor_use use, void *self)
{
    return with_lmsor_kernels<float>(l, use, self);
}

} // namespace pysolvers::relaxation
