/* rates.h - the rates of an equation on a box, and linear combinations with them. */
#ifndef PS_CUDA_LINES_RATES_H
#define PS_CUDA_LINES_RATES_H

#include "ps_rates.h"

namespace pysolvers::lines {

ps_status ps_cuda_rates(const ps_rates *r, const ps_exec *exec);

} // namespace pysolvers::lines

#endif
