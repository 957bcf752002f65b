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
 * ring, and the ends have the weights of the other rows. x gets g, or the solution of
 * F x = g, or that of F G x = g with a second factor;
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
    double
        off_diagonal[2]; /* a if F, or the second factor, has the rows (a, 1, a); 0 if it
                               may have others */
    double end[PS_DIFFERENCE_ENDS][PS_DIFFERENCE_POINTS];
} ps_differences;

/* The factors F and G of one matrix each; G may be null, and both for the differences alone. */
typedef struct {
    const ps_factor *first, *second;
} ps_difference_factors;

/* Check all that the struct alone determines, and that the factors fit. */
ps_status ps_differences_check(const ps_differences *d, ps_difference_factors f);

#ifdef __cplusplus
}
#endif
#endif
