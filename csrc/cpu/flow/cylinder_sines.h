/* cylinder_sines.h - the sine transform along y of the cylinder, as dense products.
 *
 * With n = ny - 1, a multiple of 16, the transform of the nodes 1 .. n-1 of a column is
 *
 *   S(n):  X[w] = sum_{0<j<n} f[j] sin(pi w j/n),   0 < w < n
 *
 * sin(pi w (n-j)/n) = -(-1)^w sin(pi w j/n): the odd waves are a transform A(n) of the
 * sums e[j] = f[j] + f[n-j], e[n/2] = f[n/2], and the even waves are S(n/2) of the
 * differences f[j] - f[n-j]. In
 *
 *   A(n):  X[w] = sum_{0<j<=n/2} e[j] sin(pi w j/n),   w odd
 *
 * the terms of even j are A(n/2) of e[2], e[4], ... and have the same value E for w and
 * with the other sign for n - w; those of odd j have the same value O for both:
 *
 *   X[w] = O + E,   X[n-w] = O - E,   w < n/2,
 *
 * where O is the product of a dense matrix of n/4 x n/4. A transform with an odd n/2, and
 * one of few nodes, is a dense product as a whole.
 *
 * Operations per node: n/9 multiplications and additions and 2 log2(n) additions; a
 * vector has columns, so that no product needs an exchange of lanes. psi of a step takes
 * 0.1, 0.5, 0.7 and 1.2 times as long as in flow/cylinder/_body_poisson.py, which calls
 * SciPy, for 161, 401, 801 and 1601 rows of 801 nodes (AMD EPYC, one thread). Stable:
 * sums and differences, and matrices of orthogonal rows. Source of the splitting: Wang
 * 1984, of which the last steps are left out.
 */
#ifndef PS_CPU_CYLINDER_SINES_H
#define PS_CPU_CYLINDER_SINES_H

#include <stdint.h>

#include "runtime/tuning.h"

enum {
    PS_SINE_LEVELS = 32,   /* ny is below 2^31 */
    PS_SINE_PRODUCTS = 512 /* at most levels^2 / 2 */
};

/* What a matrix contains: sin(pi w j/n) for w = (2m+1), j = (2t+1); for w = 2m+1, j =
 * t+1; for w = m+1, j = t+1. */
typedef enum { PS_SINES_ODD_ODD, PS_SINES_ODD, PS_SINES_ALL, PS_SINE_KINDS } ps_sine_kind;

/* The sums of rows first + j step and first + (n-j) step of a panel, 0 < j < n/2, replace
 * the former, and their differences the latter. */
typedef struct {
    int64_t first, step, n;
} ps_sine_fold;

/* Term t is row in + t in_step, result m is row out + m out_step of another panel. With
 * `mirror` != 0 result m is added to this row, and what the row had is subtracted from the
 * result in row mirror - m out_step. The matrix of `level` has n = (ny-1) / 2^level. */
typedef struct {
    ps_sine_kind kind;
    int level;
    int64_t in, in_step, terms;
    int64_t out, out_step, results, mirror;
    int64_t table; /* number of the first entry of the matrix */
} ps_sine_product;

/* All folds come before the products. */
typedef struct {
    int64_t n, entries;
    int folds, products;
    ps_sine_fold fold[PS_SINE_LEVELS];
    ps_sine_product product[PS_SINE_PRODUCTS];
} ps_sine_plan;

/* The plan of the transform of n - 1 nodes. */
void ps_sine_plan_of(int64_t n, ps_sine_plan *plan);

/* Write the entries of all matrices of a plan; `table` is of PS_TABLE_SINES. The entries
 * of PS_SINE_ROWS rows are adjacent. */
void ps_sine_pack_f32(const ps_sine_plan *plan, const float *table, int backward,
                      float *entries);
void ps_sine_pack_f64(const ps_sine_plan *plan, const double *table, int backward,
                      double *entries);

#endif
