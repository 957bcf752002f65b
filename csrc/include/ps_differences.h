/* ps_differences.h - differences of the values of lines on a uniform grid, alone and as
 * right-hand sides of systems that share one matrix: compact differences (Lele 1992).
 */
#ifndef PS_DIFFERENCES_H
#define PS_DIFFERENCES_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows at each end with weights of their own, and the most points of such a row, and of the second
 * one. */
enum { PS_DIFFERENCE_ENDS = 2, PS_DIFFERENCE_POINTS = 64, PS_DIFFERENCE_SECOND = 16 };

/* The differences g of the values f of outer * inner lines; with s = 1 if is_even, and
 * s = -1 otherwise,
 *
 *   g[i] = near ((f[i+1] - f[i]) + s (f[i-1] - f[i]))
 *        + far ((f[i+2] - f[i]) + s (f[i-2] - f[i])),
 *
 * in rows i = 0 and 1 instead the sums of end[i][k] (f[k] - f[i]) over the first points[i] points,
 * in the last two rows s times the same sums from the other end. With PS_PERIODIC the grid is a
 * ring, and the ends have the weights of the other rows. x gets g, or the solution of F x = g;
 * x overlaps no f. Complex numbers have real weights. Strides as of a ps_tridiag.
 * rows >= points[i], and rows >= 5. */
typedef struct {
    ps_dtype dtype;
    uint32_t flags; /* PS_PERIODIC */
    int64_t rows, outer, inner;
    ps_input f;
    ps_output x;
    int32_t is_even, points[PS_DIFFERENCE_ENDS];
    double near, far;
    double end[PS_DIFFERENCE_ENDS][PS_DIFFERENCE_POINTS];
} ps_differences;

/* Check all that the struct alone determines; with a factor F of one matrix, which may be
 * null, also that it fits. */
ps_status ps_differences_check(const ps_differences *d, const ps_factor *f);

#ifdef __cplusplus
}
#endif
#endif
