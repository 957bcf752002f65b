/* staggered_stages.h - the explicit stages of a step on the staggered grid. */
#ifndef PS_CPU_STAGGERED_STAGES_H
#define PS_CPU_STAGGERED_STAGES_H

#include "ps_staggered.h"

/* A field of cells in the layout of ps_laplace: cell (i, j), 1 <= i, j <= N, with the
 * colour c = (i + j) % 2, is
 *
 *   data[j*2*pitch + i]                 interleaved
 *   data[(c*(N+2) + j)*pitch + i/2]     otherwise */
typedef struct {
    double *data;
    int64_t pitch;
    int interleaved;
} ps_coloured;

/* f and g from u and v. */
void ps_staggered_predict(const ps_staggered *s, int threads);

/* q from f and g. With a coloured field, the field receives -q, the source of
 * ps_laplace, and q is not written. */
void ps_staggered_source(const ps_staggered *s, const ps_coloured *source, int threads);

/* Copy p to a coloured field, or back. */
void ps_staggered_colour(const ps_staggered *s, const ps_coloured *p, int threads);
void ps_staggered_uncolour(const ps_staggered *s, const ps_coloured *p, int threads);

/* u and v from f, g and p, their ghosts, and the entries TIME, CHANGE, U and V of the
 * clock. `rows` is scratch memory of 3 N values. */
void ps_staggered_correct(const ps_staggered *s, double *rows, int threads);

#endif
