/* laplace.h - the kernels of the plate: those of several iterations, a file a dtype, and
 * the survey's variants. */
#ifndef PS_CUDA_RELAXATION_LAPLACE_H
#define PS_CUDA_RELAXATION_LAPLACE_H

#include "ps_laplace.h"
#include "relaxation/relax.h"

namespace pysolvers::relaxation {

/* use(kernels) for the kernels of PS_LAPLACE_AUTO. */
typedef ps_status (*ps_cuda_laplace_use)(Relaxation &kernels, void *self);

ps_status ps_cuda_laplace_f32(const ps_laplace *l, ps_cuda_laplace_use use, void *self);
ps_status ps_cuda_laplace_f64(const ps_laplace *l, ps_cuda_laplace_use use, void *self);

/* The other variants, whose residuals the host reads. */
size_t ps_cuda_laplace_variant_work(const ps_laplace *l);
ps_status ps_cuda_laplace_variant(const ps_laplace *l, int64_t count, const ps_exec *exec,
                                  ps_relax_report *report);

} // namespace pysolvers::relaxation

#endif
