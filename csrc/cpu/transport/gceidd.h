/* gceidd.h - the GCEIDD entries of the CPU backend; rules in pysolvers.h. */
#ifndef PS_CPU_GCEIDD_H
#define PS_CPU_GCEIDD_H

#include "ps_gceidd.h"

/* Workspace of ps_gceidd_step. */
ps_status ps_gceidd_work(const ps_gceidd *g, const ps_exec *exec, size_t *bytes);

/* Make `count` steps. exec->poll is called between steps: after an interruption, the
 * fields contain the state after the number of complete steps in the report. The result
 * has the same bits for any number of threads. */
ps_status ps_gceidd_step(const ps_gceidd *g, int64_t count, const ps_exec *exec,
                         ps_gceidd_report *report);

#endif
