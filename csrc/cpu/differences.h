/* differences.h - compact differences: the right-hand sides, and the solve for them. */
#ifndef PS_CPU_DIFFERENCES_H
#define PS_CPU_DIFFERENCES_H

#include "ps_differences.h"

/* Entries of the table of ps_numbers.h. */
ps_status ps_cpu_differences(const ps_differences *d, const ps_exec *exec);
ps_status ps_cpu_difference_solve_work(ps_difference_factors f, const ps_differences *d,
                                       const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_difference_solve(ps_difference_factors f, const ps_differences *d,
                                  const ps_exec *exec);

#endif
