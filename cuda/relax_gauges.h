/* relax_gauges.h - the kinds of gauges as constants. */
#ifndef PS_CUDA_RELAX_GAUGES_H
#define PS_CUDA_RELAX_GAUGES_H

#include <type_traits>

#include "relax.h"

/* act(kind) for the kind of gauge, a constant. */
template <typename Act>
inline ps_status
with_gauge(ps_cuda_gauge kind, const Act &act)
{
    switch (kind) {
    case PS_GAUGE_RESIDUAL:
        return act(std::integral_constant<int, PS_GAUGE_RESIDUAL>());
    case PS_GAUGE_CHANGE:
        return act(std::integral_constant<int, PS_GAUGE_CHANGE>());
    case PS_GAUGE_SOLUTION:
        return act(std::integral_constant<int, PS_GAUGE_SOLUTION>());
    case PS_GAUGE_SUM:
        return act(std::integral_constant<int, PS_GAUGE_SUM>());
    default:
        return act(std::integral_constant<int, PS_GAUGE_NONE>());
    }
}

#endif
