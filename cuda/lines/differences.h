/* differences.h - differences of values along lines, and systems with one matrix whose
 * right-hand sides they are. */
#ifndef PS_CUDA_LINES_DIFFERENCES_H
#define PS_CUDA_LINES_DIFFERENCES_H

#include "ps_differences.h"

namespace pysolvers::lines {

ps_status ps_cuda_differences(const ps_differences *d, const ps_exec *exec);

} // namespace pysolvers::lines

namespace pysolvers {

/* In factor.cu. */
ps_status ps_cuda_difference_solve_work(ps_difference_factors f, const ps_differences *d,
                                        const ps_exec *exec, size_t *bytes);
ps_status ps_cuda_difference_solve(ps_difference_factors f, const ps_differences *d,
                                   const ps_exec *exec);

} // namespace pysolvers

#endif
