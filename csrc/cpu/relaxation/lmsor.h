/* lmsor.h - the entries for ps_lmsor and ps_laplace of the backend table. */
#ifndef PS_CPU_LMSOR_H
#define PS_CPU_LMSOR_H

#include "ps_laplace.h"
#include "ps_lmsor.h"

ps_status ps_cpu_lmsor_work(const ps_lmsor *l, const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_lmsor_iterate(const ps_lmsor *l, int64_t count, const ps_exec *exec,
                               ps_lmsor_report *report);
ps_status ps_cpu_laplace_work(const ps_laplace *l, const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_laplace_iterate(const ps_laplace *l, int64_t count, const ps_exec *exec,
                                 ps_laplace_report *report);

#endif
