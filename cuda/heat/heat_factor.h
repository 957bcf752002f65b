/* heat_factor.h - sweeps of Peaceman and Rachford with a variable conductivity, whose matrices
 * are factored once (heat_factor.cu).
 */
#ifndef PS_CUDA_HEAT_HEAT_FACTOR_H
#define PS_CUDA_HEAT_HEAT_FACTOR_H

#include "heat/heat_stencils.h"

namespace pysolvers::heat {

/* Whether there is such a sweep along an axis: of two axes, with variable k and sides that are
 * not periodic, no source in a sweep along x, and lines that a block or a cluster holds. */
bool heat_factor_fits(const ps_heat *h, int axis);

/* Bytes of the factors of an axis. `pitch`: the distance of the rows of w and of the factors, here
 * and below. */
size_t heat_factor_bytes(const ps_heat *h, int64_t pitch, int axis);

/* Factor the matrices of the lines along an axis. */
template <typename Real>
ps_status heat_factor_begin(const ps_heat *h, int64_t pitch, int axis, void *factors,
                            cudaStream_t stream);

/* The sweep of step s. */
template <typename Real>
ps_status heat_factor_sweep(const ps_heat *h, int64_t pitch, int axis, int64_t s,
                            ps_cuda_heat_sink sink, const void *factors,
                            cudaStream_t stream);

} // namespace pysolvers::heat

#endif
