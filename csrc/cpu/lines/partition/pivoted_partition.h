/* pivoted_partition.h - long systems with row exchanges, divided into spans. */
#ifndef PS_CPU_PIVOTED_PARTITION_H
#define PS_CPU_PIVOTED_PARTITION_H

#include "pysolvers.h"

/* Long systems with row exchanges in spans: whether they are that long, work in bytes,
 * and the solution of a whole batch. */
int ps_span_fits(const ps_tridiag *t);
size_t ps_span_work(const ps_tridiag *t, int threads);
ps_status ps_span_solve(const ps_tridiag *t, const ps_exec *exec, int threads,
                        void *work);

#endif
