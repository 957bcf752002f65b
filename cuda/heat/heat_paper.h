/* heat_paper.h - the kernels of Wei, Jang, Zhang and Jia (ICCS 2013).
 *
 * Matrices, right-hand sides and solutions are stored in memory. PCR solves a line with
 * one block, chunk after chunk of a long line (C1, C3), or with several blocks (C2, C4).
 */
#ifndef PS_CUDA_HEAT_HEAT_PAPER_H
#define PS_CUDA_HEAT_HEAT_PAPER_H

#include "heat/heat_run.h"

namespace pysolvers::heat {

ps_status heat_paper_work(const ps_heat *h, size_t *bytes);
const char *heat_paper_kernel(const ps_heat *h);
template <typename Real> ps_status heat_paper_prepare(HeatRun<Real> &run);

/* One step of t; w is not used. `last`: the stages of this step are timed. */
template <typename Real> ps_status heat_paper_step(HeatRun<Real> &run, bool last);

} // namespace pysolvers::heat

#endif
