/* lmsor.h - the kernels of LMSOR, which lmsor_reals.cu compiles once per dtype. */
#ifndef PS_CUDA_RELAXATION_LMSOR_H
#define PS_CUDA_RELAXATION_LMSOR_H

#include "ps_lmsor.h"
#include "relaxation/relax.h"

namespace pysolvers::relaxation {

/* Calls use(kernels) with the kernels that `l` selects. */
typedef ps_status (*ps_cuda_lmsor_use)(Relaxation &kernels, void *self);

template <typename T>
ps_status with_lmsor_kernels(const ps_lmsor *l, ps_cuda_lmsor_use use, void *self);

} // namespace pysolvers::relaxation

#endif
