/* factor.h - factors that are kept. */
#ifndef PS_CPU_FACTOR_H
#define PS_CPU_FACTOR_H

#include "pysolvers.h"

/* Entries of the backend table. */
ps_status ps_cpu_factor_store(const ps_factor *f, const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_factor_make_work(const ps_factor *f, const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_factor_make(const ps_factor *f, const ps_tridiag *t, const ps_exec *exec,
                             ps_report *report);
ps_status ps_cpu_factor_work(const ps_factor *f, const ps_factor_rhs *b,
                             const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_factor_solve(const ps_factor *f, const ps_factor_rhs *b,
                              const ps_exec *exec);

#endif
