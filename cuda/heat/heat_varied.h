/* heat_varied.h - sweeps with separate coefficients for each unknown.
 *
 * For variable conductivities, and for lines that are too long for the kernels of
 * heat_sweeps.h. A sweep of Peaceman and Rachford with a variable conductivity is solved by factors
 * (heat_factor.cu), a sweep of Douglas and Gunn is a step of PS_STEP_FLUX in one pass
 * (lines/partition/one_pass.h): 3 words per node, 6 if it adds to t. Where neither is
 * offered (periodic lines, lines of
 * constant k, lines that no cluster holds, lines along x with a source of Peaceman and
 * Rachford), the rows of all lines are written to the workspace by their off-diagonals and
 * row sums, solved there by the partition method, and the solution is stored: 10 to 13
 * words per node.
 */
#ifndef PS_CUDA_HEAT_HEAT_VARIED_H
#define PS_CUDA_HEAT_HEAT_VARIED_H

#include "heat/heat_stencils.h"

namespace pysolvers::heat {

/* Bytes of workspace for sweeps along all axes. `pitch`: the distance of the rows of w, here and
 * below; other than in t only where both axes have factors (heat_factor.h). */
ps_status heat_varied_work(const ps_heat *h, int64_t pitch, size_t *bytes);

/* Before the sweeps of a call: k of the faces, and the factors unless h->kept has them. */
template <typename Real>
ps_status heat_varied_begin(const ps_heat *h, int64_t pitch, const ps_exec *exec);

/* The sweep of step s along an axis; `sink` is the use of the solution. */
template <typename Real>
ps_status heat_varied_sweep(const ps_heat *h, int64_t pitch, int axis, int64_t s,
                            ps_cuda_heat_sink sink, const ps_exec *exec);

} // namespace pysolvers::heat

#endif
