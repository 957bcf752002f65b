/* laplace.h - the kernels for the plate: those of several iterations per pass, which
 * laplace_reals.cu compiles once per dtype, and the variants of the survey.
 */
#ifndef PS_CUDA_RELAXATION_LAPLACE_H
#define PS_CUDA_RELAXATION_LAPLACE_H

#include "ps_laplace.h"
#include "relaxation/relax.h"

namespace pysolvers::relaxation {

/* Calls use(kernels) with the kernels of PS_LAPLACE_AUTO. */
typedef ps_status (*ps_cuda_laplace_use)(Relaxation &kernels, void *self);

template <typename T>
ps_status with_laplace_kernels(const ps_laplace *l, ps_cuda_laplace_use use, void *self);

/* The other variants; the host reads their residuals. */
size_t ps_cuda_laplace_variant_work(const ps_laplace *l);
ps_status ps_cuda_laplace_variant(const ps_laplace *l, int64_t count, const ps_exec *exec,
                                  ps_relax_report *report);

} // namespace pysolvers::relaxation

#endif
