/* recurrence.h - interface between recurrence.c and its kernels, lines/recurrence.inc. */
#ifndef PS_CPU_LINES_RECURRENCE_H
#define PS_CPU_LINES_RECURRENCE_H

#include "ps_recurrence.h"

/* Numbers chosen for speed. All but the last change bits. */
enum {
    /* Rows from which on a line is divided into chunks, the wished number of these, the
     * most rows of one, and the largest number to which values may grow in a chunk whose
     * unit is used, of first and of second order. Rows of chunks are odd multiples of
     * PS_RECURRENCE_UNIT: no row is left over from the squares that are transposed, and
     * the lanes take different sets of the caches. */
    PS_RECURRENCE_ROWS = 1 << 15,
    PS_RECURRENCE_CHUNKS = 128,
    PS_RECURRENCE_CHUNK = 255 * 16,
    PS_RECURRENCE_UNIT = 16,
    PS_RECURRENCE_GROWTH = 4,
    PS_RECURRENCE_GROWTH_2 = 64,

    /* Bytes of the lines whose chunks are computed and joined before those of others:
     * they are read twice, the second time from a second-level cache. */
    PS_SLICE_BYTES = 1 << 20
};

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
