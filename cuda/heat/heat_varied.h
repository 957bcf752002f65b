/* heat_varied.h - sweeps with separate coefficients for each unknown, through arrays.
 *
 * The rows of all lines are written to the workspace by their off-diagonals and row sums,
 * solved there by the partition method, and the solution is stored: 10 to 13 words per
 * node. For variable conductivities, and for lines that are too long for the kernels of
 * heat_sweeps.h.
 *
 * Steps by the kernels of fluxes (PS_STEP_FLUX) with the k of faces move 3 words per sweep:
 * 193 us for a step of 2048 x 2048 nodes in float64 on an H200. They evaluate the explicit
 * half from t in every sweep, which multiplies rounding by r = k dt / h^2: with r = 1e6 in
 * float32, temperatures of 300 were wrong by 2.
 */
#ifndef PS_CUDA_HEAT_HEAT_VARIED_H
#define PS_CUDA_HEAT_HEAT_VARIED_H

#include "heat/heat_stencils.h"

namespace pysolvers::heat {

/* Bytes of workspace for sweeps along all axes. */
ps_status heat_varied_work(const ps_heat *h, size_t *bytes);

/* The sweep of step s along an axis; `sink` is the use of the solution. */
template <typename Real>
ps_status heat_varied_sweep(const ps_heat *h, int axis, int64_t s, ps_cuda_heat_sink sink,
                            const ps_exec *exec);

} // namespace pysolvers::heat

#endif
