/* step.h - products with matrices, and implicit steps. */
#ifndef PS_CPU_STEP_H
#define PS_CPU_STEP_H

#include "ps_step.h"

/* Entries of the backend table. */
ps_status ps_cpu_product(const ps_product *p, const ps_exec *exec);
ps_status ps_cpu_step_work(const ps_step *s, ps_pivot pivot, const ps_exec *exec,
                           size_t *bytes);
ps_status ps_cpu_step_solve(const ps_step *s, ps_pivot pivot, const ps_exec *exec,
                            ps_report *report);
ps_status ps_cpu_factor_step_work(const ps_factor *f, const ps_factor_step *s,
                                  const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_factor_step(const ps_factor *f, const ps_factor_step *s,
                             const ps_exec *exec);

#endif
