/* cylinder.h - the entries for ps_cylinder of the CPU backend; rules in pysolvers.h. */
#ifndef PS_CPU_CYLINDER_H
#define PS_CPU_CYLINDER_H

#include "ps_cylinder.h"

/* Workspace of ps_cpu_cylinder_step. */
ps_status ps_cpu_cylinder_work(const ps_cylinder *c, const ps_exec *exec, size_t *bytes);

/* Make `count` steps. exec->poll is called between steps: after an interruption the
 * fields and the scalars contain the state after the number of complete steps in the
 * report. The result has the same bits for any number of threads. */
ps_status ps_cpu_cylinder_step(const ps_cylinder *c, int64_t count, const ps_exec *exec,
                               ps_cylinder_report *report);

#endif
