/* ps_step.h - products with tridiagonal matrices, and implicit steps: solves whose rows
 * are made from the operands, and whose unknowns are combined with them. */
#ifndef PS_STEP_H
#define PS_STEP_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One byte per unknown, not 0 in the rows that are inside. Strides as of a ps_input. */
typedef struct {
    const uint8_t *data;
    ps_stride stride;
} ps_mask;

/* out = scale (A x) + weight b, element by element, where row i of A x is
 *
 *   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1]
 *
 * and the operands are those of ps_tridiag; with PS_ROW_SUMS, of real numbers only, diag
 * holds row sums, and the row is diag[i] x[i] + lower[i] (x[i-1] - x[i]) + upper[i]
 * (x[i+1] - x[i]). b with null data counts as 0. out overlaps no other operand, except
 * that out may be b. is_extended: each element is computed with about twice the digits of
 * the dtype and rounded once. No workspace. */
struct ps_product {
    ps_dtype dtype;
    uint32_t flags;
    int64_t rows, outer, inner;
    double scale, weight;
    int32_t is_extended;
    ps_input lower, diag, upper, x, b;
    ps_output out;
};

/* The rows of a ps_step, with u = t.rhs, h = step:
 *
 * PS_STEP_MATRIX: those of t; y is x.
 * PS_STEP_THETA: (I - h A) y = u + h source, A being the matrix of t, and
 *   x = u + gain (y - u). With h = theta dt and gain = 1 / theta this is
 *   (I - theta dt A) x = (I + (1 - theta) dt A) u + dt source. With PS_ROW_SUMS, diag
 *   holds the row sums s of A, and I - h A is in row-sum form with the sums 1 - h s.
 * PS_STEP_FLUX, real numbers, neither periodic nor PS_ROW_SUMS: t.diag holds the
 *   thicknesses d of layers, t.lower and t.upper the diffusivities K of the faces before
 *   and after each layer. With k = h K 2 / (d + d of the neighbour),
 *     d y + k_lower (y - y[i-1]) + k_upper (y - y[i+1]) = d (u + h source),
 *   in row-sum form (PS_ROW_SUMS of pysolvers.h), and x = u + gain (y - u). In the first
 *   (end 0) and the last (end 1) inner row of each system,
 *     flux[end] not null: h flux is added to the right-hand side;
 *     value[end] not null: k (y - value), k = h K 2 / d with the K of the outer face of
 *     this row, is added to the left side; the off-diagonal is then not short.
 */
#define PS_STEP_LIST(X)         \
    X(PS_STEP_MATRIX, "matrix") \
    X(PS_STEP_THETA, "theta")   \
    X(PS_STEP_FLUX, "flux")

#define PS_NAME_(name, text) name,
typedef enum { PS_STEP_LIST(PS_NAME_) PS_STEP_COUNT } ps_step_kind;
#undef PS_NAME_

/* A batch axis along which the strides of the matrix are 0 has several right-hand sides for
 * each matrix.
 *
 * where: null data, or the rows that are inside. A row outside is a row of the identity,
 * x there is u, and the off-diagonals that couple to it count as 0, so that no entry
 * outside is read into a row inside, whatever it is. (With PS_ROW_SUMS the row sums are
 * those without these entries.)
 *
 * least: null data, or bounds: x[n-1], x[n-2], ... are computed in this order, each as
 * the larger one of least[i] and of what back substitution gives (Brennan and Schwartz
 * 1977). Of real numbers with PS_PIVOT_NEVER and PS_PIVOT_AUTO, of matrices that are not
 * periodic; rows are never exchanged.
 *
 * source, flux, value and least: null data, or an input; flux and value are of one row.
 * They and `where` overlap no x. x may be rhs. info as of ps_tridiag.
 *
 * products: null, or, on a device, the derivatives of a step of real numbers whose reverse pass
 * is this one, with u not null and x as g: they are written after x, in the same call. */
struct ps_step {
    ps_tridiag t;
    int32_t kind;
    double step, gain;
    ps_input source, least, flux[2], value[2];
    ps_mask where;
    const ps_products *products;
};

/* Solves with a ps_factor: F y = u + step source, x = u + gain (y - u), or x = y if gain
 * is 0. F is the factor, which was made of a matrix in which the rows outside `where` are
 * rows of the identity without couplings to them: there x is u, and u and source can be
 * anything. b.trans is PS_TRANS_NONE unless gain is 0 and there is no source. */
struct ps_factor_step {
    ps_factor_rhs b;
    double step, gain;
    ps_input source;
    ps_mask where;
};

/* Check all that the structs alone determine, for all backends. */
ps_status ps_product_check(const ps_product *p);
ps_status ps_step_check(const ps_step *s, ps_pivot pivot);
ps_status ps_factor_step_check(const ps_factor *f, const ps_factor_step *s);

#ifdef __cplusplus
}
#endif
#endif
