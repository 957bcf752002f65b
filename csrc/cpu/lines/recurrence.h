/* recurrence.h - interface between recurrence.c and its kernels, lines/recurrence.inc. */
#ifndef PS_CPU_LINES_RECURRENCE_H
#define PS_CPU_LINES_RECURRENCE_H

#include "ps_recurrence.h"
#include "runtime/tuning.h"

typedef struct {
    int lanes;
    int64_t element; /* bytes */

    /* Compute `count` tiles of lines from `tile` on: the lines tile*lanes .. of the inner
     * axis; the outer axis of r has length 1. If units->data is not null, their units are
     * written instead of x. */
    void (*run)(const ps_recurrence *r, const ps_output *units, int64_t tile,
                int64_t count);

    /* Make states of the units of lines. */
    void (*join)(void *units, int64_t chunks, int64_t pitch, int order, int reversed,
                 double limit, uint8_t *again);
} ps_recurrence_kernels;

#define PS_RECURRENCE_KERNELS(set)                                                       \
    extern const ps_recurrence_kernels ps_recurrence_f32_##set, ps_recurrence_f64_##set, \
        ps_recurrence_c64_##set, ps_recurrence_c128_##set;
PS_RECURRENCE_KERNELS(baseline)
PS_RECURRENCE_KERNELS(avx2)
PS_RECURRENCE_KERNELS(avx512)
#undef PS_RECURRENCE_KERNELS

#endif
