/* gceidd_sweep.h - one sweep of a GCEIDD step, by groups of lines. */
#ifndef PS_CPU_GCEIDD_SWEEP_H
#define PS_CPU_GCEIDD_SWEEP_H

#include "ps_gceidd.h"
#include "runtime/tuning.h"

/* Arrays of (nodes + 1) * PS_GCEIDD_LANES values per thread. */
enum { PS_GCEIDD_ARRAYS = 7 };

/* A sweep along `axis` in step `step` of a call. `to` may be `from`: all nodes of a line
 * are read before the line is written. */
typedef struct {
    const ps_gceidd *g;
    int axis;
    int64_t step;
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

/* Sweep groups [begin, end) of PS_GCEIDD_LANES lines, counted from the first line that
 * is swept; `self` is a ps_gceidd_sweep. */
void ps_gceidd_sweep_f32(void *self, int64_t begin, int64_t end, int thread);
void ps_gceidd_sweep_f64(void *self, int64_t begin, int64_t end, int thread);

/* Whether the sweep leaves U as it is, apart from the values of Dirichlet sides: without
 * velocity, diffusion and source there are no neighbours in a row. Not for MU, whose
 * fields rotate. */
int ps_gceidd_is_idle_f32(const ps_gceidd_sweep *s);
int ps_gceidd_is_idle_f64(const ps_gceidd_sweep *s);

/* What remains of an idle sweep along y in rows [begin, end): the values of the sides
 * south and north, and the test of the range. */
void ps_gceidd_keep_f32(void *self, int64_t begin, int64_t end, int thread);
void ps_gceidd_keep_f64(void *self, int64_t begin, int64_t end, int thread);

/* Store the values of this step at the Dirichlet sides across x. */
void ps_gceidd_sides_f32(const ps_gceidd_sweep *s);
void ps_gceidd_sides_f64(const ps_gceidd_sweep *s);

#endif
