/* ps_diffusion.h - implicit steps of diffusion that are not split along the axes: a part
 * of the contract.
 *
 *   (A x)_p = sum_p x_p + sum over the neighbours n of p: c_pn (x_p - x_n)
 *
 * at the unknown nodes p of a box of nodes; other nodes have given values. A is
 * symmetric, and positive definite unless all sums are 0: conductances c are
 * positive and `sum`, the row sums of A when all nodes are unknown, at least 0.
 *
 * diffusion_solve() solves A x = rhs by conjugate gradients. The preconditioner is one
 * V-cycle of multigrid. On each level, lines along the axes 0, 1, (2) are relaxed before
 * the correction by the next level, and lines along the axes (2), 1, 0 after it: a line
 * relaxation adds T^-1 (rhs - A x), where T has 1/omega times the entries of A between
 * nodes of one line. The V-cycle is therefore symmetric, and it is definite for omega
 * below 1. The next level has every other node of each axis along which it is coarser,
 * and the last one of an axis that is not periodic. A node between two of them is
 * interpolated:
 *
 *   x[2q+1] = weight[q] X[q] + (1 - weight[q]) X[q+1]
 *
 * along one axis after the other, and the residual is restricted by the transpose. With
 * conductances in series along the axis (weight[q] is face[2q] / (face[2q] +
 * face[2q+1])), this keeps the flux across a jump of k continuous.
 *
 * The V-cycle may be computed in float32 for fields in float64: its rounding error
 * changes the number of iterations, not the solution. The residual is multiplied by a
 * power of two such that its norm is near 1 on its way into the V-cycle, and the
 * correction is divided by that power, so that float32 neither overflows nor loses
 * residuals of any unit.
 *
 * Before the iteration x moves to the point of x + span of some fields where its error is
 * smallest in the norm of A. Solutions of the steps before are such fields: they cost one
 * application of A each, and save a third to a half of the iterations.
 *
 * The last V-cycle would only show that the iteration is at its end. The norm of P r may
 * be estimated instead, from that of r and the ratios of the two so far: the iteration
 * may end if PS_DIFFUSION_MARGIN times the estimate is small enough.
 *
 * Scalar products are summed along the rows of axis 0, each in an order that depends on
 * its length only, and then over the rows in order: the result does not depend on the
 * number of threads.
 */
#ifndef PS_DIFFUSION_H
#define PS_DIFFUSION_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PS_DIFFUSION_AXES = 3, PS_DIFFUSION_LEVELS = 24, PS_DIFFUSION_BASIS = 4 };

/* Factor of safety of an estimated norm of P r: the ratio of the norms of P r and of r
 * varies by less from one iteration to the next. */
#define PS_DIFFUSION_MARGIN 2.0

/* What an iteration keeps of the estimate of |P r|/|r|, which is otherwise the last ratio.
 * The ratio falls while smooth errors go, by a factor of 30 on 512^2 nodes, so that the
 * largest one would never end an iteration; of 3044 stages (2-D and 3-D, k of ratio 100 to
 * 1e6, dt/h^2 from 1 to 1e4) the largest ratio ends 760 before the last V-cycle, this
 * estimate 1405, and both end with |P r| at most 7 times the limit. */
#define PS_DIFFUSION_KEPT 0.25

/* The operator A on the nodes of a box, or what a level of the V-cycle has in its place.
 * Node (i, j, k) is element [(k*nodes[1] + j)*nodes[0] + i] of each field. nodes[2] is 1
 * with two axes. Nodes first[a] <= i_a < end[a] are unknown; outside of them, along one
 * axis, lies at most one node at each end. */
typedef struct {
    int64_t nodes[PS_DIFFUSION_AXES];
    int64_t first[PS_DIFFUSION_AXES], end[PS_DIFFUSION_AXES];
    /* conductance[a] at a node: between it and the next node along axis a, at the last
     * node between it and the first one if the axis is periodic, otherwise not used. */
    const void *conductance[PS_DIFFUSION_AXES], *sum;
    /* T of the lines along each axis, with the nodes along the two other axes as outer
     * and inner in the order of memory. */
    ps_factor line[PS_DIFFUSION_AXES];
    /* Values for the interpolated nodes along axis a, at all nodes of this level along
     * the axes before a and all nodes of the next level along the axes after it; null if
     * the next level has the same nodes along axis a. */
    const void *weight[PS_DIFFUSION_AXES];
} ps_diffusion_level;

struct ps_diffusion {
    ps_dtype dtype; /* of the system and of the fields: PS_F32 or PS_F64 */
    ps_dtype cycle; /* of the levels: as dtype, or PS_F32 */
    int32_t axes;   /* 2 or 3 */
    int32_t periodic[PS_DIFFUSION_AXES];
    /* Whether the nodes at an end have half the volume, in norms. */
    int32_t half[PS_DIFFUSION_AXES][2];
    ps_diffusion_level system; /* A, without lines and weights */
    /* The preconditioner. level[0] has the nodes of the system. */
    int32_t levels;
    ps_diffusion_level level[PS_DIFFUSION_LEVELS];
    const void *rhs; /* used at unknown nodes only */
    void *x;         /* the first approximation and the given values; then the solution */
    /* Fields that are 0 at nodes with given values, in order of decreasing importance.
     * They change the first approximation alone: a backend may leave them out. */
    const void *basis[PS_DIFFUSION_BASIS];
    int32_t fields; /* of the basis */
    /* With the norm |v|, the root of the sum of volume v^2 over the unknown nodes, and
     * the preconditioner P: iterate until |P (rhs - A x)| <= max(rtol |x|, ratio
     * |scale|). `scale` is a field that is not changed, or null: then |scale| is 1. */
    double rtol, ratio;
    const void *scale;
    int64_t most; /* iterations */
};

struct ps_diffusion_report {
    int64_t iterations;
    int32_t converged;
    int32_t threads;
    const char *kernel; /* a static text */
    double error;       /* |P (rhs - A x)|, or an estimated bound of it */
    double norm;        /* |x| */
    double limit;       /* of `error` */
    double least; /* of the eigenvalues of P A: ps_diffusion_least; inf without one */
};

/* An estimate from above of the least eigenvalue of P A, from the factors of conjugate
 * gradients: the least eigenvalue of Lanczos' matrix T = L L', to which `inverse` is
 * 1/least, the norm of L^-1 squared. Row by row, a vector v = z L^-1 with |z| = 1 is kept
 * that is nearly as long as possible. All zero before the first iteration.
 *
 * Source: G. Meurant and P. Tichy, Approximating the extreme Ritz values and upper bounds
 * for the A-norm of the error in CG, Numer. Algorithms 82 (2019) 937-968. */
typedef struct {
    double inverse; /* v v' */
    double product; /* of v and the last row of L^-1 */
    double row;     /* the square of the norm of the last row of L^-1 */
    double alpha;   /* of the last iteration */
} ps_diffusion_least;

/* Check all that the struct alone determines, for all backends. If `solves` is 0, the
 * levels and what they determine are not used. */
ps_status ps_diffusion_check(const ps_diffusion *d, int32_t solves);

/* Set y to the factors of the fields of the basis in the nearest point of their span, by
 * Cholesky's method: g[i][j], j <= i, is the product of fields i and j with A between
 * them, and g[i][i + 1] that of field i with rhs - A x. A field that depends on those
 * before it up to rounding errors gets 0, as does one whose factor is not finite. g is
 * overwritten. For all backends. */
void ps_diffusion_combine(const ps_diffusion *d, double g[][PS_DIFFUSION_BASIS + 1],
                          double *y);

/* Take an iteration x += alpha p with the direction p = z + beta times the one before.
 * For all backends. */
void ps_diffusion_least_add(ps_diffusion_least *least, double alpha, double beta);

/* The estimate, or infinity before the first iteration. */
double ps_diffusion_least_of(const ps_diffusion_least *least);

#ifdef __cplusplus
}
#endif
#endif
