/* laplace_kernels.cuh - several iterations for the plate in one pass, for one dtype. */
#ifndef PS_CUDA_RELAXATION_LAPLACE_KERNELS_CUH
#define PS_CUDA_RELAXATION_LAPLACE_KERNELS_CUH

#include "relaxation/laplace.h"
#include "relaxation/laplace_rule.cuh"
#include "relaxation/relax_kernels.cuh"

namespace pysolvers::relaxation {

template <typename T, bool SOURCE>
inline PlateRule<T, SOURCE>
plate_rule(const ps_laplace *l)
{
    return {{static_cast<const T *>(l->source)},
            static_cast<const T *>(l->diag),
            static_cast<const T *>(l->gain),
            static_cast<T>(l->ax),
            static_cast<T>(l->ay),
            static_cast<int>(l->nx),
            static_cast<int>(l->ny),
            l->pitch};
}

template <typename T, bool SOURCE>
inline ps_status
use_laplace_kernels(const ps_laplace *l, ps_cuda_laplace_use use, void *self)
{
    BlockKernels<PlateRule<T, SOURCE>> kernels(plate_rule<T, SOURCE>(l),
                                               ps_cuda_grid_of(l->nx, l->ny, l->pitch),
                                               ps_cuda_norm_of(&l->stop));

    return use(kernels, self);
}

template <typename T>
ps_status
with_laplace_kernels(const ps_laplace *l, ps_cuda_laplace_use use, void *self)
{
    return l->source != nullptr ? use_laplace_kernels<T, true>(l, use, self)
                                : use_laplace_kernels<T, false>(l, use, self);
}

} // namespace pysolvers::relaxation

#endif
