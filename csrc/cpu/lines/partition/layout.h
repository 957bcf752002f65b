/* layout.h - which systems of a batch are solved together. */
#ifndef PS_CPU_PARTITION_LAYOUT_H
#define PS_CPU_PARTITION_LAYOUT_H

#include "pysolvers.h"

/* The batch with its systems along inner: a batch with inner == 1 is returned with its
 * outer axis as inner axis, as in ps_job_init(). */
ps_tridiag ps_partition_in_line(const ps_tridiag *t);

/* Number of systems that are solved together: all systems along inner if they are
 * adjacent in memory, otherwise 1. */
int64_t ps_partition_side(const ps_tridiag *t);

/* System (j, k) of a batch, with an info of its own. */
ps_tridiag ps_partition_system(const ps_tridiag *t, int64_t j, int64_t k, int32_t *info);

#endif
