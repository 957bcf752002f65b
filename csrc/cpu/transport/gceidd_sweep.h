/* gceidd_sweep.h - one sweep of a GCEIDD step: its lines, some at a time. */
#ifndef PS_CPU_GCEIDD_SWEEP_H
#define PS_CPU_GCEIDD_SWEEP_H

#include "ps_gceidd.h"

/* Lines that are swept together: SIMD lanes for any instruction set. */
enum { PS_GCEIDD_LANES = 8 };

/* Arrays of (nodes + 1) * PS_GCEIDD_LANES numbers that a thread needs. */
enum { PS_GCEIDD_ARRAYS = 8 };

/* A sweep along `axis` in step `step` of a call. `to` may be `from`: a line is read as
 * a whole before it is written. */
typedef struct {
    const ps_gceidd *g;
    int axis;
    int64_t step;
    const void *from, *older[PS_GCEIDD_OLDER];
    void *to;
    char *scratch; /* scratch_bytes a thread */
    size_t scratch_bytes;
    int32_t *grown; /* one a thread: set to 1 once some |u| is not at most the bound */
} ps_gceidd_sweep;

/* First line that is swept, counted in nodes from the side, and the one after the last:
 * without the lines on Dirichlet sides. */
int64_t ps_gceidd_first_line(const ps_gceidd *g, int axis);
int64_t ps_gceidd_end_line(const ps_gceidd *g, int axis);

/* Sweep groups [begin, end) of PS_GCEIDD_LANES lines, counted from the first line that
 * is swept; `self` is a ps_gceidd_sweep. */
void ps_gceidd_sweep_f32(void *self, int64_t begin, int64_t end, int thread);
void ps_gceidd_sweep_f64(void *self, int64_t begin, int64_t end, int thread);

/* Put the numbers of the Dirichlet sides across x in their place: they are of this
 * step. */
void ps_gceidd_sides_f32(const ps_gceidd_sweep *s);
void ps_gceidd_sides_f64(const ps_gceidd_sweep *s);

#endif
