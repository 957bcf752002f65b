/* tridiag.h - direct solves of a batch. */
#ifndef PS_CPU_TRIDIAG_H
#define PS_CPU_TRIDIAG_H

#include "pysolvers.h"

/* Entries of the backend table. */
ps_status ps_cpu_tridiag_work(const ps_tridiag *t, const ps_options *options,
                              const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_tridiag_solve(const ps_tridiag *t, const ps_options *options,
                               const ps_exec *exec, ps_report *report);

#endif
