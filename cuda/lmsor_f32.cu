/* lmsor_f32.cu - the kernels of LMSOR in float. */
#include "lmsor_kernels.cuh"

ps_status
ps_cuda_lmsor_f32(const ps_lmsor *l, ps_cuda_lmsor_use use, void *self)
{
    return with_lmsor_kernels<float>(l, use, self);
}
