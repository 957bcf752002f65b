/* gceidd_sweep.h - one sweep of a GCEIDD step, by groups of lines. */
#ifndef PS_CPU_GCEIDD_SWEEP_H
#define PS_CPU_GCEIDD_SWEEP_H

#include "ps_gceidd.h"
#include "runtime/isa.h"
#include "runtime/tuning.h"

/* Arrays of a group of lines: values at their nodes, or one value per line. */
typedef enum {
    PS_GCEIDD_U,
    PS_GCEIDD_V,
    PS_GCEIDD_NEXT,
    PS_GCEIDD_SOURCE,
    PS_GCEIDD_VELOCITY,
    PS_GCEIDD_DIFFUSION,
    PS_GCEIDD_FOOT,
    PS_GCEIDD_ARRAYS
} ps_gceidd_array;

/* A sweep along `axis` in step `step` of a call. `to` may be `from`: all nodes of a line
 * are read before the line is written. */
typedef struct {
    const ps_gceidd *g;
    int axis;
    int64_t step;
    int64_t lines; /* of a group: a multiple of the lanes of every instruction set */
    const void *from, *older[PS_GCEIDD_OLDER];
    void *to;
    char *scratch; /* scratch_bytes per thread */
    size_t scratch_bytes;
    int32_t *grown; /* per thread: set to 1 if u is out of range at a node */
} ps_gceidd_sweep;

/* First line that is swept, counted in nodes from the side, and the line after the last.
 * Lines on Dirichlet sides are not swept. */
int64_t ps_gceidd_first_line(const ps_gceidd *g, int axis);
int64_t ps_gceidd_end_line(const ps_gceidd *g, int axis);

/* Rows of the array `k` in a sweep along `axis`; 0: the sweep does not use it. Each row
 * has PS_GCEIDD_BYTES. */
int64_t ps_gceidd_array_rows(const ps_gceidd *g, int axis, ps_gceidd_array k);

/* The kernels of one dtype and one instruction set. */
typedef struct {
    /* Sweep groups [begin, end), counted from the first line that is swept; `self` is a
     * ps_gceidd_sweep. */
    void (*sweep)(void *self, int64_t begin, int64_t end, int thread);

    /* Whether the sweep leaves U as it is, apart from the values of Dirichlet sides:
     * without velocity, diffusion and source there are no neighbours in a row. Not for
     * MU, whose fields rotate. */
    int (*is_idle)(const ps_gceidd_sweep *s);

    /* What remains of an idle sweep along y in rows [begin, end): the values of the sides
     * south and north, and the test of the range. */
    void (*keep)(void *self, int64_t begin, int64_t end, int thread);

    /* Store the values of this step at the Dirichlet sides across x. */
    void (*sides)(const ps_gceidd_sweep *s);
} ps_gceidd_kernel_table;

extern const ps_gceidd_kernel_table ps_gceidd_f32_baseline, ps_gceidd_f32_avx2,
    ps_gceidd_f32_avx512, ps_gceidd_f64_baseline, ps_gceidd_f64_avx2,
    ps_gceidd_f64_avx512;

#endif
