/* staggered.h - the entries for ps_staggered of the CPU backend; rules in pysolvers.h. */
#ifndef PS_CPU_STAGGERED_H
#define PS_CPU_STAGGERED_H

#include "ps_staggered.h"

/* Workspace of ps_staggered_step. */
ps_status ps_staggered_work(const ps_staggered *s, const ps_exec *exec, size_t *bytes);

/* Make at most `count` steps. exec->poll is called between steps and between passes of
 * SOR: after an interruption the fields and the clock contain the state after the number
 * of complete steps in the report. The result has the same bits for any number of
 * threads. */
ps_status ps_staggered_step(const ps_staggered *s, int64_t count, const ps_exec *exec,
                            ps_staggered_report *report);

#endif
