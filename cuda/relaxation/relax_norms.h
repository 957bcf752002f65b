/* relax_norms.h - the kinds of norms as compile-time constants. */
#ifndef PS_CUDA_RELAXATION_RELAX_NORMS_H
#define PS_CUDA_RELAXATION_RELAX_NORMS_H

#include <type_traits>

#include "relaxation/relax.h"

namespace pysolvers::relaxation {

/* act(kind), where kind is a compile-time constant. */
template <typename Act>
inline ps_status
with_norm(ps_cuda_norm kind, const Act &act)
{
    switch (kind) {
    case PS_CUDA_NORM_RESIDUAL:
        return act(std::integral_constant<int, PS_CUDA_NORM_RESIDUAL>());
    case PS_CUDA_NORM_CHANGE:
        return act(std::integral_constant<int, PS_CUDA_NORM_CHANGE>());
    case PS_CUDA_NORM_SOLUTION:
        return act(std::integral_constant<int, PS_CUDA_NORM_SOLUTION>());
    case PS_CUDA_NORM_SUM:
        return act(std::integral_constant<int, PS_CUDA_NORM_SUM>());
    default:
        return act(std::integral_constant<int, PS_CUDA_NORM_NONE>());
    }
}

} // namespace pysolvers::relaxation

#endif
