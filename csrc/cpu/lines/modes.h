/* modes.h - interface between modes.c and its kernels, lines/modes.inc. */
#ifndef PS_CPU_LINES_MODES_H
#define PS_CPU_LINES_MODES_H

#include "ps_modes.h"

enum {
    /* Bytes of a row of a panel, for every instruction set: four vectors of AVX2. */
    PS_MODES_BYTES = 128,

    /* Rows of a matrix that are multiplied together: with two vectors their sums take 8
     * registers, those of 6 rows 12, which is not faster. */
    PS_MODES_GROUP = 4
};

typedef struct {
    /* Multiply the panels begin .. end-1. */
    void (*run)(const ps_modes *p, int64_t begin, int64_t end);
} ps_modes_kernels;

#define PS_MODES_KERNELS(set) \
    extern const ps_modes_kernels ps_modes_f32_##set, ps_modes_f64_##set;
PS_MODES_KERNELS(baseline)
PS_MODES_KERNELS(avx2)
#undef PS_MODES_KERNELS

/* Columns of a panel. */
static inline int64_t
ps_modes_width(const ps_modes *p)
{
    return PS_MODES_BYTES / (int64_t)ps_dtype_size(p->dtype);
}

/* Panels of the columns. */
static inline int64_t
ps_modes_panels(const ps_modes *p)
{
    const int64_t width = ps_modes_width(p);

    return (p->size[PS_MODES_COLUMN] + width - 1) / width;
}

#endif
