/* layout.c - which systems of a batch are solved together. */
#include "lines/kernels.h"
#include "lines/partition/layout.h"

ps_tridiag
ps_partition_in_line(const ps_tridiag *t)
{
    ps_job job;

    ps_job_init(&job, t, 1);
    return job.t;
}

int64_t
ps_partition_side(const ps_tridiag *t)
{
    return t->x.stride.inner == 1 && t->x.stride.row != 1 && t->inner > 1 ? t->inner : 1;
}
