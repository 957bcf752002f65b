/* factor.h - factors that are kept. */
#ifndef PS_CPU_FACTOR_H
#define PS_CPU_FACTOR_H

#include "ps_step.h"

/* Entries of the backend table. */
ps_status ps_cpu_factor_store(const ps_factor *f, const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_factor_make_work(const ps_factor *f, const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_factor_make(const ps_factor *f, const ps_tridiag *t, const ps_exec *exec,
                             ps_report *report);
ps_status ps_cpu_factor_work(const ps_factor *f, const ps_factor_rhs *b,
                             const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_factor_solve(const ps_factor *f, const ps_factor_rhs *b,
                              const ps_exec *exec);

/* Workspace of a step with factors that are not long (ps_factor_is_long()), and the step,
 * whose source and mask `step` has. */
size_t ps_factor_step_bytes(const ps_factor *f, const ps_factor_rhs *b,
                            const ps_step *step, const ps_exec *exec);
ps_status ps_factor_step_short(const ps_factor *f, const ps_factor_rhs *b,
                               const ps_step *step, const ps_exec *exec);

#endif
