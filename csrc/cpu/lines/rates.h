/* rates.h - interface between rates.c and its kernels, lines/rates.inc. */
#ifndef PS_CPU_LINES_RATES_H
#define PS_CPU_LINES_RATES_H

#include "ps_rates.h"
#include "runtime/tuning.h"

typedef struct {
    /* Compute the blocks begin .. end-1: of each row of the box along x those from its
     * first node on. */
    void (*run)(const ps_rates *r, int64_t begin, int64_t end, int is_streamed);
} ps_rates_kernels;

#define PS_RATES_KERNELS(set) \
    extern const ps_rates_kernels ps_rates_f32_##set, ps_rates_f64_##set;
PS_RATES_KERNELS(baseline)
PS_RATES_KERNELS(avx2)
PS_RATES_KERNELS(avx512)
#undef PS_RATES_KERNELS

/* Blocks of a row of the box. */
static inline int64_t
ps_rates_blocks(const ps_rates *r)
{
    return (r->count[3] + PS_RATES_BLOCK - 1) / PS_RATES_BLOCK;
}

#endif
