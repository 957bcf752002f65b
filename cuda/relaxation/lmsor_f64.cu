/* lmsor_f64.cu - the kernels of LMSOR in double. */
#include "relaxation/lmsor_kernels.cuh"

namespace pysolvers::relaxation {

ps_status
ps_cuda_lmsor_f64(const ps_lmsor *l, ps_cuda_lmsor_use use, void *self)
{
    return with_lmsor_kernels<double>(l, use, self);
}

} // namespace pysolvers::relaxation
