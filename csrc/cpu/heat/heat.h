/* heat.h - the heat entries of the CPU backend; rules in ps_heat.h. */
#ifndef PS_CPU_HEAT_H
#define PS_CPU_HEAT_H

#include "ps_heat.h"

/* Workspace of ps_heat_step. */
ps_status ps_heat_work(const ps_heat *h, const ps_exec *exec, size_t *bytes);

/* Make `count` steps. exec->poll is called once per step: an interrupted call ends
 * after a complete step. The result has the same bits for any number of threads. */
ps_status ps_heat_step(const ps_heat *h, int64_t count, const ps_exec *exec,
                       ps_heat_report *report);

#endif
