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

ps_tridiag
ps_partition_system(const ps_tridiag *t, int64_t j, int64_t k, int32_t *info)
{
    const int64_t element = ps_dtype_size(t->dtype);
    const ps_input *const from[] = {&t->lower, &t->diag, &t->upper, &t->rhs};
    ps_tridiag one = *t;
    ps_input *const to[] = {&one.lower, &one.diag, &one.upper, &one.rhs};

    for (int w = 0; w < PS_WORDS; w++) {
        const ps_stride s = from[w]->stride;

        to[w]->data = (const char *)from[w]->data + (j * s.outer + k * s.inner) * element;
    }
    one.x.data =
        (char *)t->x.data + (j * t->x.stride.outer + k * t->x.stride.inner) * element;
    one.outer = one.inner = 1;
    one.info = info;
    return one;
}
